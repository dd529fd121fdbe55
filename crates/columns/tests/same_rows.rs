//! Queries from seeds, each run by rows and over columns: both must give the same.

#[expect(dead_code, reason = "its messages are for the tests of the protocol")]
#[path = "../../sql/tests/random/mod.rs"]
mod random;
#[path = "../../sql/tests/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ordain_columns::Columns;
use ordain_db::engine::EngineKind;
use ordain_sql::execute::Row;
use ordain_sql::execute::columns::{Leaf, Next, QueryEngine, Region, Surroundings, Trouble};
use ordain_sql::plan::Node;
use ordain_sql::types::Datum;
use random::Generator;
use support::World;

/// An engine that counts the regions that came to their end.
#[derive(Debug, Default)]
struct Counting {
    columns: Columns,
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

struct Counted<'p> {
    region: Box<dyn Region<'p> + 'p>,
    has_begun: bool,
    begun: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

impl QueryEngine for Counting {
    fn region<'p>(
        &self,
        query: &'p Node,
        surroundings: Surroundings<'p>,
    ) -> Option<Box<dyn Region<'p> + 'p>> {
        let region = self.columns.region(query, surroundings)?;
        let (begun, ended) = (Arc::clone(&self.begun), Arc::clone(&self.ended));
        Some(Box::new(Counted { region, has_begun: false, begun, ended }))
    }
}

impl<'p> Region<'p> for Counted<'p> {
    fn leaves(&self) -> &[Leaf<'p>] {
        self.region.leaves()
    }

    fn go_on(&mut self) -> Result<Next, Trouble> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begun.fetch_add(1, Ordering::Relaxed);
        }
        let next = self.region.go_on();
        assert!(next.is_ok(), "{next:?}");
        if matches!(next, Ok(Next::End)) {
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
        next
    }

    fn gather(&mut self, leaf: usize, rows: usize) -> Result<Next, Trouble> {
        let next = self.region.gather(leaf, rows);
        assert!(next.is_ok(), "{next:?}");
        next
    }

    fn gathered(&self, leaf: usize) -> usize {
        self.region.gathered(leaf)
    }

    fn take_gathered(&mut self, leaf: usize) -> Result<Vec<Row>, Trouble> {
        self.region.take_gathered(leaf)
    }

    fn push(&mut self, leaf: usize, row: &[Datum]) -> Result<bool, Trouble> {
        self.region.push(leaf, row)
    }

    fn clear(&mut self, leaf: usize) {
        self.region.clear(leaf);
    }

    fn end(&mut self, leaf: usize) -> Result<(), Trouble> {
        self.region.end(leaf)
    }

    fn held(&self) -> usize {
        self.region.held()
    }

    fn given(&self) -> Vec<(usize, u64)> {
        self.region.given()
    }
}

