//! Segment files that are missing, exchanged, cut or left over; options; sizes.

use bytes::Bytes;
use ordain_consensus::disk_log::{
    DiskLog, Evidence, LogId, LogOptions, OpenError, Opening, ReadError, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN,
};
use ordain_consensus::files::{Files, MemoryFiles};

use super::script::{open, options, random};

/// Records of half a segment.
const HALF: [u8; 2_000] = [7; 2_000];

fn name(segment: u64) -> String {
    format!("{segment:020}.log")
}

/// A log of this many records, two to a segment.
fn log_of(records: usize) -> MemoryFiles {
    let mut files = MemoryFiles::new();
    let (mut log, _) = open(&mut files).unwrap();
    log.append(&vec![HALF; records]).unwrap();
    log.sync().unwrap();
    files
}

#[test]
fn a_missing_segment_is_refused_also_the_last() {
    for missing in 2..=4 {
        let mut files = log_of(7);
        files.remove(&name(missing)).unwrap();
        let refused = open(&mut files).unwrap_err();
        assert_eq!(refused, OpenError::MissingSegment { name: name(missing) });
        assert!(refused.to_string().starts_with(&format!(
            "the log's segment `{}` is missing, and what was acknowledged may be in it: put the file back",
            name(missing)
        )));
    }
    let mut files = log_of(7);
    files.remove(&name(3)).unwrap();
    files.remove(&name(4)).unwrap();
    assert_eq!(open(&mut files).unwrap_err(), OpenError::MissingSegment { name: name(3) });
}

#[test]
fn a_seal_is_durable_and_is_repaired() {
    for seed in 0..50 {
        let mut files = MemoryFiles::new();
        let (mut log, _) = open(&mut files).unwrap();
        log.append(&[HALF; 3]).unwrap();
        files.crash(&mut random(seed));
        files.remove(&name(2)).unwrap();
        assert_eq!(open(&mut files).unwrap_err(), OpenError::MissingSegment { name: name(2) });
    }
    let mut files = log_of(7);
    files.flip(&name(3), 4_100, 1).unwrap();
    assert_eq!(open(&mut files).unwrap().1.records.len(), 7);
    files.crash(&mut random(1));
    files.remove(&name(4)).unwrap();
    assert_eq!(open(&mut files).unwrap_err(), OpenError::MissingSegment { name: name(4) });
}

/// A log of one segment whose successor has a durable header, but was not put to use: the power failed before the seal.
fn interrupted_rotation() -> MemoryFiles {
    let mut files = log_of(1);
    let (mut log, _) = open(&mut files).unwrap();
    // The file, the header, its sync and that of the directory.
    log.files_mut().power_off_after(4);
    log.append(&[[1; 3_000]]).unwrap_err();
    assert!(files.is_off());
    files.crash(&mut random(1));
    assert_eq!(files.list().unwrap().len(), 2);
    files
}

#[test]
fn a_segment_that_was_not_put_to_use_does_not_come_back() {
    for seed in 0..50 {
        let mut files = interrupted_rotation();
        let (mut log, recovered) = open(&mut files).unwrap();
        assert_eq!((recovered.records.len(), log.segments()), (1, 1));
        log.append(&[b"in the first segment"]).unwrap();
        log.sync().unwrap();
        files.crash(&mut random(seed));
        assert_eq!(open(&mut files).unwrap().1.records.len(), 2);
    }
}

#[test]
fn a_header_of_another_life_hides_no_records() {
    let mut files = interrupted_rotation();
    let stale = files.read(&name(2), 0, 64).unwrap();
    let (mut log, _) = open(&mut files).unwrap();
    log.append(&[&b"in the first segment"[..], &[1; 3_000]]).unwrap();
    log.sync().unwrap();
    assert_eq!(log.segments(), 2);
    files.write(&name(2), 0, &stale).unwrap();
    let refused = open(&mut files).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Damaged(damage) if damage.name == name(2) && damage.evidence == Evidence::Header),
        "{refused}"
    );
}

#[test]
fn segments_that_were_exchanged_or_renamed_are_refused() {
    for (first, second) in [(1, 2), (2, 4), (3, 4)] {
        let mut files = log_of(7);
        files.rename(&name(first), "aside").unwrap();
        files.rename(&name(second), &name(first)).unwrap();
        files.rename("aside", &name(second)).unwrap();
        let refused = open(&mut files).unwrap_err();
        assert_eq!(refused, OpenError::Misnamed { name: name(first), found: second });
    }
    let mut files = log_of(7);
    files.rename(&name(4), &name(5)).unwrap();
    assert_eq!(open(&mut files).unwrap_err(), OpenError::Misnamed { name: name(5), found: 4 });
}

