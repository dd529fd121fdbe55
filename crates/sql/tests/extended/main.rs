//! The extended protocol: prepared statements, portals, and runs of messages up to `Sync`.

mod pipelines;
#[path = "../support/mod.rs"]
mod support;

use bytes::Bytes;
use ordain_db::engine::EngineKind;
use ordain_sql::error::{SqlError, SqlState};
use ordain_sql::protocol::Format;
use ordain_sql::protocol::frontend::{Frontend, Target};
use support::{World, told};

/// A session that takes messages.
struct Client {
    world: World,
    name: &'static str,
}

impl Client {
    fn new() -> Client {
        Client { world: World::new(EngineKind::CalvinVll, 2), name: "a" }
    }

    fn send(&mut self, message: Frontend) -> String {
        told(&self.world.send(self.name, message))
    }

    fn query(&mut self, text: &str) -> String {
        self.send(Frontend::Query(text.to_owned()))
    }

    fn parse(&mut self, name: &str, query: &str) -> String {
        self.send(Frontend::Parse {
            name: name.to_owned(),
            query: query.to_owned(),
            parameter_types: Vec::new(),
        })
    }

    fn bind(&mut self, portal: &str, statement: &str, parameters: &[Option<&str>]) -> String {
        let owned = |text: &&str| Bytes::copy_from_slice(text.as_bytes());
        self.send(Frontend::Bind {
            portal: portal.to_owned(),
            statement: statement.to_owned(),
            parameter_formats: Vec::new(),
            parameters: parameters.iter().map(|parameter| parameter.as_ref().map(owned)).collect(),
            result_formats: Vec::new(),
        })
    }

    fn execute(&mut self, portal: &str, max_rows: u32) -> String {
        self.send(Frontend::Execute { portal: portal.to_owned(), max_rows })
    }

    fn sync(&mut self) -> String {
        self.send(Frontend::Sync)
    }

    /// Prepares, binds and executes a statement, without `Sync`.
    fn run(&mut self, query: &str) -> String {
        let mut said = self.parse("", query);
        said += &self.bind("", "", &[]);
        said += &self.execute("", 0);
        said
    }
}

fn with_table() -> Client {
    let mut client = Client::new();
    assert_eq!(client.query("CREATE TABLE t (id int PRIMARY KEY, v text, n bigint)"), "CREATE TABLE\n");
    assert_eq!(
        client.query("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', NULL)"),
        "INSERT 0 3\n"
    );
    client
}

#[test]
fn parameters_as_text_and_described() {
    let mut client = with_table();
    assert_eq!(client.parse("s", "SELECT v, n FROM t WHERE id = $1 AND n > $2"), "");
    let described = client.send(Frontend::Describe { kind: Target::Statement, name: "s".into() });
    assert_eq!(described, "parameters 23 20\n(v text, n bigint)\n");
    client.bind("p", "s", &[Some("2"), Some("5")]);
    assert_eq!(
        client.send(Frontend::Describe { kind: Target::Portal, name: "p".into() }),
        "(v text, n bigint)\n"
    );
    client.execute("p", 0);
    assert_eq!(client.sync(), "b | 20\nSELECT 1\n");
    client.bind("", "s", &[Some("2"), None]);
    client.execute("", 0);
    assert_eq!(client.sync(), "SELECT 0\n");
    assert!(client.bind("", "s", &[Some("x"), None]).starts_with("ERROR 22P02"));
    assert_eq!(client.sync(), "");
    assert!(client.bind("", "s", &[Some("2")]).starts_with("ERROR 08P01"));
    assert_eq!(client.sync(), "");
}

