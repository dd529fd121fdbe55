//! A client's view of a database, wherever it runs: calls and snapshots.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ordain_db::data::{Direction, Key, KeyRange, Owner, Schema};
use ordain_db::error::{Error, Outcome};
use ordain_db::hash::Digest;
use ordain_db::message::{ClientRequest, Operation, Page, RequestId};
use ordain_db::node::{Details, Status};
use ordain_db::position::{Epoch, PartitionId, Position};
use ordain_db::procedure::{Catalog, Footprint, Procedure, ProcedureId, decode_output, encode_arguments};
use serde::de::DeserializeOwned;

use crate::caller::{Caller, Kept, Pending};
use crate::early::Early;
use crate::port::Port;

/// How often it is asked whether a checkpoint is there.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(5);

/// Rows that a snapshot fetches at a time.
const PAGE_ROWS: u32 = 4096;

/// A registered procedure of type `P`: what [`Connection::call`] takes.
pub struct Handle<P> {
    id: ProcedureId,
    procedure: PhantomData<fn() -> P>,
}

impl<P> Handle<P> {
    pub(crate) fn new(id: ProcedureId) -> Handle<P> {
        Handle { id, procedure: PhantomData }
    }
}

impl<P> Clone for Handle<P> {
    fn clone(&self) -> Handle<P> {
        *self
    }
}

impl<P> Copy for Handle<P> {}

/// See the [module](self).
pub struct Connection {
    caller: Arc<Caller>,
    catalog: Catalog,
}

impl Connection {
    /// A new client of the cluster behind `port`.
    ///
    /// # Errors
    /// When the operating system gives no randomness to draw a client number from.
    pub fn new(port: Arc<dyn Port>, catalog: Catalog) -> Result<Connection, Error> {
        Ok(Connection { caller: Arc::new(Caller::new(port)?), catalog })
    }

    /// The database's tables.
    pub fn schema(&self) -> &Schema {
        &self.catalog.schema
    }

    /// The database's tables and procedures.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Finds a registered procedure by its name. The caller vouches for its type.
    pub fn handle<P: Procedure>(&self, name: &str) -> Option<Handle<P>> {
        self.catalog.procedures.find(name).map(Handle::new)
    }

    /// Calls a procedure and blocks until it has committed or failed.
    ///
    /// # Errors
    /// See [`Error`]: each tells what to do.
    pub fn call<P: Procedure>(
        &self,
        procedure: Handle<P>,
        arguments: &P::Arguments,
    ) -> Result<P::Output, Error> {
        let pending = self.begin(procedure, arguments)?;
        decode_output(&pending.wait()?)
    }

    /// Calls a procedure; the future is ready when it has committed or failed. The call is under way before the future is
    /// first polled, and goes on when the future is dropped.
    pub fn call_async<P: Procedure>(
        &self,
        procedure: Handle<P>,
        arguments: &P::Arguments,
    ) -> impl Future<Output = Result<P::Output, Error>> + Send + use<P> {
        let pending = self.begin(procedure, arguments);
        async move { decode_output(&pending?.await?) }
    }

    fn begin<P: Procedure>(&self, procedure: Handle<P>, arguments: &P::Arguments) -> Result<Pending, Error> {
        let arguments = encode_arguments(arguments)?;
        self.submit(procedure.id, arguments.into())
    }

    /// Sends a call with encoded arguments to a partition that takes part in it.
    ///
    /// # Errors
    /// When the procedure cannot declare its footprint for these arguments.
    pub fn submit(&self, procedure: ProcedureId, arguments: Bytes) -> Result<Pending, Error> {
        let home = self.home_of(procedure, &arguments)?;
        Ok(self.caller.order(home, Operation::Call { procedure, arguments }))
    }

    /// The partition that orders a call: one that takes part in it.
    fn home_of(&self, procedure: ProcedureId, arguments: &Bytes) -> Result<PartitionId, Error> {
        if self.caller.partitions() == 1 {
            return Ok(PartitionId(0));
        }
        let Catalog { schema, procedures } = &self.catalog;
        let mut footprint = Footprint::default();
        let partitions = self.caller.partitions();
        procedures.declare(procedure, arguments, schema, partitions, &mut footprint)?;
        Ok(footprint.reporter(PartitionId(0)))
    }

