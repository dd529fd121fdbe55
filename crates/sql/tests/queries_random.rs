//! Queries from seeds, each written in two ways that mean the same: with conditions by which rows are kept and found, and with such as only
//! tell of each row whether it is wanted. Both must give the same rows.

#[expect(dead_code, reason = "its messages are for the tests of the protocol")]
mod random;
mod support;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use random::Generator;
use support::{World, told};

const TABLES: [&str; 6] = [
    "CREATE TABLE o (id int PRIMARY KEY, a int, b int)",
    "CREATE TABLE t (w int, id int, a int, b bigint, g numeric, x int, PRIMARY KEY (w, id))",
    "CREATE INDEX t_a ON t (a, x)",
    "INSERT INTO o SELECT n, n % 7, CASE WHEN n % 5 <> 0 THEN n % 11 END FROM generate_series(1, 40) n",
    "INSERT INTO t SELECT n % 4, n, n % 9, CASE WHEN n % 6 <> 0 THEN n % 13 END, n % 5 + 0.0, CASE WHEN n % 3 <> 0 THEN n % 8 END \
     FROM generate_series(1, 150) n",
    "CREATE VIEW v AS SELECT a, b, count(*) AS n, min(id) AS id, max(x) AS x, max(w) AS w, max(g) AS g FROM t GROUP BY a, b",
];

/// Sides of equations between a row of the query within and one around it.
const EQUAL: [(&str, &str); 7] = [
    ("t.a", "o.a"),
    ("t.b", "o.b"),
    ("t.g", "o.b"),
    ("o.a", "t.w"),
    ("t.id", "o.id"),
    ("t.x + 1", "o.a"),
    ("t.b", "o.a + o.b"),
];

const OTHERS: [&str; 6] =
    ["t.w = 1", "t.x > o.a", "t.x IS NULL", "t.a = 3", "t.w IN (1, 2)", "t.id < 90 - o.id"];

/// Equations, each behind a condition without which it cannot be computed. Those from the fourth on are about `o`: a join that keeps all of its rows
/// computes its side of an equation for each.
const GUARDED: [(&str, &str); 5] = [
    ("t.a <> 0", "24 / t.a = o.a"),
    ("t.x > 0", "o.b = 60 / coalesce(t.x, 0)"),
    ("t.w = 1", "60 / (t.w % 2) = o.a + 57"),
    ("o.a <> 0", "t.id = 24 / o.a"),
    ("o.b > 0 AND t.x > 0", "60 / coalesce(t.x, 0) = 60 / coalesce(o.b, 0)"),
];

/// A condition, with one of these guarded equations if any, and the same in the other way.
fn condition(generator: &mut Generator, guarded: &[(&str, &str)]) -> [String; 2] {
    let mut both = [Vec::new(), Vec::new()];
    if generator.one_in(3) {
        let (guard, equation) = guarded[generator.below(guarded.len())];
        both[0].push(format!("{guard} AND {equation}"));
        both[1].push(format!("CASE WHEN {guard} THEN {equation} ELSE false END"));
    }
    for _ in 0..1 + generator.below(3) {
        let (left, right) = EQUAL[generator.below(EQUAL.len())];
        both[0].push(format!("{left} = {right}"));
        both[1].push(format!("({left} = {right}) IS TRUE"));
    }
    for _ in 0..generator.below(3) {
        let other = generator.pick(&OTHERS);
        both.iter_mut().for_each(|conditions| conditions.push(other.to_owned()));
    }
    both.map(|conditions| conditions.join(" AND "))
}

