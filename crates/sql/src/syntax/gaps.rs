//! Statements, types and functions of PostgreSQL that are not there, and what to do instead: whoever sends one has made no mistake.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{SqlError, SqlState};

const ROUTINE: &str = "Register a procedure with the Rust library, and call it with CALL or SELECT.";
const TRIGGER: &str =
    "Make the other changes in the same transaction, or in a procedure of the Rust library.";
const TYPE: &str = "Use text with a CHECK constraint.";
const LISTEN: &str = "Read a table of messages from time to time.";
const VIEW: &str = "Use a view, or a table that is filled with INSERT ... SELECT.";
const MERGE: &str = "Use INSERT ... ON CONFLICT, UPDATE ... FROM and DELETE ... USING, in one transaction.";
const RIGHTS: &str = "All users have all rights.";
const DATABASE: &str = "There is one database. Use schemas.";
const FOREIGN: &str = "Copy the rows with COPY.";
const COORDINATES: &str = "Use columns of double precision.";
const BOUNDS: &str = "Use two columns.";
const IDENTITY: &str =
    "SET GENERATED, RESTART and DROP IDENTITY go one at a time; ALTER SEQUENCE changes the rest.";
const JSON_PATH: &str = "Use the operators -> and #>, and jsonb_array_elements.";
const PREPARED: &str = "A transaction is atomic over all partitions by itself.";

/// First words of statements, without `OR REPLACE` and the like, and what to do instead.
const STATEMENTS: &[(&str, &str)] = &[
    ("ALTER AGGREGATE", ROUTINE),
    ("ALTER DATABASE", DATABASE),
    ("ALTER DOMAIN", TYPE),
    ("ALTER EXTENSION", ""),
    ("ALTER FUNCTION", ROUTINE),
    ("ALTER MATERIALIZED VIEW", VIEW),
    ("ALTER POLICY", RIGHTS),
    ("ALTER SCHEMA", ""),
    ("ALTER SYSTEM", "Give options to `ordain start`."),
    ("ALTER TRIGGER", TRIGGER),
    ("ALTER TYPE", TYPE),
    ("ALTER VIEW", "Drop the view, and create it again."),
    ("CHECKPOINT", "Checkpoints are made by themselves."),
    ("CLUSTER", "Rows lie in the order of the primary key."),
    ("COMMIT PREPARED", PREPARED),
    ("CREATE AGGREGATE", ROUTINE),
    ("CREATE CAST", ""),
    ("CREATE COLLATION", "Texts are ordered by their bytes, as COLLATE \"C\" has it."),
    ("CREATE DATABASE", DATABASE),
    ("CREATE DOMAIN", "Use the type itself, and CHECK constraints on the columns."),
    ("CREATE EVENT TRIGGER", TRIGGER),
    ("CREATE FOREIGN", FOREIGN),
    ("CREATE FUNCTION", ROUTINE),
    ("CREATE MATERIALIZED VIEW", VIEW),
    ("CREATE OPERATOR", ""),
    ("CREATE POLICY", RIGHTS),
    ("CREATE PROCEDURE", ROUTINE),
    ("CREATE PUBLICATION", ""),
    ("CREATE RULE", TRIGGER),
    ("CREATE SERVER", FOREIGN),
    (
        "CREATE STATISTICS",
        "There are no statistics: how a statement runs follows from its text and the indexes.",
    ),
    ("CREATE SUBSCRIPTION", ""),
    ("CREATE TABLESPACE", ""),
    ("CREATE TRIGGER", TRIGGER),
    ("CREATE TYPE", TYPE),
    ("DO", "Send the statements from the client, or register a procedure with the Rust library."),
    ("DROP AGGREGATE", ROUTINE),
    ("DROP DATABASE", DATABASE),
    ("DROP DOMAIN", TYPE),
    ("DROP EXTENSION", ""),
    ("DROP FUNCTION", ROUTINE),
    ("DROP MATERIALIZED VIEW", VIEW),
    ("DROP OWNED", RIGHTS),
    ("DROP POLICY", RIGHTS),
    ("DROP PROCEDURE", ROUTINE),
    ("DROP RULE", TRIGGER),
    ("DROP TRIGGER", TRIGGER),
    ("DROP TYPE", TYPE),
    ("IMPORT FOREIGN", FOREIGN),
    ("LISTEN", LISTEN),
    ("LOAD", ""),
    ("MERGE", MERGE),
    ("NOTIFY", LISTEN),
    ("PREPARE TRANSACTION", PREPARED),
    ("REASSIGN OWNED", RIGHTS),
    ("REFRESH MATERIALIZED VIEW", VIEW),
    ("ROLLBACK PREPARED", PREPARED),
    ("SECURITY LABEL", RIGHTS),
];

