use bytes::Bytes;

use super::*;

fn disk(loss: Loss) -> Disk {
    let options = DiskOptions { sync_min: 10, sync_max: 10, loss, ..DiskOptions::default() };
    Disk::new(options, 1, &[0])
}

fn append(disk: &mut Disk, number: u64) {
    let records = vec![Bytes::from(number.to_le_bytes().to_vec())];
    disk.write(DiskWrite::Append { number, records, index_max: None, must_sync: true }).unwrap();
}

fn numbers(found: &Found) -> Vec<u64> {
    found.records.iter().map(|record| u64::from_le_bytes(record[..].try_into().unwrap())).collect()
}

fn persisted(events: &[Event]) -> Vec<u64> {
    let number = |event: &Event| match event {
        Event::Persisted(number) => *number,
        other => panic!("{other:?}"),
    };
    events.iter().map(number).collect()
}

#[test]
fn what_a_sync_covers_survives_and_nothing_else() {
    let mut disk = disk(Loss::All);
    assert!(disk.open().unwrap().is_new);
    append(&mut disk, 1);
    append(&mut disk, 2);
    let syncing = disk.begin_sync(5, &mut Vec::new()).unwrap();
    assert_eq!(syncing.completes_at, 15);
    append(&mut disk, 3);
    let mut events = Vec::new();
    disk.complete_sync(syncing, &mut events).unwrap();
    assert_eq!(persisted(&events), [2]);
    disk.crash();
    let found = disk.open().unwrap();
    assert_eq!((numbers(&found), found.cut_bytes), (vec![1, 2], 0));
    assert!(disk.begin_sync(0, &mut Vec::new()).is_none(), "what was found is durable");
}

#[test]
fn a_process_that_ends_loses_nothing_that_it_wrote() {
    let mut disk = disk(Loss::All);
    disk.open().unwrap();
    append(&mut disk, 1);
    disk.close();
    assert_eq!(numbers(&disk.open().unwrap()), [1]);
    disk.crash();
    assert_eq!(numbers(&disk.open().unwrap()), [1], "opening made it durable");
}

/// What is told of chunks and of the whole checkpoint, in order.
fn told(events: &[Event]) -> String {
    let letter = |event: &Event| match event {
        Event::CheckpointChunkWritten => 'c',
        Event::CheckpointWritten(_) => 'w',
        Event::Persisted(_) => 'p',
        other => panic!("{other:?}"),
    };
    events.iter().map(letter).collect()
}

#[test]
fn chunks_of_a_checkpoint_take_time_by_their_size() {
    let rate = Some(1_000_000_000);
    let options = DiskOptions {
        sync_min: 10,
        sync_max: 10,
        checkpoint_bytes_per_second: rate,
        ..DiskOptions::default()
    };
    let mut disk = Disk::new(options, 1, &[0]);
    disk.open().unwrap();
    let chunk = || DiskWrite::CheckpointChunk(Bytes::from(vec![7; 1_000]));
    disk.write(DiskWrite::BeginCheckpoint(Epoch(1))).unwrap();
    disk.write(chunk()).unwrap();
    disk.write(chunk()).unwrap();
    append(&mut disk, 1);
    let mut events = Vec::new();
    let first = disk.begin_sync(5, &mut events).unwrap();
    assert_eq!(
        (first.completes_at, told(&events).as_str()),
        (5 + 2_000 + 10, ""),
        "a byte takes a nanosecond"
    );
    // What is written meanwhile is not part of it.
    disk.write(chunk()).unwrap();
    disk.write(DiskWrite::EndCheckpoint).unwrap();
    append(&mut disk, 2);
    disk.complete_sync(first, &mut events).unwrap();
    assert_eq!(told(&std::mem::take(&mut events)), "pcc");
    let second = disk.begin_sync(3_000, &mut events).unwrap();
    assert_eq!((second.completes_at, told(&events).as_str()), (3_000 + 1_000 + 10, ""));
    disk.complete_sync(second, &mut events).unwrap();
    assert_eq!(told(&std::mem::take(&mut events)), "cwp");
    assert!(disk.begin_sync(5_000, &mut events).is_none() && events.is_empty());
}

#[test]
fn a_wiped_disk_is_another_one() {
    let mut disk = disk(Loss::Drawn);
    disk.open().unwrap();
    append(&mut disk, 1);
    disk.fill();
    let before = disk.log_id;
    disk.wipe();
    assert_ne!(disk.log_id, before);
    let found = disk.open().unwrap();
    assert!(found.is_new && found.records.is_empty(), "{found:?}");
    append(&mut disk, 2);
    disk.close();
    assert_eq!(numbers(&disk.open().unwrap()), [2]);
}

#[test]
fn faults_are_told_apart() {
    let mut disk = disk(Loss::Drawn);
    disk.open().unwrap();
    append(&mut disk, 1);
    disk.fail_next_sync();
    let syncing = disk.begin_sync(0, &mut Vec::new()).unwrap();
    let reason = disk.complete_sync(syncing, &mut Vec::new()).unwrap_err();
    assert!(reason.contains("the disk reports"), "{reason}");
    disk.crash();
    disk.open().unwrap();
    disk.power_off_after(0);
    let records = vec![Bytes::from_static(b"lost")];
    assert_eq!(
        disk.write(DiskWrite::Append { number: 1, records, index_max: None, must_sync: true }),
        Err(WriteFailure::Off)
    );
    assert!(disk.is_off());
    assert_eq!(disk.open().err(), Some(OpenFailure::Off));
    disk.crash();
    disk.power_off_after(0);
    assert_eq!(disk.open().err(), Some(OpenFailure::Off), "recovery writes, too");
    disk.crash();
    disk.open().unwrap();
}

