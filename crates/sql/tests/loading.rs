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
    copy_where(world, session, |row| row);
}

/// The same with other values of `u`.
fn copy_where(world: &mut World, session: &str, other: impl Fn(u64) -> u64) {
    sends(world, session, &["COPY t FROM STDIN"]);
    for first in (0..ROWS).step_by(1000) {
        let rows: String = (first..first + 1000).map(|row| format!("{row}\t{}\n", other(row))).collect();
        let answer = told(&world.send(session, Frontend::CopyData(Bytes::from(rows))));
        assert!(!answer.contains("ERROR"), "{answer}");
    }
}

/// Copies a few rows of a table.
fn copy_few(world: &mut World, session: &str, table: &str, rows: &str) -> String {
    sends(world, session, &[&format!("COPY {table} FROM STDIN")]);
    world.send(session, Frontend::CopyData(Bytes::from(rows.to_owned())));
    done(world, session).lines().next().unwrap_or_default().to_owned()
}

fn asked(world: &mut World, query: &str) -> String {
    let answer = send(world, "observer", query);
    answer.lines().skip(1).filter(|line| !line.starts_with("SELECT")).collect::<Vec<_>>().join(", ")
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
    let inputs = Inputs { now: database.now(), seed: database.unique(), ..Inputs::default() };
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
            let written =
                call(&database, Plan::of(Action::Clear { storage, replicated, after: None, rows })).written;
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

#[test]
fn what_is_loaded_is_unique_where_it_must_be() {
    on_every_kind(|mut world| {
        define(&mut world);
        copy_where(&mut world, "a", |row| row % (ROWS - 1));
        let answer = done(&mut world, "a");
        assert!(answer.contains("ERROR 23505") && answer.contains("t_u_key"), "{answer}");
        clean(&world);
        assert_rows(&mut world, 0);
        // Where the block has made the table, few are loaded, too.
        for make in [
            &["BEGIN", "CREATE TABLE m (k int PRIMARY KEY, v int UNIQUE)"][..],
            &["BEGIN", "CREATE TABLE m (k int PRIMARY KEY, v int)", "CREATE UNIQUE INDEX mv ON m (v)"],
            &["BEGIN", "CREATE TABLE m (k int PRIMARY KEY, v int)", "ALTER TABLE m ADD UNIQUE (v)"],
        ] {
            sends(&mut world, "a", make);
            let answer = copy_few(&mut world, "a", "m", "1\t5\n2\t5\n");
            assert!(answer.contains("ERROR 23505"), "{make:?}: {answer}");
            sends(&mut world, "a", &["ROLLBACK"]);
            sends(&mut world, "a", make);
            assert_eq!(copy_few(&mut world, "a", "m", "1\t5\n2\t\\N\n3\t\\N\n"), "COPY 3", "{make:?}");
            sends(&mut world, "a", &["COMMIT"]);
            assert_eq!(asked(&mut world, "SELECT k FROM m WHERE v = 5"), "1");
            sends(&mut world, "a", &["DROP TABLE m"]);
        }
    });
}

#[test]
fn what_was_copied_after_a_savepoint_ends_with_it() {
    on_every_kind(|mut world| {
        define(&mut world);
        for make in ["CREATE TABLE m (k int PRIMARY KEY)", "CREATE TEMPORARY TABLE m (k int PRIMARY KEY)"] {
            sends(&mut world, "a", &["BEGIN", make]);
            assert_eq!(copy_few(&mut world, "a", "m", "1\n2\n"), "COPY 2");
            sends(&mut world, "a", &["SAVEPOINT s"]);
            assert_eq!(copy_few(&mut world, "a", "m", "3\n"), "COPY 1");
            sends(&mut world, "a", &["ROLLBACK TO s"]);
            let answer = send(&mut world, "a", "SELECT count(*) FROM m");
            assert!(answer.contains("\n2\n"), "{answer}");
            assert!(copy_few(&mut world, "a", "m", "4\n2\n").contains("ERROR 23505"));
            sends(&mut world, "a", &["ROLLBACK TO s"]);
            assert_eq!(copy_few(&mut world, "a", "m", "4\n"), "COPY 1");
            sends(&mut world, "a", &["COMMIT"]);
            let answer = send(&mut world, "a", "SELECT k FROM m ORDER BY k");
            assert_eq!(answer.lines().skip(1).collect::<Vec<_>>().join(" "), "1 2 4 SELECT 3");
            sends(&mut world, "a", &["DROP TABLE m"]);
        }
        // Many rows.
        sends(&mut world, "a", &["BEGIN", "TRUNCATE t", "SAVEPOINT s"]);
        copy_where(&mut world, "a", |row| row % (ROWS - 1));
        assert!(done(&mut world, "a").contains("ERROR 23505"));
        sends(&mut world, "a", &["ROLLBACK TO s"]);
        copy(&mut world, "a");
        assert!(done(&mut world, "a").starts_with(&format!("COPY {ROWS}\n")));
        sends(&mut world, "a", &["COMMIT"]);
        clean(&world);
        assert_rows(&mut world, ROWS);
    });
}

#[test]
fn statements_before_it_do_not_see_what_is_copied() {
    on_every_kind(|mut world| {
        define(&mut world);
        let rows =
            |range: std::ops::Range<u32>| range.map(|row| format!("{row}\t{row}\n")).collect::<String>();
        for make in ["CREATE TABLE m (k int PRIMARY KEY, v int)", "TRUNCATE m"] {
            sends(&mut world, "a", &["BEGIN", make, "INSERT INTO o SELECT count(*) FROM m"]);
            assert_eq!(copy_few(&mut world, "a", "m", &rows(0..300)), "COPY 300");
            sends(&mut world, "a", &["INSERT INTO o SELECT count(*) FROM m"]);
            sends(&mut world, "a", &["UPDATE m SET v = -1 WHERE k = (SELECT max(k) FROM m)"]);
            assert_eq!(copy_few(&mut world, "a", "m", &rows(300..400)), "COPY 100");
            sends(&mut world, "a", &["DELETE FROM m WHERE k < 10"]);
            assert_eq!(copy_few(&mut world, "a", "m", &rows(0..5)), "COPY 5");
            sends(&mut world, "a", &["COMMIT"]);
            assert_eq!(asked(&mut world, "SELECT id FROM o ORDER BY id"), "0, 300", "{make}");
            assert_eq!(asked(&mut world, "SELECT k FROM m WHERE v = -1"), "299");
            assert_eq!(asked(&mut world, "SELECT count(*) FROM m"), "395");
            sends(&mut world, "a", &["DELETE FROM o"]);
        }
        // A cascade of a statement before it takes nothing of it.
        sends(&mut world, "a", &["CREATE TABLE p (i int PRIMARY KEY)", "INSERT INTO p VALUES (3)", "BEGIN"]);
        sends(&mut world, "a", &["CREATE TABLE c (k int PRIMARY KEY, i int REFERENCES p ON DELETE CASCADE)"]);
        sends(&mut world, "a", &["DELETE FROM p", "INSERT INTO p VALUES (3)"]);
        assert_eq!(copy_few(&mut world, "a", "c", "1\t3\n2\t3\n"), "COPY 2");
        // More can follow where nothing is in between.
        assert_eq!(copy_few(&mut world, "a", "c", "3\t3\n"), "COPY 1");
        assert!(copy_few(&mut world, "a", "c", "4\t4\n").contains("ERROR 23503"));
        sends(&mut world, "a", &["ROLLBACK", "BEGIN"]);
        sends(&mut world, "a", &["CREATE TABLE c (k int, i int REFERENCES p INITIALLY DEFERRED)"]);
        assert_eq!(copy_few(&mut world, "a", "c", "1\t3\n2\t4\n"), "COPY 2");
        sends(&mut world, "a", &["INSERT INTO p VALUES (4)", "COMMIT"]);
        assert_eq!(asked(&mut world, "SELECT count(*) FROM c"), "2");
    });
}
