//! Clients that send anything, before and after they are let in: the server neither fails nor grows, and their neighbour gets right answers.
//!
//! A run is short. `ORDAIN_ATTACK_MESSAGES=1000000 cargo test --package ordain --test sql_attack` makes it long.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and a long run tells what it did"
)]

#[allow(dead_code, reason = "other tests need the rest")]
#[path = "../../sql/tests/random/mod.rs"]
mod random;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ordain::Database;
use ordain::sql::{Listener, ListenerOptions};
use postgres::{Client, Config, NoTls};
use random::{BODIES, Generator, STARTUPS, message};

/// How many messages are sent if nobody says otherwise.
const MESSAGES: u64 = 60_000;

/// How many connections send them at a time.
const ATTACKERS: u64 = 3;

/// Most messages of one connection.
const MESSAGES_PER_CONNECTION: usize = 60;

/// After how many messages what the process has is known: what it keeps for all, it has by then.
const MESSAGES_WARM: u64 = 20_000;

/// What the process may grow by from then on.
const GROWTH_BYTES_MAX: u64 = 8 << 20;

/// Who is asked for a password, so that it is not let in.
const GUARDED: &str = "guarded";

/// How long an answer may take.
const SOON: Duration = Duration::from_secs(60);

/// What attackers say, some of it with mistakes.
const STATEMENTS: &[&str] = &[
    "CREATE TABLE IF NOT EXISTS attacked (id int PRIMARY KEY, t text, n numeric(8,2), at timestamptz DEFAULT now())",
    "CREATE INDEX IF NOT EXISTS attacked_t ON attacked (t)",
    "INSERT INTO attacked VALUES (1, 'one', 1.5), (2, 'two', 2.5) ON CONFLICT (id) DO UPDATE SET n = attacked.n + 1",
    "INSERT INTO attacked (id, t) SELECT i, repeat('x', i) FROM generate_series(3, 40) AS s (i) ON CONFLICT DO NOTHING",
    "UPDATE attacked SET n = n * -1, t = t || '!' WHERE id = 1 RETURNING *",
    "UPDATE attacked SET t = $1 WHERE id = $2",
    "DELETE FROM attacked WHERE id > 20",
    "SELECT * FROM attacked WHERE id = $1",
    "SELECT a.id, count(*), sum(b.n) OVER (ORDER BY a.id) FROM attacked a JOIN attacked b USING (t) GROUP BY a.id, b.n",
    "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < 50) SELECT sum(i) FROM r",
    "SELECT '{\"a\": [1, 2, {\"b\": null}]}'::json -> 'a' ->> 2, ARRAY[1, 2, 3][2], DATE '2024-02-29' + INTERVAL '1 year'",
    "SELECT 9223372036854775807 + 1, 1 / 0, 'abc'::int, 10.0 ^ 1000",
    "SELECT regexp_replace('aaaaaaaaaaaaaaaaaaaa', '(a+)+$', 'b'), to_char(1234.5, 'FM9G999D99'), format('%s %I', 1, 'x y')",
    "BEGIN",
    "BEGIN READ ONLY",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "COMMIT",
    "ROLLBACK",
    "DECLARE c CURSOR FOR SELECT id FROM attacked",
    "FETCH 3 FROM c",
    "COPY attacked FROM STDIN",
    "COPY attacked TO STDOUT WITH (FORMAT csv, HEADER)",
    "PREPARE p (int) AS SELECT $1 + 1",
    "EXECUTE p (1)",
    "EXPLAIN ANALYZE SELECT * FROM attacked ORDER BY t DESC LIMIT 3",
    "SET search_path = public, \"a b\"",
    "SHOW ALL",
    "SELECT relname, pg_get_indexdef(oid) FROM pg_class WHERE relkind = 'i'",
    "TRUNCATE attacked",
    "SELECT ((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))",
    "",
];

/// A statement as a message: as it is, or to be prepared.
fn statement(generator: &mut Generator) -> (u8, Vec<u8>) {
    let mut text = generator.pick(STATEMENTS).as_bytes().to_vec();
    if generator.one_in(4) {
        generator.mutate(&mut text);
    }
    let named = generator.one_in(2);
    match generator.below(3) {
        0 => (b'Q', [&text[..], b"\0"].concat()),
        _ => (b'P', [if named { &b"s\0"[..] } else { b"\0" }, &text, b"\0\0\0"].concat()),
    }
}

