//! The files of a directory do what the trait promises, and errors name the path.

use ordain::files::RealFiles;
use ordain_consensus::disk_log::{AppendError, DiskLog, LogId, LogOptions, Opening};
use ordain_consensus::files::{FileEntry, FileErrorKind, Files};

use super::Folder;

fn entry(name: &str, length: u64) -> FileEntry {
    FileEntry { name: name.to_owned(), length }
}

#[test]
fn files_are_made_written_cut_renamed_and_removed() {
    let folder = Folder::create();
    let mut files = RealFiles::open(&folder.0.join("deep/below")).unwrap();
    files.create("a", 1000).unwrap();
    assert_eq!(files.read("a", 0, 2000).unwrap(), vec![0; 1000], "zeros");
    files.write("a", 998, b"four").unwrap();
    assert_eq!(files.list().unwrap(), [entry("a", 1002)]);
    assert_eq!(files.read("a", 997, 10).unwrap(), b"\0four");
    assert_eq!(files.read("a", 5000, 10).unwrap(), b"");
    files.set_length("a", 999).unwrap();
    files.set_length("a", 1001).unwrap();
    assert_eq!(files.read("a", 998, 10).unwrap(), b"f\0\0", "what was cut is gone");
    files.create("b", 3).unwrap();
    files.write("b", 0, b"old").unwrap();
    files.rename("a", "b").unwrap();
    assert_eq!(files.list().unwrap(), [entry("b", 1001)]);
    files.write("b", 0, b"new").unwrap();
    assert_eq!(files.read("b", 0, 3).unwrap(), b"new", "the handle has moved with the name");
    files.sync("b").unwrap();
    files.sync_directory().unwrap();
    files.remove("b").unwrap();
    assert_eq!(files.list().unwrap(), []);
}

/// What is filled with zeros is only what nobody has written.
#[test]
fn a_file_with_reserved_space_holds_what_was_written_and_zeros() {
    const RESERVED: usize = 1 << 20;
    let folder = Folder::create();
    let mut random = 7_u64;
    let mut below = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % bound
    };
    for round in 0..20 {
        let name = format!("f{round}");
        let mut files = RealFiles::open(&folder.0).unwrap();
        files.create(&name, RESERVED as u64).unwrap();
        let mut model = vec![0; RESERVED];
        for step in 1..120_u8 {
            match below(12) {
                0 => {
                    let length = below(RESERVED + RESERVED / 2);
                    files.set_length(&name, length as u64).unwrap();
                    model.resize(length, 0);
                }
                1 => files = RealFiles::open(&folder.0).unwrap(),
                kind => {
                    // Appending, mostly.
                    let written = model.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                    let offset = if kind < 4 { below(model.len() + 1) } else { written };
                    let bytes = vec![step; 1 + below(20_000)];
                    files.write(&name, offset as u64, &bytes).unwrap();
                    model.resize(model.len().max(offset + bytes.len()), 0);
                    model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
        assert!(files.read(&name, 0, u64::MAX).unwrap() == model, "round {round}");
    }
}

#[test]
fn errors_say_which_file_and_why() {
    let folder = Folder::create();
    let mut files = RealFiles::open(&folder.0).unwrap();
    files.create("a", 0).unwrap();
    let path = folder.0.join("a").display().to_string();
    let exists = files.create("a", 0).unwrap_err();
    assert_eq!((exists.kind.clone(), exists.name.as_str()), (FileErrorKind::Exists, path.as_str()));
    assert!(exists.to_string().contains("stop one of the two"), "{exists}");
    for missing in [
        files.write("b", 0, b"x").unwrap_err(),
        files.read("b", 0, 1).unwrap_err(),
        files.set_length("b", 1).unwrap_err(),
        files.sync("b").unwrap_err(),
        files.remove("b").unwrap_err(),
        files.rename("b", "c").unwrap_err(),
    ] {
        assert_eq!(missing.kind, FileErrorKind::NotFound, "{missing}");
        assert!(missing.name.ends_with("/b"), "{missing}");
    }
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    let folder = Folder::create();
    let mut files = RealFiles::with_bytes_max(&folder.0, 1000).unwrap();
    files.create("a", 600).unwrap();
    assert_eq!(files.create("b", 500).unwrap_err().kind, FileErrorKind::Full);
    assert_eq!(files.list().unwrap(), [entry("a", 600)], "there is no file of that name");
    assert_eq!(files.set_length("a", 1001).unwrap_err().kind, FileErrorKind::Full);
    assert_eq!(files.write("a", 599, &[1; 403]).unwrap_err().kind, FileErrorKind::Full);
    assert_eq!(files.list().unwrap(), [entry("a", 600)]);
    files.write("a", 599, &[1; 401]).unwrap();
    files.set_length("a", 100).unwrap();
    files.create("b", 900).unwrap();
    files.remove("b").unwrap();
    drop(files);
    let mut files = RealFiles::with_bytes_max(&folder.0, 1000).unwrap();
    assert_eq!(files.create("c", 901).unwrap_err().kind, FileErrorKind::Full, "what is there counts");
    files.create("c", 900).unwrap();
}

#[test]
fn a_file_system_without_space_for_the_length_is_full() {
    let folder = Folder::create();
    let mut files = RealFiles::open(&folder.0).unwrap();
    let error = files.create("a", 1 << 62).unwrap_err();
    // A file system has either no such space or no such long files.
    assert!(matches!(error.kind, FileErrorKind::Full | FileErrorKind::Other(_)), "{error}");
    assert_eq!(files.list().unwrap(), []);
}

#[test]
fn a_log_over_real_files_goes_on_when_there_is_space_again() {
    let folder = Folder::create();
    let options = |opening| LogOptions {
        segment_bytes: 64 << 10,
        record_bytes_max: 4 << 10,
        ..LogOptions::new(LogId(7), opening)
    };
    let files = RealFiles::with_bytes_max(&folder.0, 140 << 10).unwrap();
    let (mut log, _) = DiskLog::open(files, options(Opening::CreateIfMissing)).unwrap();
    let record = vec![5; 4000];
    let mut appended = 0;
    let full = loop {
        match log.append(&[&record]) {
            Ok(sequence) => appended = sequence,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, AppendError::Full(_)), "{full}");
    assert_eq!(log.sync().unwrap(), appended);
    drop(log);
    let files = RealFiles::open(&folder.0).unwrap();
    let (mut log, recovered) = DiskLog::open(files, options(Opening::MustExist)).unwrap();
    assert_eq!(recovered.records.len() as u64, appended);
    log.append(&[&record]).unwrap();
    log.sync().unwrap();
}