fn query(generator: &mut Generator) -> [String; 2] {
    let from = generator.pick(&[
        "t",
        "t",
        "v AS t",
        "t JOIN (SELECT id AS k, a AS c FROM t WHERE w = 2) z ON z.c = t.a",
        "t LEFT JOIN v ON v.b = t.b AND v.n > 1",
    ]);
    let form = generator.pick(&[
        "SELECT id, (SELECT count(*) FROM {} WHERE [1]) FROM o ORDER BY id",
        "SELECT id, (SELECT sum(t.x + o.id) FROM {} WHERE [1]) FROM o ORDER BY id",
        "SELECT id, ARRAY(SELECT t.id FROM {} WHERE [1] ORDER BY t.id) FROM o ORDER BY id",
        "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM {} WHERE [1]) ORDER BY id",
        "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM {} WHERE [1]) ORDER BY id",
        "SELECT id FROM o WHERE a IN (SELECT t.x FROM {} WHERE [1]) ORDER BY id",
        "SELECT id FROM o WHERE b NOT IN (SELECT t.x FROM {} WHERE [1]) ORDER BY id",
        "SELECT o.id, l.id FROM o LEFT JOIN LATERAL (SELECT t.id FROM {} WHERE [1] ORDER BY t.id LIMIT 2) l ON true ORDER BY 1, 2",
        "SELECT id FROM o WHERE EXISTS (SELECT 1 FROM {} WHERE [1] AND EXISTS (SELECT 1 FROM v AS t WHERE [2])) ORDER BY id",
        "SELECT o.id, t.id FROM o JOIN t ON [1] ORDER BY 1, 2",
        "SELECT o.id, t.id FROM o LEFT JOIN t ON [1] ORDER BY 1, 2",
    ]);
    let guarded = if form.contains("LEFT JOIN t") { &GUARDED[..3] } else { &GUARDED[..] };
    let (one, other) = (condition(generator, guarded), condition(generator, guarded));
    [0, 1].map(|way| form.replace("{}", from).replace("[1]", &one[way]).replace("[2]", &other[way]))
}

#[test]
fn kept_rows_are_those_that_would_be_read_again() {
    for (engine, partitions) in [(EngineKind::Calvin, 1), (EngineKind::Aloha, 2)] {
        let mut world = World::new(engine, partitions);
        let mut ask = |query: &str| told(&world.send("a", Frontend::Query(query.to_owned())));
        for statement in TABLES {
            let answer = ask(statement);
            assert!(!answer.contains("ERROR"), "{statement}: {answer}");
        }
        let mut generator = Generator(u64::from(partitions));
        let mut kept = 0;
        for _ in 0..150 {
            let [found, tested] = query(&mut generator);
            let (rows, others) = (ask(&found), ask(&tested));
            assert!(!rows.contains("ERROR"), "{found}: {rows}");
            assert_eq!(rows, others, "{found}");
            kept += usize::from(ask(&format!("EXPLAIN {found}")).contains("Kept"));
        }
        assert!(kept > 50, "only {kept} queries keep rows");
    }
}

#[test]
fn as_many_queries_are_combined_as_may_be() {
    let mut world = World::new(EngineKind::Serial, 1);
    let mut ask = |query: String| told(&world.send("a", Frontend::Query(query)));
    let combined = |count: usize, operator: &str| {
        let queries: Vec<String> = (0..count).map(|number| format!("SELECT {number} AS n")).collect();
        format!("SELECT count(*), sum(n) FROM ({}) q", queries.join(operator))
    };
    for operator in [" UNION ALL ", " UNION ", " EXCEPT "] {
        let answer = ask(combined(1000, operator));
        let rows = if operator == " EXCEPT " { "1 | 0" } else { "1000 | 499500" };
        assert!(answer.contains(rows), "{answer}");
    }
    assert!(ask(combined(1001, " UNION ALL ")).contains("more than 1000 queries are combined"));
}

/// Chains of all operations against lists that are combined step by step.
#[test]
fn chains_of_queries_are_combined_from_the_left() {
    const OPERATORS: [&str; 6] = ["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"];
    let mut world = World::new(EngineKind::Serial, 1);
    let mut generator = Generator(5);
    for _ in 0..500 {
        let mut list = || -> Vec<usize> { (0..1 + generator.below(6)).map(|_| generator.below(4)).collect() };
        let lists: Vec<Vec<usize>> = (0..6).map(|_| list()).collect();
        // Two, so that a chain often has the same one twice.
        let few = [generator.pick(&OPERATORS), generator.pick(&OPERATORS)];
        let query_of = |list: &[usize]| {
            let rows: Vec<String> = list.iter().map(|value| format!("({value})")).collect();
            format!("VALUES {}", rows.join(", "))
        };
        let (mut query, mut wanted) = (query_of(&lists[0]), lists[0].clone());
        for list in &lists[1..] {
            let operator = generator.pick(&few);
            query = format!("({query}) {operator} ({})", query_of(list));
            wanted = combined(wanted, operator, list);
        }
        wanted.sort_unstable();
        let answer = told(&world.send("a", Frontend::Query(format!("{query} ORDER BY 1"))));
        let rows: Vec<usize> = answer.lines().filter_map(|line| line.trim().parse().ok()).collect();
        assert_eq!(rows, wanted, "{query}\n{answer}");
    }
}

