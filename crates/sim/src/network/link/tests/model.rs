//! Two nodes with journals over a bad network, against a model of what they must see.
//!
//! Each node journals its own inputs and what it receives. Only when an entry is on disk does it bring forth its message,
//! and only then is it acknowledged. A crash forgets the entries that are not on disk; the restart replays the others, in
//! pieces, while packets already come in. The model is the stream of messages that the journals define: whatever a life
//! sends must be what earlier lives sent, and whatever it is handed must be the next message of the peer's stream.

use ordain_workload::random::{Chance, Random};

use crate::heap::Heap;
use crate::network::latency::Latency;
use crate::network::link::{Link, LinkOptions, Packet};
use crate::network::topology::Topology;
use crate::network::{Host, InFlight, Network, NetworkOptions};
use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds, SECOND};

const SYNC_MAX: Nanoseconds = 4 * MILLISECOND;
const REPLAY_STEP: Nanoseconds = 100 * MICROSECOND;
const FAULTS_UNTIL: Nanoseconds = 3 * SECOND;

#[derive(Clone, Copy, Debug)]
enum Entry {
    Input(u64),
    Received(u64),
}

impl Entry {
    /// The message that it brings forth, if any. The lowest digit of a message says how often it is still answered.
    fn message(self, node: usize, place: usize) -> Option<u64> {
        let name = (place as u64 * 2 + node as u64) * 10;
        match self {
            Entry::Input(hops) => Some(name + hops),
            Entry::Received(message) if message % 10 == 0 => None,
            Entry::Received(message) => Some(name + message % 10 - 1),
        }
    }
}

struct Node {
    link: Link<u64>,
    alive: bool,
    life: u32,
    journal: Vec<Entry>,
    /// So many entries are on disk.
    durable: usize,
    syncing: bool,
    /// So many entries have brought forth their message in this life.
    done: usize,
    timer: Option<Nanoseconds>,
}

enum Event {
    Input { node: usize },
    Synced { node: usize, life: u32, entries: usize },
    Work { node: usize, life: u32 },
    Arrival { to: usize, generation: u32, packet: Packet<u64> },
    Timer { node: usize, life: u32 },
    Fault,
    Restart { node: usize },
}

#[derive(PartialEq, Eq, Default, Debug)]
struct Tally {
    crashes: u64,
    resent: u64,
    delivered: u64,
    lost: u64,
    overtaken_by_answer: u64,
}

struct World {
    heap: Heap<Event>,
    network: Network,
    random: Random,
    options: LinkOptions,
    nodes: [Node; 2],
    /// By sender: the messages that its journals have ever brought forth.
    streams: [Vec<u64>; 2],
    tally: Tally,
    healed: bool,
}

