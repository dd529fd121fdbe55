//! An embedded database in a directory: closed, dropped, opened again, opened wrongly, and without room.

use std::path::Path;
use std::time::{Duration, Instant};

use ordain::backup::inspect::inspect_directory;
use ordain::backup::send::Sender;
use ordain::backup::store::{Store, StoreOptions};
use ordain::data_directory::Contents;
use ordain::db::data::{ColumnType::Int64, DataError, Owner, SchemaBuilder, Table};
use ordain::db::engine::EngineKind;
use ordain::db::error::Error;
use ordain::db::position::{Epoch, PartitionId};
use ordain::db::procedure::{Catalog, Declaration, Declared, Procedure, Procedures, Stop, Transaction};
use ordain::durable::DurableOptions;
use ordain::process::ClusterOptions;
use ordain::{Database, DatabaseBuilder, Handle};

use super::Folder;

/// Adds one to a counter and returns it. The bytes only take room in the log.
struct Count(Table);

impl Procedure for Count {
    type Arguments = (i64, Vec<u8>);
    type Output = i64;

    fn name(&self) -> &str {
        "count"
    }

    fn declare(
        &self,
        (counter, _): &Self::Arguments,
        d: &mut Declaration<'_>,
    ) -> Result<Declared, DataError> {
        d.update(&self.0.key((*counter,))?).map(|()| Declared::Complete)
    }

    fn run(&self, (counter, _): &Self::Arguments, tx: &mut Transaction<'_>) -> Result<i64, Stop> {
        let key = self.0.key((*counter,))?;
        let count = tx.get(&key)?.map_or(Ok(0), |row| row.int64("count"))? + 1;
        tx.put(&self.0, &key, (count,))?;
        Ok(count)
    }
}

fn counters() -> ordain::db::data::TableBuilder {
    Table::builder("counters").column("id", Int64).column("count", Int64).primary_key(&["id"])
}

fn open(directory: &Path, partitions: u16) -> Result<(Database, Handle<Count>), Error> {
    open_built(directory, Database::builder().partitions(partitions))
}

fn open_with(directory: &Path, engine: EngineKind) -> Result<(Database, Handle<Count>), Error> {
    open_built(directory, Database::builder().engine(engine))
}

fn open_built(directory: &Path, mut builder: DatabaseBuilder) -> Result<(Database, Handle<Count>), Error> {
    let table = builder.table(counters())?;
    let count = builder.procedure(Count(table))?;
    Ok((builder.data_directory(directory).open()?, count))
}

#[test]
fn what_was_called_is_there_when_it_is_opened_again() {
    let folder = Folder::create();
    let directory = folder.0.join("database");
    let mut digest = None;
    for round in 0..4 {
        let (database, count) = open(&directory, 2).unwrap();
        assert!(digest.is_none_or(|digest| digest == database.digest().unwrap()), "round {round}");
        for counter in 0..10 {
            assert_eq!(database.call(count, &(counter, vec![])), Ok(round + 1));
        }
        let snapshot = database.snapshot().unwrap();
        let table = &database.schema().tables()[0];
        let keys = [7, 100, 0, 3, 7].map(|counter: i64| table.key((counter,)).unwrap());
        let each: Vec<_> = keys.iter().map(|key| snapshot.get(key).unwrap()).collect();
        assert_eq!(each.iter().filter(|row| row.is_none()).count(), 1);
        assert_eq!(snapshot.get_all(&keys), Ok(each), "of both partitions, in the order of the keys");
        digest = Some(database.digest().unwrap());
        // Closed in good order, and simply dropped.
        if round % 2 == 0 {
            drop(snapshot);
            database.close().unwrap();
        }
    }
}

