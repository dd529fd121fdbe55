//! The rows of a range that lie on several partitions, in one order: for whoever shows snapshots to sessions.

use std::ops::ControlFlow;

use ordain_db::data::{Direction, KeyRange, Rows};
use ordain_db::error::Error;
use ordain_db::message::Page;
use ordain_db::position::PartitionId;

/// Most rows of a page if one partition is asked.
const PAGE_ROWS_MAX: usize = 4096;

/// Fewest rows of a page, unless fewer are wanted: a page has its price.
const PAGE_ROWS_MIN: usize = 64;

/// What is shown keys and rows.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Gives pages of ranges: at most so many rows of each.
pub trait Pages {
    /// The rows of each range that come first in a direction.
    ///
    /// # Errors
    /// As the database says.
    fn pages(
        &self,
        ranges: &[(PartitionId, KeyRange)],
        direction: Direction,
        rows: u32,
    ) -> Result<Vec<Page>, Error>;
}

/// What has come of a partition and was not visited.
struct Cursor {
    partition: PartitionId,
    rows: Rows,
    /// Where the first of them that was not visited begins.
    place: usize,
    /// What has not come; `None` if that is nothing.
    rest: Option<KeyRange>,
}

impl Cursor {
    fn take(&mut self, page: Page, direction: Direction) {
        self.rest = match (page.rows.last(), self.rest.take()) {
            (Some((last, _)), Some(rest)) if page.more => Some(rest.unseen(direction, last)),
            _ => None,
        };
        self.rows = page.rows;
        self.place = 0;
    }

    /// The first row that was not visited.
    fn first(&self) -> Option<(&[u8], &[u8])> {
        self.rows.at(self.place).map(|(row, _)| row)
    }

    /// Goes on to the next row.
    fn go_on(&mut self) {
        if let Some((_, next)) = self.rows.at(self.place) {
            self.place = next;
        }
    }

    fn is_empty(&self) -> bool {
        self.place == self.rows.bytes()
    }

    /// Whether nothing can be said of the next row before a page has come.
    fn is_behind(&self) -> bool {
        self.is_empty() && self.rest.is_some()
    }
}

/// Visits the rows of a range that come first in a direction, at most `limit`, over these partitions. Of each at most one page is
/// held.
///
/// # Errors
/// When a page cannot be had.
pub fn scan(
    pages: &dyn Pages,
    owners: impl Iterator<Item = PartitionId>,
    (range, direction): (&KeyRange, Direction),
    limit: usize,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    let cursor = |partition| Cursor { partition, rows: Rows::default(), place: 0, rest: Some(range.clone()) };
    let mut cursors: Vec<Cursor> = owners.map(cursor).collect();
    let rows_max = (PAGE_ROWS_MAX / cursors.len().max(1)).max(PAGE_ROWS_MIN);
    let mut left = limit;
    while left > 0 {
        fetch(pages, &mut cursors, direction, rows_max.min(left) as u32)?;
        cursors.retain(|cursor| !cursor.is_empty());
        // Until a cursor has no rows, that which comes first of the first ones comes first of all.
        if let [only] = &mut cursors[..] {
            while left > 0
                && let Some(((key, row), next)) = only.rows.at(only.place)
            {
                left -= 1;
                only.place = next;
                if visit(key, row).is_break() {
                    return Ok(());
                }
            }
            if only.rest.is_none() {
                return Ok(());
            }
            continue;
        }
        while left > 0 && !cursors.iter().any(Cursor::is_behind) {
            let with_rows = cursors.iter_mut().filter(|cursor| !cursor.is_empty());
            let next = with_rows.min_by(|left, right| direction.compare(&left.first(), &right.first()));
            let Some(next) = next else { return Ok(()) };
            let Some((key, row)) = next.first() else { return Ok(()) };
            left -= 1;
            if visit(key, row).is_break() {
                return Ok(());
            }
            next.go_on();
        }
    }
    Ok(())
}

