//! Rows of queries go to the client while these run: nobody keeps all of them, and blocks know what their clients were shown.

mod support;

use ordain_db::engine::EngineKind;
use ordain_sql::error::{SqlError, SqlState};
use ordain_sql::protocol::Format;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

/// Most bytes that are kept before they are sent, with a row of these tests more.
const KEPT_MAX: usize = 65 * 1024;

fn query(text: &str) -> Frontend {
    Frontend::Query(text.to_owned())
}

fn world() -> World {
    let mut world = World::new(EngineKind::Calvin, 2);
    let rows = "INSERT INTO t SELECT i, i % 7, repeat('x', 100) FROM generate_series(1, 5000) i";
    for statement in ["CREATE TABLE t (id int PRIMARY KEY, n int, filler text)", rows] {
        let answer = told(&world.send("a", query(statement)));
        assert!(!answer.contains("ERROR"), "{answer}");
    }
    world
}

/// All that comes of a message, and in how many parts; none of them is long.
fn in_parts(world: &mut World, message: Frontend) -> (Vec<u8>, usize) {
    let (mut all, mut parts) = (Vec::new(), 0);
    let rest = world.send_in_parts("a", message, |part| {
        assert!(part.len() <= KEPT_MAX, "{} bytes were kept", part.len());
        all.append(part);
        parts += 1;
        Ok(())
    });
    all.extend(rest);
    (all, parts)
}

#[test]
fn rows_are_sent_while_the_statement_runs() {
    let mut world = world();
    for text in [
        "SELECT * FROM t",
        "SELECT t.id, u.filler FROM t JOIN t u ON u.id = t.id WHERE t.n <> 3",
        "COPY t TO STDOUT (FORMAT csv)",
        "COPY (SELECT id, filler FROM t ORDER BY id DESC) TO STDOUT (FORMAT binary)",
        "BEGIN; SELECT * FROM t; UPDATE t SET n = n WHERE id = 1; SELECT * FROM t; COMMIT",
    ] {
        let whole = world.send("a", query(text));
        let (all, parts) = in_parts(&mut world, query(text));
        assert!(parts >= 5, "{text}: {parts} parts");
        assert_eq!(all, whole, "{text}");
    }
    let parse = |world: &mut World| {
        let (name, query) = (String::new(), "SELECT * FROM t WHERE n < $1".to_owned());
        world.send("a", Frontend::Parse { name, query, parameter_types: Vec::new() });
        let bound = Frontend::Bind {
            portal: String::new(),
            statement: String::new(),
            parameter_formats: Vec::new(),
            parameters: vec![Some("9".into())],
            result_formats: vec![Format::Binary],
        };
        world.send("a", bound);
        world.send("a", Frontend::Execute { portal: String::new(), max_rows: 0 });
    };
    parse(&mut world);
    let whole = world.send("a", Frontend::Sync);
    parse(&mut world);
    let (all, parts) = in_parts(&mut world, Frontend::Sync);
    assert!(parts >= 5 && all == whole);
}

#[test]
fn a_statement_ends_whose_rows_nobody_takes() {
    let mut world = world();
    world.send("a", query("BEGIN"));
    let mut tries = 0;
    let rest = world.send_in_parts("a", query("SELECT * FROM t"), |part| {
        part.clear();
        tries += 1;
        Err(SqlError::new(SqlState::CONNECTION_FAILURE, "the client is gone"))
    });
    assert_eq!(tries, 1);
    assert!(told(&rest).contains("ERROR 08006"), "{}", told(&rest));
    assert!(told(&world.send("a", query("SELECT 1"))).contains("25P02"));
}

/// So it does where the error tells nothing of rows: it is what came before that is certified.
#[test]
fn rows_before_an_end_from_outside_are_certified() {
    let too_long =
        "SELECT n, repeat('ab', CASE WHEN id = 3000 THEN 2000000000 ELSE 1 END) FROM t ORDER BY id";
    for (change, is_seen) in [
        ("UPDATE t SET n = 100 WHERE id = 30", true),
        ("UPDATE t SET n = 100 WHERE id = 3000", false),
        ("UPDATE t SET n = 100 WHERE id = 4000", false),
    ] {
        let mut world = world();
        world.send("a", query("BEGIN; SAVEPOINT s"));
        let shown = told(&world.send("a", query(too_long)));
        assert!(shown.contains("ERROR 54000"), "{}", &shown[shown.len() - 200..]);
        world.send("a", query("ROLLBACK TO s; INSERT INTO t VALUES (10000, 0, '')"));
        world.send("b", query(change));
        let outcome = told(&world.send("a", query("COMMIT")));
        assert_eq!(outcome.contains("40001"), is_seen, "{change}: {outcome}");
    }
}

