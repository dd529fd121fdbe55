//! The versions of keys that the storage does not have yet (Fan and Golab, §III-D, Figure 4).
//!
//! A key that nobody is about to write has no entry here: its newest version is in the storage. A version is entered, *pending*, when
//! the transaction that writes it is delivered, and becomes *final* once, when its functor has been computed. From the front of its
//! key's list, final versions go to the storage: so all that is there is final, and the paper's value watermark of a key is the version
//! before the first one here (ALO-58).

use std::collections::VecDeque;

use bytes::Bytes;

use super::Waiter;
use super::keys::Keys;
use crate::data::KeyRange;
use crate::data::row::FixedValue;
use crate::execution::effects::Effect;
use crate::hash::FastMap;
use crate::position::Position;

/// Lists that are kept to be filled again.
const SPARE_MAX: usize = 1024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// By the hash of the key.
    chains: FastMap<u64, Chain>,
    /// Those of keys whose hash another key has, which is next to never.
    others: Vec<Chain>,
    keys: Keys,
    spare: Vec<Chain>,
}

/// The versions of a key, in ascending order; at least one.
#[derive(Debug, Default)]
struct Chain {
    key: Vec<u8>,
    hash: u64,
    versions: VecDeque<Version>,
}

/// A version that the storage does not have.
#[derive(Debug)]
struct Version {
    position: Position,
    state: State,
}

/// What is known of a version.
#[derive(Debug)]
enum State {
    /// Nothing but that it may come. These wait to know more.
    Pending(Vec<Waiter>),
    /// It is what it will ever be.
    Final(Final),
}

/// What a transaction did to a key.
#[derive(Debug, Default)]
pub(super) struct Final {
    /// In order; none if it left the key alone or aborted.
    pub(super) effects: Vec<OwnedEffect>,
    /// The row after them, if there are any.
    pub(super) row: Option<Bytes>,
}

/// An effect that outlives its run.
#[derive(Debug)]
pub(super) enum OwnedEffect {
    Put(Bytes),
    Replace(Box<[FixedValue]>),
    Delete,
}

impl OwnedEffect {
    pub(super) fn of(effect: Effect<'_>) -> OwnedEffect {
        match effect {
            Effect::Put(row) => OwnedEffect::Put(Bytes::copy_from_slice(row)),
            Effect::Replace(values) => OwnedEffect::Replace(values.into()),
            Effect::Delete => OwnedEffect::Delete,
        }
    }

    pub(super) fn effect(&self) -> Effect<'_> {
        match self {
            OwnedEffect::Put(row) => Effect::Put(row),
            OwnedEffect::Replace(values) => Effect::Replace(values),
            OwnedEffect::Delete => Effect::Delete,
        }
    }
}

/// Where the newest version of a key before some position is.
pub(super) enum Found<'a> {
    /// In the storage.
    Stored,
    /// Here, final: the row, and the position of the version.
    Row(Option<&'a [u8]>, Position),
    /// Nowhere yet.
    Pending(&'a mut Vec<Waiter>),
}

impl Chain {
    /// The place of a version, or where it would stand.
    fn place(&self, position: Position) -> Result<usize, usize> {
        let place = self.versions.partition_point(|other| other.position < position);
        match self.versions.get(place) {
            Some(version) if version.position == position => Ok(place),
            _ => Err(place),
        }
    }
}

#[inline]
fn find<'a>(
    chains: &'a FastMap<u64, Chain>,
    others: &'a [Chain],
    key: &[u8],
    hash: u64,
) -> Option<&'a Chain> {
    let chain = chains.get(&hash)?;
    if chain.key == key {
        return Some(chain);
    }
    others.iter().find(|chain| chain.key == key)
}

#[inline]
fn find_mut<'a>(
    chains: &'a mut FastMap<u64, Chain>,
    others: &'a mut [Chain],
    key: &[u8],
    hash: u64,
) -> Option<&'a mut Chain> {
    let chain = chains.get_mut(&hash)?;
    if chain.key == key {
        return Some(chain);
    }
    others.iter_mut().find(|chain| chain.key == key)
}

impl Versions {
    /// Whether the storage has everything.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// Whether the storage has all versions of a key.
    #[inline]
    pub(super) fn stored(&self, key: &[u8], hash: u64) -> bool {
        self.find(key, hash).is_none()
    }

    #[inline]
    fn find(&self, key: &[u8], hash: u64) -> Option<&Chain> {
        find(&self.chains, &self.others, key, hash)
    }