#[test]
fn parameters_of_literals_in_a_list_are_of_their_columns() {
    let mut client = with_table();
    client.parse("s", "INSERT INTO t SELECT $1, $2, $3 WHERE NOT EXISTS (SELECT 1 FROM t WHERE id = $1)");
    let described = client.send(Frontend::Describe { kind: Target::Statement, name: "s".into() });
    assert_eq!(described, "parameters 23 25 20\n(no data)\n");
    client.parse("u", "SELECT id FROM t UNION SELECT $1");
    let described = client.send(Frontend::Describe { kind: Target::Statement, name: "u".into() });
    assert_eq!(described, "parameters 23\n(id integer)\n");
}

#[test]
fn parameters_and_results_in_binary() {
    let mut client = with_table();
    client.parse("", "SELECT n FROM t WHERE id = $1");
    let bound = client.send(Frontend::Bind {
        portal: String::new(),
        statement: String::new(),
        parameter_formats: vec![Format::Binary],
        parameters: vec![Some(Bytes::copy_from_slice(&2_i32.to_be_bytes()))],
        result_formats: vec![Format::Binary],
    });
    assert_eq!(bound, "");
    client.execute("", 0);
    let sent = client.world.send("a", Frontend::Sync);
    let value = 20_i64.to_be_bytes();
    assert!(sent.windows(value.len()).any(|part| part == value));
    let wrong = client.send(Frontend::Bind {
        portal: String::new(),
        statement: String::new(),
        parameter_formats: vec![Format::Binary],
        parameters: vec![Some(Bytes::from_static(b"abc"))],
        result_formats: Vec::new(),
    });
    assert!(wrong.starts_with("ERROR 22P03"), "{wrong}");
    client.sync();
}

#[test]
fn portals_give_some_rows_at_a_time() {
    let mut client = with_table();
    client.query("BEGIN");
    client.parse("", "SELECT id FROM t ORDER BY id");
    client.bind("p", "", &[]);
    assert_eq!(client.execute("p", 2), "1\n2\n(suspended)\n");
    assert_eq!(client.sync(), "[in block]\n");
    assert_eq!(client.execute("p", 2), "3\nSELECT 1\n");
    assert_eq!(client.execute("p", 2), "SELECT 0\n");
    client.bind("all", "", &[]);
    assert_eq!(
        client.execute("all", 3),
        "1\n2\n3\n(suspended)\n",
        "as PostgreSQL, it has not looked for a fourth"
    );
    assert_eq!(client.execute("all", 3), "SELECT 0\n");
    assert_eq!(client.sync(), "[in block]\n");
    client.query("DECLARE c CURSOR FOR SELECT 1");
    client.send(Frontend::Close { kind: Target::Portal, name: "c".into() });
    assert_eq!(client.sync(), "[in block]\n");
    assert!(client.query("FETCH c").starts_with("ERROR 34000"), "a cursor is closed as a portal is");
    client.query("ROLLBACK");
    assert!(client.execute("p", 0).is_empty());
    assert!(client.sync().starts_with("ERROR 34000"));
}

#[test]
fn a_named_statement_is_there_once() {
    let mut client = with_table();
    client.parse("s", "SELECT 1");
    assert!(client.parse("s", "SELECT 2").starts_with("ERROR 42P05"));
    client.sync();
    client.send(Frontend::Close { kind: Target::Statement, name: "s".into() });
    assert_eq!(client.parse("s", "SELECT 2"), "");
    assert_eq!(client.parse("", "SELECT 3"), "");
    assert_eq!(client.parse("", "SELECT 4"), "");
    assert!(client.bind("", "none", &[]).starts_with("ERROR 26000"));
    client.sync();
    assert!(client.parse("", "SELECT 1; SELECT 2").starts_with("ERROR 42601"));
    client.sync();
    client.run("");
    assert_eq!(client.sync(), "(empty)\n");
}

#[test]
fn after_an_error_messages_are_skipped_up_to_sync() {
    let mut client = with_table();
    client.run("INSERT INTO t VALUES (4, 'd', 0)");
    let said = client.run("SELECT 1 / 0");
    assert_eq!(said, "INSERT 0 1\nERROR 22012: division by zero\n");
    assert_eq!(client.run("INSERT INTO t VALUES (5, 'e', 0)"), "");
    assert_eq!(client.run("SELECT 1"), "");
    assert!(client.world.send("a", Frontend::Query("SELECT 2".to_owned())).is_empty(), "a query among them");
    assert_eq!(client.sync(), "");
    assert!(client.query("SELECT count(*) FROM t").contains("\n3\n"));
}