const TABLES: [&str; 8] = [
    "CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, c text, d numeric(10,2), e date, g timestamp, h boolean, u uuid, f float8, \
     j numeric, v varchar(20), y bytea, z time)",
    "CREATE TABLE s (id int PRIMARY KEY, a int, c text, d numeric(12,4), b bigint, e date)",
    "CREATE TABLE r (w int, id int, a int, c text, d numeric(10,2), b bigint, e date, PRIMARY KEY (w, id))",
    "CREATE TABLE p (a bigint, c text, b bigint, e date, d numeric(10,2))",
    "INSERT INTO t SELECT n, CASE WHEN n % 7 <> 0 THEN n * 7919 % 503 END, CASE WHEN n % 11 <> 0 THEN n * 104729 % 1009 - 500 END, \
     CASE WHEN n % 5 <> 0 THEN 'k' || (n * 31 % 97) END, CASE WHEN n % 13 <> 0 THEN (n * 37 % 2000 - 1000) * 0.05 END, \
     CASE WHEN n % 17 <> 0 THEN date '2020-01-01' + n % 400 END, timestamp '2020-01-01' + n % 50 * interval '1 hour', \
     CASE WHEN n % 3 <> 0 THEN n % 2 = 0 END, CASE WHEN n % 4 <> 0 THEN ('00000000-0000-0000-0000-0000000000' || (10 + n % 90))::uuid END, \
     n * 0.1, CASE n % 3 WHEN 0 THEN 1.5 WHEN 1 THEN 1.50 END, 'v' || n % 20, ('x' || n % 9)::bytea, time '00:00' + n % 60 * interval '1 minute' \
     FROM generate_series(1, 6000) n",
    "INSERT INTO s SELECT n, n % 23, 'k' || n % 101, n * 0.0125, n % 1009 - 500, date '2020-01-01' + n % 300 FROM generate_series(1, 700) n",
    "INSERT INTO r SELECT n % 900, n, CASE WHEN n % 9 <> 0 THEN n % 503 END, 'k' || n % 90, (n % 1500 - 700) * 0.05, n % 777, \
     CASE WHEN n % 8 <> 0 THEN date '2020-01-01' + n % 350 END FROM generate_series(1, 3000) n",
    "INSERT INTO p SELECT CASE WHEN n % 6 <> 0 THEN n % 503 END, CASE WHEN n % 5 <> 0 THEN 'k' || n % 60 END, n % 1200 - 500, \
     date '2020-01-01' + n % 420, (n % 99) * 0.05 FROM generate_series(1, 1500) n",
];

/// What is read, and what the columns of several tables have in common: `x` and `q`.
const SOURCES: [&str; 20] = [
    "t AS x",
    "r AS x",
    "t AS x JOIN s AS q ON q.id = x.a",
    "t AS x JOIN s AS q ON q.id = x.a AND q.c < x.c",
    "t AS x JOIN r AS q ON q.w = x.a",
    "t AS x JOIN r AS q ON q.w = x.a AND q.b > x.b",
    "t AS x LEFT JOIN r AS q ON q.w = x.a AND q.d > x.d",
    "t AS x LEFT JOIN s AS q ON q.id = x.a AND q.b <> 3",
    "t AS x JOIN p AS q ON q.c = x.c AND q.b = x.b",
    "t AS x LEFT JOIN p AS q ON q.e = x.e AND q.a = x.a",
    "t AS x FULL JOIN p AS q ON q.b = x.b",
    "p AS x JOIN t AS q ON q.id = x.a",
    "p AS x LEFT JOIN t AS q ON q.id = x.b AND q.d < x.d",
    "r AS x JOIN t AS q ON q.id = x.id JOIN s AS o ON o.id = q.a",
    "(SELECT DISTINCT a, b, c, d, e FROM t) AS x",
    "(SELECT a, b, c, d, e FROM t ORDER BY b) AS x",
    "(SELECT a, b, c, d, e FROM r ORDER BY c DESC) AS x JOIN p AS q ON q.c = x.c AND q.e = x.e",
    "(SELECT a, b, c, d, e FROM t ORDER BY id LIMIT 3000) AS x",
    "(SELECT a, b, c, max(d) AS d, min(e) AS e FROM t GROUP BY a, b, c) AS x JOIN p AS q ON q.a = x.a",
    "(SELECT a, b, c, d, e, rank() OVER (PARTITION BY c ORDER BY b) AS k FROM t) AS x",
];

const CONDITIONS: [&str; 9] = [
    "x.b > 0",
    "x.c IS NOT NULL",
    "x.d < 10.5",
    "x.e >= date '2020-03-01'",
    "x.a IN (1, 5, 9, 100, 200)",
    "NOT (x.b < 5 OR x.c = 'k7')",
    "x.c LIKE 'k1%'",
    "x.b + x.a > 100",
    "x.a < 17 OR x.d = 2.50",
];

const GROUPS: [&str; 8] = [
    "x.a",
    "x.c",
    "x.e",
    "x.b % 10",
    "x.d",
    "x.c = 'k5'",
    "CASE WHEN x.b > 5 THEN 'one' ELSE 'other' END",
    "x.a, x.e",
];

