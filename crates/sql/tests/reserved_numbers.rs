//! Numbers of sequences, which statements of blocks draw many at a time: by seeds against a model in which each is drawn by itself.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[expect(dead_code, reason = "its messages are for the tests of the protocol")]
mod random;
mod support;

use std::collections::BTreeMap;

use ordain_db::engine::EngineKind;
use random::Generator;
use support::World;

/// The numbers in rows of one.
fn numbers(answer: &str) -> Vec<i64> {
    answer.lines().filter_map(|line| line.parse().ok()).collect()
}

#[test]
fn a_statement_of_a_block_draws_many_numbers_in_few_calls() {
    let mut world = World::new(EngineKind::Calvin, 1);
    world.must("a", "CREATE TABLE t (id serial PRIMARY KEY, n int)");
    world.must("a", "BEGIN");
    world.called();
    world.must("a", "INSERT INTO t (n) SELECT i FROM generate_series(1, 4000) i");
    // One, as many as before each time, until there are 4096, and those back that are too many.
    assert_eq!(world.called().len(), 15);
    world.must("a", "INSERT INTO t (n) VALUES (4001)");
    assert_eq!(world.called().len(), 1);
    world.must("a", "COMMIT");
    assert_eq!(numbers(&world.must("b", "INSERT INTO t (n) VALUES (0) RETURNING id")), [4002]);
    let whole = "SELECT 1 FROM t HAVING count(DISTINCT id) = 4002 AND max(id) = 4002";
    assert_eq!(numbers(&world.must("b", whole)), [1]);
}

#[test]
fn numbers_that_others_have_drawn_behind_are_not_given_back() {
    let mut world = World::new(EngineKind::Calvin, 1);
    world.must("a", "CREATE SEQUENCE s");
    world.called();
    assert_eq!(numbers(&world.must("b", "SELECT nextval('s')")), [1]);
    let draws = world.called().pop().unwrap();
    world.must("a", "BEGIN");
    // Others draw before each of its four calls: also between the third, which reserves 7 and 8, and the last, which would give 8 back.
    world.meddle(4, draws);
    let three = "SELECT nextval('s') FROM generate_series(1, 3)";
    assert_eq!(numbers(&world.must("a", three)), [3, 5, 7]);
    assert_eq!(numbers(&world.must("b", "SELECT nextval('s')")), [10]);
    world.must("a", "COMMIT");
}

#[test]
fn numbers_that_cannot_be_given_back_are_lost() {
    let mut world = World::new(EngineKind::Calvin, 1);
    world.must("a", "CREATE SEQUENCE s");
    world.must("a", "BEGIN");
    world.calls_left(Some(3));
    let three = "SELECT nextval('s') FROM generate_series(1, 3)";
    assert_eq!(numbers(&world.must("a", three)), [1, 2, 3]);
    world.calls_left(None);
    assert_eq!(numbers(&world.must("b", "SELECT nextval('s')")), [5]);
    world.must("a", "COMMIT");
}

/// A sequence as it is described.
#[derive(Clone)]
struct Model {
    increment: i64,
    range: (i64, i64),
    cycles: bool,
    next: Option<i64>,
}

impl Model {
    /// The sequences of the test: one of all numbers, one that descends, one that cycles, and one with an end.
    fn all() -> BTreeMap<&'static str, Model> {
        let of = |increment, range, cycles, first| Model { increment, range, cycles, next: Some(first) };
        BTreeMap::from([
            ("s", of(1, (1, i64::MAX), false, 1)),
            ("d", of(-3, (-2000, 10), false, 10)),
            ("c", of(2, (1, 9), true, 1)),
            ("e", of(1, (1, 60), false, 1)),
        ])
    }

    fn created(&self, name: &str) -> String {
        let Model { increment, range: (least, greatest), cycles, next } = self;
        let (start, cycle) = (next.unwrap(), if *cycles { "CYCLE" } else { "NO CYCLE" });
        format!(
            "CREATE SEQUENCE {name} INCREMENT {increment} MINVALUE {least} MAXVALUE {greatest} START {start} {cycle}"
        )
    }

    /// Draws a number; `None` at the end.
    fn draw(&mut self) -> Option<i64> {
        let drawn = self.next?;
        self.set(drawn);
        Some(drawn)
    }

    /// Goes on after a number.
    fn set(&mut self, last: i64) {
        let (least, greatest) = self.range;
        let first = if self.increment > 0 { least } else { greatest };
        let next = last + self.increment;
        let fits = (least..=greatest).contains(&next);
        self.next = if fits { Some(next) } else { self.cycles.then_some(first) };
    }
}

