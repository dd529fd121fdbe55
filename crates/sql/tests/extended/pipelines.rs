//! What several messages before `Sync` have to do with each other, and with definitions that change between them.

use ordain_sql::protocol::Format;
use ordain_sql::protocol::frontend::{Frontend, Target};

use super::{Client, with_table};

/// Sends what another client asks for, and gets the answer.
fn other(client: &mut Client, text: &str) -> String {
    super::told(&client.world.send("b", Frontend::Query(text.to_owned())))
}

fn rows(client: &mut Client, rows: &str) -> String {
    let mut said = client.send(Frontend::CopyData(bytes::Bytes::copy_from_slice(rows.as_bytes())));
    said += &client.send(Frontend::CopyDone);
    said
}

/// Values that are bound have the types that they were bound with: else a column would have values of another type.
#[test]
fn values_that_are_bound_keep_their_types_when_definitions_change() {
    let mut client = Client::new();
    for (before, after, shown) in [
        ("bigint", "text", "7"),
        ("int", "numeric", "7"),
        ("bigint", "double precision", "7"),
        ("int", "varchar(1)", "7"),
    ] {
        client.query("DROP TABLE IF EXISTS k");
        client.query(&format!("CREATE TABLE k (id {before} PRIMARY KEY)"));
        client.parse("", "INSERT INTO k VALUES ($1)");
        client.bind("", "", &[Some("7")]);
        other(&mut client, "DROP TABLE k");
        other(&mut client, &format!("CREATE TABLE k (id {after} PRIMARY KEY)"));
        client.execute("", 0);
        assert_eq!(client.sync(), "INSERT 0 1\n");
        assert!(client.query("SELECT id FROM k WHERE id = '7'").ends_with(&format!("{shown}\nSELECT 1\n")));
        assert!(client.query("INSERT INTO k VALUES ('7')").starts_with("ERROR 23505"), "{after}");
    }
    // In one block, too.
    client.query("CREATE TABLE v (id int PRIMARY KEY, n int)");
    client.query("BEGIN");
    client.parse("", "INSERT INTO v VALUES (1, $1)");
    client.bind("", "", &[Some("5")]);
    client.query("ALTER TABLE v ALTER n TYPE text");
    client.parse("s", "INSERT INTO v VALUES (2, $1)");
    client.sync();
    assert_eq!(client.query("COMMIT"), "COMMIT\n");
    let said = client.query("SELECT n || 'x' FROM v");
    assert!(said.ends_with(")\nSELECT 0\n"), "{said}");
}

/// A client that was told the types of parameters sends values of these.
#[test]
fn parameters_that_were_described_stay() {
    let mut client = with_table();
    client.parse("s", "INSERT INTO t (id, n) VALUES ($1, $2)");
    let describe = || Frontend::Describe { kind: Target::Statement, name: "s".into() };
    assert_eq!(client.send(describe()), "parameters 23 20\n(no data)\n");
    client.sync();
    other(&mut client, "ALTER TABLE t ALTER n TYPE double precision");
    let binary = |bytes: &[u8]| Some(bytes::Bytes::copy_from_slice(bytes));
    client.send(Frontend::Bind {
        portal: String::new(),
        statement: "s".into(),
        parameter_formats: vec![Format::Binary],
        parameters: vec![binary(&9_i32.to_be_bytes()), binary(&5_i64.to_be_bytes())],
        result_formats: Vec::new(),
    });
    client.execute("", 0);
    assert_eq!(client.sync(), "INSERT 0 1\n");
    assert!(client.query("SELECT n FROM t WHERE id = 9").ends_with("\n5\nSELECT 1\n"));
    assert_eq!(client.send(describe()), "parameters 23 20\n(no data)\n");
}

/// Rows that come from the client are part of the transaction that ends with `Sync`, be they first or last in it.
#[test]
fn rows_from_the_client_are_in_one_transaction_with_what_comes_before_sync() {
    let mut client = with_table();
    client.run("INSERT INTO t VALUES (7)");
    client.run("COPY t (id) FROM STDIN");
    rows(&mut client, "8\n");
    assert!(client.run("INSERT INTO t VALUES (1)").contains("ERROR 23505"));
    client.sync();
    client.run("COPY t (id) FROM STDIN");
    rows(&mut client, "9\n");
    assert!(client.run("INSERT INTO t VALUES (1)").contains("ERROR 23505"));
    client.sync();
    assert!(client.query("SELECT count(*) FROM t").ends_with("\n3\nSELECT 1\n"));
    client.run("COPY t (id) FROM STDIN");
    rows(&mut client, "8\n");
    assert_eq!(client.run("INSERT INTO t VALUES (9)"), "COPY 1\nINSERT 0 1\n");
    assert_eq!(client.sync(), "");
    client.run("COPY t (id) FROM STDIN");
    rows(&mut client, "10\n");
    assert_eq!(client.sync(), "COPY 1\n");
    assert!(client.query("SELECT count(*) FROM t").ends_with("\n6\nSELECT 1\n"));
    // Those that go to it see what all of the transaction sees.
    client.run("COPY (SELECT n FROM t WHERE id = 1) TO STDOUT");
    client.send(Frontend::Flush);
    other(&mut client, "UPDATE t SET n = 11 WHERE id = 1");
    let said = client.run("SELECT n FROM t WHERE id = 1") + &client.sync();
    assert_eq!(said, "10\nSELECT 1\n");
}

