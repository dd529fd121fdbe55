// Clients of PostgreSQL for Go: pgx, and database/sql with lib/pq.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
)

func main() {
	background := context.Background()
	checkPgx(background)
	checkPq(background)
}

// must ends the program if something failed.
func must(err error) {
	if err != nil {
		fail("%v", err)
	}
}

// value is must for a function that also returns something.
func value[T any](result T, err error) T {
	if err != nil {
		fail("%v", err)
	}
	return result
}

func equal(what string, found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		fail("%s: expected %#v, found %#v", what, expected, found)
	}
}

// fail names the line of the check, which is the first caller outside of this file.
func fail(format string, arguments ...any) {
	_, own, _, _ := runtime.Caller(0)
	for depth := 1; ; depth++ {
		if _, file, line, found := runtime.Caller(depth); !found || file != own {
			fmt.Fprintf(os.Stderr, "%s:%d: %s\n", file, line, fmt.Sprintf(format, arguments...))
			os.Exit(1)
		}
	}
}
