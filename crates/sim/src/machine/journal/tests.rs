//! The journal over its disk: what a crash may do to it, and what it must notice.

use bytes::Bytes;
use ordain_db::error::Error;
use ordain_db::message::{
    ClientId, ClientRequest, Message, Operation, Ordered, Reply, Request, RequestId, Work,
};
use ordain_db::position::PartitionId;
use ordain_db::procedure::ProcedureId;
use ordain_workload::random::{Chance, Random};

use super::*;
use crate::machine::disk::{DiskOptions, SECTOR_BYTES, SyncTicket};

type Step = (u64, Vec<Event>);

fn encoded(now_microseconds: u64, events: &[Event]) -> Vec<u8> {
    postcard::to_allocvec(&(now_microseconds, events)).unwrap()
}

fn noise(random: &mut Random, length: u64) -> Bytes {
    let mut bytes = vec![0; length as usize];
    random.fill(&mut bytes);
    Bytes::from(bytes)
}

fn event(random: &mut Random) -> Event {
    let id = RequestId {
        client: ClientId { home: PartitionId(random.below(3) as u16), number: random.bits() },
        sequence: random.below(1_000),
    };
    // Short ones, so that a sector has several records, and long ones, so that a record has several sectors.
    let length = [0, 20, 200, 3_000][random.below(4) as usize];
    let arguments = noise(random, length);
    let procedure = ProcedureId(random.below(9) as u16);
    match random.below(4) {
        0 => {
            let operation = Operation::Call { procedure, arguments };
            Event::Requests(vec![ClientRequest::Ordered(Request { id, acknowledged: 1, operation })])
        }
        1 => Event::Requests(vec![ClientRequest::Status { request: id, digest: true }; 2]),
        2 => {
            let work = Work::Call { procedure, arguments, reconnoitred: None };
            let transactions = vec![(7, Ordered { request: id, work })];
            Event::Peer {
                from: PartitionId(1),
                message: Message::Batch { epoch: Default::default(), transactions },
            }
        }
        _ => {
            let replies = vec![Reply { request: id, outcome: Err(Error::Busy("later".into())) }];
            Event::Peer { from: PartitionId(2), message: Message::Replies(replies) }
        }
    }
}

fn step(random: &mut Random) -> Step {
    (random.below(1 << 40), (0..random.below(4)).map(|_| event(random)).collect())
}

/// A journal with what was written to it.
struct Run {
    random: Random,
    journal: Option<Journal>,
    /// The encoded steps, with the offsets of their ends.
    written: Vec<(Vec<u8>, u64)>,
    tickets: Vec<SyncTicket>,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut random = Random::new(seed, "journal", &[]);
        let mut chance =
            || Chance::of_percent([0.0, 30.0, 70.0, 100.0][random.below(4) as usize], "test").unwrap();
        let (lose_unsynced, tear, lose_length) = (chance(), chance(), chance());
        let options = DiskOptions { lose_unsynced, tear, lose_length, ..DiskOptions::default() };
        let disk = Disk::new(options, Random::new(seed, "disk", &[]));
        Run { random, journal: Some(Journal::create(disk)), written: Vec::new(), tickets: Vec::new() }
    }

    fn journal(&mut self) -> &mut Journal {
        self.journal.as_mut().unwrap()
    }

    fn append(&mut self) {
        let (now, events) = step(&mut self.random);
        let end = self.journal().append(now, &events).unwrap();
        self.written.push((encoded(now, &events), end));
    }

    /// Appends and syncs at random, with several syncs under way at times.
    fn work(&mut self, rounds: u64) {
        for _ in 0..rounds {
            for _ in 0..self.random.below(4) {
                self.append();
            }
            let ticket = self.journal().disk_mut().begin_sync(0);
            self.tickets.push(ticket);
            while !self.tickets.is_empty() && self.random.below(3) > 0 {
                let ticket = self.tickets.remove(0);
                assert!(self.journal().disk_mut().complete_sync(ticket));
            }
        }
    }

    /// Stops the machine, with a loss of power or without one.
    fn stop(&mut self, power_fails: bool) -> Disk {
        let mut disk = self.journal.take().unwrap().into_disk();
        if power_fails {
            disk.crash();
            self.tickets.clear();
        }
        disk
    }

    /// Asserts that what was recovered is exactly what was written up to a place, and that this place is as it is told.
    fn assert_prefix(&self, recovered: &Recovered) {
        assert!(recovered.records.len() <= self.written.len());
        let mut end = 0;
        for (record, (step, written_end)) in recovered.records.iter().zip(&self.written) {
            assert!(encoded(record.now_microseconds, &record.events) == *step);
            assert_eq!(record.end, *written_end);
            end = record.end;
        }
        assert_eq!(recovered.valid_bytes, end);
    }

    /// Stops, recovers without damage, and goes on.
    fn restart(&mut self, power_fails: bool) {
        let (durable, length) = (self.journal().disk().durable(), self.journal().disk().length());
        let disk = self.stop(power_fails);
        let recovered = recover(disk.read()).unwrap();
        self.assert_prefix(&recovered);
        assert!(recovered.valid_bytes >= durable, "what was durable is there");
        assert!(
            power_fails || recovered.valid_bytes == length,
            "without a loss of power everything is there"
        );
        assert_eq!(recovered.valid_bytes + recovered.torn_bytes, disk.length());
        self.written.truncate(recovered.records.len());
        self.journal = Some(Journal::resume(disk, &recovered));
    }

    /// The record that has a byte: its offset and number.
    fn record_at(&self, byte: u64) -> (u64, u64) {
        let index = self.written.partition_point(|(_, end)| *end <= byte);
        let offset = index.checked_sub(1).map_or(0, |before| self.written[before].1);
        (offset, index as u64 + 1)
    }
}

