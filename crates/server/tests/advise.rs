//! Advice: the command on small workloads, on a sample of a data directory, and the library on a program's own procedures.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod folder;

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use ordain::advise::costs::costs;
use ordain::advise::options::Preference;
use ordain::advise::sample::{Record, Sample};
use ordain::advise::{Advice, Settings, Subject, advise};
use ordain::db::data::{ColumnType::Int64, DataError, SchemaBuilder, Table, TableBuilder};
use ordain::db::procedure::{Catalog, Declaration, Declared, Procedure, Procedures, Stop, Transaction};
use ordain::{Database, Handle};
use ordain_sim::scale::advice::AdviceEffort;
use ordain_sim::time::MILLISECOND;

use folder::Folder;

const ENGINES: [&str; 5] = ["calvin", "calvin-vll", "serial", "two-phase", "aloha"];

impl Folder {
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// Runs a command that must end well.
    fn succeed(&self, arguments: &str) -> Output {
        let output = self.run(&mut self.command(arguments));
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

const SHORT: &str = "--seconds 0.4 --rounds 2 --milliseconds 3";

/// The engine that a report recommends.
fn recommended(report: &str) -> &str {
    let engine = report.lines().find_map(|line| line.strip_prefix("  recommended: ")).unwrap();
    assert!(ENGINES.contains(&engine), "{report}");
    engine
}

#[test]
fn the_command_recommends_an_engine_and_simulates_the_same_every_time() {
    let folder = Folder::create();
    let advise = |output: &str| {
        let run = format!(
            "advise {SHORT} --partitions 2 --nodes 2 --output {output} micro --records 4000 --contention-index 0.02 \
             --multi-partition 50"
        );
        let printed = String::from_utf8(folder.succeed(&run).stdout).unwrap();
        let report = folder.read(&format!("{output}/report.txt"));
        assert_eq!(printed.trim(), report.trim());
        // Few calls, and the same ones: half of them span two partitions.
        assert!(
            report.contains("those measured with micro without its constraint")
                && report.contains("2.0 each"),
            "{report}"
        );
        recommended(&report);
        for name in ENGINES {
            let row =
                |table: &str| folder.read(&format!("{output}/{table}")).contains(&format!("\n{name},2,"));
            assert!(row("simulated.csv") && row("real.csv"), "{name}");
        }
        folder.read(&format!("{output}/simulated.csv"))
    };
    assert_eq!(advise("one"), advise("another"));
}

#[test]
fn what_a_benchmark_kept_is_a_sample() {
    let folder = Folder::create();
    let options = "--accounts 300 --multi-partition 100 --seed 7";
    let made =
        format!("--partitions 2 --transactions 500 --limit-seconds 0 --durable --data-dir data {options}");
    folder.succeed(&format!("bench bank {made}"));
    folder.succeed(&format!("advise {SHORT} --output out --sample data bank {options}"));
    let report = folder.read("out/report.txt");
    recommended(&report);
    for words in ["sample on 2 simulated nodes", "500 of 500 in the log", "100.0% of the transactions span"] {
        assert!(report.contains(words), "{words}: {report}");
    }
}

#[test]
fn what_reads_snapshots_is_called_in_the_order_where_it_is_simulated() {
    let folder = Folder::create();
    let options =
        "--mix full --reads snapshot --deliveries declared --warehouses 4 --items 200 --customers 30";
    folder.succeed(&format!(
        "advise {SHORT} --clients 64 --partitions 2 --nodes 2 --output out tpcc {options}"
    ));
    let report = folder.read("out/report.txt");
    recommended(&report);
    for words in
        ["% over snapshots: ", "simulated clients call in the order what reads snapshots", "versions: "]
    {
        assert!(report.contains(words), "{words}: {report}");
    }
}

#[test]
fn updates_of_what_others_depend_on_are_made_both_ways() {
    let folder = Folder::create();
    let advised = |volatility: u32| {
        let output = format!("at-{volatility}");
        folder.succeed(&format!(
            "advise {SHORT} --clients 64 --partitions 2 --nodes 2 --output {output} micro --records 40000 --dependent 100 --volatility \
             {volatility}"
        ));
        let report = folder.read(&format!("{output}/report.txt"));
        recommended(&report);
        assert_eq!(
            report.contains("20,000 a second change what others depend on"),
            volatility > 0,
            "{report}"
        );
        let simulated = folder.read(&format!("{output}/simulated.csv"));
        let column = simulated.lines().next().unwrap().split(',').position(|name| name == "restarts_per_s");
        let calvin = simulated.lines().find(|line| line.starts_with("calvin,2,")).unwrap();
        let restarts: f64 = calvin.split(',').nth(column.unwrap()).unwrap().parse().unwrap();
        assert_eq!(restarts > 0.0, volatility > 0, "{simulated}");
    };
    advised(0);
    advised(100);
}

#[test]
fn work_before_a_dependent_read_is_done_twice_where_it_is_simulated_too() {
    let folder = Folder::create();
    folder.succeed(&format!(
        "advise {SHORT} --clients 64 --partitions 2 --nodes 2 --output out micro --records 40000 --work 15 --dependent 100 \
         --dependent-at 100"
    ));
    let simulated = folder.read("out/simulated.csv");
    let throughput = |engine: &str| -> f64 {
        let row = simulated.lines().find(|line| line.starts_with(&format!("{engine},2,"))).unwrap();
        row.split(',').nth(3).unwrap().parse().unwrap()
    };
    let (calvin, two_phase) = (throughput("calvin"), throughput("two-phase"));
    assert!(two_phase > 5_000.0 && (0.4..0.7).contains(&(calvin / two_phase)), "{simulated}");
}

#[test]
fn functors_are_charged_and_told_of() {
    let folder = Folder::create();
    let options = "--records 4000 --contention-index 0.1 --multi-partition 100 --adds arithmetic";
    folder.succeed(&format!(
        "advise {SHORT} --clients 16 --partitions 2 --nodes 2 --output out micro {options}"
    ));
    let report = folder.read("out/report.txt");
    recommended(&report);
    for words in [
        "functors for 100% of the keys",
        "versions: aloha locks nothing",
        "100% of the keys that are written",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    // The simulated part is the same every time: contention that engines with locks wait in.
    let simulated = folder.read("out/simulated.csv");
    let of = |engine: &str| {
        let line = simulated.lines().find(|line| line.starts_with(&format!("{engine},"))).unwrap();
        line.split(',').nth(3).unwrap().parse::<f64>().unwrap()
    };
    assert!(of("aloha") > 1.5 * of("calvin"), "{simulated}");
}

/// Adds to a counter that another row names.
struct Add {
    names: Table,
    counters: Table,
}

impl Procedure for Add {
    type Arguments = (i64, i64);
    type Output = i64;

    fn name(&self) -> &str {
        "add"
    }

    fn declare(&self, _: &Self::Arguments, _: &mut Declaration<'_>) -> Result<Declared, DataError> {
        Ok(Declared::Unknown)
    }

    fn run(&self, (name, amount): &Self::Arguments, tx: &mut Transaction<'_>) -> Result<i64, Stop> {
        let named = self.names.key((*name,))?;
        let counter = tx.get(&named)?.map_or(Ok(*name), |row| row.int64("counter"))?;
        tx.put(&self.names, &named, (counter,))?;
        let key = self.counters.key((counter,))?;
        let count = tx.get(&key)?.map_or(Ok(0), |row| row.int64("count"))? + amount;
        tx.put(&self.counters, &key, (count,)).map(|()| count)
    }
}

fn tables() -> [TableBuilder; 2] {
    let table =
        |name, column| Table::builder(name).column("id", Int64).column(column, Int64).primary_key(&["id"]);
    [table("names", "counter"), table("counters", "count")]
}

fn catalog() -> Catalog {
    let (mut schema, mut procedures) = (SchemaBuilder::new(), Procedures::new());
    let [names, counters] = tables().map(|table| schema.table(table).unwrap());
    procedures.register(Add { names, counters }).unwrap();
    Catalog { schema: schema.finish(), procedures }
}

/// A database of a program, with some calls in its log.
fn make(directory: &Path) {
    let mut builder = Database::builder().partitions(2);
    let [names, counters] = tables().map(|table| builder.table(table).unwrap());
    let add: Handle<Add> = builder.procedure(Add { names, counters }).unwrap();
    let database = builder.data_directory(directory).open().unwrap();
    for number in 0..40 {
        database.call(add, &(number % 10, 1)).unwrap();
    }
    database.close().unwrap();
}

fn advice(record: &Arc<Record>) -> Result<Advice, String> {
    // The database had no rows at first.
    let sample = || Sample::new(Arc::clone(record), catalog(), Arc::new(|_, _| Ok(())));
    let (real, simulated) = (sample()?, sample()?);
    let effort = AdviceEffort { time: 3 * MILLISECOND, windows: vec![16], ..AdviceEffort::default() };
    let settings = Settings {
        rounds: 1,
        seconds: 0.05,
        clients: Some(16),
        seed: 1,
        effort,
        preference: Preference::Latency,
    };
    let subject = Subject {
        real: (&real, record.partitions),
        simulated: (&simulated, record.partitions),
        costs: &|keys| costs(None, keys, None),
        notes: Vec::new(),
    };
    advise(&subject, &settings)
}

#[test]
fn a_program_asks_about_its_own_procedures() {
    let folder = Folder::create();
    let directory = folder.0.join("data");
    make(&directory);
    let record = Arc::new(Record::read(&directory).unwrap());
    assert_eq!((record.partitions, record.found, record.calls.len()), (2, 40, 40));
    let advice = advice(&record).unwrap();
    let profile = advice.figures.profile;
    assert_eq!((profile.dependent_percent, profile.keys), (100.0, 2.0));
    assert!(profile.contention_index > 0.0, "{profile:?}");
    let report = advice.report();
    recommended(&report);
    assert!(report.contains("dependency: 100.0% of the transactions depend on data"), "{report}");
    assert!(report.contains("an estimate"), "{report}");
    assert!(advice.figures.engines.iter().all(|engine| engine.real.throughput > 0.0), "{report}");
}
