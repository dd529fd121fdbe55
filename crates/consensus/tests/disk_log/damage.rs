//! Durable bytes that go bad: noticed where something tells that they were durable, and never anything else than a prefix.

use std::ops::Range;

use bytes::Bytes;
use ordain_consensus::disk_log::{DiskLog, Evidence, OpenError, Opening, RECORDS_AT, SEGMENT_BYTES_MIN};
use ordain_consensus::files::{Files, MemoryFiles, SECTOR_BYTES};

use super::script::{open, options, payload, random};

/// A log of several segments, all of which is durable.
struct Filled {
    files: MemoryFiles,
    records: Vec<(u64, Bytes)>,
    /// The parts of the files of which every change must be noticed.
    witnessed: Vec<(String, Range<u64>)>,
    /// How many records are certain not to be cut.
    witnessed_records: usize,
    last_name: String,
}

fn filled() -> Filled {
    let (mut files, mut random) = (MemoryFiles::new(), random(11));
    let (mut log, _) = open(&mut files).unwrap();
    let mut records = Vec::new();
    let mut durable_before = 0;
    // Until the last segment has a few batches.
    let mut batches_in_last = 0;
    while batches_in_last < 4 {
        let batch: Vec<Bytes> = (0..2).map(|_| payload(&mut random)).collect();
        durable_before = log.durable();
        log.append(&batch).unwrap();
        log.sync().unwrap();
        records.extend((durable_before + 1..).zip(batch));
        batches_in_last += u32::from(log.segments() == 4);
    }
    let parts = log.witnessed_parts().unwrap();
    assert_eq!(parts.len(), 4);
    let last_name = parts[3].name.clone();
    let witnessed = parts.into_iter().map(|part| (part.name, part.bytes)).collect();
    Filled { files, records, witnessed, witnessed_records: durable_before as usize, last_name }
}

impl Filled {
    /// Opens damaged files. Returns the error, or asserts that at most records that nothing tells of are gone.
    fn open(&self, mut files: MemoryFiles, what: &str) -> Option<OpenError> {
        match open(&mut files) {
            Ok((_, recovered)) => {
                assert!(
                    recovered.records.len() >= self.witnessed_records,
                    "{what}: witnessed records are gone"
                );
                assert!(self.records.starts_with(&recovered.records), "{what}: not a prefix");
                None
            }
            Err(refused) => Some(refused),
        }
    }

    fn is_witnessed(&self, name: &str, bytes: &Range<u64>) -> bool {
        let within = |part: &Range<u64>| bytes.start < part.end && part.start < bytes.end;
        self.witnessed.iter().any(|(part_name, part)| part_name == name && within(part))
    }
}

#[test]
fn every_flipped_byte_is_noticed_or_harmless() {
    let filled = filled();
    let (mut noticed, mut harmless, mut shortened) = (0, 0, 0);
    for entry in filled.files.list().unwrap() {
        for offset in 0..entry.length {
            let mut files = filled.files.clone();
            files.flip(&entry.name, offset, 1 << (offset % 8)).unwrap();
            let what = format!("byte {offset} of {}", entry.name);
            let refused = filled.open(files.clone(), &what);
            let is_witnessed = filled.is_witnessed(&entry.name, &(offset..offset + 1));
            match refused {
                Some(OpenError::Damaged(damage)) => {
                    noticed += 1;
                    assert_eq!(damage.name, entry.name, "{what}: {damage}");
                    assert!(damage.offset <= offset, "{what}: {damage}");
                    assert!(is_witnessed || offset < 64, "{what} tells nothing: {damage}");
                }
                Some(refused) => panic!("{what}: {refused}"),
                None => {
                    assert!(!is_witnessed, "{what} was not noticed");
                    let (_, recovered) = open(&mut files).unwrap();
                    if recovered.records == filled.records {
                        harmless += 1;
                    } else {
                        assert_eq!(entry.name, filled.last_name, "{what}");
                        shortened += 1;
                    }
                }
            }
        }
    }
    let witnessed: u64 = filled.witnessed.iter().map(|(_, part)| part.end - part.start).sum();
    assert_eq!(noticed, witnessed + 4 * 64, "all headers, and all records that something tells of");
    assert!(harmless > 10_000, "{harmless}");
    assert!(shortened > 0, "the last batch has no witness yet: {shortened}");
}

