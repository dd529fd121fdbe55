//! Statements that are long, and others that would be nested too deeply.

mod support;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

fn answer(world: &mut World, text: &str) -> String {
    told(&world.send("a", Frontend::Query(text.to_owned())))
}

fn world() -> World {
    let mut world = World::new(EngineKind::Calvin, 1);
    answer(&mut world, "CREATE TABLE t (id int PRIMARY KEY, note text)");
    answer(&mut world, "INSERT INTO t SELECT i, 'old' FROM generate_series(1, 5001) i");
    world
}

fn branches(count: u32, branch: impl Fn(u32) -> String) -> String {
    (1..=count).map(branch).collect()
}

#[test]
fn a_case_may_have_many_branches() {
    let mut world = world();
    for branch in [
        |i| format!("WHEN id = {i} THEN 'new {i}' "),
        |i| format!("WHEN (\"t\".\"id\" = {i}) THEN ('new ' || {i})::varchar(20) "),
        |i| {
            format!(
                "WHEN NOT id <> {i} AND t.note IS NOT NULL THEN CASE id WHEN {i} THEN 'new {i}' ELSE NULL END "
            )
        },
    ] {
        let cases = branches(5000, branch);
        let text = format!("UPDATE t SET note = CASE {cases} ELSE note END WHERE id IN (1, 5000, 5001)");
        assert_eq!(answer(&mut world, &text), "UPDATE 3\n");
        let text = "SELECT id, note FROM t WHERE note <> 'old' ORDER BY id";
        let expected = "(id integer, note text)\n1 | new 1\n5000 | new 5000\nSELECT 2\n";
        assert_eq!(answer(&mut world, text), expected);
        answer(&mut world, "UPDATE t SET note = 'old' WHERE id IN (1, 5000)");
    }
    let cases = branches(5000, |i| format!("WHEN {i} THEN {i} "));
    let text = format!("SELECT sum(CASE id {cases} END + 1) FROM t");
    assert_eq!(answer(&mut world, &text), "(sum bigint)\n12507500\nSELECT 1\n");
    let cases = branches(2500, |i| format!("WHEN {i} THEN {i} "));
    let view = format!("CREATE VIEW v AS SELECT CASE id {cases} END AS a FROM t");
    assert_eq!(answer(&mut world, &view), "CREATE VIEW\n");
    let text = "SELECT a FROM v WHERE a > 2499";
    assert_eq!(answer(&mut world, text), "(a integer)\n2500\nSELECT 1\n");
}

#[test]
fn what_would_be_deep_is_refused() {
    let mut world = world();
    let sum = |operand: &str, count| vec![operand; count].join(" + ");
    let case = "CASE WHEN true THEN 1 END";
    for text in [
        sum("1", 3000),
        sum("CASE WHEN true THEN zone END", 3000),
        sum(case, 3000),
        format!("CASE {} END", format!("WHEN {} THEN 1 ", sum("1", 3000)).repeat(2)),
        format!("CASE WHEN true THEN {} END", sum(case, 3000)),
        // What only looks like branches.
        format!("CASE WHEN {} THEN 1 END", sum("when + then", 3000)),
        format!("CASE WHEN {} THEN 1 END", sum("a.when + a.then", 3000)),
        format!("CASE WHEN {} THEN 1 END", sum("end", 3000)),
        format!("CASE WHEN a {} THEN 1 END", "OPERATOR(+) when OPERATOR(+) then ".repeat(3000)),
        format!("CASE WHEN a {} THEN 1 END", "COLLATE when ".repeat(3000)),
        sum("a::case", 3000),
        sum("a COLLATE case", 3000),
        sum("sum(a) OVER case", 3000),
        sum("a.case", 3000),
        format!("1 FROM t AS case {}", "JOIN t AS when ON true ".repeat(3000)),
        format!("1 FROM t, case {}", "JOIN t when ON true ".repeat(3000)),
    ] {
        let answer = answer(&mut world, &format!("SELECT {text}"));
        assert!(answer.starts_with("ERROR 54000: more than 2000 operators"), "{:.60}: {answer}", text);
    }
    let nested = format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(5000), " END".repeat(5000));
    assert!(answer(&mut world, &nested).starts_with("ERROR 54000"), "{}", answer(&mut world, &nested));
    for text in [sum("case", 90_000), sum("CASE WHEN end THEN 1 END", 90_000)] {
        let answer = answer(&mut world, &format!("SELECT {text}"));
        assert!(answer.starts_with("ERROR"), "{:.60}: {answer}", text);
    }
}