    /// Runs a procedure that only reads, on the newest state: it sees every transaction that was answered before. Where one process holds
    /// all there is, that takes no place in the order and writes nothing to the log; elsewhere it is a call. It fails if it writes.
    ///
    /// # Errors
    /// See [`Error`]: each tells what to do.
    pub fn read<P: Procedure>(
        &self,
        procedure: Handle<P>,
        arguments: &P::Arguments,
    ) -> Result<P::Output, Error> {
        let arguments = encode_arguments(arguments)?;
        decode_output(&self.submit_read(procedure.id, arguments.into())?.wait()?)
    }

    /// Sends a read of the newest state with encoded arguments; see [`Connection::read`].
    ///
    /// # Errors
    /// When the procedure cannot declare its footprint for these arguments.
    pub fn submit_read(&self, procedure: ProcedureId, arguments: Bytes) -> Result<Pending, Error> {
        let home = self.home_of(procedure, &arguments)?;
        Ok(self.caller.order(home, Operation::Read { procedure, arguments }))
    }

    /// Calls a procedure and blocks until the call has its place in the order, as durable and as replicated as the cluster promises:
    /// from then on nothing but its own logic can abort it. What becomes of it, [`Early::outcome`] tells. A call whose keys depend on
    /// data is acknowledged when it is computed, since it may start over until then.
    ///
    /// # Errors
    /// See [`Error`]: each tells what to do. On an engine without an order, [`Error::Invalid`].
    pub fn call_early<P: Procedure>(
        &self,
        procedure: Handle<P>,
        arguments: &P::Arguments,
    ) -> Result<Early<P>, Error> {
        let (pending, kept) = self.begin_early(procedure, arguments)?;
        let position = decode(&pending.wait()?)?;
        Ok(Early::new(Arc::clone(&self.caller), kept, position))
    }

    /// The same; the future is ready when the call has its place. The call is under way before the future is first polled, and goes
    /// on when the future is dropped.
    pub fn call_early_async<P: Procedure>(
        &self,
        procedure: Handle<P>,
        arguments: &P::Arguments,
    ) -> impl Future<Output = Result<Early<P>, Error>> + Send + use<P> {
        let begun = self.begin_early(procedure, arguments);
        let caller = Arc::clone(&self.caller);
        async move {
            let (pending, kept) = begun?;
            let position = decode(&pending.await?)?;
            Ok(Early::new(caller, kept, position))
        }
    }

    fn begin_early<P: Procedure>(
        &self,
        procedure: Handle<P>,
        arguments: &P::Arguments,
    ) -> Result<(Pending, Kept), Error> {
        let (procedure, arguments) = (procedure.id, Bytes::from(encode_arguments(arguments)?));
        let home = self.home_of(procedure, &arguments)?;
        Ok(self.caller.order_and_keep(home, Operation::CallEarly { procedure, arguments }))
    }