#[test]
fn a_crash_leaves_all_that_was_durable_and_no_damage() {
    let mut torn = 0;
    for seed in 0..1_500 {
        let mut run = Run::new(seed);
        for _ in 0..4 {
            run.work(6);
            let power_fails = run.random.below(4) > 0;
            let before = run.written.len();
            run.restart(power_fails);
            torn += u32::from(run.written.len() < before);
        }
    }
    assert!(torn > 1_000, "only {torn} crashes lost something: the test shows nothing");
}

#[test]
fn a_latent_fault_is_always_noticed_at_its_place() {
    let mut hit = [0; 2];
    for seed in 0..4_000 {
        let mut run = Run::new(seed);
        run.work(8);
        if run.random.below(2) == 0 {
            run.restart(true);
            run.work(3);
        }
        let kind = (seed % 2) as usize;
        let before = run.journal().disk().read().to_vec();
        let disk = run.journal().disk_mut();
        let Some(sector) = [Disk::corrupt, Disk::misdirect][kind](disk) else { continue };
        hit[kind] += 1;
        let first = disk.read().iter().zip(&before).position(|(now, before)| now != before).unwrap() as u64;
        assert_eq!(first / SECTOR_BYTES, sector);
        let power_fails = run.random.below(2) == 0;
        let disk = run.stop(power_fails);
        let damage = recover(disk.read()).unwrap_err();
        assert_eq!((damage.offset, damage.sequence), run.record_at(first), "seed {seed}: {damage}");
    }
    assert!(hit.iter().all(|hits| *hits > 1_000), "{hit:?}");
}

/// Changes bytes at or above `low` and below `high`; may cut the file, not below `low`.
fn mutate(random: &mut Random, bytes: &mut Vec<u8>, low: u64, high: u64, may_cut: bool) {
    if low >= high {
        return;
    }
    let at = (low + random.below(high - low)) as usize;
    let end = (at + 1 + random.below(2 * SECTOR_BYTES) as usize).min(high as usize).min(bytes.len());
    match random.below(if may_cut { 5 } else { 4 }) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at..end].fill(0),
        2 => random.fill(&mut bytes[at..end]),
        3 => {
            let source = random.below((bytes.len() - (end - at)) as u64 + 1) as usize;
            bytes.copy_within(source..source + (end - at), at);
        }
        _ => bytes.truncate(at),
    }
}