#[test]
fn snapshots_end_with_the_process_that_opened_them() {
    let folder = Folder::create();
    let directory = folder.0.join("database");
    for round in 0..3 {
        let (database, count) = open(&directory, 2).unwrap();
        assert_eq!(database.call(count, &(0, vec![])), Ok(2 * round + 1));
        // More than may be open if those of the life before still were.
        let snapshots: Vec<_> = (0..600).map(|_| database.snapshot().unwrap()).collect();
        if round == 1 {
            database.checkpoint(Duration::from_secs(20)).unwrap();
        }
        assert_eq!(database.call(count, &(0, vec![])), Ok(2 * round + 2));
        database.close().unwrap();
        drop(snapshots);
    }
    let (database, count) = open(&directory, 2).unwrap();
    database.call(count, &(0, vec![])).unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while database.statuses(false).unwrap().iter().any(|status| status.garbage > 0) {
        assert!(Instant::now() < deadline, "old versions are kept for snapshots of nobody");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A node takes requests as soon as its log is in the order again, and may have much of it to execute then.
#[test]
fn a_digest_waits_for_what_is_replayed() {
    let folder = Folder::create();
    let (database, count) = open(&folder.0, 2).unwrap();
    std::thread::scope(|scope| {
        for counter in 0..64 {
            let database = &database;
            scope.spawn(move || {
                (1..=40).for_each(|times| assert_eq!(database.call(count, &(counter, vec![])), Ok(times)));
            });
        }
    });
    let digest = database.digest().unwrap();
    database.close().unwrap();
    let (database, _) = open(&folder.0, 2).unwrap();
    assert_eq!(database.digest().unwrap(), digest);
}

/// Long enough for anything that does happen.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn how_a_group_stands_is_told_as_of_now() {
    let folder = Folder::create();
    let (database, count) = open(&folder.0, 2).unwrap();
    for round in 1..=100 {
        assert_eq!(database.call(count, &(1, vec![])), Ok(round));
        let known: Vec<u64> = database
            .statuses(false)
            .unwrap()
            .iter()
            .map(|status| status.group.as_ref().unwrap().last)
            .collect();
        let now = database.process().groups_now(PATIENCE);
        let now: Vec<u64> = now.into_iter().map(|(_, group)| group.unwrap().last).collect();
        assert!(now.iter().zip(&known).all(|(now, known)| now >= known), "{now:?} after {known:?}");
    }
    database.process().stop().unwrap();
    let gone = database.process().groups_now(Duration::from_millis(1));
    assert!(gone.iter().all(|(_, group)| group.is_none()), "a thread that has ended tells nothing");
}

#[test]
fn a_checkpoint_is_there_when_it_was_waited_for() {
    let folder = Folder::create();
    let (database, count) = open(&folder.0, 2).unwrap();
    database.call(count, &(1, vec![])).unwrap();
    let epoch = database.checkpoint(PATIENCE).unwrap();
    assert!(database.statuses(false).unwrap().iter().any(|status| status.stable >= epoch));
    let error = database.checkpoint(Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    database.close().unwrap();
}

/// Without the mark of its checkpoint a lone node would go on from its first rows, as if nothing had been before.
#[test]
fn a_log_that_was_cut_is_not_opened_without_its_checkpoint() {
    let folder = Folder::create();
    let (database, count) = open(&folder.0, 1).unwrap();
    database.call(count, &(1, vec![])).unwrap();
    database.checkpoint(PATIENCE).unwrap();
    database.close().unwrap();
    let files = std::fs::read_dir(folder.0.join("p0")).unwrap().map(|file| file.unwrap().path());
    let marks: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "stable")).collect();
    assert_eq!(marks.len(), 1, "{marks:?}");
    std::fs::remove_file(&marks[0]).unwrap();
    let refused = open(&folder.0, 1).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("no checkpoint is marked") && refused.contains("restore a backup"), "{refused}");
}

/// The files of a partition, to be put back later.
fn copied(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// An older copy of one partition's files is sound in itself; only the other partition's log knows that there was more.
#[test]
fn a_partition_that_lost_the_end_of_its_log_is_not_opened() {
    let folder = Folder::create();
    let (database, count) = open(&folder.0, 2).unwrap();
    database.call(count, &(1, vec![])).unwrap();
    database.close().unwrap();
    let older = [copied(&folder.0.join("p0")), copied(&folder.0.join("p1"))];
    let (database, count) = open(&folder.0, 2).unwrap();
    for counter in 0..10 {
        database.call(count, &(counter, vec![])).unwrap();
    }
    database.close().unwrap();
    for (partition, older) in older.into_iter().enumerate() {
        let path = folder.0.join(format!("p{partition}"));
        let newer = copied(&path);
        for (path, bytes) in older {
            std::fs::write(path, bytes).unwrap();
        }
        let refused = open(&folder.0, 2).map(|_| ()).unwrap_err().to_string();
        assert!(refused.contains(&format!("the log of p{partition} ends at")), "{refused}");
        assert!(refused.contains("ordain restore"), "{refused}");
        for (path, bytes) in newer {
            std::fs::write(path, bytes).unwrap();
        }
    }
    let (database, count) = open(&folder.0, 2).unwrap();
    assert_eq!(database.call(count, &(9, vec![])), Ok(2));
    database.close().unwrap();
}

#[test]
fn a_directory_has_one_user_and_its_own_tables() {
    let folder = Folder::create();
    let (database, _) = open(&folder.0, 1).unwrap();
    let refused = open(&folder.0, 1).map(|_| ()).unwrap_err().to_string();
    assert!(
        refused.contains("is used by process") && refused.contains(&std::process::id().to_string()),
        "{refused}"
    );
    database.close().unwrap();
    let refused = open(&folder.0, 2).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("was made with other tables, procedures, first rows, partitions"), "{refused}");
    let other = Database::builder().data_directory(&folder.0).open().map(|_| ()).unwrap_err().to_string();
    assert!(other.contains("was made with other tables"), "{other}");
    open(&folder.0, 1).unwrap().0.close().unwrap();
}

