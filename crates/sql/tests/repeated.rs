//! Texts that come again with other constants mean what they say, although they are read and planned once.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

fn query(text: &str) -> Frontend {
    Frontend::Query(text.to_owned())
}

fn world() -> World {
    let mut world = World::new(EngineKind::Calvin, 2);
    for statement in [
        "CREATE TABLE t (id int PRIMARY KEY, n bigint, d numeric(9, 2), s varchar(5), c char(4), day date, at timestamptz, f float8, b bool, j jsonb, a int[])",
        "CREATE INDEX ON t (s)",
        "INSERT INTO t SELECT i, i * 10000000000, i + 0.5, 's' || i, 'c' || i, '2026-01-01', '2026-01-01 UTC', i, i % 2 = 0, '{}', ARRAY[i] FROM generate_series(1, 9) i",
    ] {
        let answer = told(&world.send("a", query(statement)));
        assert!(!answer.contains("ERROR"), "{answer}");
    }
    world
}

/// Texts that differ in their constants, most of them of one shape.
const TEXTS: &[&[&str]] = &[
    &[
        "SELECT * FROM t WHERE id = 1",
        "SELECT * FROM t WHERE id = 2",
        "SELECT * FROM t WHERE id = 3000000000",
        "SELECT * FROM t WHERE id = 3.0",
        "SELECT * FROM t WHERE id = '4'",
        "SELECT * FROM t WHERE id = 'x'",
    ],
    &[
        "SELECT id FROM t WHERE n > 70000000000 AND id < 9",
        "SELECT id FROM t WHERE n > 60000000000 AND id < 9",
    ],
    &[
        "SELECT n + 5 AS more, d - 0.25 FROM t WHERE id = 2",
        "SELECT n + 7 AS more, d - 1.125 FROM t WHERE id = 3",
    ],
    &["SELECT n + 9223372036854775807 FROM t WHERE id = 2", "SELECT n + 1 FROM t WHERE id = 2"],
    &[
        "SELECT id FROM t WHERE s = 's1'",
        "SELECT id FROM t WHERE s = 's2'",
        "SELECT id FROM t WHERE s = 'much too long'",
        "SELECT id FROM t WHERE s = 'it''s'",
    ],
    &[
        "SELECT id FROM t WHERE c = 'c1'",
        "SELECT id FROM t WHERE c = 'c2  '",
        "SELECT id FROM t WHERE c = 'c3'",
    ],
    &[
        "SELECT id FROM t WHERE day = '2026-01-01' AND id IN (1, 2)",
        "SELECT id FROM t WHERE day = 'today' AND id IN (1, 2)",
        "SELECT id FROM t WHERE day = '2026-13-01' AND id IN (1, 2)",
    ],
    &[
        "SELECT id FROM t WHERE at BETWEEN '2026-01-01 00:00' AND '2026-01-02 00:00' AND id < 3",
        "SELECT id FROM t WHERE at BETWEEN '2026-01-01 01:00' AND '2026-01-02 00:00' AND id < 3",
    ],
    &["SELECT id FROM t WHERE f > 7.5", "SELECT id FROM t WHERE f > '8.5'", "SELECT id FROM t WHERE f > 8"],
    &[
        "SELECT id FROM t WHERE b = 'yes' AND j = '{}'",
        "SELECT id FROM t WHERE b = 'no' AND j = '{}'",
        "SELECT id FROM t WHERE b = 'perhaps' AND j = '{}'",
    ],
    &[
        "SELECT id FROM t WHERE a = '{1}'",
        "SELECT id FROM t WHERE a = '{2}'",
        "SELECT id FROM t WHERE a = '{'",
    ],
    &[
        "SELECT id, count(*) FROM t WHERE id < 3 GROUP BY 1 ORDER BY 1 DESC LIMIT 1",
        "SELECT id, count(*) FROM t WHERE id < 4 GROUP BY 1 ORDER BY 1 DESC LIMIT 2",
        "SELECT id, count(*) FROM t WHERE id < 4 GROUP BY 1 ORDER BY 2, 1 LIMIT 2",
    ],
    &[
        "SELECT id + 1 FROM t WHERE id < 4 GROUP BY id + 1 ORDER BY id + 1",
        "SELECT id + 2 FROM t WHERE id < 4 GROUP BY id + 2 ORDER BY id + 2",
        "SELECT id + 1 FROM t WHERE id < 4 GROUP BY id + 2",
    ],
    &[
        "INSERT INTO t (id, d, s, day) VALUES (10, 1.25, 'new', '2026-05-05')",
        "INSERT INTO t (id, d, s, day) VALUES (11, 2.5, 'newer', '2026-05-06')",
        "INSERT INTO t (id, d, s, day) VALUES (11, 2.5, 'newer', '2026-05-06')",
        "INSERT INTO t (id, d, s, day) VALUES (12, 2.555, 'too long', '2026-05-06')",
        "INSERT INTO t (id, d, s, day) VALUES (12, 99999999.5, 'x', '2026-05-06')",
        "INSERT INTO t (id, d, s, day) VALUES (12, 2.555, 'x', 'y')",
    ],
    &[
        "INSERT INTO t (id, n) VALUES (20, 1), (21, -2) RETURNING *",
        "INSERT INTO t (id, n) VALUES (22, 3), (23, -4) RETURNING *",
    ],
    &[
        "UPDATE t SET n = n + -5, s = 'up' WHERE id = 1",
        "UPDATE t SET n = n + -6, s = 'down' WHERE id = 2",
        "UPDATE t SET n = n + -7, s = 'too long' WHERE id = 3",
        "UPDATE t SET n = n + -8, s = 'none' WHERE id = 300",
    ],
    &["DELETE FROM t WHERE id = 5 RETURNING id", "DELETE FROM t WHERE id = 6 RETURNING id"],
    &[
        "CALL transfer(1, 2, 3, 'x')",
        "CALL transfer(2, 1, -3, 'it''s')",
        "CALL transfer(2, '1', 3, NULL)",
        "CALL transfer(2, 1.0, 3, 'y')",
        "CALL transfer(3000000000, 1, 3, 'y')",
        "CALL transfer(2, 'one', 3, 'y')",
        "CALL transfer(2, 1, 3)",
    ],
    &[
        "SELECT transfer(1, 2, 0, 'a' || 'b')",
        "SELECT transfer(2, 1, 0, 'c' || 'd')",
        "SELECT * FROM transfer(2, 1, 0, 'e' || 'f')",
        "SELECT transfer(1, 2, 0, 'g') || 'h'",
    ],
    &[
        "SELECT total('[1, 2.5, 0.1]')",
        "SELECT total('[ ]')",
        "SELECT total('[1, 2')",
        "SELECT total('[1, \"2\"]')",
        "SELECT total('[1], [2]')",
        "SELECT total('{}')",
    ],
    &[
        r#"SELECT mix(1, 2, 'true', 3, 'x', '"None"', '[4, 5]')"#,
        r#"SELECT mix(-2, -3, 'no', -0.5, 'it''s', '{"Number": 7}', ' [-4,5] ')"#,
        r#"SELECT * FROM mix(-2, '3', 'on', 0.1, 4, '{"Named": "y", "Named": "\u00e9\\"}', '[4, 5]')"#,
        r#"CALL mix(70000, 2, 'true', 3, 'x', '"None"', '[4, 5]')"#,
        r#"CALL mix(1, 3000000000, 'true', 3, 'x', '"None"', '[4, 5]')"#,
        r#"CALL mix(1, 2, 'maybe', 3, 'x', '"None"', '[4, 5]')"#,
        r#"CALL mix(1, 2, 'true', '1e400', 'x', '"None"', '[4, 5]')"#,
        r#"CALL mix(1, 2, 'true', 'NaN', 'x', '"None"', '[4, 5]')"#,
        r#"CALL mix(1, 2, 'true', 3, 'x', '"Nothing"', '[4, 5]')"#,
        r#"CALL mix(1, 2, 'true', 3, 'x', '5', '[4, 5]')"#,
        r#"CALL mix(1, 2, 'true', 3, 'x', '{"Number": 256}', '[4, 5]')"#,
        r#"CALL mix(1, 2, 'true', 3, 'x', '"None"', '[4, 5, 6]')"#,
        r#"CALL mix(1, 2, 'true', 3, 'x', '"None"', '[4, 5], [4, 5]')"#,
        r#"CALL mix(1, 2, 'true', 3, 'x', '"None"', 'null')"#,
        r#"CALL mix(small => 1, normal => -2, is_so => 't', real => 3, text => 'x', choice => '"None"', pair => '[4, 5]')"#,
        "SELECT transfer(1, 2, 0, 'a') LIMIT 1",
        "SELECT transfer(1, 2, 0, 'a') AS named",
        "INSERT INTO t(id, n) VALUES (100, 1), (101, 2)",
    ],
    &["BEGIN", "CALL transfer(1, 2, 0, 'a')", "ROLLBACK"],
    &[
        "SELECT id - -3000000000 FROM t WHERE id = 1",
        "SELECT id - -4000000000 FROM t WHERE id = 1",
        "SELECT id - -2147483648 FROM t WHERE id = 1",
        "SELECT id - -2147483647 FROM t WHERE id = 1",
    ],
    &["SELECT id FROM t WHERE id = 1;", "SELECT id FROM t WHERE id = 2;\u{a0}"],
    &["SELECT 1 = 1", "SELECT 1 = 2"],
    &["SELECT id FROM t WHERE id = 7 FOR UPDATE", "SELECT id FROM t WHERE id = 8 FOR UPDATE"],
    &["SELECT id FROM nothing WHERE id = 7", "SELECT id FROM nothing WHERE id = 8"],
    &["SELECT id INTO made FROM t WHERE id = 1", "SELECT id INTO made FROM t WHERE id = 2"],
    &[
        "BEGIN",
        "SELECT d FROM t WHERE id = 1",
        "SELECT d FROM t WHERE id = 2",
        "SELECT nothing",
        "SELECT d FROM t WHERE id = 3",
        "ROLLBACK",
    ],
    &["SELECT sum(n), sum(d), count(*), max(s) FROM t", "SELECT * FROM t ORDER BY id"],
];

