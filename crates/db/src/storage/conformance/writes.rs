//! Digests of what was written.

use super::*;
use crate::hash::Digest;
use crate::storage::write_digests::{Change, write_digest};

/// The digests of all epochs so far.
fn taken<S: Storage>(storage: &mut S, through: u64) -> Vec<(Epoch, Digest)> {
    let mut out = Vec::new();
    storage.take_epoch_digests(Epoch(through), &mut out);
    out
}

pub(super) fn digests_do_not_depend_on_the_order_of_keys<S: Storage>(mut one: S, mut other: S) {
    let names: Vec<_> = (0..50).map(|number| key(&number.to_string())).collect();
    let writes = |storage: &mut S, name: &[u8]| {
        for epoch in 1..5 {
            put(storage, name, "row one", at(epoch));
            modify(storage, name, "row two", at(epoch));
            delete(storage, name, at(epoch));
            put(storage, name, "row three, longer", at(epoch));
        }
    };
    names.iter().for_each(|name| writes(&mut one, name));
    other.open_snapshot(at(2));
    names.iter().rev().for_each(|name| writes(&mut other, name));
    let digests = taken(&mut one, 4);
    assert_eq!(digests, taken(&mut other, 4), "another order of keys, and a snapshot that keeps versions");
    assert_eq!(digests.iter().map(|(epoch, _)| epoch.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
}

pub(super) fn each_write_counts<S: Storage>(make: &mut dyn FnMut() -> S) {
    let name = key("name");
    let hash = key_hash(&name);
    let mut digest_of = |write: &dyn Fn(&mut S)| {
        let mut storage = make();
        storage.load(&name, hash, b"row 0", Position::LOADED);
        write(&mut storage);
        taken(&mut storage, 1)
    };
    let expected = |changes: &[Change<'_>]| {
        let mut sum = Digest::default();
        changes.iter().for_each(|change| sum.merge(write_digest(at(1), hash, *change)));
        vec![(Epoch(1), sum)]
    };
    let located = |storage: &S| locate(storage, &name).unwrap_or_else(|| panic!("the row was loaded"));
    assert_eq!(digest_of(&|_| {}), [], "no write");
    let digest = digest_of(&|storage| {
        put(storage, &name, "row 1", at(1));
    });
    assert_eq!(digest, expected(&[Change::Row(b"row 1")]), "put");
    let digest = digest_of(&|storage| {
        put(storage, &name, "row 0", at(1));
    });
    assert_eq!(digest, expected(&[Change::Row(b"row 0")]), "put of the row that is there");
    let digest = digest_of(&|storage| modify(storage, &name, "row 1", at(1)));
    assert_eq!(digest, expected(&[Change::Row(b"row 1")]), "modify");
    let digest = digest_of(&|storage| {
        modify(storage, &name, "row 1", at(1));
        modify(storage, &name, "row 2", at(1));
        put(storage, &name, "row 3", at(1));
        modify(storage, &name, "row 4", at(1));
        delete(storage, &name, at(1));
        delete(storage, &name, at(1));
    });
    let rows = [b"row 1", b"row 2", b"row 3", b"row 4"].map(|row| Change::Row(row));
    assert_eq!(digest, expected(&[&rows[..], &[Change::Deletion]].concat()), "one after the other");
    let digest = digest_of(&|storage| {
        let record = located(storage);
        storage.modify_by(record, hash, b"4:1", at(1))[4] = b'1';
        assert_eq!(storage.row(record), b"row 1", "modify_by changes the row as modify does");
    });
    assert_eq!(digest, expected(&[Change::InPlace(b"4:1")]), "modify_by");
}

pub(super) fn digests_are_handed_out_by_epoch<S: Storage>(mut storage: S) {
    let [first, second] = ["first", "second"].map(key);
    put(&mut storage, &first, "row", at(3));
    put(&mut storage, &second, "row", at(1));
    put(&mut storage, &second, "row", at(7));
    let epochs =
        |digests: Vec<(Epoch, Digest)>| digests.into_iter().map(|(epoch, _)| epoch.0).collect::<Vec<_>>();
    assert_eq!(epochs(taken(&mut storage, 2)), [1], "later epochs may not be finished");
    assert_eq!(epochs(taken(&mut storage, 2)), [0; 0], "what was handed out is forgotten");
    modify(&mut storage, &first, "ROW", at(3));
    let digests = taken(&mut storage, 6);
    let mut expected = write_digest(at(3), key_hash(&first), Change::Row(b"row"));
    expected.merge(write_digest(at(3), key_hash(&first), Change::Row(b"ROW")));
    assert_eq!(digests, [(Epoch(3), expected)], "the last change in place is among the writes");
    assert_eq!(epochs(taken(&mut storage, u64::MAX)), [7]);
}

pub(super) fn what_is_loaded_is_not_written<S: Storage>(mut storage: S) {
    let [population, checkpoint] = ["population", "checkpoint"].map(key);
    put(&mut storage, &population, "row", Position::LOADED);
    storage.load(&checkpoint, key_hash(&checkpoint), b"row", at(9));
    assert_eq!(taken(&mut storage, 8), [], "rows of a population and of a checkpoint");
}
