//! The log of a group of one.

use bytes::Bytes;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::solo::{SoloLog, SoloOptions};
use ordain_consensus::{
    LogEffects, MembershipError, ProposeError, RecoverError, ReplicaId, ReplicatedLog, Role, SnapshotError,
};

const ALONE: ReplicaId = ReplicaId(3);

fn options() -> SoloOptions {
    SoloOptions {
        in_flight_bytes_max: 100,
        payload_bytes_max: 60,
        hand_out_bytes_max: 10,
        ..SoloOptions::new(ALONE)
    }
}

/// A log, its disk, and what it has handed out.
struct Solo {
    log: SoloLog,
    disk: Vec<Bytes>,
    handed_out: Vec<(u64, Bytes)>,
}

impl Solo {
    fn new(log: SoloLog, disk: Vec<Bytes>) -> Solo {
        Solo { log, disk, handed_out: Vec::new() }
    }

    /// Writes what there is to write, and takes what is handed out, until there is nothing more.
    fn settle(&mut self) {
        loop {
            let mut effects = LogEffects::default();
            self.log.advance(&mut effects);
            if effects.is_empty() {
                return;
            }
            assert!(effects.messages.is_empty());
            let committed = effects.committed.into_iter();
            self.handed_out.extend(committed.map(|entry| (entry.index, entry.payload)));
            if let Some(persist) = effects.persist {
                self.disk.extend(persist.records);
                self.log.persisted(persist.number);
            }
        }
    }

    fn propose(&mut self, payload: &'static str) {
        self.log.propose(Bytes::from_static(payload.as_bytes())).expect("it leads");
    }
}

fn founded() -> Solo {
    let mut solo = Solo::new(SoloLog::found(options()), Vec::new());
    solo.settle();
    solo
}

fn payloads(solo: &Solo) -> Vec<&[u8]> {
    solo.handed_out.iter().map(|(_, payload)| &payload[..]).collect()
}

#[test]
fn what_is_durable_is_committed_and_nothing_else() {
    let mut solo = founded();
    solo.propose("one");
    solo.propose("two");
    let mut first = LogEffects::default();
    solo.log.advance(&mut first);
    solo.propose("three");
    let mut second = LogEffects::default();
    solo.log.advance(&mut second);
    assert!(first.committed.is_empty() && second.committed.is_empty());
    assert_eq!(solo.log.in_flight(), 3);
    let numbers = [first, second].map(|effects| effects.persist.expect("they are to be written").number);
    assert_eq!(numbers[0] + 1, numbers[1]);
    solo.log.persisted(numbers[0]);
    assert_eq!(solo.log.in_flight(), 1);
    solo.settle();
    assert_eq!(payloads(&solo), [b"one", b"two"]);
    solo.log.persisted(numbers[1]);
    solo.settle();
    assert_eq!(payloads(&solo), [&b"one"[..], b"two", b"three"]);
}

#[test]
fn each_life_hands_out_what_is_on_the_disk_in_a_term_of_its_own() {
    let mut solo = founded();
    let mut terms = vec![solo.log.status().term];
    for payload in ["one", "two", "three"] {
        solo.propose(payload);
        solo.settle();
        let log = SoloLog::recover(options(), solo.disk.clone().into_iter(), None).expect("a log");
        assert!(
            matches!(log.role(), Role::Leader { ready: false, .. }),
            "it is not ready before it is up to date"
        );
        solo = Solo::new(log, solo.disk);
        solo.settle();
        assert!(solo.log.role().may_propose());
        terms.push(solo.log.status().term);
    }
    assert_eq!(payloads(&solo), [&b"one"[..], b"two", b"three"]);
    assert!(terms.windows(2).all(|pair| pair[0] < pair[1]), "{terms:?}");
}

#[test]
fn what_was_not_reported_may_be_lost_or_not() {
    let mut solo = founded();
    let before = solo.disk.len();
    solo.propose("one");
    solo.propose("two");
    let mut effects = LogEffects::default();
    solo.log.advance(&mut effects);
    let records = effects.persist.expect("they are to be written").records;
    for torn in 0..=records.len() {
        let disk: Vec<Bytes> = solo.disk[..before].iter().chain(&records[..torn]).cloned().collect();
        let log = SoloLog::recover(options(), disk.clone().into_iter(), None).expect("a log");
        let mut again = Solo::new(log, disk);
        again.settle();
        assert_eq!(payloads(&again), [&b"one"[..], b"two"][..torn]);
    }
}

