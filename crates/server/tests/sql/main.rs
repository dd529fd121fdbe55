//! Clients of PostgreSQL: sessions, several at a time, limits, passwords, and the end of the server.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "these commands do not end by themselves")]
#[path = "../folder/mod.rs"]
mod folder;
mod slow_readers;
mod started;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use folder::Folder;
use ordain::Database;
use ordain::sql::tls::server_config;
use ordain::sql::{Listener, ListenerOptions};
use ordain_db::data::{ColumnType, DataError, Table};
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use ordain_sql::catalog::Definition;
use ordain_sql::catalog::user_definition;
use ordain_sql::execute::Inputs;
use ordain_sql::plan::{Action, DefinitionChange, Plan};
use ordain_sql::procedure::{SqlProcedure, Step, Steps};
use ordain_sql::protocol::scram::Verifier;
use postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutIter};
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{FromSqlOwned, ToSql, Type};
use postgres::{Client, Config, NoTls, SimpleQueryMessage};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// How long what must come soon may take.
const SOON: Duration = Duration::from_secs(20);

/// A database in memory, of two partitions, that listens on a port of its own.
struct Served {
    listener: Listener,
    database: Database,
}

impl Served {
    fn start() -> Served {
        Served::start_with(ListenerOptions::default())
    }

    fn start_with(options: ListenerOptions) -> Served {
        let database = Database::builder().sql().unwrap().partitions(2).open().unwrap();
        Served::over(database, options)
    }

    fn over(database: Database, options: ListenerOptions) -> Served {
        let listener = Listener::start(TcpListener::bind("127.0.0.1:0").unwrap(), options).unwrap();
        listener.open(database.sql().unwrap().unwrap());
        Served { listener, database }
    }

    fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.address().port()).user("ordain").dbname("ordain");
        config
    }

    fn connect(&self) -> Client {
        self.config().connect(NoTls).unwrap()
    }

    /// Sets a password as the statement would.
    fn set_password(&self, user: &str, password: &str) {
        let verifier = Verifier::from_password(password, b"salt of 16 bytes", 4096).to_text();
        let definition = Definition::User { object: 16_384, verifier: Some(verifier) }.encode();
        let change = DefinitionChange {
            schema: String::new(),
            name: user_definition(user),
            definition: Some(definition),
        };
        let action = Action::Define { changes: vec![change], fill: Vec::new(), sequences: Vec::new() };
        let plan = Plan::of(action);
        let procedure = self.database.handle::<SqlProcedure>("sql").unwrap();
        let steps = Steps::from(Step { plan: plan.into(), inputs: Inputs::default(), shown: None });
        self.database.call(procedure, &steps).unwrap();
    }

    /// Why a client is refused.
    fn refused(&self, config: &Config) -> SqlState {
        let Err(error) = config.connect(NoTls) else { panic!("it was let in") };
        error.code().cloned().unwrap_or_else(|| panic!("{error}"))
    }
}

fn code(error: &postgres::Error) -> SqlState {
    error.code().cloned().unwrap_or_else(|| panic!("{error}"))
}

fn count(client: &mut Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).unwrap().get(0)
}

#[test]
fn statements_do_what_they_say() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("CREATE TABLE people (id int PRIMARY KEY, name text NOT NULL)").unwrap();
    let inserted =
        client.execute("INSERT INTO people VALUES ($1, $2), ($3, $4)", &[&1_i32, &"Ada", &2_i32, &"Alan"]);
    assert_eq!(inserted.unwrap(), 2);
    let rows = client.query("SELECT id, name FROM people ORDER BY id", &[]).unwrap();
    let rows: Vec<(i32, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(1, "Ada".to_owned()), (2, "Alan".to_owned())]);
    let error = client.execute("INSERT INTO people VALUES (1, 'Grace')", &[]).unwrap_err();
    assert_eq!(code(&error), SqlState::UNIQUE_VIOLATION);
    let error = client.batch_execute("SELECT FROM WHERE").unwrap_err();
    assert_eq!(code(&error), SqlState::SYNTAX_ERROR);
    let messages = client.simple_query("SELECT name FROM people WHERE id = 2").unwrap();
    let names: Vec<&str> = (messages.iter())
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["Alan"]);
    assert_eq!(client.execute("DELETE FROM people WHERE id = $1", &[&1_i32]).unwrap(), 1);
    assert_eq!(count(&mut client, "people"), 1);
}

