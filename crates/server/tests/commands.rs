//! Commands that cannot do what they are told: each says why and what to do instead, with the documented exit code, and leaves
//! nothing behind.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod folder;

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use folder::Folder;

/// What a wrong command line ends with.
const WRONG_COMMAND_LINE: i32 = 2;

/// What a command that cannot be carried out ends with.
const FAILED: i32 = 1;

impl Folder {
    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// All that is in it.
    fn contents(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, into);
                }
                into.push(path);
            }
        }
        let mut contents = Vec::new();
        walk(&self.0, &mut contents);
        contents.sort();
        contents
    }

    /// Runs a command that must be refused with these words, and leave all as it was.
    fn refused(&self, arguments: &str, code: i32, words: &[&str]) {
        let before = self.contents();
        let output = self.run(&mut self.command(arguments));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        for words in words {
            assert!(said.contains(words), "{arguments}: not {words:?} but {said}");
        }
        assert_eq!(self.contents(), before, "{arguments}");
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let folder = Folder::create();
    for command in [
        "start --data-dir new --epoch-milliseconds={}",
        "advise --seconds={} --output new bank",
        "bench bank --seconds={}",
        "bench bank --rate={}",
        "bench bank --epoch-milliseconds={}",
        "bench micro --work={}",
        "kill-test --directory new --seconds={}",
        "kill-test --directory new --round-seconds={}",
        "kill-test --directory new --pause={}",
        "kill-test --directory new --rate={}",
        "kill-test --directory new --gap-max={}",
        "sim scale --output new --real-seconds={}",
        "sim calibrate --output new --seconds={}",
        "experiment recovery --output new --seconds={} bank",
    ] {
        for number in ["nan", "inf", "-1", "1e300"] {
            folder.refused(
                &command.replace("{}", number),
                WRONG_COMMAND_LINE,
                &["give a number of ", " from "],
            );
        }
    }
    folder.refused(
        "start --data-dir new --epoch-milliseconds=0",
        WRONG_COMMAND_LINE,
        &["from 0.001 to 10000"],
    );
    for command in ["start --data-dir new --partitions", "bench bank --partitions"] {
        folder.refused(&format!("{command} 0"), WRONG_COMMAND_LINE, &["--partitions", "1..=256"]);
        folder.refused(&format!("{command} 257"), WRONG_COMMAND_LINE, &["1..=256"]);
    }
    let command = "checkpoint --data-dir new --limit-seconds 18446744073709551615";
    folder.refused(command, WRONG_COMMAND_LINE, &["0..=86400"]);
    folder.refused("bench bank --multi-partition nan", FAILED, &["give a percentage from 0 to 100"]);
    folder.refused("bench ycsb --theta nan", FAILED, &["theta"]);
    folder.refused(
        "bench bank --processes 0",
        FAILED,
        &["--processes must be 1 to the number of partitions"],
    );
}

