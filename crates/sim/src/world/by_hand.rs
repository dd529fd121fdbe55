//! What a hand-written scenario does with a world beyond letting time pass.

use ordain_db::message::{Operation, RequestId};
use ordain_db::position::{NodeId, ReplicaId};

use super::{Happening, World};
use crate::history::Invocation;
use crate::plan::Plan;

impl<'a> World<'a> {
    /// Lets a client make a call now, besides those that its workload makes. It is sent again until it is answered, as any
    /// other.
    ///
    /// # Panics
    /// When the plan has no such client.
    pub fn call(&mut self, client: u16, operation: Operation) -> RequestId {
        let (mut invoked, client) = (Vec::new(), usize::from(client));
        let (id, wishes) = self.clients[client].call(self.heap.now(), self.plan, operation, &mut invoked);
        if self.plan.trace {
            self.recorder.requests.extend(invoked);
        }
        self.grant(client, wishes);
        id
    }

    /// Lets a client turn to a replica with what it sends next for the first time.
    ///
    /// # Panics
    /// When the plan has no such client.
    pub fn turn(&mut self, client: u16, replica: ReplicaId) {
        self.clients[usize::from(client)].turn_to(replica);
    }

    /// A request as its client knows it; `None` if there is no such one, or if the plan is not traced.
    pub fn invocation(&self, request: RequestId) -> Option<&Invocation> {
        self.recorder.requests.get(&request)
    }

    /// Goes on with a plan that has more faults than the one before and is like it otherwise.
    ///
    /// # Panics
    /// When nodes hear each other without links, since the plan before had neither faults nor disks nor a network that loses
    /// anything: then messages would be lost that nobody sends again.
    pub fn add_faults(&mut self, plan: &'a Plan) {
        assert!(!self.bare, "faults can be added where there are disks or were faults from the beginning");
        for (index, planned) in plan.faults.iter().enumerate().skip(self.plan.faults.len()) {
            self.heap.plan(planned.at, Happening::FaultBegins(index));
        }
        self.plan = plan;
    }

    /// Lets a fault of the plan begin now, between two events, instead of at its time.
    ///
    /// # Panics
    /// When the plan has no such fault.
    pub fn strike(&mut self, fault: usize) {
        self.begin_fault(fault);
    }

    /// What a node is at, for people.
    ///
    /// # Panics
    /// When the plan has no such node.
    pub fn describe(&self, node: NodeId) -> String {
        self.processes[self.plan.number(node)].describe().trim_start().to_owned()
    }

    /// The second half of [`run`](World::run): ends all faults, lets everything be answered and come to rest, and reads a last
    /// snapshot. Returns why it did not end well, if it did not.
    ///
    /// # Panics
    /// When an assertion in the code under test fails.
    pub fn settle(&mut self) -> Option<String> {
        self.heal();
        let until = self.now() + self.plan.settle_within;
        if !self.run_while(until, |world| world.halted().is_some() || world.is_at_rest()) {
            return Some(self.stuck());
        }
        if self.halted().is_some() {
            return self.halted();
        }
        self.snapshots_left = 1;
        self.auditor.last = None;
        self.heap.plan_after(0, Happening::AuditorWakes);
        let until = self.now() + self.plan.settle_within;
        let done = |world: &World<'_>| {
            world.halted().is_some() || (world.auditor.last.is_some() && world.is_at_rest())
        };
        if !self.run_while(until, done) {
            return Some(self.stuck());
        }
        self.halted()
    }
}
