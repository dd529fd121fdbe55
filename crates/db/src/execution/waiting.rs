//! What an engine tells of the transactions that wait in it.

use super::Call;
use crate::position::PartitionSet;

/// A transaction that waits in an engine.
pub struct Waiting<'e> {
    /// Its name: its position, or what the engine calls it.
    pub name: String,
    /// The transaction.
    pub call: &'e Call,
    /// What it waits for, in the engine's words; may be empty.
    pub phase: String,
    /// The partitions from which it lacks something.
    pub awaits: PartitionSet,
}

impl Waiting<'_> {
    /// A line for scripts and people.
    pub fn line(&self) -> String {
        let mut line = self.name.clone();
        if !self.phase.is_empty() {
            line.push(' ');
            line.push_str(&self.phase);
        }
        for partition in self.awaits.iter() {
            line.push_str(&format!(" {partition}"));
        }
        line
    }
}