/// What SQL's rules make of two lists.
fn combined(mut left: Vec<usize>, operator: &str, right: &[usize]) -> Vec<usize> {
    let mut other = right.to_vec();
    let mut take = |value: &usize| {
        let found = other.iter().position(|there| there == value);
        found.map(|place| other.remove(place)).is_some()
    };
    match operator {
        "UNION" | "UNION ALL" => left.extend(right),
        "EXCEPT" => left.retain(|value| !right.contains(value)),
        "EXCEPT ALL" => left.retain(|value| !take(value)),
        "INTERSECT" => left.retain(|value| right.contains(value)),
        _ => left.retain(|value| take(value)),
    }
    if !operator.ends_with("ALL") {
        left.sort_unstable();
        left.dedup();
    }
    left
}

/// Queries whose rows others ask conditions of: each has columns `id`, `a`, `b` and `x`.
const WITHIN: [&str; 13] = [
    "SELECT id, a, b + 0 AS b, x FROM t WHERE w < 3",
    "SELECT w AS id, a, count(*) AS b, max(x) AS x FROM t GROUP BY w, a",
    "SELECT id, a, row_number() OVER (PARTITION BY a ORDER BY id, w) AS b, x FROM t",
    "SELECT id, a, rank() OVER (PARTITION BY a, id ORDER BY w) AS b, sum(x) OVER (PARTITION BY id) AS x FROM t",
    "SELECT DISTINCT id % 20 AS id, a, b, x % 3 AS x FROM t",
    "SELECT id, a, b, x FROM t UNION ALL SELECT id, b, a, NULL FROM o",
    "SELECT a AS id, a, b, x FROM t EXCEPT SELECT a, a, b, 1 FROM o",
    "SELECT t.id, o.a, o.b, t.x FROM t JOIN o ON o.a = t.a",
    "SELECT t.id, o.a, o.b, t.x FROM t LEFT JOIN o ON o.a = t.a AND o.b > 3",
    "SELECT o.id, o.a, t.b, t.x FROM t FULL JOIN o ON o.id = t.id + 20",
    "SELECT id, a, b, x FROM t ORDER BY x, id, w LIMIT 50",
    "SELECT id, coalesce(a, 1) AS a, CASE WHEN x > 3 THEN b ELSE a END AS b, (SELECT max(o.b) FROM o WHERE o.a = t.a) AS x FROM t",
    "SELECT a AS id, a, b, x FROM t GROUP BY GROUPING SETS ((a, b, x), (a))",
];

/// Conditions on their rows.
const ASKED: [&str; 11] = [
    "q.id = 5",
    "q.id IN (1, 2, 3)",
    "q.a = 3",
    "q.b > 1",
    "q.x IS NOT NULL",
    "q.a + q.b > 4",
    "q.id BETWEEN 2 AND 60",
    "q.x <> q.a",
    "coalesce(q.b, 0) < 5",
    "(q.a = 2 OR q.id > 7)",
    "1 = 1",
];