/// What a statement does for each of its rows.
#[derive(Clone, Copy)]
enum Form {
    Draws,
    /// Fails in a row.
    Fails(i64),
    /// Sets the sequence in a row.
    Sets(i64, i64),
}

impl Form {
    fn text(self, name: &str, rows: i64) -> String {
        let value = match self {
            Form::Draws => format!("nextval('{name}')"),
            Form::Fails(row) => format!("nextval('{name}') / (g - {row}) * 0 + 1"),
            Form::Sets(row, value) => {
                format!("CASE g WHEN {row} THEN setval('{name}', {value}) ELSE nextval('{name}') END")
            }
        };
        format!("SELECT {value} FROM generate_series(1, {rows}) g")
    }

    /// The numbers that it gives, or none if it fails.
    fn run(self, model: &mut Model, rows: i64) -> Option<Vec<i64>> {
        let mut given = Vec::new();
        for row in 1..=rows {
            match self {
                Form::Sets(at, value) if at == row => {
                    model.set(value);
                    given.push(value);
                }
                _ => given.push(model.draw()?),
            }
            if matches!(self, Form::Fails(at) if at == row) {
                return None;
            }
        }
        Some(if matches!(self, Form::Fails(_)) { vec![1; given.len()] } else { given })
    }
}

fn run(engine: EngineKind, partitions: u16, seed: u64) {
    let mut world = World::new(engine, partitions);
    let mut generator = Generator(seed);
    let mut models = Model::all();
    for (name, model) in &models {
        world.must("a", &model.created(name));
    }
    let mut in_block = BTreeMap::new();
    let (mut drawn, mut failed) = (0, 0);
    for _ in 0..400 {
        let session = generator.pick(&["a", "b", "c"]);
        let block: &mut bool = in_block.entry(session.to_owned()).or_insert(false);
        if generator.one_in(3) {
            world.must(session, if *block { generator.pick(&["COMMIT", "ROLLBACK"]) } else { "BEGIN" });
            *block = !*block;
        }
        let name = generator.pick(&["s", "s", "d", "c", "c", "e"]);
        let model = models.get_mut(name).unwrap();
        let most = if generator.one_in(4) { 40 } else { 9 };
        let rows = 1 + generator.below(most) as i64;
        let (row, (least, greatest)) = (1 + generator.below(9) as i64, model.range);
        let value = (least + generator.below(60) as i64).min(greatest);
        let form = match generator.below(5) {
            0 => Form::Fails(row),
            1 if name != "s" => Form::Sets(row, value),
            _ => Form::Draws,
        };
        let before = model.clone();
        let answer = world.ask(session, &form.text(name, rows));
        match form.run(model, rows) {
            Some(given) => {
                assert_eq!(numbers(&answer), given, "{}: {answer}", form.text(name, rows));
                let current = format!("SELECT currval('{name}')");
                if matches!(form, Form::Draws) {
                    assert_eq!(numbers(&world.must(session, &current)).last(), given.last());
                }
                drawn += given.len();
            }
            None => {
                assert!(answer.contains("ERROR"), "{}: {answer}", form.text(name, rows));
                failed += 1;
                if *block {
                    world.must(session, "ROLLBACK");
                    *block = false;
                } else {
                    // Without a block all of it is one transaction.
                    *model = before;
                }
                if model.next.is_none() {
                    world.must(session, &format!("SELECT setval('{name}', {least})"));
                    model.set(least);
                }
            }
        }
    }
    assert!(drawn > 1000 && failed > 30, "{drawn} numbers were drawn, and {failed} statements failed");
}

#[test]
fn numbers_are_those_that_are_drawn_one_by_one() {
    for (engine, partitions, seed) in [
        (EngineKind::Calvin, 1, 1),
        (EngineKind::Aloha, 2, 2),
        (EngineKind::Serial, 1, 3),
        (EngineKind::CalvinVll, 3, 4),
    ] {
        run(engine, partitions, seed);
    }
}