    /// Opens a consistent snapshot of all partitions: it sees every transaction that committed before this call, and no part
    /// of one that is ordered after it.
    ///
    /// # Errors
    /// When too many snapshots are open.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let Opening { pending, caller, schema } = self.begin_snapshot();
        Ok(Snapshot { at: decode(&pending.wait()?)?, caller, schema })
    }

    /// The same without waiting.
    pub(crate) fn begin_snapshot(&self) -> Opening {
        let pending = self.caller.order(PartitionId(0), Operation::OpenSnapshot);
        Opening { pending, caller: Arc::clone(&self.caller), schema: self.catalog.schema.clone() }
    }

    /// Takes a checkpoint of the whole database, and waits until a replica has it on its disks, but not longer than `limit`; the
    /// end of its epoch. The log before it is removed then.
    ///
    /// # Errors
    /// When the database keeps nothing, the checkpoint cannot be written, or it is not there after `limit`. It may come later
    /// then.
    pub fn checkpoint(&self, limit: Duration) -> Result<Epoch, Error> {
        let begun = Instant::now();
        let left = || limit.saturating_sub(begun.elapsed());
        let epoch: Epoch = loop {
            // Replicas that take turns may have to end another one first.
            match within(&self.caller.order(PartitionId(0), Operation::Checkpoint), left()) {
                Err(Error::Busy(_)) if !left().is_zero() => std::thread::sleep(CHECKPOINT_PAUSE),
                answer => break decode(&answer?)?,
            }
        };
        loop {
            let statuses = self.statuses_within(false, left())?;
            if statuses.iter().any(|status| status.stable_anywhere >= epoch) {
                return Ok(epoch);
            }
            let problems = statuses.iter().filter_map(|status| status.checkpoint_problem.as_ref());
            if let Some((_, problem)) = problems.into_iter().find(|(failed, _)| *failed >= epoch) {
                return Err(Error::Unavailable(format!("the checkpoint was not written: {problem}")));
            }
            std::thread::sleep(CHECKPOINT_PAUSE);
            if left().is_zero() {
                return Err(Error::Unavailable(format!(
                    "no replica has the checkpoint at the end of {epoch} after {limit:?}; it may come later"
                )));
            }
        }
    }

    /// What each partition's node tells about itself.
    ///
    /// # Errors
    /// When a node cannot be asked.
    pub fn statuses(&self, digest: bool) -> Result<Vec<Status>, Error> {
        self.ask_statuses(digest).into_iter().map(|pending| decode(&pending.wait()?)).collect()
    }

    /// The same, but does not wait for longer than `limit`.
    fn statuses_within(&self, digest: bool, limit: Duration) -> Result<Vec<Status>, Error> {
        let begun = Instant::now();
        let asked = self.ask_statuses(digest).into_iter();
        asked.map(|pending| decode(&within(&pending, limit.saturating_sub(begun.elapsed()))?)).collect()
    }

    /// What the nodes of some partitions tell, with what waits in them, each for itself, within `limit`.
    pub(crate) fn details_of(
        &self,
        partitions: &[PartitionId],
        limit: Duration,
    ) -> Vec<Result<Details, Error>> {
        let begun = Instant::now();
        let ask = |partition: &PartitionId| {
            self.caller.send(*partition, |request, _| ClientRequest::Details { request })
        };
        let asked: Vec<Pending> = partitions.iter().map(ask).collect();
        let left = || limit.saturating_sub(begun.elapsed());
        asked.iter().map(|pending| decode(&within(pending, left())?)).collect()
    }

    fn ask_statuses(&self, digest: bool) -> Vec<Pending> {
        (0..self.caller.partitions())
            .map(|partition| self.ask_status(PartitionId(partition), digest))
            .collect()
    }

    fn ask_status(&self, partition: PartitionId, digest: bool) -> Pending {
        self.caller.send(partition, |request, _| ClientRequest::Status { request, digest })
    }

    /// Digest of the state of all partitions, after all that was ordered before it, replayed calls included. Only means something
    /// while nobody calls.
    ///
    /// # Errors
    /// When no snapshot can be opened, or a node cannot be asked.
    pub fn digest(&self) -> Result<Digest, Error> {
        // It opens when everything before it has been executed.
        let _executed = self.snapshot()?;
        let mut digest = Digest::default();
        for status in self.statuses(true)? {
            digest.merge(Digest(status.digest.unwrap_or_default()));
        }
        Ok(digest)
    }
}

/// Waits for the row of a key.
fn row_of(asked: Pending) -> Result<Option<Bytes>, Error> {
    let page: Page = decode(&asked.wait_soon()?)?;
    Ok(page.rows.iter().next().map(|(_, row)| Bytes::copy_from_slice(row)))
}

/// Waits for an answer, but not longer than `limit`.
fn within(pending: &Pending, limit: Duration) -> Outcome {
    pending.wait_for(limit).unwrap_or_else(|| {
        Err(Error::Unavailable("the database has not answered in the time that was given".to_owned()))
    })
}

/// A consistent, unchanging view of all partitions. Nodes keep what it sees until it is dropped.
pub struct Snapshot {
    caller: Arc<Caller>,
    schema: Schema,
    at: Position,
}

/// A snapshot that is being opened. It must be waited for, since one that is open is to be closed.
#[must_use = "wait for it until it is there"]
pub(crate) struct Opening {
    pending: Pending,
    caller: Arc<Caller>,
    schema: Schema,
}

impl Opening {
    /// Blocks for at most `patience`; it may be waited for again after `None`.
    pub(crate) fn wait_for(&self, patience: Duration) -> Option<Result<Snapshot, Error>> {
        let (caller, schema) = (Arc::clone(&self.caller), self.schema.clone());
        let snapshot = |opened: Bytes| Ok(Snapshot { at: decode(&opened)?, caller, schema });
        Some(self.pending.wait_for(patience)?.and_then(snapshot))
    }
}

impl Snapshot {
    /// The position in the global order that the snapshot shows.
    pub fn position(&self) -> Position {
        self.at
    }

    /// The row of a key; read it with [`ordain_db::data::Table::read`].
    ///
    /// # Errors
    /// When the key does not fit the schema or its node cannot be asked.
    pub fn get(&self, key: &Key) -> Result<Option<Bytes>, Error> {
        row_of(self.ask_page(self.holder(key)?, &KeyRange::one(key), Direction::Ascending, 1))
    }