/// A query that asks conditions of another's rows, and the same in a way that leaves them above it.
fn asking(generator: &mut Generator) -> [String; 2] {
    let mut both = [generator.pick(&WITHIN); 2].map(str::to_owned);
    let asked = |generator: &mut Generator| {
        let count = if generator.one_in(3) { 2 } else { 1 };
        let conditions: Vec<&str> = (0..count).map(|_| generator.pick(&ASKED)).collect();
        let above: Vec<String> = conditions.iter().map(|one| format!("({one}) = (SELECT true)")).collect();
        [conditions.join(" AND "), above.join(" AND ")]
    };
    for _ in 0..generator.below(2) {
        let list = generator.pick(&["q.id, q.a, q.b, q.x", "q.id + 1 AS id, q.b AS a, q.a AS b, q.x", "*"]);
        let conditions = asked(generator);
        for (query, condition) in both.iter_mut().zip(conditions) {
            *query = format!("SELECT {list} FROM ({query}) q WHERE {condition}");
        }
    }
    let form = generator.pick(&[
        "SELECT * FROM ({}) q WHERE [1] ORDER BY 1, 2, 3, 4",
        "SELECT count(*), sum(q.id), max(q.x) FROM ({}) q WHERE [1]",
        "WITH q AS ({}) SELECT q.a, q.id, q.b, q.x FROM q WHERE [1] ORDER BY 1, 2, 3, 4",
        "WITH r AS ({}), q AS (SELECT * FROM r) SELECT q.x, q.id, q.b FROM q WHERE [1] ORDER BY 1, 2, 3",
        "SELECT o.id, q.a, q.b, q.x FROM o LEFT JOIN ({}) q ON q.id = o.id AND [1] ORDER BY 1, 2, 3, 4",
        "SELECT o.id, q.a, q.b, q.x FROM o JOIN ({}) q ON q.a = o.a WHERE [1] AND o.id < 10 ORDER BY 1, 2, 3, 4",
        "SELECT o.id, (SELECT count(*) FROM ({}) q WHERE q.a = o.a AND [1]) FROM o WHERE o.id < 15 ORDER BY 1",
        "DELETE FROM o USING ({}) q WHERE q.id = o.id AND [1] AND o.id < 0",
    ]);
    let conditions = asked(generator);
    [0, 1].map(|way| form.replace("{}", &both[way]).replace("[1]", &conditions[way]))
}

#[test]
fn conditions_find_the_same_rows_wherever_they_are_asked() {
    for (engine, partitions) in [(EngineKind::Calvin, 1), (EngineKind::Aloha, 2)] {
        let mut world = World::new(engine, partitions);
        let mut ask = |query: &str| told(&world.send("a", Frontend::Query(query.to_owned())));
        for statement in TABLES {
            let answer = ask(statement);
            assert!(!answer.contains("ERROR"), "{statement}: {answer}");
        }
        let mut generator = Generator(u64::from(partitions));
        let (mut found, mut shown) = (0, 0);
        for _ in 0..250 {
            let [below, above] = asking(&mut generator);
            let (rows, others) = (ask(&below), ask(&above));
            assert!(!rows.contains("ERROR"), "{below}: {rows}");
            assert_eq!(rows, others, "{below}\n{above}");
            shown += usize::from(rows.contains('|') && !rows.contains("SELECT 0"));
            let plan = ask(&format!("EXPLAIN {below}"));
            found += usize::from(plan.contains("range of t") || plan.contains("Look-up"));
        }
        assert!(found > 30 && shown > 100, "only {found} queries look rows up, and {shown} give some");
    }
}

#[test]
fn an_order_that_was_asked_for_within_stays() {
    let mut world = World::new(EngineKind::Calvin, 1);
    let mut ask = |query: &str| told(&world.send("a", Frontend::Query(query.to_owned())));
    for statement in TABLES {
        let answer = ask(statement);
        assert!(!answer.contains("ERROR"), "{statement}: {answer}");
    }
    let keys = ["q.w = 2", "q.w IN (3, 1)", "q.w > 1 AND q.id < 50", "(q.w = 1 OR q.w = 3) AND q.id = 5"];
    for order in ["w, id", "w DESC, id DESC", "id, w", "a, x, w, id", "x DESC, id"] {
        for within in
            ["SELECT * FROM t", "SELECT * FROM t WHERE a > 2", "SELECT * FROM t WHERE w > 0 AND a = 3"]
        {
            for asked in keys.iter().chain(&ASKED) {
                let [below, above] =
                    [asked.to_string(), format!("({asked}) = (SELECT true)")].map(|condition| {
                        ask(&format!("SELECT * FROM ({within} ORDER BY {order}) q WHERE {condition}"))
                    });
                assert!(!below.contains("ERROR"), "{within} {order} {asked}: {below}");
                assert_eq!(below, above, "{within} {order} {asked}");
            }
        }
    }
}
