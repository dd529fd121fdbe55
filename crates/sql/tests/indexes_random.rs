//! Statements from seeds over a table with partial indexes and indexes on expressions, and over one with the same rows and none: what is unique
//! there is asked of the rows instead. Both must have the same rows, and all queries must give the same of both.

#[expect(dead_code, reason = "its messages are for the tests of the protocol")]
mod random;
mod support;

use ordain_db::engine::EngineKind;
use random::Generator;
use support::World;

const COLUMNS: &str = "(id int PRIMARY KEY, e text, a int, b int, d bool)";

/// Indexes of the one table.
const INDEXES: [&str; 6] = [
    "CREATE UNIQUE INDEX t_e ON t (lower(e)) WHERE d",
    "CREATE INDEX t_sum ON t ((a + b) DESC, id)",
    "CREATE INDEX t_a ON t (a) WHERE b > 3",
    "CREATE INDEX t_b ON t (a, b) WHERE b IS NOT NULL",
    "CREATE INDEX t_abs ON t (abs(a), b) INCLUDE (e) WHERE a < 5 AND NOT d",
    "CREATE INDEX t_upper ON t (upper(e), (a % 3)) WHERE d OR b = 4",
];

/// What is unique in the other one.
const TWICE: &str = "SELECT lower(e) FROM m WHERE d AND e IS NOT NULL GROUP BY 1 HAVING count(*) > 1";

const CONDITIONS: [&str; 47] = [
    "a + b = 5",
    "a + b BETWEEN 2 AND 6",
    "a + b > 4",
    "a + b IN (1, 3, 8)",
    "a + b IS NULL",
    "b + a = 5",
    "abs(a) = 2",
    "abs(a) IN (1, 3)",
    "abs(a) >= 3",
    "b > 3",
    "3 < b",
    "b >= 3",
    "b IS NOT NULL",
    "b IS NULL",
    "NOT (b IS NULL)",
    "b = 4",
    "b <> 4",
    "b IN (2, 4)",
    "b IS NOT DISTINCT FROM 4",
    "b IS DISTINCT FROM 4",
    "(b = 4) IS NOT FALSE",
    "NOT ((b = 4) IS TRUE)",
    "NOT (b = 4)",
    "coalesce(b, 5) > 3",
    "d IS NULL",
    "d IS NOT NULL",
    "d",
    "d = true",
    "d IS TRUE",
    "NOT d",
    "(d IS TRUE) IS FALSE",
    "(d IS TRUE) = false",
    "(d IS FALSE) = false",
    "((d = true) IS TRUE) = false",
    "(d OR b = 4)",
    "(b = 4 OR d)",
    "(b > 3 OR d)",
    "(b IS NOT NULL OR a < 2)",
    "(d OR e IS NULL)",
    "a < 5",
    "a = 3",
    "a IN (1, 2, 3)",
    "lower(e) = 'x1'",
    "lower(e) LIKE 'x%'",
    "lower(e) > 'x2'",
    "upper(e) = 'X2' AND a % 3 = 1",
    "(a = 3 AND b > 3 OR a = 2 AND b > 3)",
];

fn conditions(generator: &mut Generator) -> String {
    let all: Vec<&str> = (0..1 + generator.below(4)).map(|_| generator.pick(&CONDITIONS)).collect();
    all.join(" AND ")
}