#[test]
fn other_constants_give_what_a_new_session_is_given() {
    let (mut repeating, mut fresh) = (world(), world());
    for texts in TEXTS {
        // The shapes are known after the second round.
        for round in 0..4 {
            for (place, text) in texts.iter().enumerate() {
                let session =
                    if texts[0] == "BEGIN" { format!("{round}") } else { format!("{round} {place}") };
                let expected = told(&fresh.send(&session, query(text)));
                let answer = told(&repeating.send("a", query(text)));
                assert_eq!(answer, expected, "{text}, round {round}");
            }
        }
    }
}

#[test]
fn what_names_stand_for_is_looked_up_again() {
    let mut world = world();
    let mut ask = |session: &str, text: &str| told(&world.send(session, query(text)));
    let text = "SELECT * FROM u WHERE id = 1";
    ask("a", "CREATE TABLE u (id int PRIMARY KEY, at timestamptz)");
    ask("a", "INSERT INTO u VALUES (1, '2026-01-01 00:00 UTC')");
    for _ in 0..3 {
        assert!(ask("a", text).contains("1 | 2026-01-01 00:00:00+00"));
    }
    ask("b", "ALTER TABLE u ADD COLUMN more int DEFAULT 7");
    for _ in 0..3 {
        assert!(ask("a", text).contains("1 | 2026-01-01 00:00:00+00 | 7"));
    }
    ask("a", "SET timezone = 'Europe/Berlin'");
    let moments = "SELECT id FROM u WHERE at = '2026-01-01 01:00'";
    for _ in 0..3 {
        assert!(ask("a", text).contains("01:00:00+01"));
        assert!(ask("a", moments).contains("\n1\n"));
    }
    ask("a", "SET timezone = 'UTC'");
    for _ in 0..3 {
        assert!(ask("a", text).contains("00:00:00+00"));
        assert!(ask("a", moments).contains("SELECT 0"));
    }
    ask("a", "CREATE TEMPORARY TABLE u (id int PRIMARY KEY, other text)");
    ask("a", "INSERT INTO u VALUES (1, 'hides')");
    assert!(ask("a", text).contains("1 | hides"));
    ask("a", "SET search_path = public, pg_temp");
    for _ in 0..3 {
        assert!(ask("a", text).contains("1 | 2026-01-01"));
    }
    ask("a", "BEGIN");
    ask("a", "ALTER TABLE u DROP COLUMN at");
    assert!(ask("a", text).contains("1 | 7"));
    ask("a", "ROLLBACK");
    for _ in 0..3 {
        assert!(ask("a", text).contains("1 | 2026-01-01"));
    }
    ask("b", "DROP TABLE u");
    assert!(ask("a", text).contains("1 | hides"));
    ask("a", "DROP TABLE u");
    assert!(ask("a", text).contains("42P01"));
}