#[test]
fn executions_before_sync_are_one_transaction() {
    let mut client = with_table();
    client.run("INSERT INTO t VALUES (4, 'd', 0)");
    // The first is run when it is known that it is not the last.
    assert_eq!(client.run("INSERT INTO t VALUES (5, 'e', 0)"), "INSERT 0 1\nINSERT 0 1\n");
    assert_eq!(client.sync(), "");
    client.run("INSERT INTO t VALUES (6, 'f', 0)");
    let said = client.run("INSERT INTO t VALUES (4, 'again', 0)");
    assert!(said.starts_with("INSERT 0 1\nERROR 23505"), "{said}");
    assert_eq!(client.sync(), "");
    assert!(client.query("SELECT count(*) FROM t").contains("\n5\n"));
    client.run("BEGIN");
    client.run("DELETE FROM t");
    assert!(client.sync().ends_with("[in block]\n"));
    client.run("ROLLBACK");
    client.sync();
    assert!(client.query("SELECT count(*) FROM t").contains("\n5\n"));
}

#[test]
fn columns_that_were_described_stay() {
    let mut client = with_table();
    client.parse("s", "SELECT * FROM t WHERE id = 1");
    client.parse("c", "SELECT v FROM t WHERE id = 1");
    client.sync();
    client.name = "b";
    assert_eq!(client.query("ALTER TABLE t ADD COLUMN w int DEFAULT 7"), "ALTER TABLE\n");
    client.name = "a";
    client.bind("", "c", &[]);
    client.execute("", 0);
    assert_eq!(client.sync(), "a\nSELECT 1\n");
    let mut said = client.bind("", "s", &[]);
    said += &client.execute("", 0);
    said += &client.sync();
    assert_eq!(said, "ERROR 0A000: cached plan must not change result type\n");
}

#[test]
fn what_is_too_large_is_said() {
    let mut client = with_table();
    let long = "x".repeat(1 << 20);
    let said = client.query(&format!("INSERT INTO t VALUES (9, '{long}', 0)"));
    assert!(said.starts_with("ERROR 54000"), "{}", &said[..said.len().min(200)]);
    let long = "y".repeat(50_000);
    for id in 10..40 {
        let said = client.query(&format!("INSERT INTO t VALUES ({id}, '{long}', 0)"));
        assert_eq!(said, "INSERT 0 1\n");
    }
    // Over a snapshot a result may be as long as it is.
    let said = client.query("SELECT v FROM t WHERE id >= 10");
    assert!(said.ends_with("SELECT 30\n") && said.len() > 1_400_000);
    let said = client.query("SELECT v FROM t WHERE id IN (10, 11, 12, 13, 14)");
    assert!(said.ends_with("SELECT 5\n"), "{}", &said[..said.len().min(200)]);
    let said = client.query("SELECT v, v, v, v, v FROM t WHERE id IN (10, 11, 12, 13, 14)");
    assert!(said.ends_with("SELECT 5\n"), "{}", &said[..said.len().min(200)]);
    let said = client.query("UPDATE t SET n = 1 WHERE id >= 10 RETURNING v");
    assert!(said.ends_with("UPDATE 30\n") && said.len() > 1_400_000, "{}", &said[..said.len().min(200)]);
    assert!(client.query("SELECT count(*) FROM t WHERE n = 1").contains("\n30\n"));
    assert_eq!(client.query("UPDATE t SET n = 2 WHERE id >= 10"), "UPDATE 30\n");
    client.query("BEGIN");
    for id in 50..80 {
        client.query(&format!("INSERT INTO t VALUES ({id}, '{long}', 0)"));
    }
    let said = client.query("COMMIT");
    assert_eq!(said, "ROLLBACK\n");
    let said = client.query("BEGIN; SELECT v FROM t WHERE id >= 10; UPDATE t SET n = 2 WHERE id = 1; COMMIT");
    assert!(said.ends_with("UPDATE 1\nCOMMIT\n"), "{}", &said[said.len() - 100..]);
}