/// Has a value, and its absence, kept in a column of a type.
fn comes_back<T>(client: &mut Client, data_type: &str, value: T)
where
    T: PartialEq + std::fmt::Debug + ToSql + FromSqlOwned + Sync,
{
    let table = format!("DROP TABLE IF EXISTS one; CREATE TABLE one (id int PRIMARY KEY, v {data_type})");
    client.batch_execute(&table).unwrap();
    client.execute("INSERT INTO one VALUES (1, $1), (2, $2)", &[&value, &None::<T>]).unwrap();
    let rows = client.query("SELECT v FROM one ORDER BY id", &[]).unwrap();
    let found: Vec<Option<T>> = rows.iter().map(|row| row.get(0)).collect();
    let same = client.query_one(&format!("SELECT $1::{data_type}"), &[&value]).unwrap();
    assert_eq!(same.get::<_, T>(0), value, "{data_type}");
    assert_eq!(found, [Some(value), None], "{data_type}");
}

#[test]
fn values_come_back_as_they_were_given() {
    let served = Served::start();
    let mut client = served.connect();
    let moment = SystemTime::UNIX_EPOCH + Duration::new(1_709_251_199, 123_456_000);
    comes_back(&mut client, "boolean", true);
    comes_back(&mut client, "smallint", i16::MIN);
    comes_back(&mut client, "integer", i32::MAX);
    comes_back(&mut client, "bigint", i64::MIN);
    comes_back(&mut client, "real", 1.5_f32);
    comes_back(&mut client, "double precision", 0.1_f64);
    comes_back(&mut client, "text", "Grüße, 世界 'quoted' \\ and\nmore".to_owned());
    comes_back(&mut client, "varchar(10)", "ten at mos".to_owned());
    comes_back(&mut client, "bytea", vec![0_u8, 1, 127, 128, 255]);
    comes_back(&mut client, "timestamp", moment);
    comes_back(&mut client, "timestamptz", moment);
    comes_back(&mut client, "integer[]", vec![Some(1), None, Some(-3)]);
    comes_back(&mut client, "bigint[]", Vec::<i64>::new());
    comes_back(&mut client, "text[]", vec!["a, b".to_owned(), String::new(), "\"".to_owned()]);
    comes_back(&mut client, "double precision[]", vec![0.5, f64::INFINITY]);
}

#[test]
fn rows_are_copied_in_and_out() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, v text)").unwrap();
    let mut rows = client.copy_in("COPY t FROM STDIN").unwrap();
    rows.write_all(b"1\ta\n2\t").unwrap();
    rows.write_all(b"\\N\n").unwrap();
    assert_eq!(rows.finish().unwrap(), 2);
    // What follows gets its own answers.
    assert_eq!(client.execute("INSERT INTO t VALUES ($1, $2)", &[&3, &"c"]).unwrap(), 1);
    let mut text = String::new();
    client.copy_out("COPY t TO STDOUT").unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "1\ta\n2\t\\N\n3\tc\n");
    // A row that is there, one that is none, and a client that gives up.
    for (wrong, state) in
        [("4\td\n1\te\n", SqlState::UNIQUE_VIOLATION), ("4\n", SqlState::BAD_COPY_FILE_FORMAT)]
    {
        let mut rows = client.copy_in("COPY t FROM STDIN").unwrap();
        rows.write_all(wrong.as_bytes()).unwrap();
        assert_eq!(code(&rows.finish().unwrap_err()), state);
        assert_eq!(count(&mut client, "t"), 3);
    }
    client.copy_in("COPY t FROM STDIN").unwrap().write_all(b"4\td\n").unwrap();
    assert_eq!(count(&mut client, "t"), 3);
    // In a block, in binary.
    let mut block = client.transaction().unwrap();
    let types = [Type::INT4, Type::TEXT];
    let writer = block.copy_in("COPY t FROM STDIN (FORMAT binary)").unwrap();
    let mut writer = BinaryCopyInWriter::new(writer, &types);
    writer.write(&[&4, &"d"]).unwrap();
    writer.write(&[&5, &None::<&str>]).unwrap();
    assert_eq!(writer.finish().unwrap(), 2);
    assert_eq!(block.execute("DELETE FROM t WHERE id = 1", &[]).unwrap(), 1);
    block.commit().unwrap();
    let reader = client.copy_out("COPY t TO STDOUT (FORMAT binary)").unwrap();
    let rows = BinaryCopyOutIter::new(reader, &types);
    let rows: Vec<(i32, Option<String>)> = rows.map(|row| Ok((row.get(0), row.get(1)))).collect().unwrap();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(rows, [(2, None), (3, text("c")), (4, text("d")), (5, None)]);
}