    #[inline]
    fn find_mut(&mut self, key: &[u8], hash: u64) -> Option<&mut Chain> {
        find_mut(&mut self.chains, &mut self.others, key, hash)
    }

    /// The versions of a key, to be added to.
    fn chain(&mut self, key: &[u8], hash: u64) -> &mut Chain {
        let mut fill = |spare: &mut Vec<Chain>| {
            self.keys.enter(key, hash);
            let mut chain = spare.pop().unwrap_or_default();
            chain.key.clear();
            chain.key.extend_from_slice(key);
            Chain { hash, ..chain }
        };
        let chain = self.chains.entry(hash).or_insert_with(|| fill(&mut self.spare));
        if chain.key == key {
            return chain;
        }
        let known = self.others.iter().position(|chain| chain.key == key);
        let place = known.unwrap_or_else(|| {
            self.others.push(fill(&mut self.spare));
            self.others.len() - 1
        });
        &mut self.others[place]
    }

    /// Enters a version that is pending. No later one has been entered.
    pub(super) fn install(&mut self, key: &[u8], hash: u64, position: Position) {
        let versions = &mut self.chain(key, hash).versions;
        let last = versions.back();
        debug_assert!(last.is_none_or(|last| last.position < position), "versions are installed in order");
        versions.push_back(Version { position, state: State::Pending(Vec::new()) });
    }

    /// Enters a version that is final, at its place in the order.
    pub(super) fn insert(&mut self, key: &[u8], hash: u64, position: Position, version: Final) {
        let chain = self.chain(key, hash);
        match chain.place(position) {
            Ok(_) => unreachable!("a version is entered once (ALO-10)"),
            Err(place) => {
                chain.versions.insert(place, Version { position, state: State::Final(version) });
            }
        }
    }