/// The statement without a name lasts until the next text is read, be that wrong, or a query.
#[test]
fn the_statement_without_a_name_is_the_last_one() {
    let mut client = with_table();
    client.parse("", "INSERT INTO t VALUES (50)");
    client.sync();
    assert!(client.parse("", "INSERT INTO nowhere VALUES (1)").starts_with("ERROR 42P01"));
    client.sync();
    assert!(client.bind("", "", &[]).starts_with("ERROR 26000"));
    client.sync();
    client.parse("", "INSERT INTO t VALUES (50)");
    client.sync();
    client.query("SELECT 1");
    assert!(client.bind("", "", &[]).starts_with("ERROR 26000"));
}

/// A portal ends with its transaction, and with what is gone back from.
#[test]
fn portals_end_with_what_they_belong_to() {
    let mut client = with_table();
    client.query("BEGIN");
    client.parse("s", "SELECT id FROM t ORDER BY id");
    client.bind("early", "s", &[]);
    client.execute("early", 1);
    client.query("SAVEPOINT a");
    client.bind("late", "s", &[]);
    client.execute("late", 1);
    client.query("ROLLBACK TO a");
    assert_eq!(client.execute("early", 1), "2\n(suspended)\n");
    assert!(client.execute("late", 1).starts_with("ERROR 34000"));
    client.sync();
    client.query("ROLLBACK");
    client.run("BEGIN");
    client.bind("p", "s", &[]);
    client.execute("p", 1);
    client.run("COMMIT");
    let said = client.execute("p", 1) + &client.sync();
    assert!(said.contains("ERROR 34000"), "{said}");
}

#[test]
fn formats_are_as_many_as_columns() {
    let mut client = with_table();
    client.parse("s", "SELECT id, v FROM t");
    let mut bound = |formats: usize| {
        let said = client.send(Frontend::Bind {
            portal: String::new(),
            statement: "s".into(),
            parameter_formats: Vec::new(),
            parameters: Vec::new(),
            result_formats: vec![Format::Text; formats],
        });
        client.sync();
        said
    };
    assert!([0, 1, 2].into_iter().all(|formats| bound(formats).is_empty()));
    assert!(bound(3).starts_with("ERROR 08P01: bind message has 3 result formats but query has 2 columns"));
}

/// They end with a block that is rolled back, too, be it that another one begins at once; and give nothing in one that has failed.
#[test]
fn portals_give_nothing_of_what_is_undone() {
    let mut client = with_table();
    client.query("BEGIN");
    client.parse("s", "INSERT INTO t VALUES (55)");
    client.bind("p", "s", &[]);
    client.sync();
    client.query("ROLLBACK; BEGIN");
    assert!(client.execute("p", 0).starts_with("ERROR 34000"));
    client.sync();
    client.query("ROLLBACK");
    client.query("BEGIN");
    client.parse("q", "SELECT id FROM t ORDER BY id");
    client.bind("p", "q", &[]);
    client.query("SAVEPOINT a");
    client.query("INSERT INTO t VALUES (0)");
    assert_eq!(client.execute("p", 1), "0\n(suspended)\n");
    client.query("ROLLBACK TO a");
    assert!(client.execute("p", 1).starts_with("ERROR 34000"));
    client.sync();
    client.query("ROLLBACK");
    client.query("BEGIN");
    client.bind("p", "q", &[]);
    client.execute("p", 1);
    client.query("SELECT 1 / 0");
    assert!(client.execute("p", 1).starts_with("ERROR 25P02"));
    client.sync();
    client.query("ROLLBACK");
    assert!(client.query("SELECT count(*) FROM t").ends_with("\n3\nSELECT 1\n"));
}

#[test]
fn the_columns_of_what_is_executed_by_name_are_described() {
    let mut client = with_table();
    client.query("PREPARE z AS SELECT id, v FROM t");
    client.parse("", "EXECUTE z");
    client.bind("", "", &[]);
    let described = client.send(Frontend::Describe { kind: Target::Portal, name: String::new() });
    assert_eq!(described, "(id integer, v text)\n");
}