#[test]
fn rows_of_all_partitions_come_in_order() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("CREATE TABLE numbers (n int PRIMARY KEY)").unwrap();
    client.batch_execute("INSERT INTO numbers SELECT * FROM generate_series(1, 3000)").unwrap();
    let rows = client.query("SELECT n FROM numbers WHERE n > 10 ORDER BY n LIMIT 500", &[]).unwrap();
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, (11..=510).collect::<Vec<_>>());
    assert_eq!(count(&mut client, "numbers"), 3000);
}

#[test]
fn rows_without_a_primary_key_come_as_they_were_inserted() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("CREATE TABLE numbers (n int)").unwrap();
    for first in (0..60).step_by(3) {
        let values = format!("({}), ({}), ({})", first, first + 1, first + 2);
        client.batch_execute(&format!("INSERT INTO numbers VALUES {values}")).unwrap();
    }
    let rows = client.query("SELECT n FROM numbers", &[]).unwrap();
    let found: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, (0..60).collect::<Vec<_>>());
}

#[test]
fn sessions_at_the_same_time_see_what_has_committed() {
    let served = Served::start();
    let (mut first, mut second) = (served.connect(), served.connect());
    first.batch_execute("CREATE TABLE counters (id int PRIMARY KEY, value int)").unwrap();
    second.batch_execute("INSERT INTO counters VALUES (1, 0)").unwrap();

    let mut block = first.transaction().unwrap();
    block.execute("UPDATE counters SET value = value + 1 WHERE id = 1", &[]).unwrap();
    let read = |client: &mut Client| -> i32 {
        client.query_one("SELECT value FROM counters WHERE id = 1", &[]).unwrap().get(0)
    };
    assert_eq!(read(&mut second), 0, "a block is not seen before it commits");
    block.commit().unwrap();
    assert_eq!(read(&mut second), 1);

    let writers: Vec<_> = (0..4)
        .map(|_| {
            let mut client = served.connect();
            std::thread::spawn(move || {
                for _ in 0..25 {
                    client.execute("UPDATE counters SET value = value + 1 WHERE id = 1", &[]).unwrap();
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    assert_eq!(read(&mut first), 101);
}

/// A session sees what it has defined itself, whoever else looks for newer definitions meanwhile; and its temporary schema ends with it.
#[test]
fn sessions_define_things_of_their_own_at_the_same_time() {
    let folder = Folder::create();
    let database = Database::builder().sql().unwrap().data_directory(&folder.0).open().unwrap();
    let served = Served::over(database, ListenerOptions::default());
    let definers: Vec<_> = (0..8)
        .map(|number| {
            let mut client = served.connect();
            std::thread::spawn(move || {
                client.batch_execute("CREATE TEMP TABLE own (id int)").unwrap();
                for _ in 0..30 {
                    client.batch_execute(&format!("CREATE TABLE own_{number} (id int PRIMARY KEY)")).unwrap();
                    client.batch_execute(&format!("DROP TABLE own_{number}")).unwrap();
                }
            })
        })
        .collect();
    definers.into_iter().for_each(|definer| definer.join().unwrap());
    let mut client = served.connect();
    let of_sessions = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg\\_temp%'";
    soon(|| (client.query_one(of_sessions, &[]).unwrap().get::<_, i64>(0) == 0).then_some(()));
}

#[test]
fn a_statement_can_be_cancelled_and_the_session_goes_on() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("CREATE TABLE numbers (n int PRIMARY KEY)").unwrap();
    client.batch_execute("INSERT INTO numbers SELECT * FROM generate_series(1, 2000)").unwrap();
    let token = client.cancel_token();
    let canceller = std::thread::spawn(move || {
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(250));
            token.cancel_query(NoTls).unwrap();
        }
    });
    let begun = Instant::now();
    let long = "SELECT count(*) FROM numbers a, numbers b, numbers c WHERE a.n + b.n + c.n < 0";
    let error = client.query(long, &[]).unwrap_err();
    assert_eq!(code(&error), SqlState::QUERY_CANCELED);
    assert!(begun.elapsed() < SOON);
    canceller.join().unwrap();
    // The last request may still be on its way, and meet the next statement.
    let counted = loop {
        match client.query_one("SELECT count(*) FROM numbers", &[]) {
            Err(error) if code(&error) == SqlState::QUERY_CANCELED => {}
            counted => break counted.unwrap().get::<_, i64>(0),
        }
    };
    assert_eq!(counted, 2000);
}

#[test]
fn passwords_are_asked_for_once_they_are_set() {
    let served = Served::start();
    served.set_password("ordain", "correct horse");
    assert_eq!(served.refused(served.config().password("battery staple")), SqlState::INVALID_PASSWORD);
    assert_eq!(
        served.refused(served.config().user("nobody").password("correct horse")),
        SqlState::INVALID_PASSWORD
    );
    let mut client = served.config().password("correct horse").connect(NoTls).unwrap();
    client.batch_execute("SELECT 1").unwrap();
}

#[test]
fn users_and_databases_that_are_not_there_are_refused() {
    let served = Served::start();
    let unknown = served.refused(served.config().user("nobody").password("x"));
    assert_eq!(unknown, SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
    assert_eq!(served.refused(served.config().dbname("shop")), SqlState::INVALID_CATALOG_NAME);
}

#[test]
fn one_client_too_many_is_told_so() {
    let served = Served::start_with(ListenerOptions { connections: 2, ..ListenerOptions::default() });
    let (first, mut second) = (served.connect(), served.connect());
    assert_eq!(served.refused(&served.config()), SqlState::TOO_MANY_CONNECTIONS);
    second.batch_execute("SELECT 1").unwrap();
    drop(first);
    let deadline = Instant::now() + SOON;
    while served.config().connect(NoTls).is_err() {
        assert!(Instant::now() < deadline, "the place becomes free");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn whoever_has_not_proved_anything_takes_no_place() {
    let served = Served::start_with(ListenerOptions { connections: 1, ..ListenerOptions::default() });
    served.set_password("ordain", "correct horse");
    let unproved: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address()).unwrap();
            stream.set_read_timeout(Some(SOON)).unwrap();
            stream.write_all(STARTUP).unwrap();
            read_until(&mut stream, b'R');
            stream
        })
        .collect();
    let mut config = served.config();
    config.password("correct horse");
    let mut client = config.connect(NoTls).unwrap();
    assert_eq!(served.refused(&config), SqlState::TOO_MANY_CONNECTIONS);
    client.batch_execute("SELECT 1").unwrap();
    drop(unproved);
}

#[test]
fn whoever_says_nothing_keeps_nobody_out() {
    let served = Served::start_with(ListenerOptions { connections: 4, ..ListenerOptions::default() });
    let mut first = served.connect();
    // More than there are threads for.
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(served.address()).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(1100));
    let mut clients: Vec<Client> = (0..3).map(|_| served.connect()).collect();
    clients.iter_mut().for_each(|client| client.batch_execute("SELECT 1").unwrap());
    // Whoever is known is never cut for that.
    first.batch_execute("SELECT 1").unwrap();
    drop(silent);
}

#[test]
fn who_says_nothing_in_the_beginning_is_cut_off() {
    let options = ListenerOptions { startup_time: Duration::from_millis(200), ..ListenerOptions::default() };
    let served = Served::start_with(options);
    let mut silent = TcpStream::connect(served.address()).unwrap();
    silent.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(silent.read(&mut [0; 16]).unwrap(), 0);
    let mut client = served.connect();
    std::thread::sleep(Duration::from_millis(400));
    client.batch_execute("SELECT 1").unwrap();
}

#[test]
fn a_statement_ends_when_its_time_is_over() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("SET statement_timeout = '50ms'").unwrap();
    let long = "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000) b";
    assert_eq!(code(&client.batch_execute(long).unwrap_err()), SqlState::QUERY_CANCELED);
    assert_eq!(code(&client.batch_execute("SELECT pg_sleep(600)").unwrap_err()), SqlState::QUERY_CANCELED);
    client.batch_execute("SET statement_timeout = 0; SELECT pg_sleep(0.1)").unwrap();
}

