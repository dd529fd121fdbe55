//! Random programs: few keys, so that they meet, and every kind of operation.

use proptest::prelude::*;

use super::name::{Name, Span};
use super::operation::{Amount, Declared, Declares, Operation, Program, Target, Touch};

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
        3 => (span(), prop_oneof![1..4_u32, Just(u32::MAX), Just(0)], proptest::bool::ANY)
            .prop_map(|(span, limit, down)| match down {
                true => Operation::ScanDown(span, limit),
                false => Operation::Scan(span, limit),
            }),
        1 => target().prop_map(Operation::AbortIfMissing),
        1 => target().prop_map(Operation::AbortIfPresent),
        1 => (target(), 0..300_i64).prop_map(|(target, least)| Operation::AbortIfBelow(target, least)),
    ]
}

/// A span that a key lies in.
fn span_around(name: &Name, is_wide: bool) -> Span {
    match (name, is_wide) {
        (Name::Account(site, _), false) => Span::Site(*site),
        (Name::Account(..), true) => Span::Accounts,
        (Name::Word(_), false) => Span::WordsBetween("a".to_owned(), "z".to_owned()),
        (Name::Word(_), true) => Span::Words,
        (Name::Line(id, _), false) => Span::Parts(*id),
        (Name::Line(..), true) => Span::Lines,
        (Name::Item(_), _) => Span::Items,
    }
}

/// Declares what operations touch, by keys and by spans around them: so that one may be read as a key and written as part of a span, and
/// the other way round, and spans overlap. `choice` gives numbers below its argument.
fn loosely(operations: &[Operation], choice: &mut dyn FnMut(usize) -> usize) -> Vec<Declared> {
    let mut all = Vec::new();
    for operation in operations {
        let (reads, writes) = match operation {
            Operation::Put(..) | Operation::Delete(_) => (false, true),
            Operation::Get(_) => (true, false),
            condition if condition.is_condition() => (true, false),
            _ => (true, true),
        };
        let touches = [(reads, Touch::Read), (writes, Touch::Write)].into_iter().filter(|(does, _)| *does);
        match (operation, operation.target()) {
            (Operation::Scan(span, _) | Operation::ScanDown(span, _), _) => {
                all.push(Declared::Range(Touch::Read, span.clone()))
            }
            (_, Some(Target::Named(name))) => {
                for (_, touch) in touches {
                    let is_wide = choice(4) == 0;
                    all.push(match choice(3) {
                        0 => Declared::Key(touch, name.clone()),
                        _ => Declared::Range(touch, span_around(name, is_wide)),
                    });
                }
                if choice(4) == 0 {
                    let touch = [Touch::Read, Touch::Write, Touch::Update][choice(3)];
                    all.push(Declared::Range(touch, span_around(name, choice(2) == 0)));
                }
            }
            (_, Some(Target::At(span, name))) => {
                all.push(Declared::Key(Touch::Read, name.clone()));
                all.extend(touches.map(|(_, touch)| Declared::Range(touch, span.clone())));
            }
            _ => {}
        }
    }
    all
}

/// A program that declares what it touches, in one of the ways that there are.
pub(crate) fn declared_program() -> impl Strategy<Value = Program> {
    let choices = proptest::collection::vec(any::<proptest::sample::Index>(), 32);
    (proptest::collection::vec(operation(), 1..6), 0..5_u8, choices).prop_map(|(operations, way, choices)| {
        let mut choices = choices.into_iter();
        let declares = match way {
            0 | 1 => Declares::Functors,
            2 => Declares::Exactly,
            _ => Declares::These(loosely(&operations, &mut |below| {
                choices.next().map_or(0, |choice| choice.index(below))
            })),
        };
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
