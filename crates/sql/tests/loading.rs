//! Rows that `COPY` loads before its transaction ends: whatever becomes of that, they are the table's or are deleted, and never both.
#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use bytes::Bytes;
use ordain_db::engine::EngineKind;
use ordain_db::procedure::{decode_output, encode_arguments};
use ordain_sql::bind::forget;
use ordain_sql::catalog::{Catalog, Definition};
use ordain_sql::execute::{Inputs, Output};
use ordain_sql::plan::{Action, Plan};
use ordain_sql::procedure::{Step, Steps};
use ordain_sql::protocol::frontend::Frontend;
use ordain_sql::session::Database;
use support::{World, told};

const DAY: i64 = 24 * 3600 * 1_000_000;

/// Rows that are more than go into one transaction.
const ROWS: u64 = 60_000;

fn on_every_kind(test: impl Fn(World)) {
    test(World::new(EngineKind::Calvin, 1));
    test(World::new(EngineKind::CalvinVll, 3));
}

fn send(world: &mut World, session: &str, statement: &str) -> String {
    told(&world.send(session, Frontend::Query(statement.to_owned())))
}

fn sends(world: &mut World, session: &str, statements: &[&str]) {
    for statement in statements {
        let answer = send(world, session, statement);
        assert!(!answer.contains("ERROR"), "{statement}: {answer}");
    }
}

/// Begins to copy rows into `t`.
fn copy(world: &mut World, session: &str) {
    sends(world, session, &["COPY t FROM STDIN"]);
    for first in (0..ROWS).step_by(1000) {
        let rows: String = (first..first + 1000).map(|row| format!("{row}\t{row}\n")).collect();
        let answer = told(&world.send(session, Frontend::CopyData(Bytes::from(rows))));
        assert!(!answer.contains("ERROR"), "{answer}");
    }
}

fn done(world: &mut World, session: &str) -> String {
    told(&world.send(session, Frontend::CopyDone))
}

/// A table into which rows can be copied, with another one.
fn define(world: &mut World) {
    sends(world, "a", &["CREATE TABLE t (id int PRIMARY KEY, u int UNIQUE)", "CREATE TABLE o (id int)"]);
    // Of the storages that the table began with.
    assert_eq!(clean(world), 0);
}

fn call(database: &impl Database, plan: Plan) -> Output {
    let inputs = Inputs { now: database.now(), seed: database.random(), ..Inputs::default() };
    let steps = Steps::from(Step { plan: plan.into(), inputs, shown: None });
    decode_output(&database.call(encode_arguments(&steps).unwrap()).unwrap()).unwrap()
}

/// Does what is to be done by and by; how many rows were deleted.
fn clean(world: &World) -> u64 {
    let mut deleted = 0;
    let now = world.database().now();
    for loading in world.database().catalog(None).unwrap().overdue(now) {
        call(&world.database(), loading.end(&Catalog::new()));
    }
    let database = world.database();
    let catalog = database.catalog(None).unwrap();
    for (_, _, definition) in catalog.iter() {
        let Definition::Garbage { storage, replicated } = *definition else { continue };
        loop {
            let rows = 10_000;
            let written = call(&database, Plan::of(Action::Clear { storage, replicated, rows })).written;
            deleted += written;
            if written < u64::from(rows) {
                break;
            }
        }
        call(&database, forget(&catalog, storage));
    }
    deleted
}

/// Whether the database says of rows that they are being loaded.
fn is_loading(world: &World) -> bool {
    let catalog = world.database().catalog(None).unwrap();
    catalog.iter().any(|(_, _, definition)| matches!(definition, Definition::Loading(_)))
}

/// That `t` has so many rows and its index as many entries, and that there is nothing to be cleaned up.
fn assert_rows(world: &mut World, rows: u64) {
    for of_order in ["id", "u"] {
        let query = format!("SELECT count(*) FROM (SELECT {of_order} FROM t ORDER BY {of_order}) AS s");
        let answer = send(world, "observer", &query);
        assert_eq!(answer.lines().nth(1), Some(rows.to_string().as_str()), "{answer}");
    }
    assert_eq!(clean(world), 0);
    assert!(!is_loading(world));
}

