//! Clients with sessions of SQL: what they ask of snapshots, and how they go on.

use ordain_db::error::Outcome;
use ordain_db::message::{ClientRequest, RequestId};
use ordain_db::position::{NodeId, ReplicaId};

use super::AUDITOR_PATIENCE;
use super::clients::{Client, Source, Wishes};
use crate::plan::Plan;
use crate::sql::{Next, Scan};
use crate::time::Nanoseconds;

impl Client {
    /// Lets the session go on as far as it comes without an answer.
    pub(super) fn go_on_in_session(&mut self, now: Nanoseconds, plan: &Plan, wishes: &mut Wishes) {
        let Source::Session(session) = &mut self.source else { return };
        let Some((next, closed)) = session.go_on(now) else { return };
        let home = NodeId { partition: self.id.home, replica: self.replica };
        wishes.sends.extend(closed.into_iter().map(|at| (home, ClientRequest::CloseSnapshot(at))));
        match next {
            Next::Ask(operation) => {
                let sequence = self.invoke(now, operation, &mut wishes.invoked);
                self.send(now, sequence, plan, wishes);
            }
            Next::Scan(numbers) => {
                numbers.into_iter().for_each(|number| self.send_scan(now, number, plan, wishes));
            }
            Next::Rest(observed) => wishes.observed = Some(*observed),
        }
    }

    /// Asks for a page of a snapshot, unless it has come.
    pub(super) fn send_scan(&mut self, now: Nanoseconds, number: u64, plan: &Plan, wishes: &mut Wishes) {
        let Source::Session(session) = &self.source else { return };
        let Some(Scan { at, partition, range, direction, rows, attempts, .. }) = session.scan(number) else {
            return;
        };
        // The nearest one may be gone, or not have the snapshot.
        let replica = match *attempts {
            0 => self.replica,
            attempts => ReplicaId((self.replica.0 + attempts) % plan.replicas),
        };
        let request = RequestId { client: self.id, sequence: number };
        let (at, range, direction, rows) = (*at, range.clone(), *direction, *rows);
        let scan = ClientRequest::Scan { request, at, range, direction, rows };
        wishes.sends.push((NodeId { partition: *partition, replica }, scan));
        if plan.clients.timeout > 0 {
            wishes.retries.push((now + AUDITOR_PATIENCE, number));
        }
        if let Source::Session(session) = &mut self.source {
            session.asked(number);
        }
    }

    /// Takes the answer to a question for a page.
    pub(super) fn page(
        &mut self,
        now: Nanoseconds,
        number: u64,
        outcome: &Outcome,
        plan: &Plan,
        wishes: &mut Wishes,
    ) {
        let Source::Session(session) = &mut self.source else { return };
        let may_be_elsewhere = plan.replicas > 1 && plan.clients.timeout > 0;
        let (is_complete, page) = session.page(number, outcome, may_be_elsewhere);
        wishes.page = page;
        if is_complete {
            self.go_on_in_session(now, plan, wishes);
            self.plan_wake(now, wishes);
        }
    }
}