#[test]
fn a_message_that_is_wrong_is_an_error_and_the_session_goes_on() {
    let mut client = Client::new();
    let text = "invalid byte sequence for encoding \"UTF8\": 0xff";
    let error = || SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, text);
    let said = format!("ERROR 22021: {text}\n");
    assert_eq!(client.send(Frontend::Wrong { error: error(), is_query: true }), said);
    assert_eq!(client.query("SELECT 1 AS x"), "(x integer)\n1\nSELECT 1\n");
    // One of the extended protocol is followed by `Sync`, up to which all is skipped.
    assert_eq!(client.send(Frontend::Wrong { error: error(), is_query: false }), said);
    assert_eq!(client.parse("", "SELECT 2 AS x"), "");
    assert_eq!(client.sync(), "");
    assert_eq!(client.run("SELECT 2 AS x") + &client.sync(), "2\nSELECT 1\n");
    client.query("BEGIN");
    assert_eq!(client.send(Frontend::Wrong { error: error(), is_query: true }), said + "[failed block]\n");
    client.query("ROLLBACK");
    client.query("CREATE TABLE t (x int)");
    client.query("COPY t FROM STDIN");
    client.send(Frontend::Wrong { error: error(), is_query: false });
    assert_eq!(client.query("SELECT count(*) AS n FROM t"), "(n bigint)\n0\nSELECT 1\n");
}

/// The kinds of messages.
fn kinds(mut bytes: &[u8]) -> String {
    let mut kinds = String::new();
    while let Some((kind, rest)) = bytes.split_first() {
        kinds.push(char::from(*kind));
        let length = rest[..4].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        bytes = &rest[length..];
    }
    kinds
}

impl Client {
    fn kinds(&mut self, message: Frontend) -> String {
        kinds(&self.world.send(self.name, message))
    }
}

#[test]
fn rows_that_come_by_the_extended_protocol_end_with_sync() {
    let mut client = Client::new();
    client.query("CREATE TABLE t (id int PRIMARY KEY, v text)");
    let data = |text: &str| Frontend::CopyData(Bytes::copy_from_slice(text.as_bytes()));
    for (rows, id) in [("1\ta\n", 1), ("2\tb\n", 2)] {
        assert_eq!(client.run("COPY t FROM STDIN"), "(copy in)\n");
        if id == 1 {
            assert_eq!(client.kinds(Frontend::Sync), "");
            assert_eq!(client.kinds(Frontend::Flush), "");
        }
        assert_eq!(client.kinds(data(rows)), "");
        assert_eq!(client.kinds(Frontend::CopyDone), "");
        assert_eq!(client.kinds(Frontend::Sync), "CZ");
    }
    client.run("COPY t FROM STDIN");
    client.kinds(data("1\tagain\n"));
    assert_eq!(client.kinds(Frontend::CopyDone), "");
    assert_eq!(client.kinds(Frontend::Sync), "EZ");
    for end in [Frontend::CopyFail("no".into()), Frontend::Query("SELECT 1".into())] {
        client.run("COPY t FROM STDIN");
        assert_eq!(client.kinds(data("1\tagain\n")), "");
        assert_eq!(client.kinds(end), "E");
        assert_eq!(client.kinds(data("3\tc\n")), "");
        assert_eq!(client.kinds(Frontend::CopyDone), "");
        assert_eq!(client.run("INSERT INTO t VALUES (4, 'd')"), "");
        assert_eq!(client.kinds(Frontend::Sync), "Z");
    }
    client.query("COPY t FROM STDIN");
    assert_eq!(client.kinds(Frontend::Query("SELECT 1".into())), "EZ");
    client.query("COPY t FROM STDIN");
    assert_eq!(client.kinds(data("5\te\n")), "");
    assert_eq!(client.kinds(Frontend::CopyDone), "CZ");
    assert_eq!(client.query("SELECT * FROM t"), "(id integer, v text)\n1 | a\n2 | b\n5 | e\nSELECT 3\n");
}