/// What a session is told up to its end that says nothing after some statements.
fn end_of_session(served: &Served, statements: &str) -> String {
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let parameters = b"\0\x03\0\0user\0ordain\0database\0ordain\0TimeZone\0Europe/Vienna\0\0";
    stream.write_all(&u32::try_from(parameters.len() + 4).unwrap().to_be_bytes()).unwrap();
    stream.write_all(parameters).unwrap();
    stream.write_all(b"Q").unwrap();
    stream.write_all(&u32::try_from(statements.len() + 5).unwrap().to_be_bytes()).unwrap();
    stream.write_all(format!("{statements}\0").as_bytes()).unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).unwrap();
    let told = String::from_utf8_lossy(&told).into_owned();
    assert!(told.contains("TimeZone\0Europe/Vienna\0"), "the zone that counts is told: {told}");
    told
}

#[test]
fn sessions_that_say_nothing_for_too_long_are_ended() {
    let served = Served::start();
    let told = end_of_session(&served, "SET idle_session_timeout = '20ms'");
    assert!(told.contains("FATAL") && told.contains("57P05"), "{told}");
    let told = end_of_session(&served, "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '20ms'");
    assert!(told.contains("FATAL") && told.contains("25P03"), "{told}");
    let idle_time = Some(Duration::from_millis(20));
    let served = Served::start_with(ListenerOptions { idle_time, ..ListenerOptions::default() });
    let told = end_of_session(&served, "SELECT 1");
    assert!(told.contains("FATAL") && told.contains("57P05"), "{told}");
}

