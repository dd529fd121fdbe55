//! What is durable when, and that a crash really does what it may do.

use std::collections::BTreeSet;

use super::*;

const SECTOR: usize = SECTOR_BYTES as usize;

/// A seeded generator (SplitMix64, Steele et al. 2014).
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |bound| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// Bytes none of which is zero, and no two sectors of which are equal.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / SECTOR * 7 + at % 251) as u8 | 1).collect()
}

fn contents(files: &MemoryFiles, name: &str) -> Vec<u8> {
    files.read(name, 0, u64::MAX).unwrap()
}

/// A directory with one durable file `a`.
fn durable(bytes: &[u8]) -> MemoryFiles {
    let mut files = MemoryFiles::new();
    files.create("a", 0).unwrap();
    files.write("a", 0, bytes).unwrap();
    files.sync("a").unwrap();
    files.sync_directory().unwrap();
    files
}

#[test]
fn what_is_synced_stays_and_all_else_may_go() {
    let written = pattern(4 * SECTOR);
    let (mut sectors_seen, mut lengths) = ([BTreeSet::new(), BTreeSet::new()], BTreeSet::new());
    for seed in 0..400 {
        let mut files = durable(&written[..SECTOR + 100]);
        files.write("a", (SECTOR + 100) as u64, &written[SECTOR + 100..]).unwrap();
        files.crash(&mut random(seed));
        let found = contents(&files, "a");
        assert_eq!(found[..SECTOR + 100], written[..SECTOR + 100], "durable bytes of a shared sector stay");
        lengths.insert(found.len());
        if found.len() == written.len() {
            for (seen, sector) in sectors_seen.iter_mut().zip([2, 3]) {
                let range = sector * SECTOR..(sector + 1) * SECTOR;
                let kept =
                    found[range.clone()].iter().zip(&written[range]).take_while(|(a, b)| a == b).count();
                seen.insert(kept);
            }
        }
    }
    assert_eq!(lengths, BTreeSet::from([SECTOR + 100, 4 * SECTOR]));
    for seen in sectors_seen {
        assert!(seen.contains(&0) && seen.contains(&SECTOR), "lost and kept: {seen:?}");
        assert!(seen.len() > 8, "torn: {seen:?}");
    }
}

#[test]
fn sectors_are_lost_independently_of_their_order() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let mut files = durable(&[1; 3 * SECTOR]);
        files.write("a", 0, &[2; SECTOR]).unwrap();
        files.write("a", SECTOR_BYTES, &[3; SECTOR]).unwrap();
        files.crash(&mut random(seed));
        let found = contents(&files, "a");
        seen.insert((found[SECTOR - 1], found[2 * SECTOR - 1]));
        assert!(found.iter().all(|byte| (1..=3).contains(byte)), "an overwritten sector never holds noise");
    }
    assert_eq!(seen, BTreeSet::from([(1, 1), (1, 3), (2, 1), (2, 3)]));
}

#[test]
fn a_sector_that_was_never_synced_may_hold_noise_or_what_was_elsewhere() {
    let (mut zeros, mut stale, mut noise) = (0, 0, 0);
    for seed in 0..600 {
        let mut files = durable(&[9; SECTOR]);
        files.create("b", SECTOR_BYTES).unwrap();
        files.sync_directory().unwrap();
        files.write("b", 0, &[2; SECTOR]).unwrap();
        files.crash(&mut random(seed));
        let found = contents(&files, "b");
        zeros += u32::from(found.iter().all(|byte| *byte == 0));
        stale += u32::from(found == [9; SECTOR]);
        noise += u32::from(found.iter().collect::<BTreeSet<_>>().len() > 100);
    }
    assert!(zeros > 20 && stale > 5 && noise > 20, "{zeros} {stale} {noise}");
}

#[test]
fn a_name_is_durable_after_a_sync_of_the_directory_only() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let mut files = durable(b"old");
        files.create("new", 0).unwrap();
        files.write("new", 0, b"new").unwrap();
        files.sync("new").unwrap();
        files.rename("new", "a").unwrap();
        files.create("c", 10).unwrap();
        files.crash(&mut random(seed));
        let names: Vec<String> = files.list().unwrap().into_iter().map(|entry| entry.name).collect();
        let a = contents(&files, "a");
        assert!(a == b"old" || a == b"new", "a renaming is whole or has not happened");
        seen.insert((a, names));
    }
    let states: Vec<String> = seen
        .iter()
        .map(|(a, names)| format!("{}: {}", String::from_utf8_lossy(a), names.join(" ")))
        .collect();
    let expected =
        ["new: a", "new: a c", "old: a", "old: a c", "old: a c new", "old: a new"].map(String::from);
    assert_eq!(states, expected);
}