fn received(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| matches!(entry, Entry::Received(_))).count()
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random::new(seed, "link", &[]);
        let mut chance = |most: u64| {
            let percent = random.below(most + 1) as f64;
            Some(Chance::of_percent(percent, "test").unwrap())
        };
        let (loss, duplication, reordering) = (chance(30), chance(30), chance(30));
        let topologies = [Topology::lan(), Topology::uniform(Latency::distant(5 * MILLISECOND))];
        let topology = topologies[random.below(2) as usize].clone();
        let in_flight = [InFlight::Delivered, InFlight::Lost][random.below(2) as usize];
        let bandwidth = [0, 1_000_000][random.below(2) as usize];
        let options = LinkOptions {
            window: [1, 2, 5, 64][random.below(4) as usize],
            ..LinkOptions::for_round_trip(topology.round_trip_max() + SYNC_MAX)
        };
        let network = NetworkOptions {
            topology,
            bandwidth,
            loss,
            duplication,
            reordering,
            reordering_delay: 10 * MILLISECOND,
            in_flight,
        };
        let node = || Node {
            link: Link::new(options),
            alive: true,
            life: 0,
            journal: Vec::new(),
            durable: 0,
            syncing: false,
            done: 0,
            timer: None,
        };
        let mut world = World {
            heap: Heap::new(),
            network: Network::new(2, network, Random::new(seed, "network", &[])).unwrap(),
            random,
            options,
            nodes: [node(), node()],
            streams: [Vec::new(), Vec::new()],
            tally: Tally::default(),
            healed: false,
        };
        world.heap.plan(0, Event::Input { node: 0 });
        world.heap.plan(0, Event::Input { node: 1 });
        world.heap.plan(SECOND / 10, Event::Fault);
        world
    }

    /// Sends packets, each of which may be told only what is on disk, and follows the link's timer.
    fn ship(&mut self, node: usize, packets: Vec<Packet<u64>>) {
        let state = &mut self.nodes[node];
        assert!(state.link.transmitted - state.link.acknowledged <= self.options.window);
        let (from, to) = (Host(node as u16), Host(1 - node as u16));
        for packet in packets {
            if let Packet::Acknowledge { next } = packet {
                let durable = received(&state.journal[..state.durable]) as u64;
                assert!(next <= durable, "{next} acknowledged, {durable} on disk");
            }
            let arrivals = self.network.send(self.heap.now(), from, to, 100);
            for at in arrivals.times() {
                let packet = packet.clone();
                let generation = arrivals.generation();
                self.heap.plan(*at, Event::Arrival { to: 1 - node, generation, packet });
            }
        }
        if state.timer != state.link.deadline() {
            state.timer = state.link.deadline();
            let life = state.life;
            state.timer.into_iter().for_each(|at| self.heap.plan(at, Event::Timer { node, life }));
        }
    }

    fn journal(&mut self, node: usize, entry: Entry) {
        let state = &mut self.nodes[node];
        state.journal.push(entry);
        self.sync(node);
    }

    fn sync(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        if !state.syncing && state.durable < state.journal.len() {
            state.syncing = true;
            let (life, entries) = (state.life, state.journal.len());
            let delay = self.random.below(SYNC_MAX);
            self.heap.plan_after(delay, Event::Synced { node, life, entries });
        }
    }

    /// Brings forth the messages of some entries that are on disk, and goes on later if more are left.
    fn work(&mut self, node: usize) {
        let now = self.heap.now();
        let mut out = Vec::new();
        let state = &mut self.nodes[node];
        let end = state.durable.min(state.done + 20);
        for place in state.done..end {
            let Some(message) = state.journal[place].message(node, place) else { continue };
            let number = state.link.sent() as usize;
            match self.streams[node].get(number) {
                Some(before) => assert_eq!(message, *before, "a life sends something else than the last"),
                None => self.streams[node].push(message),
            }
            self.tally.overtaken_by_answer += u64::from(state.link.forgotten() > 0);
            state.link.send(now, message, &mut out);
        }
        state.done = end;
        if state.done < state.durable {
            let life = state.life;
            self.heap.plan_after(REPLAY_STEP, Event::Work { node, life });
        } else {
            assert_eq!(state.link.forgotten(), 0, "the peer knows more than the journal");
        }
        self.ship(node, out);
    }

    fn arrival(&mut self, node: usize, packet: Packet<u64>) {
        let (mut ready, mut out) = (Vec::new(), Vec::new());
        let state = &mut self.nodes[node];
        state.link.receive(self.heap.now(), packet, &mut ready, &mut out);
        self.tally.delivered += ready.len() as u64;
        self.ship(node, out);
        for message in ready {
            let number = received(&self.nodes[node].journal);
            assert_eq!(self.streams[1 - node][number], message, "message {number} to node {node}");
            self.journal(node, Entry::Received(message));
        }
    }

    fn fault(&mut self) {
        let (a, b) = (Host(0), Host(1));
        let until = self.heap.now() + self.random.below(SECOND / 5);
        match self.random.below(9) {
            0 => self.network.cut(a, b),
            1 => self.network.cut(b, a),
            2 => self.network.partition(&[a], &[b]),
            3 => self.network.clog(a, b, until),
            4 => self.network.slow(b, 10),
            5 | 6 => self.network.heal_all(),
            victim => self.crash(victim as usize - 7, until),
        }
        if self.heap.now() < FAULTS_UNTIL {
            let delay = self.random.below(SECOND / 10);
            self.heap.plan_after(delay, Event::Fault);
        }
    }

    fn crash(&mut self, node: usize, until: Nanoseconds) {
        let state = &mut self.nodes[node];
        if !state.alive {
            return;
        }
        state.alive = false;
        state.life += 1;
        state.journal.truncate(state.durable);
        self.tally.crashes += 1;
        self.heap.plan(until, Event::Restart { node });
    }

    fn restart(&mut self, node: usize) {
        let state = &mut self.nodes[node];
        if state.alive {
            return;
        }
        state.alive = true;
        state.syncing = false;
        state.done = 0;
        state.timer = None;
        state.link = Link::resumed(self.options, received(&state.journal) as u64);
        self.work(node);
    }

    fn is_current(&self, node: usize, life: u32) -> bool {
        self.nodes[node].alive && self.nodes[node].life == life
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Input { node } => {
                if self.nodes[node].alive {
                    let hops = self.random.below(3);
                    self.journal(node, Entry::Input(hops));
                }
                if !self.healed {
                    let delay = self.random.below(20 * MILLISECOND);
                    self.heap.plan_after(delay, Event::Input { node });
                }
            }
            Event::Synced { node, life, entries } if self.is_current(node, life) => {
                let state = &mut self.nodes[node];
                let planned = state.done < state.durable;
                state.syncing = false;
                state.durable = entries;
                let mut out = Vec::new();
                let safe = received(&state.journal[..entries]) as u64;
                state.link.acknowledge_through(safe, &mut out);
                self.ship(node, out);
                if !planned {
                    self.work(node);
                }
                self.sync(node);
            }
            Event::Work { node, life } if self.is_current(node, life) => self.work(node),
            Event::Arrival { to, generation, packet } => {
                let from = Host(1 - to as u16);
                if self.network.arrives(from, Host(to as u16), generation) && self.nodes[to].alive {
                    self.arrival(to, packet);
                }
            }
            Event::Timer { node, life } if self.is_current(node, life) => {
                let mut out = Vec::new();
                self.nodes[node].link.expire(self.heap.now(), &mut out);
                self.tally.resent += out.len() as u64;
                self.ship(node, out);
            }
            Event::Fault if !self.healed => self.fault(),
            Event::Restart { node } => self.restart(node),
            Event::Synced { .. } | Event::Work { .. } | Event::Timer { .. } | Event::Fault => (),
        }
    }

    fn run_until(&mut self, until: Nanoseconds) {
        while let Some(event) = self.heap.next_until(until) {
            self.step(event);
        }
    }

    fn is_quiet(&self) -> bool {
        (0..2).all(|node| {
            let (state, peer) = (&self.nodes[node], &self.nodes[1 - node]);
            let all = self.streams[node].len();
            state.link.unacknowledged() == 0
                && state.done == state.journal.len()
                && received(&peer.journal[..peer.durable]) == all
                && (peer.link.received(), peer.link.safe()) == (all as u64, all as u64)
        })
    }

    /// Ends all faults; then everything must be done within a bound.
    fn heal(&mut self) {
        self.healed = true;
        self.network.heal_all();
        self.network.lossless();
        (0..2).for_each(|node| self.restart(node));
        let healed = self.heap.now();
        let had = self.nodes.iter().map(|node| received(&node.journal[..node.durable])).sum::<usize>();
        let replay = self.nodes.iter().map(|node| node.journal.len() as u64).sum::<u64>() / 20 * REPLAY_STEP;
        // To send a packet of 100 bytes takes 0.1 ms over a slow wire, to and fro.
        let wire = 2 * 64 * MILLISECOND / 10;
        let round = self.network.options().topology.round_trip_max() + 2 * SYNC_MAX + wire;
        while !self.is_quiet() {
            let left = self.streams.iter().map(Vec::len).sum::<usize>() - had;
            let rounds = left as u64 / self.options.window + 3 * 7;
            let bound = 2 * self.options.timeout_max + replay + rounds * round;
            let passed = self.heap.now() - healed;
            assert!(passed <= bound, "not quiet {passed} ns after healing, at most {bound} ns are allowed");
            if let Some(event) = self.heap.next_until(healed + bound + 1) {
                self.step(event);
            }
        }
    }
}

fn run(seed: u64) -> (Tally, [Vec<u64>; 2]) {
    let mut world = World::new(seed);
    world.run_until(FAULTS_UNTIL);
    world.heal();
    world.tally.lost = world.network.counters().lost;
    (world.tally, world.streams)
}

#[test]
fn every_message_arrives_once_and_in_order() {
    let mut sum = Tally::default();
    for seed in 0..300 {
        let (tally, streams) = run(seed);
        assert!(streams.iter().all(|stream| stream.len() > 50), "seed {seed} did next to nothing");
        sum.crashes += tally.crashes;
        sum.resent += tally.resent;
        sum.delivered += tally.delivered;
        sum.lost += tally.lost;
        sum.overtaken_by_answer += tally.overtaken_by_answer;
    }
    // The faults that the test is about did happen.
    assert!(sum.crashes > 1_000 && sum.lost > 10_000, "{sum:?}");
    assert!(sum.resent > 10_000 && sum.overtaken_by_answer > 100, "{sum:?}");
    assert!(sum.delivered > 50_000, "{sum:?}");
}

#[test]
fn a_seed_repeats_its_run() {
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