/// The messages of a connection, and how many they are.
fn messages(generator: &mut Generator) -> (Vec<u8>, u64) {
    let mut stream = Vec::new();
    let count = 1 + generator.below(MESSAGES_PER_CONNECTION);
    for _ in 0..count {
        let (kind, mut body) = if generator.one_in(2) {
            statement(generator)
        } else {
            let (kind, body) = BODIES[generator.below(BODIES.len())];
            // One that takes its leave says nothing more.
            (if kind == b'X' && !generator.one_in(10) { b'S' } else { kind }, body.to_vec())
        };
        if generator.one_in(4) {
            generator.mutate(&mut body);
        }
        let mut bytes = message(kind, &body);
        if generator.one_in(50) {
            generator.mutate(&mut bytes);
        }
        stream.extend(bytes);
    }
    (stream, count as u64)
}

/// Sends all of it, and reads to the end what comes back.
fn exchange(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut answers = Vec::new();
    // The server may have ended the connection before all was said.
    if stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write)).is_err() {
        return answers;
    }
    match stream.read_to_end(&mut answers) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("no end after {SOON:?}: {error}"),
        _ => answers,
    }
}

/// How a user's connection begins.
fn startup(user: &str) -> Vec<u8> {
    let parameters = [b"\0\x03\0\0user\0", user.as_bytes(), b"\0database\0ordain\0\0"].concat();
    [&(parameters.len() as u32 + 4).to_be_bytes()[..], &parameters].concat()
}

/// The next message; `None` at the end.
fn next(stream: &mut TcpStream) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).ok()?;
    let [kind, length @ ..] = head;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body).ok()?;
    Some((kind, body))
}

/// What the user whom a password guards says, who does not know it: as far as the server goes on, in good form or not; the number of messages.
fn guess(generator: &mut Generator, address: SocketAddr, reached: &AtomicU64) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(&startup(GUARDED)).unwrap();
    let (kind, methods) = next(&mut stream).unwrap();
    assert!(
        kind == b'R' && methods.starts_with(b"\0\0\0\x0a"),
        "no password is asked for: {kind} {methods:?}"
    );
    let maybe_wrong = |generator: &mut Generator, mut body: Vec<u8>| {
        if generator.one_in(2) {
            generator.mutate(&mut body);
        }
        message(b'p', &body)
    };
    let first = b"n,,n=,r=rOprNGfwEbeRWgbNEkqO";
    let first = [b"SCRAM-SHA-256\0", &(first.len() as u32).to_be_bytes()[..], first].concat();
    let first = maybe_wrong(generator, first);
    // The server may end the connection at any time from here on.
    let _ = stream.write_all(&first);
    let mut count = 2;
    if let Some((b'R', said)) = next(&mut stream) {
        reached.fetch_add(1, Ordering::Relaxed);
        let said = String::from_utf8(said[4..].to_vec()).unwrap();
        let nonce = said.split(',').find(|part| part.starts_with("r=")).unwrap();
        let last = format!("c=biws,{nonce},p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts3QKXHUMRAVYKaBuI=");
        let last = maybe_wrong(generator, last.into_bytes());
        let (further, more) = messages(generator);
        let _ = stream.write_all(&[last, further].concat());
        count += 1 + more;
    }
    let _ = stream.shutdown(Shutdown::Write);
    while let Some((kind, body)) = next(&mut stream) {
        let is_refusal = kind == b'E' && !body.windows(5).any(|part| part == b"XX000");
        assert!(is_refusal, "{kind} {}", String::from_utf8_lossy(&body));
    }
    count
}

/// One connection; the number of messages.
fn attack(generator: &mut Generator, address: SocketAddr, reached: &AtomicU64) -> u64 {
    if generator.one_in(10) {
        return guess(generator, address, reached);
    }
    let (stream, count) = messages(generator);
    let is_let_in = !generator.one_in(4);
    let mut start = if is_let_in { startup("ordain") } else { generator.pick(STARTUPS).to_vec() };
    if !is_let_in {
        generator.mutate(&mut start);
    }
    let answers = exchange(address, &[&start[..], &stream].concat());
    let is_mistake = answers.windows(5).any(|part| part == b"XX000");
    assert!(!is_mistake, "a mistake of the server after {stream:?}\n{}", String::from_utf8_lossy(&answers));
    if is_let_in {
        check_frames(&answers);
    }
    count + 1
}