/// Gets the next page of each partition of which one is needed.
fn fetch(pages: &dyn Pages, cursors: &mut [Cursor], direction: Direction, rows: u32) -> Result<(), Error> {
    let wanted = |cursor: &Cursor| {
        let rest = cursor.rest.clone().filter(|_| cursor.is_empty())?;
        Some((cursor.partition, rest))
    };
    let ranges: Vec<(PartitionId, KeyRange)> = cursors.iter().filter_map(wanted).collect();
    if ranges.is_empty() {
        return Ok(());
    }
    let behind = cursors.iter_mut().filter(|cursor| cursor.is_behind());
    for (cursor, page) in behind.zip(pages.pages(&ranges, direction, rows)?) {
        cursor.take(page, direction);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ordain_db::data::Key;

    use super::*;

    /// For each partition its keys, ascending; and for how many rows it was asked.
    struct Kept(Vec<Vec<u8>>, Cell<usize>);

    impl Pages for Kept {
        fn pages(
            &self,
            ranges: &[(PartitionId, KeyRange)],
            direction: Direction,
            rows: u32,
        ) -> Result<Vec<Page>, Error> {
            self.1.set(self.1.get() + ranges.len() * rows as usize);
            let page = |(partition, range): &(PartitionId, KeyRange)| {
                let keys = self.0[partition.index()].iter().map(|last| vec![0, 0, *last]);
                let keys = direction.of_ascending(keys.filter(|key| range.contains(key)));
                let found: Vec<_> = keys.map(|key| (key, [])).collect();
                // A page may be shorter than it was asked to be.
                let length = found.len().min(rows as usize).min(3);
                Page {
                    more: found.len() > length,
                    rows: found[..length].iter().map(|(key, row)| (key, row)).collect(),
                }
            };
            Ok(ranges.iter().map(page).collect())
        }
    }

    fn directed(partitions: &[&[u8]], direction: Direction, limit: usize, stop: u8) -> (Vec<u8>, usize) {
        let kept = Kept(partitions.iter().map(|keys| keys.to_vec()).collect(), Cell::new(0));
        let range = KeyRange { start: Key::from_bytes(&[0, 0]), end: Key::from_bytes(&[0, 1]) };
        let owners = (0..partitions.len() as u16).map(PartitionId);
        let mut seen = Vec::new();
        scan(&kept, owners, (&range, direction), limit, &mut |key, _| {
            seen.push(key[2]);
            if key[2] == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        (seen, kept.1.get())
    }

    fn scanned(partitions: &[&[u8]], limit: usize, stop: u8) -> Vec<u8> {
        directed(partitions, Direction::Ascending, limit, stop).0
    }

    #[test]
    fn rows_come_down_from_the_end() {
        let (low, high): (Vec<u8>, Vec<u8>) = ((0..20).collect(), (20..30).collect());
        let odd: Vec<u8> = (0..30).filter(|key| key % 2 == 1).collect();
        let even: Vec<u8> = (0..30).filter(|key| key % 2 == 0).collect();
        let descending: Vec<u8> = (0..30).rev().collect();
        for partitions in [[&low[..], &high[..]], [&odd[..], &even[..]]] {
            for limit in 0..35 {
                let (seen, _) = directed(&partitions, Direction::Descending, limit, 255);
                assert_eq!(seen, descending[..limit.min(30)]);
            }
            assert_eq!(directed(&partitions, Direction::Descending, 100, 7).0, descending[..23]);
            let (last, asked) = directed(&partitions, Direction::Descending, 1, 255);
            assert_eq!((last, asked), (vec![29], 2), "of each partition one row is asked for");
        }
    }

    #[test]
    fn rows_come_in_one_order() {
        let ascending: Vec<u8> = (0..30).collect();
        let thirds: Vec<Vec<u8>> =
            (0..3).map(|third| (0..30).filter(|key| key % 3 == third).collect()).collect();
        let thirds: Vec<&[u8]> = thirds.iter().map(Vec::as_slice).collect();
        assert_eq!(scanned(&thirds, 100, 255), ascending);
        assert_eq!(scanned(&[&ascending[20..], &ascending[..10], &ascending[10..20]], 100, 255), ascending);
        assert_eq!(scanned(&[&ascending, &[]], 100, 255), ascending);
        assert_eq!(scanned(&[&[], &[]], 100, 255), [0; 0]);
    }

    #[test]
    fn it_ends_at_the_limit_or_when_it_is_told() {
        let keys: Vec<u8> = (0..20).collect();
        for limit in 0..25 {
            let expected = &keys[..limit.min(20)];
            assert_eq!(scanned(&[&keys[..7], &keys[7..]], limit, 255), expected);
            assert_eq!(scanned(&[&keys], limit, 255), expected);
        }
        assert_eq!(scanned(&[&keys[..7], &keys[7..]], 100, 8), &keys[..9]);
    }
}