#[test]
fn a_segment_of_another_log_is_refused() {
    let mut other = MemoryFiles::new();
    let foreign = LogOptions { log_id: LogId(99), ..options(Opening::CreateIfMissing) };
    let (mut log, _) = DiskLog::open(&mut other, foreign).unwrap();
    log.append(&[HALF; 7]).unwrap();
    log.sync().unwrap();
    for copied in 1..=5 {
        let mut files = log_of(7);
        let bytes = other.read(&name(copied.min(4)), 0, u64::MAX).unwrap();
        if copied == 5 {
            files.create(&name(5), 0).unwrap();
        }
        files.write(&name(copied), 0, &bytes).unwrap();
        let refused = open(&mut files).unwrap_err();
        assert!(
            matches!(&refused, OpenError::ForeignSegment { name: found, .. } if *found == name(copied)),
            "{refused}"
        );
        // Also when only its records were copied over ours.
        let mut files = log_of(7);
        files.write(&name(copied.min(4)), 8_192, &bytes[8_192..]).unwrap();
        match open(&mut files) {
            Err(refused) => assert!(matches!(refused, OpenError::Damaged(_)), "{refused}"),
            Ok((_, recovered)) => assert!(copied >= 4 && recovered.records.len() == 6),
        }
    }
}

#[test]
fn a_segment_that_was_cut_is_refused_unless_only_reserved_space_is_gone() {
    for (segment, length, evidence) in [
        (1, 9_000, Evidence::NextSegment { sequence: 1, last: 2 }),
        (2, 100, Evidence::NextSegment { sequence: 3, last: 4 }),
        (4, 11_000, Evidence::Cut { length: 11_000, bytes: SEGMENT_BYTES_MIN }),
        (4, 9_000, Evidence::Cut { length: 9_000, bytes: SEGMENT_BYTES_MIN }),
        (4, 8_192, Evidence::Cut { length: 8_192, bytes: SEGMENT_BYTES_MIN }),
        (4, 10, Evidence::Header),
        (4, 0, Evidence::Header),
    ] {
        let mut files = log_of(7);
        files.set_length(&name(segment), length).unwrap();
        let refused = open(&mut files).unwrap_err();
        assert!(
            matches!(&refused, OpenError::Damaged(damage) if damage.name == name(segment) && damage.evidence == evidence),
            "{segment} {length}: {refused}"
        );
    }
    let mut files = log_of(7);
    files.set_length(&name(2), 12_280).unwrap();
    assert_eq!(open(&mut files).unwrap().1.records.len(), 7);
}

#[test]
fn a_log_that_must_exist_is_not_begun() {
    let mut files = MemoryFiles::new();
    let refused = DiskLog::open(&mut files, options(Opening::MustExist)).unwrap_err();
    assert_eq!(refused, OpenError::Missing);
    assert!(refused.to_string().ends_with("others may rely on what it has promised"));
    assert_eq!(files.list().unwrap(), []);
    let (log, recovered) = open(&mut files).unwrap();
    assert!(recovered.is_new && recovered.records.is_empty());
    assert_eq!((log.appended(), log.durable(), log.first_sequence(), log.segments()), (0, 0, 1, 1));
    let (_, recovered) = DiskLog::open(&mut files, options(Opening::MustExist)).unwrap();
    assert!(!recovered.is_new);
}

#[test]
fn other_files_of_the_directory_are_left_alone() {
    let mut files = log_of(3);
    for other in ["checkpoint-7", "1.log", "00000000000000000009.log.copy", "0000000000000000000x.log"] {
        files.create(other, 3).unwrap();
    }
    let before = files.list().unwrap();
    assert_eq!(open(&mut files).unwrap().1.records.len(), 3);
    assert_eq!(files.list().unwrap(), before);
}

#[test]
fn segments_below_a_checkpoint_are_removed_and_never_the_last() {
    let mut files = log_of(7);
    let second = files.read(&name(2), 0, u64::MAX).unwrap();
    let (mut log, _) = open(&mut files).unwrap();
    assert_eq!((log.segments(), log.bytes()), (4, 4 * SEGMENT_BYTES_MIN));
    assert_eq!(log.truncate_below(2).unwrap(), 0);
    assert_eq!(log.truncate_below(3).unwrap(), 1);
    assert_eq!((log.first_sequence(), log.segments(), log.files().bytes()), (3, 3, log.bytes()));
    assert_eq!(log.read_from(2, 1).unwrap_err(), ReadError::Truncated { sequence: 2, first: 3 });
    assert_eq!(log.truncate_below(u64::MAX).unwrap(), 2);
    assert_eq!((log.first_sequence(), log.appended(), log.segments()), (7, 7, 1));
    log.append(&[HALF; 2]).unwrap();
    log.sync().unwrap();
    let (log, recovered) = open(&mut files).unwrap();
    assert_eq!((recovered.records.len(), recovered.records[0].0, log.first_sequence()), (3, 7, 7));
    // What was cut and comes back is a gap.
    drop(log);
    files.create(&name(2), SEGMENT_BYTES_MIN).unwrap();
    files.write(&name(2), 0, &second).unwrap();
    let refused = open(&mut files).unwrap_err();
    assert_eq!(refused, OpenError::MissingSegment { name: name(3) });
}

