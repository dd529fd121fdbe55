//! Tests of the link: each rule of the protocol alone, and all of them against a model.

mod model;

use super::*;

type Packets = Vec<Packet<u64>>;

const OPTIONS: LinkOptions = LinkOptions { window: 64, timeout: 100, timeout_max: 1_000 };

/// Brings packets to a link; the messages that it hands over, and its answers.
fn bring(link: &mut Link<u64>, packets: Packets) -> (Vec<u64>, Packets) {
    let (mut ready, mut out) = (Vec::new(), Vec::new());
    for packet in packets {
        link.receive(0, packet, &mut ready, &mut out);
    }
    (ready, out)
}

/// Sends these numbers as messages.
fn send(link: &mut Link<u64>, messages: std::ops::Range<u64>) -> Packets {
    let mut out = Vec::new();
    messages.for_each(|message| link.send(0, message, &mut out));
    out
}

fn acknowledge(link: &mut Link<u64>, next: u64) -> Packets {
    let mut out = Vec::new();
    link.acknowledge_through(next, &mut out);
    out
}

fn expire(link: &mut Link<u64>, now: Nanoseconds) -> Packets {
    let mut out = Vec::new();
    link.expire(now, &mut out);
    out
}

fn numbers(packets: &Packets) -> Vec<u64> {
    let number = |packet: &Packet<u64>| match packet {
        Packet::Data { number, message } => {
            assert_eq!(number, message);
            *number
        }
        Packet::Acknowledge { .. } => panic!("an acknowledgement, not data"),
    };
    packets.iter().map(number).collect()
}

/// A sender and a receiver after so many messages that were all acknowledged.
fn pair(messages: u64) -> (Link<u64>, Link<u64>) {
    let (mut sender, mut receiver) = (Link::new(OPTIONS), Link::new(OPTIONS));
    for number in 0..messages {
        let (ready, _) = bring(&mut receiver, send(&mut sender, number..number + 1));
        assert_eq!(ready, [number]);
        bring(&mut sender, acknowledge(&mut receiver, number + 1));
    }
    assert_eq!((sender.unacknowledged(), sender.deadline()), (0, None));
    (sender, receiver)
}

#[test]
fn the_window_bounds_what_is_on_the_way() {
    let (mut sender, mut receiver) = pair(0);
    let first = send(&mut sender, 0..200);
    assert_eq!(numbers(&first), (0..64).collect::<Vec<u64>>());
    assert_eq!(sender.unacknowledged(), 200);
    let (ready, answers) = bring(&mut receiver, first);
    assert_eq!((ready.len(), answers), (64, vec![]));
    let (_, second) = bring(&mut sender, acknowledge(&mut receiver, 60));
    assert_eq!(numbers(&second), (64..124).collect::<Vec<u64>>());
    assert_eq!((sender.unacknowledged(), receiver.received(), receiver.safe()), (140, 64, 60));
}

#[test]
fn messages_are_put_in_order_and_handed_over_once() {
    let (mut sender, mut receiver) = pair(0);
    let mut packets = send(&mut sender, 0..10);
    packets.reverse();
    packets.push(packets[3].clone());
    let (ready, answers) = bring(&mut receiver, packets.clone());
    assert_eq!(ready, (0..10).collect::<Vec<u64>>());
    // Nothing is safe yet, and a duplicate is answered with just that.
    assert_eq!(answers, [Packet::Acknowledge { next: 0 }]);
    assert_eq!(acknowledge(&mut receiver, 10), [Packet::Acknowledge { next: 10 }]);
    assert_eq!(acknowledge(&mut receiver, 10), []);
    assert_eq!(acknowledge(&mut receiver, 4), []);
    let (ready, answers) = bring(&mut receiver, packets);
    assert_eq!(ready, []);
    assert_eq!(answers, vec![Packet::Acknowledge { next: 10 }; 11]);
}

#[test]
fn what_lies_beyond_the_window_is_dropped() {
    let mut receiver: Link<u64> = Link::new(OPTIONS);
    let packet = |number| Packet::Data { number, message: number };
    let (ready, _) = bring(&mut receiver, vec![packet(64), packet(63), packet(1), packet(0)]);
    assert_eq!(ready, [0, 1]);
    assert_eq!(receiver.early.into_keys().collect::<Vec<u64>>(), [63]);
}

#[test]
fn one_lost_message_costs_one_packet() {
    let (mut sender, mut receiver) = pair(3);
    let mut packets = send(&mut sender, 3..20);
    packets.remove(5);
    assert_eq!(bring(&mut receiver, packets).0, [3, 4, 5, 6, 7]);
    bring(&mut sender, acknowledge(&mut receiver, 8));
    assert_eq!(expire(&mut sender, 99), []);
    let probe = expire(&mut sender, 100);
    assert_eq!(numbers(&probe), [8]);
    assert_eq!(bring(&mut receiver, probe).0, (8..20).collect::<Vec<u64>>());
    let (_, rest) = bring(&mut sender, acknowledge(&mut receiver, 20));
    assert_eq!((rest, sender.unacknowledged(), sender.deadline()), (vec![], 0, None));
}

#[test]
fn a_lost_window_is_sent_again_in_growing_pieces() {
    let (mut sender, mut receiver) = pair(0);
    send(&mut sender, 0..100);
    let mut packets = expire(&mut sender, 100);
    let mut pieces = Vec::new();
    while !packets.is_empty() {
        pieces.push(packets.len());
        let (ready, _) = bring(&mut receiver, packets);
        assert_eq!(ready.len(), pieces[pieces.len() - 1]);
        let next = receiver.received();
        packets = bring(&mut sender, acknowledge(&mut receiver, next)).1;
    }
    assert_eq!(pieces, [1, 2, 4, 8, 16, 32, 37]);
    assert_eq!(sender.unacknowledged(), 0);
}

