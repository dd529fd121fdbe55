//! Streams that wait for whoever polls the region: for rows of leaves, for a pause, for a decision.
#![expect(
    clippy::disallowed_types,
    reason = "streams of DataFusion may go to other threads; here they stay in one, and no lock is waited for"
)]

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{DataFusionError, Result};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures_core::Stream;

/// Rows that go from operator to operator at a time.
pub(crate) const BATCH_ROWS: usize = 8192;

/// How many batches come out of a join before it pauses.
const BATCHES_BETWEEN_PAUSES: usize = 16;

/// What the streams of a region tell whoever polls it.
#[derive(Default, Debug)]
pub(crate) struct Exchange {
    /// Batches of each leaf that nobody has come to yet, and whether there are no more.
    leaves: Vec<(VecDeque<RecordBatch>, bool)>,
    /// Bytes of these batches, and of those that wait for decisions.
    bytes: usize,
    /// The leaf that somebody waits for.
    wanted: Option<usize>,
    /// Whether somebody waits for nothing, but lets others look.
    pauses: bool,
}

pub(crate) type Shared = Arc<Mutex<Exchange>>;

pub(crate) type SharedTap = Arc<Mutex<Tap>>;

pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // What it protects is right after each step.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a stream has nothing yet.
pub(crate) enum Waits {
    ForLeaf(usize),
    Pause,
}

impl Exchange {
    pub(crate) fn new(leaves: usize) -> Shared {
        Arc::new(Mutex::new(Exchange {
            leaves: (0..leaves).map(|_| Default::default()).collect(),
            ..Exchange::default()
        }))
    }

    pub(crate) fn push(&mut self, leaf: usize, batch: RecordBatch) {
        self.bytes += batch.get_array_memory_size();
        self.leaves[leaf].0.push_back(batch);
    }

    pub(crate) fn end(&mut self, leaf: usize) {
        self.leaves[leaf].1 = true;
    }

    pub(crate) fn clear(&mut self, leaf: usize) {
        let bytes: usize = self.leaves[leaf].0.drain(..).map(|batch| batch.get_array_memory_size()).sum();
        self.bytes -= bytes;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Why a poll has come to nothing; `None` if nobody has said so.
    pub(crate) fn take_waits(&mut self) -> Option<Waits> {
        let pauses = std::mem::take(&mut self.pauses);
        self.wanted.take().map(Waits::ForLeaf).or_else(|| pauses.then_some(Waits::Pause))
    }
}

/// What is special of a plan that comes in between; see [`Between`].
#[derive(Debug)]
enum Way {
    /// The rows of a leaf.
    Leaf(usize),
    /// Those of its input, with pauses.
    Pausing,
    /// Those of its input, some of which may have been gathered before.
    Tap(SharedTap),
}

/// A plan that ties others to the exchange.
#[derive(Debug)]
pub(crate) struct Between {
    way: Way,
    input: Option<Arc<dyn ExecutionPlan>>,
    shared: Shared,
    properties: Arc<PlanProperties>,
}

/// Rows that are to be joined with those of a leaf, while it is not decided how these are read.
#[derive(Default)]
pub(crate) struct Tap {
    pub(crate) stream: Option<SendableRecordBatchStream>,
    pub(crate) gathered: VecDeque<RecordBatch>,
    pub(crate) rows: usize,
    pub(crate) is_ended: bool,
}

impl fmt::Debug for Tap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tap").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Tap {
    /// Gathers one more batch, if there is one.
    pub(crate) fn poll(&mut self, shared: &Shared, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(DataFusionError::Internal("a tap without a stream".to_owned())));
        };
        match stream.as_mut().poll_next(context) {
            Poll::Ready(Some(Ok(batch))) => {
                self.rows += batch.num_rows();
                lock(shared).bytes += batch.get_array_memory_size();
                self.gathered.push_back(batch);
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(None) => self.is_ended = true,
            Poll::Pending => return Poll::Pending,
        }
        Poll::Ready(Ok(()))
    }
}

