//! Operations on files that fail, and a process that stops without a loss of power.

use ordain_consensus::disk_log::{AppendError, DiskLog, LogOptions, Opening, SEGMENT_BYTES_MIN};
use ordain_consensus::files::{FileErrorKind, FileOperation, Files, MemoryFiles};

use super::script::{End, Model, live, open, options, random};

fn broken() -> FileErrorKind {
    FileErrorKind::Other("input/output error".into())
}

/// Lets each operation of a script fail, once. The process is started again, then the power fails: what the second process
/// found, it had reported durable.
fn run(seed: u64, operations: u64, kind: FileErrorKind) -> bool {
    let (mut files, mut model, mut work) = (MemoryFiles::new(), Model::default(), random(seed));
    files.fail_after(operations, kind);
    let failed = match live(&mut files, &mut model, &mut work, 16) {
        Ok(()) => false,
        Err(End::Failed) => true,
        Err(End::Wrong(wrong)) => panic!("seed {seed}, {operations} operations: {wrong}"),
    };
    files.clear_faults();
    for _ in 0..2 {
        let opened = model.open(&mut files).map(|log| log.appended());
        opened.unwrap_or_else(|end| panic!("seed {seed}, {operations} operations: {end:?}"));
        files.crash(&mut work);
    }
    failed
}

#[test]
fn after_any_failure_the_next_process_finds_what_was_durable() {
    for kind in [broken(), FileErrorKind::Full] {
        let mut failures = 0;
        for seed in 0..100 {
            failures += (0..).take_while(|operations| run(seed, *operations, kind.clone())).count();
        }
        assert!(failures > 2_000, "{failures}");
    }
}

#[test]
fn a_failure_while_the_log_is_opened_does_no_harm() {
    let mut failed = 0;
    for seed in 0..200 {
        for operations in 0..8 {
            let (mut files, mut model, mut work) = (MemoryFiles::new(), Model::default(), random(seed));
            files.power_off_after(10 + work(30));
            let _cut_short = live(&mut files, &mut model, &mut work, 12);
            files.crash(&mut work);
            files.fail_after(operations, broken());
            let mut failures = 0;
            for _ in 0..4 {
                match model.open(&mut files) {
                    Ok(_) => {}
                    Err(End::Failed) => failures += 1,
                    Err(end) => panic!("seed {seed}, {operations} operations: {end:?}"),
                }
            }
            assert!(failures <= 1, "only one operation failed");
            failed += failures;
            files.crash(&mut work);
            assert!(model.open(&mut files).is_ok());
        }
    }
    assert!(failed > 1_000, "{failed}");
}

#[test]
fn after_an_error_of_a_sync_every_call_gives_the_same_error() {
    let mut files = MemoryFiles::new();
    let (mut log, _) = open(&mut files).unwrap();
    log.append(&[b"durable"]).unwrap();
    log.sync().unwrap();
    log.append(&[b"not durable"]).unwrap();
    log.files_mut().fail_after(0, broken());
    let error = log.sync().unwrap_err();
    assert_eq!((error.operation, &error.kind), (FileOperation::Sync, &broken()));
    let operations = log.files().operations();
    assert_eq!(log.sync().unwrap_err(), error);
    assert_eq!(log.append(&[b"more"]).unwrap_err(), AppendError::Failed(error.clone()));
    assert_eq!(log.append(&[b""; 0]).unwrap_err(), AppendError::Failed(error.clone()));
    assert_eq!(log.truncate_below(2).unwrap_err(), error);
    assert_eq!(log.failure(), Some(&error));
    assert_eq!((log.durable(), log.appended()), (1, 2));
    assert_eq!(log.files().operations(), operations, "nothing more was tried");
    assert_eq!(
        log.append(&[b"more"]).unwrap_err().to_string(),
        "cannot sync the file `00000000000000000001.log`: input/output error; look at the disk and at the system's log, then \
         start the node again; the log takes no more records: the node must stop, and recover what is on the disk when it is \
         started again"
    );
}

#[test]
fn a_failed_sync_of_the_driver_stops_the_log() {
    let mut files = MemoryFiles::new();
    let (mut log, _) = open(&mut files).unwrap();
    log.append(&[b"a"]).unwrap();
    log.files_mut().fail_after(0, broken());
    let error = log.files_mut().sync("00000000000000000001.log").unwrap_err();
    log.mark_failed(error.clone());
    assert_eq!(log.sync().unwrap_err(), error);
}

/// Records of half a segment.
const HALF: [u8; 2_000] = [7; 2_000];

#[test]
fn a_full_disk_refuses_records_which_can_be_appended_later() {
    let mut files = MemoryFiles::new();
    files.set_capacity(2 * SEGMENT_BYTES_MIN);
    let (mut log, _) = open(&mut files).unwrap();
    log.append(&[HALF]).unwrap();
    let (appended, bytes) = (log.appended(), log.files().bytes());
    // Two segments more would be needed: one has room, and is given back.
    for _ in 0..3 {
        let refused = log.append(&[HALF; 5]).unwrap_err();
        assert!(matches!(&refused, AppendError::Full(error) if error.operation == FileOperation::Create));
        assert_eq!(
            refused.to_string(),
            "cannot create the file `00000000000000000003.log`: the disk is full: give it space; the log is as before, and \
             goes on when there is space"
        );
        assert_eq!((log.appended(), log.files().bytes(), log.segments()), (appended, bytes, 1));
    }
    log.append(&[HALF]).unwrap();
    log.append(&[HALF; 2]).unwrap();
    log.files_mut().set_capacity(4 * SEGMENT_BYTES_MIN);
    assert_eq!(log.append(&[HALF; 4]).unwrap(), 8);
    log.sync().unwrap();
    files.crash(&mut random(1));
    assert_eq!(open(&mut files).unwrap().1.records.len(), 8);
}

#[test]
fn a_log_of_its_longest_goes_on_after_it_was_cut() {
    let mut files = MemoryFiles::new();
    let options = LogOptions { log_bytes_max: 2 * SEGMENT_BYTES_MIN, ..options(Opening::CreateIfMissing) };
    let (mut log, _) = DiskLog::open(&mut files, options).unwrap();
    log.append(&[HALF; 4]).unwrap();
    let refused = log.append(&[HALF]).unwrap_err();
    let (bytes, bytes_max) = (2 * SEGMENT_BYTES_MIN, 2 * SEGMENT_BYTES_MIN);
    assert_eq!(refused, AppendError::LimitReached { bytes, bytes_max });
    assert_eq!(log.truncate_below(3).unwrap(), 1);
    assert_eq!(log.append(&[HALF]).unwrap(), 5);
    let refused = log.append(&[[0; 4_001]]).unwrap_err();
    assert_eq!(refused, AppendError::TooLong { bytes: 4_001, bytes_max: 4_000 });
    assert_eq!((log.appended(), log.first_sequence(), log.failure()), (5, 3, None));
}