#[test]
fn timeouts_are_doubled_up_to_a_maximum() {
    let (mut sender, mut receiver) = pair(0);
    send(&mut sender, 0..2);
    let mut waits = Vec::new();
    let mut now = 0;
    for _ in 0..80 {
        let deadline = sender.deadline().unwrap();
        waits.push(deadline - now);
        now = deadline;
        assert_eq!(numbers(&expire(&mut sender, now)), [0]);
    }
    assert_eq!(waits[..6], [100, 200, 400, 800, 1_000, 1_000]);
    assert_eq!(waits[79], 1_000);
    // The answer of a peer that has nothing safe to tell changes nothing; its data do.
    let before = sender.deadline();
    let (mut ready, mut out) = (Vec::new(), Vec::new());
    sender.receive(now, Packet::Acknowledge { next: 0 }, &mut ready, &mut out);
    assert_eq!(sender.deadline(), before);
    receiver.send(now, 0, &mut out);
    sender.receive(now, out.remove(0), &mut ready, &mut out);
    assert_eq!(sender.deadline(), Some(now + 100));
    // So does progress.
    expire(&mut sender, now + 100);
    sender.receive(now + 150, Packet::Acknowledge { next: 1 }, &mut ready, &mut out);
    assert_eq!(sender.deadline(), Some(now + 250));
}

#[test]
fn a_resumed_sender_needs_one_round_trip() {
    let (mut sender, mut receiver) = pair(10_000);
    let lost = send(&mut sender, 10_000..10_020);
    drop((sender, lost));
    let mut again = Link::resumed(OPTIONS, 0);
    let probe = send(&mut again, 0..10_020);
    assert_eq!(numbers(&probe), [0]);
    let (ready, answer) = bring(&mut receiver, probe);
    assert_eq!((ready, answer.clone()), (vec![], vec![Packet::Acknowledge { next: 10_000 }]));
    let (_, mut packets) = bring(&mut again, answer);
    assert_eq!(again.unacknowledged(), 20);
    let mut ready = Vec::new();
    let mut count = 0;
    while !packets.is_empty() {
        count += packets.len();
        ready.append(&mut bring(&mut receiver, packets).0);
        let next = receiver.received();
        packets = bring(&mut again, acknowledge(&mut receiver, next)).1;
    }
    assert_eq!((ready, count), ((10_000..10_020).collect(), 20));
    assert_eq!((again.unacknowledged(), again.forgotten()), (0, 0));
}

#[test]
fn an_answer_may_come_in_the_middle_of_the_replay() {
    let (_, mut receiver) = pair(1_000);
    let mut again = Link::resumed(OPTIONS, 0);
    let probe = send(&mut again, 0..10);
    let (_, answer) = bring(&mut receiver, probe);
    assert_eq!(bring(&mut again, answer).1, []);
    assert_eq!((again.unacknowledged(), again.forgotten(), again.deadline()), (0, 990, None));
    assert_eq!(send(&mut again, 10..1_000), []);
    assert_eq!((again.unacknowledged(), again.forgotten(), again.deadline()), (0, 0, None));
    assert_eq!(numbers(&send(&mut again, 1_000..1_001)), [1_000]);
}

#[test]
fn a_lost_probe_is_sent_again() {
    let (_, mut receiver) = pair(1_000);
    let mut again = Link::resumed(OPTIONS, 0);
    send(&mut again, 0..1_000);
    let probe = expire(&mut again, 100);
    assert_eq!(numbers(&probe), [0]);
    let (_, answer) = bring(&mut receiver, probe);
    assert_eq!((bring(&mut again, answer).1, again.unacknowledged()), (vec![], 0));
}

#[test]
fn a_resumed_receiver_gets_what_it_forgot() {
    let (mut sender, mut receiver) = pair(10);
    let packets = send(&mut sender, 10..20);
    bring(&mut receiver, packets);
    bring(&mut sender, acknowledge(&mut receiver, 13));
    let mut again = Link::resumed(OPTIONS, 15);
    // It learns that the last acknowledgement was lost from the duplicate that the timer sends.
    let (ready, answer) = bring(&mut again, expire(&mut sender, 100));
    assert_eq!((ready, answer.clone()), (vec![], vec![Packet::Acknowledge { next: 15 }]));
    let (_, rest) = bring(&mut sender, answer);
    assert_eq!(bring(&mut again, rest).0, [15, 16]);
    assert_eq!((again.received(), again.safe()), (17, 15));
}

#[test]
fn what_a_node_forgot_and_its_peer_knows_is_seen() {
    let (_, mut receiver) = pair(10);
    let mut again = Link::resumed(OPTIONS, 0);
    let probe = send(&mut again, 0..8);
    let (_, answer) = bring(&mut receiver, probe);
    bring(&mut again, answer);
    assert_eq!(again.forgotten(), 2);
}

#[test]
#[should_panic(expected = "cannot be safe: only 3 were received")]
fn what_was_not_received_is_not_safe() {
    let (_, mut receiver) = pair(3);
    acknowledge(&mut receiver, 4);
}

#[test]
#[should_panic(expected = "acknowledges 4 messages, but only 3 were sent")]
fn what_was_never_sent_is_not_acknowledged() {
    let (mut sender, _) = pair(3);
    bring(&mut sender, vec![Packet::Acknowledge { next: 4 }]);
}

#[test]
#[should_panic(expected = "the window is 0")]
fn a_link_needs_a_window() {
    Link::<u64>::new(LinkOptions { window: 0, ..OPTIONS });
}
