//! Random programs: few keys, so that they meet, and every kind of operation.

use proptest::prelude::*;

use super::name::{Name, Span};
use super::operation::{Amount, Declares, Operation, Program, Target};

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        (0..4_i32, 0..4_i64).prop_map(|(site, number)| Name::Account(site, number)),
        ("[afk]", 0..2).prop_map(|(word, number)| Name::Word(format!("{word}{number}"))),
        (0..8_i64, 0..3_i32).prop_map(|(id, part)| Name::Line(id * 5, part)),
        (0..4_i32).prop_map(Name::Item),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        1 => Just(Span::Accounts),
        4 => (0..4_i32).prop_map(Span::Site),
        1 => Just(Span::Words),
        2 => prop_oneof![Just(("a", "f")), Just(("f", "z")), Just(("a", "z"))]
            .prop_map(|(from, to)| Span::WordsBetween(from.to_owned(), to.to_owned())),
        1 => Just(Span::Lines),
        3 => (0..8_i64).prop_map(|id| Span::Parts(id * 5)),
        2 => (0..8_i64, 1..8_i64).prop_map(|(from, more)| Span::LinesBetween(from * 5, (from + more) * 5)),
        1 => Just(Span::Items),
    ]
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        4 => name().prop_map(Target::Named),
        1 => (span(), name()).prop_map(|(span, name)| Target::At(span, name)),
    ]
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![1 => (0..1000_i64).prop_map(Amount::Constant), 2 => Just(Amount::Mixed)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let note = proptest::option::of("[a-z]{0,12}").prop_filter("the notation has null", |note| {
        note.as_deref().is_none_or(|note| note != "null" && !note.is_empty())
    });
    prop_oneof![
        4 => target().prop_map(Operation::Get),
        4 => (target(), amount()).prop_map(|(target, amount)| Operation::Put(target, amount)),
        3 => (target(), amount()).prop_map(|(target, amount)| Operation::Set(target, amount)),
        2 => (target(), -50..50_i64).prop_map(|(target, amount)| Operation::Add(target, amount)),
        1 => (target(), proptest::option::of(0..9_i32)).prop_map(|(target, rank)| Operation::Rank(target, rank)),
        1 => (target(), note).prop_map(|(target, note)| Operation::Note(target, note)),
        2 => target().prop_map(Operation::Delete),
        3 => (span(), prop_oneof![1..4_u32, Just(u32::MAX), Just(0)])
            .prop_map(|(span, limit)| Operation::Scan(span, limit)),
        1 => target().prop_map(Operation::AbortIfMissing),
        1 => target().prop_map(Operation::AbortIfPresent),
        1 => (target(), 0..300_i64).prop_map(|(target, least)| Operation::AbortIfBelow(target, least)),
    ]
}

/// A program that declares exactly what it touches.
pub(crate) fn declared_program() -> impl Strategy<Value = Program> {
    (proptest::collection::vec(operation(), 1..6), any::<bool>()).prop_map(|(operations, functors)| {
        let declares = if functors { Declares::Functors } else { Declares::Exactly };
        Program { declares, operations }
    })
}

/// A program that declares exactly what it touches, or nothing.
pub(crate) fn any_program() -> impl Strategy<Value = Program> {
    (declared_program(), any::<bool>()).prop_map(|(program, declared)| {
        if declared { program } else { Program { declares: Declares::Nothing, ..program } }
    })
}

/// The configuration of a property test: `PROPTEST_CASES` cases, or the given number.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    let cases = if given.cases == 256 { cases } else { given.cases };
    ProptestConfig { cases, failure_persistence: None, ..given }
}
