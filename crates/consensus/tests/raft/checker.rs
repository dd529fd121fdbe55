//! What must hold at every step.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ordain_consensus::{ReplicaId, Role};

/// An entry, as replicas execute it.
pub type Executed = (u64, u64, Bytes);

/// What all replicas in all their lives agree on.
#[derive(Default)]
pub struct Checker {
    /// What is committed: by index, term and payload.
    pub committed: BTreeMap<u64, (u64, Bytes)>,
    payloads: BTreeSet<Bytes>,
    /// Who led in each term, in which life.
    leaders: BTreeMap<u64, (ReplicaId, u64)>,
    /// Leaders that were seen to be ready.
    ready: BTreeSet<u64>,
}

impl Checker {
    /// A replica knows that an entry it has executed is committed.
    pub fn committed(&mut self, replica: ReplicaId, entry: &Executed) -> Result<(), String> {
        let (index, term, payload) = entry;
        if let Some(known) = self.committed.get(index) {
            if known != &(*term, payload.clone()) {
                return Err(format!(
                    "{replica} executed {payload:?} of term {term} at {index}, others {known:?}"
                ));
            }
            return Ok(());
        }
        if let Some((last, _)) = self.committed.last_key_value()
            && last > index
        {
            return Err(format!(
                "{replica} executed {index}, which others passed over on their way to {last}"
            ));
        }
        if !self.payloads.insert(payload.clone()) {
            return Err(format!("{payload:?} was committed twice, now at {index}"));
        }
        self.committed.insert(*index, (*term, payload.clone()));
        Ok(())
    }

    /// Between two entries that a replica executed one after the other, nothing was committed.
    pub fn follows(&self, replica: ReplicaId, before: u64, index: u64) -> Result<(), String> {
        if index <= before {
            return Err(format!("{replica} executed {index} after {before}"));
        }
        match self.committed.range(before + 1..index).next() {
            Some((skipped, _)) => {
                Err(format!("{replica} executed {before}, then {index}, without {skipped}"))
            }
            None => Ok(()),
        }
    }

    /// Terms have one leader, and a ready leader has executed everything from before its term.
    pub fn leads(&mut self, replica: ReplicaId, life: u64, role: Role, executed: u64) -> Result<(), String> {
        let Role::Leader { term, ready } = role else { return Ok(()) };
        let leader = self.leaders.entry(term).or_insert((replica, life));
        if *leader != (replica, life) {
            return Err(format!("{replica} leads term {term} in life {life}, which {leader:?} led"));
        }
        if ready && self.ready.insert(term) {
            let before = self.committed.iter().rev().find(|(_, (of, _))| *of < term);
            if let Some((index, _)) = before
                && *index > executed
            {
                return Err(format!("{replica} is ready to lead term {term} at {executed}, without {index}"));
            }
        }
        Ok(())
    }
}
