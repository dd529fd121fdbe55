//! A database that keeps what it acknowledges: killed, started again, started wrongly.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
        Single::start_with("calvin")
    }

    fn start_with(engine: &str) -> Single {
        Single::start_of(engine, &COUNTING)
    }

    fn start_of(engine: &str, workload: &[&str]) -> Single {
        let folder = TemporaryFolder::create();
        let address = format!("127.0.0.1:{}", free_port());
        let process = Process::start(
            &[&["start", "--data-dir", folder.path(), "--listen", &address, "--engine", engine], workload]
                .concat(),
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
        digest(&self.connect().0)
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
    what_was_acknowledged_is_there_after_kills(Single::start());
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_with_two_phase_commit() {
    what_was_acknowledged_is_there_after_kills(Single::start_with("two-phase"));
}

fn what_was_acknowledged_is_there_after_kills(mut single: Single) {
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
    let log = single.process.log();
    let (recovered, ready) = (log.rfind(" recovered "), log.find(" ready "));
    assert!(
        recovered.is_some() && recovered < ready,
        "it is ready when both partitions have recovered: {log}"
    );
    assert_eq!(log.matches(" recovered ").count(), 2, "{log}");
    assert_eq!(single.digest(), before);
    single.process.signal(Signal::TERM);
    single.process.wait_for_success();
    single.start_again();
    assert_eq!(single.digest(), before, "and after an end in good order");
}

/// Memory that is used up is a failure like any other: the log is replayed where there is more (DET-17).
#[test]
fn what_was_acknowledged_is_there_after_memory_was_used_up() {
    for engine in ["calvin", "two-phase"] {
        let workload = ["--partitions", "2", "tpcc", "--items", "1000", "--customers", "30"];
        let mut single = Single::start_of(engine, &workload);
        let (connection, workload) = single.connect();
        let (committed, has_more) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (told, until) = (Arc::clone(&committed), Arc::clone(&has_more));
        let calls = std::thread::spawn(move || {
            // Some are made after the restart, so that those before it are settled.
            let mut left = 1_000_u32;
            run_calls(&connection, &*workload, 1, |tally| {
                told.store(tally.committed, Ordering::Relaxed);
                left -= u32::from(left > 0 && until.load(Ordering::Relaxed));
                left > 0
            })
        });
        // By then all threads run: what takes more memory is rows.
        eventually("calls are under way", || committed.load(Ordering::Relaxed) > 500);
        single.process.limit_memory(32 * 1024 * 1024);
        let end = single.process.wait();
        assert_eq!(end.signal(), Some(Signal::ABORT.as_raw()), "{end}: {}", single.process.log());
        single.start_again();
        has_more.store(true, Ordering::Relaxed);
        let tally = calls.join().unwrap();
        assert_eq!(tally.unavailable, 0, "every call has got its answer");
        let (connection, workload) = single.connect();
        check(&connection, &*workload, &tally.totals);
        let before = single.digest();
        single.kill();
        single.start_again();
        assert_eq!(single.digest(), before, "{engine}");
    }
}

#[test]
fn a_second_process_on_the_same_directory_is_refused() {
    let mut single = Single::start();
    let other = format!("127.0.0.1:{}", free_port());
    let mut second = Process::start(&["start", "--data-dir", single.folder.path(), "--listen", &other]);
    assert_eq!(second.wait().code(), Some(1));
    let used = format!("{} is used by process {}", single.folder.path(), single.process.child.id());
    second.says(&used);
    // The port is taken as well, and a free one would not help.
    let mut third = single.try_start(&[]);
    assert_eq!(third.wait().code(), Some(1));
    third.says(&used);
    assert!(!third.log().contains("cannot listen"), "{}", third.log());
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
        (&["--epochs", "managed"], "--epochs: the data in"),
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

    let later = "format = 999\nrelease = \"9.9.9\"\n";
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
    let mut cluster = Cluster::spawn_ready(durable_file(&folder, 1, 2, 4, MICRO));
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

/// Runs a command that ends by itself: its exit code, and what it printed and logged.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_ordain")).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// The files of a partition whose names end like this.
fn files_of(single: &Single, partition: &str, ending: &str) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(single.folder.0.join(partition)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

/// A database with a checkpoint of both partitions, and a log after it, that was killed.
fn with_checkpoint() -> Single {
    let mut single = Single::start();
    let calls = |seed: u32| {
        let (connection, workload) = single.connect();
        run_calls(&connection, &*workload, seed, |tally| tally.committed < 200);
    };
    calls(1);
    let (code, printed, logged) = run(&["checkpoint", "--data-dir", single.folder.path()]);
    assert_eq!(code, Some(0), "{logged}");
    assert!(printed.starts_with("checkpoint at the end of e"), "{printed}");
    assert_eq!(logged, "", "a checkpoint that was taken is no reason to talk");
    calls(2);
    eventually("both partitions mark their checkpoints", || {
        ["p0", "p1"].iter().all(|partition| !files_of(&single, partition, ".stable").is_empty())
    });
    single.kill();
    single
}

#[test]
fn what_a_start_would_refuse_is_damage_to_an_inspection() {
    let single = with_checkpoint();
    let directory = single.folder.path();
    let sound = run(&["inspect", directory]);
    assert_eq!(sound.0, Some(0), "{}", sound.1);
    let without = |file: &std::path::Path, inspected: &str, started: &str| {
        let (bytes, name) = (std::fs::read(file).unwrap(), file.display());
        std::fs::remove_file(file).unwrap();
        let (code, printed, logged) = run(&["inspect", directory]);
        assert_eq!(code, Some(3), "{name}: {printed} {logged}");
        assert!(printed.contains("DAMAGED: ") && printed.contains(inspected), "{name}: {printed}");
        let mut refused = single.try_start(&[]);
        assert_eq!(refused.wait().code(), Some(1), "{name}");
        refused.says(started);
        for said in [printed, refused.log()] {
            assert!(said.contains("`ordain restore --from PLACE"), "{name}: {said}");
            assert!(!said.contains("ordain replica"), "{name}: nobody else has the data: {said}");
        }
        std::fs::write(file, bytes).unwrap();
    };
    let unmarked = "no checkpoint is marked as the one to start from";
    without(&files_of(&single, "p0", ".stable")[0], unmarked, unmarked);
    without(
        &files_of(&single, "p1", ".checkpoint")[0],
        "neither it nor a newer one can be used",
        ".checkpoint is missing",
    );
    let no_log = "there is no log, but this node had one";
    without(&files_of(&single, "p1", ".log")[0], no_log, no_log);
    let log = files_of(&single, "p0", ".log").remove(0);
    let whole = std::fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    // In the first record: later ones tell that it was durable.
    damaged[ordain_consensus::disk_log::RECORDS_AT as usize + 40] ^= 1;
    std::fs::write(&log, damaged).unwrap();
    let (code, printed, _) = run(&["inspect", directory]);
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("the log is damaged in "), "{printed}");
    let mut refused = single.try_start(&[]);
    assert_eq!(refused.wait().code(), Some(1));
    refused.says("the log is damaged in ");
    assert!(refused.log().contains("`ordain restore --from PLACE"), "{}", refused.log());
    // Its end is gone, as if it had never been written: only the other partition knows.
    let records_at = ordain_consensus::disk_log::RECORDS_AT as usize;
    let end = whole.iter().rposition(|byte| *byte != 0).unwrap();
    let mut cut = whole.clone();
    cut[end - (end - records_at) / 4..].fill(0);
    std::fs::write(&log, cut).unwrap();
    let (code, printed, _) = run(&["inspect", directory]);
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("DAMAGED: the log of p0 ends at e"), "{printed}");
    let mut refused = single.try_start(&[]);
    assert_eq!(refused.wait().code(), Some(1));
    refused.says("and that of p1 says that it had e");
    assert!(refused.log().contains("`ordain restore --from PLACE"), "{}", refused.log());
    std::fs::write(&log, whole).unwrap();
    assert_eq!(run(&["inspect", directory]), sound, "all was put back");
}

#[test]
fn a_restore_says_which_state_it_has_made() {
    let single = with_checkpoint();
    let (place, restored) = (single.folder.0.join("place"), TemporaryFolder::create());
    let place = place.to_str().unwrap();
    let (code, _, logged) = run(&["backup", "--data-dir", single.folder.path(), "--to", place]);
    assert_eq!(code, Some(0), "{logged}");
    let (code, printed, logged) = run(&["restore", "--from", place, "--data-dir", restored.path()]);
    assert_eq!(code, Some(0), "{logged}");
    let begin = format!("{} has the state at the end of e", restored.path());
    assert!(printed.starts_with(&begin), "{printed}");
    assert!(
        printed.contains(", ordered up to 2") && printed.contains("from the checkpoint at the end of e"),
        "{printed}"
    );
    assert!(!printed.contains("--to-epoch"), "there are no other directories: {printed}");
}
