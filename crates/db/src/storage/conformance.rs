//! The conformance suite: what every storage must do, whatever it is made of.
//!
//! A test of a storage calls [`check_all`] with a function that makes an empty one. A violation panics and says what was
//! expected. Each property is one function; [`model`] compares with a naive model under random operations. The storage must
//! keep digests of writes.

mod model;
mod records;
mod rows;
mod scans;
mod snapshots;
mod writes;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::{RecordCursor, RecordId, Storage};
use crate::data::{Direction, Key, KeyRange};
use crate::hash::key_hash;
use crate::position::{Epoch, PartitionId, Position};

/// Checks all properties, each on storages of its own.
pub fn check_all<S: Storage>(make: &mut dyn FnMut() -> S) {
    rows::rows_are_created_read_replaced_and_deleted(make());
    rows::rows_and_keys_of_all_lengths_are_kept(make());
    rows::modify_changes_in_place_and_keeps_the_handle(make());
    snapshots::a_snapshot_sees_no_later_write(make());
    snapshots::a_snapshot_sees_a_deletion_before_a_later_insert(make());
    snapshots::several_snapshots_see_their_own_versions(make());
    snapshots::snapshots_at_one_position_are_counted(make());
    snapshots::a_late_write_below_a_snapshot_is_seen_by_it(make());
    snapshots::a_write_twice_at_one_position_keeps_nothing(make());
    snapshots::positions_order_by_epoch_then_origin_then_index(make());
    scans::scans_keep_to_their_bounds(make());
    scans::scans_end_when_the_visitor_breaks(make());
    scans::scans_follow_inserts_and_deletes(make());
    scans::scans_at_a_snapshot_see_its_rows(make());
    scans::a_queue_that_is_scanned_does_not_grow(make());
    rows::churn_leaves_nothing_behind(make());
    snapshots::garbage_is_what_no_snapshot_sees(make());
    snapshots::garbage_is_collected_in_steps(make());
    rows::digests_are_of_content_only(make(), make());
    rows::digests_are_at_a_position_and_of_chosen_keys(make());
    rows::loaded_rows_are_of_their_position(make());
    records::each_row_is_visited_once_whatever_the_budget(make());
    records::rows_are_visited_as_of_the_snapshot(make());
    records::rows_that_outgrow_their_records_are_visited_once(make());
    records::rows_that_move_back_and_forth_are_visited_once(make());
    records::a_scan_begins_anew_and_ends_with_its_snapshot(make());
    records::a_scan_does_not_follow_what_is_inserted_after_it_began(make());
    writes::digests_do_not_depend_on_the_order_of_keys(make(), make());
    writes::each_write_counts(make);
    writes::digests_are_handed_out_by_epoch(make());
    writes::what_is_loaded_is_not_written(make());
    for seed in 0..32 {
        model::agrees_with_the_naive_model(&mut make(), seed);
    }
}

/// The position of index 0 at partition 0 in an epoch.
fn at(epoch: u64) -> Position {
    Position { epoch: Epoch(epoch), origin: PartitionId(0), index: 0 }
}

/// A key of table 1.
fn key(name: &str) -> Vec<u8> {
    key_in(1, name)
}

fn key_in(table: u16, name: &str) -> Vec<u8> {
    let mut key = table.to_be_bytes().to_vec();
    key.extend_from_slice(name.as_bytes());
    key
}

fn range(start: &[u8], end: &[u8]) -> KeyRange {
    KeyRange { start: Key::from_bytes(start), end: Key::from_bytes(end) }
}

/// All keys of a table.
fn table_range(table: u16) -> KeyRange {
    range(&table.to_be_bytes(), &(table + 1).to_be_bytes())
}

fn put<S: Storage>(storage: &mut S, key: &[u8], row: &str, position: Position) -> RecordId {
    storage.put(key, key_hash(key), row.as_bytes(), position)
}

fn delete<S: Storage>(storage: &mut S, key: &[u8], position: Position) {
    storage.delete(key, key_hash(key), position);
}

fn locate<S: Storage>(storage: &S, key: &[u8]) -> Option<RecordId> {
    storage.locate(key, key_hash(key))
}

fn modify<S: Storage>(storage: &mut S, key: &[u8], row: &str, position: Position) {
    let Some(record) = locate(storage, key) else { panic!("the key {key:?} to be modified is not located") };
    storage.modify(record, position).copy_from_slice(row.as_bytes());
}

/// Asserts what is read at a position, through all the ways to read it.
#[track_caller]
fn expect<S: Storage>(storage: &mut S, key: &[u8], position: Position, row: Option<&str>) {
    let expected = row.map(str::as_bytes);
    assert_eq!(storage.get(key, key_hash(key), position), expected, "get of {key:?} at {position}");
    if position == Position::LATEST {
        let located = locate(storage, key).map(|record| storage.row(record));
        assert_eq!(located, expected, "locate and row of {key:?}");
    }
    let mut only = key.to_vec();
    only.push(0);
    let rows: Vec<_> = rows(storage, &range(key, &only), position).into_iter().map(|(_, row)| row).collect();
    let expected: Vec<_> = expected.into_iter().map(<[u8]>::to_vec).collect();
    assert_eq!(rows, expected, "scan of only {key:?} at {position}");
}

/// Key and row of everything that a scan visits: the same in both directions.
fn rows<S: Storage>(storage: &mut S, range: &KeyRange, position: Position) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut in_direction = |direction| {
        let mut rows = Vec::new();
        storage.scan(range, direction, position, &mut |key, row| {
            rows.push((key.to_vec(), row.to_vec()));
            ControlFlow::Continue(())
        });
        rows
    };
    let (rows, descending) = (in_direction(Direction::Ascending), in_direction(Direction::Descending));
    assert!(rows.iter().eq(descending.iter().rev()), "down from the end of {range:?} at {position}");
    rows
}

/// The names of the keys that a scan of a range of table 1 visits.
fn names<S: Storage>(storage: &mut S, range: &KeyRange, position: Position) -> String {
    let names = rows(storage, range, position).into_iter().map(|(key, _)| key[2..].to_vec());
    String::from_utf8_lossy(&names.collect::<Vec<_>>().join(&b' ')).into_owned()
}

/// All that a scan of all records at a snapshot visits in one slice after the other, by key. `between` is done between them.
fn records<S: Storage>(
    storage: &mut S,
    at: Position,
    budget_bytes: usize,
    between: &mut dyn FnMut(&mut S),
) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows = BTreeMap::new();
    let mut cursor = Some(RecordCursor::START);
    while let Some(from) = cursor {
        cursor = storage.scan_records(at, from, budget_bytes, &mut |key, row| {
            let before = rows.insert(key.to_vec(), row.to_vec());
            assert_eq!(before, None, "the row of {key:?} is visited twice");
        });
        between(storage);
    }
    rows
}

/// Collects all garbage that can be.
fn collect_all<S: Storage>(storage: &mut S) -> usize {
    storage.collect_garbage(usize::MAX)
}
