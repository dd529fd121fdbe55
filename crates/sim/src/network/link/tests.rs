//! Tests of the link: each rule of the protocol alone, and all of them together on a bad network with crashes.

use ordain_workload::random::Random;

use super::*;

type Frames = Vec<Frame<u64>>;

const OPTIONS: LinkOptions = LinkOptions { window: 64, timeout: 100, timeout_max: 1_000, kept_max: 1_000 };

/// Brings packets to a link; what it hands over, and its answers.
fn bring(link: &mut Link<u64>, frames: Frames) -> (Vec<Delivery<u64>>, Frames) {
    let (mut ready, mut out) = (Vec::new(), Vec::new());
    for frame in frames {
        link.receive(0, frame, &mut ready, &mut out);
    }
    (ready, out)
}

fn messages(numbers: impl IntoIterator<Item = u64>) -> Vec<Delivery<u64>> {
    numbers.into_iter().map(Delivery::Message).collect()
}

/// Sends these numbers as messages.
fn send(link: &mut Link<u64>, messages: std::ops::Range<u64>) -> Frames {
    let mut out = Vec::new();
    messages.for_each(|message| assert!(link.send(0, message, &mut out)));
    out
}

fn acknowledge(link: &mut Link<u64>) -> Frames {
    let mut out = Vec::new();
    link.acknowledge(&mut out);
    out
}

fn expire(link: &mut Link<u64>, now: Nanoseconds) -> Frames {
    let mut out = Vec::new();
    link.expire(now, &mut out);
    out
}

fn numbers(frames: &Frames) -> Vec<u64> {
    let number = |frame: &Frame<u64>| match &frame.packet {
        Packet::Data { number, .. } => *number,
        other => panic!("{other:?} is not data"),
    };
    frames.iter().map(number).collect()
}

fn pair() -> (Link<u64>, Link<u64>) {
    (Link::begun(OPTIONS), Link::begun(OPTIONS))
}

#[test]
fn the_window_bounds_what_is_on_the_way() {
    let (mut sender, mut receiver) = pair();
    let first = send(&mut sender, 0..200);
    assert_eq!(numbers(&first), (0..64).collect::<Vec<u64>>());
    assert_eq!(sender.unacknowledged(), 200);
    let (ready, answers) = bring(&mut receiver, first);
    assert_eq!((ready.len(), answers), (64, vec![]));
    let (_, second) = bring(&mut sender, acknowledge(&mut receiver));
    assert_eq!(numbers(&second), (64..128).collect::<Vec<u64>>());
    assert_eq!((sender.unacknowledged(), receiver.received()), (136, 64));
}

#[test]
fn messages_are_put_in_order_and_handed_over_once() {
    let (mut sender, mut receiver) = pair();
    let mut frames = send(&mut sender, 0..10);
    frames.reverse();
    frames.push(frames[3].clone());
    let (ready, answers) = bring(&mut receiver, frames.clone());
    assert_eq!(ready, messages(0..10));
    assert_eq!(answers.len(), 1, "a duplicate is answered");
    assert_eq!(acknowledge(&mut receiver).len(), 1);
    assert_eq!(acknowledge(&mut receiver), []);
    let (ready, answers) = bring(&mut receiver, frames);
    assert_eq!((ready, answers.len()), (vec![], 11));
    assert!(answers.iter().all(|frame| frame.packet == Packet::Acknowledge { next: 10 }));
}

#[test]
fn what_lies_beyond_the_window_is_dropped() {
    let mut receiver: Link<u64> = Link::begun(OPTIONS);
    let data = |number| Frame { from: 1, to: 1, packet: Packet::Data { number, message: number } };
    let (ready, _) = bring(&mut receiver, vec![data(64), data(63), data(1), data(0)]);
    assert_eq!(ready, messages([0, 1]));
    assert_eq!(receiver.early.into_keys().collect::<Vec<u64>>(), [63]);
}

