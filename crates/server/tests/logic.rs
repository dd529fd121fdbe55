//! The files in `tests/logic`, in the form of sqllogictest, over a real connection.
//!
//! What they expect is what PostgreSQL 15 answers. `ORDAIN_LOGIC_SERVER="host=… port=… user=… dbname=…"` runs them against another server,
//! whose schema `public` is emptied before each file; `ORDAIN_LOGIC_WRITE=1` beside it writes down what that server answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ordain::Database;
use ordain::sql::{Listener, ListenerOptions};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use sqllogictest::{
    DB, DBOutput, DefaultColumnType, Runner, default_column_validator, default_normalizer, default_validator,
};

/// The environment variable that names another server.
const OTHER_SERVER: &str = "ORDAIN_LOGIC_SERVER";

/// The environment variable that has the answers of another server written down.
const WRITE: &str = "ORDAIN_LOGIC_WRITE";

/// A connection with a server.
struct Connection(Client);

/// Why a statement failed: its SQLSTATE, which is what the files name, as words differ; or what else happened.
#[derive(Debug)]
struct Failure(String);

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Failure {}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Failure {
        Failure(error.code().map_or_else(|| error.to_string(), |state| state.code().to_owned()))
    }
}

impl DB for Connection {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let mut columns = None;
        let mut rows = Vec::new();
        let mut count = 0;
        for message in self.0.simple_query(sql)? {
            match message {
                SimpleQueryMessage::RowDescription(described) => columns = Some(described.len()),
                SimpleQueryMessage::Row(row) => {
                    rows.push((0..row.len()).map(|at| shown(row.get(at))).collect())
                }
                SimpleQueryMessage::CommandComplete(written) => count = written,
                _ => {}
            }
        }
        Ok(match columns {
            Some(columns) => DBOutput::Rows { types: vec![DefaultColumnType::Text; columns], rows },
            None => DBOutput::StatementComplete(count),
        })
    }

    fn engine_name(&self) -> &str {
        "postgresql"
    }
}

/// A value as the files have it.
fn shown(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(text) => text.replace('\n', "\\n"),
    }
}

/// All files, in the order of their names.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logic");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn config(address: &str) -> Config {
    let mut config: Config = address.parse().unwrap();
    config.connect_timeout(Duration::from_secs(20));
    config
}

/// Runs a file with a server, or writes down what it answers.
fn run(file: &Path, config: &Config, write: bool) -> Result<(), String> {
    let mut runner = Runner::new(|| async { Ok(Connection(config.connect(NoTls)?)) });
    if !write {
        return runner.run_file(file).map_err(|error| error.to_string());
    }
    let update =
        runner.update_test_file(file, " ", default_validator, default_normalizer, default_column_validator);
    futures_util::future::FutureExt::now_or_never(update)
        .expect("a connection that blocks is never pending")
        .map_err(|error| error.to_string())
}

/// What a database of the test's own answers.
fn run_here(file: &Path, partitions: u16) -> Result<(), String> {
    let database = Database::builder().sql().unwrap().partitions(partitions).open().unwrap();
    let listener =
        Listener::start(TcpListener::bind("127.0.0.1:0").unwrap(), ListenerOptions::default()).unwrap();
    listener.open(database.sql().unwrap().unwrap());
    let port = listener.address().port();
    let result = run(file, &config(&format!("host=127.0.0.1 port={port} user=ordain dbname=ordain")), false);
    listener.close(Duration::from_secs(2));
    database.close().unwrap();
    result
}

/// What another server answers.
fn run_there(file: &Path, address: &str) -> Result<(), String> {
    let config = config(address);
    let mut client = config.connect(NoTls).map_err(|error| error.to_string())?;
    let empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public";
    client.batch_execute(empty).map_err(|error| error.to_string())?;
    run(file, &config, std::env::var_os(WRITE).is_some())
}

#[test]
fn files_are_answered_as_postgresql_answers_them() {
    let other = std::env::var(OTHER_SERVER).ok();
    let mut failures = Vec::new();
    for file in files() {
        let results = match &other {
            Some(address) => vec![("there", run_there(&file, address))],
            None => vec![("one partition", run_here(&file, 1)), ("three partitions", run_here(&file, 3))],
        };
        for (place, result) in results {
            if let Err(error) = result {
                failures.push(format!("{} ({place}): {error}", file.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