/// What a client was shown before a mistake it knows, too.
#[test]
fn rows_before_an_error_are_certified() {
    for (change, is_seen) in [("UPDATE t SET n = 100 WHERE id = 3", true), ("SELECT 1", false)] {
        let mut world = world();
        world.send("a", query("BEGIN; SAVEPOINT s"));
        let shown = told(&world.send("a", query("SELECT n, 1 / (5 - id) FROM t ORDER BY id LIMIT 9")));
        assert!(shown.contains("22012"), "{shown}");
        world.send("a", query("ROLLBACK TO s"));
        let shown = told(&world.send("a", query("SELECT n, 1 / (5 - id) FROM t WHERE id IN (2, 3, 5)")));
        assert!(shown.contains("22012"), "{shown}");
        world.send("a", query("ROLLBACK TO s; UPDATE t SET n = 0 WHERE id = 9"));
        world.send("b", query(change));
        let outcome = told(&world.send("a", query("COMMIT")));
        assert_eq!(outcome.contains("40001"), is_seen, "{change}: {outcome}");
    }
}

/// More than fits into the answer of one ordered transaction.
#[test]
fn a_statement_by_itself_returns_all_that_it_writes() {
    let mut world = world();
    for (statement, tag) in [
        ("UPDATE t SET n = n + 1 RETURNING *, filler, filler", "UPDATE 5000"),
        ("INSERT INTO t SELECT id + 5000, n, filler FROM t RETURNING *, filler, filler", "INSERT 0 5000"),
        ("DELETE FROM t WHERE id > 5000 RETURNING *, filler, filler", "DELETE 5000"),
    ] {
        let answer = told(&world.send("a", query(statement)));
        assert!(answer.contains(tag), "{statement}: {}", &answer[answer.len() - 300..]);
        assert_eq!(answer.lines().filter(|line| line.ends_with("xxx")).count(), 5000, "{statement}");
        assert!(answer.len() > 1 << 20);
    }
    let answer = told(&world.send("a", query("SELECT count(*), sum(n) - sum(id % 7) FROM t")));
    assert!(answer.contains("5000 | 5000"), "{answer}");
    world.send("a", query("CREATE SEQUENCE s"));
    let drawn = "SELECT nextval('s') AS n, repeat('x', 100) FROM generate_series(1, 15000)";
    let answer = told(&world.send("a", query(drawn)));
    assert!(answer.ends_with("SELECT 15000\n"), "{}", &answer[answer.len() - 300..]);
    assert!(told(&world.send("a", query("SELECT nextval('s')"))).contains("15001"));
}

/// It begins anew when a row that it has shown is another at its place in the order, and gives up at some time.
#[test]
fn a_statement_that_returns_much_begins_anew_beside_a_writer() {
    let mut world = world();
    let long = "UPDATE t SET n = n * 2 RETURNING *, filler, filler";
    world.called();
    world.send("b", query("UPDATE t SET n = n + 1 WHERE id = 7"));
    let meddling = world.called().remove(0);
    // The first is before the ordered transaction that finds the rows to be too many.
    world.meddle(6, meddling.clone());
    let answer = told(&world.send("a", query(long)));
    assert!(answer.ends_with("UPDATE 5000\n"), "{}", &answer[answer.len() - 300..]);
    assert!(answer.contains("\n7 | 14 | "), "what was told is what the last attempt wrote");
    assert!(told(&world.send("a", query("SELECT n FROM t WHERE id IN (7, 8)"))).contains("14\n2\n"));
    world.meddle(1000, meddling);
    let answer = told(&world.send("a", query(long)));
    world.meddle(0, Vec::new());
    assert!(answer.starts_with("ERROR 40001"), "{answer}");
    assert!(told(&world.send("a", query("SELECT n FROM t WHERE id = 8"))).contains("\n2\n"));
}

