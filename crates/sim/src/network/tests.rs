//! Tests of the network: each fault, the wire, and that a seed says everything.

use super::latency::Latency;
use super::topology::{Region, Topology};
use super::*;
use crate::time::{MICROSECOND, MILLISECOND};

const A: Host = Host(0);
const B: Host = Host(1);
const C: Host = Host(2);

fn random() -> Random {
    Random::new(7, "network", &[])
}

/// Three hosts, 100 ns apart.
fn fixed(change: impl FnOnce(&mut NetworkOptions)) -> Network {
    let mut options = NetworkOptions::reliable(Topology::uniform(Latency::fixed(100)));
    change(&mut options);
    Network::new(3, options, random()).unwrap()
}

fn chance(percent: f64) -> Option<Chance> {
    Some(Chance::of_percent(percent, "test").unwrap())
}

/// A network with all that can happen by chance.
fn noisy(topology: Topology, seed: u64) -> Network {
    let options = NetworkOptions {
        loss: chance(10.0),
        duplication: chance(10.0),
        reordering: chance(10.0),
        reordering_delay: 5 * MILLISECOND,
        ..NetworkOptions::reliable(topology)
    };
    Network::new(3, options, Random::new(seed, "network", &[])).unwrap()
}

#[test]
fn a_reliable_network_keeps_the_order() {
    for topology in [Topology::local(), Topology::lan(), Topology::wan(&Region::ALL)] {
        let latency = topology.latency(A, B);
        let mut network = Network::new(3, NetworkOptions::reliable(topology), random()).unwrap();
        let mut last = 0;
        for now in (0..20 * MILLISECOND).step_by(20 * MICROSECOND as usize) {
            let arrivals = network.send(now, A, B, 10);
            let [arrival] = *arrivals.times() else { panic!("one copy, not {arrivals:?}") };
            assert!(arrival >= last && arrival >= now + latency.minimum);
            last = arrival;
        }
        let counters = network.counters();
        assert_eq!((counters.sent, counters.bytes, counters.lost), (1_000, 10_000, 0));
    }
}

#[test]
fn the_short_and_the_long_path_agree() {
    let options = NetworkOptions::reliable(Topology::lan());
    let mut short = Network::new(3, options, random()).unwrap();
    let mut long = short.clone();
    long.slow(C, 1);
    assert!(short.plain && !long.plain);
    for now in 0..10_000 {
        assert_eq!(short.send(now, A, B, 1), long.send(now, A, B, 1));
        assert_eq!(short.send(now, B, B, 1), long.send(now, B, B, 1));
    }
}

#[test]
fn a_cut_is_one_way() {
    let mut network = fixed(|_| ());
    network.cut(A, B);
    network.cut(A, B);
    assert!(network.is_cut(A, B) && !network.is_cut(B, A));
    assert!(network.send(0, A, B, 1).times().is_empty());
    assert_eq!(network.send(0, B, A, 1).times(), [100]);
    assert_eq!(network.send(0, A, C, 1).times(), [100]);
    network.heal(A, B);
    assert_eq!(network.send(5, A, B, 1).times(), [105]);
    assert_eq!(network.counters().lost, 1);
}

#[test]
fn partitions_are_symmetric() {
    let mut network = fixed(|_| ());
    let reach = |network: &mut Network| {
        let pairs = [(A, B), (B, A), (A, C), (C, A), (B, C), (C, B), (A, A)];
        pairs.map(|(from, to)| u8::from(!network.send(0, from, to, 1).times().is_empty()))
    };
    network.partition(&[A], &[B, C]);
    assert_eq!(reach(&mut network), [0, 0, 0, 0, 1, 1, 1]);
    network.heal_all();
    assert_eq!(reach(&mut network), [1; 7]);
    network.partition(&[A, B], &[B, C]);
    assert_eq!(reach(&mut network), [0, 0, 0, 0, 0, 0, 1]);
    assert!(!network.plain);
    network.heal_all();
    assert!(network.plain);
}

#[test]
fn packets_in_flight_over_a_cut_way_arrive_or_not() {
    for (in_flight, arrive) in [(InFlight::Delivered, true), (InFlight::Lost, false)] {
        let mut network = fixed(|options| options.in_flight = in_flight);
        let before = network.send(0, A, B, 1).generation();
        network.cut(A, B);
        network.heal(A, B);
        let after = network.send(0, A, B, 1).generation();
        assert_eq!((network.arrives(A, B, before), network.arrives(A, B, after)), (arrive, true));
        assert_eq!(network.counters().lost, u64::from(!arrive));
    }
}

