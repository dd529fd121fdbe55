// History checks whether a server that speaks PostgreSQL's protocol is strictly serializable.
//
// Connections run random transactions over a small table at the same time: statements by themselves and blocks that read and write
// single keys, several keys and ranges, with keys that come and go. Each notes when it was called, when it returned and all that it was
// shown. Then porcupine, a checker of linearizability, looks for an order of all committed transactions that explains what each was shown, and in
// which none comes before another that had returned when it was called. An operation of the checker is a whole transaction and its
// state the whole table, so linearizability is strict serializability here.
//
//	go run . -connections 8 -seconds 10
//
// The server is told by PGHOST, PGPORT, PGUSER and PGDATABASE. Several hosts, and as many ports, with commas between them are the processes of one
// cluster: connections go to them by turns. The table history_register is made anew. A transaction stays in one of the -groups of
// the table, and each group is checked by itself; more groups and fewer connections make the check cheaper. The exit code is 0 if there
// is such an order, 1 if there is none (what could be ordered is printed, and what could not), 2 if something else went wrong.
//
// What was aborted with 40001 or 40P01 is left out. A transaction whose connection broke while it committed may have taken effect at any time
// since, or not at all. Bound the memory with ulimit -v.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	connections  = flag.Int("connections", 8, "connections that run transactions at the same time")
	seconds      = flag.Float64("seconds", 10, "how long to run transactions")
	transactions = flag.Int64("transactions", 0, "how many transactions to run, whatever time it takes; 0 for -seconds")
	groups       = flag.Int("groups", 4, "groups of keys; a transaction stays in one")
	keys         = flag.Int("keys", 6, "keys of each group")
	seed         = flag.Uint64("seed", 1, "seed of what the transactions do")
	savepoints   = flag.Bool("savepoints", true, "whether blocks go back to savepoints")
	isolation    = flag.String("isolation", "", "isolation level to ask for; empty for the server's default")
	checking     = flag.Duration("check", 5*time.Minute, "longest time for the check of a group")
)

// outcome is how a transaction ended.
type outcome int

const (
	committed outcome = iota
	aborted
	rolledBack
	unknown
	outcomes
)

var (
	epoch  = time.Now()
	begun  atomic.Int64
	counts [outcomes]atomic.Int64
)

func main() {
	flag.Parse()
	background := context.Background()
	if err := prepare(background); err != nil {
		fail(err)
	}
	histories := make([][]porcupine.Operation, *connections)
	var all sync.WaitGroup
	for number := range histories {
		all.Go(func() { histories[number] = client(background, number) })
	}
	all.Wait()
	byGroup := make([][]porcupine.Operation, *groups)
	for _, history := range histories {
		for _, operation := range history {
			group := operation.Input.(transaction).group
			byGroup[group] = append(byGroup[group], operation)
		}
	}
	fmt.Printf("%d transactions in %.1f s: %d committed, %d aborted, %d rolled back, %d unknown\n", begun.Load(), time.Since(epoch).Seconds(),
		counts[committed].Load(), counts[aborted].Load(), counts[rolledBack].Load(), counts[unknown].Load())
	os.Exit(check(byGroup))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "history:", err)
	os.Exit(2)
}

// connect opens a connection: to one of the servers by turns, with the simple protocol in every other round of them.
func connect(background context.Context, number int) (*pgx.Conn, error) {
	hosts, ports := strings.Split(os.Getenv("PGHOST"), ","), strings.Split(os.Getenv("PGPORT"), ",")
	server := ""
	if len(hosts) > 1 {
		server = fmt.Sprintf("host=%s port=%s", hosts[number%len(hosts)], ports[number%len(ports)])
	}
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return nil, err
	}
	if *isolation != "" {
		config.RuntimeParams["default_transaction_isolation"] = *isolation
	}
	if number/len(hosts)%2 == 1 {
		config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	}
	return pgx.ConnectConfig(background, config)
}

// prepare makes the table. It is empty: keys come by insertions. The primary key begins with k, so that a server which places rows by that has the
// keys of a group in several places, and there is an index to read them by.
func prepare(background context.Context) error {
	connection, err := connect(background, 0)
	if err != nil {
		return err
	}
	defer connection.Close(background)
	for _, text := range []string{
		"DROP TABLE IF EXISTS history_register",
		"CREATE TABLE history_register (g integer, k integer, v text NOT NULL, PRIMARY KEY (k, g), UNIQUE (g, k))",
	} {
		if _, err := connection.Exec(background, text); err != nil {
			return err
		}
	}
	return nil
}

// client runs transactions one after the other and returns those that may have committed.
func client(background context.Context, number int) []porcupine.Operation {
	random := rand.New(rand.NewPCG(*seed, uint64(number)))
	var history []porcupine.Operation
	var connection *pgx.Conn
	for more() {
		for wait := time.Millisecond; connection == nil || connection.IsClosed(); wait *= 2 {
			var err error
			if connection, err = connect(background, number); err != nil {
				if wait > time.Minute {
					fail(err)
				}
				time.Sleep(wait)
			}
		}
		wanted := randomTransaction(random)
		call := time.Since(epoch).Nanoseconds()
		shown, how := run(background, connection, wanted)
		end := time.Since(epoch).Nanoseconds()
		counts[how].Add(1)
		if how == unknown {
			end = math.MaxInt64
		}
		if how == committed || how == unknown {
			history = append(history, porcupine.Operation{ClientId: number, Input: wanted, Call: call,
				Output: output{shown, how}, Return: end})
		}
	}
	if connection != nil {
		connection.Close(background)
	}
	return history
}

// more tells whether there is another transaction to run.
func more() bool {
	number := begun.Add(1)
	if (*transactions > 0 && number <= *transactions) || (*transactions == 0 && time.Since(epoch).Seconds() < *seconds) {
		return true
	}
	begun.Add(-1)
	return false
}

// run sends a transaction, and returns what its statements were shown.
func run(background context.Context, connection *pgx.Conn, wanted transaction) ([]string, outcome) {
	var shown []string
	for place, one := range wanted.messages() {
		text, err := send(background, connection, one)
		if err != nil {
			return shown, ended(background, connection, wanted, place, err)
		}
		if one.shape != nil {
			shown = append(shown, text)
		}
	}
	if wanted.rollsBack {
		return shown, rolledBack
	}
	return shown, committed
}

// ended tells what has become of a transaction of which a message failed.
func ended(background context.Context, connection *pgx.Conn, wanted transaction, place int, err error) outcome {
	var reported *pgconn.PgError
	switch {
	case connection.IsClosed() && place+1 == len(wanted.messages()) && !wanted.rollsBack:
		return unknown
	case connection.IsClosed():
		return aborted
	case !errors.As(err, &reported) || (reported.Code != "40001" && reported.Code != "40P01"):
		fail(fmt.Errorf("%v: %w", wanted.messages()[place], err))
	}
	if wanted.isBlock {
		// A failed COMMIT has ended the block: then this is a warning.
		if _, err := connection.Exec(background, "ROLLBACK"); err != nil {
			connection.Close(background)
		}
	}
	return aborted
}