/// Others wait for whatever has a place in the order: what long values take counts there, as rows do.
#[test]
fn work_in_the_order_is_limited() {
    let mut world = world();
    let long = "length(repeat('x', 20000000) || id::text)";
    for statement in [
        format!("UPDATE t SET n = {long} WHERE id BETWEEN 1 AND 4000"),
        format!("UPDATE t SET n = (SELECT sum({long}) FROM generate_series(1, 4000) id) WHERE id = 1"),
        format!(
            "BEGIN; UPDATE t SET n = {long} WHERE id < 50; UPDATE t SET n = {long} WHERE id < 60; COMMIT"
        ),
    ] {
        let answer = told(&world.send("a", query(&statement)));
        assert!(answer.contains("ERROR 54000: the transaction is more work"), "{answer}");
    }
    let answer = told(&world.send("a", query(&format!("UPDATE t SET n = {long} WHERE id < 4 RETURNING n"))));
    assert!(answer.ends_with("20000001\nUPDATE 3\n"), "{answer}");
    assert!(told(&world.send("a", query("SELECT sum(n) FROM t WHERE id > 3"))).contains("14991"));
}

/// What takes longer than its values are long counts as that before it begins, and what is done for each row as often.
#[test]
fn work_counts_before_it_is_done() {
    let mut world = world();
    let array = |from: u32| format!("ARRAY(SELECT g FROM generate_series({from}, 50000 + {from}) g)");
    let json = "(SELECT jsonb_agg(g) FROM generate_series(1, 20000) g)";
    let queries = [
        "SELECT count(*) FROM (SELECT repeat('a', 1000000) x) x WHERE x LIKE '%' || repeat('a', 500000) || 'b%'".to_owned(),
        format!("SELECT ({} && {})::int", array(1), array(90_000)),
        format!("SELECT ({json} @> ({json} || '[0]'::jsonb))::int"),
        format!("SELECT length(({json} - ARRAY(SELECT g::text FROM generate_series(1, 20000) g))::text)"),
        "SELECT regexp_count(repeat('A', 500000), '.*[^A-Z]|[A-Z]')".to_owned(),
        "SELECT count(*) FROM regexp_matches(repeat('A', 500000), '.*[^A-Z]|[A-Z]', 'g')".to_owned(),
        "SELECT (2.5 ^ 300000.5 > 0)::int".to_owned(),
        "SELECT count((regexp_match(g::text, '(\\w\\w){6}x' || g))[1]) FROM generate_series(1, 20000) g".to_owned(),
        "SELECT count(*) FROM generate_series(1, 20000) g WHERE regexp_like(g::text, '(\\w\\w){6}x' || g)".to_owned(),
        "SELECT sum(v) FROM (SELECT sum(g::float8) OVER (ROWS BETWEEN 10000 PRECEDING AND 10000 FOLLOWING) v FROM generate_series(1, 30000) g) w".to_owned(),
        "SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 30000) g GROUP BY CUBE (g, g+1, g+2, g+3, g+4, g+5, g+6, g+7, g+8, g+9, g+10)) w".to_owned(),
        "SELECT count(*) FROM (SELECT repeat('a', 5000000) x) a, generate_series(1, 10000) g".to_owned(),
        "SELECT count(*) FROM t x WHERE ARRAY(SELECT g FROM generate_series(1, 100000) g) IS NOT NULL".to_owned(),
        "SELECT count(*) FROM t x WHERE (SELECT repeat('x', 20000000)) IS NOT NULL".to_owned(),
        "SELECT count(*) FROM generate_series(1, 20000) g WHERE g::text !~ ('[\\w]{12}' || g)".to_owned(),
        "SELECT count(*) FROM generate_series(1, 20000) g WHERE g::text !~ ('a{90}{90}' || g)".to_owned(),
        "SELECT count(*) FROM generate_series(1, 20000) g WHERE 'xx' ~ (g::text || E'(?x).{ # }\\n 700 }')".to_owned(),
        "SELECT count(*) FROM generate_series(1, 20000) g WHERE 'xx' ~ (g::text || '[a\\]\\w[b]]{15}')".to_owned(),
        "SELECT max(length(j::text)) FROM (SELECT jsonb_object_agg('a', g) OVER (ORDER BY g) j FROM generate_series(1, 20000) g) s".to_owned(),
        "SELECT count(s) FROM (SELECT stddev(CASE WHEN g = 1 THEN repeat('9', 60000)::numeric ELSE g END) OVER (ORDER BY g) s FROM generate_series(1, 300) g) q".to_owned(),
        "SELECT sum(length(to_char(now(), repeat('I', 4000000 + g)))) FROM generate_series(1, 5) g".to_owned(),
        "SELECT sum(length(to_char(repeat('9', 100000)::numeric, repeat('9', 100000)))) FROM generate_series(1, 25) g".to_owned(),
        "SELECT sum(a[g]) FROM (SELECT ARRAY(SELECT g FROM generate_series(1, 100000) g) a) a, generate_series(1, 10000) g".to_owned(),
    ];
    for text in queries {
        let statement = format!("UPDATE t SET n = ({text}) + 0 * id WHERE id = 1");
        let answer = told(&world.send("a", query(&statement)));
        assert!(answer.starts_with("ERROR 54000"), "{text}: {answer}");
    }
    // Statements as they are usual are none of these.
    let usual = "UPDATE t SET n = length(regexp_replace(repeat('a  b', 250), '\\s+', ' ', 'g')) + \
                 ('0f9b2c9e-3c1d-4e5f-8a7b-0123456789ab' ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$')::int + (2 ^ 0.5 + 1.5::numeric ^ 2.5)::int";
    assert!(told(&world.send("a", query(usual))).ends_with("UPDATE 5000\n"));
    // No more than is counted is done with long sets of characters.
    let quick = "UPDATE t SET n = length(translate(repeat('b', 1000000), repeat('a', 1000000), '') || \
                 trim(both repeat('a', 1000000) || 'b' from repeat('b', 1000000))) WHERE id = 1 RETURNING n";
    assert!(told(&world.send("a", query(quick))).contains("\n1000000\n"));
}