impl Between {
    fn new(
        way: Way,
        input: Option<Arc<dyn ExecutionPlan>>,
        schema: SchemaRef,
        shared: &Shared,
    ) -> Arc<Between> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Arc::new(Between { way, input, shared: Arc::clone(shared), properties: Arc::new(properties) })
    }

    pub(crate) fn leaf(number: usize, schema: SchemaRef, shared: &Shared) -> Arc<Between> {
        Between::new(Way::Leaf(number), None, schema, shared)
    }

    pub(crate) fn pausing(input: Arc<dyn ExecutionPlan>, shared: &Shared) -> Arc<Between> {
        let schema = input.schema();
        Between::new(Way::Pausing, Some(input), schema, shared)
    }

    pub(crate) fn tap(input: Arc<dyn ExecutionPlan>, shared: &Shared) -> (Arc<Between>, SharedTap) {
        let (schema, tap) = (input.schema(), Arc::new(Mutex::new(Tap::default())));
        (Between::new(Way::Tap(Arc::clone(&tap)), Some(input), schema, shared), tap)
    }
}

impl DisplayAs for Between {
    fn fmt_as(&self, _: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.way)
    }
}

impl ExecutionPlan for Between {
    fn name(&self) -> &str {
        "Between"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.iter().collect()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // Only optimizers ask for it, and none runs.
        Err(DataFusionError::NotImplemented("other inputs".to_owned()))
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Err(DataFusionError::NotImplemented("other inputs".to_owned()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.as_ref().map(|input| input.execute(partition, context)).transpose()?;
        let (shared, schema) = (Arc::clone(&self.shared), self.schema());
        Ok(Box::pin(match (&self.way, input) {
            (Way::Leaf(number), None) => Flow { source: Source::Leaf(*number), shared, schema },
            (Way::Pausing, Some(input)) => Flow { source: Source::Pausing(input, 0), shared, schema },
            (Way::Tap(tap), Some(input)) => {
                lock(tap).stream = Some(input);
                Flow { source: Source::Tap(Arc::clone(tap)), shared, schema }
            }
            _ => return Err(DataFusionError::Internal("a plan between others without them".to_owned())),
        }))
    }
}

enum Source {
    Leaf(usize),
    /// With the number of batches since the last pause.
    Pausing(SendableRecordBatchStream, usize),
    Tap(SharedTap),
}

struct Flow {
    source: Source,
    shared: Shared,
    schema: SchemaRef,
}

impl RecordBatchStream for Flow {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Stream for Flow {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Flow { source, shared, .. } = self.get_mut();
        match source {
            Source::Leaf(number) => {
                let exchange = &mut *lock(shared);
                let (batches, is_ended) = &mut exchange.leaves[*number];
                if let Some(batch) = batches.pop_front() {
                    exchange.bytes -= batch.get_array_memory_size();
                    return Poll::Ready(Some(Ok(batch)));
                }
                if *is_ended {
                    return Poll::Ready(None);
                }
                exchange.wanted = Some(*number);
                Poll::Pending
            }
            Source::Pausing(input, since) => {
                if *since >= BATCHES_BETWEEN_PAUSES {
                    *since = 0;
                    lock(shared).pauses = true;
                    return Poll::Pending;
                }
                let polled = input.as_mut().poll_next(context);
                *since += usize::from(polled.is_ready());
                polled
            }
            Source::Tap(tap) => {
                let tap = &mut *lock(tap);
                if tap.gathered.is_empty() && !tap.is_ended {
                    match tap.poll(shared, context) {
                        Poll::Ready(Ok(())) => {}
                        Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                        Poll::Pending => return Poll::Pending,
                    }
                }
                Poll::Ready(tap.gathered.pop_front().map(|batch| {
                    lock(shared).bytes -= batch.get_array_memory_size();
                    Ok(batch)
                }))
            }
        }
    }
}