/// Types, and what to do instead.
const TYPES: &[(&str, &str)] = &[
    ("bit", "Use bytea or bigint."),
    ("box", COORDINATES),
    ("circle", COORDINATES),
    ("citext", "Use text, and lower() where texts are compared."),
    ("daterange", BOUNDS),
    ("hstore", "Use json."),
    ("int4range", BOUNDS),
    ("int8range", BOUNDS),
    ("line", COORDINATES),
    ("lseg", COORDINATES),
    ("macaddr", "Use text."),
    ("money", "Use numeric."),
    ("numrange", BOUNDS),
    ("path", COORDINATES),
    ("point", COORDINATES),
    ("polygon", COORDINATES),
    ("timetz", "Use timestamptz, or time."),
    ("tsquery", "Use LIKE or a regular expression."),
    ("tsrange", BOUNDS),
    ("tstzrange", BOUNDS),
    ("tsvector", "Use LIKE or a regular expression."),
    ("varbit", "Use bytea or bigint."),
    ("xml", "Use text."),
];

/// Functions, and what to do instead.
const FUNCTIONS: &[(&str, &str)] = &[
    ("box", COORDINATES),
    ("circle", COORDINATES),
    ("daterange", BOUNDS),
    ("dblink", FOREIGN),
    ("int4range", BOUNDS),
    ("int8range", BOUNDS),
    ("jsonb_path_exists", JSON_PATH),
    ("jsonb_path_match", JSON_PATH),
    ("jsonb_path_query", JSON_PATH),
    ("jsonb_path_query_array", JSON_PATH),
    ("jsonb_path_query_first", JSON_PATH),
    ("numrange", BOUNDS),
    ("pg_export_snapshot", "AS OF reads the same past in several sessions."),
    ("pg_notify", LISTEN),
    ("point", COORDINATES),
    ("plainto_tsquery", "Use LIKE or a regular expression."),
    ("to_tsquery", "Use LIKE or a regular expression."),
    ("to_tsvector", "Use LIKE or a regular expression."),
    ("ts_rank", "Use LIKE or a regular expression."),
    ("tsrange", BOUNDS),
    ("tstzrange", BOUNDS),
    ("xmlparse", "Use text."),
];

/// The error of a statement by its words in capitals, if it is known not to be there.
fn of_words(words: &[String]) -> Option<SqlError> {
    const LEFT_OUT: [&str; 7] = ["OR", "REPLACE", "TEMP", "TEMPORARY", "CONSTRAINT", "TRUSTED", "UNIQUE"];
    let begins = words.first().is_some_and(|first| first == "CREATE");
    let words: Vec<&str> = words
        .iter()
        .enumerate()
        .filter(|(place, word)| !(begins && *place > 0 && *place < 4 && LEFT_OUT.contains(&word.as_str())))
        .map(|(_, word)| word.as_str())
        .collect();
    let (name, hint) = STATEMENTS.iter().find(|(name, _)| {
        let wanted: Vec<&str> = name.split(' ').collect();
        words.starts_with(&wanted)
    })?;
    Some(hinted(SqlError::unsupported(name), hint))
}

fn hinted(error: SqlError, hint: &str) -> SqlError {
    if hint.is_empty() { error } else { error.with_hint(hint) }
}

/// The error of the statement that the parser has stopped in, if it is one of those that are known not to be there. It stopped at a
/// position, or at the end.
pub(super) fn of_tokens(tokens: &[TokenWithSpan], stopped: Option<u32>) -> Option<SqlError> {
    let mut words: Vec<String> = Vec::new();
    let mut is_over = false;
    for token in tokens {
        let begin = u32::try_from(token.span.start.column).unwrap_or(u32::MAX);
        let is_before = stopped.is_none_or(|stopped| begin <= stopped);
        match &token.token {
            Token::SemiColon => is_over = true,
            Token::Whitespace(_) | Token::EOF => {}
            other => {
                if is_over && is_before {
                    words.clear();
                }
                is_over &= !is_before;
                if !is_over && words.len() < 6 {
                    words.push(word(other));
                }
            }
        }
    }
    of_words(&words).or_else(|| of_parts(tokens))
}

/// The same for what is within a statement.
fn of_parts(tokens: &[TokenWithSpan]) -> Option<SqlError> {
    let mut last = Keyword::NoKeyword;
    for token in tokens {
        let Token::Word(word) = &token.token else { continue };
        if last == Keyword::BETWEEN && word.value.eq_ignore_ascii_case("symmetric") {
            return Some(SqlError::unsupported("BETWEEN SYMMETRIC").with_hint("Use least() and greatest()."));
        }
        last = word.keyword;
    }
    let solid = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let words: Vec<String> = solid.map(|token| word(&token.token)).collect();
    let statements = words.split(|word| word == ";");
    statements.flat_map(|words| PARTS.iter().filter_map(|part| part.error_in(words))).next()
}

