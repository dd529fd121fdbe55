//! What snapshots see, what is kept for them, and when it is freed.

use super::*;

pub(super) fn a_snapshot_sees_no_later_write<S: Storage>(mut storage: S) {
    let [modified, replaced, grown, deleted, inserted] =
        ["modified", "replaced", "grown", "deleted", "inserted"].map(key);
    for name in [&modified, &replaced, &grown, &deleted] {
        put(&mut storage, name, "old", at(1));
    }
    storage.open_snapshot(at(5));
    let long = "long".repeat(1000);
    for epoch in 6..9 {
        modify(&mut storage, &modified, "new", at(epoch));
        put(&mut storage, &replaced, "new", at(epoch));
        put(&mut storage, &grown, &long, at(epoch));
        delete(&mut storage, &deleted, at(epoch));
        put(&mut storage, &inserted, "new", at(epoch));
    }
    for name in [&modified, &replaced, &grown, &deleted] {
        expect(&mut storage, name, at(5), Some("old"));
    }
    expect(&mut storage, &inserted, at(5), None);
    for name in [&modified, &replaced, &inserted] {
        expect(&mut storage, name, Position::LATEST, Some("new"));
    }
    expect(&mut storage, &grown, Position::LATEST, Some(&long));
    expect(&mut storage, &deleted, Position::LATEST, None);
    let statistics = storage.statistics();
    assert_eq!((statistics.rows, statistics.garbage), (4, 5), "four old versions and a deletion are kept");
    storage.close_snapshot(at(5));
    collect_all(&mut storage);
    assert_eq!((storage.statistics().rows, storage.statistics().garbage), (4, 0), "nothing else is kept");
}

pub(super) fn a_snapshot_sees_a_deletion_before_a_later_insert<S: Storage>(mut storage: S) {
    let name = key("name");
    put(&mut storage, &name, "first", at(1));
    storage.open_snapshot(at(1));
    delete(&mut storage, &name, at(2));
    storage.open_snapshot(at(2));
    put(&mut storage, &name, "second, longer than the first one was before", at(3));
    storage.open_snapshot(at(3));
    delete(&mut storage, &name, at(4));
    put(&mut storage, &name, "third", at(5));
    for closed in [None, Some(2), Some(1), Some(3)] {
        if let Some(closed) = closed {
            storage.close_snapshot(at(closed));
            collect_all(&mut storage);
        }
        if closed.is_none() {
            expect(&mut storage, &name, at(2), None);
        }
        if matches!(closed, None | Some(2)) {
            expect(&mut storage, &name, at(1), Some("first"));
        }
        if closed != Some(3) {
            expect(&mut storage, &name, at(3), Some("second, longer than the first one was before"));
        }
        expect(&mut storage, &name, Position::LATEST, Some("third"));
    }
    assert_eq!((storage.statistics().rows, storage.statistics().garbage), (1, 0));
}

pub(super) fn several_snapshots_see_their_own_versions<S: Storage>(mut storage: S) {
    let name = key("name");
    for epoch in 1..=20 {
        put(&mut storage, &name, &format!("row {epoch}"), at(epoch * 10));
        storage.open_snapshot(at(epoch * 10 + 5));
    }
    for epoch in (1..=20).rev() {
        expect(&mut storage, &name, at(epoch * 10 + 5), Some(&format!("row {epoch}")));
    }
    for even in (2..=20).step_by(2) {
        storage.close_snapshot(at(even * 10 + 5));
        collect_all(&mut storage);
        for odd in (1..=20).step_by(2) {
            expect(&mut storage, &name, at(odd * 10 + 5), Some(&format!("row {odd}")));
        }
    }
    assert_eq!(storage.statistics().garbage, 10, "one version for each snapshot that is left");
}

pub(super) fn snapshots_at_one_position_are_counted<S: Storage>(mut storage: S) {
    let name = key("name");
    put(&mut storage, &name, "old", at(1));
    storage.open_snapshot(at(1));
    storage.open_snapshot(at(1));
    put(&mut storage, &name, "new", at(2));
    storage.close_snapshot(at(1));
    collect_all(&mut storage);
    expect(&mut storage, &name, at(1), Some("old"));
    storage.close_snapshot(at(1));
    collect_all(&mut storage);
    assert_eq!(storage.statistics().garbage, 0, "the last of two snapshots at one position is closed");
}