#[test]
fn a_full_disk_takes_the_same_write_later() {
    let options = DiskOptions { segment_bytes: 64 << 10, ..DiskOptions::default() };
    let mut disk = Disk::new(options, 1, &[0]);
    disk.open().unwrap();
    disk.fill();
    let write = |number| DiskWrite::Append {
        number,
        records: vec![Bytes::from(vec![7; 20_000])],
        must_sync: true,
        index_max: None,
    };
    let full = (1..9).find(|number| disk.write(write(*number)) == Err(WriteFailure::Full)).unwrap();
    disk.empty();
    for number in full..9 {
        disk.write(write(number)).unwrap();
    }
    assert_eq!(disk.open().unwrap().records.len(), 8);
}

#[test]
fn damage_is_noticed_and_a_wrong_cut_hides_it() {
    for misdirect in [false, true] {
        let mut disk = disk(Loss::Drawn);
        disk.open().unwrap();
        assert!(!disk.damage(misdirect), "an empty log has no place whose damage is certain to be noticed");
        for number in 1..300 {
            append(&mut disk, number);
            let syncing = disk.begin_sync(0, &mut Vec::new()).unwrap();
            disk.complete_sync(syncing, &mut Vec::new()).unwrap();
        }
        assert!(disk.damage(misdirect));
        disk.crash();
        let Err(OpenFailure::Damaged(damage)) = disk.open() else { panic!("the damage is not noticed") };
        disk.cut(&damage);
        let left = numbers(&disk.open().unwrap());
        assert!(left.len() < 299 && left == (1..=left.len() as u64).collect::<Vec<u64>>(), "{left:?}");
    }
}

/// Appends a record, and makes it durable.
fn append_durably(disk: &mut Disk, number: u64) {
    append(disk, number);
    let syncing = disk.begin_sync(0, &mut Vec::new()).unwrap();
    disk.complete_sync(syncing, &mut Vec::new()).unwrap();
}

#[test]
fn a_lost_write_is_noticed_where_something_tells_of_it() {
    let (mut noticed, mut repaired) = (0, 0);
    for before in 1..40 {
        let options = DiskOptions { loss: Loss::All, ..DiskOptions::default() };
        let mut disk = Disk::new(options, before, &[0]);
        disk.open().unwrap();
        (1..=before).for_each(|number| append_durably(&mut disk, number));
        assert!(disk.lose_write());
        // A record fills a sector and more, so that no later one writes all of it again.
        let records = vec![Bytes::from(vec![7; 1_500])];
        disk.write(DiskWrite::Append { number: before + 1, records, index_max: None, must_sync: true })
            .unwrap();
        let syncing = disk.begin_sync(0, &mut Vec::new()).unwrap();
        disk.complete_sync(syncing, &mut Vec::new()).unwrap();
        append_durably(&mut disk, before + 2);
        append_durably(&mut disk, before + 3);
        disk.crash();
        match disk.open() {
            Err(OpenFailure::Damaged(damage)) => {
                noticed += 1;
                assert!(damage.to_string().contains("is missing"), "{damage}");
            }
            Ok(found) => {
                repaired += 1;
                assert_eq!(found.records.len() as u64, before + 3, "nothing is lost unnoticed");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(noticed > 10 && repaired > 0, "{noticed} {repaired}");
}

#[test]
fn nothing_is_lost_at_the_end_of_a_log_where_nobody_could_notice() {
    let mut disk = disk(Loss::All);
    disk.open().unwrap();
    (1..20).for_each(|number| append_durably(&mut disk, number));
    assert!(disk.lose_write());
    append_durably(&mut disk, 20);
    disk.crash();
    assert_eq!(numbers(&disk.open().unwrap()), (1..=20).collect::<Vec<u64>>());
}

/// Takes a checkpoint that has these bytes, and goes on from it.
fn take_checkpoint(disk: &mut Disk, epoch: u64, bytes: Vec<u8>) {
    disk.write(DiskWrite::BeginCheckpoint(Epoch(epoch))).unwrap();
    disk.write(DiskWrite::CheckpointChunk(Bytes::from(bytes))).unwrap();
    disk.write(DiskWrite::EndCheckpoint).unwrap();
    disk.write(DiskWrite::RemoveCheckpoints { before: Epoch(epoch) }).unwrap();
}

#[test]
fn damage_hits_the_checkpoint_to_go_on_from() {
    let (mut kinds, older) = ([0; 3], vec![5; 2_000]);
    let newer: Vec<u8> = (0..2_000).map(|at: u32| (at / 7) as u8).collect();
    for seed in 0..40 {
        let mut disk = Disk::new(DiskOptions::default(), seed, &[0]);
        disk.open().unwrap();
        assert!(!disk.damage_checkpoint(), "there is none");
        take_checkpoint(&mut disk, 3, older.clone());
        take_checkpoint(&mut disk, 9, newer.clone());
        assert!(disk.damage_checkpoint());
        disk.crash();
        let found = disk.open().unwrap();
        let name = ordain_db::disk::checkpoint_name(Epoch(9));
        let kind = match (found.checkpoints.as_slice(), found.stable) {
            ([Epoch(9)], Epoch(9)) => {
                assert_ne!(disk.files.read(&name, 0, 2_000).unwrap(), newer, "its bytes are others");
                0
            }
            ([], Epoch(9)) => 1,
            ([Epoch(9)], Epoch(0)) => 2,
            other => panic!("{other:?}"),
        };
        kinds[kind] += 1;
    }
    assert!(kinds.iter().all(|count| *count > 3), "{kinds:?}");
}
