//! Scans of all records, with writes between their slices.

use super::model::Random;
use super::*;

/// Rows by key.
type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Puts rows of many lengths, so that they stand in records of many sizes.
fn fill<S: Storage>(storage: &mut S, count: usize) -> Rows {
    let mut rows = Rows::new();
    for number in 0..count {
        let (key, row) = (key(&number.to_string()), format!("{number} {}", "r".repeat(number * 37 % 500)));
        put(storage, &key, &row, at(1));
        rows.insert(key, row.into_bytes());
    }
    rows
}

pub(super) fn each_row_is_visited_once_whatever_the_budget<S: Storage>(mut storage: S) {
    storage.open_snapshot(at(1));
    assert!(records(&mut storage, at(1), usize::MAX, &mut |_| {}).is_empty(), "an empty storage has no rows");
    storage.close_snapshot(at(1));
    let rows = fill(&mut storage, 300);
    storage.open_snapshot(at(1));
    for budget in [0, 1, 64, 1000, 10_000, usize::MAX] {
        let mut slices = 0;
        assert_eq!(records(&mut storage, at(1), budget, &mut |_| slices += 1), rows, "budget {budget}");
        let expected = if budget <= 64 { 300..=301 } else { 1..=300 };
        assert!(expected.contains(&slices), "{slices} slices of budget {budget}");
        assert!((slices == 1) == (budget == usize::MAX), "{slices} slices of budget {budget}");
    }
    assert_eq!(storage.statistics().garbage, 0, "a scan keeps nothing by itself");
}

pub(super) fn rows_are_visited_as_of_the_snapshot<S: Storage>(mut storage: S) {
    let mut rows = fill(&mut storage, 100);
    let deleted = key("1");
    delete(&mut storage, &deleted, at(2));
    rows.remove(&deleted);
    storage.open_snapshot(at(2));
    storage.open_snapshot(at(3));
    let mut epoch = 3;
    let mut random = Random::new(1);
    let found = records(&mut storage, at(2), 64, &mut |storage| {
        epoch += 1;
        let name = key(&random.below(120).to_string());
        match epoch % 3 {
            0 => delete(storage, &name, at(epoch)),
            1 => {
                put(storage, &name, "another row", at(epoch));
            }
            _ if locate(storage, &name).is_some() => {
                let row = storage.get(&name, key_hash(&name), Position::LATEST).unwrap_or_default().to_vec();
                modify(storage, &name, &"m".repeat(row.len()), at(epoch));
            }
            _ => {}
        }
        storage.collect_garbage(2);
    });
    assert_eq!(found, rows);
    storage.close_snapshot(at(3));
    assert_eq!(records(&mut storage, at(2), usize::MAX, &mut |_| {}), rows, "after all the writes");
    storage.close_snapshot(at(2));
    collect_all(&mut storage);
    assert_eq!(storage.statistics().garbage, 0, "nothing is kept any more");
}

pub(super) fn rows_that_outgrow_their_records_are_visited_once<S: Storage>(mut storage: S) {
    let rows = fill(&mut storage, 100);
    let names: Vec<_> = rows.keys().cloned().collect();
    for others in 0..2 {
        // In the second round the rows move to memory that is free and lies before the place of the scan.
        if others == 1 {
            for name in &names {
                put(&mut storage, name, &String::from_utf8_lossy(&rows[name]), at(5));
            }
        }
        storage.open_snapshot(at(5 + others));
        let mut slices = 0;
        let found = records(&mut storage, at(5 + others), 64, &mut |storage| {
            slices += 1;
            if slices == 50 {
                for name in &names {
                    put(storage, name, &"g".repeat(2000), at(7));
                }
            }
        });
        assert_eq!(found, rows, "round {others}");
        storage.close_snapshot(at(5 + others));
        for name in &names {
            delete(&mut storage, name, at(8));
        }
        collect_all(&mut storage);
        assert_eq!((storage.statistics().record_bytes, storage.statistics().garbage), (0, 0));
        fill_again(&mut storage, &rows);
    }
}

fn fill_again<S: Storage>(storage: &mut S, rows: &Rows) {
    for (key, row) in rows {
        put(storage, key, &String::from_utf8_lossy(row), at(1));
    }
}

pub(super) fn rows_that_move_back_and_forth_are_visited_once<S: Storage>(mut storage: S) {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let rows = fill(&mut storage, 60);
        // Room of all sizes, before and after the rows.
        fill_room(&mut storage, seed);
        storage.open_snapshot(at(1));
        let found = records(&mut storage, at(1), 300, &mut |storage| {
            for _ in 0..20 {
                let name = key(&random.below(70).to_string());
                let length = [1, 100, 300, 1000, 3000][random.below(5)];
                match random.below(6) {
                    0 => delete(storage, &name, at(2)),
                    _ => {
                        put(storage, &name, &"m".repeat(length), at(2));
                    }
                }
            }
        });
        assert_eq!(found, rows, "seed {seed}");
        storage.close_snapshot(at(1));
        for number in 0..70 {
            delete(&mut storage, &key(&number.to_string()), at(2));
        }
        collect_all(&mut storage);
    }
}

/// Leaves free memory behind.
fn fill_room<S: Storage>(storage: &mut S, seed: u64) {
    let names: Vec<_> = (0..40).map(|number| key_in(2, &format!("{seed} {number}"))).collect();
    for (number, name) in names.iter().enumerate() {
        put(storage, name, &"f".repeat([100, 300, 1000, 3000][number % 4]), at(1));
    }
    names.iter().for_each(|name| delete(storage, name, at(1)));
}

pub(super) fn a_scan_begins_anew_and_ends_with_its_snapshot<S: Storage>(mut storage: S) {
    let rows = fill(&mut storage, 100);
    storage.open_snapshot(at(1));
    storage.open_snapshot(at(1));
    let mut some = 0;
    let cursor = storage.scan_records(at(1), RecordCursor::START, 1000, &mut |_, _| some += 1);
    assert!(cursor.is_some() && (1..100).contains(&some), "{some} rows are a part of all");
    for name in rows.keys().take(50) {
        put(&mut storage, name, &"n".repeat(3000), at(2));
    }
    assert_eq!(records(&mut storage, at(1), 1000, &mut |_| {}), rows, "a scan that begins anew visits all");
    storage.open_snapshot(at(2));
    storage.scan_records(at(2), RecordCursor::START, 1000, &mut |_, _| {});
    storage.close_snapshot(at(2));
    put(&mut storage, &key("late"), "no scan at epoch 2 is under way any more", at(2));
    assert_eq!(
        records(&mut storage, at(1), 1000, &mut |_| {}),
        rows,
        "the scan of one snapshot after that of another"
    );
    storage.close_snapshot(at(1));
    assert_eq!(records(&mut storage, at(1), 1000, &mut |_| {}), rows, "the snapshot has another holder");
    storage.close_snapshot(at(1));
    put(&mut storage, &key("late"), "and so it is at epoch 1", at(2));
}

pub(super) fn a_scan_does_not_follow_what_is_inserted_after_it_began<S: Storage>(mut storage: S) {
    let rows = fill(&mut storage, 100);
    storage.open_snapshot(at(1));
    let mut inserted = 0;
    let found = records(&mut storage, at(1), 1000, &mut |storage| {
        assert!(inserted < 100_000, "the scan goes on as long as rows are inserted");
        for _ in 0..100 {
            inserted += 1;
            put(storage, &key_in(2, &inserted.to_string()), &"i".repeat(200), at(2));
        }
    });
    assert_eq!(found, rows);
}
