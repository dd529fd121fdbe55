//! Where the rows of a query go, one by one as they come.

use std::hash::BuildHasher;

use ordain_db::hash::{Seed, key_hash};

use super::{EncodedRows, HELD_BYTES_MAX, Inputs, Kept, Output, bytes_of, encode_row, held_too_much};
use crate::error::SqlError;
use crate::plan::Plan;
use crate::procedure::encode_error;
use crate::types::{Datum, row};

/// Takes the rows of a query.
pub trait Receive {
    /// Takes the values of the next row.
    ///
    /// # Errors
    /// With what the statement ends: for instance, when there is no place for more rows.
    fn receive(&mut self, row: &[Datum]) -> Result<(), SqlError>;
}

/// Rows that are kept until all are there, encoded.
#[derive(Default)]
pub struct Collected {
    rows: EncodedRows,
    bytes: usize,
    /// What counts them among all that is kept, if anything does.
    kept: Option<Kept>,
}

impl Collected {
    /// No rows yet, which are counted as they come.
    pub fn counted(kept: Kept) -> Collected {
        Collected { kept: Some(kept), ..Collected::default() }
    }

    /// The output of a statement with these rows as [`complete`](Self::complete) gives it, and what counts them. Rows that the output has
    /// itself are refused only if the statement `can_fail` yet.
    ///
    /// # Errors
    /// When there is no room for the rows of the output.
    pub fn complete_counted(
        mut self,
        output: Output,
        can_fail: bool,
    ) -> Result<(Output, Option<Kept>), SqlError> {
        let mut kept = self.kept.take();
        if let Some(kept) = kept.as_mut().filter(|_| self.rows.is_empty() && !output.rows.is_empty()) {
            kept.add(bytes_of(&output.rows), !can_fail)?;
        }
        Ok((self.complete(output), kept))
    }

    /// The output of a statement whose rows are kept.
    ///
    /// # Errors
    /// As running it fails.
    pub fn gather<E>(run: impl FnOnce(&mut Collected) -> Result<Output, E>) -> Result<Output, E> {
        let mut rows = Collected::default();
        let output = run(&mut rows)?;
        Ok(rows.complete(output))
    }

    /// The output of a statement with these rows, if it is one that gives its rows to whoever receives them.
    pub fn complete(self, output: Output) -> Output {
        if self.rows.is_empty() { output } else { Output { rows: self.rows, ..output } }
    }
}

impl Receive for Collected {
    fn receive(&mut self, row: &[Datum]) -> Result<(), SqlError> {
        let row = encode_row(row);
        let bytes = bytes_of(std::slice::from_ref(&row));
        self.bytes += bytes;
        if self.bytes > HELD_BYTES_MAX {
            return Err(held_too_much());
        }
        if let Some(kept) = &mut self.kept {
            kept.add(bytes, false)?;
        }
        self.rows.push(row);
        Ok(())
    }
}

/// Passes rows on, and tells whether there were any.
pub(super) struct Watched<'r> {
    to: &'r mut dyn Receive,
    pub(super) has_any: bool,
}

impl<'r> Watched<'r> {
    /// None yet.
    pub(super) fn new(to: &'r mut dyn Receive) -> Watched<'r> {
        Watched { to, has_any: false }
    }
}

impl Receive for Watched<'_> {
    fn receive(&mut self, row: &[Datum]) -> Result<(), SqlError> {
        self.has_any = true;
        self.to.receive(row)
    }
}

/// Nobody asks for the rows.
pub struct Unseen;

impl Receive for Unseen {
    fn receive(&mut self, _: &[Datum]) -> Result<(), SqlError> {
        Ok(())
    }
}

/// The digest of what a client is shown of a statement: of the number of rows that it wrote, and of each row that it gave. Their hashes follow
/// from the number of the statement, which others cannot know before it has its place in the order: nobody chooses rows that are others and
/// have the same digest.
#[derive(Clone, Debug)]
pub struct OutputDigest {
    seed: Seed,
    written: u64,
    rows: u64,
    /// Of the rows in their order.
    in_order: u64,
    /// Of the same, in whatever order: the sum of their hashes.
    in_any_order: u64,
}

impl OutputDigest {
    /// Of a statement with these inputs that wrote so many rows.
    pub fn new(inputs: &Inputs, written: u64) -> OutputDigest {
        OutputDigest::seeded(inputs.hash_seed(), written)
    }

