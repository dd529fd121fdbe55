//! Backups: taken at any moment, restored to any epoch, and refused when they are not as they were written.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cluster;
mod faults;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_store::ObjectStore;
use object_store::memory::InMemory;
use ordain::backup::archive::Archive;
use ordain::backup::inspect::{inspect_directory, inspect_store};
use ordain::backup::manifest;
use ordain::backup::restore::{Restore, Restored, restore};
use ordain::backup::send::{Round, Sender};
use ordain::backup::store::{Store, StoreOptions};
use ordain_db::disk::cut::{Target, restorable};
use ordain_db::hash::Digest;
use ordain_db::position::{Epoch, PartitionId};

use cluster::{BEGIN, Cluster, Layout, SEGMENT_BYTES, oracle};
use faults::{FAULT, FaultyStore};

const PARTITIONS: u16 = 2;

/// Bytes of log between checkpoints in tests that want many.
const MANY_CHECKPOINTS: u64 = 512;

const NO_CHECKPOINTS: u64 = u64::MAX;

/// A directory that is removed at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("ordain-backup-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn memory() -> (Arc<InMemory>, Store) {
    let memory = Arc::new(InMemory::new());
    let store = over(Arc::<InMemory>::clone(&memory));
    (memory, store)
}

fn over(store: Arc<dyn ObjectStore>) -> Store {
    Store::over("the test's store", store, object_store::path::Path::default()).unwrap()
}

fn wanted(directory: &Path, target: Target) -> Restore {
    Restore { directory: directory.to_owned(), target, replica: None, segment_bytes: SEGMENT_BYTES }
}

fn number_of(directory: &Path) -> String {
    let identity = ordain::backup::directory::Identity::read(directory).unwrap();
    format!("{:032x}", identity.id())
}

fn back_up(directory: &Path, store: &Store, now: u64) -> Result<Round, String> {
    Sender::open(directory, store)?.round(now, false)
}

fn restore_all(store: &Store, number: &str, to: &Path, target: Target) -> Result<Restored, String> {
    let archive = Archive::read(store, number, None).map_err(|error| error.to_string())?;
    restore(store, &archive, &[], &wanted(to, target))
}

/// The state of a directory that was restored, after everything in it has been replayed.
fn replayed(directory: &Path) -> (Vec<Epoch>, Digest) {
    let mut cluster = Cluster::open(&Layout::together(directory, PARTITIONS), 0, 9, NO_CHECKPOINTS);
    cluster.finish();
    cluster.state()
}

/// Restores to an epoch, and compares with the oracle.
fn check_epoch(store: &Store, number: &str, scratch: &Scratch, epoch: Epoch, expected: &[Digest]) {
    let directory = scratch.path("restored");
    let restored = restore_all(store, number, &directory, Target::Epoch(epoch)).unwrap();
    assert_eq!(restored.cut.through, epoch);
    let (delivered, digest) = replayed(&directory);
    assert_eq!(delivered, [epoch; PARTITIONS as usize], "from {}", restored.cut.base);
    assert_eq!(digest, expected[epoch.0 as usize], "{epoch} from {}", restored.cut.base);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// The epochs that an archive can be restored to.
fn epochs_of(archive: &Archive) -> BTreeSet<Epoch> {
    let ranges = restorable(&archive.holdings());
    ranges.iter().flat_map(|range| (range.first.0..=range.last.0).map(Epoch)).collect()
}

/// A small generator of numbers (SplitMix64).
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)) % below
}