    /// The newest version of a key before a position that has a row or is a deletion.
    pub(super) fn newest(&mut self, key: &[u8], hash: u64, before: Position) -> Found<'_> {
        let Some(chain) = self.find_mut(key, hash) else { return Found::Stored };
        let earlier = chain.versions.partition_point(|version| version.position < before);
        // Who changed nothing is passed over (ALO-66), version by version (trap T-02).
        let newest = chain.versions.range_mut(..earlier).rev().find(|version| match &version.state {
            State::Pending(_) => true,
            State::Final(last) => !last.effects.is_empty(),
        });
        match newest {
            None => Found::Stored,
            Some(Version { position, state: State::Final(last) }) => {
                Found::Row(last.row.as_deref(), *position)
            }
            Some(Version { state: State::Pending(waiters), .. }) => Found::Pending(waiters),
        }
    }

    /// Whether a version is the first that the storage does not have.
    #[inline]
    pub(super) fn is_first(&self, key: &[u8], hash: u64, position: Position) -> bool {
        let first = self.find(key, hash).and_then(|chain| chain.versions.front());
        first.is_none_or(|first| first.position >= position)
    }

    /// Makes a pending version final. Appends who waits for that.
    pub(super) fn finish(
        &mut self,
        key: &[u8],
        hash: u64,
        position: Position,
        version: Final,
        waiters: &mut Vec<Waiter>,
    ) {
        let Some(chain) = self.find_mut(key, hash) else { return };
        let Ok(place) = chain.place(position) else { return };
        match std::mem::replace(&mut chain.versions[place].state, State::Final(version)) {
            State::Pending(mut waiting) => waiters.append(&mut waiting),
            State::Final(_) => unreachable!("a version becomes final once (ALO-85)"),
        }
    }

    /// A pending version changes nothing, or the storage has what it changes. Appends who waits for it, and tells whether the versions
    /// behind it may go to the storage now. Nothing happens to one that is final.
    pub(super) fn settle(
        &mut self,
        key: &[u8],
        hash: u64,
        position: Position,
        waiters: &mut Vec<Waiter>,
    ) -> bool {
        let Some(chain) = self.find_mut(key, hash) else { return false };
        let Ok(place) = chain.place(position) else { return false };
        let State::Pending(waiting) = &mut chain.versions[place].state else { return false };
        waiters.append(waiting);
        if place > 0 {
            chain.versions[place].state = State::Final(Final::default());
            return false;
        }
        chain.versions.pop_front();
        let is_last = chain.versions.is_empty();
        if is_last {
            self.forget_empty(hash);
        }
        !is_last
    }

    /// Takes from the front of the keys with a hash what is final and, if it changes something, what `accept` lets go; `apply` gets each
    /// such version with its key and position.
    pub(super) fn fold(
        &mut self,
        hash: u64,
        mut accept: impl FnMut(&[u8], Position) -> bool,
        mut apply: impl FnMut(&[u8], Position, &Final),
    ) {
        let mut is_empty = false;
        let others = self.others.iter_mut().filter(|chain| chain.hash == hash);
        for Chain { key, versions, .. } in self.chains.get_mut(&hash).into_iter().chain(others) {
            while let Some(Version { position, state: State::Final(version) }) = versions.front() {
                if !version.effects.is_empty() && !accept(key, *position) {
                    break;
                }
                apply(key, *position, version);
                versions.pop_front();
            }
            is_empty |= versions.is_empty();
        }
        if is_empty {
            self.forget_empty(hash);
        }
    }

    /// Forgets the keys with a hash of which the storage has all versions.
    fn forget_empty(&mut self, hash: u64) {
        while let Some(place) = self.others.iter().position(|chain| chain.versions.is_empty()) {
            let chain = self.others.swap_remove(place);
            self.put_away(chain);
        }
        if self.chains.get(&hash).is_none_or(|chain| !chain.versions.is_empty()) {
            return;
        }
        if let Some(chain) = self.chains.remove(&hash) {
            self.put_away(chain);
        }
        if let Some(place) = self.others.iter().position(|chain| chain.hash == hash) {
            self.chains.insert(hash, self.others.swap_remove(place));
        }
    }

    fn put_away(&mut self, chain: Chain) {
        self.keys.leave(&chain.key);
        if self.spare.len() < SPARE_MAX {
            self.spare.push(chain);
        }
    }

    /// The first version before a position of any key in a range: its position and who waits for it, or `None` in place of these if it is
    /// final.
    pub(super) fn first_of(
        &mut self,
        range: &KeyRange,
        before: Position,
    ) -> Option<(Position, Option<&mut Vec<Waiter>>)> {
        if self.chains.is_empty() {
            return None;
        }
        let Versions { chains, others, keys, .. } = self;
        let all = || chains.values().chain(&*others).map(|chain| (chain.key.as_slice(), chain.hash));
        let mut first: Option<(Position, &[u8], u64)> = None;
        for (key, hash) in keys.within(range, all) {
            let position = find(chains, others, key, hash).and_then(|chain| chain.versions.front());
            let position = position.map(|version| version.position).filter(|position| *position < before);
            // One transaction may have the first versions of several keys: then the lowest key decides.
            if let Some(position) = position
                && first.is_none_or(|(first, ..)| position < first)
            {
                first = Some((position, key, hash));
            }
        }
        let (_, key, hash) = first?;
        let Version { position, state } = find_mut(chains, others, key, hash)?.versions.front_mut()?;
        Some((*position, if let State::Pending(waiters) = state { Some(waiters) } else { None }))
    }

    /// Keys with their versions in order of keys, for scripts and people.
    pub(super) fn describe(&self, out: &mut String) {
        let mut chains: Vec<&Chain> = self.chains.values().chain(&self.others).collect();
        chains.sort_by(|left, right| left.key.cmp(&right.key));
        for chain in chains {
            out.push_str(&format!("{:?}:", crate::data::Key::from_bytes(&chain.key)));
            for version in &chain.versions {
                let state = match &version.state {
                    State::Pending(_) => "pending",
                    State::Final(version) if version.effects.is_empty() => "unchanged",
                    State::Final(_) => "final",
                };
                out.push_str(&format!(" {} {state}", version.position));
            }
            out.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::data::Key;
    use crate::position::{Epoch, PartitionId};

    fn at(index: u32) -> Position {
        Position { epoch: Epoch(1), origin: PartitionId(0), index }
    }

    fn put(row: &'static [u8]) -> Final {
        Final { effects: vec![OwnedEffect::Put(Bytes::from_static(row))], row: Some(Bytes::from_static(row)) }
    }

    /// Folds all that can be before a position, and tells what came: key, place and number of effects.
    fn folded(versions: &mut Versions, hash: u64, before: u32) -> Vec<(Vec<u8>, u32, usize)> {
        let mut came = Vec::new();
        let accept = |_: &[u8], position: Position| position.index < before;
        versions.fold(hash, accept, |key, position, version| {
            came.push((key.to_vec(), position.index, version.effects.len()));
        });
        came
    }

    /// What two keys with one hash do to each other: nothing.
    #[test]
    fn keys_with_one_hash_are_kept_apart() {
        let mut versions = Versions::default();
        versions.install(b"a", 7, at(1));
        versions.install(b"b", 7, at(2));
        versions.install(b"b", 7, at(3));
        assert!(versions.stored(b"c", 7) && !versions.stored(b"b", 7) && versions.is_first(b"b", 7, at(2)));
        let mut waiters = Vec::new();
        versions.finish(b"b", 7, at(2), put(b"2"), &mut waiters);
        assert!(matches!(versions.newest(b"a", 7, at(9)), Found::Pending(_)));
        assert!(matches!(versions.newest(b"b", 7, at(3)), Found::Row(Some(b"2"), _)));
        assert_eq!(folded(&mut versions, 7, 9), [(b"b".to_vec(), 2, 1)]);
        // The first key goes, and the other takes its place.
        assert!(!versions.settle(b"a", 7, at(1), &mut waiters));
        assert!(versions.stored(b"a", 7) && !versions.stored(b"b", 7));
        assert!(!versions.settle(b"b", 7, at(3), &mut waiters));
        assert!(versions.is_empty() && versions.others.is_empty());
    }

    /// ALO-53, ALO-58: in whatever order versions become final, they go to the storage in theirs.
    #[test]
    fn versions_go_in_order_however_they_come() {
        for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3], [3, 1, 4, 2]] {
            let mut versions = Versions::default();
            [1, 2, 4].iter().for_each(|index| versions.install(b"k", 7, at(*index)));
            let (mut waiters, mut came, mut before) = (Vec::new(), Vec::new(), 3);
            for index in order {
                match index {
                    // It was not known beforehand that it would come, so that what is later was held.
                    3 => {
                        versions.insert(b"k", 7, at(3), put(b"3"));
                        before = 9;
                    }
                    // It changes nothing, or the storage has it.
                    2 => {
                        versions.settle(b"k", 7, at(2), &mut waiters);
                    }
                    _ => versions.finish(b"k", 7, at(index), put(b"x"), &mut waiters),
                }
                came.extend(folded(&mut versions, 7, before).into_iter().map(|(_, index, _)| index));
            }
            assert!(came.is_sorted() && versions.is_empty(), "{order:?}: {came:?}");
        }
    }

    /// A key of one of two tables, and its hash: two keys of the first have one.
    fn key(number: u8) -> (Vec<u8>, u64) {
        (vec![0, number / 8, number % 8], u64::from(number.max(1)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whenever the first read of a range comes, the first version of any key in a range is what a look at all keys finds.
        #[test]
        fn ranges_find_what_all_keys_have(
            steps in proptest::collection::vec((0..4_u8, 0..16_u8, 1..8_u8, any::<prop::sample::Index>()), 1..60),
        ) {
            let mut versions = Versions::default();
            // Of each key what is pending.
            let mut model: BTreeMap<Vec<u8>, (u64, Vec<u32>)> = BTreeMap::new();
            for (index, (what, number, length, which)) in (0..).zip(steps) {
                let (bytes, hash) = key(number);
                match what {
                    0 | 1 => {
                        versions.install(&bytes, hash, at(index));
                        model.entry(bytes).or_insert((hash, Vec::new())).1.push(index);
                    }
                    2 if !model.is_empty() => {
                        let key = which.get(&model.keys().cloned().collect::<Vec<_>>()).clone();
                        let (hash, pending) = model.get_mut(&key).unwrap();
                        let mut waiters = Vec::new();
                        versions.settle(&key, *hash, at(pending.remove(0)), &mut waiters);
                        model.retain(|_, (_, pending)| !pending.is_empty());
                    }
                    _ => {
                        let (start, end) = (key(number).0, key((number + length).min(number / 8 * 8 + 7)).0);
                        let before = which.index(index as usize + 1) as u32;
                        let inside = model.iter().filter(|(key, _)| (&start..&end).contains(key));
                        let expected = inside.map(|(_, (_, pending))| pending[0]).filter(|first| *first < before).min();
                        let range = KeyRange { start: Key::from_bytes(&start), end: Key::from_bytes(&end) };
                        if !range.is_empty() {
                            let found = versions.first_of(&range, at(before)).map(|(position, _)| position.index);
                            prop_assert_eq!(found, expected);
                        }
                    }
                }
            }
        }
    }
}