#[test]
fn a_removed_file_may_come_back_until_the_directory_is_synced() {
    let mut back = 0;
    for seed in 0..100 {
        let mut files = durable(b"old");
        files.remove("a").unwrap();
        assert_eq!(files.bytes(), 0);
        let mut synced = files.clone();
        synced.sync_directory().unwrap();
        synced.crash(&mut random(seed));
        assert_eq!(synced.list().unwrap(), []);
        files.crash(&mut random(seed));
        back += files.list().unwrap().len();
    }
    assert!((20..80).contains(&back), "{back}");
}

#[test]
fn a_ticket_covers_what_was_written_before_it() {
    let mut files = durable(&[0; 2]);
    files.write("a", 0, &[1]).unwrap();
    let first = files.begin_sync();
    files.write("a", 1, &[2]).unwrap();
    assert!(files.complete_sync(first));
    let late = files.begin_sync();
    let mut seen = BTreeSet::new();
    for seed in 0..50 {
        let mut files = files.clone();
        files.crash(&mut random(seed));
        assert!(!files.complete_sync(late), "a crash ends all syncs");
        seen.insert(contents(&files, "a"));
    }
    assert_eq!(seen, BTreeSet::from([vec![1, 0], vec![1, 2]]));
}

#[test]
fn a_failed_sync_is_not_made_up_for() {
    let mut files = durable(&[1]);
    files.write("a", 0, &[2]).unwrap();
    files.fail_after(0, FileErrorKind::Other("input/output error".into()));
    let failed = files.sync("a").unwrap_err();
    assert_eq!(
        failed.to_string(),
        "cannot sync the file `a`: input/output error; look at the disk and at the system's log, then start the node again"
    );
    files.sync("a").unwrap();
    assert_eq!(contents(&files, "a"), [2], "it is seen");
    let mut rewritten = files.clone();
    files.crash(&mut random(1));
    assert_eq!(contents(&files, "a"), [1], "and it is not on the disk");
    rewritten.write("a", 0, &[2]).unwrap();
    rewritten.sync("a").unwrap();
    rewritten.crash(&mut random(1));
    assert_eq!(contents(&rewritten, "a"), [2]);
}

#[test]
fn a_lost_write_shows_after_a_crash() {
    for seed in 0..20 {
        let mut files = durable(&[1; 3 * SECTOR]);
        files.write("a", 0, &[2; 2 * SECTOR + 10]).unwrap();
        files.lose_write(seed);
        files.sync("a").unwrap();
        let at = (seed % 3) as usize * SECTOR;
        let end = (at + SECTOR).min(2 * SECTOR + 10);
        let lost = files.lost_write().unwrap();
        assert_eq!((lost.name.as_str(), lost.bytes), ("a", at as u64..end as u64));
        assert_eq!(contents(&files, "a")[..end], vec![2; end], "it is read as it was written");
        let mut written = files.clone();
        files.crash(&mut random(seed));
        let found = contents(&files, "a");
        assert!(found[at..end].iter().all(|byte| *byte == 1), "what was there before is there");
        assert_eq!(found.iter().filter(|byte| **byte == 2).count(), 2 * SECTOR + 10 - (end - at));
        assert_eq!(files.lost_write(), None);
        // What is written again is written as it is in memory.
        written.write("a", at as u64, &[3]).unwrap();
        let ticket = written.begin_sync();
        assert!(written.complete_sync(ticket) && written.lost_write().is_none());
        written.crash(&mut random(seed));
        let found = contents(&written, "a");
        assert_eq!((found[at], &found[at + 1..end]), (3, &[2; 3 * SECTOR][at + 1..end]));
    }
}

#[test]
fn what_was_lost_may_be_written_after_all() {
    let mut files = durable(&[1; SECTOR]);
    files.lose_write(5);
    files.sync("a").unwrap();
    assert_eq!(files.lost_write(), None, "a sync that writes nothing loses nothing");
    files.write("a", 0, &[2]).unwrap();
    files.sync("a").unwrap();
    assert_eq!(files.lost_write().map(|lost| lost.bytes), Some(0..1));
    files.write_what_was_lost();
    files.crash(&mut random(1));
    assert_eq!(contents(&files, "a")[..2], [2, 1]);
}