/// Chains that each have the last as their first operand.
fn nested(depth: usize, length: usize, begin: &str, operator: &str, end: &str) -> String {
    let around = |inner, _| format!("{begin}{inner}{}{end}", operator.repeat(length));
    (0..depth).fold("1".to_owned(), around)
}

#[test]
fn chains_in_brackets_are_as_deep_as_all_of_them_together() {
    let mut world = world();
    let too_deep = "ERROR 54000: more than 4000 operators and keywords within one another";
    for text in [
        nested(10, 1900, "(", " + 1", ")"),
        nested(90, 1900, "(", " + 1", ")"),
        nested(10, 900, "(", " + (2)", ")"),
        nested(90, 1900, "f(a, ", " + 1", ", b)"),
        nested(90, 1900, "(SELECT ", " + 1", " UNION SELECT 2)"),
        nested(90, 900, "ARRAY[", "[1] + 1", "]"),
        nested(45, 1900, "CASE WHEN true THEN ", " + 1", " ELSE 2 END"),
        nested(45, 1900, "CASE ", " + 1", " WHEN 1 THEN 2 END"),
        nested(45, 900, "(1 + CASE WHEN true THEN 1 WHEN false THEN ", " OR true", " END)"),
        nested(10, 900, "(", " UNION SELECT 1", ")"),
        nested(10, 900, "(1 FROM t case JOIN ", " JOIN t when", ")"),
    ] {
        let answer = answer(&mut world, &format!("SELECT {text}"));
        assert!(answer.starts_with(too_deep), "{text:.80}: {answer}");
    }
    for text in [
        nested(2, 900, "(", " OR true", ")").replacen('1', "false", 1),
        format!(
            "({})",
            vec![nested(1, 900, "(", " OR true", ")").replacen('1', "false", 1); 50].join("), (")
        ),
    ] {
        let answer = answer(&mut world, &format!("SELECT {text}"));
        assert!(!answer.starts_with("ERROR"), "{text:.80}: {answer}");
    }
}

#[test]
fn what_is_wrong_far_inside_is_read_few_times() {
    let mut world = world();
    for begin in [
        "((SELECT 1) UNION (SELECT ",
        "1 IN (((SELECT 1) UNION (SELECT ",
        "1 IN ((SELECT ((SELECT 1) UNION (SELECT ",
        "f(((SELECT 1) UNION (SELECT ",
        "a.f(((SELECT 1) UNION (SELECT ",
        "CASE ((SELECT 1) UNION (SELECT ",
        "CASE WHEN true THEN ((SELECT 1) UNION (SELECT ",
        "current_time(((SELECT 1) UNION (SELECT ",
        "interval ((SELECT 1) UNION (SELECT ",
        "position(((SELECT 1) UNION (SELECT ",
        "trim(((SELECT 1) UNION (SELECT ",
        "cast(((SELECT 1) UNION (SELECT ",
        "ARRAY[((SELECT 1) UNION (SELECT ",
        "NOT ((SELECT 1) UNION (SELECT ",
        "a[((SELECT 1) UNION (SELECT ",
        "(SELECT 1 FROM ((SELECT ((SELECT 1) UNION (SELECT ",
        "(SELECT 1 FROM f(((SELECT 1) UNION (SELECT ",
        "(SELECT 1 LIMIT ((SELECT 1) UNION (SELECT ",
        "(SELECT 1 GROUP BY (((SELECT 1) UNION (SELECT ",
        "(VALUES (((SELECT 1) UNION (SELECT ",
    ] {
        for depth in [12, 24, 45] {
            let text = format!("SELECT {} 1 1 1", begin.repeat(depth));
            let answer = answer(&mut world, &text);
            assert!(answer.starts_with("ERROR"), "{text:.80}: {answer}");
        }
    }
}

