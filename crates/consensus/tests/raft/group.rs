//! A group of machines, a network and a clock.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ordain_consensus::raft::RaftLog;
use ordain_consensus::{
    FollowerStatus, HandOut, LogEffects, Membership, MembershipError, Persist, ReplicaId, ReplicatedLog,
    Role, SnapshotError, SnapshotRequest,
};

use crate::checker::Checker;
use crate::machine::{Checkpoint, Machine, Write};
use crate::plan::{Mistake, Plan};
use crate::random::Random;

pub enum Event {
    Message { from: ReplicaId, to: ReplicaId, bytes: Bytes },
    Written { replica: ReplicaId, life: u64 },
    Wake { replica: ReplicaId, life: u64 },
    Snapshot { from: ReplicaId, to: ReplicaId, checkpoint: Checkpoint },
    Proposal,
    Fault,
    Restart { replica: ReplicaId },
    Checkpoint,
    Membership,
}

pub struct Group {
    pub plan: Plan,
    pub now: u64,
    pub machines: BTreeMap<ReplicaId, Machine>,
    pub checker: Checker,
    pub random: Random,
    events: BTreeMap<(u64, u64), Event>,
    ordinal: u64,
    /// Pairs whose messages are lost, from and to.
    pub cut: BTreeSet<(ReplicaId, ReplicaId)>,
    proposals: u64,
    /// Hash of all that happened.
    pub digest: u64,
    pub is_healed: bool,
    pub snapshots_installed: u64,
    pub overwritten: u64,
    /// Changes of the membership that were proposed.
    pub changes: u64,
}

pub fn r(number: u16) -> ReplicaId {
    ReplicaId(number)
}

impl Group {
    pub fn new(plan: Plan) -> Result<Group, String> {
        let membership = Membership::of_voters((0..plan.voters).map(ReplicaId));
        let mut group = Group {
            now: 1_000_000,
            machines: BTreeMap::new(),
            checker: Checker::default(),
            random: Random::new(plan.seed),
            events: BTreeMap::new(),
            ordinal: 0,
            cut: BTreeSet::new(),
            proposals: 0,
            digest: plan.seed,
            is_healed: false,
            snapshots_installed: 0,
            overwritten: 0,
            changes: 0,
            plan,
        };
        for replica in membership.voters.clone() {
            group.add(replica, Some(membership.clone()))?;
        }
        for joiner in group.plan.voters..group.plan.voters + group.plan.joiners {
            group.add(r(joiner), None)?;
        }
        group.later(0, group.plan.proposal_interval, Event::Proposal);
        if group.plan.membership_interval > 0 {
            group.later(0, group.plan.membership_interval, Event::Membership);
        }
        if group.plan.fault_interval > 0 {
            group.later(0, group.plan.fault_interval, Event::Fault);
        }
        if group.plan.checkpoint_interval > 0 {
            group.later(0, group.plan.checkpoint_interval, Event::Checkpoint);
        }
        Ok(group)
    }

    /// Adds a machine: of a founder, or, without a membership, of a replica that joins.
    pub fn add(&mut self, replica: ReplicaId, founded: Option<Membership>) -> Result<(), String> {
        self.machines.insert(replica, Machine::new(replica, &self.plan, founded));
        self.restart(replica)
    }

    fn later(&mut self, low: u64, high: u64, event: Event) {
        let at = self.now + self.random.within(low, high);
        self.at(at, event);
    }

    fn at(&mut self, at: u64, event: Event) {
        self.ordinal += 1;
        self.events.insert((at, self.ordinal), event);
    }

    pub fn note(&mut self, word: u64) {
        self.digest = (self.digest ^ word).wrapping_mul(0x100_0000_01b3).rotate_left(17);
    }

    /// Runs for a time in microseconds.
    pub fn run(&mut self, duration: u64) -> Result<(), String> {
        let end = self.now + duration;
        while let Some(((at, _), event)) = self.events.pop_first() {
            if at > end {
                self.at(at, event);
                break;
            }
            self.now = at;
            self.note(at);
            self.step(event)?;
        }
        self.now = end;
        Ok(())
    }

