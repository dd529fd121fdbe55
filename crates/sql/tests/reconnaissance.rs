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

/// What is read for each row of another table, too, a statement in a block included.
#[test]
fn what_joins_and_subqueries_read_is_asked_for_together() {
    let mut world = World::new(EngineKind::Calvin, 3);
    for statement in [
        "CREATE TABLE origin (id int PRIMARY KEY, middle int)",
        "CREATE TABLE middle (id int PRIMARY KEY, name text)",
        "CREATE TABLE target (id int PRIMARY KEY, name text, kind int)",
        "CREATE INDEX ON target (name)",
        "CREATE TABLE written (id int PRIMARY KEY, n bigint)",
        "INSERT INTO written VALUES (1, 0)",
        "INSERT INTO origin SELECT i, i * 7 FROM generate_series(1, 900) i",
        "INSERT INTO middle SELECT i, 'n' || i % 1000 FROM generate_series(1, 9000) i",
        "INSERT INTO target SELECT i, 'n' || i % 1000, i FROM generate_series(1, 5000) i",
    ] {
        run(&mut world, statement);
    }
    let by_key = "SELECT count(*) FROM origin o JOIN middle m ON m.id = o.middle";
    let by_index =
        "SELECT count(*) FROM origin o JOIN middle m ON m.id = o.middle JOIN target t ON t.name = m.name";
    let correlated = "SELECT count(*) FROM origin o WHERE EXISTS (SELECT FROM middle m WHERE m.id = o.middle AND name <> '')";
    for (query, rows) in [(by_key, 900), (by_index, 4500), (correlated, 900)] {
        let update = format!("UPDATE written SET n = ({query}) WHERE id = 1");
        for statement in [update.clone(), format!("BEGIN; {query}; {update}; {query}; COMMIT")] {
            let runs = run(&mut world, &statement);
            assert!(runs <= RUNS, "{statement}: {runs} runs");
            let counted = world.send("", Frontend::Query("SELECT n FROM written".to_owned()));
            assert!(told(&counted).contains(&rows.to_string()), "{statement}: {}", told(&counted));
        }
    }
}