#[test]
fn sectors_that_go_bad_or_are_written_to_the_wrong_place_are_noticed() {
    let filled = filled();
    let names: Vec<String> = filled.files.list().unwrap().into_iter().map(|entry| entry.name).collect();
    let sectors = SEGMENT_BYTES_MIN / SECTOR_BYTES;
    let mut draw = random(3);
    let mut noticed = 0;
    for target in names.iter().flat_map(|name| (0..sectors).map(move |sector| (name, sector))) {
        let (name, sector) = target;
        let bytes = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
        let is_within = filled
            .witnessed
            .iter()
            .any(|(part_name, part)| part_name == name && part.start <= bytes.start && bytes.end <= part.end);
        for round in 0..24 {
            let mut files = filled.files.clone();
            let changed = if round == 0 {
                files.corrupt(name, sector, &mut draw).unwrap();
                true
            } else {
                let source = &names[draw(names.len() as u64) as usize];
                files.misdirect((source, draw(sectors)), (name, sector)).unwrap()
            };
            let refused = filled.open(files, &format!("sector {sector} of {name}"));
            noticed += u32::from(refused.is_some());
            assert!(!is_within || !changed || refused.is_some(), "sector {sector} of {name}: not noticed");
        }
    }
    assert!(noticed > 500, "{noticed}");
}

#[test]
fn whatever_happens_to_the_files_what_is_found_is_a_prefix() {
    let filled = filled();
    let names: Vec<String> = filled.files.list().unwrap().into_iter().map(|entry| entry.name).collect();
    let (mut refusals, mut prefixes) = (0, 0);
    for seed in 0..3_000 {
        let (mut files, mut draw) = (filled.files.clone(), random(seed));
        for _ in 0..1 + draw(3) {
            let name = &names[draw(names.len() as u64) as usize];
            let at = draw(SEGMENT_BYTES_MIN);
            let length = 1 + draw(1_500) as usize;
            match draw(4) {
                0 => files.write(name, at, &vec![0; length]).unwrap(),
                1 => {
                    let noise: Vec<u8> = (0..length).map(|_| draw(256) as u8).collect();
                    files.write(name, at, &noise).unwrap();
                }
                2 => {
                    let copy = files.read(&names[draw(4) as usize], draw(SEGMENT_BYTES_MIN), 1_500).unwrap();
                    files.write(name, at, &copy).unwrap();
                }
                _ => files.set_length(name, at).unwrap(),
            }
        }
        match open(&mut files) {
            Ok((_, recovered)) => {
                assert!(filled.records.starts_with(&recovered.records), "seed {seed}");
                prefixes += 1;
            }
            Err(_) => refusals += 1,
        }
    }
    assert!(refusals > 1_000 && prefixes > 100, "{refusals} {prefixes}");
}

#[test]
fn a_refused_log_is_not_changed() {
    let mut filled = filled();
    let first = filled.witnessed[0].0.clone();
    filled.files.flip(&first, RECORDS_AT + 40, 1).unwrap();
    let before = filled.files.clone();
    let refused = open(&mut filled.files).unwrap_err();
    assert!(filled.files == before);
    let text = refused.to_string();
    assert!(
        text.starts_with(
            "the log is damaged in `00000000000000000001.log` at byte 8192: record 1 is missing or not the right one, and the \
             next segment begins after record "
        ),
        "{text}"
    );
    assert!(
        text.ends_with(
            ". Others may rely on what is lost: do not cut or change the file. Put back a copy of this node's disk that is as \
             new"
        ),
        "{text}"
    );
}

/// Three batches of one record in one segment; the first is durable when the second is appended, and so on.
fn three_batches(syncs: [bool; 3]) -> MemoryFiles {
    let mut files = MemoryFiles::new();
    let (mut log, _) = open(&mut files).unwrap();
    for (byte, sync) in (1..).zip(syncs) {
        log.append(&[[byte; 968]]).unwrap();
        if sync {
            log.sync().unwrap();
        }
    }
    files
}

