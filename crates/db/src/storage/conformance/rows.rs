//! Rows without snapshots: create, read, replace, modify, delete, digest.

use super::*;
use crate::hash::Digest;
use crate::limits::{KEY_BYTES_MAX, ROW_BYTES_MAX};

pub(super) fn rows_are_created_read_replaced_and_deleted<S: Storage>(mut storage: S) {
    let (one, two) = (key("one"), key("two"));
    expect(&mut storage, &one, Position::LATEST, None);
    delete(&mut storage, &one, at(1));
    let record = put(&mut storage, &one, "1", at(1));
    assert_eq!(storage.row(record), b"1", "put returns where the row is");
    assert_eq!(locate(&storage, &one), Some(record), "put and locate return the same record");
    expect(&mut storage, &two, Position::LATEST, None);
    put(&mut storage, &two, "2", Position::LOADED);
    expect(&mut storage, &one, Position::LATEST, Some("1"));
    expect(&mut storage, &two, Position::LATEST, Some("2"));
    assert_eq!(storage.statistics().rows, 2);
    put(&mut storage, &one, "uno", at(2));
    expect(&mut storage, &one, Position::LATEST, Some("uno"));
    delete(&mut storage, &one, at(3));
    expect(&mut storage, &one, Position::LATEST, None);
    expect(&mut storage, &two, Position::LATEST, Some("2"));
    delete(&mut storage, &one, at(4));
    assert_eq!(storage.statistics().rows, 1);
    put(&mut storage, &one, "again", at(5));
    expect(&mut storage, &one, Position::LATEST, Some("again"));
    assert_eq!((storage.statistics().rows, storage.statistics().garbage), (2, 0));
}

pub(super) fn rows_and_keys_of_all_lengths_are_kept<S: Storage>(mut storage: S) {
    let rows: Vec<String> =
        [0, 1, 15, 16, 17, 100, 1000, 20_000, ROW_BYTES_MAX].map(|length| "r".repeat(length)).to_vec();
    let (first, second) = (key("first"), key("second"));
    let mut epoch = 0;
    put(&mut storage, &second, "untouched", at(epoch));
    for row in &rows {
        for other in &rows {
            epoch += 1;
            put(&mut storage, &first, row, at(epoch));
            expect(&mut storage, &first, Position::LATEST, Some(row));
            epoch += 1;
            put(&mut storage, &first, other, at(epoch));
            expect(&mut storage, &first, Position::LATEST, Some(other));
        }
    }
    expect(&mut storage, &second, Position::LATEST, Some("untouched"));
    put(&mut storage, &first, &"r".repeat(20_000), at(epoch));
    let long = storage.statistics().record_bytes;
    put(&mut storage, &first, "r", at(epoch + 1));
    let short = storage.statistics().record_bytes;
    assert!(short + 10_000 < long, "a short row in place of a long one gives memory back");
    for length in [0, 1, 2, 8, 9, 10, 200, KEY_BYTES_MAX - 2] {
        let long = key(&"k".repeat(length));
        put(&mut storage, &long, "row", at(1));
        expect(&mut storage, &long, Position::LATEST, Some("row"));
    }
}

pub(super) fn modify_changes_in_place_and_keeps_the_handle<S: Storage>(mut storage: S) {
    let name = key("name");
    let record = put(&mut storage, &name, "aaaa", at(1));
    storage.modify(record, at(2))[1] = b'b';
    assert_eq!(storage.row(record), b"abaa", "a change in place is read through the same handle");
    expect(&mut storage, &name, Position::LATEST, Some("abaa"));
    storage.open_snapshot(at(2));
    assert_eq!(storage.modify(record, at(3)), b"abaa", "modify gives the newest bytes to start from");
    storage.modify(record, at(3))[2] = b'c';
    assert_eq!(
        locate(&storage, &name),
        Some(record),
        "modify keeps the handle, also when it keeps a version"
    );
    expect(&mut storage, &name, Position::LATEST, Some("abca"));
    expect(&mut storage, &name, at(2), Some("abaa"));
    assert_eq!(storage.statistics().garbage, 1, "one version is kept");
}

