//! A leader and messages made by hand: stale ones, false ones, and bytes that are no messages.

use bytes::Bytes;
use ordain_consensus::raft::{RaftLog, RaftOptions};
use ordain_consensus::{LogEffects, LogRecord, Membership, ReplicaId, ReplicatedLog, Role};
use protobuf::Message as _;
use raft::eraftpb::{Entry, Message, MessageType};

use crate::group::r;

/// Lets the log do all it can, with a disk that takes no time.
fn settle(log: &mut RaftLog) -> LogEffects {
    let mut all = LogEffects::default();
    for _ in 0..5 {
        let mut effects = LogEffects::default();
        log.advance(&mut effects);
        if let Some(persist) = effects.persist.take() {
            log.persisted(persist.number);
        }
        all.messages.append(&mut effects.messages);
        all.committed.append(&mut effects.committed);
        all.send_snapshot.append(&mut effects.send_snapshot);
    }
    all
}

/// A message from r1 to r0, in the term of r0.
fn message(log: &RaftLog, kind: MessageType) -> Message {
    let mut message = Message { to: 1, from: 2, term: log.status().term, ..Message::default() };
    message.set_msg_type(kind);
    message
}

fn encode(message: &Message) -> Vec<u8> {
    encode_of_stay(message, 0)
}

/// A message that names the change of the membership by which a follower was admitted.
fn encode_of_stay(message: &Message, admission: u64) -> Vec<u8> {
    let mut bytes = vec![2];
    bytes.extend(admission.to_le_bytes());
    message.write_to_vec(&mut bytes).expect("a vector takes it");
    bytes
}

fn receive(log: &mut RaftLog, message: &Message) -> LogEffects {
    log.receive(r(1), &encode(message)).expect("it is a message of the log");
    settle(log)
}

/// The leader r0 of a group of r0 and r1, with entries through 7, of which r1 has those through 5.
fn leader() -> RaftLog {
    let membership = Membership::of_voters([r(0), r(1)]);
    let mut log = RaftLog::found(RaftOptions::new(r(0), 1), membership).expect("a group of two");
    let mut now = 0;
    while settle(&mut log).messages.is_empty() {
        log.tick(now);
        now = log.deadline().expect("it depends on time");
    }
    let mut vote = message(&log, MessageType::MsgRequestPreVoteResponse);
    vote.term += 1;
    receive(&mut log, &vote);
    let vote = message(&log, MessageType::MsgRequestVoteResponse);
    receive(&mut log, &vote);
    acknowledge(&mut log, 2);
    assert_eq!(log.role(), Role::Leader { term: 2, ready: true });
    for number in 3..=7_u8 {
        log.propose(Bytes::from(vec![number])).expect("it leads");
        settle(&mut log);
    }
    acknowledge(&mut log, 5);
    assert_eq!(log.status().committed, 5);
    log
}

fn acknowledge(log: &mut RaftLog, index: u64) {
    let mut answer = message(log, MessageType::MsgAppendResponse);
    answer.index = index;
    answer.commit = index.min(log.status().committed);
    receive(log, &answer);
}

fn reject(log: &mut RaftLog, index: u64, hint: u64, hint_term: u64) -> LogEffects {
    let mut answer = message(log, MessageType::MsgAppendResponse);
    answer.index = index;
    answer.reject = true;
    answer.reject_hint = hint;
    answer.log_term = hint_term;
    receive(log, &answer)
}

#[test]
fn a_stale_rejection_does_not_take_the_leader_back() {
    let mut log = leader();
    log.compact(5);
    assert_eq!(log.status().start, 5);
    // A message was lost, so the follower rejects the next one: the leader looks for where to go on.
    reject(&mut log, 6, 5, 2);
    // An old rejection, from when the follower had nothing, arrives late. The leader must not go back to where its log no
    // longer is.
    let effects = reject(&mut log, 5, 1, 1);
    assert!(effects.send_snapshot.is_empty());
    assert!(!log.status().followers[0].needs_snapshot);
    acknowledge(&mut log, 7);
    assert_eq!(log.status().committed, 7);
}

#[test]
fn a_follower_that_has_nothing_is_named() {
    let mut log = leader();
    log.compact(5);
    // A new leader knows nothing of it yet: let this one be a new leader, by an election in a later term.
    let mut append = message(&log, MessageType::MsgHeartbeat);
    append.term += 1;
    receive(&mut log, &append);
    let mut now = 10_000_000;
    log.tick(now);
    while !settle(&mut log).messages.iter().any(|(to, _)| *to == r(1)) {
        now += 10_000;
        log.tick(now);
    }
    let mut vote = message(&log, MessageType::MsgRequestPreVoteResponse);
    vote.term += 1;
    receive(&mut log, &vote);
    let vote = message(&log, MessageType::MsgRequestVoteResponse);
    receive(&mut log, &vote);
    assert!(matches!(log.role(), Role::Leader { .. }));
    let effects = reject(&mut log, 7, 0, 0);
    assert_eq!(effects.send_snapshot.len(), 1, "it is named once");
    assert_eq!((effects.send_snapshot[0].to, effects.send_snapshot[0].index_min), (r(1), 5));
    assert!(effects.messages.is_empty(), "the library's own message is not sent");
    assert!(settle(&mut log).send_snapshot.is_empty(), "not again at once");
    let repeated = (0..80).any(|_| {
        now += 10_000;
        log.tick(now);
        let alive = message(&log, MessageType::MsgHeartbeatResponse);
        !receive(&mut log, &alive).send_snapshot.is_empty()
    });
    assert!(repeated, "but again when it has not helped");
}