#[test]
fn texts_that_are_prepared_again_are_planned_with_what_is_there() {
    let mut world = world();
    world.send("a", query("CREATE TABLE u (id int PRIMARY KEY)"));
    world.send("a", query("INSERT INTO u VALUES (1)"));
    let ask = |world: &mut World, text: &str| {
        let (name, query) = (String::new(), text.to_owned());
        let mut sent = world.send("a", Frontend::Parse { name, query, parameter_types: vec![23] });
        let bound = Frontend::Bind {
            portal: String::new(),
            statement: String::new(),
            parameter_formats: Vec::new(),
            parameters: vec![Some("1".into())],
            result_formats: Vec::new(),
        };
        sent.extend(world.send("a", bound));
        sent.extend(world.send("a", Frontend::Execute { portal: String::new(), max_rows: 0 }));
        sent.extend(world.send("a", Frontend::Sync));
        told(&sent)
    };
    let text = "SELECT * FROM u WHERE id = $1";
    let before = ask(&mut world, text);
    assert_eq!(before, "1\nSELECT 1\n");
    assert_eq!(ask(&mut world, text), before);
    assert_eq!(ask(&mut world, text), before);
    world.send("b", query("ALTER TABLE u ADD COLUMN more int DEFAULT 7"));
    // The session hears of it as it would on a server of its own.
    world.send("a", query("SELECT * FROM u"));
    for _ in 0..3 {
        assert_eq!(ask(&mut world, text), "1 | 7\nSELECT 1\n");
    }
    world.send("b", query("DROP TABLE u"));
    let gone = ask(&mut world, text);
    assert!(gone.contains("42P01"), "{gone}");
}

/// A text whose definitions have changed since is read again: its constants are of other types by now.
#[test]
fn constants_have_the_types_of_the_newest_definitions() {
    let mut world = world();
    world.send("a", query("CREATE TABLE k (v bigint PRIMARY KEY)"));
    for text in ["01", "02", "03"] {
        let answer = told(&world.send("a", query(&format!("INSERT INTO k VALUES ('{text}')"))));
        assert_eq!(answer, "INSERT 0 1\n");
    }
    let answer = told(&world.send("b", query("ALTER TABLE k ALTER v TYPE text")));
    assert_eq!(answer, "ALTER TABLE\n");
    let answer = told(&world.send("a", query("INSERT INTO k VALUES ('07')")));
    assert_eq!(answer, "INSERT 0 1\n");
    let answer = told(&world.send("a", query("SELECT * FROM k ORDER BY v")));
    assert_eq!(answer, "(v text)\n07\n1\n2\n3\nSELECT 4\n");
}
