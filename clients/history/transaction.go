package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// state is the values of the keys of a group; those that are empty are not there.
type state []string

// between is the keys from one to another that are there.
func (table state) between(first, last int) []int {
	var found []int
	for key := first; key <= last; key++ {
		if table[key] != "" {
			found = append(found, key)
		}
	}
	return found
}

// show is how rows are written into a history.
func (table state) show(shown ...int) string {
	var rows []string
	for _, key := range shown {
		if table[key] != "" {
			rows = append(rows, fmt.Sprintf("%d=%s", key, table[key]))
		}
	}
	return strings.Join(rows, "; ")
}

// change gives keys new values, and returns what a client is told who has not asked for rows.
func (table state) change(changed []int, value func(old string) string) string {
	for _, key := range changed {
		table[key] = value(table[key])
	}
	return fmt.Sprint(len(changed), " written")
}

// shape is a kind of statement.
type shape struct {
	text string
	// arguments are the parameters of the text: g for the group, a and b for two keys, a the smaller one, t for a tag that no other statement has.
	arguments string
	writes    bool
	// apply does the same to a group, and returns what the client is shown.
	apply func(table state, a, b int, tag string) string
}

// longest is the length from which on a value is made short again.
const longest = 60

var shapes = []shape{
	{"SELECT k, v FROM history_register WHERE g = $1 AND k = $2", "ga", false,
		func(table state, a, _ int, _ string) string { return table.show(a) }},
	{"SELECT k, v FROM history_register WHERE g = $1 AND k IN ($2, $3)", "gab", false,
		func(table state, a, b int, _ string) string { return table.show(slices.Compact([]int{a, b})...) }},
	{"SELECT k, v FROM history_register WHERE g = $1 AND k BETWEEN $2 AND $3 ORDER BY k", "gab", false,
		func(table state, a, b int, _ string) string { return table.show(table.between(a, b)...) }},
	{"SELECT count(*)::integer, coalesce(sum(length(v)), 0)::text FROM history_register WHERE g = $1", "g", false,
		func(table state, _, _ int, _ string) string {
			return fmt.Sprintf("%d=%d", len(table.between(0, len(table)-1)), len(strings.Join(table, "")))
		}},
	{"UPDATE history_register SET v = v || $3 WHERE g = $1 AND k = $2 RETURNING k, v", "gat", true,
		func(table state, a, _ int, tag string) string {
			table.change(table.between(a, a), func(old string) string { return old + tag })
			return table.show(a)
		}},
	{"UPDATE history_register SET v = v || $3 WHERE g = $1 AND k = $2", "gat", true,
		func(table state, a, _ int, tag string) string {
			return table.change(table.between(a, a), func(old string) string { return old + tag })
		}},
	{"UPDATE history_register SET v = v || $4 WHERE g = $1 AND k BETWEEN $2 AND $3", "gabt", true,
		func(table state, a, b int, tag string) string {
			return table.change(table.between(a, b), func(old string) string { return old + tag })
		}},
	{"UPDATE history_register AS new SET v = old.v || $4 FROM history_register AS old WHERE new.g = $1 AND old.g = $1 AND new.k = $2 AND old.k = $3",
		"gabt", true,
		func(table state, a, b int, tag string) string {
			if table[b] == "" {
				return table.change(nil, nil)
			}
			return table.change(table.between(a, a), func(string) string { return table[b] + tag })
		}},
	{fmt.Sprint("UPDATE history_register SET v = $2 WHERE g = $1 AND length(v) > ", longest), "gt", true,
		func(table state, _, _ int, tag string) string {
			all := table.between(0, len(table)-1)
			return table.change(slices.DeleteFunc(all, func(key int) bool { return len(table[key]) <= longest }),
				func(string) string { return tag })
		}},
	{"INSERT INTO history_register VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", "gat", true,
		func(table state, a, _ int, tag string) string {
			if table[a] != "" {
				return table.change(nil, nil)
			}
			return table.change([]int{a}, func(string) string { return tag })
		}},
	{"INSERT INTO history_register AS old VALUES ($1, $2, $3) ON CONFLICT (g, k) DO UPDATE SET v = old.v || excluded.v RETURNING k, v", "gat", true,
		func(table state, a, _ int, tag string) string {
			table[a] += tag
			return table.show(a)
		}},
	{"DELETE FROM history_register WHERE g = $1 AND k = $2", "ga", true,
		func(table state, a, _ int, _ string) string {
			return table.change(table.between(a, a), func(string) string { return "" })
		}},
}

