//! Attempts of dependent calls: reconnaissance, the attempt with what it found, and pauses between attempts that miss.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::reconnaissance::{Found, Reconnaissance, Scouted};
use super::{Gateway, GatewayContext, widening};
use crate::data::Key;
use crate::error::Error;
use crate::limits::{BACK_OFF_MICROSECONDS, BACK_OFF_MICROSECONDS_MAX, RESTARTS_BEFORE_TABLES};
use crate::message::{Ordered, Reconnoitred, Report, RequestId, Verdict, Want, Work};
use crate::position::{PartitionId, PartitionSet, Position};
use crate::procedure::{Footprint, ProcedureId};
use crate::sequencer::{Sequencer, Waiting};

/// A call whose keys depend on data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Dependent {
    pub(super) procedure: ProcedureId,
    pub(super) arguments: Bytes,
    /// Attempts that missed their footprint.
    pub(super) restarts: u32,
    /// The last attempt.
    pub(super) attempt: Option<Attempt>,
    /// When reconnaissance ended for the attempt that is under way, in microseconds, if that was here. Checkpoints keep only calls
    /// that have none under way.
    #[serde(skip)]
    pub(super) scouted_at: Option<u64>,
}

/// An attempt of a call whose keys depend on data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Attempt {
    /// Where it is in the order.
    pub(super) position: Position,
    /// What it declared.
    pub(super) footprint: Bytes,
}

impl Gateway {
    /// Begins a reconnaissance run for a dependent call.
    pub(super) fn reconnoitre(&mut self, id: RequestId, context: &mut GatewayContext<'_>) {
        self.counters.reconnaissance += 1;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.scouts.insert(ticket, (id, Reconnaissance::new(self.me, self.partitions)));
        self.scout(ticket, context);
    }

    /// Begins the next attempts of the calls that have waited long enough.
    pub fn go_on(&mut self, context: &mut GatewayContext<'_>) {
        while let Some((due, id)) = self.resting.first().copied()
            && due <= context.now
        {
            self.resting.pop_first();
            self.reconnoitre(id, context);
        }
    }

    /// When [`Gateway::go_on`] next has something to do, in microseconds.
    pub fn deadline(&self) -> Option<u64> {
        self.resting.first().map(|(due, _)| *due)
    }

    /// Asks again for what reconnaissance runs wait for: questions or answers may have been lost.
    pub fn ask_again(&mut self, context: &mut GatewayContext<'_>) {
        let mut tickets: Vec<u64> = self.scouts.keys().copied().collect();
        tickets.sort_unstable();
        tickets.into_iter().for_each(|ticket| self.scout(ticket, context));
    }

    /// Takes the answer to a read that reconnaissance wanted.
    pub fn fetched(
        &mut self,
        from: PartitionId,
        ticket: u64,
        want: Want,
        rows: Vec<(Key, Bytes)>,
        context: &mut GatewayContext<'_>,
    ) {
        let Some((_, scout)) = self.scouts.get_mut(&ticket) else { return };
        if scout.found(Found { from, want, rows }) {
            self.scout(ticket, context);
        }
    }

    /// Runs a reconnaissance as far as it gets.
    fn scout(&mut self, ticket: u64, context: &mut GatewayContext<'_>) {
        let Some((id, mut scout)) = self.scouts.remove(&ticket) else { return };
        let Some(dependent) = self.dependent.get(&id).cloned() else { return };
        let before = scout.units();
        let scouted = scout.run(dependent.procedure, &dependent.arguments, context.catalog, context.storage);
        self.scouting.runs += 1;
        self.scouting.units += scout.units() - before;
        match scouted {
            Scouted::Wants(wants) => {
                self.scouts.insert(ticket, (id, scout));
                let fetches = wants.into_iter().map(|(partition, want)| (partition, ticket, want));
                self.effects.fetches.extend(fetches);
            }
            Scouted::Failed(error) => self.give_up(id, error, context.sequencer),
            Scouted::Footprint(found) => {
                if let Err(error) = self.attempt(id, dependent, found, context) {
                    self.give_up(id, error, context.sequencer);
                }
            }
        }
    }

