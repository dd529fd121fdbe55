package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

func checkPgx(background context.Context) {
	connection := value(pgx.Connect(background, ""))
	defer connection.Close(background)
	checks := []struct {
		name  string
		check func(context.Context, *pgx.Conn)
	}{
		{"types", pgxTypes}, {"statements", pgxStatements}, {"transactions", pgxTransactions}, {"mistakes", pgxMistakes},
		{"conflicts", pgxConflicts}, {"batches", pgxBatches}, {"copies", pgxCopies}, {"cancellation", pgxCancellation},
		{"pools", pgxPools},
	}
	for _, step := range checks {
		step.check(background, connection)
		fmt.Println("pgx:", step.name)
	}
}

// hasCode fails unless an error has an SQLSTATE; it returns what the server told of it.
func hasCode(err error, code string) *pgconn.PgError {
	var reported *pgconn.PgError
	if !errors.As(err, &reported) || reported.Code != code {
		fail("expected %s, found %v", code, err)
	}
	return reported
}

// typed are types with values that every way to send parameters must bring back as they are.
var typed = []struct {
	name  string
	value any
}{
	{"smallint", int16(-32768)},
	{"integer", int32(2147483647)},
	{"bigint", int64(-9223372036854775808)},
	{"real", float32(1.5)},
	{"double precision", 0.1},
	{"text", "Grüße, 世界 'quoted' \\ and\nmore"},
	{"varchar(10)", "ten at mos"},
	{"boolean", true},
	{"date", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
	{"timestamp", time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)},
	{"timestamptz", time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)},
	{"bytea", []byte{0, 1, 127, 128, 255}},
	{"uuid", [16]byte{0x01, 0x23, 15: 0xef}},
	{"json", map[string]any{"list": []any{1.0, nil, "two"}}},
	{"jsonb", map[string]any{"a": 1.0}},
}

func pgxTypes(background context.Context, connection *pgx.Conn) {
	columns, places, parameters := "", "", []any{}
	for place, kind := range typed {
		columns += fmt.Sprintf(", c%d %s", place, kind.name)
		places += fmt.Sprintf(", $%d", place+2)
		parameters = append(parameters, kind.value)
	}
	value(connection.Exec(background, "CREATE TABLE typed (id integer PRIMARY KEY"+columns+")"))
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec,
		pgx.QueryExecModeSimpleProtocol,
	}
	for number, mode := range modes {
		if mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
			// These know nothing of the types of the columns: JSON goes as text there.
			parameters[13], parameters[14] = `{"list": [1, null, "two"]}`, `{"a": 1}`
			parameters[12] = "01230000-0000-0000-0000-0000000000ef"
		}
		all := append([]any{mode, number}, parameters...)
		value(connection.Exec(background, "INSERT INTO typed VALUES ($1"+places+")", all...))
		row := value(pgx.CollectExactlyOneRow(
			value(connection.Query(background, "SELECT * FROM typed WHERE id = $1", mode, number)),
			func(row pgx.CollectableRow) ([]any, error) { return row.Values() },
		))
		for place, kind := range typed {
			found := row[place+1]
			if moment, is := found.(time.Time); is {
				found = moment.UTC()
			}
			equal(fmt.Sprintf("%s in mode %s", kind.name, mode), found, kind.value)
		}
	}
	var exact pgtype.Numeric
	must(connection.QueryRow(background, "SELECT $1::numeric", "-1234567890.0625").Scan(&exact))
	equal("numeric", value(exact.Value()), "-1234567890.0625")
	var list []int32
	must(connection.QueryRow(background, "SELECT $1::integer[]", []int32{1, -3}).Scan(&list))
	equal("integer[]", list, []int32{1, -3})
	var nothing *string
	must(connection.QueryRow(background, "SELECT $1::text", nil).Scan(&nothing))
	equal("null", nothing, (*string)(nil))
	var length time.Duration
	must(connection.QueryRow(background, "SELECT $1::interval", 90*time.Minute).Scan(&length))
	equal("interval", length, 90*time.Minute)
}

func pgxStatements(background context.Context, connection *pgx.Conn) {
	value(connection.Exec(background, "CREATE TABLE account (id bigint PRIMARY KEY, balance integer NOT NULL)"))
	description := value(connection.Prepare(background, "add", "INSERT INTO account VALUES ($1, $2)"))
	equal("types of parameters", description.ParamOIDs, []uint32{pgtype.Int8OID, pgtype.Int4OID})
	for id := range 5 {
		equal("rows", value(connection.Exec(background, "add", id, 100)).RowsAffected(), int64(1))
	}
	type account struct{ Id, Balance int64 }
	rows := value(connection.Query(background, "SELECT * FROM account WHERE id < @id ORDER BY id", pgx.NamedArgs{"id": 2}))
	found := value(pgx.CollectRows(rows, pgx.RowToStructByName[account]))
	equal("structures", found, []account{{0, 100}, {1, 100}})
}

func balance(background context.Context, session interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}, id int) (balance int) {
	must(session.QueryRow(background, "SELECT balance FROM account WHERE id = $1", id).Scan(&balance))
	return balance
}