/// A part of a statement that is not there.
struct Part {
    /// With what the statement begins.
    begins: &'static str,
    /// The part itself.
    words: &'static str,
    hint: &'static str,
}

const fn part(begins: &'static str, words: &'static str, hint: &'static str) -> Part {
    Part { begins, words, hint }
}

const PARTS: &[Part] = &[
    part("ALTER TABLE", "ALTER CONSTRAINT", "Drop the constraint, and add it again."),
    part(
        "ALTER TABLE",
        "ATTACH PARTITION",
        "All tables are partitioned by hash: WITH (replicated) has copies of one.",
    ),
    part("ALTER TABLE", "CLUSTER ON", "Rows lie in the order of the primary key."),
    part("ALTER TABLE", "INHERIT", ""),
    part("ALTER TABLE", "RESTART WITH", IDENTITY),
    part("ALTER TABLE", "SET CACHE", IDENTITY),
    part("ALTER TABLE", "SET CYCLE", IDENTITY),
    part("ALTER TABLE", "SET INCREMENT", IDENTITY),
    part("ALTER TABLE", "SET LOGGED", ""),
    part("ALTER TABLE", "SET MAXVALUE", IDENTITY),
    part("ALTER TABLE", "SET MINVALUE", IDENTITY),
    part("ALTER TABLE", "SET SCHEMA", "Create a table in the other schema, and copy the rows."),
    part("ALTER TABLE", "SET START", IDENTITY),
    part("ALTER TABLE", "SET STATISTICS", "There are no statistics."),
    part("ALTER TABLE", "SET STORAGE", ""),
    part("ALTER TABLE", "SET UNLOGGED", ""),
    part("COPY", "FORCE NOT NULL", ""),
    part("COPY", "FORCE NULL", ""),
    part("COPY", "FORCE QUOTE", ""),
    part("COPY", "STDIN WHERE", "Copy into a temporary table, and use INSERT ... SELECT."),
    part("UPDATE", "] =", "Assign the whole value: jsonb_set, array_replace and || make a changed one."),
    part("", "ROWS FROM", "unnest takes several arrays."),
    part("WITH", "SEARCH BREADTH", "Select a column to sort by."),
    part("WITH", "SEARCH DEPTH", "Select a column to sort by."),
];

impl Part {
    /// The error, if a statement has the part.
    fn error_in(&self, statement: &[String]) -> Option<SqlError> {
        let begins = self.begins.split(' ').filter(|word| !word.is_empty());
        let (begins, words): (Vec<&str>, Vec<&str>) = (begins.collect(), self.words.split(' ').collect());
        let has_begin =
            statement.len() >= begins.len() && statement.iter().zip(&begins).all(|(one, other)| one == other);
        (has_begin && statement.windows(words.len()).any(|window| window == words)).then(|| {
            let what = if self.words == "] =" { "an assignment to an element" } else { self.words };
            let what = if self.begins.is_empty() || self.begins == "UPDATE" {
                what.to_owned()
            } else {
                format!("{} … {what}", self.begins)
            };
            hinted(SqlError::unsupported(what), self.hint)
        })
    }
}

fn word(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        Token::Word(word) if word.keyword != Keyword::NoKeyword => String::new(),
        other => other.to_string(),
    }
}

/// The error of a statement that is parsed and not there.
pub fn unsupported_statement(statement: &str) -> SqlError {
    let words: Vec<String> = statement
        .split_whitespace()
        .take(6)
        .map(|word| word.trim_end_matches(';').to_ascii_uppercase())
        .collect();
    of_words(&words).unwrap_or_else(|| {
        let first: Vec<&str> = statement.split_whitespace().take(3).collect();
        SqlError::unsupported(first.join(" "))
    })
}

/// The error of a type that is not there.
pub fn unknown_type(name: &str) -> SqlError {
    let name = if name.eq_ignore_ascii_case("time with time zone") { "timetz" } else { name };
    let last = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let plain = last.split(['(', '[', ' ']).next().unwrap_or(&last);
    match TYPES.iter().find(|(known, _)| *known == plain) {
        Some((known, hint)) => hinted(SqlError::unsupported(format!("the type {known}")), hint),
        None => SqlError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist")),
    }
}

/// The error of a function of PostgreSQL that is not there, if its name is one of such a function.
pub fn unknown_function(name: &str) -> Option<SqlError> {
    let (known, hint) = FUNCTIONS.iter().find(|(known, _)| *known == name)?;
    Some(hinted(SqlError::unsupported(format!("the function {known}")), hint))
}