#[test]
fn a_comment_that_is_too_long_is_refused() {
    let mut world = world();
    let comment = |bytes| format!("COMMENT ON TABLE t IS '{}'", "x".repeat(bytes));
    assert_eq!(answer(&mut world, &comment(32 * 1024)), "COMMENT\n");
    let refused = "ERROR 54000: a comment can have at most 32768 bytes\n";
    assert_eq!(answer(&mut world, &comment(32 * 1024 + 1)), refused);
}

#[test]
fn what_has_too_many_parts_is_refused() {
    let mut world = world();
    let list = |one: &str, count| vec![one; count].join(", ");
    let wide = branches(1600, |i| format!(", a{i} int"));
    assert_eq!(answer(&mut world, &format!("CREATE TABLE w ({})", &wide[2..])), "CREATE TABLE\n");
    let sums = branches(1665, |i| format!(", sum(id + {i})"));
    let keys = branches(1665, |i| format!(", id + {i}"));
    let named = branches(1665, |i| format!(", w{i} AS (ORDER BY id)"));
    let from = |count| branches(count, |i| format!(", w AS w{i}"));
    let added = branches(1599, |i| format!(", ADD a{i} int"));
    for (text, refused) in [
        (format!("SELECT {}", list("1", 1665)), "target lists can have at most 1664 entries"),
        ("SELECT a.*, b.a1 FROM w a, w b, w c ORDER BY 1".to_owned(), ""),
        ("SELECT * FROM w a, w b".to_owned(), "target lists can have at most 1664 entries"),
        (
            format!("SELECT 1 FROM t ORDER BY {}", &keys[2..]),
            "target lists and what they are sorted by can have at most 1664 entries",
        ),
        (format!("VALUES ({})", list("1", 1665)), "VALUES lists can have at most 1664 entries"),
        (format!("SELECT 1 FROM t GROUP BY {}", list("id", 1665)), ""),
        (format!("SELECT * FROM w ORDER BY {}", &wide[2..].replace(" int", "")), ""),
        (format!("SELECT 1 FROM t GROUP BY {}", &keys[2..]), "a query can have at most 1664 groups"),
        (
            format!("SELECT 1 FROM unnest({}) u, w", list("ARRAY[1]", 66_000)),
            "the relations of a query can have at most 27776 columns",
        ),
        (
            format!("SELECT 1 FROM t GROUP BY ROLLUP ({})", list("id", 1665)),
            "ROLLUP can have at most 1664 expressions",
        ),
        (
            format!("SELECT 1 FROM t GROUP BY GROUPING SETS ({})", list("id", 4097)),
            "too many grouping sets present (maximum 4096)",
        ),
        (format!("SELECT greatest({}) FROM t", &sums[2..]), "a query can have at most 1664 aggregates"),
        (format!("SELECT 1 FROM t WINDOW {}", &named[2..]), "a query can have at most 1664 windows"),
        (
            format!("SELECT count(*) FROM {}", &from(18)[2..]),
            "the relations of a query can have at most 27776 columns",
        ),
        (format!("SELECT count(*) FROM {}", &from(17)[2..]), ""),
        (format!("ALTER TABLE t {}", &added[2..]), "tables can have at most 1600 columns"),
        ("CREATE TABLE v AS SELECT 0 AS a, * FROM w".to_owned(), "tables can have at most 1600 columns"),
        (
            "SELECT 1 FROM t JOIN t u USING (id, note, id)".to_owned(),
            "column name \"id\" appears more than once in USING clause",
        ),
    ] {
        let answer = answer(&mut world, &text);
        match refused {
            "" => assert!(!answer.starts_with("ERROR"), "{text:.80}: {answer}"),
            _ => assert!(answer.starts_with("ERROR") && answer.contains(refused), "{text:.80}: {answer}"),
        }
    }
    let queries = branches(3000, |i| format!(", q{i} AS (SELECT {i} AS a)"));
    let text = format!("WITH {} SELECT a FROM q3000", &queries[2..]);
    assert_eq!(answer(&mut world, &text), "(a integer)\n3000\nSELECT 1\n");
    let checks = ", CHECK (a > 0)".repeat(1000);
    assert_eq!(answer(&mut world, &format!("CREATE TABLE c (a int{checks})")), "CREATE TABLE\n");
}