    /// Orders an attempt of a dependent call with the footprint that reconnaissance found, widened if the attempts before it
    /// have missed too often.
    fn attempt(
        &mut self,
        id: RequestId,
        dependent: Dependent,
        found: Vec<u8>,
        context: &mut GatewayContext<'_>,
    ) -> Result<(), Error> {
        let Dependent { procedure, arguments, restarts, attempt, .. } = dependent;
        if let Some(known) = self.dependent.get_mut(&id) {
            known.scouted_at = Some(context.now);
        }
        let mut footprint = self.spare.pop().unwrap_or_default();
        footprint.decode(&found, &context.catalog.schema, self.partitions)?;
        let (mut recorded, restarts) = (found, restarts + u32::from(attempt.is_some()));
        if let Some(before) = attempt.filter(|_| restarts >= self.limits.restarts_before_help)
            && let Some(widened) = self.help(&footprint, &before.footprint, restarts, context)?
        {
            *footprint = widened;
            recorded = footprint.encode();
            self.counters.helped += 1;
        }
        let reconnoitred = Some(Reconnoitred { footprint: Bytes::from(recorded), restarts });
        let work = Work::Call { procedure, arguments, reconnoitred };
        self.order(Ordered { request: id, acknowledged: 0, work }, footprint, context.sequencer);
        Ok(())
    }

    /// What a call declares after so many misses instead of what reconnaissance found, if it is to be helped and can be.
    fn help(
        &self,
        found: &Footprint,
        before: &[u8],
        restarts: u32,
        context: &mut GatewayContext<'_>,
    ) -> Result<Option<Footprint>, Error> {
        let (schema, partitions) = (&context.catalog.schema, self.partitions);
        let mut declared = Footprint::default();
        declared.decode(before, schema, partitions)?;
        // Whole tables may be too large where ranges are not.
        let ranges = (restarts >= RESTARTS_BEFORE_TABLES).then_some(RESTARTS_BEFORE_TABLES - 1);
        for misses in [Some(restarts), ranges].into_iter().flatten() {
            // One with too many entries is no help.
            let Ok(widened) = widening::widen(found, &declared, misses, schema, partitions) else { continue };
            let is_alone = widened.participants(self.me).len() == 1;
            let is_due = is_alone || restarts >= self.limits.restarts_before_distributed_help;
            if is_due && (is_alone || widening::can_be_sent(&widened, context.storage)) {
                return Ok(Some(widened));
            }
        }
        Ok(None)
    }

    /// Counts the verdict on an attempt whose footprint was found here.
    pub(super) fn judge(&mut self, report: &Report, now: u64) {
        let Some(dependent) = self.dependent.get_mut(&report.request) else { return };
        let attempt = dependent.attempt.as_ref().map(|attempt| attempt.position);
        if attempt == Some(report.position)
            && let Some(at) = dependent.scouted_at.take()
        {
            let missed = report.verdict == Verdict::FootprintMissed;
            self.scouting.judge(dependent.restarts, now.saturating_sub(at), missed);
        }
    }

    /// Ends a call whose reconnaissance has failed. The end is ordered, so that all replicas know it.
    fn give_up(&mut self, id: RequestId, error: Error, sequencer: &mut Sequencer) {
        sequencer.add(Waiting {
            ordered: Ordered { request: id, acknowledged: 0, work: Work::GiveUp(error) },
            footprint: None,
            participants: PartitionSet::one(self.me),
        });
    }
}

/// How long a call waits that has missed its footprint so often, in microseconds.
pub(super) fn back_off(misses: u32) -> u64 {
    let doubled = |doublings| BACK_OFF_MICROSECONDS.saturating_mul(2_u64.saturating_pow(doublings));
    misses.checked_sub(2).map_or(0, doubled).min(BACK_OFF_MICROSECONDS_MAX)
}