#[test]
fn one_sync_covers_all_that_wait() {
    let mut files = MemoryFiles::new();
    let (mut log, _) = open(&mut files).unwrap();
    let before = log.files().operations();
    for _ in 0..10 {
        log.append(&[[1; 20], [2; 20]]).unwrap();
    }
    assert_eq!((log.durable(), log.appended()), (0, 20));
    assert_eq!(log.files().operations() - before, 10, "a write for each call");
    assert_eq!(log.sync().unwrap(), 20);
    assert_eq!(log.sync().unwrap(), 20);
    assert_eq!(log.files().operations() - before, 11, "one sync for all, and none for nothing");
}

#[test]
fn what_is_read_is_bounded_and_complete() {
    let mut files = MemoryFiles::new();
    let options =
        LogOptions { segment_bytes: 1 << 20, log_bytes_max: 1 << 24, ..options(Opening::CreateIfMissing) };
    let (mut log, _) = DiskLog::open(&mut files, options.clone()).unwrap();
    let mut draw = random(8);
    let payloads: Vec<Bytes> =
        (0..2_000).map(|_| Bytes::from(vec![draw(256) as u8; draw(2_500) as usize])).collect();
    log.append(&payloads).unwrap();
    assert!(log.segments() > 2);
    let log = DiskLog::open(&mut files, options).unwrap().0;
    let mut next = 1;
    while next <= log.appended() {
        let read = log.read_from(next, 100_000).unwrap();
        let bytes: usize = read.iter().map(|(_, payload)| payload.len()).sum();
        assert!(bytes <= 100_000 && (bytes > 90_000 || next + read.len() as u64 > log.appended()));
        for (sequence, payload) in read {
            assert_eq!((sequence, &payload), (next, &payloads[next as usize - 1]));
            next += 1;
        }
    }
    assert_eq!(log.read_from(2_001, 1).unwrap(), []);
    assert_eq!(log.read_from(u64::MAX, 1).unwrap(), []);
    assert_eq!(log.read_from(7, 0).unwrap().len(), 1, "one at least");
    assert_eq!(log.read_from(1, u64::MAX).unwrap().len(), 2_000);
}

#[test]
fn a_batch_may_need_several_segments_and_sizes_may_change() {
    let mut files = log_of(1);
    let (mut log, _) = open(&mut files).unwrap();
    assert_eq!(log.append(&[HALF; 20]).unwrap(), 21);
    assert_eq!((log.segments(), log.durable()), (11, 20));
    log.sync().unwrap();
    let larger =
        LogOptions { segment_bytes: 1 << 16, record_bytes_max: 50_000, ..options(Opening::MustExist) };
    let (mut log, _) = DiskLog::open(&mut files, larger).unwrap();
    // Too long for what is left of the old segment, and for an empty one of the old size.
    assert_eq!(log.append(&[vec![1; 50_000], vec![2; 50_000]]).unwrap(), 23);
    assert_eq!((log.segments(), log.bytes()), (13, 11 * SEGMENT_BYTES_MIN + 2 * (1 << 16)));
    log.sync().unwrap();
    let (_, recovered) = open(&mut files).unwrap();
    assert_eq!((recovered.records.len(), recovered.records[22].1.len()), (23, 50_000));
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let good = options(Opening::CreateIfMissing);
    for (wrong, expected) in [
        (
            LogOptions { segment_bytes: SEGMENT_BYTES_MIN - 1, ..good.clone() },
            "the options of the log are wrong: segments have 12287 bytes; set 12288 to 4294967296",
        ),
        (LogOptions { segment_bytes: SEGMENT_BYTES_MAX + 1, ..good.clone() }, "; set 12288 to 4294967296"),
        (
            LogOptions { record_bytes_max: 4_065, ..good.clone() },
            "records may have 4065 bytes, and a segment of 12288 bytes can hold 4064: allow shorter records",
        ),
        (
            LogOptions { log_bytes_max: 2 * SEGMENT_BYTES_MIN - 1, ..good.clone() },
            "the log may have 24575 bytes; allow two segments of 12288 bytes at least",
        ),
    ] {
        let refused = DiskLog::open(&mut MemoryFiles::new(), wrong).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    assert!(
        DiskLog::open(&mut MemoryFiles::new(), LogOptions::new(LogId(1), Opening::CreateIfMissing)).is_ok()
    );
    let longest = LogOptions { record_bytes_max: 4_064, ..good };
    let mut files = MemoryFiles::new();
    let (mut log, _) = DiskLog::open(&mut files, longest).unwrap();
    assert_eq!(log.append(&[[1; 4_064], [2; 4_064]]).unwrap(), 2);
    log.sync().unwrap();
    assert_eq!(open(&mut files).unwrap().1.records.len(), 2);
}
