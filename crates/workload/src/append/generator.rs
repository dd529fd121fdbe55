//! Draws calls.

use arrayvec::ArrayVec;
use ordain_db::error::Error;
use ordain_db::procedure::ProcedureId;

use super::operation::{AbortWhen, Arguments, Operation, RowName};
use super::{OPERATIONS_MAX, Shape};
use crate::part::Homes;
use crate::random::Random;
use crate::{Call, Generator, Part, call};

/// Bits of a call's number that count the calls of one client; those above are the client's number.
const COUNTER_BITS: u32 = 27;

/// Conditions ask for multiples of 1, which always holds, to this.
const MULTIPLE_OF_MAX: i64 = 4;

/// Notes that a range reads at most are drawn from 1 to this.
const RANGE_LIMIT_MAX: i64 = 12;

type Operations = ArrayVec<Operation, OPERATIONS_MAX>;

pub(super) struct Calls {
    transact: ProcedureId,
    shape: Shape,
    homes: Homes,
    random: Random,
    client: u32,
    /// Calls that were drawn.
    count: u64,
}

impl Calls {
    pub(super) fn new(
        transact: ProcedureId,
        shape: Shape,
        seed: u64,
        client: u32,
        homes: Part,
    ) -> Result<Calls, Error> {
        let homes = Homes::new(homes, "sites", 0, i64::from(shape.sites) - 1)?;
        let random = Random::new(seed, "append calls", &[u64::from(client)]);
        Ok(Calls { transact, shape, homes, random, client, count: 0 })
    }

    /// A number that no other call has.
    fn number(&mut self) -> u64 {
        self.count += 1;
        assert!(
            self.count >> COUNTER_BITS == 0,
            "a generator has 2^{COUNTER_BITS} call numbers: make one with a new client number"
        );
        u64::from(self.client) << COUNTER_BITS | self.count
    }

    fn row(&mut self, site: u16, count: u32) -> RowName {
        RowName { site, id: self.random.below(u64::from(count)) as u32 }
    }

    fn list(&mut self, site: u16) -> RowName {
        if self.random.happens(self.shape.hot_list) {
            return RowName { site, id: 0 };
        }
        self.row(site, self.shape.lists_per_site)
    }

    /// What is rare, each at most once: a pointer that is followed, a range, a write that concerns every partition.
    fn rare(&mut self, sites: [u16; 2], operations: &mut Operations) {
        let Shape { pointers_per_site, notes_per_site, settings, .. } = self.shape;
        if self.random.happens(self.shape.dependent) {
            let pointer = self.row(sites[0], pointers_per_site);
            push(operations, Operation::FollowPointer(pointer), self.shape.operations_max);
        }
        if self.random.happens(self.shape.range) {
            let ends = [self.row(sites[0], notes_per_site), self.row(sites[1], notes_per_site)];
            let (from, to) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            let limit = self.random.between(1, RANGE_LIMIT_MAX) as u32;
            push(operations, Operation::ReadNotes { from, to, limit }, self.shape.operations_max);
        }
        if self.random.happens(self.shape.replicated) {
            let setting = self.random.below(u64::from(settings)) as u32;
            push(operations, Operation::WriteSetting(setting), self.shape.operations_max);
        }
    }

    /// What most calls are made of.
    fn usual(&mut self, site: u16, sites: [u16; 2]) -> Operation {
        let Shape { pointers_per_site, notes_per_site, settings, .. } = self.shape;
        match self.random.below(12) {
            0..4 => Operation::ReadList(self.list(site)),
            4..8 => Operation::Append(self.list(site)),
            8 => Operation::InsertNote(self.row(site, notes_per_site)),
            9 => Operation::DeleteNote(self.row(site, notes_per_site)),
            10 => Operation::WriteNote(self.row(site, notes_per_site)),
            _ if self.random.below(2) == 0 => {
                Operation::ReadSetting(self.random.below(u64::from(settings)) as u32)
            }
            _ => {
                let target_site = sites[self.random.below(2) as usize];
                let target = self.list(target_site);
                Operation::MovePointer { pointer: self.row(site, pointers_per_site), target }
            }
        }
    }

    fn operations(&mut self, sites: [u16; 2]) -> Operations {
        let mut operations = Operations::new();
        self.rare(sites, &mut operations);
        let most = self.shape.operations_max;
        let drawn = self.random.between(1, most as i64) as usize;
        if sites[0] != sites[1] {
            // So that a call that is to touch two sites does.
            let (home, other) = (self.list(sites[0]), self.list(sites[1]));
            let read = self.random.below(2) == 0;
            push(&mut operations, Operation::Append(other), most);
            let first = if read { Operation::ReadList(home) } else { Operation::Append(home) };
            push(&mut operations, first, most);
        }
        while operations.len() < drawn {
            let site = sites[self.random.below(2) as usize];
            let operation = self.usual(site, sites);
            operations.push(operation);
        }
        for place in (1..operations.len()).rev() {
            operations.swap(place, self.random.below(place as u64 + 1) as usize);
        }
        operations
    }

    fn abort(&mut self, operations: usize) -> Option<AbortWhen> {
        self.random.happens(self.shape.abort).then(|| AbortWhen {
            operation: self.random.below(operations as u64) as u8,
            multiple_of: self.random.between(1, MULTIPLE_OF_MAX) as u64,
        })
    }
}

/// Adds an operation if the call may have one more.
fn push(operations: &mut Operations, operation: Operation, most: usize) {
    if operations.len() < most {
        operations.push(operation);
    }
}

impl Generator for Calls {
    fn next(&mut self) -> Call {
        let home = self.homes.draw(&mut self.random) as u16;
        let count = u64::from(self.shape.sites);
        let other = if count > 1 && self.random.happens(self.shape.multi_site) {
            ((u64::from(home) + 1 + self.random.below(count - 1)) % count) as u16
        } else {
            home
        };
        let operations = self.operations([home, other]);
        let abort = self.abort(operations.len());
        let arguments = Arguments { number: self.number(), operations, abort };
        call(self.transact, &arguments, u32::from(home))
    }
}