/// As a process does that was killed, and has its lock until its memory is given back.
#[test]
fn a_directory_is_waited_for_that_is_about_to_be_left() {
    let folder = Folder::create();
    let (database, _) = open(&folder.0, 1).unwrap();
    let lock = folder.0.join("LOCK");
    std::thread::scope(|scope| {
        let next = scope.spawn(|| open(&folder.0, 1).map(|(next, _)| next.close().unwrap()));
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(std::fs::read_to_string(&lock).unwrap(), format!("{}\n", std::process::id()));
        database.close().unwrap();
        next.join().unwrap().unwrap();
    });
    assert_eq!(std::fs::read_to_string(&lock).unwrap(), "", "nobody has it");
}

/// Ordered engines go on with each other's data; the log of the engine `two-phase` is for that one alone.
#[test]
fn data_of_an_engine_without_an_order_is_for_that_engine() {
    let all = EngineKind::ALL;
    for made_by in [EngineKind::Calvin, EngineKind::TwoPhase] {
        let folder = Folder::create();
        let (database, count) = open_with(&folder.0, made_by).unwrap();
        assert_eq!(database.call(count, &(1, vec![])), Ok(1));
        database.close().unwrap();
        let mut calls = 1;
        for engine in all {
            let opened = open_with(&folder.0, engine);
            if engine.is_ordered() == made_by.is_ordered()
                && engine != EngineKind::TwoPhaseWithoutCommitProtocol
            {
                let (database, count) = opened.unwrap();
                calls += 1;
                assert_eq!(database.call(count, &(1, vec![])), Ok(calls), "{engine:?} goes on");
                database.close().unwrap();
                continue;
            }
            let refused = opened.map(|_| ()).unwrap_err().to_string();
            let expected = match engine {
                EngineKind::TwoPhaseWithoutCommitProtocol => "leaves transactions half done",
                _ => "start with the engine with which it was made",
            };
            assert!(refused.contains(expected), "{engine:?}: {refused}");
        }
    }
}

/// What `two-phase` keeps is inspected without epochs, and not backed up.
#[test]
fn a_directory_of_two_phase_is_inspected_and_has_no_backups() {
    let folder = Folder::create();
    let (database, count) = open_with(&folder.0, EngineKind::TwoPhase).unwrap();
    assert_eq!(database.call(count, &(1, vec![])), Ok(1));
    let refused = database.checkpoint(PATIENCE).unwrap_err().to_string();
    assert!(refused.contains("takes no checkpoints"), "{refused}");
    database.close().unwrap();
    let found = inspect_directory(&folder.0).unwrap();
    assert_eq!(found.problems, Vec::<String>::new());
    assert!(
        found.text.contains("0 transactions in doubt") && !found.text.contains("states"),
        "{}",
        found.text
    );
    let place = Folder::create();
    let store = Store::open(place.0.to_str().unwrap(), StoreOptions::default(), true).unwrap();
    let refused = Sender::open(&folder.0, &store).map(|_| ()).unwrap_err();
    assert!(refused.contains("the engine two-phase, which has no backups"), "{refused}");
}

/// A database with one partition whose files may have so many bytes.
fn open_limited(directory: &Path, disk_bytes_max: u64) -> (Database, Handle<Count>) {
    open_as(&DurableOptions {
        log_bytes_max: ordain::durable::LOG_BYTES_MIN,
        checkpoint_log_bytes: ordain::durable::LOG_BYTES_MIN / 2,
        disk_bytes_max,
        ..DurableOptions::new(directory)
    })
}

