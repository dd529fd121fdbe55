//! The queue of one key: who holds it, and who waits for it, in the order of arrival (DET-30).
//!
//! Those that hold the key are the first. One that shares it and wants it alone keeps its place among them, and has it as soon as
//! it is the only one there: it need not wait for those that wait, which wait for it. All others behind wait for all before them
//! that they conflict with, so nobody overtakes anybody.

use smallvec::SmallVec;

use serde::{Deserialize, Serialize};

use super::Slot;

/// How a key is locked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Mode {
    /// With other readers.
    Shared,
    /// Alone.
    Exclusive,
}

impl Mode {
    /// The mode of an access that writes or does not.
    pub fn of(write: bool) -> Mode {
        if write { Mode::Exclusive } else { Mode::Shared }
    }

    /// Whether two transactions cannot hold a key in these modes at a time.
    pub fn conflicts(self, other: Mode) -> bool {
        (self, other) != (Mode::Shared, Mode::Shared)
    }
}

/// What a request for a key has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// What it asks for.
    Held,
    /// It shares the key, and waits to have it alone.
    Upgrading,
    /// Nothing.
    Waiting,
}

/// A request for a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Ascends within the queue.
    ticket: u64,
    pub(super) slot: Slot,
    /// What it asks for.
    pub(super) mode: Mode,
    pub(super) state: State,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: SmallVec<[Entry; 2]>,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn place(&self, ticket: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&ticket, |entry| entry.ticket).ok()
    }

    /// Whether somebody who is not in the queue would hold the key at once.
    pub(super) fn is_free(&self, mode: Mode) -> bool {
        match mode {
            Mode::Shared => self.entries.iter().all(|entry| entry.mode == Mode::Shared),
            Mode::Exclusive => self.entries.is_empty(),
        }
    }

    /// A transaction that is not in the queue enters it; whether it holds the key at once.
    pub(super) fn enter(&mut self, slot: Slot, mode: Mode, ticket: u64) -> bool {
        let free = self.is_free(mode);
        let state = if free { State::Held } else { State::Waiting };
        self.entries.push(Entry { ticket, slot, mode, state });
        free
    }

    /// A transaction that is in the queue asks for a mode; whether it waits for that and did not wait before.
    pub(super) fn raise(&mut self, ticket: u64, mode: Mode) -> bool {
        let Some(place) = self.place(ticket) else { return false };
        let alone = self.holders().len() == 1;
        let entry = &mut self.entries[place];
        if entry.mode >= mode {
            return false;
        }
        entry.mode = mode;
        match entry.state {
            State::Held if !alone => {
                entry.state = State::Upgrading;
                true
            }
            State::Held | State::Upgrading | State::Waiting => false,
        }
    }

    /// Those that share or hold the key.
    fn holders(&self) -> &[Entry] {
        let end = self.entries.iter().position(|entry| entry.state == State::Waiting);
        &self.entries[..end.unwrap_or(self.entries.len())]
    }

    /// Takes a transaction out, and tells `grant` who does not wait for this key any more.
    pub(super) fn leave(&mut self, ticket: u64, mut grant: impl FnMut(Slot)) {
        let Some(place) = self.place(ticket) else { return };
        self.entries.remove(place);
        if let [only] = self.holders()
            && only.state == State::Upgrading
        {
            self.entries[0].state = State::Held;
            grant(self.entries[0].slot);
        }
        for (place, entry) in self.entries.iter_mut().enumerate() {
            if entry.state == State::Waiting {
                // All before it share the key.
                if place > 0 && entry.mode == Mode::Exclusive {
                    return;
                }
                entry.state = State::Held;
                grant(entry.slot);
            }
            if entry.mode == Mode::Exclusive {
                return;
            }
        }
    }

    /// For whose ends a transaction waits here, with its mode and theirs. Of those that wait for each other anyway only the last is named.
    pub(super) fn find_before(&self, ticket: u64, mut found: impl FnMut(Slot, Mode, Mode)) {
        let Some(place) = self.place(ticket) else { return };
        let Entry { slot, mode, state, .. } = self.entries[place];
        match state {
            State::Held => {}
            State::Upgrading => {
                let others = self.holders().iter().filter(|entry| entry.slot != slot);
                others.for_each(|other| found(other.slot, mode, other.mode));
            }
            State::Waiting => {
                for other in self.entries[..place].iter().rev().filter(|other| other.mode.conflicts(mode)) {
                    found(other.slot, mode, other.mode);
                    // That one waits for all others before it, or they hold nothing that concerns it.
                    if other.mode == Mode::Exclusive {
                        break;
                    }
                }
            }
        }
    }
}