const AGGREGATES: [&str; 20] = [
    "count(*)",
    "count(x.b)",
    "sum(x.a)",
    "sum(x.b)",
    "sum(x.d)",
    "avg(x.a)",
    "avg(x.b)",
    "avg(x.d)",
    "min(x.c)",
    "max(x.e)",
    "max(x.d)",
    "min(x.b)",
    "count(DISTINCT x.c)",
    "count(DISTINCT x.d)",
    "sum(x.d * (1 - x.d))",
    "sum(CASE WHEN x.b > 0 THEN 1 ELSE 0 END)",
    "sum(x.a) FILTER (WHERE x.c > 'k3')",
    "sum(x.b * 2 + 1)",
    "sum(x.d * x.d * (x.d + 1.5))",
    "avg(x.b + x.a)",
];

const ORDERS: [&str; 6] =
    ["x.a", "x.b DESC", "x.c NULLS FIRST", "x.d DESC NULLS LAST", "x.e", "x.c DESC, x.b"];

fn query(generator: &mut Generator) -> String {
    let source = generator.pick(&SOURCES);
    let conditions: Vec<&str> = (0..generator.below(3)).map(|_| generator.pick(&CONDITIONS)).collect();
    let place =
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let has_all = source.starts_with("t AS x") && !source.contains("q ON q.w");
    match generator.below(6) {
        0..3 => {
            let aggregates: Vec<&str> =
                (0..1 + generator.below(4)).map(|_| generator.pick(&AGGREGATES)).collect();
            let aggregates = aggregates.join(", ");
            match generator.below(3) {
                0 => format!("SELECT {aggregates} FROM {source}{place} LIMIT 2"),
                _ => {
                    let group = generator.pick(&GROUPS);
                    format!("SELECT {group}, {aggregates} FROM {source}{place} GROUP BY {group}")
                }
            }
        }
        3 => {
            let order = generator.pick(&ORDERS);
            let columns = if has_all {
                "x.id, x.a, x.b, x.c, x.d, x.e, x.f, x.g, x.h, x.j, x.u, x.v, x.y, x.z"
            } else {
                "x.*"
            };
            // What is left open is not compared: only what it is sorted by.
            match generator.below(3) {
                0 => {
                    let by: String =
                        order.replace(" DESC", "").replace(" NULLS FIRST", "").replace(" NULLS LAST", "");
                    let most = generator.pick(&["10", "700", "5000"]);
                    format!("SELECT {by} FROM {source}{place} ORDER BY {order} LIMIT {most} OFFSET 20")
                }
                _ => format!("SELECT {columns} FROM {source}{place} ORDER BY {order}"),
            }
        }
        4 => {
            let (part, order) = (generator.pick(&["x.a", "x.c", "x.e"]), generator.pick(&ORDERS));
            let function = generator.pick(&["rank()", "dense_rank()", "rank() OVER w, dense_rank()"]);
            format!(
                "SELECT x.a, x.b, x.c, x.d, x.e, {function} OVER w FROM {source}{place} WINDOW w AS (PARTITION BY {part} ORDER BY {order})"
            )
        }
        _ => format!("SELECT x.*{} FROM {source}{place}", if source.contains("q ON") { ", q.*" } else { "" }),
    }
}

fn sorted(answer: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = answer.lines().collect();
    lines.sort_unstable();
    lines
}

/// How many queries are made for each cluster.
fn queries() -> usize {
    option_env!("ORDAIN_QUERIES").and_then(|number| number.parse().ok()).unwrap_or(250)
}

fn make(world: &mut World, statements: &[&str]) {
    statements.iter().for_each(|statement| drop(world.must("rows", statement)));
}