#[test]
fn what_no_log_sends_is_refused() {
    let mut log = leader();
    let term = log.status().term;
    let good = {
        let mut good = message(&log, MessageType::MsgAppendResponse);
        good.index = 6;
        good
    };
    let mut cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "empty"),
        (vec![9, 1, 2], "version 9"),
        (vec![2, 1, 2], "cut off"),
        ([&[2; 9][..], &[255, 255]].concat(), ""),
        (encode(&Message { from: 3, ..good.clone() }), "claims to be from 3"),
        (encode(&Message { to: 3, ..good.clone() }), "it is for 3"),
        (encode(&Message { term: 0, ..good.clone() }), "no term"),
        (encode(&Message { index: 8, ..good.clone() }), "entry 8, which does not exist"),
    ];
    for kind in [MessageType::MsgPropose, MessageType::MsgSnapshot, MessageType::MsgHup] {
        cases.push((encode(&message(&log, kind)), "no replica sends"));
    }
    let mut heartbeat = message(&log, MessageType::MsgHeartbeat);
    heartbeat.term = term + 1;
    heartbeat.commit = 8;
    cases.push((encode(&heartbeat), "acknowledged by this replica"));
    let entry = |index, term| Entry { index, term, ..Entry::default() };
    for (entries, reason) in [
        (vec![entry(5, 1)], "entry 5 where 7 should be"),
        (vec![entry(7, 1)], "term 1, outside of 2 to 2"),
        (vec![entry(7, 2), entry(8, 3)], "term 3, outside of 2 to 2"),
    ] {
        let mut append = message(&log, MessageType::MsgAppend);
        append.index = 6;
        append.log_term = 2;
        append.set_entries(entries.into());
        cases.push((encode(&append), reason));
    }
    let before = log.status();
    for (bytes, reason) in cases {
        let error = log.receive(r(1), &bytes).expect_err(reason);
        assert!(error.reason.contains(reason), "{error} does not say: {reason}");
    }
    assert_eq!(log.status(), before, "they were ignored");
    receive(&mut log, &good);
    assert_eq!(log.status().committed, 6);
}

#[test]
fn a_leader_by_its_own_vote_says_nothing_before_the_vote_is_durable() {
    let membership = Membership { voters: vec![r(0)], learners: vec![r(1)], ..Membership::default() };
    let mut log =
        RaftLog::found(RaftOptions::new(r(0), 1), membership).expect("a group of one and a learner");
    settle(&mut log);
    let mut effects = LogEffects::default();
    while effects.is_empty() {
        let now = log.deadline().expect("it depends on time");
        log.tick(now);
        log.advance(&mut effects);
        assert!(now < 2_000_000, "it elects itself");
    }
    assert!(
        effects.messages.is_empty(),
        "a crash would make it forget the term, and say something else in it"
    );
    assert_eq!(log.role(), Role::Follower { leader: None });
    log.persisted(effects.persist.expect("its vote is to be written").number);
    assert!(settle(&mut log).messages.iter().any(|(to, _)| *to == r(1)));
    assert!(matches!(log.role(), Role::Leader { term: 2, .. }));
}

#[test]
fn entries_are_sent_with_what_comes_before_them() {
    let mut log = leader();
    // In one go: an acknowledgement commits an entry, which is told in a message without entries; then a rejection sends the
    // leader back to one that was lost.
    let mut acknowledged = message(&log, MessageType::MsgAppendResponse);
    acknowledged.index = 6;
    let mut rejected = message(&log, MessageType::MsgAppendResponse);
    rejected.index = 7;
    rejected.reject = true;
    rejected.reject_hint = 6;
    rejected.log_term = 2;
    for message in [acknowledged, rejected] {
        log.receive(r(1), &encode(&message)).expect("it is a message of the log");
    }
    let sent = settle(&mut log).messages;
    let sent = sent.iter().map(|(_, bytes)| Message::parse_from_bytes(&bytes[9..]).expect("a message"));
    let appends: Vec<Message> =
        sent.filter(|message| message.get_msg_type() == MessageType::MsgAppend).collect();
    assert!(
        appends.iter().any(|append| append.get_entries().iter().any(|entry| entry.index == 7)),
        "{appends:?}"
    );
    for append in appends {
        let first = append.get_entries().first().map_or(append.index + 1, |entry| entry.index);
        assert_eq!(first, append.index + 1, "{append:?}");
    }
}