#[test]
fn a_portal_without_rows_runs_once() {
    let mut client = with_table();
    let refused = "ERROR 55000: portal \"\" cannot be run\n";
    client.run("INSERT INTO t VALUES (4, 'd', 0)");
    assert_eq!(client.execute("", 0), format!("INSERT 0 1\n{refused}"));
    assert_eq!(client.sync(), "");
    client.query("BEGIN");
    assert_eq!(client.run("UPDATE t SET n = n + 1"), "UPDATE 3\n");
    assert_eq!(client.execute("", 0), refused);
    assert_eq!(client.sync(), "[failed block]\n");
    client.query("ROLLBACK");
    client.query("BEGIN");
    assert_eq!(client.run("INSERT INTO t VALUES (5, 'e', 0) RETURNING id"), "5\nINSERT 0 1\n");
    assert_eq!(client.execute("", 0), "INSERT 0 1\n");
    client.run("SAVEPOINT s");
    assert_eq!(client.execute("", 0), refused);
    client.sync();
    client.query("ROLLBACK");
    assert!(client.query("SELECT count(*) FROM t").contains("\n3\n"));
}

#[test]
fn what_was_executed_comes_before_a_query_that_follows() {
    let mut client = with_table();
    client.run("INSERT INTO t VALUES (4, 'd', 0)");
    assert_eq!(client.query("SELECT count(*) AS n FROM t"), "INSERT 0 1\n(n bigint)\n4\nSELECT 1\n");
    client.run("INSERT INTO t VALUES (4, 'again', 0)");
    let said = client.query("INSERT INTO t VALUES (5, 'e', 0)");
    assert!(said.starts_with("ERROR 23505") && !said.contains("INSERT 0 1"), "{said}");
    assert_eq!(client.sync(), "");
    assert_eq!(client.query("SELECT count(*) AS n FROM t"), "(n bigint)\n4\nSELECT 1\n");
}

#[test]
fn a_call_of_a_function_by_its_number_is_answered() {
    let mut client = with_table();
    assert_eq!(client.kinds(Frontend::FunctionCall), "EZ");
    client.query("BEGIN");
    assert_eq!(client.send(Frontend::FunctionCall).lines().last(), Some("[failed block]"));
    client.query("ROLLBACK");
    assert!(client.query("SELECT count(*) FROM t").contains("\n3\n"));
}

#[test]
fn functions_of_the_session_take_parameters() {
    let mut client = Client::new();
    client.parse("s", "SELECT set_config('my.own', $1, false) AS x");
    client.parse("g", "SELECT current_setting('my.own') AS x, $1::int + 1 AS y");
    client.sync();
    for value in ["a", "b"] {
        assert_eq!(client.bind("", "s", &[Some(value)]) + &client.execute("", 0), "");
        assert_eq!(client.sync(), format!("{value}\nSELECT 1\n"));
        client.bind("", "g", &[Some("1")]);
        client.execute("", 0);
        assert_eq!(client.sync(), format!("{value} | 2\nSELECT 1\n"));
    }
    client.query("CREATE TABLE t (id serial PRIMARY KEY, u uuid DEFAULT gen_random_uuid())");
    client.parse("c", "SELECT currval('t_id_seq') AS x");
    client.sync();
    for number in ["1", "2"] {
        client.query("INSERT INTO t DEFAULT VALUES");
        client.bind("", "c", &[]);
        client.execute("", 0);
        assert_eq!(client.sync(), format!("{number}\nSELECT 1\n"));
    }
    assert_eq!(client.query("SELECT count(DISTINCT u) AS n FROM t"), "(n bigint)\n2\nSELECT 1\n");
}

