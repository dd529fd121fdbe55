//! The disk model: one append-only file on a disk of sectors, with what power failures and bad hardware do to it.
//!
//! # What is modelled
//!
//! - **Synchronisation.** What is appended is durable once a sync that was begun after it has completed. A sync takes a
//!   drawn time and a time for each byte; the syncs of the file complete in the order in which they were begun.
//! - **Crash.** The machine loses power. Each sector beyond the durable end is kept, lost or torn, independently of the
//!   others: a later sector may be there where an earlier one is not. The end of the file comes to lie anywhere between the
//!   durable end and the old one.
//! - **Latent faults.** Flipped bits in durable sectors, and sectors that hold the contents of another one.
//! - **A full disk.** Appends are refused until the disk grows.
//!
//! # What is not
//!
//! - Durable bytes that share a sector with bytes that are being written survive a crash (SQLite calls this property of
//!   disks "powersafe overwrite").
//! - Errors that the disk reports itself: failed reads, failed syncs.
//! - A power failure while a machine recovers: the cut of [`Disk::truncate`] is durable at once.

use std::collections::VecDeque;
use std::fmt;

use ordain_workload::random::{Chance, Random};

use crate::time::{MICROSECOND, MILLISECOND, Nanoseconds};

/// Bytes of a sector: the unit that is kept, lost or torn.
pub const SECTOR_BYTES: u64 = 512;

/// Most draws of a pair of sectors for one misdirected write, until they differ.
const MISDIRECT_DRAWS_MAX: u32 = 16;

/// How a disk behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskOptions {
    /// The shortest time of a sync, whatever its size.
    pub sync_min: Nanoseconds,
    /// The longest time of a sync, whatever its size.
    pub sync_max: Nanoseconds,
    /// The time that a sync takes in addition for each KiB that is not durable.
    pub nanoseconds_per_kibibyte: Nanoseconds,
    /// The most bytes that the file may have.
    pub capacity: u64,
    /// At a crash, for each sector that is not durable: nothing of it was written.
    pub lose_unsynced: Chance,
    /// At a crash, for each sector that is neither durable nor lost: only a prefix of it was written.
    pub tear: Chance,
    /// At a crash: the new end of the file was not written, so that an older one is found, not below the durable end.
    pub lose_length: Chance,
}

impl Default for DiskOptions {
    /// A solid-state disk of 1 GiB that writes 1 GB/s, and loses at a crash about half of what it may lose.
    fn default() -> DiskOptions {
        DiskOptions {
            sync_min: 50 * MICROSECOND,
            sync_max: 2 * MILLISECOND,
            nanoseconds_per_kibibyte: MICROSECOND,
            capacity: 1 << 30,
            lose_unsynced: chance(40.0),
            tear: chance(25.0),
            lose_length: chance(50.0),
        }
    }
}

fn chance(percent: f64) -> Chance {
    Chance::of_percent(percent, "a chance of the disk")
        .expect("the percentages of the defaults are constants below 100")
}

/// Why nothing was appended: the disk has no room for it. The machine has to stop until it is given space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    /// Bytes that were to be appended.
    pub needed: u64,
    /// Bytes that are free.
    pub free: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Full { needed, free } = self;
        write!(
            f,
            "the disk is full: {needed} bytes are needed and {free} are free; give it space and append again"
        )
    }
}

impl std::error::Error for Full {}

/// A sync that is under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncTicket {
    /// When to give the ticket to [`Disk::complete_sync`].
    pub completes_at: Nanoseconds,
    /// The end of the file that will be durable.
    pub covers: u64,
    generation: u64,
}

/// An append whose bytes are not durable.
#[derive(Clone, Copy, Debug)]
struct Unsynced {
    end: u64,
    /// The durable end at the time of the append.
    durable: u64,
}

/// See the [module](self).
#[derive(Clone)]
pub struct Disk {
    options: DiskOptions,
    bytes: Vec<u8>,
    durable: u64,
    unsynced: VecDeque<Unsynced>,
    /// What was durable when the last durable append was made, and the end of that append.
    settled: u64,
    settled_by: u64,
    /// Counts the crashes and cuts, which make the syncs that were under way void.
    generation: u64,
    /// When the last sync that was begun completes.
    busy_until: Nanoseconds,
    /// Times of syncs.
    latencies: Random,
    /// What crashes and latent faults do: a stream of its own, so that a fault more does not change the times of syncs.
    faults: Random,
}