#[test]
fn a_restatement_does_not_say_that_what_is_not_written_is_committed() {
    let mut log = leader();
    assert_eq!(log.status().committed, 5);
    // Another leader puts an entry of its own in the place of two, and says at once that it is committed.
    let mut append = message(&log, MessageType::MsgAppend);
    append.term = 3;
    append.index = 5;
    append.log_term = 2;
    append.commit = 6;
    append.set_entries(vec![Entry { index: 6, term: 3, ..Entry::default() }].into());
    log.receive(r(1), &encode(&append)).expect("it is a message of the log");
    assert_eq!(log.status().committed, 6);
    // On the disk, the old entry is still in that place.
    let state = LogRecord::decode(&log.restatement()[1]);
    assert!(matches!(state, Ok(LogRecord::State { commit: 5, .. })), "{state:?}");
    settle(&mut log);
    let state = LogRecord::decode(&log.restatement()[1]);
    assert!(matches!(state, Ok(LogRecord::State { commit: 6, .. })), "{state:?}");
}

#[test]
fn whoever_belongs_to_no_group_does_not_vote() {
    // It may be a voter whose disk was lost, and that has voted for someone else.
    let mut log = RaftLog::recover(RaftOptions::new(r(0), 1), std::iter::empty(), None).expect("a log");
    settle(&mut log);
    for kind in [MessageType::MsgRequestPreVote, MessageType::MsgRequestVote] {
        let mut asked = message(&log, kind);
        (asked.term, asked.index, asked.log_term) = (5, 9, 4);
        assert!(receive(&mut log, &asked).messages.is_empty());
    }
    assert_eq!(log.status().term, 0);
}

/// What a message to a replica names as the change by which it was admitted.
fn admission_of(effects: &LogEffects, to: ReplicaId) -> Option<u64> {
    let (_, bytes) = effects.messages.iter().rev().find(|(other, _)| *other == to)?;
    Some(u64::from_le_bytes(*bytes[1..].first_chunk().expect("a message has an admission")))
}

/// Changes the learners of a group whose voters are r0, which leads, and r1.
fn change_learners(log: &mut RaftLog, learners: &[ReplicaId]) -> LogEffects {
    log.change_membership(&[r(0), r(1)], learners).expect("nothing is under way");
    let mut all = LogEffects::default();
    // The change itself, and that the old membership is left.
    for _ in 0..2 {
        settle(log);
        let last = log.status().last;
        let mut answer = message(log, MessageType::MsgAppendResponse);
        (answer.index, answer.commit) = (last, log.status().committed);
        all.messages.append(&mut receive(log, &answer).messages);
    }
    assert_eq!((&*log.membership().learners, log.membership().is_joint()), (learners, false));
    all
}

#[test]
fn an_answer_of_an_earlier_stay_in_the_group_is_not_believed() {
    let mut log = leader();
    acknowledge(&mut log, 7);
    let first = admission_of(&change_learners(&mut log, &[r(2)]), r(2)).expect("it is told");
    let answer = |log: &RaftLog, index, admission| {
        let mut answer = Message { from: 3, index, ..message(log, MessageType::MsgAppendResponse) };
        answer.commit = 5;
        encode_of_stay(&answer, admission)
    };
    let matched = |log: &RaftLog| {
        let followers = log.status().followers;
        followers.iter().find(|follower| follower.replica == r(2)).map(|follower| follower.matched)
    };
    log.receive(r(2), &answer(&log, 6, first)).expect("an answer");
    assert_eq!(matched(&log), Some(6));
    // It loses its disk and leaves, while an answer is on its way.
    let late = answer(&log, 7, first);
    change_learners(&mut log, &[]);
    assert_eq!(matched(&log), None);
    let second = admission_of(&change_learners(&mut log, &[r(2)]), r(2)).expect("it is told");
    assert!(second > first, "{second} and {first}");
    log.receive(r(2), &late).expect("an answer");
    assert_eq!(matched(&log), Some(0), "it has nothing now");
    log.receive(r(2), &answer(&log, 7, second)).expect("an answer");
    assert_eq!(matched(&log), Some(7));
}

#[test]
fn a_follower_repeats_by_which_change_it_was_admitted() {
    let membership = Membership::of_voters([r(0), r(1)]);
    let mut log = RaftLog::found(RaftOptions::new(r(0), 1), membership).expect("a group of two");
    settle(&mut log);
    let mut hear = |term, admission| {
        let mut heartbeat = message(&log, MessageType::MsgHeartbeat);
        heartbeat.term = term;
        log.receive(r(1), &encode_of_stay(&heartbeat, admission)).expect("a heartbeat");
        admission_of(&settle(&mut log), r(1))
    };
    assert_eq!(hear(2, 9), Some(9));
    assert_eq!(hear(2, 0), Some(9), "what is heard late is of an earlier stay");
    assert_eq!(hear(3, 4), Some(4), "another leader has admitted it by another one");
}