/// A statement in which `{}` is the table.
fn query(generator: &mut Generator) -> String {
    let form = generator.pick(&[
        "SELECT id FROM {} WHERE [] ORDER BY id",
        "SELECT id, e FROM {} WHERE [] ORDER BY id",
        "SELECT a, id FROM {} WHERE [] ORDER BY a, id LIMIT 3",
        "SELECT b, id FROM {} WHERE [] ORDER BY b DESC NULLS LAST, id DESC LIMIT 3",
        "SELECT max(b), min(b) FROM {} WHERE []",
        "SELECT max(a + b), min(a + b) FROM {}",
        "SELECT min(lower(e)) FROM {} WHERE d",
        "SELECT a + b, id FROM {} ORDER BY a + b, id LIMIT 4",
        "SELECT id FROM {} WHERE [] ORDER BY a + b DESC, id DESC LIMIT 4",
        "SELECT id, abs(a) AS x FROM {} WHERE a < 5 AND NOT d ORDER BY x, b, id LIMIT 4",
        "SELECT b FROM {} WHERE abs(a) = 2 AND a < 5 AND NOT d ORDER BY b DESC NULLS FIRST LIMIT 2",
        "SELECT max(a) FROM {} WHERE []",
        "SELECT count(*), sum(a) FROM {} WHERE []",
        "SELECT x.id, y.id FROM {} y JOIN (SELECT * FROM {} WHERE []) x ON x.a = y.b AND y.b > 3 ORDER BY 1, 2",
        "SELECT x.id, y.id FROM {} x LEFT JOIN {} y ON y.a = x.b AND y.b > 3 ORDER BY 1, 2",
        "SELECT x.id, y.id FROM {} x LEFT JOIN {} y ON y.a + y.b = x.b ORDER BY 1, 2",
        "SELECT x.id, y.id FROM {} x JOIN {} y ON lower(y.e) = x.e AND y.d ORDER BY 1, 2",
        "SELECT id, (SELECT count(*) FROM {} y WHERE y.a = x.b AND []) FROM {} x ORDER BY id",
    ]);
    form.replace("[]", &conditions(generator))
}

fn value(generator: &mut Generator) -> String {
    let number = generator.below(9);
    if number == 8 { "NULL".to_owned() } else { (number as i32 - 2).to_string() }
}

fn row(generator: &mut Generator) -> [String; 5] {
    let id = generator.below(40).to_string();
    let e = generator.pick(&["'x1'", "'X1'", "'x2'", "'X2'", "'x3'", "'Y'", "'y2'", "NULL"]);
    let d = generator.pick(&["true", "false", "NULL"]);
    [id, e.to_owned(), value(generator), value(generator), d.to_owned()]
}

/// A change of the table with indexes, and of the other one: the first if a query gives rows, else the second.
struct Change {
    indexed: String,
    asked: String,
    others: [String; 2],
}

fn change(generator: &mut Generator) -> Change {
    let both = |text: String| Change {
        indexed: text.replace("{}", "t"),
        asked: "SELECT 1".to_owned(),
        others: [text.replace("{}", "m"), String::new()],
    };
    let [id, e, a, b, d] = row(generator);
    let values = format!("({id}, {e}, {a}, {b}, {d})");
    let is_there = format!("{d} AND d AND lower(e) = lower({e})");
    let upsert = |target: &str, there: String, instead: &str| Change {
        indexed: format!("INSERT INTO t VALUES {values} ON CONFLICT {target}"),
        asked: format!("SELECT 1 FROM m WHERE {there}"),
        others: [instead.to_owned(), format!("INSERT INTO m VALUES {values}")],
    };
    match generator.below(9) {
        0 | 1 => {
            let other = row(generator).join(", ");
            both(format!("INSERT INTO {{}} VALUES {values}, ({other})"))
        }
        2 => both(format!("INSERT INTO {{}} VALUES {values}")),
        3 => upsert("(lower(e)) WHERE d DO NOTHING", is_there, "SELECT 1"),
        4 => upsert("DO NOTHING", format!("{is_there} OR id = {id}"), "SELECT 1"),
        5 => {
            let set = format!("UPDATE m SET a = {a}, d = {b} > 3 WHERE {is_there}");
            let target = "(lower(e)) WHERE d DO UPDATE SET a = excluded.a, d = excluded.b > 3";
            upsert(target, is_there, &set)
        }
        6 => both(format!(
            "DELETE FROM {{}} WHERE {} AND id % 3 = {}",
            conditions(generator),
            generator.below(3)
        )),
        7 => both(format!("UPDATE {{}} SET d = {d}, b = {b} WHERE {}", conditions(generator))),
        _ => {
            let to = generator.pick(&[
                "a = b, b = a",
                "e = upper(e)",
                "e = e || '1', d = true",
                "a = a + 1",
                "id = id + 40 * (id % 2)",
            ]);
            both(format!("UPDATE {{}} SET {to} WHERE {}", conditions(generator)))
        }
    }
}

