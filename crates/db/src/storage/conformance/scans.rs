//! Ordered scans.

use std::collections::BTreeSet;

use super::model::Random;
use super::*;

pub(super) fn scans_keep_to_their_bounds<S: Storage>(mut storage: S) {
    for name in ["b", "a", "ab", "c", "abc", "b\0", "ba", ""] {
        put(&mut storage, &key(name), name, at(1));
    }
    put(&mut storage, &key_in(0, "before"), "", at(1));
    put(&mut storage, &key_in(2, "after"), "", at(1));
    let latest = Position::LATEST;
    let mut scan = |start: &[u8], end: &[u8]| names(&mut storage, &range(start, end), latest);
    assert_eq!(scan(&key(""), &[0, 2]), " a ab abc b b\0 ba c", "a whole table");
    assert_eq!(scan(&key("ab"), &key("b")), "ab abc", "the start belongs to a range, the end does not");
    assert_eq!(scan(&key("aa"), &key("bb")), "ab abc b b\0 ba", "bounds need not be keys");
    assert_eq!(scan(&key("ab"), &key("ac")), "ab abc", "a prefix");
    assert_eq!(scan(&key("b"), &key("b")), "", "an empty range");
    assert_eq!(scan(&key("c"), &key("a")), "", "a range upside down");
    assert_eq!(scan(&key("d"), &[0, 2]), "", "a range after the last key");
    assert_eq!(scan(&[0, 3], &[0, 9]), "", "tables without rows");
    assert_eq!(scan(&[], &[0xFF]), "before  a ab abc b b\0 ba c after", "all tables");
    assert_eq!(scan(&key("ba"), &key_in(2, "b")), "ba c after", "across tables");
}

pub(super) fn scans_end_when_the_visitor_breaks<S: Storage>(mut storage: S) {
    for number in 0..100 {
        put(&mut storage, &key(&format!("{number:02}")), "", at(1));
        put(&mut storage, &key_in(2, &format!("{number:02}")), "", at(1));
    }
    let all = rows(&mut storage, &range(&[0, 1], &[0, 3]), Position::LATEST);
    for (limit, direction) in [1, 2, 99, 100, 101]
        .into_iter()
        .flat_map(|limit| [(limit, Direction::Ascending), (limit, Direction::Descending)])
    {
        let mut visited = Vec::new();
        storage.scan(&range(&[0, 1], &[0, 3]), direction, Position::LATEST, &mut |key, _| {
            visited.push(key.to_vec());
            if visited.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let first = direction.of_ascending(all.iter().map(|(key, _)| key)).take(limit);
        assert!(visited.iter().eq(first), "the visitor is not called again after it breaks");
    }
}

/// Many rows, so that an ordered structure splits and joins, with scans between the changes.
pub(super) fn scans_follow_inserts_and_deletes<S: Storage>(mut storage: S) {
    let name = |number: u32| key(&format!("{:08}", number.wrapping_mul(0x9E37_79B1) % 100_000_000));
    let mut expected = BTreeSet::new();
    let mut random = Random::new(1);
    let mut live = Vec::new();
    let mut epoch = 0;
    for (inserts, deletes) in
        [(1, 0), (5000, 0), (1, 1), (40, 10), (500, 2000), (3000, 0), (1, 6000), (700, 0)]
    {
        for _ in 0..inserts {
            epoch += 1;
            let name = name(epoch);
            put(&mut storage, &name, "row", at(u64::from(epoch)));
            if expected.insert(name.clone()) {
                live.push(name);
            }
        }
        for _ in 0..deletes.min(live.len()) {
            epoch += 1;
            let name = live.swap_remove(random.below(live.len()));
            delete(&mut storage, &name, at(u64::from(epoch)));
            expected.remove(&name);
        }
        let found = rows(&mut storage, &table_range(1), Position::LATEST);
        assert!(found.iter().map(|(key, _)| key).eq(&expected), "a scan visits all rows in order");
        let (low, high) = (key("3"), key("6"));
        let found = rows(&mut storage, &range(&low, &high), Position::LATEST);
        assert!(found.iter().map(|(key, _)| key).eq(expected.range(low..high)), "so does one of a part");
    }
}

pub(super) fn scans_at_a_snapshot_see_its_rows<S: Storage>(mut storage: S) {
    for name in ["a", "b", "c"] {
        put(&mut storage, &key(name), name, at(1));
    }
    assert_eq!(names(&mut storage, &table_range(1), Position::LATEST), "a b c");
    storage.open_snapshot(at(1));
    delete(&mut storage, &key("b"), at(2));
    put(&mut storage, &key("bb"), "bb", at(2));
    put(&mut storage, &key("c"), &"c".repeat(500), at(2));
    assert_eq!(names(&mut storage, &table_range(1), at(1)), "a b c", "deleted later, inserted later");
    assert_eq!(names(&mut storage, &table_range(1), Position::LATEST), "a bb c");
    put(&mut storage, &key("b"), "back", at(3));
    assert_eq!(names(&mut storage, &table_range(1), at(1)), "a b c", "inserted again");
    assert_eq!(names(&mut storage, &table_range(1), Position::LATEST), "a b bb c");
    storage.close_snapshot(at(1));
    collect_all(&mut storage);
    assert_eq!(names(&mut storage, &table_range(1), Position::LATEST), "a b bb c");
}

/// Rows are added at the end, deleted from the front and scanned in between, as in TPC-C's table of new orders.
pub(super) fn a_queue_that_is_scanned_does_not_grow<S: Storage>(mut storage: S) {
    const LENGTH: u32 = 200;
    let name = |number: u32| key(&format!("{number:08}"));
    let mut bytes_early = 0;
    for number in 0..100 * LENGTH {
        put(&mut storage, &name(number), "row", at(u64::from(number)));
        if let Some(oldest) = number.checked_sub(LENGTH) {
            delete(&mut storage, &name(oldest), at(u64::from(number)));
        }
        if number.is_multiple_of(50) {
            let mut first = None;
            storage.scan(&table_range(1), Direction::Ascending, Position::LATEST, &mut |key, _| {
                first = Some(key.to_vec());
                ControlFlow::Break(())
            });
            assert_eq!(first, Some(name((number + 1).saturating_sub(LENGTH))), "the front of the queue");
        }
        if number == 10 * LENGTH {
            bytes_early = storage.statistics().index_bytes;
        }
    }
    let bytes = storage.statistics().index_bytes;
    assert!(bytes <= bytes_early * 2, "indexes grew from {bytes_early} to {bytes} bytes");
}