/// Whatever comes is made of whole messages.
fn check_frames(mut answers: &[u8]) {
    while let [kind, a, b, c, d, rest @ ..] = answers {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        assert!(kind.is_ascii_alphanumeric() && length >= 4, "a message {kind} of {length} bytes");
        // A connection that was reset may have lost the end.
        answers = rest.get(length - 4..).unwrap_or_default();
    }
}

/// Changes and reads its own rows, which nobody else does.
fn neighbour(client: &mut Client, attacked: &AtomicBool) -> u64 {
    client.batch_execute("CREATE TABLE quiet (id int PRIMARY KEY, n bigint NOT NULL)").unwrap();
    client.batch_execute("INSERT INTO quiet SELECT i, 0 FROM generate_series(0, 9) AS s (i)").unwrap();
    let update = client.prepare("UPDATE quiet SET n = n + id WHERE id = $1 RETURNING n").unwrap();
    let mut rows: Vec<(i32, i64)> = (0..10).map(|id| (id, 0)).collect();
    let mut rounds = 0;
    while attacked.load(Ordering::Relaxed) {
        let row = &mut rows[rounds as usize % 10];
        row.1 += i64::from(row.0);
        let changed: i64 = client.query_one(&update, &[&row.0]).unwrap().get(0);
        assert_eq!(changed, row.1);
        let found = client.query("SELECT id, n FROM quiet ORDER BY id", &[]).unwrap();
        let found: Vec<(i32, i64)> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(found, rows);
        rounds += 1;
    }
    rounds
}

/// Bytes of memory that the process has, where the system tells.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
    1024 * kilobytes.unwrap_or(0_u64)
}

#[test]
fn attackers_harm_nobody() {
    let wanted = std::env::var("ORDAIN_ATTACK_MESSAGES").map_or(MESSAGES, |number| number.parse().unwrap());
    let database = Database::builder().sql().unwrap().partitions(2).open().unwrap();
    let listener =
        Listener::start(TcpListener::bind("127.0.0.1:0").unwrap(), ListenerOptions::default()).unwrap();
    listener.open(database.sql().unwrap().unwrap());
    let address = listener.address();
    let (sent, reached, attacked) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(true));
    let mut client = Config::new()
        .host("127.0.0.1")
        .port(address.port())
        .user("ordain")
        .dbname("ordain")
        .connect(NoTls)
        .unwrap();
    client.batch_execute(&format!("CREATE USER {GUARDED} PASSWORD 'correct horse'")).unwrap();
    let (rounds, growth) = std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| neighbour(&mut client, &attacked));
        let mut generators: Vec<Generator> = (0..ATTACKERS).map(Generator).collect();
        // Both times all connections have ended, but for their threads.
        let [warm, end] = [MESSAGES_WARM.min(wanted / 2), wanted].map(|wanted| {
            let attack_on = |generator: &mut Generator| {
                while sent.load(Ordering::Relaxed) < wanted {
                    sent.fetch_add(attack(generator, address, &reached), Ordering::Relaxed);
                }
            };
            std::thread::scope(|attackers| {
                for generator in &mut generators {
                    attackers.spawn(|| attack_on(generator));
                }
            });
            resident()
        });
        attacked.store(false, Ordering::Relaxed);
        (neighbour.join().unwrap(), end.saturating_sub(warm))
    });
    assert!(rounds > 0, "the neighbour was not served");
    assert!(reached.into_inner() > 0, "nobody came as far as to prove a password");
    assert!(growth < GROWTH_BYTES_MAX, "the process grew by {growth} bytes");
    println!("{} messages, {rounds} rounds of the neighbour, {growth} bytes more", sent.into_inner());
    let deadline = Instant::now() + SOON;
    while !listener.metrics().text().lines().any(|line| line == "ordain_sql_connections 1") {
        assert!(Instant::now() < deadline, "connections are left\n{}", listener.metrics().text());
        std::thread::sleep(Duration::from_millis(20));
    }
}
