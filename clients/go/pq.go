package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
)

func checkPq(background context.Context) {
	for _, binary := range []string{"no", "yes"} {
		database := value(sql.Open("postgres", "sslmode=disable binary_parameters="+binary))
		pqTypes(database)
		pqTransactions(background, database)
		pqCopies(database)
		pqCancellation(background, database)
		must(database.Close())
		fmt.Println("lib/pq: binary_parameters =", binary)
	}
}

// hasPqCode fails unless an error has an SQLSTATE; it returns what the server told of it.
func hasPqCode(err error, code string) *pq.Error {
	var reported *pq.Error
	if !errors.As(err, &reported) || string(reported.Code) != code {
		fail("expected %s, found %v", code, err)
	}
	return reported
}

func pqTypes(database *sql.DB) {
	row := database.QueryRow(
		"SELECT $1::smallint, $2::bigint, $3::numeric, $4::text, $5::boolean, $6::timestamptz, $7::bytea, $8::uuid, $9::float8, $10::int",
		-7, int64(-9223372036854775808), "0.0625", "Grüße", true, time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC),
		[]byte{0, 128, 255}, "0123abcd-89ab-cdef-0123-456789abcdef", 0.1, nil,
	)
	var (
		small            int16
		large            int64
		exact, word, key string
		valid            bool
		moment           time.Time
		raw              []byte
		approximate      float64
		nothing          sql.NullInt32
	)
	must(row.Scan(&small, &large, &exact, &word, &valid, &moment, &raw, &key, &approximate, &nothing))
	found := []any{small, large, exact, word, valid, moment.UTC(), raw, key, approximate, nothing.Valid}
	equal("types", found, []any{
		int16(-7), int64(-9223372036854775808), "0.0625", "Grüße", true, time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC),
		[]byte{0, 128, 255}, "0123abcd-89ab-cdef-0123-456789abcdef", 0.1, false,
	})
	var words []string
	must(database.QueryRow("SELECT $1::text[]", pq.Array([]string{"one", "two, three"})).Scan(pq.Array(&words)))
	equal("text[]", words, []string{"one", "two, three"})
}

func pqTransactions(background context.Context, database *sql.DB) {
	value(database.Exec("CREATE TABLE IF NOT EXISTS stock (id integer PRIMARY KEY, amount integer NOT NULL)"))
	value(database.Exec("DELETE FROM stock"))
	transaction := value(database.BeginTx(background, &sql.TxOptions{Isolation: sql.LevelSerializable}))
	insert := value(transaction.Prepare("INSERT INTO stock VALUES ($1, $2)"))
	for id := range 3 {
		value(insert.Exec(id, 10))
	}
	value(transaction.Exec("SAVEPOINT here"))
	_, err := insert.Exec(0, 11)
	equal("the constraint of an error", hasPqCode(err, "23505").Constraint, "stock_pkey")
	_, err = transaction.Exec("SELECT 1")
	hasPqCode(err, "25P02")
	value(transaction.Exec("ROLLBACK TO here"))
	must(transaction.Commit())
	undone := value(database.Begin())
	value(undone.Exec("DELETE FROM stock"))
	must(undone.Rollback())
	rows := value(database.Query("SELECT id FROM stock WHERE id = ANY($1) ORDER BY id", pq.Array([]int64{0, 2, 7})))
	ids := []int{}
	for rows.Next() {
		var id int
		must(rows.Scan(&id))
		ids = append(ids, id)
	}
	must(rows.Err())
	equal("rows", ids, []int{0, 2})
}

func pqCopies(database *sql.DB) {
	transaction := value(database.Begin())
	copying := value(transaction.Prepare("COPY stock (id, amount) FROM STDIN"))
	for id := range 500 {
		value(copying.Exec(id+100, 1))
	}
	value(copying.Exec())
	must(copying.Close())
	must(transaction.Commit())
	var sum int
	must(database.QueryRow("SELECT sum(amount) FROM stock").Scan(&sum))
	equal("what was copied", sum, 530)
}

func pqCancellation(background context.Context, database *sql.DB) {
	limited, stop := context.WithTimeout(background, 200*time.Millisecond)
	defer stop()
	_, err := database.ExecContext(limited, "SELECT pg_sleep(60)")
	hasPqCode(err, "57014")
	must(database.Ping())
}