func pgxTransactions(background context.Context, connection *pgx.Conn) {
	must(pgx.BeginFunc(background, connection, func(transaction pgx.Tx) error {
		value(transaction.Exec(background, "UPDATE account SET balance = 7 WHERE id = 1"))
		savepoint := value(transaction.Begin(background))
		value(savepoint.Exec(background, "UPDATE account SET balance = 8 WHERE id = 1"))
		_, err := savepoint.Exec(background, "INSERT INTO account VALUES (1, 0)")
		hasCode(err, "23505")
		_, err = savepoint.Exec(background, "SELECT 1")
		hasCode(err, "25P02")
		must(savepoint.Rollback(background))
		equal("after ROLLBACK TO", balance(background, transaction, 1), 7)
		return nil
	}))
	transaction := value(connection.Begin(background))
	value(transaction.Exec(background, "DELETE FROM account"))
	must(transaction.Rollback(background))
	equal("after ROLLBACK", balance(background, connection, 1), 7)
	reading := value(connection.BeginTx(background, pgx.TxOptions{AccessMode: pgx.ReadOnly}))
	_, err := reading.Exec(background, "DELETE FROM account")
	hasCode(err, "25006")
	must(reading.Rollback(background))
}

func pgxMistakes(background context.Context, connection *pgx.Conn) {
	fails := func(code, statement string, parameters ...any) *pgconn.PgError {
		_, err := connection.Exec(background, statement, parameters...)
		return hasCode(err, code)
	}
	double := fails("23505", "INSERT INTO account VALUES ($1, 1)", 1)
	equal("the constraint of an error", []string{double.TableName, double.ConstraintName}, []string{"account", "account_pkey"})
	equal("the column of an error", fails("23502", "INSERT INTO account VALUES (9, NULL)").ColumnName, "balance")
	fails("42P01", "SELECT * FROM nowhere")
	fails("42601", "SELEC 1")
	fails("22012", "SELECT 1 / $1::int", 0)
}

// Each transaction reads what the other one writes, so one of them must fail.
func pgxConflicts(background context.Context, connection *pgx.Conn) {
	other := value(pgx.Connect(background, ""))
	defer other.Close(background)
	write := func(session *pgx.Conn, read, written int) (pgx.Tx, error) {
		transaction := value(session.BeginTx(background, pgx.TxOptions{IsoLevel: pgx.Serializable}))
		seen := balance(background, transaction, read)
		_, err := transaction.Exec(background, "UPDATE account SET balance = $1 WHERE id = $2", seen+1, written)
		return transaction, err
	}
	first := value(write(connection, 1, 2))
	second := value(write(other, 2, 1))
	must(first.Commit(background))
	hasCode(second.Commit(background), "40001")
}

func pgxBatches(background context.Context, connection *pgx.Conn) {
	batch := &pgx.Batch{}
	sum := 0
	for number := range 50 {
		batch.Queue("SELECT $1::int * 2", number).QueryRow(func(row pgx.Row) error {
			var double int
			defer func() { sum += double }()
			return row.Scan(&double)
		})
	}
	must(connection.SendBatch(background, batch).Close())
	equal("a batch", sum, 2450)
	broken := &pgx.Batch{}
	broken.Queue("UPDATE account SET balance = 0 WHERE id = 3")
	broken.Queue("SELECT 1 / $1::int", 0)
	hasCode(connection.SendBatch(background, broken).Close(), "22012")
	equal("after a broken batch", balance(background, connection, 3), 100)
}

func pgxCopies(background context.Context, connection *pgx.Conn) {
	value(connection.Exec(background, "CREATE TABLE copied (id integer PRIMARY KEY, word text, moment timestamptz, exact numeric)"))
	moment := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	rows := pgx.CopyFromSlice(1000, func(number int) ([]any, error) {
		return []any{number, fmt.Sprint("word ", number), moment, "0.25"}, nil
	})
	columns := []string{"id", "word", "moment", "exact"}
	equal("rows copied", value(connection.CopyFrom(background, pgx.Identifier{"copied"}, columns, rows)), int64(1000))
	var count, sum string
	must(connection.QueryRow(background, "SELECT count(*)::text, sum(exact)::text FROM copied").Scan(&count, &sum))
	equal("what was copied", []string{count, sum}, []string{"1000", "250.00"})
	again := pgx.CopyFromRows([][]any{{1001, nil, nil, nil}, {7, nil, nil, nil}})
	_, err := connection.CopyFrom(background, pgx.Identifier{"copied"}, columns, again)
	hasCode(err, "23505")
}

func pgxCancellation(background context.Context, _ *pgx.Conn) {
	// A connection whose context has ended is closed; the server is told to cancel what ran.
	connection := value(pgx.Connect(background, ""))
	limited, stop := context.WithTimeout(background, 200*time.Millisecond)
	defer stop()
	_, err := connection.Exec(limited, "SELECT pg_sleep(60)")
	if !errors.Is(err, context.DeadlineExceeded) {
		fail("expected the end of the time, found %v", err)
	}
	other := value(pgx.Connect(background, ""))
	defer other.Close(background)
	go func() {
		time.Sleep(200 * time.Millisecond)
		must(other.PgConn().CancelRequest(background))
	}()
	_, err = other.Exec(background, "SELECT pg_sleep(60)")
	hasCode(err, "57014")
	must(other.Ping(background))
}

func pgxPools(background context.Context, _ *pgx.Conn) {
	pool := value(pgxpool.New(background, "pool_max_conns=4"))
	defer pool.Close()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			value(pool.Exec(background, "UPDATE account SET balance = balance + 1 WHERE id = $1", 4))
		})
	}
	all.Wait()
	equal("increments", balance(background, pool, 4), 150)
}
