//! A disk that is full fails checkpoints, and neither the node nor the log.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use bytes::Bytes;
use ordain_consensus::disk_log::{LogId, LogOptions, Opening, SEGMENT_BYTES_MIN};

use ordain_consensus::files::{FileErrorKind, Files, MemoryFiles};
use ordain_db::disk::NodeDisk;
use ordain_db::node::{DiskWrite, Event};
use ordain_db::position::Epoch;

fn open(files: MemoryFiles) -> (NodeDisk<MemoryFiles>, ordain_db::disk::Found) {
    let options = LogOptions {
        segment_bytes: SEGMENT_BYTES_MIN,
        record_bytes_max: 1000,
        ..LogOptions::new(LogId(1), Opening::CreateIfMissing)
    };
    NodeDisk::open(files, options).unwrap()
}

fn checkpoint(disk: &mut NodeDisk<MemoryFiles>, epoch: u64) {
    for write in [
        DiskWrite::BeginCheckpoint(Epoch(epoch)),
        DiskWrite::CheckpointChunk(Bytes::from_static(b"rows")),
        DiskWrite::EndCheckpoint,
    ] {
        disk.write(write).unwrap();
    }
}

fn names(disk: &mut NodeDisk<MemoryFiles>) -> Vec<String> {
    let files = disk.files_mut().list().unwrap().into_iter().map(|file| file.name);
    files.filter(|name| name.ends_with(".checkpoint") || name.ends_with(".stable")).collect()
}

#[test]
fn a_checkpoint_that_cannot_begin_fails_alone() {
    let (mut disk, _) = open(MemoryFiles::new());
    disk.files_mut().fail_after(0, FileErrorKind::Full);
    checkpoint(&mut disk, 5);
    let mut events = Vec::new();
    disk.sync(&mut events).unwrap();
    assert!(matches!(&events[..], [Event::CheckpointFailed(_)]), "{events:?}");
    assert!(names(&mut disk).is_empty());
    checkpoint(&mut disk, 6);
    assert_eq!(names(&mut disk).len(), 1);
}

#[test]
fn what_cannot_be_marked_stays_with_its_log() {
    let (mut disk, _) = open(MemoryFiles::new());
    for number in 1..=300 {
        let records = vec![Bytes::from(vec![1; 900])];
        disk.write(DiskWrite::Append { number, records, index_max: Some(number), must_sync: true }).unwrap();
    }
    checkpoint(&mut disk, 5);
    let truncate = DiskWrite::TruncateLog { through: 290, restatement: vec![Bytes::from_static(b"start")] };
    disk.files_mut().fail_after(0, FileErrorKind::Full);
    disk.write(DiskWrite::RemoveCheckpoints { before: Epoch(5) }).unwrap();
    disk.write(truncate.clone()).unwrap();
    assert_eq!(disk.log().first_sequence(), 1, "nothing was cut");
    disk.write(DiskWrite::RemoveCheckpoints { before: Epoch(5) }).unwrap();
    disk.write(truncate).unwrap();
    assert!(disk.log().first_sequence() > 1);
    assert_eq!(open(disk.into_files()).1.stable, Epoch(5));
}

#[test]
fn a_mark_moves_where_there_is_no_room_for_another() {
    let (mut disk, _) = open(MemoryFiles::new());
    checkpoint(&mut disk, 5);
    disk.write(DiskWrite::RemoveCheckpoints { before: Epoch(5) }).unwrap();
    checkpoint(&mut disk, 8);
    let bytes = disk.files_mut().bytes();
    disk.files_mut().set_capacity(bytes);
    disk.write(DiskWrite::RemoveCheckpoints { before: Epoch(8) }).unwrap();
    let left = names(&mut disk);
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(open(disk.into_files()).1.stable, Epoch(8));
}