#[test]
fn whoever_speaks_another_protocol_is_told_so() {
    let served = Served::start();
    let mut stranger = TcpStream::connect(served.address()).unwrap();
    stranger.set_read_timeout(Some(SOON)).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stranger.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.contains("FATAL") && answer.contains("08P01"), "{answer}");
}

#[test]
fn before_the_database_is_there_clients_are_told_to_wait() {
    let database = Database::builder().sql().unwrap().open().unwrap();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = Listener::start(socket, ListenerOptions::default()).unwrap();
    let served = Served { listener, database };
    assert_eq!(served.refused(&served.config()), SqlState::CANNOT_CONNECT_NOW);
    served.listener.open(served.database.sql().unwrap().unwrap());
    served.connect().batch_execute("SELECT 1").unwrap();
}

#[test]
fn rows_of_what_was_dropped_are_deleted() {
    let served = Served::start();
    let mut client = served.connect();
    client
        .batch_execute("CREATE TABLE many (n int PRIMARY KEY); CREATE TABLE few (n int PRIMARY KEY)")
        .unwrap();
    for first in (0..20_000).step_by(2_500) {
        let insert = format!("INSERT INTO many SELECT generate_series({first}, {})", first + 2_499);
        client.batch_execute(&insert).unwrap();
    }
    client.batch_execute("INSERT INTO few SELECT generate_series(1, 2_500)").unwrap();
    let rows = || -> u64 { served.database.statuses(false).unwrap().iter().map(|status| status.rows).sum() };
    let wait = |left: u64| {
        let deadline = Instant::now() + SOON;
        while rows() > left {
            assert!(Instant::now() < deadline, "{} rows are there, not {left}", rows());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let before = rows();
    client.batch_execute("DROP TABLE many").unwrap();
    // While these are being deleted, there is more to delete.
    wait(before - 1_000);
    client.batch_execute("DROP TABLE few").unwrap();
    wait(before - 22_500);
}

#[test]
fn the_end_of_the_server_is_told_to_its_clients() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("SELECT 1").unwrap();
    assert_eq!(served.listener.close(SOON), 0, "no connection is left");
    let error = client.batch_execute("SELECT 1").unwrap_err();
    // The driver may have seen the end of the connection before what was said in it.
    assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error}");
    let Served { listener, database } = served;
    drop(listener);
    database.close().unwrap();
}