/// A database with the tables. Sessions that begin from now on run by `engine`, and that named `rows` without.
fn with_tables(kind: EngineKind, partitions: u16, engine: Arc<dyn QueryEngine>) -> World {
    let mut world = World::new(kind, partitions);
    make(&mut world, &TABLES);
    world.run_by(Some(engine));
    world
}

#[test]
fn columns_give_what_rows_give() {
    for (kind, partitions) in [(EngineKind::Calvin, 1), (EngineKind::Aloha, 3)] {
        let counting = Counting::default();
        let (begun, ended) = (Arc::clone(&counting.begun), Arc::clone(&counting.ended));
        let mut world = with_tables(kind, partitions, Arc::new(counting));
        let mut generator = Generator(u64::from(partitions));
        for _ in 0..queries() {
            let query = query(&mut generator);
            let [by_rows, by_columns] = ["rows", "columns"].map(|session| world.must(session, &query));
            let (one, other) = (sorted(&by_rows), sorted(&by_columns));
            let differs = one.iter().zip(&other).find(|(one, other)| one != other);
            assert!(one == other, "{query}: {} and {} lines, {differs:?}", one.len(), other.len());
        }
        // Some are found to look up few rows, and others are asked for their first rows only.
        let (begun, ended) = (begun.load(Ordering::Relaxed), ended.load(Ordering::Relaxed));
        assert!(ended > 100, "{begun} regions began, and {ended} came to their end");
    }
}

/// One that has next to no memory.
#[derive(Debug)]
struct Poor;

impl QueryEngine for Poor {
    fn region<'p>(
        &self,
        query: &'p Node,
        surroundings: Surroundings<'p>,
    ) -> Option<Box<dyn Region<'p> + 'p>> {
        Columns.region(query, Surroundings { bytes: 1000, ..surroundings })
    }
}

#[test]
fn what_does_not_fit_is_done_by_rows() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Poor));
    let asked = [
        "SELECT c, count(*), sum(d) FROM t GROUP BY c",
        "SELECT id, a FROM t ORDER BY a, id",
        "SELECT count(*) FROM t JOIN p ON p.b = t.b",
        "SELECT count(DISTINCT c) FROM t",
    ];
    for query in asked {
        let [by_rows, over_columns] = ["rows", "columns"].map(|session| world.must(session, query));
        assert_eq!(sorted(&by_rows), sorted(&over_columns), "{query}");
    }
}

#[test]
fn first_rows_are_those_of_what_is_left() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Columns));
    let asked = [
        "SELECT id FROM (SELECT * FROM t ORDER BY h, id) s WHERE id % 2000 = 7 LIMIT 3",
        "SELECT DISTINCT ON (h) h, id FROM t ORDER BY h, id LIMIT 4",
        "SELECT DISTINCT h FROM (SELECT * FROM t ORDER BY h, id) s LIMIT 5",
        "SELECT id FROM (SELECT * FROM t ORDER BY h, id) s JOIN (VALUES (5900), (13)) v(x) ON v.x = s.id LIMIT 2",
        "SELECT EXISTS (SELECT FROM (SELECT * FROM t ORDER BY h, id) s WHERE id = 5900)",
        "SELECT count(*) FROM ((SELECT id FROM t ORDER BY h, id) INTERSECT (SELECT a FROM t ORDER BY h) LIMIT 5) s",
        "SELECT id FROM (SELECT id FROM t ORDER BY h, id LIMIT 5000) s WHERE id > 5990 LIMIT 2",
        "SELECT count(*) FROM (SELECT DISTINCT ON (c) c FROM t ORDER BY c LIMIT 50) s",
    ];
    let expected: [&[&str]; 8] = [
        &["7", "2007", "4007"],
        &["f", "t"],
        &["f", "t"],
        &["13", "5900"],
        &["t"],
        &["5"],
        &["5993", "5995"],
        &["50"],
    ];
    for (query, expected) in asked.into_iter().zip(expected) {
        let [by_rows, over_columns] = ["rows", "columns"].map(|session| world.ask(session, query));
        assert_eq!(by_rows, over_columns, "{query}");
        let has = |wanted: &&str| by_rows.lines().any(|line| line.split(" | ").any(|value| value == *wanted));
        assert!(expected.iter().all(has), "{query}: {by_rows}");
    }
}