/// What would take more memory than a value may have is refused before it is made.
#[test]
fn values_are_limited_before_they_are_made() {
    let mut world = world();
    let many = |value: &str| vec![value; 500].join(", ");
    for value in [
        "length(array_to_string(ARRAY(SELECT g FROM generate_series(1, 100000) g), repeat('x', 1000000)))"
            .to_owned(),
        format!("length(concat_ws(repeat('x', 60000000), {}))", many("1")),
        "length(regexp_replace(repeat('a', 10000000), '(a+)', repeat('\\1', 100000)))".to_owned(),
        format!("(SELECT array_length(ARRAY[{}], 1) FROM (SELECT repeat('x', 60000000) r) q)", many("r")),
        "array_length(string_to_array(repeat('x', 60000000), NULL), 1)".to_owned(),
        "(SELECT count(*) FROM regexp_matches(repeat('x', 10000000), 'x', 'g'))".to_owned(),
        "cardinality(('{' || repeat('1,', 16000000) || '1}')::int[])".to_owned(),
        "(SELECT max(b) FROM (SELECT b FROM (SELECT repeat('9', 131000)::numeric b OFFSET 0) c, generate_series(1, 250000) i ORDER BY i DESC) s)".to_owned(),
        "jsonb_array_length(('[' || repeat('1,', 30000000) || '1]')::jsonb)".to_owned(),
    ] {
        let answer = told(&world.send("a", query(&format!("SELECT {value}"))));
        assert!(answer.starts_with("ERROR 54000"), "{}: {}", &value[..60], &answer[..answer.len().min(200)]);
    }
    let value = "length(concat_ws(repeat('x', 1000000), 1, 2, 3)) + array_length(string_to_array(repeat('x', 100000), NULL), 1)";
    assert!(told(&world.send("a", query(&format!("SELECT {value}")))).contains("\n2100003\n"));
}