#[test]
fn any_change_leaves_a_prefix_or_is_damage() {
    let (mut damages, mut prefixes) = (0, 0);
    for seed in 0..6_000 {
        let mut run = Run::new(seed);
        run.work(8);
        let settled = run.journal().disk().settled();
        let disk = run.stop(false);
        let intact = disk.read().to_vec();
        let mut bytes = intact.clone();
        let length = disk.length();
        let (low, high) = [(0, settled), (settled, length), (0, length)][(seed % 3) as usize];
        for _ in 0..=run.random.below(3) {
            mutate(&mut run.random, &mut bytes, low, high.min(intact.len() as u64), false);
        }
        if seed % 3 != 0 {
            let length = bytes.len() as u64;
            mutate(&mut run.random, &mut bytes, low, length, true);
        }
        match recover(&bytes) {
            Ok(recovered) => {
                run.assert_prefix(&recovered);
                prefixes += 1;
                if seed % 3 == 0 {
                    assert!(bytes == intact, "seed {seed}: what was settled has changed, unnoticed");
                } else if seed % 3 == 1 {
                    assert!(recovered.valid_bytes >= settled, "seed {seed}");
                }
            }
            Err(damage) => {
                assert!(bytes != intact, "seed {seed}: {damage}");
                damages += 1;
            }
        }
    }
    assert!(damages > 1_000 && prefixes > 1_000, "{damages} {prefixes}");
}

#[test]
fn recovery_survives_bytes_that_nobody_wrote() {
    let mut random = Random::new(5, "noise", &[]);
    for length in 0..600 {
        let bytes = noise(&mut random, length);
        let recovered = recover(&bytes).unwrap();
        assert_eq!((recovered.records.len(), recovered.valid_bytes, recovered.torn_bytes), (0, 0, length));
        assert_eq!(recover(&vec![0; length as usize]).unwrap().valid_bytes, 0);
    }
}

/// A first record with this payload and the right checksum.
fn forged(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    record::encode(&mut bytes, record::SEQUENCE_BEGIN, record::CHAIN_BEGIN, 0, 0, &[]).unwrap();
    bytes.truncate(HEADER_BYTES);
    bytes.extend_from_slice(payload);
    bytes[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..4]), &bytes[8..]);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn a_record_that_is_no_step_is_damage_and_no_panic() {
    let mut random = Random::new(5, "forged", &[]);
    for round in 0..20_000 {
        let mut payload = match round % 2 {
            0 => noise(&mut random, round % 100).to_vec(),
            _ => {
                let (now, events) = step(&mut random);
                encoded(now, &events)
            }
        };
        let at = random.below(payload.len() as u64) as usize;
        if let Some(byte) = payload.get_mut(at) {
            *byte = random.bits() as u8;
        }
        match recover(&forged(&payload)) {
            Ok(recovered) => assert_eq!(recovered.records.len(), 1),
            Err(damage) => assert!(matches!(damage.kind, DamageKind::NotAStep(_))),
        }
    }
    let damage = recover(&forged(&[0, 0, 9])).unwrap_err();
    assert_eq!(
        damage.to_string(),
        "record 1 of the journal, at byte 0, cannot be read although its checksum is right (1 bytes too many): start the \
         machine with the version that wrote it"
    );
}

/// Three records of more than a sector each, the first of which is durable.
fn three_records(sync_more: bool) -> Run {
    let mut run = Run::new(1);
    for index in 0..3 {
        let event = Event::Peer {
            from: PartitionId(1),
            message: Message::Reads(Bytes::from(vec![index + 1; 1_000])),
        };
        let end = run.journal().append(u64::from(index), std::slice::from_ref(&event)).unwrap();
        run.written.push((encoded(u64::from(index), &[event]), end));
        if index == 0 || (index == 1 && sync_more) {
            let ticket = run.journal().disk_mut().begin_sync(0);
            run.journal().disk_mut().complete_sync(ticket);
        }
    }
    run
}

#[test]
fn a_hole_before_kept_records_is_a_torn_tail_unless_it_was_durable() {
    for (sync_more, lost) in [(false, 1), (true, 0), (true, 1), (false, 0)] {
        let mut run = three_records(sync_more);
        let disk = run.stop(false);
        let mut bytes = disk.read().to_vec();
        let begin = if lost == 0 { 0 } else { run.written[0].1 as usize };
        bytes[begin + 100..begin + 600].fill(0);
        let end = run.written[2].1;
        match recover(&bytes) {
            Ok(recovered) => {
                assert_eq!((sync_more, lost), (false, 1), "the later records say that it was durable");
                run.assert_prefix(&recovered);
                assert_eq!((recovered.records.len(), recovered.torn_bytes), (1, end - run.written[0].1));
            }
            Err(damage) => {
                assert_eq!((damage.offset, damage.sequence), (begin as u64, lost + 1));
                assert_ne!((sync_more, lost), (false, 1), "no record says that it was durable");
            }
        }
    }
}