#[test]
fn long_rows_are_those_of_rows() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Columns));
    let made = [
        "CREATE TABLE l (id int PRIMARY KEY, k int, t text)",
        "INSERT INTO l SELECT n, n % 3, CASE WHEN n > 950 THEN repeat('ab', 5000) ELSE 'c' || n END FROM generate_series(1, 1000) n",
    ];
    make(&mut world, &made);
    let asked = [
        "SELECT k, max(t), count(*) FROM l GROUP BY k ORDER BY k",
        "SELECT count(*), max(l.t) FROM l JOIN t ON t.a = l.id",
        "SELECT id, t FROM l ORDER BY t DESC, id",
    ];
    for query in asked {
        let [by_rows, over_columns] = ["rows", "columns"].map(|session| world.must(session, query));
        assert_eq!(by_rows, over_columns, "{query}");
    }
}

#[test]
fn sums_that_do_not_fit_are_those_of_rows() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Columns));
    let made = [
        "CREATE TABLE big (id int PRIMARY KEY, b bigint, d numeric(38, 2), n numeric(10, 2))",
        "INSERT INTO big SELECT n, 9000000000000000000, 1e35, CASE WHEN n = 900 THEN 'NaN'::numeric ELSE n END FROM generate_series(1, 1000) n",
        "CREATE TABLE late (id int PRIMARY KEY, k int, y bigint)",
        "INSERT INTO late SELECT n, n, CASE WHEN n = 9000 THEN 9000000000000000000 ELSE 1 END FROM generate_series(1, 9000) n",
    ];
    make(&mut world, &made);
    let asked = [
        "SELECT sum(b), avg(b), sum(d), sum(d * d), sum(n), max(n) FROM big",
        "SELECT sum(b + b) FROM big",
        "SELECT id % 2, sum(b), sum(d), avg(n) FROM big GROUP BY id % 2 ORDER BY 1",
        "SELECT id FROM big ORDER BY n DESC, id DESC LIMIT 3",
        // The sums look rows up, and are too few for more.
        "SELECT s.id, s.t FROM (SELECT id % 2 AS id, sum(d) AS t FROM big GROUP BY id % 2) s JOIN s AS q ON q.id = s.id ORDER BY s.id",
        // Rows come in the order of the groups, and what does not fit is behind many others.
        "SELECT k, count(*) FILTER (WHERE y < 2 AND y * y > 0) FROM (SELECT * FROM late ORDER BY k) s GROUP BY k ORDER BY k",
        "SELECT k, sum(y::numeric * y * y) FROM (SELECT *, rank() OVER (ORDER BY k) AS r FROM late) s GROUP BY k ORDER BY k",
        "SELECT k, sum(y * y) FROM (SELECT * FROM late ORDER BY k) s GROUP BY k",
    ];
    for query in asked {
        let [by_rows, over_columns] = ["rows", "columns"].map(|session| world.ask(session, query));
        assert_eq!(by_rows, over_columns, "{query}");
    }
}

#[test]
fn what_fails_over_columns_alone_is_done_by_rows() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Columns));
    make(&mut world, &["CREATE TABLE w (n int PRIMARY KEY)"]);
    // By rows nobody asks for the left side of a join with nothing, where a division fails.
    for left in ["t", "(SELECT * FROM t ORDER BY id LIMIT 510)"] {
        let query = format!(
            "SELECT a % 5, sum(z) FROM (SELECT a, 100 / (id - 500) AS z FROM {left} l) x JOIN (SELECT DISTINCT id FROM s WHERE id < 0) n ON n.id = x.a \
             GROUP BY 1"
        );
        let by_rows = world.must("rows", &query);
        assert_eq!(by_rows, world.must("columns", &query));
        world.must("columns", "BEGIN");
        assert!(world.must("columns", &query).starts_with(&by_rows));
        world.must("columns", "INSERT INTO w SELECT count(*) FROM w");
        world.must("columns", "COMMIT");
    }
}

