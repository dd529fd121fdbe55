//! A server that is a process: it is killed, started again, and told to stop.

use super::*;

/// `ordain start` in a folder of its own.
struct Started {
    folder: Folder,
    ports: [u16; 3],
    arguments: &'static str,
    child: Child,
}

impl Started {
    fn start() -> Started {
        Started::start_with("")
    }

    /// With further arguments.
    fn start_with(arguments: &'static str) -> Started {
        let ports =
            std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port());
        let folder = Folder::create();
        let child = Started::spawn(&folder, ports, arguments);
        let started = Started { folder, ports, arguments, child };
        started.wait_until_ready();
        started
    }

    fn spawn(folder: &Folder, [own, sql, http]: [u16; 3], more: &str) -> Child {
        let arguments = format!(
            "start --listen 127.0.0.1:{own} --sql-listen 127.0.0.1:{sql} --http-listen 127.0.0.1:{http} {more}"
        );
        folder.command(&arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn get(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.ports[2]))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + SOON;
        while !self.get("/ready").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            assert!(Instant::now() < deadline, "{:?}", self.get("/ready"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self) -> Client {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.ports[1]).user("ordain").dbname("ordain");
        config.connect(NoTls).unwrap()
    }

    fn kill_and_start_again(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Started::spawn(&self.folder, self.ports, self.arguments);
        self.wait_until_ready();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_was_committed_is_there_after_a_kill() {
    let mut started = Started::start();
    let mut client = started.connect();
    client.batch_execute("CREATE TABLE people (id int PRIMARY KEY, name text)").unwrap();
    client.batch_execute("INSERT INTO people VALUES (1, 'Ada'), (2, 'Alan')").unwrap();
    started.kill_and_start_again();
    assert!(client.batch_execute("SELECT 1").is_err());
    let mut client = started.connect();
    assert_eq!(count(&mut client, "people"), 2);
    assert!(started.get("/health").unwrap().starts_with("HTTP/1.1 200"));
    let metrics = started.get("/metrics").unwrap();
    for line in ["ordain_leads{partition=\"0\"} 1", "ordain_sql_connections 1"] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("deadlocks"), "an order has none\n{metrics}");
}

#[test]
fn a_server_that_is_told_to_stop_tells_its_clients() {
    let mut started = Started::start();
    let mut client = started.connect();
    client.batch_execute("CREATE TABLE people (id int PRIMARY KEY)").unwrap();
    let pid = rustix::process::Pid::from_child(&started.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let deadline = Instant::now() + SOON;
    while started.child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it ends although a client is connected");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(started.child.wait().unwrap().success());
    let error = client.batch_execute("SELECT 1").unwrap_err();
    assert!(error.is_closed() || error.code() == Some(&SqlState::ADMIN_SHUTDOWN), "{error}");
}

#[test]
fn procedures_of_a_workload_are_called_beside_tables_of_sql() {
    let mut started = Started::start_with("--with-sql bank --accounts 10 --balance 100");
    let mut client = started.connect();
    client.batch_execute("CREATE TABLE accounts (id int PRIMARY KEY)").unwrap();
    client.batch_execute("INSERT INTO accounts VALUES (1)").unwrap();
    let transfer = "SELECT * FROM transfer('{\"site\": 0, \"id\": 1}', '{\"site\": 0, \"id\": 2}', 30)";
    let balances = |row: &postgres::Row| (row.get::<_, i64>(0), row.get::<_, i64>(1));
    assert_eq!(balances(&client.query_one(transfer, &[]).unwrap()), (70, 130));
    drop(client);
    started.kill_and_start_again();
    let mut client = started.connect();
    assert_eq!(balances(&client.query_one(transfer, &[]).unwrap()), (40, 160));
    assert_eq!(count(&mut client, "accounts"), 1);
}