    fn seeded(seed: Seed, written: u64) -> OutputDigest {
        OutputDigest { seed, written, rows: 0, in_order: 0, in_any_order: 0 }
    }

    /// Adds an encoded row.
    pub fn add(&mut self, row: &[u8]) {
        let hash = self.seed.hash_one(row);
        self.in_order = if self.rows == 0 { hash } else { hash_of_two(self.in_order, hash) };
        self.in_any_order = self.in_any_order.wrapping_add(hash);
        self.rows += 1;
    }

    /// How many rows it is of.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The digest, of the rows in their order.
    pub fn value(&self) -> u64 {
        self.value_with(self.in_order)
    }

    /// The digest of what the client of a plan is shown. If the rows of the plan may come [in any order](Plan::part_in_any_order), theirs is
    /// nothing to it.
    pub fn value_of(&self, plan: &Plan) -> u64 {
        // One row has the same digest either way: most statements need no look at their plan.
        let is_open = self.rows > 1 && plan.part_in_any_order().is_some();
        self.value_with(if is_open { self.in_any_order } else { self.in_order })
    }

    fn value_with(&self, rows: u64) -> u64 {
        hash_of_two(hash_of_two(self.written, self.rows), rows)
    }
}

fn hash_of_two(first: u64, second: u64) -> u64 {
    let [first, second] = [first, second].map(u64::to_le_bytes);
    key_hash([first, second].as_flattened())
}

/// Passes rows on, and has the digest of them.
pub struct Digesting<'r> {
    to: &'r mut dyn Receive,
    /// Whether anybody wants the digest.
    is_wanted: bool,
    digest: OutputDigest,
    buffer: Vec<u8>,
}

impl<'r> Digesting<'r> {
    /// No rows yet of a statement with these inputs. If nobody wants the digest, rows are only passed on.
    pub fn new(to: &'r mut dyn Receive, inputs: &Inputs, is_wanted: bool) -> Digesting<'r> {
        Digesting { to, is_wanted, digest: OutputDigest::new(inputs, 0), buffer: Vec::new() }
    }

    /// The digest of the rows that came by.
    pub fn digest(&self) -> OutputDigest {
        self.digest.clone()
    }

    /// The digest of what a client is shown: of the rows that came by, unless they are in the output.
    pub fn finish(self, output: &Output) -> OutputDigest {
        if self.digest.rows() > 0 {
            return self.digest;
        }
        let mut digest = OutputDigest::seeded(self.digest.seed, output.written);
        output.rows.iter().for_each(|row| digest.add(row));
        digest
    }

    /// The digest of what a client is shown of a statement that fails after the rows that came by.
    pub fn finish_with(mut self, error: &SqlError) -> u64 {
        self.digest.add(encode_error(error).as_bytes());
        self.digest.value()
    }
}

impl Receive for Digesting<'_> {
    fn receive(&mut self, values: &[Datum]) -> Result<(), SqlError> {
        if self.is_wanted {
            self.buffer.clear();
            row::encode(values, &mut self.buffer);
            self.digest.add(&self.buffer);
        }
        self.to.receive(values)
    }
}

/// The values of encoded rows, one after the other.
///
/// # Errors
/// When they are no rows, or whoever receives them has no place for more.
pub fn pass_on(rows: &[Vec<u8>], to: &mut dyn Receive) -> Result<(), SqlError> {
    let mut values: Vec<Datum> = Vec::new();
    for bytes in rows {
        values.clear();
        row::decode(bytes, &mut values)?;
        to.receive(&values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_two_statements_have_nothing_to_do_with_each_other() {
        let difference = |rows: [&[u8]; 2]| {
            let of = |seed: u128| {
                let mut digest = OutputDigest::new(&Inputs { seed, ..Inputs::default() }, 0);
                rows.iter().for_each(|row| digest.add(row));
                digest
            };
            let [one, other] = [1, 2].map(of);
            assert_ne!(one.value(), other.value());
            one.in_any_order.wrapping_sub(other.in_any_order)
        };
        let (first, second) = (difference([b"a", b"b"]), difference([b"a", b"c"]));
        assert_ne!(first, second, "whoever knows sums of one knows nothing of the other's");
        assert_eq!(first, difference([b"b", b"a"]));
    }
}