#[test]
fn a_lost_message_is_sent_again_and_frees_those_behind_it() {
    let (mut sender, mut receiver) = pair();
    let mut frames = send(&mut sender, 0..20);
    frames.remove(0);
    assert_eq!(bring(&mut receiver, frames).0, []);
    assert_eq!(expire(&mut sender, 99), []);
    let probe = expire(&mut sender, 100);
    assert_eq!(numbers(&probe), [0]);
    assert_eq!(sender.deadline(), Some(300), "the patience doubles");
    assert_eq!(bring(&mut receiver, probe).0, messages(0..20));
    bring(&mut sender, acknowledge(&mut receiver));
    assert_eq!((sender.unacknowledged(), sender.deadline()), (0, None));
}

#[test]
fn data_of_the_peer_take_the_patience_back() {
    let (mut sender, mut receiver) = pair();
    send(&mut sender, 0..1);
    for now in [100, 300, 700, 1_500] {
        assert_eq!(numbers(&expire(&mut sender, now)), [0]);
    }
    assert_eq!(sender.deadline(), Some(2_500));
    let (mut ready, mut out) = (Vec::new(), Vec::new());
    for frame in send(&mut receiver, 7..8) {
        sender.receive(1_600, frame, &mut ready, &mut out);
    }
    assert_eq!(sender.deadline(), Some(1_700));
}

#[test]
fn a_new_life_is_told_to_both_before_anything_of_it() {
    let (_, mut stayed) = pair();
    send(&mut stayed, 0..5);
    let mut again: Link<u64> = Link::beginning(OPTIONS, 1 << 32);
    let mut out = Vec::new();
    assert!(!again.send(0, 9, &mut out), "what is sent without a stream is lost");
    let hello = expire(&mut again, 0);
    assert_eq!(hello, [Frame { from: 1 << 32, to: 0, packet: Packet::Hello }]);
    let (ready, answer) = bring(&mut stayed, hello.clone());
    assert_eq!((ready, stayed.unacknowledged()), (vec![Delivery::Reset], 0));
    assert_eq!(answer.len(), 1);
    // What it sends now may come before its answer, and must not come before the reset.
    let early = send(&mut stayed, 70..71);
    let (ready, _) = bring(&mut again, early);
    assert_eq!(ready, [Delivery::Reset, Delivery::Message(70)]);
    assert_eq!(bring(&mut again, answer), (vec![], vec![]));
    assert_eq!(bring(&mut stayed, hello).0, [], "a copy of the hello is no other life");
    assert_eq!(bring(&mut stayed, send(&mut again, 1..3)).0, messages([1, 2]));
}

#[test]
fn what_an_earlier_life_sent_is_dropped() {
    let (mut old, mut stayed) = pair();
    let late = send(&mut old, 0..3);
    let to_old = send(&mut stayed, 0..3);
    let mut again: Link<u64> = Link::beginning(OPTIONS, 1 << 32);
    assert_eq!(bring(&mut again, to_old), (vec![], vec![]));
    let (_, answer) = bring(&mut stayed, expire(&mut again, 0));
    bring(&mut again, answer);
    assert_eq!(bring(&mut stayed, late), (vec![], vec![]));
}

#[test]
fn two_that_know_earlier_lives_of_each_other_find_together() {
    // Each hears the greeting of a life of the other that is over, and nothing else arrives.
    let late = |from| Frame { from, to: 0, packet: Packet::Hello };
    let mut left: Link<u64> = Link::beginning(OPTIONS, 20);
    let mut right: Link<u64> = Link::beginning(OPTIONS, 200);
    assert_eq!(bring(&mut left, vec![late(100)]).0, [Delivery::Reset]);
    assert_eq!(bring(&mut right, vec![late(10)]).0, [Delivery::Reset]);
    let data = send(&mut left, 0..1);
    let (ready, answers) = bring(&mut right, data);
    assert_eq!((ready, answers.len()), (vec![Delivery::Reset], 1), "the message was for an earlier life");
    let (ready, answers) = bring(&mut left, answers);
    assert_eq!((ready, answers), (vec![Delivery::Reset], vec![]));
    let data = send(&mut left, 1..2);
    assert_eq!(bring(&mut right, data).0, messages(1..2));
}

