//! The versions of keys that the storage does not have yet (Fan and Golab, §III-D, Figure 4).
//!
//! A key that nobody is about to write has no entry here: its newest version is in the storage. A version is entered, *pending*, when
//! the transaction that writes it is delivered, and becomes *final* once, when its functor has been computed. From the front of its
//! key's list, final versions go to the storage: so all that is there is final, and the paper's value watermark of a key is the version
//! before the first one here (ALO-58).

use std::collections::VecDeque;

use bytes::Bytes;

use super::Waiter;
use crate::data::row::FixedValue;
use crate::execution::effects::Effect;
use crate::hash::FastMap;
use crate::position::Position;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Versions {
    keys: FastMap<Box<[u8]>, Chain>,
    /// Lists to be filled again.
    spare: Vec<VecDeque<Version>>,
}

/// The versions of a key, in ascending order.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) hash: u64,
    versions: VecDeque<Version>,
}

/// A version that the storage does not have.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) position: Position,
    pub(super) state: State,
}

/// What is known of a version.
#[derive(Debug)]
pub(super) enum State {
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

impl Versions {
    /// Whether the storage has everything.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the storage has all versions of a key.
    #[inline]
    pub(super) fn stored(&self, key: &[u8]) -> bool {
        self.keys.is_empty() || !self.keys.contains_key(key)
    }

    fn chain(&mut self, key: &[u8], hash: u64) -> &mut VecDeque<Version> {
        if !self.keys.contains_key(key) {
            let versions = self.spare.pop().unwrap_or_default();
            self.keys.insert(key.into(), Chain { hash, versions });
        }
        match self.keys.get_mut(key) {
            Some(chain) => &mut chain.versions,
            None => unreachable!("it has just been entered"),
        }
    }

    /// Enters a version that is pending. No later one has been entered.
    pub(super) fn install(&mut self, key: &[u8], hash: u64, position: Position) {
        let versions = self.chain(key, hash);
        debug_assert!(
            versions.back().is_none_or(|last| last.position < position),
            "versions are installed in order"
        );
        versions.push_back(Version { position, state: State::Pending(Vec::new()) });
    }

    /// Enters a version that is final, at its place in the order.
    pub(super) fn insert(&mut self, key: &[u8], hash: u64, position: Position, version: Final) {
        let versions = self.chain(key, hash);
        let place = versions.partition_point(|other| other.position < position);
        match versions.get_mut(place).filter(|there| there.position == position) {
            Some(there) => there.state = State::Final(version),
            None => versions.insert(place, Version { position, state: State::Final(version) }),
        }
    }

    /// The newest version of a key before a position that has a row or is a deletion.
    pub(super) fn newest(&mut self, key: &[u8], before: Position) -> Found<'_> {
        if self.keys.is_empty() {
            return Found::Stored;
        }
        let Some(chain) = self.keys.get_mut(key) else { return Found::Stored };
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

    /// Makes a pending version final and returns who waits for that.
    pub(super) fn finish(&mut self, key: &[u8], position: Position, version: Final) -> Vec<Waiter> {
        let Some(chain) = self.keys.get_mut(key) else { return Vec::new() };
        let place = chain.versions.partition_point(|other| other.position < position);
        match chain.versions.get_mut(place) {
            Some(Version { position: there, state }) if *there == position => {
                match std::mem::replace(state, State::Final(version)) {
                    State::Pending(waiters) => waiters,
                    State::Final(_) => unreachable!("a version becomes final once (ALO-85)"),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Whether a version is the first that the storage does not have.
    pub(super) fn is_first(&self, key: &[u8], position: Position) -> bool {
        let first = self.keys.get(key).and_then(|chain| chain.versions.front());
        first.is_none_or(|first| first.position >= position)
    }

    /// The first version that the storage does not have, if it is final, with the hash of its key.
    pub(super) fn first_final(&self, key: &[u8]) -> Option<(u64, Position, &Final)> {
        let chain = self.keys.get(key)?;
        match chain.versions.front()? {
            Version { position, state: State::Final(version) } => Some((chain.hash, *position, version)),
            Version { state: State::Pending(_), .. } => None,
        }
    }

    /// Forgets the first version of a key: the storage has it.
    pub(super) fn pop(&mut self, key: &[u8]) {
        let Some(chain) = self.keys.get_mut(key) else { return };
        chain.versions.pop_front();
        if chain.versions.is_empty()
            && let Some(chain) = self.keys.remove(key)
            && self.spare.len() < 1024
        {
            self.spare.push(chain.versions);
        }
    }

    /// The first version before a position of any key that `contains` allows: its position and who waits for it, or `None` in place of
    /// these if it is final.
    pub(super) fn first_of(
        &mut self,
        contains: impl Fn(&[u8]) -> bool,
        before: Position,
    ) -> Option<(Position, Option<&mut Vec<Waiter>>)> {
        let keys = self.keys.iter_mut().filter(|(key, _)| contains(key));
        let firsts = keys.filter_map(|(_, chain)| chain.versions.front_mut());
        let first =
            firsts.filter(|version| version.position < before).min_by_key(|version| version.position)?;
        let Version { position, state } = first;
        Some((*position, if let State::Pending(waiters) = state { Some(waiters) } else { None }))
    }

    /// Whether a version is pending.
    pub(super) fn is_pending(&self, key: &[u8], position: Position) -> bool {
        let Some(chain) = self.keys.get(key) else { return false };
        let place = chain.versions.partition_point(|other| other.position < position);
        let version = chain.versions.get(place).filter(|version| version.position == position);
        version.is_some_and(|version| matches!(version.state, State::Pending(_)))
    }

    /// Keys with their versions in order of keys, for scripts and people.
    pub(super) fn describe(&self, out: &mut String) {
        let mut keys: Vec<(&Box<[u8]>, &Chain)> = self.keys.iter().collect();
        keys.sort_by_key(|(key, _)| *key);
        for (key, chain) in keys {
            out.push_str(&format!("{:?}:", crate::data::Key::from_bytes(key)));
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