#[test]
fn what_was_done_is_counted() {
    let served = Served::start();
    let mut client = served.connect();
    client.batch_execute("SELECT 1").unwrap();
    client.batch_execute("SELECT FROM WHERE").unwrap_err();
    let text = served.listener.metrics().text();
    for line in ["ordain_sql_connections 1", "ordain_sql_errors_total{class=\"42\"} 1"] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

/// A file of the certificate for localhost that clients of these tests trust.
fn pem(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

/// Begins TLS as libpq does, trusting that certificate.
fn encrypted(address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(b"\0\0\0\x08\x04\xd2\x16\x2f").unwrap();
    let mut answer = [0];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"S");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(pem("certificate.pem")).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

/// The first message of a client that knows version 3.2 of the protocol.
const STARTUP: &[u8; 0x25] = b"\0\0\0\x25\0\x03\0\x02user\0ordain\0database\0ordain\0\0";

/// Reads messages up to one of a type; their bodies by their types.
fn read_until(stream: &mut impl Read, last: u8) -> Vec<(u8, Vec<u8>)> {
    let mut messages = Vec::new();
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut body = vec![0; length - 4];
        stream.read_exact(&mut body).unwrap();
        messages.push((head[0], body));
        if head[0] == last {
            return messages;
        }
    }
}

#[test]
fn a_client_that_asks_for_tls_gets_it() {
    let config = server_config(&pem("certificate.pem"), &pem("key.pem")).unwrap();
    let served = Served::start_with(ListenerOptions { tls: Some(config), ..ListenerOptions::default() });
    let mut stream = encrypted(served.address());
    stream.write_all(STARTUP).unwrap();
    let welcome = read_until(&mut stream, b'Z');
    let key = welcome.iter().find(|(kind, _)| *kind == b'K').unwrap();
    assert_eq!(key.1.len(), 4 + 32, "version 3.2 has room for a long secret");
    stream.write_all(b"Q\0\0\0\x0dSELECT 7\0").unwrap();
    let answer = read_until(&mut stream, b'Z');
    assert!(answer.contains(&(b'D', b"\0\x01\0\0\0\x017".to_vec())), "{answer:?}");
    stream.write_all(b"X\0\0\0\x04").unwrap();
    assert_eq!(stream.read(&mut [0; 16]).unwrap(), 0, "TLS is ended in good order");
    // Who does not ask is served without.
    served.connect().batch_execute("SELECT 1").unwrap();
}

/// Adds to the number that a name has.
struct Add(Table);

impl Procedure for Add {
    type Arguments = (String, i64);
    type Output = (i64, bool);

    fn name(&self) -> &str {
        "add"
    }

    fn declare(
        &self,
        (name, _): &(String, i64),
        footprint: &mut Declaration<'_>,
    ) -> Result<Declared, DataError> {
        footprint.update(&self.0.key((name.as_str(),))?)?;
        Ok(Declared::Complete)
    }

    fn run(
        &self,
        (name, number): &(String, i64),
        transaction: &mut Transaction<'_>,
    ) -> Result<(i64, bool), Stop> {
        let key = self.0.key((name.as_str(),))?;
        let before = match transaction.get(&key)? {
            Some(row) => Some(row.int64("number")?),
            None => None,
        };
        let sum = before.unwrap_or(0) + number;
        if sum < 0 {
            return Err(Stop::abort(format!("{name} would be below zero")));
        }
        transaction.put(&self.0, &key, (sum,))?;
        Ok((sum, before.is_none()))
    }
}

#[test]
fn procedures_of_the_program_are_called_with_sql() {
    let mut builder = Database::builder().sql().unwrap();
    let table =
        Table::builder("numbers").column("name", ColumnType::Text).column("number", ColumnType::Int64);
    let table = builder.table(table.primary_key(&["name"])).unwrap();
    builder.procedure(Add(table)).unwrap();
    let database = builder.open().unwrap();
    let served = Served::over(database, ListenerOptions::default());

    let connected: Vec<Client> = (0..4).map(|_| served.connect()).collect();
    let clients = connected.into_iter().map(|mut client| {
        std::thread::spawn(move || {
            let add = client.prepare("CALL add('a', $1)").unwrap();
            for _ in 0..25 {
                client.query(&add, &[&2_i64]).unwrap();
            }
        })
    });
    clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().unwrap());

    let mut client = served.connect();
    let row = client.query_one("SELECT * FROM add($1, $2)", &[&"a", &1_i64]).unwrap();
    assert_eq!((row.get::<_, i64>("column1"), row.get::<_, bool>("column2")), (201, false));
    let refused = client.execute("CALL add($1, -5)", &[&"b"]).unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::RAISE_EXCEPTION));
    assert!(refused.as_db_error().unwrap().message().contains("b would be below zero"));
    let mut block = client.transaction().unwrap();
    let refused = block.execute("CALL add('a', 1)", &[]).unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::ACTIVE_SQL_TRANSACTION));
}