    /// The rows of some keys, in their order. All are asked for at the same time.
    ///
    /// # Errors
    /// As for one.
    pub fn get_all(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Error> {
        let mut places: BTreeMap<PartitionId, Vec<usize>> = BTreeMap::new();
        for (place, key) in keys.iter().enumerate() {
            places.entry(self.holder(key)?).or_default().push(place);
        }
        let ask = |(holder, places): (PartitionId, Vec<usize>)| {
            let asks = places
                .iter()
                .map(|place| self.scan_request(KeyRange::one(&keys[*place]), Direction::Ascending, 1));
            let pendings = self.caller.send_all(holder, asks);
            places.into_iter().zip(pendings)
        };
        let asked: Vec<(usize, Pending)> = places.into_iter().flat_map(ask).collect();
        let mut rows = vec![None; keys.len()];
        for (place, pending) in asked {
            rows[place] = row_of(pending)?;
        }
        Ok(rows)
    }

    /// The partition that is asked for a key.
    fn holder(&self, key: &[u8]) -> Result<PartitionId, Error> {
        Ok(match self.schema.table_of(key)?.owner(key, self.caller.partitions()) {
            Owner::Partition(partition) => partition,
            Owner::Replicated | Owner::Split => PartitionId(0),
        })
    }

    /// All rows of a range with their keys, visited in ascending order of keys within each partition.
    ///
    /// # Errors
    /// The visitor's own, or that a node cannot be asked.
    pub fn scan<F>(&self, range: &KeyRange, mut visit: F) -> Result<(), Error>
    where
        F: FnMut(&[u8], &[u8]) -> Result<(), Error>,
    {
        for partition in self.owners(range)? {
            let mut rest = range.clone();
            loop {
                let page = self.page(partition, &rest, Direction::Ascending, PAGE_ROWS)?;
                for (key, row) in page.rows.iter() {
                    visit(key, row)?;
                }
                match page.rows.last() {
                    Some((last, _)) if page.more => rest = rest.after(last),
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// The partitions that hold the rows of a range; of rows that all have, one.
    ///
    /// # Errors
    /// When the range is of no table.
    pub fn owners(&self, range: &KeyRange) -> Result<impl Iterator<Item = PartitionId> + use<>, Error> {
        Ok(self.schema.holders(range, self.caller.partitions())?)
    }

    /// For each partition the rows of a range that come first in a direction, at most so many, and whether there are more. All are
    /// asked at the same time.
    ///
    /// # Errors
    /// When a node cannot be asked.
    pub fn pages(
        &self,
        ranges: &[(PartitionId, KeyRange)],
        direction: Direction,
        rows: u32,
    ) -> Result<Vec<Page>, Error> {
        let ask =
            |(partition, range): &(PartitionId, KeyRange)| self.ask_page(*partition, range, direction, rows);
        let asked: Vec<Pending> = ranges.iter().map(ask).collect();
        asked.into_iter().map(|pending| decode(&pending.wait_soon()?)).collect()
    }

    /// Runs a procedure that only reads, and only rows that `partition` holds, over what the snapshot shows. Keep the snapshot
    /// until the result is there.
    pub fn submit(&self, partition: PartitionId, procedure: ProcedureId, arguments: Bytes) -> Pending {
        let at = self.at;
        self.caller.send(partition, |request, _| ClientRequest::Read { request, at, procedure, arguments })
    }

    fn page(
        &self,
        partition: PartitionId,
        range: &KeyRange,
        direction: Direction,
        rows: u32,
    ) -> Result<Page, Error> {
        decode(&self.ask_page(partition, range, direction, rows).wait_soon()?)
    }

    fn ask_page(&self, partition: PartitionId, range: &KeyRange, direction: Direction, rows: u32) -> Pending {
        self.caller.send(partition, self.scan_request(range.clone(), direction, rows))
    }

    /// Makes the request for the rows of a range.
    fn scan_request(
        &self,
        range: KeyRange,
        direction: Direction,
        rows: u32,
    ) -> impl FnOnce(RequestId, u64) -> ClientRequest + use<> {
        let at = self.at;
        move |request, _| ClientRequest::Scan { request, at, range, direction, rows }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.caller.tell(PartitionId(0), ClientRequest::CloseSnapshot(self.at));
    }
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    postcard::from_bytes(body).map_err(|error| Error::Unavailable(format!("malformed reply: {error}")))
}
