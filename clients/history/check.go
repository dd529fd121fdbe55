package main

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// output is what a transaction was shown, statement by statement, and how it ended.
type output struct {
	shown []string
	how   outcome
}

var hashSeed = maphash.MakeSeed()

// step tells whether a transaction would have been shown this in this state, and the state after it.
//
// One whose outcome is unknown has no place that it must fit: where it does not fit it did not take effect. It has until the end of time to
// return, so one that never took effect finds such a place behind all others.
func step(before state, wanted transaction, found output) (bool, state) {
	after := slices.Clone(before)
	for place, one := range wanted.statements {
		table := after
		if one.isUndone {
			table = slices.Clone(after)
		}
		shown := one.shape.apply(table, one.a, one.b, one.tag)
		if place < len(found.shown) && found.shown[place] != shown {
			return found.how == unknown, before
		}
	}
	return true, after
}

// model is a group of the table.
func model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return make(state, *keys) },
		Step: func(before, wanted, found any) (bool, any) {
			return step(before.(state), wanted.(transaction), found.(output))
		},
		Equal: func(one, other any) bool { return slices.Equal(one.(state), other.(state)) },
		Hash:  func(table any) uint64 { return maphash.String(hashSeed, strings.Join(table.(state), "\x00")) },
	}
}

// check looks for an order of each group; the result is the exit code.
func check(byGroup [][]porcupine.Operation) int {
	code := 0
	for group, history := range byGroup {
		switch porcupine.CheckOperationsTimeout(model(), history, *checking) {
		case porcupine.Ok:
			fmt.Printf("group %d: %d transactions are strictly serializable\n", group, len(history))
		case porcupine.Illegal:
			fmt.Printf("group %d: %d transactions are NOT strictly serializable\n", group, len(history))
			explain(history)
			return 1
		default:
			fmt.Printf("group %d: %d transactions could not be checked in %v\n", group, len(history), *checking)
			code = 2
		}
	}
	return code
}

// explain prints the end of the longest order that there is, and the transactions none of which can follow.
func explain(history []porcupine.Operation) {
	_, info := porcupine.CheckOperationsVerbose(model(), history, *checking)
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	table := make(state, *keys)
	isOrdered := make([]bool, len(history))
	for place, number := range longest {
		isOrdered[number] = true
		if place+5 > len(longest) {
			describe("ordered", history[number])
		}
		_, table = step(table, history[number].Input.(transaction), history[number].Output.(output))
	}
	fmt.Println("the table then:", table.show(table.between(0, *keys-1)...))
	next := slices.MinFunc(left(history, isOrdered), func(one, other porcupine.Operation) int { return int(one.Return - other.Return) })
	for _, operation := range left(history, isOrdered) {
		if operation.Call <= next.Return {
			describe("cannot follow", operation)
		}
	}
}

// left is the operations that are not in the order.
func left(history []porcupine.Operation, isOrdered []bool) []porcupine.Operation {
	var found []porcupine.Operation
	for number, operation := range history {
		if !isOrdered[number] {
			found = append(found, operation)
		}
	}
	return found
}

func describe(what string, operation porcupine.Operation) {
	found := operation.Output.(output)
	fmt.Printf("%s: connection %d, %.6f to %.6f s\n", what, operation.ClientId, float64(operation.Call)/1e9, float64(operation.Return)/1e9)
	for place, one := range operation.Input.(transaction).statements {
		undone, shown := "", "no answer"
		if one.isUndone {
			undone = " (undone)"
		}
		if place < len(found.shown) {
			shown = found.shown[place]
		}
		fmt.Printf("    %v%s -> %s\n", one, undone, shown)
	}
}
