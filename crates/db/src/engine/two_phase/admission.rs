//! Load control: while most transactions wait for locks, others wait at the door.
//!
//! Two-phase locking thrashes if everybody may ask for locks: what is added then only waits, and makes others wait and be given up
//! in deadlocks. The rule here is the "half-and-half" of Carey, Krishnamurthi and Livny (PODS 1990), without what that does about
//! those that are inside already: a transaction may ask for its first locks unless over half of those that hold or ask for locks at
//! this partition wait. It needs no parameter.
//!
//! Those at the door are let in by age, so a victim of a deadlock goes before those that began after it. What would get all that it
//! needs at once and ends at once passes the door: it makes nobody wait. Parts of transactions that others coordinate are not held
//! up: they may hold locks elsewhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::message::TransactionId;
use super::{Placed, TwoPhase};
use crate::execution::Context;
use crate::failpoint::Failpoints;
use crate::position::PartitionSet;

/// Whether transactions of the engine `two-phase` wait at the door. Nodes of one cluster may differ in it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadControl {
    /// While over half of those that hold or ask for locks at a partition wait.
    #[default]
    HalfAndHalf,
    /// Never, as in the paper, which says nothing of it.
    None,
}

impl LoadControl {
    /// All of them.
    pub const ALL: [LoadControl; 2] = [LoadControl::HalfAndHalf, LoadControl::None];

    /// The name on command lines and in configuration files.
    pub fn name(self) -> &'static str {
        match self {
            LoadControl::HalfAndHalf => "half-and-half",
            LoadControl::None => "none",
        }
    }
}

impl fmt::Display for LoadControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LoadControl {
    type Err = String;

    fn from_str(name: &str) -> Result<LoadControl, String> {
        LoadControl::ALL.into_iter().find(|control| control.name() == name).ok_or_else(|| {
            let names = LoadControl::ALL.map(LoadControl::name);
            format!("there is no load control {name:?}: choose one of {}", names.join(", "))
        })
    }
}

impl<F: Failpoints> TwoPhase<F> {
    /// Whether most of those that hold or ask for locks here wait.
    pub(super) fn is_crowded(&self) -> bool {
        self.load_control == LoadControl::HalfAndHalf && 2 * self.locks.waiting() > self.locks.live()
    }

    /// Whether somebody at the door may come in.
    pub(super) fn is_open(&self) -> bool {
        !self.door.is_empty() && !self.is_crowded()
    }

    /// Takes an attempt in, unless it has to wait at the door.
    pub(super) fn take_in(&mut self, id: TransactionId, placed: Placed, context: &mut Context<'_>) {
        match self.is_crowded() || !self.door.is_empty() {
            true => drop(self.door.insert(id, placed)),
            false => self.let_in(id, placed, context),
        }
    }

    /// Asks for the first locks of a transaction.
    fn let_in(&mut self, id: TransactionId, placed: Placed, context: &mut Context<'_>) {
        let Placed { statement, call, grows } = placed;
        let alone = call.footprint.participants(context.me) == PartitionSet::one(context.me);
        let slot = self.enter(id, statement, call, grows);
        match alone {
            true => self.request(slot, context),
            false => self.coordinate(slot, context),
        }
    }

    /// Lets the oldest one at the door in; whether one may come in.
    pub(super) fn admit(&mut self, context: &mut Context<'_>) -> bool {
        if self.is_crowded() {
            return false;
        }
        let Some((id, placed)) = self.door.pop_first() else { return false };
        self.let_in(id, placed, context);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for control in LoadControl::ALL {
            assert_eq!(control.to_string().parse(), Ok(control));
        }
        let problem = "half".parse::<LoadControl>().unwrap_err();
        assert!(problem.contains("half-and-half, none"), "{problem}");
    }
}
