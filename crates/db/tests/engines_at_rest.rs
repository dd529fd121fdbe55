//! An engine at rest holds nothing of what it has done: memory does not grow with the transactions that have finished, nor
//! with what peers say again of them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "every test crate uses its own part")]
mod interpreted;

use std::fmt::Debug;

use bytes::Bytes;
use ordain_db::engine::Engine;
use ordain_db::engine::aloha::Aloha;
use ordain_db::engine::calvin::{Calvin, CalvinVll};
use ordain_db::engine::serial::Serial;
use ordain_db::position::{Epoch, PartitionId, Position};

use interpreted::operation::{Declares, Program};
use interpreted::part::Part;
use interpreted::{Database, arguments};

fn part<E: Engine>(me: u16, database: &Database, engine: E) -> Part<'_, E> {
    Part::new(me, database, &[], engine)
}

fn deliver<E: Engine>(part: &mut Part<'_, E>, number: u64, program: &Program) {
    part.deliver(position(number), &arguments(program).into());
}

/// How often the logic was run, and how many verdicts were reported since the last time.
fn told<E>(part: &mut Part<'_, E>) -> (u64, usize) {
    (part.database.runs() as u64, std::mem::take(&mut part.effects.reports).len())
}

/// Whether results of other partitions are kept.
fn keeps_reads<E: Debug>(part: &Part<'_, E>) -> bool {
    let shown = format!("{:?}", part.engine);
    assert!(shown.contains("inbox: Inbox {"), "the inbox cannot be seen: {shown}");
    !shown.contains("inbox: Inbox { received: {} }")
}

fn position(number: u64) -> Position {
    Position { epoch: Epoch(100_000 + number), origin: PartitionId(0), index: 0 }
}

/// Runs transactions with two active participants, some of which wait for locks, and says how much each engine shows of
/// itself in the end.
fn size_after<E: Engine + Debug>(transactions: u64, engine: fn() -> E) -> [usize; 2] {
    let database = Database::new();
    let program = |number: u64| {
        let put = format!("put account/0/{} 1", number % 3);
        let texts = [&put, "scan account/1", "add account/1/1 1", "get account/0/1"];
        let operations = texts.iter().map(|text| text.parse().unwrap());
        Program { declares: Declares::Exactly, operations: operations.collect() }
    };
    let mut parts = [0, 1].map(|me| part(me, &database, engine()));
    for number in 1..=transactions {
        parts.iter_mut().for_each(|part| deliver(part, number, &program(number)));
        if number % 10 == 0 || number == transactions {
            for round in 0.. {
                if parts.iter().all(|part| part.engine.live() == 0) {
                    break;
                }
                assert!(round < 100, "the engines are stuck");
                let [first, second] = parts.each_mut().map(Part::reads);
                parts[0].receive(second);
                parts[1].receive(first);
            }
        }
    }
    parts.map(|part| format!("{:?}", part.engine).len())
}

/// Ten times the transactions leave an engine as large as it was, but for a digit more in a counter.
fn forgets_what_has_finished<E: Engine + Debug>(engine: fn() -> E) {
    const COUNTER_DIGITS: usize = 4;
    let (few, many) = (size_after(120, engine), size_after(1200, engine));
    for (few, many) in few.into_iter().zip(many) {
        assert!(many <= few + COUNTER_DIGITS, "{few} characters grew to {many}");
    }
}

#[test]
fn calvin_forgets_what_has_finished() {
    forgets_what_has_finished(Calvin::new);
}

#[test]
fn calvin_with_vll_forgets_what_has_finished() {
    forgets_what_has_finished(<CalvinVll>::default);
}

#[test]
fn aloha_forgets_what_has_finished() {
    forgets_what_has_finished(Aloha::new);
}

#[test]
fn serial_forgets_what_has_finished() {
    forgets_what_has_finished(Serial::new);
}

/// Both partitions change a row of theirs by what they read of the other's.
fn exchange() -> Program {
    let texts = ["add account/0/1 1", "add account/1/1 1"];
    Program {
        declares: Declares::Exactly,
        operations: texts.iter().map(|text| text.parse().unwrap()).collect(),
    }
}

/// What the other partition says of its reads for a transaction.
fn reads_of_peer<E: Engine + Debug>(database: &Database, number: u64, engine: E) -> Bytes {
    let mut peer = part(1, database, engine);
    deliver(&mut peer, number, &exchange());
    let reads = peer.reads();
    assert!(!reads.is_empty());
    reads
}

