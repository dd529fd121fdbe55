//! Statements whose keys depend on rows find out what they touch in few runs, however many rows of other partitions that is.

mod support;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

const ROWS: u32 = 3_000;

/// Runs of one statement at most: a scan asks for more each time, and what a statement writes is looked at by table and index.
const RUNS: u64 = 12;

fn run(world: &mut World, statement: &str) -> u64 {
    let before = world.reconnaissance();
    let answer = told(&world.send("", Frontend::Query(statement.to_owned())));
    assert!(!answer.contains("ERROR"), "{statement}: {answer}");
    world.reconnaissance() - before
}

#[test]
fn what_a_statement_reads_is_asked_for_together() {
    let mut world = World::new(EngineKind::Calvin, 3);
    let rows = format!("SELECT i, i % 10, 'x' || i FROM generate_series(1, {ROWS}) i");
    for statement in [
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child (id int PRIMARY KEY, kind int, name text UNIQUE, parent int REFERENCES parent)",
        "CREATE INDEX ON child (kind)",
        "CREATE TABLE source (id int PRIMARY KEY, kind int, name text)",
        &format!("INSERT INTO parent SELECT generate_series(1, {ROWS})"),
        &format!("INSERT INTO source {rows}"),
    ] {
        run(&mut world, statement);
    }
    for statement in [
        "INSERT INTO child SELECT id, kind, name, id FROM source",
        "UPDATE child SET name = 'y' || id WHERE kind = 3",
        "UPDATE child SET id = id + 100000 WHERE kind = 4",
        "UPDATE child SET parent = 1 WHERE kind IN (5, 6) AND id % 2 = 0",
        "INSERT INTO child SELECT id, kind, 'z' || id, id FROM source ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
        "DELETE FROM child WHERE kind = 7",
        "ALTER TABLE source ALTER COLUMN kind TYPE bigint USING kind * 2",
    ] {
        let runs = run(&mut world, statement);
        assert!(runs <= RUNS, "{statement}: {runs} runs");
    }
}