#[test]
fn what_is_committed_is_no_garbage() {
    on_every_kind(|mut world| {
        define(&mut world);
        copy(&mut world, "a");
        assert!(is_loading(&world));
        assert_eq!(done(&mut world, "a"), format!("COPY {ROWS}\n"));
        world.wait(2 * DAY);
        assert_rows(&mut world, ROWS);
    });
}

#[test]
fn rows_of_a_process_that_has_ended_are_deleted_after_a_day() {
    on_every_kind(|mut world| {
        define(&mut world);
        copy(&mut world, "a");
        world.kill("a");
        world.wait(DAY / 2);
        assert_eq!(clean(&world), 0);
        world.wait(DAY / 2);
        // Each with its entry of the unique index, but for some that had not been written yet.
        let deleted = clean(&world);
        assert!((ROWS..=2 * ROWS).contains(&deleted), "{deleted}");
        assert_rows(&mut world, 0);
    });
}

#[test]
fn a_block_that_waits_for_too_long_cannot_commit() {
    on_every_kind(|mut world| {
        define(&mut world);
        sends(&mut world, "a", &["BEGIN", "INSERT INTO o VALUES (1)"]);
        copy(&mut world, "a");
        assert!(done(&mut world, "a").starts_with("COPY"));
        world.wait(DAY);
        assert_eq!(clean(&world), 2 * ROWS);
        let answer = send(&mut world, "a", "COMMIT");
        assert!(answer.contains("ERROR 40001"), "{answer}");
        assert_rows(&mut world, 0);
        assert!(send(&mut world, "a", "SELECT count(*) FROM o").contains("\n0\n"));
    });
}

#[test]
fn what_is_rolled_back_is_deleted() {
    on_every_kind(|mut world| {
        define(&mut world);
        let ends: [&[&str]; 3] = [
            &["ROLLBACK"],
            &["ROLLBACK TO s", "COMMIT"],
            &["ROLLBACK TO s", "INSERT INTO o VALUES (1)", "COMMIT"],
        ];
        for end in ends {
            sends(&mut world, "a", &["BEGIN", "SAVEPOINT s", "TRUNCATE t"]);
            copy(&mut world, "a");
            assert!(done(&mut world, "a").starts_with("COPY"));
            assert_eq!(clean(&world), 0);
            sends(&mut world, "a", end);
            assert_eq!(clean(&world), 2 * ROWS, "{end:?}");
            assert_rows(&mut world, 0);
        }
    });
}

#[test]
fn what_has_failed_is_deleted_and_what_was_loaded_before_it_too() {
    on_every_kind(|mut world| {
        define(&mut world);
        sends(&mut world, "a", &["BEGIN", "TRUNCATE t"]);
        copy(&mut world, "a");
        assert!(done(&mut world, "a").starts_with("COPY"));
        sends(&mut world, "a", &["CREATE TABLE p (id int PRIMARY KEY)", "COPY p FROM STDIN"]);
        world.send("a", Frontend::CopyData(Bytes::from("1\n1\n")));
        assert!(done(&mut world, "a").contains("ERROR 23505"));
        sends(&mut world, "a", &["ROLLBACK"]);
        assert_eq!(clean(&world), 2 * ROWS);
        assert_rows(&mut world, 0);
    });
}

#[test]
fn a_commit_of_which_nobody_is_told_loses_nothing() {
    on_every_kind(|mut world| {
        define(&mut world);
        sends(&mut world, "a", &["BEGIN", "TRUNCATE t"]);
        copy(&mut world, "a");
        assert!(done(&mut world, "a").starts_with("COPY"));
        world.loses_answers(true);
        let answer = send(&mut world, "a", "COMMIT");
        assert!(answer.contains("nobody knows"), "{answer}");
        world.loses_answers(false);
        assert_rows(&mut world, ROWS);
    });
}
