//! What becomes of a log when it is made again from its records.

use bytes::Bytes;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::{
    EntryKind, LogEffects, LogRecord, LogStart, Membership, RecordError, RecoverError, ReplicatedLog,
};
use protobuf::Message as _;
use raft::eraftpb::{ConfChangeSingle, ConfChangeTransition, ConfChangeType, ConfChangeV2};

use crate::group::{Group, r};
use crate::plan::Plan;

fn start(index: u64, term: u64) -> LogStart {
    LogStart { index, term, membership: Membership::of_voters([r(0), r(1), r(2)]) }
}

fn founding() -> LogRecord {
    LogRecord::Start { start: start(1, 1), is_replacement: true }
}

fn entry(index: u64, term: u64) -> LogRecord {
    let payload = Bytes::from(format!("{index} of {term}"));
    LogRecord::Entry { index, term, kind: EntryKind::Payload, payload }
}

fn state(term: u64, commit: u64) -> LogRecord {
    LogRecord::State { term, vote: Some(r(1)), commit }
}

fn recover(records: &[LogRecord], checkpoint: Option<LogStart>) -> Result<RaftLog, RecoverError> {
    let records = records.iter().map(LogRecord::encode).collect::<Vec<_>>();
    RaftLog::recover(RaftOptions::new(r(0), 1), records.into_iter(), checkpoint.as_ref())
}

fn handed_out(log: &mut RaftLog) -> Vec<(u64, u64)> {
    let mut effects = LogEffects::default();
    log.advance(&mut effects);
    effects.committed.iter().map(|entry| (entry.index, entry.term)).collect()
}