#[test]
fn a_clogged_way_lets_all_go_in_order_at_the_end() {
    let mut network = Network::new(3, NetworkOptions::reliable(Topology::lan()), random()).unwrap();
    let before = network.send(0, A, B, 1).times()[0];
    network.clog(A, B, MILLISECOND);
    let mut last = MILLISECOND + Latency::LAN.minimum;
    for now in (0..2 * MILLISECOND).step_by(10 * MICROSECOND as usize) {
        let arrival = network.send(now, A, B, 1).times()[0];
        assert!(arrival >= last, "a packet overtook the one before it");
        assert!(network.send(now, B, A, 1).times()[0] < now + MILLISECOND + MILLISECOND);
        last = arrival;
    }
    assert!(before < MILLISECOND);
    // Healed early, the way is free at once, also for packets behind those that are still waiting.
    network.clog(A, B, u64::MAX);
    assert_eq!(network.send(0, A, B, 1).times(), [u64::MAX]);
    network.heal_all();
    assert!(network.send(0, A, B, 1).times()[0] < 2 * MILLISECOND);
}

#[test]
fn bytes_wait_for_each_other_on_the_wire() {
    // One byte per nanosecond.
    let mut network = fixed(|options| options.bandwidth = 1_000_000_000);
    assert_eq!(network.send(0, A, B, 1_000).times(), [1_100]);
    assert_eq!(network.send(0, A, B, 500).times(), [1_600]);
    assert_eq!(network.send(10, A, B, 0).times(), [1_600]);
    // Another way has its own wire, the way back too; a free wire is not saved up.
    assert_eq!(network.send(0, A, C, 10).times(), [110]);
    assert_eq!(network.send(0, B, A, 10).times(), [110]);
    assert_eq!(network.send(9_000, A, B, 10).times(), [9_110]);
    // A host reaches itself over no wire.
    assert!(network.send(0, A, A, u64::MAX / 4).times()[0] <= Latency::LOCAL.longest());
    // A bandwidth that does not divide a second is never exceeded.
    let mut slow = fixed(|options| options.bandwidth = 3);
    assert_eq!(slow.send(0, A, B, 3).times(), [SECOND + 100 + 1]);
}

#[test]
fn a_slow_host_is_slow_in_both_directions() {
    let mut network = fixed(|_| ());
    network.slow(B, 5);
    network.slow(C, 0);
    assert_eq!(network.send(0, A, B, 1).times(), [500]);
    assert_eq!(network.send(0, B, A, 1).times(), [500]);
    assert_eq!(network.send(0, A, C, 1).times(), [100]);
    network.slow(A, 2);
    assert_eq!(network.send(1_000, A, B, 1).times(), [1_500]);
    network.heal_all();
    assert_eq!(network.send(2_000, A, B, 1).times(), [2_100]);
}

#[test]
fn chances_are_met() {
    let mut network = noisy(Topology::lan(), 1);
    let mut copies = [0_u64; 4];
    let mut late = 0;
    for count in 0..100_000 {
        let now = count * 10 * MILLISECOND;
        let arrivals = network.send(now, A, B, 1);
        copies[arrivals.times().len()] += 1;
        late += arrivals.times().iter().filter(|at| **at > now + Latency::LAN.longest()).count();
        assert!(arrivals.times().iter().all(|at| *at <= now + Latency::LAN.longest() + 5 * MILLISECOND));
    }
    let counters = network.counters();
    assert_eq!(copies[0], counters.lost);
    assert_eq!(copies[2] + 2 * copies[3], counters.duplicated);
    let about = |count: u64, expected: u64| assert!(count.abs_diff(expected) < expected / 10, "{count}");
    about(counters.lost, 10_000);
    about(counters.reordered, 9_000);
    about(copies[2], 8_100);
    about(copies[3], 900);
    assert!(late > 10_000, "{late} copies came later than the latency explains");
    network.lossless();
    assert!(network.plain);
    assert!((0..1_000).all(|now| network.send(now, A, B, 1).times().len() == 1));
}

#[test]
fn lossless_leaves_faults_alone() {
    let mut network = noisy(Topology::lan(), 1);
    network.cut(A, B);
    network.lossless();
    assert!((0..100).all(|now| network.send(now, A, B, 1).times().is_empty()));
}

#[test]
fn nothing_happens_by_chance_on_the_way_to_oneself() {
    let mut network = noisy(Topology::lan(), 1);
    assert!((0..1_000).all(|now| network.send(now, A, A, 1).times().len() == 1));
}

#[test]
fn a_seed_says_everything() {
    let run = |seed| {
        let mut network = noisy(Topology::wan(&Region::ALL), seed);
        let mut arrivals = Vec::new();
        for now in 0..2_000_u64 {
            match now % 500 {
                100 => network.cut(A, B),
                200 => network.clog(B, A, now + 50),
                300 => network.slow(C, 3),
                400 => network.heal_all(),
                _ => (),
            }
            for (from, to) in [(A, B), (B, A), (B, C), (C, A)] {
                arrivals.push(network.send(now * MICROSECOND, from, to, now));
            }
        }
        (arrivals, network.counters())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn every_host_needs_a_place() {
    let options = NetworkOptions::reliable(Topology::wan(&[Region::Europe]));
    let error = Network::new(2, options, random()).unwrap_err().to_string();
    assert!(error.contains("places 1 of 2 hosts"), "{error}");
}

#[test]
#[should_panic(expected = "there is no host 3, only 3 hosts")]
fn unknown_hosts_are_refused() {
    fixed(|_| ()).send(0, A, Host(3), 1);
}