#[test]
fn a_checkpoint_stands_for_what_it_covers() {
    let mut solo = founded();
    for payload in ["one", "two", "three"] {
        solo.propose(payload);
    }
    solo.settle();
    let index = solo.handed_out[1].0;
    let checkpoint = solo.log.start_at(index).expect("it is committed");
    assert_eq!(solo.log.start_at(index + 2), None, "there is no such entry");
    solo.log.compact(index);
    assert_eq!(solo.log.status().start, index);
    assert_eq!(solo.log.start_at(index - 1), None, "that is gone");
    // Old segments may go once the restatement is durable.
    let restated = solo.log.restatement();
    let tail = solo.disk.split_off(solo.disk.len() - 1);
    for disk in [[&solo.disk[..], &tail, &restated].concat(), [&tail[..], &restated].concat()] {
        let log = SoloLog::recover(options(), disk.clone().into_iter(), Some(&checkpoint)).expect("a log");
        let mut again = Solo::new(log, disk);
        again.settle();
        assert_eq!(payloads(&again), [b"three"]);
    }
    // Without the segment that has the rest, the loss is noticed.
    let lost = SoloLog::recover(options(), restated.into_iter(), None).map(|_| ());
    assert_eq!(lost, Err(RecoverError::Lost { committed: index + 1, last: index }));
}

#[test]
fn a_replica_can_go_back_within_its_log_only() {
    let mut solo = founded();
    for payload in ["one", "two", "three"] {
        solo.propose(payload);
    }
    solo.settle();
    let (first, last) = (solo.handed_out[0].0, solo.handed_out[2].0);
    let position = solo.log.start_at(first).expect("it is committed");
    solo.log.snapshot_installed(position.clone()).expect("the log has the rest");
    solo.handed_out.clear();
    solo.settle();
    assert_eq!(payloads(&solo), [&b"two"[..], b"three"]);
    solo.log.compact(first + 1);
    let old = SnapshotError::TooOld { index: first, start: first + 1 };
    assert_eq!(solo.log.snapshot_installed(position.clone()), Err(old));
    let mut foreign = position.clone();
    foreign.index = last + 1;
    let beyond = SnapshotError::Unreplicated { index: last + 1, last };
    assert_eq!(solo.log.snapshot_installed(foreign.clone()), Err(beyond));
    foreign.index = last;
    foreign.term += 5;
    let result = solo.log.snapshot_installed(foreign);
    assert!(matches!(result, Err(SnapshotError::Contradiction { .. })), "{result:?}");
}

#[test]
fn limits_are_kept() {
    let mut solo = founded();
    assert_eq!(solo.log.propose(Bytes::new()), Err(ProposeError::Empty));
    let large = solo.log.propose(Bytes::from(vec![0; 61]));
    assert_eq!(large, Err(ProposeError::TooLarge { bytes: 61, bytes_max: 60 }));
    assert_eq!(solo.log.propose(Bytes::from(vec![0; 60])), Ok(()));
    assert_eq!(solo.log.propose(Bytes::from(vec![0; 41])), Err(ProposeError::Full { bytes: 60 }));
    assert_eq!(solo.log.propose(Bytes::from(vec![0; 40])), Ok(()));
    solo.settle();
    assert_eq!(solo.handed_out.len(), 2);
    assert_eq!(solo.log.propose(Bytes::from(vec![0; 60])), Ok(()));
    let changed = solo.log.change_membership(&[ALONE, ReplicaId(1)], &[]);
    assert_eq!(changed, Err(MembershipError::Unreplicated));
    assert!(solo.log.receive(ReplicaId(1), b"hello").is_err());
    let fresh = SoloLog::recover(options(), std::iter::empty(), None).map(|_| ());
    assert_eq!(fresh, Err(RecoverError::NoStart { records: 0 }));
}

#[test]
#[should_panic(expected = "was reported as persisted")]
fn a_number_that_was_never_given_out_is_a_mistake() {
    founded().log.persisted(99);
}

#[test]
fn a_group_of_one_becomes_a_replicated_log() {
    let mut solo = founded();
    solo.propose("one");
    solo.propose("two");
    solo.settle();
    let options = RaftOptions::new(ALONE, 1);
    let mut log = RaftLog::recover(options, solo.disk.clone().into_iter(), None).expect("the same records");
    let mut handed_out = Vec::new();
    let mut disk = solo.disk.clone();
    while !log.role().may_propose() {
        let now = log.deadline().expect("it depends on time");
        log.tick(now);
        let mut effects = LogEffects::default();
        log.advance(&mut effects);
        handed_out.extend(effects.committed.into_iter().map(|entry| (entry.index, entry.payload)));
        if let Some(persist) = effects.persist {
            disk.extend(persist.records);
            log.persisted(persist.number);
        }
        assert!(now < 5_000_000, "it leads itself");
    }
    assert_eq!(handed_out, solo.handed_out);
    assert!(log.status().term > solo.log.status().term);
    // As long as nobody else has joined, it can go back to being alone.
    let back = SoloLog::recover(self::options(), disk.into_iter(), None).expect("the same records");
    assert_eq!(back.status().last, log.status().last);
}