pub(super) fn a_late_write_below_a_snapshot_is_seen_by_it<S: Storage>(mut storage: S) {
    let [replaced, modified, inserted, deleted] = ["replaced", "modified", "inserted", "deleted"].map(key);
    for name in [&replaced, &modified, &deleted] {
        put(&mut storage, name, "old", at(1));
    }
    put(&mut storage, &key("other"), "later", at(9));
    storage.open_snapshot(at(10));
    put(&mut storage, &replaced, "new", at(5));
    modify(&mut storage, &modified, "new", at(5));
    put(&mut storage, &inserted, "new", at(5));
    delete(&mut storage, &deleted, at(5));
    for name in [&replaced, &modified, &inserted] {
        expect(&mut storage, name, at(10), Some("new"));
    }
    expect(&mut storage, &deleted, at(10), None);
    assert_eq!(storage.statistics().garbage, 0, "no snapshot sees what was before a write below it");
    put(&mut storage, &inserted, "own", at(10));
    expect(&mut storage, &inserted, at(10), Some("own"));
    assert_eq!(storage.statistics().garbage, 0, "a snapshot sees a write at its own position");
    put(&mut storage, &replaced, "newer", at(11));
    expect(&mut storage, &replaced, at(10), Some("new"));
    assert_eq!(storage.statistics().garbage, 1, "the late version is kept once it is superseded");
}

pub(super) fn a_write_twice_at_one_position_keeps_nothing<S: Storage>(mut storage: S) {
    let name = key("name");
    put(&mut storage, &name, "old", at(1));
    storage.open_snapshot(at(1));
    put(&mut storage, &name, "new", at(2));
    delete(&mut storage, &name, at(2));
    put(&mut storage, &name, "newer", at(2));
    modify(&mut storage, &name, "NEWER", at(2));
    assert_eq!(storage.statistics().garbage, 1, "only the version before the position is kept");
    expect(&mut storage, &name, at(1), Some("old"));
    expect(&mut storage, &name, Position::LATEST, Some("NEWER"));
}

pub(super) fn positions_order_by_epoch_then_origin_then_index<S: Storage>(mut storage: S) {
    let name = key("name");
    let position =
        |epoch, origin, index| Position { epoch: Epoch(epoch), origin: PartitionId(origin), index };
    let ascending = [
        position(1, 2, 65_535),
        position(1, 2, 65_536),
        position(1, 255, 3),
        position(1 << 40, 0, 0),
        position(1 << 40, 0, u32::MAX),
    ];
    for (number, position) in ascending.into_iter().enumerate() {
        put(&mut storage, &name, &number.to_string(), position);
        storage.open_snapshot(position);
    }
    for (number, position) in ascending.into_iter().enumerate() {
        expect(&mut storage, &name, position, Some(&number.to_string()));
    }
}

pub(super) fn garbage_is_what_no_snapshot_sees<S: Storage>(mut storage: S) {
    let name = key("name");
    put(&mut storage, &name, "version 00", at(0));
    let before = storage.statistics();
    for epoch in [10, 20, 30] {
        storage.open_snapshot(at(epoch));
        put(&mut storage, &name, &format!("version {epoch}"), at(epoch + 1));
        put(&mut storage, &name, &format!("version {epoch}"), at(epoch + 2));
    }
    assert_eq!(storage.statistics().garbage, 3, "one version for each snapshot");
    assert_eq!(collect_all(&mut storage), 0, "all are seen");
    for (closed, left) in [(20, 2), (10, 1), (30, 0)] {
        storage.close_snapshot(at(closed));
        assert_eq!(collect_all(&mut storage), 1, "only the snapshot at {closed} saw its version");
        assert_eq!(storage.statistics().garbage, left);
    }
    assert_eq!(storage.statistics().record_bytes, before.record_bytes, "memory returns to the earlier level");
    storage.open_snapshot(at(40));
    delete(&mut storage, &name, at(41));
    assert_eq!((storage.statistics().rows, storage.statistics().garbage), (0, 2), "a version and a deletion");
    storage.close_snapshot(at(40));
    assert_eq!(collect_all(&mut storage), 2);
    assert_eq!((storage.statistics().garbage, storage.statistics().record_bytes), (0, 0), "all is freed");
}

pub(super) fn garbage_is_collected_in_steps<S: Storage>(mut storage: S) {
    let names: Vec<_> = (0..1000).map(|number| key(&number.to_string())).collect();
    for name in &names {
        put(&mut storage, name, "old", at(1));
    }
    storage.open_snapshot(at(1));
    storage.open_snapshot(at(2));
    for name in &names {
        put(&mut storage, name, "new", at(3));
    }
    storage.close_snapshot(at(2));
    for _ in 0..200 {
        assert_eq!(storage.collect_garbage(10), 0, "an older snapshot still sees all");
    }
    storage.close_snapshot(at(1));
    let mut freed = 0;
    for _ in 0..200 {
        let step = storage.collect_garbage(10);
        assert!(step <= 20, "a step with budget 10 freed {step}");
        freed += step;
    }
    assert_eq!((freed, storage.statistics().garbage), (1000, 0), "steps collect all garbage in the end");
}