impl Disk {
    /// An empty file.
    pub fn new(options: DiskOptions, mut random: Random) -> Disk {
        let faults = Random::new(random.bits(), "faults of the disk", &[]);
        Disk {
            options,
            bytes: Vec::new(),
            durable: 0,
            unsynced: VecDeque::new(),
            settled: 0,
            settled_by: 0,
            generation: 0,
            busy_until: 0,
            latencies: random,
            faults,
        }
    }

    /// The contents of the file, as they would be read now.
    pub fn read(&self) -> &[u8] {
        &self.bytes
    }

    /// The length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The bytes from the beginning that no crash takes away.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// The bytes from the beginning that latent faults may hit: what was durable when the last durable append was made.
    ///
    /// Who writes down with each append what is durable, as the [journal](crate::machine::journal) does, has it in writing
    /// that these bytes were durable. Of the bytes after them it has not: when they are damaged, they look like what a crash
    /// left of bytes that never became durable. Nobody can tell the two apart with a single disk, so the model does not
    /// damage them.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Appends all bytes or none.
    ///
    /// # Errors
    /// [`Full`] when the disk has no room for them: [`grow`](Disk::grow) it and append again.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let free = self.options.capacity.saturating_sub(self.length());
        let needed = bytes.len() as u64;
        if needed > free {
            return Err(Full { needed, free });
        }
        self.bytes.extend_from_slice(bytes);
        self.unsynced.push_back(Unsynced { end: self.length(), durable: self.durable });
        Ok(())
    }

    /// Gives the disk this many bytes more.
    pub fn grow(&mut self, bytes: u64) {
        self.options.capacity = self.options.capacity.saturating_add(bytes);
    }

    /// From now on the disk has no room left.
    pub fn fill(&mut self) {
        self.options.capacity = self.length();
    }

    /// Begins to make durable what was appended so far. Several syncs may be under way.
    pub fn begin_sync(&mut self, now: Nanoseconds) -> SyncTicket {
        let DiskOptions { sync_min, sync_max, nanoseconds_per_kibibyte, .. } = self.options;
        let latency = sync_min + self.latencies.below(sync_max.saturating_sub(sync_min) + 1);
        let transfer = (self.length() - self.durable) * nanoseconds_per_kibibyte / 1024;
        let completes_at = self.busy_until.max(now + latency + transfer);
        self.busy_until = completes_at;
        SyncTicket { completes_at, covers: self.length(), generation: self.generation }
    }

    /// Ends a sync, at the time that its ticket tells. Returns whether what it covers is durable now: not if the machine
    /// crashed, or the file was cut, since it began.
    pub fn complete_sync(&mut self, ticket: SyncTicket) -> bool {
        if ticket.generation != self.generation {
            return false;
        }
        while let Some(append) = self.unsynced.front().copied().filter(|append| append.end <= ticket.covers) {
            self.unsynced.pop_front();
            (self.settled, self.settled_by) = (append.durable, append.end);
        }
        self.durable = self.durable.max(ticket.covers);
        true
    }

    /// The machine loses power: see the [module](self). What is left of the file has reached the disk and is durable from
    /// here on, also where it is nonsense.
    pub fn crash(&mut self) {
        let length = self.length();
        let mut begin = self.durable;
        while begin < length {
            let end = length.min((begin / SECTOR_BYTES + 1) * SECTOR_BYTES);
            let unwritten = if self.faults.happens(self.options.lose_unsynced) {
                begin
            } else if self.faults.happens(self.options.tear) {
                begin + self.faults.below(end - begin)
            } else {
                end
            };
            self.fill_unwritten(unwritten, end);
            begin = end;
        }
        if self.faults.happens(self.options.lose_length) {
            let kept = self.durable + self.faults.below(length - self.durable + 1);
            self.bytes.truncate(kept as usize);
        }
        self.durable = self.length();
        self.unsynced.clear();
        self.generation += 1;
        self.busy_until = 0;
    }

    /// Fills a part of one sector with what the disk may hold where nothing was written: zeros, noise, or what another
    /// sector of the file has at this place, as a block has that was in use before.
    fn fill_unwritten(&mut self, begin: u64, end: u64) {
        let (from, to) = (begin as usize, end as usize);
        match (self.faults.below(3), begin / SECTOR_BYTES) {
            (0, _) | (2, 0) => self.bytes[from..to].fill(0),
            (1, _) => self.faults.fill(&mut self.bytes[from..to]),
            (_, sectors_before) => {
                let sector = self.faults.below(sectors_before);
                let source = (sector * SECTOR_BYTES + begin % SECTOR_BYTES) as usize;
                self.bytes.copy_within(source..source + (to - from), from);
            }
        }
    }

    /// Cuts the file to a length, durably: for the torn tail that recovery finds. Does nothing when it is not longer.
    pub fn truncate(&mut self, length: u64) {
        if length >= self.length() {
            return;
        }
        self.bytes.truncate(length as usize);
        self.durable = self.durable.min(length);
        self.unsynced.retain(|append| append.end <= length);
        self.generation += 1;
        if length < self.settled_by {
            // The append that made the bytes before it settled is gone.
            (self.settled, self.settled_by) = (0, 0);
        }
    }

    /// A latent fault: flips one to eight bits of a random [settled](Disk::settled) sector. Returns the number of the
    /// sector, or `None` when there is none.
    pub fn corrupt(&mut self) -> Option<u64> {
        let sectors = self.settled / SECTOR_BYTES;
        if sectors == 0 {
            return None;
        }
        let sector = self.faults.below(sectors);
        let first = self.faults.below(SECTOR_BYTES);
        for flip in 0..=self.faults.below(8) {
            // Never the same byte twice, so that no flip undoes another.
            let byte = (first + flip * (SECTOR_BYTES / 8)) % SECTOR_BYTES;
            self.bytes[(sector * SECTOR_BYTES + byte) as usize] ^= 1 << self.faults.below(8);
        }
        Some(sector)
    }

    /// A latent fault: a write of a durable sector went astray and hit a random [settled](Disk::settled) sector. (The disk
    /// is taken to have written it to its right place later.) Returns the number of the sector that was hit, or `None` when
    /// there is none, or when no two different sectors were found.
    pub fn misdirect(&mut self) -> Option<u64> {
        let (sectors, sources) = (self.settled / SECTOR_BYTES, self.durable / SECTOR_BYTES);
        if sectors == 0 {
            return None;
        }
        for _ in 0..MISDIRECT_DRAWS_MAX {
            let (sector, source) = (self.faults.below(sectors), self.faults.below(sources));
            let (from, to) = ((source * SECTOR_BYTES) as usize, (sector * SECTOR_BYTES) as usize);
            let bytes = SECTOR_BYTES as usize;
            if self.bytes[from..from + bytes] != self.bytes[to..to + bytes] {
                self.bytes.copy_within(from..from + bytes, to);
                return Some(sector);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTOR: usize = SECTOR_BYTES as usize;

    fn disk(options: DiskOptions, seed: u64) -> Disk {
        Disk::new(options, Random::new(seed, "disk", &[]))
    }

    fn certain(lose_unsynced: f64, tear: f64, lose_length: f64) -> DiskOptions {
        let [lose_unsynced, tear, lose_length] = [lose_unsynced, tear, lose_length].map(chance);
        DiskOptions { lose_unsynced, tear, lose_length, ..DiskOptions::default() }
    }

    fn sync(disk: &mut Disk) {
        let ticket = disk.begin_sync(0);
        assert!(disk.complete_sync(ticket));
    }

    /// Bytes none of which is zero, and no two sectors of which are equal.
    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at / SECTOR * 7 + at % 251) as u8 | 1).collect()
    }

    #[test]
    fn a_sync_makes_durable_what_was_appended_before_it() {
        let mut disk = disk(certain(100.0, 0.0, 100.0), 1);
        disk.append(&pattern(700)).unwrap();
        let first = disk.begin_sync(1_000);
        disk.append(&[9; 50]).unwrap();
        let second = disk.begin_sync(1_001);
        assert!(first.completes_at >= 1_000 + DiskOptions::default().sync_min);
        assert!(second.completes_at >= first.completes_at, "the syncs of a file end in order");
        assert_eq!((disk.durable(), first.covers, second.covers), (0, 700, 750));
        assert!(disk.complete_sync(first));
        assert_eq!(disk.durable(), 700);
        disk.crash();
        assert_eq!(&disk.read()[..700], pattern(700));
        assert!(disk.length() <= 750);
    }

    #[test]
    fn a_sync_takes_longer_for_more_bytes() {
        let options =
            DiskOptions { sync_min: 10, sync_max: 10, nanoseconds_per_kibibyte: 5, ..certain(0.0, 0.0, 0.0) };
        let mut disk = disk(options, 1);
        disk.append(&[1; 4096]).unwrap();
        assert_eq!(disk.begin_sync(100).completes_at, 130);
    }

    #[test]
    fn a_sync_across_a_crash_does_not_complete() {
        let mut disk = disk(certain(100.0, 0.0, 100.0), 3);
        disk.append(&pattern(5_000)).unwrap();
        let ticket = disk.begin_sync(0);
        disk.crash();
        let left = disk.length();
        disk.append(&[5; 10_000]).unwrap();
        assert!(!disk.complete_sync(ticket));
        assert_eq!(disk.durable(), left);
    }

    #[test]
    fn a_sync_across_a_cut_does_not_complete() {
        let mut disk = disk(DiskOptions::default(), 3);
        disk.append(&pattern(900)).unwrap();
        let ticket = disk.begin_sync(0);
        disk.truncate(900);
        disk.truncate(100);
        disk.append(&pattern(900)).unwrap();
        assert!(!disk.complete_sync(ticket));
        assert_eq!((disk.durable(), disk.length()), (0, 1_000));
    }

    #[test]
    fn a_crash_loses_only_what_is_not_durable() {
        let mut disk = disk(certain(100.0, 0.0, 0.0), 4);
        let written = pattern(10 * SECTOR);
        disk.append(&written[..3 * SECTOR + 100]).unwrap();
        sync(&mut disk);
        disk.append(&written[3 * SECTOR + 100..]).unwrap();
        disk.crash();
        assert_eq!(disk.read()[..3 * SECTOR + 100], written[..3 * SECTOR + 100]);
        for sector in 3..10 {
            let from = (sector * SECTOR).max(3 * SECTOR + 100);
            let range = from..(sector + 1) * SECTOR;
            assert_ne!(disk.read()[range.clone()], written[range], "sector {sector} is lost");
        }
        assert_eq!(disk.durable(), 10 * SECTOR_BYTES, "what is left is on the disk");
    }

    #[test]
    fn sectors_are_lost_and_kept_independently() {
        let written = pattern(2 * SECTOR);
        let mut seen = [0; 4];
        for seed in 0..200 {
            let mut disk = disk(certain(50.0, 0.0, 0.0), seed);
            disk.append(&written).unwrap();
            disk.crash();
            let kept = |sector: usize| {
                let range = sector * SECTOR..(sector + 1) * SECTOR;
                usize::from(disk.read()[range.clone()] == written[range])
            };
            seen[kept(0) * 2 + kept(1)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
    }

    #[test]
    fn a_torn_sector_keeps_a_prefix() {
        let written = pattern(SECTOR);
        let mut prefixes = Vec::new();
        for seed in 0..100 {
            let mut disk = disk(certain(0.0, 100.0, 0.0), seed);
            disk.append(&written).unwrap();
            disk.crash();
            let kept =
                disk.read().iter().zip(&written).take_while(|(found, written)| found == written).count();
            prefixes.push(kept);
        }
        prefixes.sort_unstable();
        prefixes.dedup();
        assert!(prefixes.len() > 30, "{prefixes:?}");
        assert!(prefixes[0] < SECTOR / 4);
    }

    #[test]
    fn the_end_of_the_file_may_be_lost() {
        let mut lengths: Vec<u64> = (0..100)
            .map(|seed| {
                let mut disk = disk(certain(0.0, 0.0, 100.0), seed);
                disk.append(&pattern(300)).unwrap();
                sync(&mut disk);
                disk.append(&pattern(2_000)).unwrap();
                disk.crash();
                disk.length()
            })
            .collect();
        lengths.sort_unstable();
        assert!(lengths[0] < 500 && lengths[99] > 2_100, "{lengths:?}");
        assert!(lengths.iter().all(|length| (300..=2_300).contains(length)));
    }

    #[test]
    fn a_full_disk_refuses_and_a_grown_one_accepts() {
        let mut disk = disk(DiskOptions { capacity: 100, ..DiskOptions::default() }, 1);
        disk.append(&[1; 90]).unwrap();
        let full = disk.append(&[2; 11]).unwrap_err();
        assert_eq!((full, disk.length()), (Full { needed: 11, free: 10 }, 90));
        assert_eq!(
            full.to_string(),
            "the disk is full: 11 bytes are needed and 10 are free; give it space and append again"
        );
        disk.grow(1);
        disk.append(&[2; 11]).unwrap();
        assert_eq!(disk.length(), 101);
    }

    #[test]
    fn latent_faults_hit_one_settled_sector() {
        for seed in 0..500 {
            let mut disk = disk(DiskOptions::default(), seed);
            assert_eq!((disk.corrupt(), disk.misdirect()), (None, None));
            for length in [700, 900, 2_000, 600] {
                disk.append(&pattern(5_000)[..length]).unwrap();
                sync(&mut disk);
            }
            disk.append(&pattern(700)).unwrap();
            assert_eq!((disk.settled(), disk.durable()), (3_600, 4_200));
            for fault in [Disk::corrupt, Disk::misdirect] {
                let before = disk.read().to_vec();
                let hit = fault(&mut disk).unwrap() as usize;
                assert!((hit + 1) * SECTOR <= 3_600);
                for (sector, (now, before)) in
                    disk.read().chunks(SECTOR).zip(before.chunks(SECTOR)).enumerate()
                {
                    assert_eq!(now != before, sector == hit, "seed {seed}, sector {sector}");
                }
            }
        }
    }

    #[test]
    fn what_is_settled_is_what_the_last_durable_append_knew() {
        let mut disk = disk(certain(100.0, 0.0, 0.0), 1);
        disk.append(&[1; 600]).unwrap();
        let first = disk.begin_sync(0);
        disk.append(&[2; 600]).unwrap();
        let second = disk.begin_sync(0);
        disk.complete_sync(first);
        disk.append(&[3; 600]).unwrap();
        disk.complete_sync(second);
        assert_eq!(
            (disk.durable(), disk.settled()),
            (1_200, 0),
            "the second append was made before the first sync ended"
        );
        sync(&mut disk);
        assert_eq!((disk.durable(), disk.settled()), (1_800, 600));
        sync(&mut disk);
        assert_eq!(disk.settled(), 600, "an empty sync settles nothing");
        disk.append(&[4; 600]).unwrap();
        disk.crash();
        assert_eq!(disk.settled(), 600, "what a crash left does not count");
        disk.truncate(1_800);
        assert_eq!(disk.settled(), 600);
        disk.truncate(1_799);
        assert_eq!(disk.settled(), 0, "who told of it is gone");
    }

    #[test]
    fn appends_that_a_crash_took_away_hold_nothing_up() {
        let mut disk = disk(certain(0.0, 0.0, 100.0), 2);
        disk.append(&[1; 600]).unwrap();
        disk.crash();
        let left = disk.length();
        assert!(left < 500);
        for _ in 0..2 {
            disk.append(&[2; 20]).unwrap();
            sync(&mut disk);
        }
        assert_eq!((disk.durable(), disk.settled()), (left + 40, left + 20));
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let run = |seed| {
            let mut disk = disk(DiskOptions::default(), seed);
            let mut times = Vec::new();
            for round in 0..20 {
                disk.append(&pattern(3_000)).unwrap();
                let ticket = disk.begin_sync(round);
                times.push(ticket.completes_at);
                if round % 3 == 0 {
                    disk.crash();
                }
                disk.complete_sync(ticket);
                disk.corrupt();
                disk.misdirect();
            }
            (disk.read().to_vec(), times)
        };
        assert!(run(7) == run(7));
        assert!(run(7) != run(8));
    }
}