#[test]
fn a_start_that_is_refused_leaves_nothing_behind() {
    let folder = Folder::create();
    folder.write("file", "x");
    folder.write("strange/letter.txt", "dear all");
    folder.refused("start --data-dir strange", FAILED, &["is not a data directory"]);
    folder.refused("start --data-dir file", FAILED, &["file cannot be a data directory"]);
    folder.refused("start --data-dir file/below", FAILED, &["cannot be a data directory"]);
    for option in ["listen", "sql-listen", "http-listen"] {
        let told = [format!("--{option}"), "give a host and a port, such as 127.0.0.1:7400".to_owned()];
        let told = told.each_ref().map(String::as_str);
        folder.refused(&format!("start --data-dir new --{option} nonsense"), WRONG_COMMAND_LINE, &told);
    }
    folder.write("options.toml", "sql_listen = \"5433\"\n");
    let told = "sql_listen in options.toml: invalid value '5433'";
    folder.refused("start --data-dir new --config options.toml", WRONG_COMMAND_LINE, &[told, "or none"]);
    folder.refused("start --data-dir new bank --accounts 0", FAILED, &["give at least 2"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let start = format!("start --data-dir new --listen {}", taken.local_addr().unwrap());
    folder.refused(&start, FAILED, &["free the port"]);
    folder.write("restored/ORDAIN", "format = 999\nrelease = \"9.9.9\"\n");
    folder.refused("start --data-dir restored", FAILED, &["start it with the release that wrote it"]);
}

#[test]
fn what_would_be_ignored_or_tell_nothing_is_refused() {
    let folder = Folder::create();
    folder.refused(
        "sim --seed 1 --engine two-phase --epochs managed",
        FAILED,
        &["two-phase has no epochs for a manager"],
    );
    folder.refused("sim --seed 1 --engine two-phase --replicas 3", FAILED, &["two-phase has no replicas"]);
    for offered in ["0", "18446744073709551614"] {
        let command = format!("sim slow-node --output new --slower 1000 --offered {offered}");
        folder.refused(&command, WRONG_COMMAND_LINE, &["1..=1000000"]);
    }
    let no_epochs = ["two-phase has no epochs for a manager"];
    folder.refused("start --data-dir new --engine two-phase --epochs managed", FAILED, &no_epochs);
    folder.refused("start --data-dir new --epochs strict", WRONG_COMMAND_LINE, &["managed-strictly"]);
    for entries in ["", "calvin,", " ,aloha"] {
        let mut command = folder.command("bench compare --rounds 1 --entries");
        let output = folder.run(command.arg(entries).arg("bank"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(FAILED), "{entries:?}: {said}");
        assert!(said.contains("an entry is empty"), "{entries:?}: {said}");
    }
}

#[test]
fn options_of_tpcc_are_told_by_the_names_that_they_have() {
    let folder = Folder::create();
    for (options, words) in [
        ("scaled-tpcc --items 0", ["scaled-tpcc: items is 0", "give 1 to 1000000"]),
        ("scaled-tpcc --customers 0", ["scaled-tpcc: customers is 0", "give 1 to 1000000"]),
        ("scaled-tpcc --districts-per-partition 0", ["there are 0 districts per partition", "give 1 to"]),
        ("tpcc --customers 1000001", ["tpcc: customers is 1000001", "give 1 to 1000000"]),
    ] {
        folder.refused(&format!("bench --partitions 2 {options}"), FAILED, &words);
    }
    let few = "bench --partitions 3 --seconds 0.1 --limit-seconds 0";
    folder.refused(
        &format!("{few} tpcc --warehouses 2 --items 100 --customers 30"),
        FAILED,
        &["partition 0 of 3 has none of the warehouses 1 to 2", "give at least as many warehouses"],
    );
    folder.refused(
        &format!("{few} --sites 1 scaled-tpcc --districts-per-partition 2 --items 100 --customers 30"),
        FAILED,
        &["partition 0 of 3 has none of the districts 1 to 2", "give at least as many districts"],
    );
}

#[test]
fn a_bench_in_which_nothing_is_answered_has_no_figures() {
    let folder = Folder::create();
    // The first epoch ends long after the measurement.
    folder.refused(
        "bench --engine aloha --epochs managed --epoch-milliseconds 2000 --seconds 0.1 --limit-seconds 0 bank --accounts 100",
        FAILED,
        &["nothing was answered", "give more --seconds"],
    );
}

#[test]
fn what_is_not_there_is_named_with_what_to_name_instead() {
    let folder = Folder::create();
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    folder.write("strange/letter.txt", "dear all");
    folder.write("process/ORDAIN", "format = 3\n");
    for command in ["status", "checkpoint"] {
        let missing = format!("{command} --data-dir missing");
        folder.refused(&missing, FAILED, &["there is no directory missing: name the one"]);
        let empty = format!("{command} --data-dir empty");
        folder.refused(&empty, FAILED, &["empty is no data directory, it has no file ORDAIN"]);
        let process = format!("{command} --data-dir process");
        folder.refused(&process, FAILED, &["name the cluster file with --cluster"]);
        let file = format!("{command} --cluster missing.toml");
        folder.refused(&file, FAILED, &["cluster file missing.toml: there is no such file"]);
    }
    folder.refused("start --cluster missing.toml --process a", FAILED, &["there is no such file"]);
    folder.refused(
        "inspect missing",
        FAILED,
        &["cannot use missing as a place of backups: there is no such directory"],
    );
    for place in ["empty", "strange"] {
        let words =
            ["is neither a data directory (it has no ORDAIN) nor a place with backups", "put back its"];
        folder.refused(&format!("inspect {place}"), FAILED, &words);
    }
    folder.refused("restore --from missing --data-dir new", FAILED, &["there is no such directory"]);
    folder.refused("restore --from empty --data-dir new", FAILED, &["empty has no backups: name the place"]);
    for directory in ["missing", "empty", "strange"] {
        let backup = format!("backup --data-dir {directory} --to place");
        folder.refused(&backup, FAILED, &["is no data directory, it has no file ORDAIN"]);
    }
}

#[test]
fn keys_for_a_bucket_are_asked_for() {
    let folder = Folder::create();
    let place = "s3://bucket/place";
    folder.refused(&format!("inspect {place}"), FAILED, &["there are no keys: set AWS_ACCESS_KEY_ID and"]);
    folder.refused(&format!("restore --from {place} --data-dir new"), FAILED, &["there are no keys"]);
    let mut command = folder.command(&format!("inspect {place}"));
    let output = folder.run(command.env("AWS_ACCESS_KEY_ID", "half"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("AWS_SECRET_ACCESS_KEY is not set: set it"));
}

#[test]
fn a_replica_that_does_not_exist_is_not_to_be_made_in_order_to_remove_it() {
    let folder = Folder::create();
    let process = |replica: u16| {
        format!(
            "[[process]]\nname = \"r{replica}\"\naddress = \"127.0.0.1:{}\"\npartitions = [0]\nreplica = {replica}\n\
             data_directory = \"r{replica}\"\n",
            1 + replica
        )
    };
    let replicated =
        "partitions = 1\n[workload]\nname = \"bank\"\n[replication]\nmode = \"sync\"\n".to_owned();
    folder.write("three.toml", &(replicated + &process(0) + &process(1) + &process(2)));
    let none = "the cluster file has no replica 7, only 0, 1, 2: ";
    folder.refused("replica remove 7 --cluster three.toml", FAILED, &[none, "name one of these"]);
    folder.refused("replica replace 7 --with 1 --cluster three.toml", FAILED, &[none, "name one of these"]);
    folder.refused("replica add 7 --cluster three.toml", FAILED, &[none, "with `replica = 3`", "name 3"]);
    folder.refused("replica replace 1 --with 7 --cluster three.toml", FAILED, &[none, "with `replica = 3`"]);
    folder.write("one.toml", &("partitions = 1\n[workload]\nname = \"bank\"\n".to_owned() + &process(0)));
    folder.refused(
        "replica remove 0 --cluster one.toml",
        FAILED,
        &["the cluster of one.toml is not replicated"],
    );
}

#[test]
fn what_ends_a_process_is_said_whatever_is_logged() {
    let folder = Folder::create();
    for level in ["off", "warn", "ordain::start=info"] {
        let output =
            folder.run(folder.command("start --cluster no.toml --process a").env("ORDAIN_LOG", level));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("cluster file no.toml: there is no such file"), "{level}: {said}");
        assert_eq!(said.matches("no.toml").count(), 1, "{level}: {said}");
    }
    for wrong in ["ordain=loud", "inof", "", "info,"] {
        let output = folder.run(folder.command("inspect missing").env("ORDAIN_LOG", wrong));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("ORDAIN_LOG: ") && said.contains("give a level"), "{said}");
    }
}

#[test]
fn a_benchmark_begins_with_new_data() {
    let folder = Folder::create();
    let run = "bench bank --accounts 100 --seconds 0.05 --limit-seconds 0 --durable --data-dir data";
    let output = folder.run(&mut folder.command(run));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder.refused(
        run,
        FAILED,
        &["--data-dir data is not empty (it has ", "a benchmark begins with new data"],
    );
}

#[test]
fn advice_needs_something_that_can_be_run() {
    let folder = Folder::create();
    std::fs::create_dir(folder.0.join("empty")).unwrap();
    folder.refused("advise --output new", FAILED, &["name a workload, or a data directory with --sample"]);
    folder.refused("advise --output new --nodes 0 bank", WRONG_COMMAND_LINE, &["1..=64"]);
    folder.refused("advise --output new bank --accounts 1", FAILED, &["give at least 2"]);
    folder.refused("advise --output new bank --costs missing", FAILED, &["cannot read missing"]);
    folder.refused("advise --sample empty", FAILED, &["empty is no data directory, it has no file ORDAIN"]);
    folder.refused("advise --sample empty --nodes 3", WRONG_COMMAND_LINE, &["--nodes", "--sample"]);
    for (engine, words) in [
        ("two-phase", "was made by the engine two-phase, and has no calls in it"),
        ("calvin", "does not say with which workload it was made: name it"),
    ] {
        let data = format!("--data-dir {engine} --engine {engine}");
        let run = format!("bench bank --accounts 100 --transactions 9 --limit-seconds 0 --durable {data}");
        let output = folder.run(&mut folder.command(&run));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder.refused(&format!("advise --output new --sample {engine}"), FAILED, &[words]);
    }
}