#[test]
fn the_past_is_read_with_the_definitions_of_then() {
    let history = Some(Duration::from_secs(3600));
    let served = Served::start_with(ListenerOptions { history, ..ListenerOptions::default() });
    let mut client = served.connect();
    client.batch_execute("CREATE TABLE t (id int PRIMARY KEY, n int)").unwrap();
    client.batch_execute("INSERT INTO t SELECT id, 0 FROM generate_series(1, 100) id").unwrap();
    // A state is kept every second.
    let newest = "SELECT sum(n), count(*) FROM t AS OF SYSTEM TIME '-0 seconds'";
    type Shown = Result<Vec<(i64, i64)>, SqlState>;
    let shows = |client: &mut Client, wanted: &Shown| {
        let begun = Instant::now();
        loop {
            let rows = client.query(newest, &[]);
            let rows = rows.map(|rows| rows.iter().map(|row| (row.get(0), row.get(1))).collect());
            if *wanted == rows.map_err(|error| error.code().unwrap().clone()) {
                return;
            }
            assert!(begun.elapsed() < SOON, "no state is kept");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    shows(&mut client, &Ok(vec![(0, 100)]));
    let then: String = client.query_one("SELECT now()::text", &[]).unwrap().get(0);
    client.batch_execute("UPDATE t SET n = 1; DELETE FROM t WHERE id > 50").unwrap();
    shows(&mut client, &Ok(vec![(50, 50)]));
    client.batch_execute("DROP TABLE t").unwrap();
    shows(&mut client, &Err(SqlState::UNDEFINED_TABLE));
    let past = format!("SELECT count(*), sum(n) FROM t AS OF SYSTEM TIME '{then}'");
    let row = client.query_one(&past, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (100, 0));
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute(&format!("SET LOCAL as_of = '{then}'")).unwrap();
    let row = transaction.query_one("SELECT n FROM t WHERE id = $1", &[&99]).unwrap();
    assert_eq!(row.get::<_, i32>(0), 0);
    transaction.commit().unwrap();
    let error = client.query(&past.replace(&then, "2020-01-01"), &[]).unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::SNAPSHOT_TOO_OLD));
}

/// Asks until an answer is there: what others do is seen when they do it.
fn soon<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn sessions_see_and_end_each_other() {
    let served = Served::start();
    let (mut watcher, mut other) = (served.connect(), served.connect());
    other.batch_execute("SET application_name = 'the other'; BEGIN; SELECT 1 AS one").unwrap();
    let other_pid: i32 = other.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let ask = "SELECT state, query, usename, wait_event, xact_start <= now() AS began FROM pg_stat_activity \
               WHERE application_name = 'the other' AND pid = $1";
    let row = watcher.query_one(ask, &[&other_pid]).unwrap();
    assert_eq!(row.get::<_, &str>(0), "idle in transaction");
    assert_eq!(row.get::<_, &str>(1), "SELECT pg_backend_pid()");
    assert_eq!(row.get::<_, &str>(2), "ordain");
    assert_eq!(row.get::<_, &str>(3), "ClientRead");
    assert!(row.get::<_, bool>(4));
    let own =
        watcher.query_one("SELECT state, query FROM pg_stat_activity WHERE pid = pg_backend_pid()", &[]);
    let own = own.unwrap();
    assert_eq!(own.get::<_, &str>(0), "active");
    assert!(own.get::<_, &str>(1).starts_with("SELECT state, query"));
    other.batch_execute("ROLLBACK").unwrap();
    // One that sleeps is interrupted, and goes on.
    let sleeper = std::thread::spawn(move || {
        let error = other.batch_execute("SELECT pg_sleep(600)").unwrap_err();
        (code(&error), other)
    });
    let ask = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = $1";
    assert!(soon(|| watcher.query_opt(ask, &[&other_pid]).unwrap()).get::<_, bool>(0));
    let (why, mut other) = sleeper.join().unwrap();
    assert_eq!(why, SqlState::QUERY_CANCELED);
    assert_eq!(count(&mut other, "pg_stat_activity"), 2);
    // One that is ended is gone.
    let ask = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
    assert!(watcher.query_one(ask, &[]).unwrap().get::<_, bool>(0));
    assert!(other.batch_execute("SELECT 1").is_err());
    soon(|| (count(&mut watcher, "pg_stat_activity") == 1).then_some(()));
    assert!(!watcher.query_one("SELECT pg_cancel_backend($1)", &[&other_pid]).unwrap().get::<_, bool>(0));
}