struct Run {
    world: World,
}

impl Run {
    fn ask(&mut self, text: &str) -> String {
        self.world.ask("a", text)
    }

    fn must(&mut self, text: &str) -> String {
        self.world.must("a", text)
    }

    /// Does a change to the other table, if the rows that it leaves are as they must be; whether it was done.
    fn try_other(&mut self, Change { asked, others, .. }: &Change) -> bool {
        let other = &others[usize::from(self.must(asked).contains("SELECT 0"))];
        self.must("BEGIN");
        let is_done = !self.ask(other).contains("ERROR") && self.ask(TWICE).contains("SELECT 0");
        self.must(if is_done { "COMMIT" } else { "ROLLBACK" });
        is_done
    }

    fn compare(&mut self, query: &str) {
        let [one, other] = ["t", "m"].map(|table| self.must(&query.replace("{}", table)));
        assert_eq!(one, other, "{query}\n{}", self.ask(&format!("EXPLAIN {}", query.replace("{}", "t"))));
    }
}

fn run(engine: EngineKind, partitions: u16, seed: u64) -> usize {
    let mut run = Run { world: World::new(engine, partitions) };
    let mut generator = Generator(seed);
    for table in ["t", "m"] {
        run.must(&format!("CREATE TABLE {table} {COLUMNS}"));
    }
    INDEXES[..3].iter().for_each(|index| drop(run.must(index)));
    let (mut found, mut changed, mut refused) = (0, 0, 0);
    for step in 0..160 {
        // The others are filled from rows, and one of them goes and comes again.
        if let Some(index) =
            INDEXES.get(3..).and_then(|later| later.get(step / 30)).filter(|_| step % 30 == 20)
        {
            run.must(index);
        }
        if step % 70 == 69 {
            run.must("DROP INDEX t_sum");
            run.must(INDEXES[1]);
        }
        let (undone, change) = (change(&mut generator), change(&mut generator));
        let in_block = generator.below(4) == 0;
        if in_block {
            // What is taken back leaves nothing.
            run.must("BEGIN");
            run.must("SAVEPOINT s");
            run.ask(&undone.indexed);
            run.must("ROLLBACK TO s");
        }
        let is_done = !run.ask(&change.indexed).contains("ERROR");
        if in_block {
            run.must(if is_done { "COMMIT" } else { "ROLLBACK" });
        }
        assert_eq!(is_done, run.try_other(&change), "{}", change.indexed);
        changed += usize::from(is_done);
        refused += usize::from(!is_done);
        run.compare("SELECT * FROM {} ORDER BY id");
        for _ in 0..4 {
            let query = query(&mut generator);
            run.compare(&query);
            found +=
                usize::from(run.ask(&format!("EXPLAIN {}", query.replace("{}", "t"))).contains("by index"));
        }
    }
    assert!(changed > 60 && refused > 10, "{changed} changes were made and {refused} were not");
    found
}

#[test]
fn indexes_give_the_rows_that_there_are() {
    for (engine, partitions, seed) in [
        (EngineKind::Calvin, 1, 1),
        (EngineKind::Aloha, 2, 2),
        (EngineKind::Serial, 1, 3),
        (EngineKind::CalvinVll, 3, 4),
    ] {
        let found = run(engine, partitions, seed);
        assert!(found > 200, "only {found} queries read an index");
    }
}