/// Whether the server has told that a parameter has a value.
fn is_told(sent: &[u8], name: &str, value: &str) -> bool {
    let told = format!("{name}\0{value}\0");
    sent.windows(told.len()).any(|part| part == told.as_bytes())
}

#[test]
fn the_time_zone_is_that_of_the_client_if_it_names_one() {
    let mut client = Client::new();
    let noon = "SELECT '2024-07-01 12:00Z'::timestamptz AS at";
    for (parameters, name, shown) in [
        ([("TimeZone", "europe/vienna")], "Europe/Vienna", "2024-07-01 14:00:00+02"),
        ([("options", "-c timezone=Asia/Kathmandu")], "Asia/Kathmandu", "2024-07-01 17:45:00+05:45"),
        ([("options", "--TimeZone=-3.5")], "<-03:30>+03:30", "2024-07-01 08:30:00-03:30"),
    ] {
        let welcome = client.world.connect("a", &parameters).unwrap();
        assert!(is_told(&welcome, "TimeZone", name), "{name}");
        assert_eq!(client.run(noon) + &client.sync(), format!("{shown}\nSELECT 1\n"));
        let sent = client.world.send("a", Frontend::Query("SET TIME ZONE 'asia/tokyo'".to_owned()));
        assert!(is_told(&sent, "TimeZone", "Asia/Tokyo"));
        let sent = client.world.send("a", Frontend::Query("RESET timezone".to_owned()));
        assert!(is_told(&sent, "TimeZone", name), "{name}");
        assert_eq!(client.query("SET TIME ZONE LOCAL"), "SET\n");
        assert_eq!(client.run(noon) + &client.sync(), format!("{shown}\nSELECT 1\n"));
    }
    for parameters in [("TimeZone", "Nowhere"), ("options", "-c timezone=Nowhere")] {
        let error = client.world.connect("b", &[parameters]).unwrap_err();
        assert_eq!(error.state, SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(error.message, "invalid value for parameter \"TimeZone\": \"Nowhere\"");
    }
}

#[test]
fn parameters_as_text_are_in_the_zone_of_when_they_are_bound() {
    let mut client = Client::new();
    client.query("CREATE TABLE t (at timestamptz PRIMARY KEY, said text)");
    client.parse("i", "INSERT INTO t VALUES ($1, $2)");
    client.parse("s", "SELECT said FROM t WHERE at = $1");
    client.parse("w", "SELECT said FROM t WHERE at = '2024-07-01 12:00'");
    client.sync();
    for zone in ["UTC", "Europe/Vienna", "America/New_York"] {
        client.query(&format!("SET TIME ZONE '{zone}'"));
        client.bind("", "i", &[Some("2024-07-01 12:00"), Some(zone)]);
        client.execute("", 0);
        assert_eq!(client.sync(), "INSERT 0 1\n");
        client.bind("", "s", &[Some("2024-07-01 12:00")]);
        client.execute("", 0);
        assert_eq!(client.sync(), format!("{zone}\nSELECT 1\n"));
        client.bind("", "s", &[Some("2024-07-01 12:00Z")]);
        client.execute("", 0);
        assert_eq!(client.sync(), "UTC\nSELECT 1\n");
        // A moment in the text of the statement stays what it was when that was prepared, also if it is planned again.
        client.query("ALTER TABLE t ADD COLUMN more int");
        client.bind("", "w", &[]);
        client.execute("", 0);
        assert_eq!(client.sync(), "UTC\nSELECT 1\n");
        client.query("ALTER TABLE t DROP COLUMN more");
    }
    let shown = "2024-07-01 06:00:00-04\n2024-07-01 08:00:00-04\n2024-07-01 12:00:00-04\nSELECT 3\n";
    assert_eq!(client.run("SELECT at FROM t ORDER BY at") + &client.sync(), shown);
}

#[test]
fn explain_takes_the_parameters_of_what_it_tells_of() {
    let mut client = with_table();
    for (explain, told) in [
        ("EXPLAIN SELECT v FROM t WHERE id = $1", "Look-up of 1 keys of t"),
        ("EXPLAIN ANALYZE UPDATE t SET n = n + 1 WHERE id = $1", "Update"),
    ] {
        assert_eq!(client.parse("", explain), "");
        let described = client.send(Frontend::Describe { kind: Target::Statement, name: String::new() });
        assert_eq!(described, "parameters 23\n(QUERY PLAN text)\n");
        assert_eq!(client.bind("", "", &[Some("2")]), "");
        let mut answer = client.execute("", 0);
        answer += &client.sync();
        assert!(answer.contains(told) && answer.ends_with("EXPLAIN\n"), "{answer}");
    }
    assert_eq!(client.query("SELECT n FROM t WHERE id = 2"), "(n bigint)\n21\nSELECT 1\n");
}

#[test]
fn rows_that_are_kept_are_limited_together() {
    const ROWS: &str = "SELECT i, repeat('x', 1000) FROM generate_series(1, 2000) AS s (i)";
    let row = format!("1 | {}\n", "x".repeat(1000));
    let refused = |told: &str| told.starts_with("ERROR 53200: all statements together hold more than 8 MiB");
    let mut client = Client::new();
    client.world.limit(8 << 20);
    client.query("CREATE TABLE t (i int PRIMARY KEY, v text)");
    client.query("BEGIN");
    client.parse("s", ROWS);
    for portal in ["p1", "p2", "p3", "p4"] {
        client.bind(portal, "s", &[]);
        let told = client.execute(portal, 1);
        assert!(told.starts_with(&row), "{told}");
    }
    client.sync();
    let other =
        |client: &mut Client, text: &str| told(&client.world.send("b", Frontend::Query(text.to_owned())));
    other(&mut client, "BEGIN");
    let told = other(&mut client, &format!("DECLARE small CURSOR FOR {ROWS} LIMIT 500"));
    assert_eq!(told, "DECLARE CURSOR\n[in block]\n");
    let told = other(&mut client, &format!("DECLARE large CURSOR FOR {ROWS}"));
    assert!(refused(&told) && told.contains("HINT: Wait for others to end, close cursors"), "{told}");
    // What is written in a block is refused as well, as long as it has not taken effect.
    let insertion = format!("INSERT INTO t {ROWS} RETURNING *");
    client.parse("w", &insertion);
    client.bind("p5", "w", &[]);
    let told = client.execute("p5", 1);
    assert!(refused(&told), "{told}");
    client.sync();
    // The end of the block gives back what its portals have.
    client.query("ROLLBACK");
    other(&mut client, "ROLLBACK");
    other(&mut client, "BEGIN");
    for cursor in ["c1", "c2"] {
        let told = other(&mut client, &format!("DECLARE {cursor} CURSOR FOR {ROWS}"));
        assert_eq!(told, "DECLARE CURSOR\n[in block]\n");
    }
    for _ in 0..4 {
        assert!(
            other(&mut client, "FETCH ALL FROM c1; MOVE BACKWARD ALL FROM c1")
                .ends_with("MOVE 2000\n[in block]\n")
        );
    }
    // What has taken effect by itself is told, and as much less is there for others until then.
    let told = client.query(&insertion);
    assert!(told.ends_with("INSERT 0 2000\n"), "{}", &told[told.len() - 100..]);
    for cursor in ["c3", "c4"] {
        let told = other(&mut client, &format!("DECLARE {cursor} CURSOR FOR {ROWS}"));
        assert_eq!(told, "DECLARE CURSOR\n[in block]\n");
    }
    assert!(refused(&other(&mut client, "FETCH ALL FROM c1")));
}