#[test]
fn one_that_is_ended_within_a_statement_hears_so_and_nothing_else() {
    let served = Served::start();
    let mut watcher = served.connect();
    let told = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| end_of_session(&served, "SELECT pg_sleep(600)"));
        let ask = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        assert!(soon(|| watcher.query_opt(ask, &[]).unwrap()).get::<_, bool>(0));
        sleeper.join().unwrap()
    });
    assert!(told.contains("FATAL") && told.contains("57P01") && !told.contains("ERROR"), "{told}");
    assert_eq!(told.matches("Z\0\0\0\u{5}").count(), 1, "it is ready once, in the beginning: {told:?}");
}

#[test]
fn one_whose_client_takes_nothing_can_be_ended() {
    let served = Served::start();
    let mut watcher = served.connect();
    let mut stream = TcpStream::connect(served.address()).unwrap();
    stream.write_all(STARTUP).unwrap();
    let text = b"SELECT repeat('x', 1000) FROM generate_series(1, 100000)\0";
    stream.write_all(b"Q").unwrap();
    stream.write_all(&u32::try_from(text.len() + 4).unwrap().to_be_bytes()).unwrap();
    stream.write_all(text).unwrap();
    let others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE 'SELECT repeat%'";
    soon(|| watcher.query_opt(&format!("SELECT pid {others}"), &[]).unwrap());
    // Until what lies between is full.
    std::thread::sleep(Duration::from_millis(300));
    let ended = watcher.query_one(&format!("SELECT pg_terminate_backend(pid) {others}"), &[]).unwrap();
    assert!(ended.get::<_, bool>(0));
    soon(|| (count(&mut watcher, "pg_stat_activity") == 1).then_some(()));
}

#[test]
fn nodes_are_seen_as_tables() {
    let served = Served::start();
    let (mut watcher, mut other) = (served.connect(), served.connect());
    watcher.batch_execute("CREATE TABLE t (k int PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3)").unwrap();
    let ask = "SELECT count(*), bool_and(here AND alive), sum(rows)::int8, min(role), max(lag_epochs) < 1000 \
               FROM ordain.partitions";
    let row = watcher.query_one(ask, &[]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, bool>(1)), (2, true));
    assert!(row.get::<_, i64>(2) >= 3);
    assert_eq!(row.get::<_, &str>(3), "in memory");
    assert!(row.get::<_, bool>(4));
    let replicas =
        watcher.query_one("SELECT replica, here, partitions, alive FROM ordain.replicas", &[]).unwrap();
    assert_eq!((replicas.get::<_, i32>(0), replicas.get::<_, bool>(1)), (0, true));
    assert_eq!((replicas.get::<_, i32>(2), replicas.get::<_, i32>(3)), (2, 2));
    assert_eq!(count(&mut watcher, "ordain.transactions"), 0);
    assert_eq!(count(&mut watcher, "ordain.locks"), 0);
    // Those of the statements before are closed by and by. A block that has read keeps a snapshot, on both partitions.
    soon(|| (count(&mut watcher, "ordain.snapshots") == 0).then_some(()));
    other.batch_execute("BEGIN; SELECT count(*) FROM t").unwrap();
    soon(|| (count(&mut watcher, "ordain.snapshots") == 2).then_some(()));
    let ask = "SELECT min(age) >= interval '0' FROM ordain.snapshots";
    assert!(watcher.query_one(ask, &[]).unwrap().get::<_, bool>(0));
    other.batch_execute("COMMIT").unwrap();
    soon(|| (count(&mut watcher, "ordain.snapshots") == 0).then_some(()));
}
