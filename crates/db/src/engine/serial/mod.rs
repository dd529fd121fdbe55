//! The `serial` engine: one transaction at a time, in the order of the log.
//!
//! The mode of H-Store in the evaluation paper (Ren et al. §2.1, §3.1, DET-07): no locks, and no concurrency within a
//! partition. A transaction that spans partitions makes this one wait for its remote reads. What it leaves behind is, by
//! construction, the state that the order prescribes: it is the oracle of the other engines.

use std::collections::VecDeque;
use std::marker::PhantomData;

use bytes::Bytes;

use super::Engine;
use crate::error::Fatal;
use crate::execution::remote_reads;
use crate::execution::{Call, Context, Executor, Inbox, Participation, Waiting};
use crate::failpoint::{Failpoints, NoFailpoints};
use crate::position::{PartitionId, PartitionSet, Position};

/// See the [module](self).
#[derive(Debug)]
pub struct Serial<F = NoFailpoints> {
    /// Delivered transactions that have not begun, in order.
    waiting: VecDeque<Call>,
    /// The transaction that is at its turn and waits for remote reads; its own were sent.
    current: Option<(Call, Participation)>,
    /// The last transaction that began.
    begun: Position,
    /// Transactions for which read results have just come.
    touched: Vec<Position>,
    inbox: Inbox,
    executor: Executor,
    failpoints: PhantomData<F>,
}

impl Serial {
    /// An engine with nothing to do.
    pub fn new() -> Serial {
        Serial::default()
    }
}

impl<F> Default for Serial<F> {
    fn default() -> Serial<F> {
        Serial {
            waiting: VecDeque::new(),
            current: None,
            begun: Position::LOADED,
            touched: Vec::new(),
            inbox: Inbox::default(),
            executor: Executor::default(),
            failpoints: PhantomData,
        }
    }
}

impl<F: Failpoints> Serial<F> {
    /// Runs transactions in order until one has to wait.
    fn advance(&mut self, context: &mut Context<'_>) {
        loop {
            if let Some((call, participation)) = &self.current {
                if !self.inbox.is_complete(call.position, participation.await_reads_from) {
                    return;
                }
            } else if let Some(call) = self.waiting.pop_front() {
                self.begin(call, context);
                continue;
            } else {
                return;
            }
            if let Some((call, participation)) = self.current.take() {
                self.finish(call, participation, context);
            }
        }
    }

    /// Phases 1 to 3: the transaction becomes the current one, or is done if this partition is passive.
    fn begin(&mut self, call: Call, context: &mut Context<'_>) {
        self.begun = call.position;
        let participation = Participation::of(&call.footprint, call.position.origin, context.me);
        let served = remote_reads::serve::<F>(&call, participation, context);
        if participation.active {
            self.inbox.note(context.me, call.position, served);
            self.current = Some((call, participation));
        } else {
            context.effects.footprints.push(call.footprint);
        }
    }

    /// Phase 5.
    fn finish(&mut self, call: Call, participation: Participation, context: &mut Context<'_>) {
        let received = self.inbox.take(call.position);
        let verdict = self.executor.execute::<F>(&call, &received, context);
        if participation.reports {
            context.effects.report(call.position, call.request, verdict);
        }
        context.effects.footprints.push(call.footprint);
    }
}

impl<F: Failpoints> Engine for Serial<F> {
    type Failpoints = F;

    fn resume(&mut self, at: Position) {
        self.begun = at;
    }

    fn deliver(&mut self, call: Call, context: &mut Context<'_>) {
        self.waiting.push_back(call);
        self.advance(context);
    }

    fn receive(&mut self, from: PartitionId, reads: &Bytes, context: &mut Context<'_>) -> Result<(), Fatal> {
        let mut touched = std::mem::take(&mut self.touched);
        self.inbox.receive(from, reads, &mut touched)?;
        let current = self.current.as_ref().map(|(call, _)| call.position);
        for position in touched.drain(..) {
            if position <= self.begun && Some(position) != current {
                self.inbox.forget(position);
            }
        }
        self.touched = touched;
        self.advance(context);
        Ok(())
    }

    fn live(&self) -> usize {
        self.waiting.len() + usize::from(self.current.is_some())
    }

    fn oldest_live(&mut self) -> Option<Position> {
        let current = self.current.as_ref().map(|(call, _)| call.position);
        current.or_else(|| self.waiting.front().map(|call| call.position))
    }

    fn waiting(&self, most: usize) -> Vec<Waiting<'_>> {
        let current = self.current.iter().map(|(call, participation)| {
            let mut awaits = participation.await_reads_from;
            self.inbox.received_from(call.position).iter().for_each(|partition| awaits.remove(partition));
            (call, "waits for reads of", awaits)
        });
        let behind = self.waiting.iter().map(|call| (call, "waits for its turn", PartitionSet::EMPTY));
        let told = current.chain(behind).take(most).map(|(call, phase, awaits)| Waiting {
            name: call.position.to_string(),
            call,
            phase: phase.to_owned(),
            awaits,
        });
        told.collect()
    }
}