#[test]
fn plans_tell_what_runs_over_columns() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Columns));
    let query = "SELECT s.c, count(*) FROM t JOIN s ON s.id = t.a GROUP BY s.c";
    let told = world.ask("columns", &format!("EXPLAIN {query}"));
    assert!(told.contains("Aggregate by 1 columns, over columns if rows are many"), "{told}");
    assert_eq!(told.matches("over columns").count(), 1, "{told}");
    let told = world.ask("columns", &format!("EXPLAIN ANALYZE {query}"));
    let groups = world.ask("rows", query).lines().count() - 2;
    assert!(told.contains(&format!("over columns (actual rows={groups} runs=1)")), "{told}");
    assert!(told.contains("Scan of all of t (actual rows=6000 runs=1)"), "{told}");
    let ways = [
        ("SELECT c, count(*) FROM s WHERE id < 9 GROUP BY c", "by rows: they are few"),
        ("SELECT avg(n) FROM odd", "by rows: they hold what columns do not take"),
        ("SELECT c, count(*) FROM (SELECT c FROM t LIMIT 5000) s GROUP BY c", "by rows: it is not known"),
        (
            "SELECT k, c FROM (SELECT id % 2 AS k FROM t GROUP BY id % 2) g JOIN s ON s.id = k ORDER BY k",
            "by rows: look-ups take less",
        ),
    ];
    make(
        &mut world,
        &[
            "CREATE TABLE odd (id int PRIMARY KEY, n numeric(9, 2))",
            "INSERT INTO odd SELECT i, CASE i WHEN 700 THEN 'NaN'::numeric ELSE i END FROM generate_series(1, 900) i",
        ],
    );
    for (query, way) in ways {
        let told = world.ask("columns", &format!("EXPLAIN ANALYZE {query}"));
        assert!(told.contains(way), "{told}");
    }
}

/// What a block that writes has shown is compared with what comes by rows at its place in the order.
#[test]
fn blocks_that_write_show_the_same_at_their_place() {
    let counting = Counting::default();
    let ended = Arc::clone(&counting.ended);
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(counting));
    make(&mut world, &["CREATE TABLE w (n int PRIMARY KEY)"]);
    let mut generator = Generator(3);
    for number in 0..queries() {
        let query = query(&mut generator);
        // The first rows of a cursor are certified in the order in which they came.
        let cursor = format!("DECLARE c CURSOR FOR {query}; FETCH 3 FROM c");
        let asked = if number % 4 == 0 { &cursor } else { &query };
        for statement in ["BEGIN", asked, &format!("INSERT INTO w VALUES ({number})"), "COMMIT"] {
            world.must("columns", statement);
        }
    }
    let ended = ended.load(Ordering::Relaxed);
    assert!(ended > 20, "{ended} regions came to their end");
}

#[test]
fn blocks_that_were_shown_what_has_changed_fail() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Columns));
    make(&mut world, &["CREATE TABLE w (n int PRIMARY KEY)"]);
    for query in ["SELECT c, sum(id) FROM t GROUP BY c", "SELECT a, id FROM t ORDER BY a"] {
        world.must("columns", "BEGIN");
        let told = world.must("columns", &format!("EXPLAIN ANALYZE {query}"));
        assert!(told.contains(", over columns ("), "{told}");
        world.must("columns", query);
        // Two rows exchange what they hold, so that as many groups are there as before; in case they hold the same `a`, it grows by one.
        let first = "(SELECT min(id) FROM t WHERE c = 'k1')";
        let second = "(SELECT min(id) FROM t WHERE c = 'k2')";
        let other =
            |column: &str| format!("(SELECT {column} FROM t o WHERE o.id = {first} + {second} - t.id)");
        let exchange = format!(
            "UPDATE t SET a = {}, c = {} WHERE id IN ({first}, {second})",
            other("o.a + 1"),
            other("o.c")
        );
        assert!(world.must("rows", &exchange).contains("UPDATE 2"));
        world.must("columns", "INSERT INTO w VALUES (1)");
        let answer = world.ask("columns", "COMMIT");
        assert!(answer.contains("ERROR 40001"), "{answer}");
    }
}