    /// Runs until something holds.
    pub fn run_until(&mut self, limit: u64, holds: impl Fn(&Group) -> bool) -> Result<(), String> {
        for _ in 0..limit / 10_000 {
            if holds(self) {
                return Ok(());
            }
            self.run(10_000)?;
        }
        Err(format!("it did not come to pass within {limit} us: {}", self.describe()))
    }

    fn step(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Message { from, to, bytes } => self.deliver(from, to, &bytes),
            Event::Written { replica, life } => {
                let Some(machine) = self.machines.get_mut(&replica).filter(|machine| machine.life == life)
                else {
                    return Ok(());
                };
                if machine.log.is_none() {
                    return Ok(());
                }
                if let Some(number) = machine.written(&mut self.random)
                    && let Some(log) = &mut machine.log
                    && self.plan.mistake != Mistake::ReportTooEarly
                {
                    log.persisted(number);
                }
                self.flush(replica);
                self.advance(replica)
            }
            Event::Wake { replica, life } => {
                let now = self.now;
                let Some(machine) = self.machines.get_mut(&replica) else { return Ok(()) };
                if machine.life != life || machine.wake_at != Some(now) {
                    return Ok(());
                }
                machine.wake_at = None;
                let Some(log) = &mut machine.log else { return Ok(()) };
                log.tick(now);
                self.advance(replica)
            }
            Event::Snapshot { from, to, checkpoint } => self.install(from, to, checkpoint),
            Event::Proposal => {
                self.later(1, self.plan.proposal_interval, Event::Proposal);
                self.propose_somewhere()
            }
            Event::Fault => {
                if !self.is_healed {
                    self.later(1, self.plan.fault_interval, Event::Fault);
                    self.fault();
                }
                Ok(())
            }
            Event::Restart { replica } => self.restart(replica),
            Event::Checkpoint => {
                self.later(1, self.plan.checkpoint_interval, Event::Checkpoint);
                let replica = self.any();
                self.checkpoint(replica);
                Ok(())
            }
            Event::Membership => {
                if !self.is_healed {
                    self.later(1, self.plan.membership_interval, Event::Membership);
                }
                self.change_somehow()
            }
        }
    }

    fn deliver(&mut self, from: ReplicaId, to: ReplicaId, bytes: &[u8]) -> Result<(), String> {
        let is_cut = self.cut.contains(&(from, to));
        let Some(log) = self.machines.get_mut(&to).and_then(|machine| machine.log.as_mut()) else {
            return Ok(());
        };
        if is_cut {
            return Ok(());
        }
        log.receive(from, bytes).map_err(|error| format!("{to}: {error}"))?;
        self.advance(to)
    }

    /// Lets a log move on, does what it says, and checks everything.
    pub fn advance(&mut self, replica: ReplicaId) -> Result<(), String> {
        loop {
            let mut effects = LogEffects::default();
            let Some(log) = self.machines.get_mut(&replica).and_then(|machine| machine.log.as_mut()) else {
                return Ok(());
            };
            log.advance(&mut effects);
            if effects.is_empty() {
                break;
            }
            for (to, bytes) in effects.messages {
                self.send(replica, to, bytes);
            }
            if let Some(persist) = effects.persist {
                self.persist(replica, persist);
            }
            if let Some(index) = effects.overwritten {
                self.go_back(replica, index)?;
            }
            self.execute(replica, effects.committed)?;
            for request in effects.send_snapshot {
                self.transfer(replica, request);
            }
            self.check(replica)?;
        }
        let now = self.now;
        let machine = self.machines.get_mut(&replica).expect("it has just moved on");
        let deadline = machine.log.as_ref().and_then(RaftLog::deadline);
        let deadline = deadline.expect("elections depend on time").max(now + 1);
        if machine.wake_at != Some(deadline) {
            machine.wake_at = Some(deadline);
            let life = machine.life;
            self.at(deadline, Event::Wake { replica, life });
        }
        Ok(())
    }

    fn send(&mut self, from: ReplicaId, to: ReplicaId, bytes: Bytes) {
        self.note(u64::from(crc32c::crc32c(&bytes)));
        let copies = 1 + u64::from(!self.is_healed && self.random.permille(self.plan.duplication));
        for _ in 0..copies {
            if self.is_healed || !self.random.permille(self.plan.loss) {
                self.later(100, self.plan.delay_max, Event::Message { from, to, bytes: bytes.clone() });
            }
        }
    }

    fn persist(&mut self, replica: ReplicaId, persist: Persist) {
        for record in &persist.records {
            self.note(u64::from(crc32c::crc32c(record)));
        }
        let number = persist.number;
        self.write(replica, Machine::write_of(persist, self.plan.mistake));
        if self.plan.mistake == Mistake::ReportTooEarly {
            let machine = self.machines.get_mut(&replica).expect("it wrote");
            machine.log.as_mut().expect("it is up").persisted(number);
        }
    }

    fn write(&mut self, replica: ReplicaId, write: Write) {
        self.machines.get_mut(&replica).expect("it writes").writes.push_back(write);
        self.flush(replica);
    }

    /// Forces to the disk whatever waits, unless the disk is busy.
    fn flush(&mut self, replica: ReplicaId) {
        let slow = if !self.is_healed && self.random.permille(self.plan.stall) { 100 } else { 1 };
        let duration = self.random.within(50, self.plan.write_max) * slow;
        let machine = self.machines.get_mut(&replica).expect("it writes");
        if machine.flushing == 0 && !machine.writes.is_empty() {
            machine.flushing = machine.writes.len();
            let life = machine.life;
            self.at(self.now + duration, Event::Written { replica, life });
        }
    }

    fn execute(
        &mut self,
        replica: ReplicaId,
        mut entries: Vec<ordain_consensus::Committed>,
    ) -> Result<(), String> {
        if self.plan.mistake == Mistake::SwapNeighbours && entries.len() > 1 {
            entries.swap(0, 1);
        }
        let machine = self.machines.get_mut(&replica).expect("it executes");
        for entry in entries {
            let before = machine.executed();
            self.checker.follows(replica, before, entry.index)?;
            machine.state.push((entry.index, entry.term, entry.payload));
        }
        Ok(())
    }

    fn check(&mut self, replica: ReplicaId) -> Result<(), String> {
        let machine = self.machines.get_mut(&replica).expect("it is checked");
        let Some(log) = &machine.log else { return Ok(()) };
        let status = log.status();
        if self.plan.hand_out == HandOut::AfterMajority && machine.executed() > status.committed {
            return Err(format!("{replica} executed {} before it was committed", machine.executed()));
        }
        if log.in_flight() as u64 > status.last - status.committed {
            return Err(format!("{replica} has more in flight than its log has entries: {status:?}"));
        }
        while let Some(entry) = machine.state.get(machine.verified) {
            if entry.0 > status.committed {
                break;
            }
            self.checker.committed(replica, entry)?;
            machine.verified += 1;
        }
        self.checker.leads(replica, machine.life, log.role(), machine.executed())
    }

    fn propose_somewhere(&mut self) -> Result<(), String> {
        let replica = self.any();
        let ready = self.leader().unwrap_or(replica);
        for _ in 0..self.random.within(1, 4) {
            self.propose(ready)?;
        }
        Ok(())
    }

    /// Proposes a payload that is like no other. Whether it was taken.
    pub fn propose(&mut self, replica: ReplicaId) -> Result<bool, String> {
        self.proposals += 1;
        let payload = Bytes::from(format!("payload {}", self.proposals));
        let Some(log) = self.machines.get_mut(&replica).and_then(|machine| machine.log.as_mut()) else {
            return Ok(false);
        };
        let is_taken = log.propose(payload).is_ok();
        if is_taken != log.role().may_propose() {
            return Err(format!("{replica} took a proposal as {:?}: {is_taken}", log.role()));
        }
        self.advance(replica)?;
        Ok(is_taken)
    }

    /// Writes a checkpoint, lets the log begin after it, and removes segments.
    pub fn checkpoint(&mut self, replica: ReplicaId) {
        let slack = self.random.within(0, self.plan.slack);
        let machine = self.machines.get_mut(&replica).expect("it writes a checkpoint");
        let Some(log) = &mut machine.log else { return };
        let status = log.status();
        let Some(start) = log.start_at(status.handed_out.min(status.committed)) else { return };
        let state = machine.state.iter().filter(|(index, _, _)| *index <= start.index).cloned().collect();
        let index = start.index;
        machine.checkpoint = Some(Checkpoint { start, state });
        log.compact(index.saturating_sub(slack));
        let remove_through = Some(log.status().start);
        let records = log.restatement();
        self.write(replica, Write { number: 0, records, must_sync: true, index_max: None, remove_through });
    }

    fn transfer(&mut self, from: ReplicaId, request: SnapshotRequest) {
        let SnapshotRequest { to, index_min } = request;
        let now = self.now;
        let machine = self.machines.get_mut(&from).expect("it leads");
        if machine.transfers.get(&to).is_some_and(|until| *until > now) {
            return;
        }
        if machine.checkpoint.as_ref().is_none_or(|checkpoint| checkpoint.start.index < index_min) {
            self.checkpoint(from);
        }
        let machine = self.machines.get_mut(&from).expect("it leads");
        let Some(checkpoint) = machine.checkpoint.clone() else { return };
        machine.transfers.insert(to, now + 60_000);
        if self.is_healed || !self.random.permille(self.plan.loss) {
            self.later(5_000, 60_000, Event::Snapshot { from, to, checkpoint });
        }
    }

    fn install(&mut self, from: ReplicaId, to: ReplicaId, checkpoint: Checkpoint) -> Result<(), String> {
        if self.cut.contains(&(from, to)) {
            return Ok(());
        }
        let Some(machine) = self.machines.get_mut(&to) else { return Ok(()) };
        let Some(log) = &mut machine.log else { return Ok(()) };
        if checkpoint.start.index <= log.status().committed {
            return Ok(());
        }
        match log.snapshot_installed(checkpoint.start.clone()) {
            Ok(()) => {
                machine.state = checkpoint.state.clone();
                machine.verified = machine.state.len();
                machine.checkpoint = Some(checkpoint);
                self.snapshots_installed += 1;
                self.advance(to)
            }
            Err(SnapshotError::Leading | SnapshotError::NotMember { .. }) => Ok(()),
            Err(error) => Err(format!("{to} can not install the checkpoint: {error}")),
        }
    }

    /// Entries that were executed early have been overwritten: the database goes back to its checkpoint.
    fn go_back(&mut self, replica: ReplicaId, index: u64) -> Result<(), String> {
        self.overwritten += 1;
        let machine = self.machines.get_mut(&replica).expect("it goes back");
        if machine.executed() < index {
            return Err(format!(
                "{replica} is told that {index} was overwritten, and is at {}",
                machine.executed()
            ));
        }
        let Some(checkpoint) = machine.checkpoint.clone() else {
            // There is only the beginning to go back to, which a restart does.
            machine.crash(&mut self.random);
            return self.restart(replica);
        };
        machine.state = checkpoint.state;
        machine.verified = machine.state.len();
        let log = machine.log.as_mut().expect("it is up");
        log.snapshot_installed(checkpoint.start)
            .map_err(|error| format!("{replica} can not go back: {error}"))
    }

    fn fault(&mut self) {
        let replica = self.any();
        let other = self.any();
        match self.random.below(8) {
            0..=2 => self.crash_for_a_while(replica),
            3 => {
                self.cut.insert((replica, other));
            }
            4 => {
                for one in self.machines.keys().filter(|one| **one != replica) {
                    self.cut.extend([(replica, *one), (*one, replica)]);
                }
            }
            5 => {
                let log = self.machines.get_mut(&replica).and_then(|machine| machine.log.as_mut());
                if let Some(log) = log {
                    log.transfer_leadership(other);
                }
            }
            _ => self.cut.clear(),
        }
    }

    fn crash_for_a_while(&mut self, replica: ReplicaId) {
        let machine = self.machines.get_mut(&replica).expect("it is one of the group");
        if machine.log.is_some() {
            machine.crash(&mut self.random);
            self.later(1_000, 500_000, Event::Restart { replica });
        }
    }

    pub fn crash(&mut self, replica: ReplicaId) {
        self.machines.get_mut(&replica).expect("it is one of the group").crash(&mut self.random);
    }

    pub fn restart(&mut self, replica: ReplicaId) -> Result<(), String> {
        let now = self.now;
        let Some(machine) = self.machines.get_mut(&replica) else { return Ok(()) };
        if machine.log.is_some() {
            return Ok(());
        }
        machine.start()?;
        machine.log.as_mut().expect("it has just started").tick(now);
        self.advance(replica)
    }

    /// Lets the leader propose some membership: of those who are far enough, in which at least one voter is left.
    fn change_somehow(&mut self) -> Result<(), String> {
        let (replica, other) = (self.any(), self.any());
        let Some(leader) = self.leader() else { return Ok(()) };
        let log = self.machines[&leader].log.as_ref().expect("it leads");
        let (status, membership) = (log.status(), log.membership().clone());
        let (mut voters, mut learners) = (membership.voters.clone(), membership.learners.clone());
        for changed in [replica, other] {
            let is_close = |follower: &FollowerStatus| {
                follower.replica == changed && follower.matched + 5 >= status.committed
            };
            if let Some(at) = voters.iter().position(|voter| *voter == changed) {
                voters.remove(at);
                if self.random.permille(300) {
                    learners.push(changed);
                }
            } else if let Some(at) = learners.iter().position(|learner| *learner == changed) {
                learners.remove(at);
                if status.followers.iter().any(is_close) {
                    voters.push(changed);
                }
            } else {
                learners.push(changed);
            }
        }
        match self.log(leader).change_membership(&voters, &learners) {
            Ok(()) => self.changes += 1,
            Err(MembershipError::UnderWay | MembershipError::Invalid(_)) => {}
            Err(error) => {
                return Err(format!("{leader} can not change to {voters:?}, {learners:?}: {error}"));
            }
        }
        self.advance(leader)
    }

    fn any(&mut self) -> ReplicaId {
        let number = self.random.below(self.machines.len() as u64);
        let nth = usize::try_from(number).expect("small");
        *self.machines.keys().nth(nth).expect("one of them")
    }

    /// The replica that may propose in the newest term.
    pub fn leader(&self) -> Option<ReplicaId> {
        let leads = |machine: &Machine| match machine.log.as_ref()?.role() {
            Role::Leader { term, ready: true } => Some((term, machine.replica)),
            _ => None,
        };
        self.machines.values().filter_map(leads).max().map(|(_, replica)| replica)
    }

    pub fn log(&mut self, replica: ReplicaId) -> &mut RaftLog {
        self.machines.get_mut(&replica).and_then(|machine| machine.log.as_mut()).expect("it is up")
    }

    /// Ends all faults, and waits until the members have all executed the same, with new entries among it.
    pub fn heal(&mut self) -> Result<(), String> {
        self.is_healed = true;
        self.cut.clear();
        for replica in self.machines.keys().copied().collect::<Vec<_>>() {
            self.restart(replica)?;
        }
        let before = self.checker.committed.len();
        self.run_until(20_000_000, |group| {
            group.leader().is_some() && group.checker.committed.len() > before + 5
        })?;
        self.plan.proposal_interval = u64::MAX / 4;
        self.events.retain(|_, event| !matches!(event, Event::Proposal));
        self.run_until(20_000_000, Group::is_even)
    }

    /// Whether all members have executed all that is committed.
    pub fn is_even(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        let members = self.machines[&leader].log.as_ref().expect("it leads").membership();
        let expected: Vec<_> = self
            .checker
            .committed
            .iter()
            .map(|(index, (term, payload))| (*index, *term, payload.clone()))
            .collect();
        let member = |machine: &&Machine| members.contains(machine.replica);
        self.machines.values().filter(member).all(|machine| machine.state == expected)
    }

    pub fn describe(&self) -> String {
        let line = |machine: &Machine| {
            let log = machine.log.as_ref().map(|log| (log.role(), log.status(), log.membership().clone()));
            format!("{} in life {}: {log:?}, executed {}", machine.replica, machine.life, machine.executed())
        };
        let lines: Vec<String> = self.machines.values().map(line).collect();
        format!("at {}: {} committed\n{}", self.now, self.checker.committed.len(), lines.join("\n"))
    }
}