#[test]
fn damage_says_where_it_is_and_what_to_do() {
    let mut run = three_records(true);
    let mut bytes = run.stop(false).read().to_vec();
    bytes[40] ^= 1;
    let first = run.written[0].1;
    assert_eq!(
        recover(&bytes).unwrap_err().to_string(),
        format!(
            "the journal is damaged in record 1, at byte 0: the record at byte {first} tells that {first} bytes were \
             durable. Others may rely on what is lost: do not cut the journal, do not start the machine from it, and put \
             back a copy of its disk"
        )
    );
}

#[test]
fn a_record_left_out_repeated_or_of_another_life_is_not_taken() {
    let mut run = three_records(true);
    let ends: Vec<usize> = run.written.iter().map(|(_, end)| *end as usize).collect();
    let bytes = run.stop(false).read().to_vec();
    let left_out = [&bytes[..ends[0]], &bytes[ends[1]..]].concat();
    assert!(matches!(recover(&left_out), Err(Damage { sequence: 2, .. })));
    let repeated = [&bytes[..ends[0]], &bytes[..ends[0]]].concat();
    assert_eq!(recover(&repeated).unwrap().records.len(), 1);
    // Another life: the same number and length, after another first record.
    let mut other = three_records(false).journal.unwrap().into_disk();
    other.truncate(0);
    let mut other = Journal::create(other);
    let event =
        |byte| Event::Peer { from: PartitionId(1), message: Message::Reads(Bytes::from(vec![byte; 1_000])) };
    other.append(0, &[event(7)]).unwrap();
    let other = other.disk().read();
    assert_eq!(other.len(), ends[0]);
    assert_eq!(recover(&[other, &bytes[ends[0]..ends[1]]].concat()).unwrap().records.len(), 1);
}

#[test]
fn a_resumed_journal_continues_the_chain() {
    let mut run = three_records(false);
    let mut disk = run.stop(false);
    disk.append(b"what a crash left").unwrap();
    let recovered = recover(disk.read()).unwrap();
    assert_eq!((recovered.records.len(), recovered.torn_bytes), (3, 17));
    run.journal = Some(Journal::resume(disk, &recovered));
    run.append();
    run.restart(false);
    run.append();
    let recovered = recover(run.stop(false).read()).unwrap();
    run.assert_prefix(&recovered);
    assert_eq!((recovered.records.len(), recovered.torn_bytes), (5, 0));
}

#[test]
fn a_full_disk_refuses_a_step_which_can_be_appended_later() {
    let options = DiskOptions { capacity: 1_500, ..DiskOptions::default() };
    let mut journal = Journal::create(Disk::new(options, Random::new(1, "disk", &[])));
    let event = Event::Peer { from: PartitionId(1), message: Message::Reads(Bytes::from(vec![1; 900])) };
    let end = journal.append(1, std::slice::from_ref(&event)).unwrap();
    let refused = journal.append(2, std::slice::from_ref(&event)).unwrap_err();
    assert_eq!(refused, AppendError::Full(Full { needed: end, free: 1_500 - end }));
    assert_eq!(journal.disk().length(), end);
    journal.disk_mut().grow(2_000);
    assert_eq!(journal.append(2, &[event]).unwrap(), 2 * end);
    assert_eq!(recover(journal.disk().read()).unwrap().records.len(), 2);
}

#[test]
fn a_step_that_is_too_long_is_refused() {
    let options = DiskOptions { capacity: u64::MAX, ..DiskOptions::default() };
    let mut journal = Journal::create(Disk::new(options, Random::new(1, "disk", &[])));
    let reads = Message::Reads(Bytes::from(vec![1; RECORD_BYTES_MAX / 2]));
    let event = Event::Peer { from: PartitionId(1), message: reads };
    let refused = journal.append(1, &[event.clone(), event]).unwrap_err();
    assert!(matches!(refused, AppendError::TooLong { bytes } if bytes > RECORD_BYTES_MAX as u64));
    assert!(refused.to_string().ends_with("give the node fewer events in one step"));
    assert_eq!(journal.append(1, &[]).unwrap(), HEADER_BYTES as u64 + 2);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| {
        let mut run = Run::new(seed);
        for _ in 0..3 {
            run.work(10);
            run.restart(true);
        }
        run.journal().disk_mut().corrupt();
        run.stop(true).read().to_vec()
    };
    for seed in 0..50 {
        assert!(run(seed) == run(seed));
    }
    assert!(run(1) != run(2));
}
