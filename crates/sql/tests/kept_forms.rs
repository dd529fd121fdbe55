//! The form of what SQL keeps: statements in the log, and definitions in rows. It follows from types, so a change of a type changes what
//! old logs and tables mean: whoever makes one raises `plan::FORM`, and only then has the samples written anew, by `UPDATE_GOLDENFILES=1`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![expect(clippy::disallowed_methods, reason = "the samples are in a file")]

mod support;

use std::fmt::Write;
use std::path::Path;

use ordain_db::engine::EngineKind;
use ordain_db::hash::key_hash;
use ordain_db::kept::decode_whole;
use ordain_sql::catalog::Definition;
use ordain_sql::plan::{Action, FORM};
use ordain_sql::procedure::Steps;
use ordain_sql::protocol::frontend::Frontend;
use support::World;

const STATEMENTS: &[&str] = &[
    "CREATE SEQUENCE s INCREMENT 2 START 5",
    "CREATE TABLE p (id int PRIMARY KEY, kind text NOT NULL DEFAULT 'a' CHECK (kind <> ''), price numeric(9, 2), UNIQUE (kind, id))",
    "CREATE TABLE c (id bigserial PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, at timestamptz, tags text[], body jsonb)",
    "CREATE INDEX c_at ON c (at DESC NULLS LAST)",
    "CREATE VIEW v AS SELECT id, kind FROM p",
    "INSERT INTO p VALUES (1, 'x', 1.50), (2, DEFAULT, NULL) ON CONFLICT (id) DO UPDATE SET kind = excluded.kind RETURNING id",
    "INSERT INTO c (p, at, tags, body) VALUES (1, '2026-01-01 UTC', '{a,b}', '{\"a\": [1]}')",
    "UPDATE p SET price = price * 2 + length(kind) WHERE id = 1",
    "UPDATE p SET price = 0 WHERE id BETWEEN 1 AND 2 AND kind LIKE 'x%' RETURNING price",
    "DELETE FROM c USING p WHERE c.p = p.id AND p.kind = 'nothing'",
    "UPDATE p SET kind = (SELECT max(kind) FROM v WHERE v.id <= p.id) WHERE EXISTS (SELECT 1 FROM c WHERE c.p = p.id)",
    "INSERT INTO p SELECT 10 + row_number() OVER (ORDER BY id DESC), kind, count(*) FROM p GROUP BY id, kind ORDER BY 1 LIMIT 5",
    "INSERT INTO p WITH RECURSIVE r(n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM r WHERE n < 103) SELECT n, 'r', nextval('s') FROM r",
    "BEGIN; INSERT INTO p VALUES (50, 'b', 1); SAVEPOINT a; DELETE FROM p WHERE id = 50; ROLLBACK TO a; COMMIT",
    "ALTER TABLE p ADD COLUMN more interval DEFAULT '1 day', DROP COLUMN price",
    "CREATE USER u PASSWORD 'secret'",
    "DROP TABLE c",
];

/// What the statements of a call are, in words, if the form is the one that is known.
fn told(arguments: &[u8]) -> String {
    let steps: Steps = decode_whole(arguments).unwrap();
    assert_eq!(postcard::to_allocvec(&steps).unwrap(), arguments, "they are written as they were read");
    let mut told = format!("{steps:?}");
    for step in &steps.steps {
        let Action::Define { changes, .. } = &step.plan.action else { continue };
        for definition in changes.iter().filter_map(|change| change.definition.as_deref()) {
            let decoded = Definition::decode(definition).unwrap();
            assert_eq!(decoded.encode(), definition);
            write!(told, " {decoded:?}").unwrap();
        }
    }
    told
}

/// The calls of all statements, a line each: the digest of what they say, and their bytes.
fn samples() -> String {
    let mut world = World::new(EngineKind::Calvin, 1);
    let mut lines = String::new();
    world.called();
    for statement in STATEMENTS {
        let said = support::told(&world.send("a", Frontend::Query((*statement).to_owned())));
        assert!(!said.contains("ERROR"), "{statement}: {said}");
        for arguments in world.called() {
            let bytes: String = arguments.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(lines, "{:016x} {bytes}", key_hash(told(&arguments).as_bytes())).unwrap();
        }
    }
    lines
}

#[test]
fn what_an_older_build_of_this_form_kept_is_read_as_it_was_meant() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/kept_forms/form_{FORM}.txt"));
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        std::fs::write(&file, samples()).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.lines().count() > STATEMENTS.len());
    for line in kept.lines() {
        let (digest, bytes) = line.split_once(' ').unwrap();
        let digits = bytes.as_bytes().chunks(2).map(|digits| std::str::from_utf8(digits).unwrap());
        let arguments: Vec<u8> = digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect();
        let told = told(&arguments);
        assert_eq!(
            format!("{:016x}", key_hash(told.as_bytes())),
            digest,
            "it means something else now: {told}"
        );
    }
}

#[test]
fn another_form_is_refused() {
    let mut world = World::new(EngineKind::Calvin, 1);
    world.called();
    world.send("a", Frontend::Query("CREATE TABLE t (id int PRIMARY KEY)".to_owned()));
    let mut arguments = world.called().pop().unwrap();
    let steps: Steps = decode_whole(&arguments).unwrap();
    let Action::Define { changes, .. } = &steps.steps[0].plan.action else { panic!("it defines a table") };
    let mut definition = changes.iter().find_map(|change| change.definition.clone()).unwrap();
    (arguments[0], definition[0]) = (FORM + 1, FORM + 1);
    decode_whole::<Steps>(&arguments).unwrap_err();
    let error = Definition::decode(&definition).unwrap_err();
    assert!(error.message.contains("use the release that wrote it"), "{}", error.message);
}
