//! Which of many ranges of keys lie around something.

use std::iter;

use crate::data::{Key, KeyRange};

/// An index of ranges, which whoever asks it still has.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeIndex {
    /// Their places, in the order of their starts.
    order: Vec<u32>,
    /// Of each in that order, the last one before it that ends after it.
    longer: Vec<Option<u32>>,
}

impl RangeIndex {
    /// An index of so many ranges.
    pub(crate) fn new<'r>(count: usize, range: impl Fn(usize) -> &'r KeyRange) -> RangeIndex {
        let mut order: Vec<u32> = (0..count as u32).collect();
        order.sort_by(|one, other| range(*one as usize).cmp(range(*other as usize)));
        let mut longer: Vec<Option<u32>> = Vec::with_capacity(count);
        for (place, number) in (0..).zip(&order) {
            let end = &range(*number as usize).end;
            let mut before = u32::checked_sub(place, 1);
            while let Some(known) = before.filter(|known| range(order[*known as usize] as usize).end <= *end)
            {
                before = longer[known as usize];
            }
            longer.push(before);
        }
        RangeIndex { order, longer }
    }

    /// The places of the ranges that begin where `begins` says, as all before them do, and reach what `reaches` says, as all would that end later.
    pub(crate) fn around<'r>(
        &self,
        range: impl Fn(usize) -> &'r KeyRange,
        begins: impl Fn(&Key) -> bool,
        reaches: impl Fn(&Key) -> bool,
    ) -> impl Iterator<Item = usize> {
        let begun = self.order.partition_point(|number| begins(&range(*number as usize).start));
        let mut place = begun.checked_sub(1);
        iter::from_fn(move || {
            while let Some(known) = place {
                let number = self.order[known] as usize;
                let is_around = reaches(&range(number).end);
                // None between the two ends later than this one.
                place = if is_around {
                    known.checked_sub(1)
                } else {
                    self.longer[known].map(|longer| longer as usize)
                };
                if is_around {
                    return Some(number);
                }
            }
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> Key {
        Key::from_bytes(&[number])
    }

    proptest! {
        #[test]
        fn it_finds_what_looking_at_each_finds(
            ranges in proptest::collection::vec((0..40_u8, 0..15_u8), 0..60),
            start in 0..40_u8,
            length in 0..15_u8,
        ) {
            let range = |start: u8, length: u8| KeyRange { start: key(start), end: key(start + length) };
            let ranges: Vec<KeyRange> = ranges.iter().map(|(start, length)| range(*start, *length)).collect();
            let wanted = range(start, length);
            let index = RangeIndex::new(ranges.len(), |place| &ranges[place]);
            let found = |begins: &dyn Fn(&Key) -> bool, reaches: &dyn Fn(&Key) -> bool| {
                let mut found: Vec<usize> = index.around(|place| &ranges[place], begins, reaches).collect();
                found.sort_unstable();
                let is_around = |place: &usize| begins(&ranges[*place].start) && reaches(&ranges[*place].end);
                (found, (0..ranges.len()).filter(is_around).collect::<Vec<usize>>())
            };
            for (found, expected) in [
                found(&|start| *start <= wanted.start, &|end| *end >= wanted.end),
                found(&|start| *start <= wanted.start, &|end| *end > wanted.start),
                found(&|start| *start < wanted.end, &|end| *end >= wanted.end),
            ] {
                prop_assert_eq!(found, expected);
            }
        }
    }
}
