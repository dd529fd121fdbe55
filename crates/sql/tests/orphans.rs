//! Sessions that insert, change and delete rows which refer to each other, alone and in blocks, in an order that a seed decides: no row
//! ever refers to one that is not there, and every engine gives the same.

mod support;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

const DEFINITIONS: &[&str] = &[
    "CREATE TABLE top (id int PRIMARY KEY)",
    "CREATE TABLE middle (id int PRIMARY KEY, u int UNIQUE, top int REFERENCES top ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE low (id int PRIMARY KEY, u int REFERENCES middle (u) ON DELETE SET NULL, top int REFERENCES top)",
    "CREATE TABLE late (id int PRIMARY KEY, m int REFERENCES middle DEFERRABLE INITIALLY DEFERRED)",
    "CREATE INDEX ON middle (top)",
    "CREATE INDEX ON low (top)",
];

/// What refers to nothing.
const ORPHANS: &[&str] = &[
    "SELECT count(*) FROM middle WHERE top NOT IN (SELECT id FROM top)",
    "SELECT count(*) FROM low WHERE top NOT IN (SELECT id FROM top)",
    "SELECT count(*) FROM low WHERE u NOT IN (SELECT u FROM middle WHERE u IS NOT NULL)",
    "SELECT count(*) FROM late WHERE m NOT IN (SELECT id FROM middle)",
];

const CONTENTS: &[&str] = &[
    "SELECT * FROM top ORDER BY id",
    "SELECT * FROM middle ORDER BY id",
    "SELECT * FROM low ORDER BY id",
    "SELECT * FROM late ORDER BY id",
];

struct Choices(u64);

impl Choices {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn statement(&mut self) -> String {
        let (a, b, c) = (self.below(6), self.below(6), self.below(6));
        match self.below(13) {
            0 | 1 => format!("INSERT INTO top VALUES ({a})"),
            2 | 3 => format!("INSERT INTO middle VALUES ({a}, {b}, {c})"),
            4 => format!("INSERT INTO low VALUES ({a}, {b}, {c})"),
            5 => format!("INSERT INTO late VALUES ({a}, {b})"),
            6 => format!("DELETE FROM top WHERE id = {a}"),
            7 => format!("UPDATE top SET id = {a} WHERE id = {b}"),
            8 => format!("DELETE FROM middle WHERE id = {a}"),
            9 => format!("UPDATE low SET u = {a}, top = {b} WHERE id = {c}"),
            10 => format!("UPDATE top SET id = {} - id", 5 + a),
            11 => format!("DELETE FROM late WHERE m >= {a}"),
            _ => format!("DELETE FROM low WHERE id = {a}"),
        }
    }
}

fn send(world: &mut World, session: &str, statement: &str) -> String {
    told(&world.send(session, Frontend::Query(statement.to_owned())))
}

/// The contents after a run, all answers before them, and how often a foreign key refused something.
fn run(engine: EngineKind, partitions: u16, seed: u64) -> (String, usize) {
    let mut world = World::new(engine, partitions);
    for definition in DEFINITIONS {
        assert!(!send(&mut world, "a", definition).contains("ERROR"), "{definition}");
    }
    let mut choices = Choices(seed);
    let mut answers = String::new();
    for _ in 0..150 {
        let session = ["a", "b", "c"][choices.below(3) as usize];
        let statement = match choices.below(6) {
            0 => "BEGIN".to_owned(),
            1 => "COMMIT".to_owned(),
            _ => choices.statement(),
        };
        answers.push_str(&send(&mut world, session, &statement));
        for orphans in ORPHANS {
            let found = send(&mut world, "observer", orphans);
            assert_eq!(found.lines().nth(1), Some("0"), "after {statement}: {orphans} (seed {seed})");
        }
    }
    let refused = answers.matches("ERROR 23503").count();
    for contents in CONTENTS {
        answers.push_str(&send(&mut world, "observer", contents));
    }
    (answers, refused)
}

#[test]
fn no_row_ever_refers_to_nothing() {
    let mut refused = 0;
    for seed in 0..12 {
        let (serial, count) = run(EngineKind::Serial, 1, seed);
        refused += count;
        assert_eq!(run(EngineKind::Calvin, 1, seed).0, serial, "seed {seed}");
        assert_eq!(run(EngineKind::CalvinVll, 3, seed).0, serial, "seed {seed}");
        assert_eq!(run(EngineKind::Aloha, 2, seed).0, serial, "seed {seed}");
    }
    assert!(refused > 50, "foreign keys were hardly tried: {refused}");
}