#[test]
fn blocks_that_write_show_by_rows_what_depends_on_an_order() {
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(Columns));
    make(
        &mut world,
        &["CREATE TABLE w (n int PRIMARY KEY)", "CREATE TABLE nothing (id int PRIMARY KEY, k int)"],
    );
    // Each is about rows with ties, and where those come in another order it gives something else.
    let asked = [
        "SELECT id FROM t ORDER BY c LIMIT 3000",
        "SELECT id FROM t ORDER BY c",
        "SELECT DISTINCT ON (c) c, id FROM t ORDER BY c",
        "SELECT id, row_number() OVER (ORDER BY c) FROM t",
        "SELECT string_agg(id::text, ',') FROM (SELECT id FROM t ORDER BY c) s",
        "SELECT array_agg(id) FROM (SELECT id FROM t ORDER BY c) s",
        "SELECT sum(id::float8 / 3) FROM (SELECT id FROM t ORDER BY c) s",
        "SELECT ARRAY(SELECT id FROM t ORDER BY c)",
        "SELECT id FROM (SELECT id FROM t ORDER BY c) s UNION SELECT 0",
        // Numbers that are equal and look different.
        "SELECT DISTINCT j FROM (SELECT j, c FROM t ORDER BY c) s",
        "SELECT min(j), max(j), sum(DISTINCT j) FROM (SELECT j, c FROM t ORDER BY c) s",
        "SELECT j, count(*) FROM (SELECT j, c FROM t ORDER BY c) s GROUP BY j",
        "SELECT j FROM (SELECT j, c FROM t ORDER BY c) s INTERSECT SELECT j FROM t",
        // Nothing joins, so that the left is not read, which would fail.
        "SELECT count(*) FROM (SELECT a FROM t WHERE 1 / (id - 5000) <= 1) s JOIN nothing ON nothing.k = s.a",
    ];
    let mut number = 0;
    for query in asked {
        for before in ["SELECT 1", "SAVEPOINT s"] {
            number += 1;
            let failing = "SELECT 1 / (id - 3000) FROM (SELECT id FROM t ORDER BY c) s";
            let statements: &[&str] = match before {
                "SAVEPOINT s" => &["SAVEPOINT s", query, failing, "ROLLBACK TO s"],
                other => &[other, query],
            };
            world.must("columns", "BEGIN");
            statements.iter().for_each(|statement| drop(world.ask("columns", statement)));
            world.must("columns", &format!("INSERT INTO w VALUES ({number})"));
            let answer = world.ask("columns", "COMMIT");
            assert!(!answer.contains("ERROR"), "{query}: {answer}");
        }
    }
}

#[test]
fn cursors_run_over_columns_where_nothing_is_certified() {
    let counting = Counting::default();
    let ended = Arc::clone(&counting.ended);
    let mut world = with_tables(EngineKind::Calvin, 1, Arc::new(counting));
    for begin in ["BEGIN", "BEGIN READ ONLY"] {
        assert_eq!(ended.load(Ordering::Relaxed), 0, "before {begin}");
        let declare = "DECLARE k CURSOR FOR SELECT c, count(*) FROM t GROUP BY c";
        for statement in [begin, declare, "FETCH 2 FROM k", "COMMIT"] {
            world.must("columns", statement);
        }
    }
    assert_eq!(ended.load(Ordering::Relaxed), 1);
}