#[test]
fn too_many_messages_begin_the_link_anew() {
    let (mut sender, mut receiver) = pair();
    let lost = send(&mut sender, 0..OPTIONS.kept_max as u64);
    let mut out = Vec::new();
    assert!(!sender.send(5, 0, &mut out));
    assert_eq!((sender.unacknowledged(), sender.is_open(), sender.deadline()), (0, false, Some(5)));
    let (ready, answer) = bring(&mut receiver, expire(&mut sender, 5));
    assert_eq!(ready, [Delivery::Reset]);
    assert_eq!(bring(&mut receiver, lost).0, [], "they belong to the old stream");
    assert_eq!(bring(&mut sender, answer).0, [Delivery::Reset]);
    assert_eq!(bring(&mut receiver, send(&mut sender, 0..2)).0, messages([0, 1]));
}

/// One node of the model: its link, and what it has heard of the peer's present stream.
struct End {
    link: Link<u64>,
    life: u64,
    next: u64,
    heard: Vec<u64>,
}

/// Two ends that send ascending numbers, on a network that loses, repeats and reorders, with crashes: between two resets an
/// end hears the numbers that the other one sent since some reset, without a gap.
#[test]
fn streams_are_whole_between_resets_whatever_happens() {
    for seed in 0..300 {
        let mut random = Random::new(seed, "link", &[]);
        let options = LinkOptions { window: 1 + random.below(8), kept_max: 20, ..OPTIONS };
        let end = || End { link: Link::begun(options), life: 0, next: 0, heard: Vec::new() };
        let mut ends = [end(), end()];
        let mut way: Vec<(usize, Frame<u64>)> = Vec::new();
        let (mut resets, mut heard) = (0, 0);
        for now in 0..4_000 {
            let side = random.below(2) as usize;
            let mut out = Vec::new();
            let calm = now > 3_000;
            match random.below(20) {
                0 if !calm && random.below(10) == 0 => {
                    let End { life, link, .. } = &mut ends[side];
                    *life += 1;
                    *link = Link::beginning(options, *life << 32);
                    ends[side].heard.clear();
                }
                0..=5 if !calm => {
                    let End { link, next, .. } = &mut ends[side];
                    link.send(now, *next, &mut out);
                    *next += 1;
                }
                6..=8 => ends[side].link.acknowledge(&mut out),
                9..=11 => ends[side].link.expire(now, &mut out),
                _ if !way.is_empty() => {
                    let place = if calm { 0 } else { random.below(way.len() as u64) as usize };
                    let (to, frame) = way.remove(place);
                    if !calm && random.below(5) == 0 {
                        way.push((to, frame.clone()));
                    }
                    if calm || random.below(5) > 0 {
                        let mut ready = Vec::new();
                        let mut answers = Vec::new();
                        ends[to].link.receive(now, frame, &mut ready, &mut answers);
                        way.extend(answers.into_iter().map(|frame| (1 - to, frame)));
                        for delivery in ready {
                            match delivery {
                                Delivery::Reset => {
                                    ends[to].heard.clear();
                                    resets += 1;
                                }
                                Delivery::Message(number) => ends[to].heard.push(number),
                            }
                        }
                        heard += 1;
                        let whole = ends[to].heard.windows(2).all(|pair| pair[1] == pair[0] + 1);
                        assert!(whole, "seed {seed}: {:?}", ends[to].heard);
                    }
                }
                _ => {}
            }
            way.extend(out.into_iter().map(|frame| (1 - side, frame)));
        }
        assert!(resets > 0 && heard > 100, "seed {seed}: {resets} {heard}");
        assert!(ends.iter().all(|end| end.link.is_open()), "seed {seed}");
    }
}
