//! Rows with their keys in one piece of memory: a page of many costs no more than its bytes.

use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// Encoded keys and rows, one after the other: the lengths of both, seven bits a byte and the least first, then their bytes.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Rows {
    count: usize,
    /// Where the last one begins.
    last: usize,
    bytes: BytesMut,
}

/// A key and a row.
pub type Pair<'r> = (&'r [u8], &'r [u8]);

/// What was received as [`Rows`].
#[derive(Deserialize)]
struct Unchecked {
    count: usize,
    last: usize,
    bytes: BytesMut,
}

impl TryFrom<Unchecked> for Rows {
    type Error = &'static str;

    fn try_from(Unchecked { count, last, bytes }: Unchecked) -> Result<Rows, &'static str> {
        let (mut at, mut found, mut begins) = (0, 0, 0);
        while at < bytes.len() {
            begins = at;
            (_, at) = row_at(&bytes, at).ok_or("a row that ends before its end")?;
            found += 1;
        }
        if (found, begins) != (count, last) {
            return Err("another number of rows than there are");
        }
        Ok(Rows { count, last, bytes })
    }
}

impl Rows {
    /// Appends a row.
    pub fn push(&mut self, key: &[u8], row: &[u8]) {
        self.last = self.bytes.len();
        self.count += 1;
        put_length(key.len(), &mut self.bytes);
        put_length(row.len(), &mut self.bytes);
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(row);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory that they take.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The key and row that begin at a place, and the place of the next; `None` at the end. The first place is 0.
    pub fn at(&self, place: usize) -> Option<(Pair<'_>, usize)> {
        row_at(&self.bytes, place)
    }

    /// The last key and row.
    pub fn last(&self) -> Option<Pair<'_>> {
        self.at(self.last).map(|(row, _)| row)
    }

    /// All keys and rows, in the order in which they were appended.
    pub fn iter(&self) -> impl Iterator<Item = Pair<'_>> {
        let mut place = 0;
        std::iter::from_fn(move || {
            let (row, next) = self.at(place)?;
            place = next;
            Some(row)
        })
    }

    /// The same, each in memory of its own.
    pub fn owned(&self) -> impl Iterator<Item = (Bytes, Bytes)> {
        self.iter().map(|(key, row)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(row)))
    }
}

impl<K: AsRef<[u8]>, R: AsRef<[u8]>> FromIterator<(K, R)> for Rows {
    fn from_iter<I: IntoIterator<Item = (K, R)>>(all: I) -> Rows {
        let mut rows = Rows::default();
        all.into_iter().for_each(|(key, row)| rows.push(key.as_ref(), row.as_ref()));
        rows
    }
}

/// The key and row that begin at a place, and where the next begins; `None` if no whole one begins there.
fn row_at(bytes: &[u8], place: usize) -> Option<(Pair<'_>, usize)> {
    let rest = bytes.get(place..)?;
    let (key, rest) = length(rest)?;
    let (row, rest) = length(rest)?;
    let (key, rest) = rest.split_at_checked(key)?;
    let (row, rest) = rest.split_at_checked(row)?;
    Some(((key, row), bytes.len() - rest.len()))
}

fn put_length(mut length: usize, bytes: &mut BytesMut) {
    while length >= 0x80 {
        bytes.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    bytes.put_u8(length as u8);
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0;
    for (place, byte) in bytes.iter().enumerate().take(usize::BITS as usize / 7) {
        length |= usize::from(byte & 0x7F) << (7 * place);
        if *byte < 0x80 {
            return Some((length, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lists() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
        let bytes = || prop_oneof![proptest::collection::vec(any::<u8>(), 0..5), Just(vec![7; 300])];
        proptest::collection::vec((bytes(), bytes()), 0..6)
    }

    proptest! {
        #[test]
        fn what_was_appended_comes_out(all in lists()) {
            let rows: Rows = all.iter().map(|(key, row)| (key, row)).collect();
            let found: Vec<(Vec<u8>, Vec<u8>)> = rows.iter().map(|(key, row)| (key.to_vec(), row.to_vec())).collect();
            prop_assert_eq!((rows.len(), rows.is_empty()), (all.len(), all.is_empty()));
            prop_assert_eq!(rows.last(), all.last().map(|(key, row)| (&key[..], &row[..])));
            prop_assert_eq!(found, all);
            let sent = postcard::to_allocvec(&rows).unwrap();
            prop_assert_eq!(postcard::from_bytes::<Rows>(&sent).unwrap(), rows);
        }

        #[test]
        fn bytes_that_are_no_rows_are_refused(all in lists(), cut in 1..400_usize) {
            let rows: Rows = all.iter().map(|(key, row)| (key, row)).collect();
            let Rows { count, last, bytes } = rows;
            let cut = bytes.len().saturating_sub(cut);
            let sent = postcard::to_allocvec(&Rows { count, last, bytes: bytes[..cut].into() }).unwrap();
            prop_assert!(bytes.is_empty() || postcard::from_bytes::<Rows>(&sent).is_err());
        }
    }
}