/// Sixty-four are kept from one row to the next; more are compiled for each, and that is work, however they are spelled.
#[test]
fn regular_expressions_that_are_not_kept_are_work() {
    let mut world = world();
    let any = |count: u32, test: &str| {
        let tests = (1..=count).map(|number| test.replace('#', &format!(r"\w{{18}}x{number}")));
        tests.collect::<Vec<_>>().join(" OR ")
    };
    let spellings = [
        "id::text ~ '#'",
        "id::text ~ ANY (ARRAY['#', 'a'])",
        "substring(id::text from '#') IS NOT NULL",
        "regexp_like(id::text, '#')",
        "EXISTS (SELECT FROM regexp_matches(id::text, '#'))",
    ];
    for test in spellings {
        let answer = told(&world.send("a", query(&format!("UPDATE t SET n = 0 WHERE {}", any(70, test)))));
        assert!(answer.starts_with("ERROR 54000: the transaction is more work"), "{test}: {answer}");
        let few = format!("UPDATE t SET n = 0 WHERE id < 5 AND ({})", any(3, test));
        assert!(told(&world.send("a", query(&few))).contains("UPDATE 0"), "{test}");
    }
    let answer = told(
        &world.send("a", query(&format!("SELECT count(*) FROM t WHERE {}", any(64, "id::text ~ '^#$'")))),
    );
    assert!(answer.contains("\n0\n"), "{answer}");
}

/// A statement reads its regular expression once, and where it is another one for each row that counts.
#[test]
fn regular_expressions_are_work() {
    let mut world = world();
    let answer = told(&world.send(
        "a",
        query("UPDATE t SET n = -1 WHERE (SELECT count(*) FROM generate_series(1, 100000) i WHERE i::text ~ ('^' || id)) < 0"),
    ));
    assert!(answer.contains("ERROR 54000"), "{answer}");
    let counted = "SELECT count(*) FROM generate_series(1, 100000) i WHERE i::text ~ '^1.*5$' OR i::text SIMILAR TO '2%5'";
    assert!(told(&world.send("a", query(counted))).contains("\n2222\n"));
}

/// What window functions give is held, too.
#[test]
fn values_of_windows_are_held() {
    let mut world = world();
    for function in ["lag(v)", "lead(v, 1, 'x')", "first_value(v)", "max(v)"] {
        let text = format!(
            "SELECT count(*) FROM (SELECT {function} OVER (ORDER BY id) FROM (SELECT id, repeat('a', 200000) || id AS v FROM t) s) s"
        );
        let answer = told(&world.send("a", query(&text)));
        assert!(answer.contains("ERROR 54000"), "{function}: {answer}");
    }
}

/// More keys than can be told one by one: the block claims its tables.
#[test]
fn a_block_touches_as_many_rows_as_it_likes() {
    for partitions in [1, 3] {
        let mut world = World::new(EngineKind::Calvin, partitions);
        for statement in [
            "BEGIN",
            "CREATE TABLE small (id int)",
            "CREATE INDEX small_id ON small (id)",
            "CREATE TABLE big (id int PRIMARY KEY, a int)",
            "INSERT INTO big SELECT g, g % 97 FROM generate_series(1, 17000) g",
            "CREATE INDEX big_a ON big (a)",
            "COMMIT",
            "BEGIN",
            "SELECT max(id) FROM big WHERE a IN (SELECT a FROM big WHERE id < 97)",
            "UPDATE big SET a = a + 1 WHERE id = 5",
            "COMMIT",
            "CREATE TABLE other (id int PRIMARY KEY, a int UNIQUE); INSERT INTO other SELECT g, g FROM generate_series(1, 17000) g; CREATE INDEX other_a ON other (a)",
        ] {
            let answer = told(&world.send("a", query(statement)));
            assert!(!answer.contains("ERROR"), "{partitions} partitions, {statement}: {answer}");
        }
        let counted =
            "SELECT (SELECT count(*) FROM big WHERE a = 6), (SELECT count(*) FROM other WHERE a < 10)";
        let answer = told(&world.send("a", query(counted)));
        assert!(answer.contains("177 | 9"), "{partitions} partitions: {answer}");
    }
}

