//! A database that keeps what it acknowledges: killed, started again, started wrongly.

use ordain::cluster_file::ClusterFile;
use ordain::{Connection, Error};
use ordain_workload::{Totals, Workload};
use rustix::process::Signal;

use super::support::*;

/// A database of its own, of two partitions.
struct Single {
    folder: TemporaryFolder,
    address: String,
    process: Process,
}

const COUNTING: [&str; 9] = [
    "--partitions",
    "2",
    "micro",
    "--records",
    "4000",
    "--contention-index",
    "0.01",
    "--multi-partition",
    "30",
];

impl Single {
    fn start() -> Single {
        let folder = TemporaryFolder::create();
        let address = format!("127.0.0.1:{}", free_port());
        let process = Process::start(
            &[&["start", "--data-dir", folder.path(), "--listen", &address], &COUNTING[..]].concat(),
        );
        process.says(" ready ");
        Single { folder, address, process }
    }

    /// Starts it again, saying only where the data is.
    fn start_again(&mut self) {
        self.process = self.try_start(&[]);
        self.process.says(" ready ");
    }

    fn try_start(&self, more: &[&str]) -> Process {
        Process::start(
            &[&["start", "--data-dir", self.folder.path(), "--listen", &self.address], more].concat(),
        )
    }

    fn kill(&mut self) {
        self.process.signal(Signal::KILL);
        self.process.wait();
    }

    fn connect(&self) -> (Connection, Box<dyn Workload>) {
        let file = ClusterFile::read(&self.folder.0.join("cluster.toml")).unwrap();
        let workload = file.workload().unwrap();
        (ordain::connect(&file, workload.catalog().clone()).unwrap(), workload)
    }

    fn digest(&self) -> String {
        let (connection, _) = self.connect();
        // Behind everything before it on all partitions.
        let _snapshot = connection.snapshot().unwrap();
        connection.digest().unwrap().to_string()
    }
}

/// Holds the workload's conditions against the state.
fn check(connection: &Connection, workload: &dyn Workload, totals: &Totals) {
    struct Reader(ordain::Snapshot);

    impl ordain_workload::SnapshotReader for Reader {
        fn scan(
            &mut self,
            range: &ordain::db::data::KeyRange,
            visit: &mut dyn FnMut(&[u8], &[u8]),
        ) -> Result<(), Error> {
            self.0.scan(range, |key, row| {
                visit(key, row);
                Ok(())
            })
        }
    }

    let lines = workload.check(&mut Reader(connection.snapshot().unwrap()), totals).unwrap();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line.holds, "{}: {}", line.condition, line.detail);
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_in_the_middle_of_calls() {
    let mut single = Single::start();
    let mut totals = Totals::new();
    for round in 1..=3 {
        let (connection, workload) = single.connect();
        let calls = std::thread::spawn(move || {
            run_calls(&connection, &*workload, round, |tally| tally.committed < 2000)
        });
        // Calls are under way when it is killed; the client sends those that have no answer again.
        std::thread::sleep(std::time::Duration::from_millis(300));
        single.kill();
        single.start_again();
        let tally = calls.join().unwrap();
        assert_eq!(tally.unavailable, 0, "every call has got its answer");
        totals.add(&tally.totals);
        let (connection, workload) = single.connect();
        check(&connection, &*workload, &totals);
    }
    let before = single.digest();
    single.kill();
    single.start_again();
    single.process.says("recovered");
    assert_eq!(single.digest(), before);
    single.process.signal(Signal::TERM);
    single.process.wait_for_success();
    single.start_again();
    assert_eq!(single.digest(), before, "and after an end in good order");
}

#[test]
fn a_second_process_on_the_same_directory_is_refused() {
    let mut single = Single::start();
    let other = format!("127.0.0.1:{}", free_port());
    let mut second = Process::start(&["start", "--data-dir", single.folder.path(), "--listen", &other]);
    assert_eq!(second.wait().code(), Some(1));
    second.says(&format!("{} is used by process {}", single.folder.path(), single.process.child.id()));
    single.process.signal(Signal::TERM);
    single.process.wait_for_success();
}

#[test]
fn other_options_than_those_of_the_data_are_refused() {
    let mut single = Single::start();
    single.kill();
    for (more, words) in [
        (&["--partitions", "3"][..], "--partitions: the data in"),
        (&["--engine", "serial"], "--engine: the data in"),
        (&["--epoch-milliseconds", "5"], "--epoch-milliseconds: the data in"),
        (&["bank"], "the workload: the data in"),
    ] {
        let mut refused = single.try_start(more);
        assert_eq!(refused.wait().code(), Some(1), "{more:?}");
        refused.says(words);
    }
    // The same ones are welcome.
    single.process = single.try_start(&COUNTING);
    single.process.says(" ready ");
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let folder = TemporaryFolder::create();
    std::fs::write(folder.0.join("letter.txt"), "dear all").unwrap();
    let mut refused =
        Process::start(&["start", "--data-dir", folder.path(), "--listen", "127.0.0.1:32767", "bank"]);
    assert_eq!(refused.wait().code(), Some(1));
    refused.says("is not a data directory");

    let later = "format = 2\nrelease = \"9.9.9\"\n";
    std::fs::remove_file(folder.0.join("letter.txt")).unwrap();
    std::fs::write(folder.0.join("ORDAIN"), later).unwrap();
    let mut refused = Process::start(&["start", "--data-dir", folder.path()]);
    assert_eq!(refused.wait().code(), Some(1));
    refused.says("start it with the release that wrote it");
}

#[test]
fn a_partition_that_lost_its_log_does_not_start_empty() {
    let mut single = Single::start();
    single.kill();
    std::fs::remove_dir_all(single.folder.0.join("p1")).unwrap();
    let mut refused = single.try_start(&[]);
    assert_eq!(refused.wait().code(), Some(1));
    refused.says("there is no log, but this node had one");
}

#[test]
fn a_process_of_an_unreplicated_cluster_is_killed_and_the_others_wait_for_it() {
    let folder = TemporaryFolder::create();
    let mut cluster = Cluster::spawn(durable_file(&folder, 1, 2, 4, MICRO));
    assert!(cluster.wait_until_ready(), "a port was taken in the moment since it was free");
    let load = Load::start(&cluster, 2);
    for round in 0..3 {
        load.wait_for_commits(300);
        let victim = round % 2;
        cluster.processes[victim].signal(Signal::KILL);
        cluster.processes[victim].wait();
        cluster.restart(victim);
    }
    load.wait_for_commits(300);
    let tally = load.finish();
    assert_eq!(tally.unavailable, 0);
    cluster.check(&tally.totals);
    cluster.stop();
}