pub(super) fn loaded_rows_are_of_their_position<S: Storage>(mut storage: S) {
    let [name, deleted] = ["name", "deleted"].map(key);
    let load =
        |storage: &mut S, key: &[u8], row: &str| storage.load(key, key_hash(key), row.as_bytes(), at(5));
    assert!(load(&mut storage, &name, "loaded"), "the key is new");
    assert!(!load(&mut storage, &name, "twice"), "the key is there");
    expect(&mut storage, &name, Position::LATEST, Some("loaded"));
    storage.open_snapshot(at(5));
    put(&mut storage, &name, "written", at(6));
    expect(&mut storage, &name, at(5), Some("loaded"));
    expect(&mut storage, &name, Position::LATEST, Some("written"));
    assert!(load(&mut storage, &deleted, "loaded"));
    delete(&mut storage, &deleted, at(6));
    assert!(!load(&mut storage, &deleted, "again"), "the snapshot sees a version of the key");
    assert_eq!((storage.statistics().rows, storage.statistics().garbage), (1, 3));
}

pub(super) fn churn_leaves_nothing_behind<S: Storage>(mut storage: S) {
    let mut sizes = Vec::new();
    for round in 0..50_u64 {
        for number in 0..200 {
            put(&mut storage, &key(&format!("{number}")), &"r".repeat(number), at(round * 2));
        }
        for number in 0..200 {
            delete(&mut storage, &key(&format!("{number}")), at(round * 2 + 1));
        }
        if round % 10 == 9 {
            assert_eq!(names(&mut storage, &table_range(1), Position::LATEST), "");
        }
        sizes.push(storage.statistics());
    }
    assert_eq!((sizes[49].rows, sizes[49].garbage), (0, 0));
    assert_eq!(
        sizes[49].record_bytes, sizes[9].record_bytes,
        "inserts and deletes by turns use no more memory"
    );
    assert!(sizes[49].index_bytes <= sizes[9].index_bytes * 2, "nor do the indexes: {sizes:?}");
}

pub(super) fn digests_are_of_content_only<S: Storage>(mut one: S, mut other: S) {
    let include = |_: &[u8]| true;
    assert_eq!(one.digest(Position::LATEST, &include), Digest::default(), "an empty storage");
    let name = |number: u64| key(&format!("{}", number * 7919 % 1000));
    for number in 0..1000 {
        put(&mut one, &name(number), &format!("row {number}"), at(1));
    }
    for number in (0..1000).rev() {
        put(&mut other, &name(number), "something else that is longer", at(number));
        delete(&mut other, &name(number), at(number));
        put(&mut other, &name(number), &format!("row {number}"), at(1000 + number));
        put(&mut other, &key_in(2, &number.to_string()), "", at(1));
        delete(&mut other, &key_in(2, &number.to_string()), at(2));
    }
    let digest = one.digest(Position::LATEST, &include);
    assert_eq!(digest, other.digest(Position::LATEST, &include), "the same rows, another history");
    let mut scanned = Digest::default();
    for (key, row) in rows(&mut one, &table_range(1), Position::LATEST) {
        scanned.add(&key, &row);
    }
    assert_eq!(digest, scanned, "the digest is that of the rows a scan visits");
    modify(&mut other, &name(3), "row X", at(5000));
    assert_ne!(digest, other.digest(Position::LATEST, &include), "one row differs");
}

pub(super) fn digests_are_at_a_position_and_of_chosen_keys<S: Storage>(mut storage: S) {
    put(&mut storage, &key("a"), "a", at(1));
    put(&mut storage, &key("b"), "b", at(1));
    let all = |_: &[u8]| true;
    let only_first = |key: &[u8]| key.starts_with(&[0, 1]);
    let before = storage.digest(Position::LATEST, &all);
    put(&mut storage, &key_in(2, "c"), "c", at(1));
    assert_eq!(storage.digest(Position::LATEST, &only_first), before, "other tables are left out");
    let with_second = storage.digest(Position::LATEST, &all);
    assert_ne!(with_second, before);
    storage.open_snapshot(at(1));
    modify(&mut storage, &key("a"), "A", at(2));
    delete(&mut storage, &key("b"), at(2));
    put(&mut storage, &key("d"), "d", at(2));
    assert_eq!(storage.digest(at(1), &all), with_second, "the digest at a snapshot stays");
    let mut expected = Digest::default();
    for (key, row) in [(key("a"), "A"), (key("d"), "d"), (key_in(2, "c"), "c")] {
        expected.add(&key, row.as_bytes());
    }
    assert_eq!(storage.digest(Position::LATEST, &all), expected, "the newest digest follows");
}