#[test]
fn a_hole_before_records_that_were_kept_is_cut_unless_one_of_them_tells_that_it_was_durable() {
    let name = "00000000000000000001.log";
    let mut unsynced = three_batches([true, false, false]);
    unsynced.write(name, RECORDS_AT + 1_100, &[0; 500]).unwrap();
    let (log, recovered) = open(&mut unsynced).unwrap();
    assert_eq!((recovered.records.len(), recovered.cut_bytes, log.appended()), (1, 2_000, 1));
    drop(log);
    let written = unsynced.read(name, RECORDS_AT, 4_096).unwrap();
    assert!(written[1_000..].iter().all(|byte| *byte == 0), "the tail is gone from the file");

    let mut synced = three_batches([true, true, false]);
    synced.write(name, RECORDS_AT + 1_100, &[0; 500]).unwrap();
    let refused = open(&mut synced).unwrap_err();
    let OpenError::Damaged(damage) = refused else { panic!("{refused}") };
    assert_eq!(damage.offset, RECORDS_AT + 1_000);
    let (sequence, told_at, durable) = (2, RECORDS_AT + 2_000, 2);
    assert_eq!(damage.evidence, Evidence::LaterRecord { sequence, told_at, durable });

    // The witness itself may be torn: its header is enough.
    synced.write(name, RECORDS_AT + 2_100, &[0; 100]).unwrap();
    assert!(matches!(open(&mut synced).unwrap_err(), OpenError::Damaged(_)));
    synced.write(name, RECORDS_AT + 2_000, &[0; 32]).unwrap();
    assert_eq!(open(&mut synced).unwrap().1.records.len(), 1, "nothing on this disk tells of record 2");
}

#[test]
fn a_cut_tail_is_replaced_and_does_not_come_back() {
    let name = "00000000000000000001.log";
    let mut files = three_batches([true, false, false]);
    files.write(name, RECORDS_AT + 1_100, &[0; 1]).unwrap();
    let (mut log, _) = open(&mut files).unwrap();
    // As long as the record that was cut, so that the old third record would follow it.
    log.append(&[[9; 968]]).unwrap();
    log.sync().unwrap();
    let (_, recovered) = open(&mut files).unwrap();
    assert_eq!((recovered.records.len(), recovered.cut_bytes), (2, 0));
    assert_eq!(recovered.records[1].1[..], [9; 968]);
}

#[test]
fn a_record_of_another_life_is_not_taken_although_its_number_and_checksum_are_right() {
    let name = "00000000000000000001.log";
    let lives = [1, 2].map(|byte| {
        let mut files = MemoryFiles::new();
        let (mut log, _) = open(&mut files).unwrap();
        log.append(&[[byte; 968], [byte; 968]]).unwrap();
        log.sync().unwrap();
        files
    });
    let [mut ours, other] = lives;
    let second = other.read(name, RECORDS_AT + 1_000, 1_000).unwrap();
    ours.write(name, RECORDS_AT + 1_000, &second).unwrap();
    let (_, recovered) = open(&mut ours).unwrap();
    assert_eq!((recovered.records.len(), recovered.cut_bytes), (1, 1_000));
}

#[test]
fn a_reader_notices_damage_too() {
    let mut filled = filled();
    let (mut log, _) = open(&mut filled.files).unwrap();
    let part = log.witnessed_parts().unwrap().remove(1);
    log.files_mut().flip(&part.name, part.bytes.end - 1, 0x80).unwrap();
    let damage = log.read_from(1, u64::MAX).unwrap_err().to_string();
    assert!(damage.starts_with("the log is damaged in `00000000000000000002.log` at byte "), "{damage}");
    assert!(damage.contains(" is not as it was written. "), "{damage}");
    assert_eq!(log.read_from(1, 1).unwrap(), filled.records[..1]);
}

#[test]
fn files_that_nobody_wrote_are_refused_or_empty_and_no_panic() {
    let mut draw = random(5);
    for length in (0..64).chain([4_096, 8_191, 8_192, 8_300, 12_288, 20_000]) {
        for noise in [false, true] {
            let mut files = MemoryFiles::new();
            let bytes: Vec<u8> = (0..length).map(|_| if noise { draw(256) as u8 } else { 0 }).collect();
            files.create("00000000000000000001.log", 0).unwrap();
            files.write("00000000000000000001.log", 0, &bytes).unwrap();
            let refused = DiskLog::open(&mut files, options(Opening::MustExist)).unwrap_err();
            let expected =
                if noise && length > 4_096 { "header is not as it was written" } else { "there is no log" };
            assert!(refused.to_string().contains(expected), "{length} {noise}: {refused}");
            assert_eq!(open(&mut files).is_ok(), !noise || length <= 4_096, "{length} {noise}");
        }
    }
}
