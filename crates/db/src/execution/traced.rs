//! Runs that tell what they read and wrote, for checkers.

use bytes::Bytes;

use super::remote_reads::Received;
use super::run::{Executor, Reads, verdict_of};
use super::trace::{Scope, Version};
use super::{Call, Context, Executed};
use crate::data::Direction;
use crate::failpoint::{Failpoint, Failpoints, NoFailpoints};
use crate::message::Verdict;

impl Executor {
    /// Runs a call as [`execute`](Executor::execute) does, and tells what was read and written.
    #[cold]
    pub(super) fn execute_traced<F: Failpoints>(
        &mut self,
        call: &Call,
        received: &Received,
        context: &mut Context<'_>,
    ) -> Verdict {
        let (verdict, reads) = match self.prepare(call, received, context) {
            Ok(()) => {
                let reads = self.reads(call, Reads::of(received), |_| true, context);
                (self.run::<F>(call, received, context), reads)
            }
            Err(stop) => (verdict_of(stop, call, context.catalog), Vec::new()),
        };
        let committed = matches!(verdict, Verdict::Committed(_));
        let writes = if committed { self.written::<F>(call, context) } else { Vec::new() };
        let (position, request) = (call.position, call.request);
        let executed =
            Executed { position, request, verdict: verdict.clone(), scope: Scope::Whole, reads, writes };
        context.effects.executed.get_or_insert_default().push(executed);
        verdict
    }

    /// The rows of the read set that the logic is given.
    pub(super) fn reads(
        &mut self,
        call: &Call,
        reads: Reads<'_>,
        selects: impl Fn(usize) -> bool,
        context: &mut Context<'_>,
    ) -> Vec<Version> {
        self.over::<NoFailpoints, _>(call, reads, context, false, |run, _, _| {
            let mut rows = Vec::new();
            let footprint = run.footprint;
            for (index, entry) in footprint.keys().iter().enumerate() {
                if entry.access.read && selects(index) {
                    let key = Bytes::copy_from_slice(footprint.key(entry));
                    rows.push((key, run.base(index).map(Bytes::copy_from_slice)));
                }
            }
            for (index, entry) in footprint.ranges().iter().enumerate().filter(|(_, entry)| entry.access.read)
            {
                let found = run.scan_base(index, &entry.range, Direction::Ascending, usize::MAX).into_iter();
                rows.extend(found.map(|found| (Bytes::copy_from_slice(found.key.bytes()), Some(found.row))));
            }
            rows
        })
    }

    /// The local keys that the last run wrote, with their rows.
    fn written<F: Failpoints>(&self, call: &Call, context: &Context<'_>) -> Vec<Version> {
        let schema = &context.catalog.schema;
        let keys =
            self.writes.operations().iter().map(|(target, _)| self.writes.key(*target, &call.footprint));
        let mut keys: Vec<&[u8]> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        let local = keys.into_iter().filter(|key| {
            let owner = schema.owner(key, context.partitions);
            owner.is_ok_and(|owner| owner.includes(context.me)) || F::on(Failpoint::ApplyNonLocalWrite)
        });
        let written = local.map(|key| {
            let record = context.storage.locate(key, crate::hash::key_hash(key));
            let row = record.map(|record| Bytes::copy_from_slice(context.storage.row(record)));
            (Bytes::copy_from_slice(key), row)
        });
        written.collect()
    }
}
