//! Random work on a log, with a model of what must be in it, and lives that end at any operation.

use std::collections::VecDeque;

use bytes::Bytes;
use ordain_consensus::disk_log::{
    AppendError, DiskLog, LogId, LogOptions, OpenError, Opening, Recovered, SEGMENT_BYTES_MIN,
};
use ordain_consensus::files::{FileError, MemoryFiles, SyncTicket};

/// The log of these tests.
pub const LOG_ID: LogId = LogId(0x0123_4567_89ab_cdef_0011_2233_4455_6677);

/// A seeded generator (SplitMix64, Steele et al. 2014).
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |bound| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// The smallest segments, so that a short script has several.
pub fn options(opening: Opening) -> LogOptions {
    LogOptions {
        segment_bytes: SEGMENT_BYTES_MIN,
        record_bytes_max: 4_000,
        log_bytes_max: 1 << 20,
        ..LogOptions::new(LOG_ID, opening)
    }
}

/// Opens a log that may not exist.
pub fn open(files: &mut MemoryFiles) -> Result<(DiskLog<&mut MemoryFiles>, Recovered), OpenError> {
    DiskLog::open(files, options(Opening::CreateIfMissing))
}

/// A payload: random bytes, zeros at times.
pub fn payload(random: &mut impl FnMut(u64) -> u64) -> Bytes {
    let length = [0, 7, 40, 300, 1_100, 3_000][random(6) as usize];
    let zeros = random(4) == 0;
    (0..length).map(|_| if zeros { 0 } else { random(256) as u8 }).collect::<Vec<u8>>().into()
}

/// Why a life of the log ended, or what was wrong with it.
#[derive(Debug)]
pub enum End {
    /// An operation on files failed.
    Failed,
    /// The log has broken its promise.
    Wrong(String),
}

impl From<FileError> for End {
    fn from(_: FileError) -> End {
        End::Failed
    }
}

impl From<AppendError> for End {
    fn from(error: AppendError) -> End {
        match error {
            AppendError::Failed(_) | AppendError::Full(_) => End::Failed,
            other => End::Wrong(other.to_string()),
        }
    }
}

/// What must be in the log.
#[derive(Clone, Default)]
pub struct Model {
    /// What was appended, or tried, from the first record on.
    pub appended: Vec<Bytes>,
    /// The last record that was reported durable.
    pub durable: u64,
    /// Records below this one may have been removed.
    pub truncated: u64,
    /// Whether the log has been open once, so that it exists.
    pub exists: bool,
    /// Crashes that lost something.
    pub losses: u64,
}

impl Model {
    /// Compares what was found, and takes it over.
    fn recovered(&mut self, first: u64, recovered: &Recovered) -> Result<(), String> {
        let last = first + recovered.records.len() as u64 - 1;
        if first > self.truncated.max(1) {
            return Err(format!("the log begins with {first}, only below {} was cut", self.truncated));
        }
        if last < self.durable || (self.exists && recovered.is_new) {
            return Err(format!("{} was durable and {last} is the last record", self.durable));
        }
        for (expected, (sequence, payload)) in (first..).zip(&recovered.records) {
            if *sequence != expected || self.appended.get(expected as usize - 1) != Some(payload) {
                return Err(format!("record {expected} is not what was appended"));
            }
        }
        self.losses += u64::from(last < self.appended.len() as u64);
        self.appended.truncate(last as usize);
        (self.durable, self.exists) = (last, true);
        Ok(())
    }

    /// Opens the log and compares it.
    pub fn open<'a>(&mut self, files: &'a mut MemoryFiles) -> Result<DiskLog<&'a mut MemoryFiles>, End> {
        let opening = if self.exists { Opening::MustExist } else { Opening::CreateIfMissing };
        match DiskLog::open(files, options(opening)) {
            Ok((log, recovered)) => {
                self.recovered(log.first_sequence(), &recovered).map_err(End::Wrong)?;
                if log.durable() != self.durable || log.appended() != self.durable {
                    return Err(End::Wrong("what was recovered is not called durable".into()));
                }
                Ok(log)
            }
            Err(OpenError::Files(_)) => Err(End::Failed),
            Err(refused) => Err(End::Wrong(format!("an undamaged log is refused: {refused}"))),
        }
    }
}

/// One life: opens the log and works on it for a few steps, or until an operation on files fails.
pub fn live(
    files: &mut MemoryFiles,
    model: &mut Model,
    random: &mut impl FnMut(u64) -> u64,
    steps: u64,
) -> Result<(), End> {
    let mut log = model.open(files)?;
    let mut tickets: VecDeque<(SyncTicket, u64)> = VecDeque::new();
    for _ in 0..steps {
        match random(8) {
            0..=2 => {
                let payloads: Vec<Bytes> = (0..random(5)).map(|_| payload(random)).collect();
                model.appended.extend(payloads.iter().cloned());
                let last = log.append(&payloads)?;
                if last != model.appended.len() as u64 {
                    return Err(End::Wrong(format!("{last} is not the number of records")));
                }
            }
            3 => {
                let appended = log.appended();
                if log.sync()? != appended {
                    return Err(End::Wrong("a sync has left something out".into()));
                }
            }
            4 => {
                let ticket = log.files_mut().begin_sync();
                tickets.push_back((ticket, log.appended()));
            }
            5 | 6 => {
                let Some((ticket, appended)) = tickets.pop_front() else { continue };
                if log.files_mut().complete_sync(ticket) {
                    log.mark_durable(appended);
                }
            }
            _ => {
                let below = log.durable().saturating_sub(random(12));
                model.truncated = model.truncated.max(below);
                log.truncate_below(below)?;
            }
        }
        model.durable = model.durable.max(log.durable());
        check_reads(&log, model, random).map_err(End::Wrong)?;
    }
    Ok(())
}

/// Compares what is read from a random place on.
fn check_reads(
    log: &DiskLog<&mut MemoryFiles>,
    model: &Model,
    random: &mut impl FnMut(u64) -> u64,
) -> Result<(), String> {
    let from = log.first_sequence() + random(log.appended() + 2 - log.first_sequence());
    let read = log.read_from(from, 64 + random(4_000)).map_err(|error| error.to_string())?;
    let expected = model.appended.iter().skip(from as usize - 1).take(read.len());
    let right = read.iter().map(|(_, payload)| payload).eq(expected)
        && read.iter().map(|(sequence, _)| *sequence).eq(from..from + read.len() as u64);
    if !right || (read.is_empty() && from <= log.appended()) {
        return Err(format!("what is read from {from} on is not what was appended"));
    }
    Ok(())
}