/// A database with one partition.
fn open_as(durable: &DurableOptions) -> (Database, Handle<Count>) {
    let (mut schema, mut procedures) = (SchemaBuilder::default(), Procedures::default());
    let table = schema.table(counters()).unwrap();
    procedures.register(Count(table)).unwrap();
    let catalog = Catalog { schema: schema.finish(), procedures };
    let contents = Contents::alone(EngineKind::Calvin, 1, 7);
    let options = ClusterOptions::default();
    let database = Database::durable(durable, &options, &contents, catalog, &|_, _| Ok(())).unwrap();
    let count = database.handle::<Count>("count").unwrap();
    (database, count)
}

#[test]
fn a_long_log_of_any_partition_brings_about_a_checkpoint() {
    let folder = Folder::create();
    let (mut schema, mut procedures) = (SchemaBuilder::default(), Procedures::default());
    let table = schema.table(counters()).unwrap();
    procedures.register(Count(table.clone())).unwrap();
    let catalog = Catalog { schema: schema.finish(), procedures };
    let durable = DurableOptions {
        checkpoint_interval: Duration::from_secs(86_400),
        checkpoint_log_bytes: 1 << 20,
        ..DurableOptions::new(&folder.0)
    };
    let options = ClusterOptions { partitions: 2, ..ClusterOptions::default() };
    let contents = Contents::alone(EngineKind::Calvin, 2, 7);
    let database = Database::durable(&durable, &options, &contents, catalog, &|_, _| Ok(())).unwrap();
    let count = database.handle::<Count>("count").unwrap();
    let is_of_second = |counter: &i64| {
        let key = table.key((*counter,)).unwrap();
        table.owner(&key, 2) == Owner::Partition(PartitionId(1))
    };
    // All that is ordered has its home at the second partition.
    let counter = (0..).find(is_of_second).unwrap();
    let begun = Instant::now();
    while database.statuses(false).unwrap().iter().any(|status| status.stable == Epoch(0)) {
        database.call(count, &(counter, vec![7; 100_000])).unwrap();
        assert!(begun.elapsed() < PATIENCE, "no checkpoint was taken");
    }
    database.close().unwrap();
}

#[test]
fn a_log_that_grows_over_many_short_lives_brings_about_a_checkpoint() {
    let folder = Folder::create();
    let begun = Instant::now();
    let mut stable = Epoch(0);
    while stable == Epoch(0) {
        assert!(begun.elapsed() < PATIENCE, "no checkpoint was taken");
        let (database, count) = open_as(&DurableOptions {
            checkpoint_interval: Duration::from_secs(1),
            ..DurableOptions::new(&folder.0)
        });
        database.call(count, &(0, vec![])).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        stable = database.statuses(false).unwrap()[0].stable;
        database.close().unwrap();
    }
}

/// The bytes of all files in a directory and those in it.
fn bytes_in(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let bytes = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => bytes_in(&entry.path()),
        false => entry.metadata().unwrap().len(),
    };
    entries.map(bytes).sum()
}

#[test]
fn a_checkpoint_for_which_there_is_no_room_fails_each_time_it_is_asked_for() {
    let folder = Folder::create();
    let (database, count) = open_limited(&folder.0, u64::MAX);
    database.call(count, &(1, vec![])).unwrap();
    database.close().unwrap();
    let (database, count) = open_limited(&folder.0, bytes_in(&folder.0));
    for _ in 0..2 {
        let error = database.checkpoint(PATIENCE).unwrap_err().to_string();
        assert!(error.contains("the checkpoint was not written"), "{error}");
    }
    assert_eq!(database.call(count, &(1, vec![])), Ok(2), "the database goes on");
    database.close().unwrap();
    let (database, _) = open_limited(&folder.0, u64::MAX);
    database.checkpoint(PATIENCE).unwrap();
    database.close().unwrap();
}

#[test]
fn a_full_disk_stops_the_database_and_loses_nothing_that_was_acknowledged() {
    let folder = Folder::create();
    // Room for one segment and not for two.
    let (database, count) = open_limited(&folder.0, 30 << 20);
    let mut acknowledged = 0;
    let error = loop {
        match database.call(count, &(1, vec![7; 900_000])) {
            Ok(count) => {
                acknowledged += 1;
                assert_eq!(count, acknowledged);
            }
            Err(error) => break error,
        }
    };
    assert!(acknowledged > 10, "{acknowledged}");
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    let reason = database.close().unwrap_err().to_string();
    assert!(reason.contains("the disk is full"), "{reason}");
    let (database, count) = open_limited(&folder.0, u64::MAX);
    let counted = database.call(count, &(1, vec![])).unwrap();
    // What had no answer may be there or not.
    assert!((acknowledged + 1..=acknowledged + 2).contains(&counted), "{counted} after {acknowledged}");
    database.close().unwrap();
}