#[test]
fn records_survive_their_encoding() {
    let joint = Membership {
        voters: vec![r(0), r(3)],
        outgoing: vec![r(0), r(1)],
        learners: vec![r(2)],
        learners_next: vec![r(1)],
    };
    let joint = LogStart { index: 7, term: 3, membership: joint };
    let records = [
        founding(),
        LogRecord::Start { start: joint, is_replacement: false },
        entry(u64::MAX, 1),
        LogRecord::Entry { index: 2, term: 2, kind: EntryKind::Barrier, payload: Bytes::new() },
        LogRecord::State { term: 4, vote: None, commit: 300 },
    ];
    for record in records {
        let bytes = record.encode();
        assert_eq!(LogRecord::decode(&bytes), Ok(record));
        for length in 1..bytes.len() {
            let result = LogRecord::decode(&bytes[..length]);
            assert!(matches!(result, Err(RecordError::Damaged(_))), "{result:?}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(matches!(LogRecord::decode(&longer), Err(RecordError::Damaged(_))));
        let newer = bytes[0] + 1;
        assert_eq!(LogRecord::decode(&[&[newer], &bytes[1..]].concat()), Err(RecordError::Version(newer)));
    }
    assert_eq!(LogRecord::decode(&[]), Err(RecordError::Empty));
}

#[test]
fn later_entries_supersede_earlier_ones() {
    let records = [founding(), entry(2, 2), entry(3, 2), entry(4, 2), entry(3, 3), state(3, 3)];
    let mut log = recover(&records, None).expect("a log");
    assert_eq!((log.status().last, log.status().term), (3, 3));
    assert_eq!(handed_out(&mut log), [(2, 2), (3, 3)]);
}

#[test]
fn a_log_whose_oldest_segments_are_gone_goes_on_from_its_restatement() {
    let kept = LogRecord::Start { start: start(3, 2), is_replacement: false };
    let records =
        [entry(3, 2), entry(4, 2), entry(5, 2), state(2, 5), kept.clone(), state(2, 5), entry(6, 2)];
    let mut log = recover(&records, Some(start(4, 2))).expect("a log");
    assert_eq!((log.status().start, log.status().last), (3, 6));
    assert_eq!(handed_out(&mut log), [(5, 2)]);
    // The border of segments may lie right behind the start, and an older restatement may come between.
    let older = LogRecord::Start { start: start(2, 2), is_replacement: false };
    let records = [entry(4, 2), older, entry(5, 2), kept, state(2, 5)];
    let mut log = recover(&records, None).expect("a log");
    assert_eq!(handed_out(&mut log), [(4, 2), (5, 2)]);
}

#[test]
fn a_start_that_replaces_the_state_leaves_no_entry() {
    let replaced = LogRecord::Start { start: start(3, 3), is_replacement: true };
    let records = [founding(), entry(2, 2), entry(3, 2), entry(4, 2), replaced, state(3, 3)];
    let log = recover(&records, Some(start(3, 3))).expect("a log");
    assert_eq!((log.status().start, log.status().last), (3, 3));
}

#[test]
fn a_checkpoint_beyond_the_log_was_installed_before_a_crash() {
    let records = [founding(), entry(2, 2), state(2, 2)];
    let mut log = recover(&records, Some(start(9, 3))).expect("a log");
    let status = log.status();
    assert_eq!((status.start, status.committed, status.handed_out, status.term), (9, 9, 9, 3));
    let mut effects = LogEffects::default();
    log.advance(&mut effects);
    let persist = effects.persist.expect("the disk does not know yet");
    let written: Vec<_> = persist.records.iter().map(|record| LogRecord::decode(record)).collect();
    assert_eq!(written[0], Ok(LogRecord::Start { start: start(9, 3), is_replacement: true }));
    // So it is with entries that the group has not agreed on.
    let records = [founding(), entry(2, 2), entry(3, 2), state(2, 2)];
    let log = recover(&records, Some(start(3, 3))).expect("a log");
    assert_eq!((log.status().start, log.status().last), (3, 3));
}

#[test]
fn damage_is_told() {
    let error =
        |records: &[LogRecord], checkpoint| recover(records, checkpoint).map(|_| ()).expect_err("damage");
    assert_eq!(error(&[founding(), entry(3, 2)], None), RecoverError::Gap { expected: 2, found: 3 });
    assert_eq!(
        error(&[founding(), entry(2, 2), entry(4, 2)], None),
        RecoverError::Gap { expected: 3, found: 4 }
    );
    assert_eq!(error(&[entry(2, 2)], None), RecoverError::NoStart { records: 1 });
    let lost = RecoverError::Lost { committed: 3, last: 2 };
    assert_eq!(error(&[founding(), entry(2, 2), state(2, 3)], None), lost);
    let old = RecoverError::Checkpoint { checkpoint: 0, start: 1, last: 1 };
    assert_eq!(error(&[founding()], Some(start(0, 0))), old);
    let contradiction = error(&[founding(), entry(2, 2), state(2, 2)], Some(start(2, 1)));
    assert!(matches!(contradiction, RecoverError::WrongGroup(_)), "{contradiction:?}");
    let torn = [founding().encode(), Bytes::from_static(&[1, 0])];
    let result = RaftLog::recover(RaftOptions::new(r(0), 1), torn.into_iter(), None).map(|_| ());
    assert!(matches!(result, Err(RecoverError::Record { ordinal: 1, .. })), "{result:?}");
}

/// A commit index may be lost in a crash. What the log says of it must not be: who has a change of the membership in its log
/// knows that the one before is committed.
#[test]
fn the_last_change_but_one_is_known_to_be_committed() {
    let mut single = ConfChangeSingle { node_id: 4, ..ConfChangeSingle::default() };
    single.set_change_type(ConfChangeType::AddNode);
    let mut enter = ConfChangeV2::default();
    enter.set_transition(ConfChangeTransition::Implicit);
    enter.set_changes(vec![single].into());
    let enter = Bytes::from(enter.write_to_bytes().expect("it can be encoded"));
    let change = |index, payload| LogRecord::Entry { index, term: 2, kind: EntryKind::Membership, payload };
    let mut records = vec![founding(), entry(2, 2), change(3, enter), entry(4, 2)];
    let log = recover(&records, None).expect("a log");
    assert_eq!(log.status().committed, 1, "the last change may not be committed");
    records.extend([change(5, Bytes::new()), entry(6, 2)]);
    let mut log = recover(&records, None).expect("a log");
    assert_eq!(log.status().committed, 3);
    assert_eq!(handed_out(&mut log), [(2, 2)]);
    assert!(log.membership().is_joint(), "it acts by the change: {:?}", log.membership());
    assert_eq!(log.membership().voters, [r(0), r(1), r(2), r(3)]);
}

#[test]
fn a_write_may_be_torn_anywhere() {
    let plan = Plan {
        loss: 50,
        fault_interval: 100_000,
        joiners: 2,
        membership_interval: 100_000,
        ..Plan::calm(3, 3)
    };
    let mut group = Group::new(plan).expect("a group begins");
    group.run(3_000_000).expect("all is well");
    let mut tried = 0;
    for machine in group.machines.values() {
        let segments = machine.segments.iter();
        let records: Vec<Bytes> = segments.flat_map(|segment| segment.records.iter().cloned()).collect();
        let oldest = records.first().map(|record| LogRecord::decode(record));
        if !matches!(oldest, Some(Ok(LogRecord::Start { is_replacement: true, .. }))) {
            // Its oldest segments are gone.
            continue;
        }
        tried += 1;
        let mut last_term = 0;
        for length in 0..=records.len() {
            let options = RaftOptions::new(machine.replica, 1);
            let kept = records[..length].iter().cloned();
            let log = RaftLog::recover(options, kept, None);
            let status = log.expect("what is left is a log").status();
            assert!(status.committed <= status.last);
            assert!(status.term >= last_term, "a term that was told is not forgotten");
            last_term = status.term;
        }
    }
    assert!(tried >= 2, "{tried} logs");
}

#[test]
fn a_vote_counts_in_its_own_term_only() {
    // The entry of a newer term was written, and its state was torn off.
    let records = [founding(), entry(2, 2), state(2, 2), entry(3, 3)];
    let log = recover(&records, None).expect("a log");
    let restated: Vec<_> = log.restatement().iter().map(|record| LogRecord::decode(record)).collect();
    assert_eq!(restated[1], Ok(LogRecord::State { term: 3, vote: None, commit: 2 }));
    let log = recover(&records[..3], None).expect("a log");
    let restated: Vec<_> = log.restatement().iter().map(|record| LogRecord::decode(record)).collect();
    assert_eq!(restated[1], Ok(state(2, 2)));
}
