//! Portals: statements with values, and how far they have come.

use ordain_db::hash::FastMap;

use super::answer::Rows;
use super::copy::CopyIn;
use super::extended::Named;
use crate::execute::Kept;
use crate::protocol::Format;
use crate::types::Values;

/// A statement with values for its parameters.
pub(super) struct Portal {
    /// How many were made or ran before it was made, or ran.
    pub number: u64,
    /// Its statement.
    pub named: Named,
    /// Their values, until it runs.
    pub parameters: Values,
    /// What these take.
    pub _kept: Kept,
    /// How its columns are sent.
    pub formats: Vec<Format>,
    /// How far it has come.
    pub progress: Progress,
}

/// What waits for what comes behind it: if that is `Sync`, it is a transaction of its own, else one with all before `Sync`.
pub(super) enum Waiting {
    /// An execution.
    Portal {
        /// Of which portal.
        name: String,
        /// Most rows; 0 for all.
        max_rows: u32,
    },
    /// Rows that have come from the client.
    Copy(Box<CopyIn>),
}

/// How far a portal has come.
pub(super) enum Progress {
    /// It has not run.
    New,
    /// It has, and these are its rows.
    Giving(Rows),
    /// It has run, or was to run, without giving rows, and does not run again.
    Ran,
}

/// The portals of a session.
#[derive(Default)]
pub(super) struct Portals {
    pub open: FastMap<String, Portal>,
    /// How many were made, or ran.
    pub made: u64,
}

impl Portals {
    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }

    pub(super) fn close_unnamed(&mut self) {
        self.open.remove("");
    }

    /// How many were made, or ran, so far.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Closes those that were made, or ran, since so many were.
    pub(super) fn go_back(&mut self, made: u64) {
        self.open.retain(|_, portal| portal.number < made);
    }

    /// The beginning of the text of the statement of one.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.open.get(name).map(|portal| &*portal.named.text)
    }

    /// Whether there is one of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.open.contains_key(name)
    }
}