/// Read results of finished transactions come again, alone and together with those of one that has not come yet.
fn ignores_reads_that_come_again<E: Engine + Debug>(engine: fn() -> E) {
    let database = Database::new();
    let mut part = part(0, &database, engine());
    let reads = [1, 2, 3].map(|number| reads_of_peer(&database, number, engine()));
    let before = database.runs() as u64;
    deliver(&mut part, 1, &exchange());
    assert_eq!((part.engine.live(), told(&mut part)), (1, (before, 0)));
    part.receive(reads[0].clone());
    assert_eq!((part.engine.live(), told(&mut part)), (0, (before + 1, 1)));
    assert!(!keeps_reads(&part));
    // Again, when it is the last that was delivered.
    part.receive(reads[0].clone());
    assert!(!keeps_reads(&part));
    // Twice before the transaction: kept, and used once.
    part.receive(reads[1].clone());
    part.receive(reads[1].clone());
    assert!(keeps_reads(&part));
    deliver(&mut part, 2, &exchange());
    assert_eq!((part.engine.live(), told(&mut part)), (0, (before + 2, 1)));
    assert!(!keeps_reads(&part));
    // All again in one message, with what is new.
    part.receive(reads.concat().into());
    assert!(keeps_reads(&part));
    deliver(&mut part, 3, &exchange());
    assert_eq!((part.engine.live(), told(&mut part)), (0, (before + 3, 1)));
    part.receive(reads.concat().into());
    assert!(!keeps_reads(&part));
    assert_eq!(told(&mut part), (before + 3, 0));
}

/// Read results come again while the transaction waits for a lock or its turn, and while it collects.
fn takes_reads_once_while_live<E: Engine + Debug>(engine: fn() -> E) {
    let database = Database::new();
    let mut part = part(0, &database, engine());
    let reads = [1, 2].map(|number| reads_of_peer(&database, number, engine()));
    deliver(&mut part, 1, &exchange());
    deliver(&mut part, 2, &exchange());
    let before = database.runs() as u64;
    // The second waits for the first.
    part.receive(reads[1].clone());
    part.receive(reads[1].clone());
    assert_eq!((part.engine.live(), told(&mut part)), (2, (before, 0)));
    // Both in one message, and the first twice in it.
    part.receive([reads[0].clone(), reads[1].clone(), reads[0].clone()].concat().into());
    assert_eq!((part.engine.live(), told(&mut part)), (0, (before + 2, 2)));
    assert!(!keeps_reads(&part));
}

/// An engine that goes on after a checkpoint takes no read results of what the checkpoint holds.
fn ignores_reads_of_a_checkpoint<E: Engine + Debug>(engine: fn() -> E) {
    let database = Database::new();
    let mut part = part(0, &database, engine());
    part.engine.resume(Position::end_of(position(2).epoch));
    let before = database.runs() as u64;
    for number in 1..=3 {
        part.receive(reads_of_peer(&database, number, engine()));
        assert_eq!(keeps_reads(&part), number == 3);
    }
    deliver(&mut part, 3, &exchange());
    assert_eq!((part.engine.live(), told(&mut part)), (0, (before + 1, 1)));
    assert!(!keeps_reads(&part));
}

#[test]
fn calvin_ignores_what_is_said_again() {
    ignores_reads_that_come_again(Calvin::new);
    takes_reads_once_while_live(Calvin::new);
    ignores_reads_of_a_checkpoint(Calvin::new);
}

#[test]
fn calvin_with_vll_ignores_what_is_said_again() {
    ignores_reads_that_come_again(<CalvinVll>::default);
    takes_reads_once_while_live(<CalvinVll>::default);
    ignores_reads_of_a_checkpoint(<CalvinVll>::default);
}

#[test]
fn aloha_ignores_what_is_said_again() {
    ignores_reads_that_come_again(Aloha::new);
    takes_reads_once_while_live(Aloha::new);
    ignores_reads_of_a_checkpoint(Aloha::new);
}

#[test]
fn serial_ignores_what_is_said_again() {
    ignores_reads_that_come_again(Serial::new);
    takes_reads_once_while_live(Serial::new);
    ignores_reads_of_a_checkpoint(Serial::new);
}