/// A row that is looked up takes as long as many that are read one after the other.
#[test]
fn look_ups_end_when_all_rows_are_fewer() {
    let mut world = world();
    for (table, rows) in [("few", 5000), ("many", 80_000)] {
        for statement in [
            format!("CREATE TABLE {table} (id int PRIMARY KEY, v int, filler text)"),
            format!("INSERT INTO {table} SELECT i, 2 * i, 'x' FROM generate_series(1, {rows}) i"),
        ] {
            let answer = told(&world.send("a", query(&statement)));
            assert!(!answer.contains("ERROR"), "{answer}");
        }
        let join = format!("SELECT count(*), sum(o.v) FROM t JOIN {table} o ON o.id = t.id AND o.v > 2000");
        let answer = told(&world.send("a", query(&join)));
        assert!(answer.contains("\n4000 | 24004000\n"), "{answer}");
        let answer = told(&world.send("a", query(&format!("EXPLAIN ANALYZE {join}"))));
        // Those of the look-ups until then, and of one scan.
        assert_eq!(answer.contains("runs=2049)"), table == "few", "{answer}");
    }
    // The same of several rows each, found by the first column of the key or by an index of all that is asked for.
    for statement in [
        "CREATE TABLE lines (id int, number int, v int, PRIMARY KEY (id, number))",
        "CREATE TABLE notes (id int PRIMARY KEY, about int, v int)",
        "CREATE INDEX ON notes (about)",
        "INSERT INTO lines SELECT i % 5000 + 1, i / 5000, i FROM generate_series(0, 14999) i",
        "INSERT INTO notes SELECT i, i % 5000 + 1, i FROM generate_series(0, 14999) i",
    ] {
        let answer = told(&world.send("a", query(statement)));
        assert!(!answer.contains("ERROR"), "{answer}");
    }
    for join in ["lines o ON o.id = t.id", "notes o ON o.about = t.id"] {
        let all = format!("SELECT t.id, o.v FROM t JOIN {join} WHERE o.v > 4999 ORDER BY 1 DESC, 2 LIMIT 3");
        let answer = told(&world.send("a", query(&all)));
        assert!(answer.contains("\n5000 | 9999\n5000 | 14999\n4999 | 9998\n"), "{join}: {answer}");
        let joined = format!("SELECT count(*), sum(o.v) FROM t JOIN {join}");
        let answer = told(&world.send("a", query(&joined)));
        assert!(answer.contains("\n15000 | 112492500\n"), "{join}: {answer}");
        let answer = told(&world.send("a", query(&format!("EXPLAIN ANALYZE {joined}"))));
        assert!(answer.contains("runs=2049)"), "{join}: {answer}");
    }
    // In the order, they are claimed one by one.
    let update = "UPDATE t SET n = o.v FROM few o WHERE o.id = t.id AND o.v > 2000";
    assert!(told(&world.send("a", query(update))).contains("UPDATE 4000"));
    let answer =
        told(&world.send("a", query("SELECT count(*) FROM t JOIN few o ON o.id = t.id AND o.v = t.n")));
    assert!(answer.contains("\n4000\n"), "{answer}");
}

/// Else each level would double what is below it, and a short statement would need all memory there is.
#[test]
fn what_a_statement_writes_once_is_planned_once() {
    let mut world = world();
    let forms: [&str; 11] = [
        "nullif(#, 7)",
        "(# BETWEEN 0 AND 5)::int",
        "CASE # WHEN 1 THEN 1 WHEN 2 THEN 3 ELSE 4 END",
        "((#, 1) < (2, 3))::int",
        "((# + 0, 1) IN ((1, 1), (4, 5)))::int",
        "(# IN (id + 1, id * 2, 1))::int",
        "(# IS DISTINCT FROM 3)::int",
        "greatest(#, 1)",
        "(#)::regclass::text::int",
        "length(substring(repeat('a', #) FROM 1 FOR 1))",
        "coalesce(pg_table_is_visible(#)::int, 1)",
    ];
    for form in forms {
        let nested = (0..22).fold("id".to_owned(), |inner, _| form.replace('#', &inner));
        let answer = told(&world.send("a", query(&format!("SELECT {nested} FROM t WHERE id = 1"))));
        assert!(answer.contains("\n1\n"), "{form}: {}", &answer[..answer.len().min(300)]);
    }
    let nested =
        (0..22).fold("1".to_owned(), |inner, _| format!("(({inner}, 1) IN (SELECT 1, id FROM t))::int"));
    let answer = told(&world.send("a", query(&format!("SELECT {nested}"))));
    assert!(answer.starts_with("ERROR 54000"), "{}", &answer[..answer.len().min(300)]);
}