#[test]
fn every_epoch_can_be_restored_from_backups_taken_at_any_moment() {
    for seed in 0..4 {
        let scratch = Scratch::new(&format!("any-moment-{seed}"));
        let directory = scratch.path("data");
        let layout = Layout::together(&directory, PARTITIONS);
        layout.create(7);
        let number = number_of(&directory);
        let (_, store) = memory();
        let mut random = seed;
        let log_bytes = if seed % 2 == 0 { MANY_CHECKPOINTS } else { 4 * MANY_CHECKPOINTS };
        let mut cluster = Cluster::open(&layout, seed, 1, log_bytes);
        cluster.work(20);
        let mut sender = Sender::open(&directory, &store).unwrap();
        let mut acknowledged = Vec::new();
        for _ in 0..6 {
            cluster.work(20 + draw(&mut random, 60) as usize);
            // In the middle of whatever is going on.
            let round = sender.round(cluster.now, draw(&mut random, 2) == 0).unwrap();
            acknowledged.push((round.through(), cluster.answered));
        }
        cluster.finish();
        let last = sender.round(cluster.now, true).unwrap().through();
        let expected = oracle(&cluster.history, PARTITIONS);
        assert_eq!(
            cluster.state(),
            (vec![last; 2], expected[last.0 as usize]),
            "the cluster itself is right"
        );
        assert!(cluster.checkpoints >= 4, "{} checkpoints", cluster.checkpoints);
        assert!(acknowledged.windows(2).all(|pair| pair[0] < pair[1]), "{acknowledged:?}");
        let archive = Archive::read(&store, &number, None).unwrap();
        assert!(archive.manifests().len() > 1, "several backups");
        let epochs = epochs_of(&archive);
        assert_eq!(epochs.last(), Some(&last));
        assert!(epochs.len() > 40, "{} epochs", epochs.len());
        let every = epochs.len().div_ceil(30);
        for epoch in epochs.iter().rev().step_by(every) {
            check_epoch(&store, &number, &scratch, *epoch, &expected);
        }
        assert_eq!(inspect_store(&store).unwrap().problems, Vec::<String>::new());
        assert_eq!(inspect_directory(&directory).unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn a_directory_that_was_restored_goes_on_and_is_backed_up() {
    let scratch = Scratch::new("goes-on");
    let layout = Layout::together(&scratch.path("data"), PARTITIONS);
    layout.create(7);
    let (_, store) = memory();
    let mut cluster = Cluster::open(&layout, 3, 1, MANY_CHECKPOINTS);
    cluster.work(150);
    back_up(&scratch.path("data"), &store, cluster.now).unwrap();
    let expected = oracle(&cluster.history, PARTITIONS);
    let second = scratch.path("second");
    let restored = restore_all(&store, &number_of(&scratch.path("data")), &second, Target::Newest).unwrap();
    assert!(restored.cut.base > Epoch(0) && restored.rows > 0);
    let mut history = cluster.history.clone();
    history.retain(|(epoch, _), _| *epoch <= restored.cut.through);
    let mut again = Cluster::open(&Layout::together(&second, PARTITIONS), 4, 2, MANY_CHECKPOINTS);
    again.finish();
    let through = restored.cut.through;
    let (reached, digest) = again.state();
    assert_eq!(digest, expected[through.0 as usize]);
    assert!(reached.iter().all(|epoch| *epoch >= through), "a long log may have brought about a checkpoint");
    again.now = cluster.now;
    again.work(150);
    again.finish();
    assert!(again.answered > 100 && again.checkpoints > 2);
    history.append(&mut again.history.clone());
    let expected = oracle(&history, PARTITIONS);
    let (delivered, digest) = again.state();
    assert_eq!(digest, expected[delivered[0].0 as usize]);
    // It has a log of its own: its backups are beside those of the first.
    back_up(&second, &store, again.now).unwrap();
    assert_ne!(number_of(&second), number_of(&scratch.path("data")));
    check_epoch(&store, &number_of(&second), &scratch, delivered[0], &expected);
}

#[test]
fn a_time_is_the_last_epoch_closed_before() {
    let scratch = Scratch::new("time");
    let directory = scratch.path("data");
    let layout = Layout::together(&directory, PARTITIONS);
    layout.create(7);
    let (_, store) = memory();
    let mut cluster = Cluster::open(&layout, 5, 1, MANY_CHECKPOINTS);
    for _ in 0..5 {
        cluster.work(30);
        back_up(&directory, &store, cluster.now).unwrap();
    }
    let archive = Archive::read(&store, &number_of(&directory), None).unwrap();
    let epochs = epochs_of(&archive);
    let (first, last) = (*epochs.first().unwrap(), *epochs.last().unwrap());
    let closed = |epoch: Epoch| {
        let batch = |partition| cluster.history.get(&(epoch, PartitionId(partition)));
        (0..PARTITIONS).filter_map(batch).map(|batch| batch.closed_at).max().unwrap_or(0)
    };
    let restored_to = |time: u64| {
        let to = scratch.path("restored");
        let restored = restore(&store, &archive, &[], &wanted(&to, Target::Time(time)));
        let _ = std::fs::remove_dir_all(&to);
        restored.map(|restored| restored.cut.through)
    };
    for epoch in [first.next(), Epoch(first.0 + 9), Epoch(last.0 - 7), last] {
        assert!(closed(epoch) > BEGIN);
        assert_eq!(restored_to(closed(epoch)), Ok(epoch));
        let before = restored_to(closed(epoch) - 1).unwrap();
        assert!(before < epoch && closed(before) < closed(epoch), "{before} before {epoch}");
        assert!(before.next() == epoch || closed(before.next()) == closed(epoch), "{before} before {epoch}");
    }
    assert_eq!(restored_to(u64::MAX), Ok(last));
    match first {
        Epoch(0) => assert_eq!(restored_to(BEGIN), Ok(first)),
        _ => assert!(restored_to(BEGIN).unwrap_err().contains("the state of that time is not there")),
    }
}

#[test]
fn what_is_there_already_is_not_sent_again() {
    let scratch = Scratch::new("incremental");
    let directory = scratch.path("data");
    let layout = Layout::together(&directory, PARTITIONS);
    layout.create(7);
    let (_, store) = memory();
    let mut cluster = Cluster::open(&layout, 6, 1, MANY_CHECKPOINTS);
    cluster.work(600);
    cluster.finish();
    let first = back_up(&directory, &store, cluster.now).unwrap();
    assert!(first.sent.objects >= 4 && first.sent.bytes > 1500, "{:?}", first.sent);
    let second = back_up(&directory, &store, cluster.now).unwrap();
    assert_eq!((second.sent.objects, second.sent.bytes), (0, 0));
    assert!(second.manifest.id > first.manifest.id);
    assert_eq!(second.manifest.nodes, first.manifest.nodes);
    let mut sender = Sender::open(&directory, &store).unwrap();
    assert!(!sender.round(cluster.now, true).unwrap().is_new, "nothing to add");
    // A little more, without a checkpoint.
    drop(cluster);
    let mut cluster = Cluster::open(&layout, 6, 2, NO_CHECKPOINTS);
    cluster.finish();
    cluster.work(5);
    cluster.finish();
    let third = sender.round(cluster.now, true).unwrap();
    let new: u64 = third
        .manifest
        .objects()
        .filter(|object| !second.manifest.objects().any(|known| known == *object))
        .map(|object| object.bytes)
        .sum();
    assert!(third.is_new && third.manifest.id == second.manifest.id && third.gaps.is_empty());
    assert_eq!((third.sent.objects, third.sent.bytes), (u64::from(PARTITIONS), new));
    assert!(new < first.sent.bytes / 2, "{new} of {}", first.sent.bytes);
}

#[test]
fn a_backup_that_is_interrupted_is_none() {
    let scratch = Scratch::new("interrupted");
    let directory = scratch.path("data");
    let layout = Layout::together(&directory, PARTITIONS);
    layout.create(7);
    let number = number_of(&directory);
    let mut cluster = Cluster::open(&layout, 8, 1, MANY_CHECKPOINTS);
    cluster.work(100);
    let (inner, store) = memory();
    let first = back_up(&directory, &store, cluster.now).unwrap();
    cluster.work(100);
    cluster.finish();
    let expected = oracle(&cluster.history, PARTITIONS);
    let mut complete = false;
    for fails_from in 0.. {
        let faulty = Arc::new(FaultyStore::new(Arc::<InMemory>::clone(&inner), fails_from));
        let result = back_up(&directory, &over(Arc::<FaultyStore>::clone(&faulty)), cluster.now);
        let listed = manifest::list(&store, None).unwrap();
        if result.is_ok() {
            assert_eq!(listed.len(), 2);
            assert!(faulty.operations() <= fails_from && fails_from > 5, "{fails_from} operations");
            complete = true;
            break;
        }
        assert!(result.unwrap_err().contains("the cable was cut"));
        assert_eq!(listed, [(number.clone(), first.manifest.id.clone())], "after {fails_from} operations");
        if fails_from % 4 == 0 {
            check_epoch(&store, &number, &scratch, first.through(), &expected);
        }
    }
    assert!(complete);
    let last = *epochs_of(&Archive::read(&store, &number, None).unwrap()).last().unwrap();
    assert!(last > first.through());
    check_epoch(&store, &number, &scratch, last, &expected);
}

#[test]
fn a_restore_that_fails_leaves_nothing() {
    let scratch = Scratch::new("interrupted-restore");
    let directory = scratch.path("data");
    Layout::together(&directory, PARTITIONS).create(7);
    let mut cluster = Cluster::open(&Layout::together(&directory, PARTITIONS), 8, 1, MANY_CHECKPOINTS);
    cluster.work(120);
    let (inner, store) = memory();
    back_up(&directory, &store, cluster.now).unwrap();
    let archive = Archive::read(&store, &number_of(&directory), None).unwrap();
    let mut failures = 0;
    for fails_from in 0.. {
        let to = scratch.path(&format!("restored-{fails_from}"));
        let faulty = over(Arc::new(FaultyStore::new(Arc::<InMemory>::clone(&inner), fails_from)));
        let Err(problem) = restore(&faulty, &archive, &[], &wanted(&to, Target::Newest)) else { break };
        assert!(problem.contains(FAULT), "{problem}");
        failures += 1;
        assert!(!to.exists());
    }
    assert!(failures >= 4, "{failures}");
}

#[test]
fn damaged_objects_are_named() {
    let scratch = Scratch::new("damage");
    let (directory, place) = (scratch.path("data"), scratch.path("store"));
    Layout::together(&directory, PARTITIONS).create(7);
    let number = number_of(&directory);
    let mut cluster = Cluster::open(&Layout::together(&directory, PARTITIONS), 9, 1, MANY_CHECKPOINTS);
    cluster.work(120);
    let store = Store::open(place.to_str().unwrap(), StoreOptions::default(), true).unwrap();
    let round = back_up(&directory, &store, cluster.now).unwrap();
    let mut names: Vec<String> = round.manifest.objects().map(|object| object.name()).collect();
    names.push(round.manifest.name());
    assert!(names.len() >= 5);
    let to = scratch.path("restored");
    for name in names {
        let path = place.join(&name);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        let middle = whole.len() / 2;
        flipped[middle] ^= 4;
        for damaged in [Some(flipped), Some(whole[..middle].to_vec()), None] {
            match damaged {
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            let error = restore_all(&store, &number, &to, Target::Newest).unwrap_err();
            let is_manifest = name.ends_with(".json") && !path.exists();
            assert!(error.contains(&name) || is_manifest, "{name}: {error}");
            assert!(!to.join("ORDAIN").exists());
            let _ = std::fs::remove_dir_all(&to);
            let found = inspect_store(&store).unwrap();
            assert!(is_manifest || found.problems.iter().any(|problem| problem.contains(&name)), "{found:?}");
        }
        std::fs::write(&path, whole).unwrap();
    }
    restore_all(&store, &number, &to, Target::Newest).unwrap();
    let error = restore_all(&store, &number, &to, Target::Newest).unwrap_err();
    assert!(error.contains("is not empty"), "{error}");
}

#[test]
fn a_damaged_manifest_does_not_hide_the_other_backups() {
    let scratch = Scratch::new("one-manifest");
    let (directory, place) = (scratch.path("data"), scratch.path("store"));
    Layout::together(&directory, PARTITIONS).create(7);
    let mut cluster = Cluster::open(&Layout::together(&directory, PARTITIONS), 9, 1, MANY_CHECKPOINTS);
    let store = Store::open(place.to_str().unwrap(), StoreOptions::default(), true).unwrap();
    let mut manifests = BTreeMap::new();
    for _ in 0..10 {
        cluster.work(60);
        let round = back_up(&directory, &store, cluster.now).unwrap();
        manifests.insert(round.manifest.name(), round.manifest.id);
    }
    assert!(manifests.len() >= 2, "{manifests:?}");
    let (damaged, id) = manifests.pop_first().unwrap();
    std::fs::write(place.join(&damaged), "{").unwrap();
    let found = inspect_store(&store).unwrap();
    assert!(found.problems.iter().any(|problem| problem.contains(&damaged)), "{found:?}");
    assert!(!found.text.contains(&format!("  {id}, ")), "{found:?}");
    for id in manifests.values() {
        assert!(found.text.contains(&format!("  {id}, ")), "{found:?}");
    }
    assert!(found.text.contains("restored, but for what is damaged: "), "{found:?}");
}

#[test]
fn directories_of_one_database_are_cut_at_the_same_epoch() {
    let scratch = Scratch::new("beside");
    let layout = Layout(vec![scratch.path("left"), scratch.path("right")]);
    layout.create(7);
    let (left, right) = (number_of(&layout.0[0]), number_of(&layout.0[1]));
    assert_ne!(left, right);
    let (_, store) = memory();
    let mut cluster = Cluster::open(&layout, 10, 1, MANY_CHECKPOINTS);
    cluster.work(40);
    for turn in 0..30 {
        cluster.work(5);
        // Never both at the same moment.
        back_up(&layout.0[turn % 2], &store, cluster.now).unwrap();
    }
    let expected = oracle(&cluster.history, PARTITIONS);
    let read = |number: &str| Archive::read(&store, number, None).unwrap();
    let (left, right) = (read(&left), read(&right));
    let alone = restore(&store, &left, &[], &wanted(&scratch.path("alone"), Target::Newest)).unwrap_err();
    assert!(alone.contains("2 partitions, and p1 are in other data directories"), "{alone}");
    let restored = Layout(vec![scratch.path("new-left"), scratch.path("new-right")]);
    let beside = [right.clone()];
    let first = restore(&store, &left, &beside, &wanted(&restored.0[0], Target::Newest)).unwrap();
    let target = Target::Epoch(first.cut.through);
    let second = restore(&store, &right, &[left], &wanted(&restored.0[1], target)).unwrap();
    assert_eq!(first.cut, second.cut);
    let mut cluster = Cluster::open(&restored, 11, 2, NO_CHECKPOINTS);
    cluster.finish();
    let through = first.cut.through;
    assert_eq!(cluster.state(), (vec![through; 2], expected[through.0 as usize]));
}

#[test]
fn what_a_log_has_lost_is_told_and_a_new_base_taken() {
    let scratch = Scratch::new("gap");
    let directory = scratch.path("data");
    let layout = Layout::together(&directory, PARTITIONS);
    layout.create(7);
    let (_, store) = memory();
    let mut cluster = Cluster::open(&layout, 12, 1, MANY_CHECKPOINTS);
    cluster.work(50);
    let mut sender = Sender::open(&directory, &store).unwrap();
    let first = sender.round(cluster.now, true).unwrap();
    cluster.work(3000);
    cluster.finish();
    let second = sender.round(cluster.now, true).unwrap();
    assert!(!second.gaps.is_empty() && second.manifest.id > first.manifest.id);
    let expected = oracle(&cluster.history, PARTITIONS);
    let archive = Archive::read(&store, &number_of(&directory), None).unwrap();
    let ranges = restorable(&archive.holdings());
    assert_eq!(ranges.len(), 2, "{ranges:?}");
    for range in ranges {
        check_epoch(&store, &number_of(&directory), &scratch, range.first, &expected);
        check_epoch(&store, &number_of(&directory), &scratch, range.last, &expected);
    }
    let missing = Epoch(first.through().0 + 1);
    let error =
        restore_all(&store, &number_of(&directory), &scratch.path("no"), Target::Epoch(missing)).unwrap_err();
    assert!(error.contains(&format!("the state at the end of {missing} is not there")), "{error}");
}

#[test]
fn two_copies_of_a_directory_do_not_share_backups() {
    let scratch = Scratch::new("copies");
    let directory = scratch.path("data");
    let layout = Layout::together(&directory, PARTITIONS);
    layout.create(7);
    let (_, store) = memory();
    let mut cluster = Cluster::open(&layout, 13, 1, NO_CHECKPOINTS);
    cluster.work(20);
    cluster.finish();
    drop(cluster);
    let copy = scratch.path("copy");
    let copied = std::process::Command::new("cp").arg("-r").arg(&directory).arg(&copy).status().unwrap();
    assert!(copied.success());
    for (path, seed) in [(&directory, 14), (&copy, 50)] {
        let mut cluster = Cluster::open(&Layout::together(path, PARTITIONS), seed, 2, NO_CHECKPOINTS);
        cluster.finish();
        cluster.work(seed as usize);
        cluster.finish();
    }
    back_up(&directory, &store, BEGIN).unwrap();
    let error = back_up(&copy, &store, BEGIN).unwrap_err();
    assert!(error.contains("two copies of one directory"), "{error}");
}

#[test]
fn backups_are_taken_beside_a_running_process() {
    let scratch = Scratch::new("beside-running");
    let directory = scratch.path("data");
    let layout = Layout::together(&directory, PARTITIONS);
    layout.create(7);
    let (_, store) = memory();
    let mut cluster = Cluster::open(&layout, 16, 1, 4 * MANY_CHECKPOINTS);
    cluster.work(10);
    let stop = AtomicBool::new(false);
    let (cluster, rounds) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                cluster.work(10);
            }
            cluster.finish();
            cluster
        });
        let mut sender = Sender::open(&directory, &store).unwrap();
        let mut rounds: Vec<Result<Round, String>> = Vec::new();
        // Enough of them, and until the cluster has done something in between.
        let goes_on = |rounds: &[Result<Round, String>]| match (rounds.first(), rounds.last()) {
            (Some(Ok(first)), Some(Ok(last))) => {
                rounds.len() < 25 || last.through().0 < first.through().0 + 50
            }
            (None, None) => true,
            _ => false,
        };
        while goes_on(&rounds) {
            rounds.push(sender.round(BEGIN + rounds.len() as u64, true));
        }
        stop.store(true, Ordering::Relaxed);
        (worker.join().unwrap(), rounds)
    });
    let expected = oracle(&cluster.history, PARTITIONS);
    let through: Vec<Epoch> = rounds.into_iter().map(|round| round.unwrap().through()).collect();
    assert!(through.is_sorted() && through.first() < through.last(), "{through:?}");
    let archive = Archive::read(&store, &number_of(&directory), None).unwrap();
    let epochs = epochs_of(&archive);
    for epoch in epochs.iter().rev().step_by(epochs.len().div_ceil(12)) {
        check_epoch(&store, &number_of(&directory), &scratch, *epoch, &expected);
    }
}