// message is a statement of a transaction, or one around them, such as COMMIT, which has a text alone.
type message struct {
	shape *shape
	text  string
	group int
	a, b  int
	tag   string
	// isUndone says that the transaction goes back to before it.
	isUndone bool
}

func (one message) String() string {
	if one.shape == nil {
		return one.text
	}
	return fmt.Sprint(one.shape.text, " ", one.values())
}

// values are the parameters.
func (one message) values() []any {
	if one.shape == nil {
		return nil
	}
	all := map[rune]any{'g': one.group, 'a': one.a, 'b': one.b, 't': one.tag}
	var values []any
	for _, name := range one.shape.arguments {
		values = append(values, all[name])
	}
	return values
}

// transaction is what a client wants to do; its group is that of all of its statements.
type transaction struct {
	group                          int
	statements                     []message
	isBlock, isReadOnly, rollsBack bool
}

var tags atomic.Int64

// randomTransaction is a statement by itself, or a block of up to four, which may be read only, be rolled back or undo a part.
func randomTransaction(random *rand.Rand) transaction {
	wanted := transaction{group: random.IntN(*groups), isBlock: random.IntN(2) == 0}
	count := 1
	if wanted.isBlock {
		count += random.IntN(4)
		wanted.isReadOnly = random.IntN(4) == 0
		wanted.rollsBack = random.IntN(16) == 0
	}
	for len(wanted.statements) < count {
		chosen := &shapes[random.IntN(len(shapes))]
		if chosen.writes && wanted.isReadOnly {
			continue
		}
		a, b := random.IntN(*keys), random.IntN(*keys)
		wanted.statements = append(wanted.statements, message{shape: chosen, group: wanted.group, a: min(a, b), b: max(a, b),
			tag: fmt.Sprint(tags.Add(1), "."), isUndone: wanted.isBlock && *savepoints && random.IntN(8) == 0})
	}
	return wanted
}

// messages are what is sent for a transaction.
func (wanted transaction) messages() []message {
	if !wanted.isBlock {
		return wanted.statements
	}
	all := []message{{text: "BEGIN"}}
	if wanted.isReadOnly {
		all[0].text = "BEGIN READ ONLY"
	}
	for _, one := range wanted.statements {
		if one.isUndone {
			all = append(all, message{text: "SAVEPOINT before"}, one, message{text: "ROLLBACK TO before"})
		} else {
			all = append(all, one)
		}
	}
	if wanted.rollsBack {
		return append(all, message{text: "ROLLBACK"})
	}
	return append(all, message{text: "COMMIT"})
}

// send runs a message, and returns what came of it in the words of the model.
func send(background context.Context, connection *pgx.Conn, one message) (string, error) {
	if one.shape == nil {
		_, err := connection.Exec(background, one.text)
		return "", err
	}
	rows, err := connection.Query(background, one.shape.text, one.values()...)
	if err != nil {
		return "", err
	}
	shown, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var key int
		var value string
		err := row.Scan(&key, &value)
		return fmt.Sprintf("%d=%s", key, value), err
	})
	if one.shape.writes && !strings.Contains(one.shape.text, "RETURNING") {
		return fmt.Sprint(rows.CommandTag().RowsAffected(), " written"), err
	}
	slices.Sort(shown)
	return strings.Join(shown, "; "), err
}
