//! The form of the files, byte by byte, as docs/log-format.md draws it.

use std::fmt::Write as _;

use ordain_consensus::disk_log::{DiskLog, LogId, LogOptions, OpenError, Opening, SEGMENT_BYTES_MIN};
use ordain_consensus::files::{Files, MemoryFiles};

use super::script::{LOG_ID, open};

/// The bytes of a log that was written by version 1 of the format. A change of it is another version.
const VERSION_1: &str = include_str!("version_1.txt");

/// A log with two segments: the first one has three records and a seal, the second one has one record.
fn small_log() -> MemoryFiles {
    let mut files = MemoryFiles::new();
    let (mut log, _) = open(&mut files).unwrap();
    log.append(&[&b"first"[..], b""]).unwrap();
    log.sync().unwrap();
    log.append(&[b"the third record"]).unwrap();
    log.append(&[[b'x'; 3_980]]).unwrap();
    log.sync().unwrap();
    files
}

/// The lines of 16 bytes that are not all zero; equal ones that follow each other are counted.
fn dump(files: &MemoryFiles) -> String {
    let mut text = String::new();
    for entry in files.list().unwrap() {
        writeln!(text, "{} {}", entry.name, entry.length).unwrap();
        let bytes = files.read(&entry.name, 0, entry.length).unwrap();
        let lines: Vec<&[u8]> = bytes.chunks(16).collect();
        let mut offset = 0;
        for equal in lines.chunk_by(|line, next| line == next) {
            if equal[0].iter().any(|byte| *byte != 0) {
                let hexadecimal: Vec<String> = equal[0].iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(text, "{offset:6} x{:<3} {}", equal.len(), hexadecimal.join(" ")).unwrap();
            }
            offset += 16 * equal.len();
        }
    }
    text
}

/// Files from their dump.
fn undump(text: &str) -> MemoryFiles {
    let mut files = MemoryFiles::new();
    let mut name = "";
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [file, length] = words[..] {
            name = file;
            files.create(name, length.parse().unwrap()).unwrap();
            continue;
        }
        let bytes: Vec<u8> = words[2..].iter().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        let count = words[1].trim_start_matches('x').parse().unwrap();
        files.write(name, words[0].parse().unwrap(), &bytes.repeat(count)).unwrap();
    }
    files
}

#[test]
fn the_bytes_are_those_of_version_1() {
    let found = dump(&small_log());
    assert!(
        found == VERSION_1,
        "the format has changed: it needs another version number. It is now\n{found}"
    );
}

#[test]
fn a_log_of_version_1_can_be_read() {
    let mut files = undump(VERSION_1);
    let (mut log, recovered) = open(&mut files).unwrap();
    let payloads: Vec<&[u8]> = recovered.records.iter().map(|(_, payload)| &payload[..]).collect();
    assert!(payloads == [&b"first"[..], b"", b"the third record", &[b'x'; 3_980]]);
    assert_eq!((recovered.cut_bytes, log.segments(), log.bytes()), (0, 2, 2 * SEGMENT_BYTES_MIN));
    assert_eq!(log.append(&[b"fifth"]).unwrap(), 5);
}

/// Changes the header of the first segment, and its checksums if asked.
fn with_header(change: impl Fn(&mut Vec<u8>)) -> MemoryFiles {
    let mut files = small_log();
    let name = "00000000000000000001.log";
    let mut header = files.read(name, 0, 64).unwrap();
    change(&mut header);
    files.write(name, 0, &header).unwrap();
    files
}

#[test]
fn another_version_is_refused_and_not_misread() {
    let mut files = with_header(|header| {
        header[8] = 2;
        let checksum = crc32c::crc32c(&header[..12]);
        header[12..16].copy_from_slice(&checksum.to_le_bytes());
    });
    let refused = open(&mut files).unwrap_err();
    assert_eq!(refused, OpenError::OtherVersion { name: "00000000000000000001.log".into(), found: 2 });
    assert_eq!(
        refused.to_string(),
        "the segment `00000000000000000001.log` has format version 2, and this program reads version 1: start the node with \
         the release that wrote it"
    );
    // A version that was damaged is damage.
    let refused = open(&mut with_header(|header| header[8] = 2)).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged(_)), "{refused}");
}

#[test]
fn a_log_of_another_node_is_refused() {
    let mut files = small_log();
    let other = LogOptions::new(LogId(7), Opening::CreateIfMissing);
    let refused = DiskLog::open(&mut files, other).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the segment `00000000000000000001.log` belongs to the log 0123456789abcdef0011223344556677, and this node's log is \
         00000000000000000000000000000007: it was copied from another node. Put back this node's own files"
    );
    assert_eq!(LOG_ID.to_string(), "0123456789abcdef0011223344556677");
}