#[test]
fn a_name_that_is_lost_stays_away() {
    for seed in 0..20 {
        let mut files = durable(&[1]);
        files.create("b", 0).unwrap();
        files.rename("b", "c").unwrap();
        files.lose_name("a").unwrap();
        files.lose_name("c").unwrap();
        assert_eq!(files.list().unwrap(), []);
        assert!(files.lose_name("a").is_err() && files.lose_name("b").is_err());
        files.crash(&mut random(seed));
        let left: Vec<String> = files.list().unwrap().into_iter().map(|entry| entry.name).collect();
        assert!(left.is_empty() || left == ["b"], "{left:?}");
    }
}

#[test]
fn without_power_nothing_works_until_the_crash() {
    let mut files = durable(&[1]);
    files.power_off_after(1);
    files.write("a", 0, &[2]).unwrap();
    assert_eq!(contents(&files, "a"), [2]);
    assert!(!files.is_off());
    files.sync("a").unwrap_err();
    assert!(files.is_off());
    files.read("a", 0, 1).unwrap_err();
    files.list().unwrap_err();
    files.crash(&mut random(3));
    files.write("a", 0, &[3]).unwrap();
}

#[test]
fn a_full_disk_refuses_and_changes_nothing() {
    let mut files = durable(&[1; 10]);
    files.set_capacity(15);
    let full = files.create("b", 6).unwrap_err();
    assert_eq!(full.to_string(), "cannot create the file `b`: the disk is full: give it space");
    assert_eq!(files.write("a", 8, &[2; 8]).unwrap_err().kind, FileErrorKind::Full);
    assert_eq!(files.set_length("a", 16).unwrap_err().kind, FileErrorKind::Full);
    assert_eq!((files.bytes(), contents(&files, "a")), (10, vec![1; 10]));
    files.create("b", 5).unwrap();
    files.write("b", 0, &[2; 5]).unwrap();
    files.remove("b").unwrap();
    files.set_length("a", 15).unwrap();
    files.set_length("a", 1).unwrap();
    files.set_length("a", 3).unwrap();
    assert_eq!(contents(&files, "a"), [1, 0, 0]);
}

#[test]
fn latent_faults_hit_one_sector() {
    for seed in 0..200 {
        let mut files = durable(&pattern(4 * SECTOR));
        let before = contents(&files, "a");
        files.corrupt("a", 2, &mut random(seed)).unwrap();
        assert!(!files.misdirect(("a", 1), ("a", 1)).unwrap());
        let changed: BTreeSet<usize> =
            (0..4 * SECTOR).filter(|at| contents(&files, "a")[*at] != before[*at]).collect();
        assert!((1..=8).contains(&changed.len()) && changed.iter().all(|at| at / SECTOR == 2), "{changed:?}");
        assert!(files.misdirect(("a", 1), ("a", 2)).unwrap());
        files.flip("a", 5, 4).unwrap();
        files.crash(&mut random(seed));
        let mut expected = before.clone();
        expected.copy_within(SECTOR..2 * SECTOR, 2 * SECTOR);
        expected[5] ^= 4;
        assert_eq!(contents(&files, "a"), expected);
    }
}

#[test]
fn errors_of_names_say_so() {
    let mut files = durable(&[1]);
    for (error, kind) in [
        (files.create("a", 0).unwrap_err(), FileErrorKind::Exists),
        (files.read("b", 0, 1).unwrap_err(), FileErrorKind::NotFound),
        (files.rename("b", "c").unwrap_err(), FileErrorKind::NotFound),
        (files.remove("b").unwrap_err(), FileErrorKind::NotFound),
        (files.sync("b").unwrap_err(), FileErrorKind::NotFound),
    ] {
        assert_eq!(error.kind, kind);
    }
    for name in ["", ".", "..", ".hidden", "a/b", "a b", &"x".repeat(256)] {
        assert!(matches!(files.create(name, 0).unwrap_err().kind, FileErrorKind::Other(_)), "{name}");
    }
    assert!(is_name("00000000000000000001.log") && is_name(&"x".repeat(255)));
}

#[test]
fn mistakes_can_be_switched_on() {
    let mut files = durable(&[1]);
    files.set_mistakes(Mistakes { ignore_sync: true, ignore_sync_directory: true });
    files.write("a", 0, &[2]).unwrap();
    files.sync("a").unwrap();
    files.create("b", 0).unwrap();
    files.sync_directory().unwrap();
    let mut lost = (false, false);
    for seed in 0..50 {
        let mut files = files.clone();
        files.crash(&mut random(seed));
        lost = (lost.0 || contents(&files, "a") == [1], lost.1 || files.list().unwrap().len() == 1);
    }
    assert_eq!(lost, (true, true));
}
