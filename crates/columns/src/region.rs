//! A region that runs: its plan is a stream, which is polled as far as it goes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::SendableRecordBatchStream;
use ordain_sql::execute::columns::{Leaf, Next, Region, Trouble};
use ordain_sql::execute::{Interrupt, Row};
use ordain_sql::types::Datum;
use ordain_sql::types::aggregate::average;

use crate::aggregates::Overflowed;
use crate::exchange::{BATCH_ROWS, Exchange, Shared, SharedTap, Waits, lock};
use crate::kind::{Builder, Kind, schema_of};
use crate::plans::{Plan, Plans};
use crate::pool::Pool;
use crate::translate::{LeafKinds, Output, Translated};

/// Bytes of rows that make a batch, if so many rows do not come first.
const BATCH_BYTES: usize = 4 << 20;

/// Most bytes of a row of a leaf. Joins copy values into each pair, many at a time, and nobody counts these copies.
const ROW_BYTES_MAX: usize = 2 << 10;

/// Polls that may come to nothing without anybody saying why.
const IDLE_POLLS_MAX: usize = 1000;

/// A region, which is a plan from the first time on that somebody asks for its rows.
pub(crate) struct Columnar<'p> {
    translated: Translated<'p>,
    exchange: Shared,
    leaves: Vec<Columns>,
    pool: Arc<Pool>,
    told: Arc<Interrupt>,
    running: Option<Running>,
}

/// The rows of a leaf that make the next batch.
struct Columns {
    schema: SchemaRef,
    builders: Vec<Builder>,
    rows: usize,
    bytes: usize,
}

struct Running {
    nodes: Vec<(usize, Plan)>,
    overflowed: Overflowed,
    stream: SendableRecordBatchStream,
    /// What waits for the decision on a leaf, and the kinds of its columns.
    taps: BTreeMap<usize, (SharedTap, Vec<Kind>)>,
}

impl Columns {
    fn new(LeafKinds(kinds): &LeafKinds) -> Columns {
        let builders = kinds.iter().map(|kind| Builder::new(*kind)).collect();
        Columns { schema: schema_of(kinds), builders, rows: 0, bytes: 0 }
    }

    /// What has come so far, if that is anything.
    fn take(&mut self) -> Result<Option<RecordBatch>, Trouble> {
        if self.rows == 0 {
            return Ok(None);
        }
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options);
        batch.map(Some).map_err(|error| Trouble::Other(error.to_string()))
    }
}

impl<'p> Columnar<'p> {
    pub(crate) fn new(translated: Translated<'p>, bytes: usize, told: &Arc<Interrupt>) -> Columnar<'p> {
        let exchange = Exchange::new(translated.leaves.len());
        let leaves = translated.kinds.iter().map(Columns::new).collect();
        let told = Arc::clone(told);
        Columnar { translated, exchange, leaves, pool: Pool::new(bytes), told, running: None }
    }

    fn running(&mut self) -> Result<&mut Running, Trouble> {
        let running = match self.running.take() {
            Some(running) => running,
            None => {
                let mut plans = Plans::new((&self.exchange, &self.told), &self.translated.kinds);
                let plan = plans.build(&self.translated.root).map_err(trouble)?;
                let context = self.pool.context().map_err(trouble)?;
                let stream = plan.execute(0, context).map_err(trouble)?;
                Running { nodes: plans.nodes, overflowed: plans.overflowed, stream, taps: plans.taps }
            }
        };
        Ok(self.running.insert(running))
    }

    /// Polls until something comes of it.
    fn poll<T>(
        &mut self,
        mut poll: impl FnMut(&mut Running, &mut Context<'_>) -> Poll<datafusion_common::Result<T>>,
    ) -> Result<Result<T, Next>, Trouble> {
        let exchange = Arc::clone(&self.exchange);
        let running = self.running()?;
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..IDLE_POLLS_MAX {
            let polled = poll(running, &mut context);
            // What comes of such a sum is of no use, wherever it has come to.
            if running.overflowed.load(Ordering::Relaxed) {
                return Err(Trouble::Other("a sum does not fit".to_owned()));
            }
            match polled {
                Poll::Ready(done) => return done.map(Ok).map_err(trouble),
                Poll::Pending => match lock(&exchange).take_waits() {
                    Some(Waits::ForLeaf(leaf)) => return Ok(Err(Next::Leaf(leaf))),
                    Some(Waits::Pause) => return Ok(Err(Next::Pause)),
                    None => {}
                },
            }
        }
        Err(Trouble::Other("a part of a query waits for nothing".to_owned()))
    }

    fn tap(&mut self, leaf: usize) -> Result<(SharedTap, Vec<Kind>), Trouble> {
        let tap = self.running()?.taps.get(&leaf).cloned();
        tap.ok_or_else(|| Trouble::Other("nothing looks this leaf up".to_owned()))
    }

    fn flush(&mut self, leaf: usize) -> Result<(), Trouble> {
        if let Some(batch) = self.leaves[leaf].take()? {
            lock(&self.exchange).push(leaf, batch);
        }
        Ok(())
    }
}

impl<'p> Region<'p> for Columnar<'p> {
    fn leaves(&self) -> &[Leaf<'p>] {
        &self.translated.leaves
    }

    fn go_on(&mut self) -> Result<Next, Trouble> {
        let batch =
            self.poll(|running, context| running.stream.as_mut().poll_next(context).map(Option::transpose))?;
        Ok(match batch {
            Ok(Some(batch)) => Next::Rows(rows_of(&batch, &self.translated.outputs)?),
            Ok(None) => Next::End,
            Err(next) => next,
        })
    }

    fn gather(&mut self, leaf: usize, rows: usize) -> Result<Next, Trouble> {
        let (tap, _) = self.tap(leaf)?;
        let exchange = Arc::clone(&self.exchange);
        loop {
            if lock(&tap).rows >= rows {
                return Ok(Next::Enough);
            }
            if lock(&tap).is_ended {
                return Ok(Next::End);
            }
            if let Err(next) = self.poll(|_, context| lock(&tap).poll(&exchange, context))? {
                return Ok(next);
            }
        }
    }

    fn gathered(&self, leaf: usize) -> usize {
        let tap = self.running.as_ref().and_then(|running| running.taps.get(&leaf));
        tap.map_or(0, |(tap, _)| lock(tap).rows)
    }

    fn take_gathered(&mut self, leaf: usize) -> Result<Vec<Row>, Trouble> {
        let (tap, kinds) = self.tap(leaf)?;
        let outputs: Vec<Output> =
            kinds.into_iter().enumerate().map(|(place, kind)| Output::Column(place, kind)).collect();
        let batches = std::mem::take(&mut lock(&tap).gathered);
        let mut rows = Vec::new();
        for batch in batches {
            rows.append(&mut rows_of(&batch, &outputs)?);
        }
        Ok(rows)
    }

    fn push(&mut self, leaf: usize, row: &[Datum]) -> Result<bool, Trouble> {
        let columns = &mut self.leaves[leaf];
        let before = columns.bytes;
        if columns.builders.len() != row.len() {
            return Err(Trouble::Other("a row with other columns than its query".to_owned()));
        }
        for (builder, value) in columns.builders.iter_mut().zip(row) {
            let added = builder.push(value);
            columns.bytes += added.ok_or_else(|| Trouble::Other("a value of another kind".to_owned()))?;
        }
        if columns.bytes - before > ROW_BYTES_MAX {
            return Err(Trouble::Other("a long row".to_owned()));
        }
        columns.rows += 1;
        let is_full = columns.rows >= BATCH_ROWS || columns.bytes >= BATCH_BYTES;
        if is_full {
            self.flush(leaf)?;
        }
        Ok(is_full)
    }

    fn clear(&mut self, leaf: usize) {
        self.leaves[leaf] = Columns::new(&self.translated.kinds[leaf]);
        lock(&self.exchange).clear(leaf);
    }

    fn end(&mut self, leaf: usize) -> Result<(), Trouble> {
        self.flush(leaf)?;
        lock(&self.exchange).end(leaf);
        Ok(())
    }

    fn held(&self) -> usize {
        use datafusion_execution::memory_pool::MemoryPool;
        let building: usize = self.leaves.iter().map(|columns| columns.bytes).sum();
        self.pool.reserved() + lock(&self.exchange).bytes() + building
    }

    fn given(&self) -> Vec<(usize, u64)> {
        let nodes = self.running.iter().flat_map(|running| &running.nodes);
        let rows = |plan: &Plan| plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or_default();
        nodes.map(|(node, plan)| (*node, rows(plan) as u64)).collect()
    }
}

fn rows_of(batch: &RecordBatch, outputs: &[Output]) -> Result<Vec<Row>, Trouble> {
    let mut rows: Vec<Row> = (0..batch.num_rows()).map(|_| Row::with_capacity(outputs.len())).collect();
    for output in outputs {
        let value = |place: usize| match output {
            Output::Column(column, kind) => kind.datum(batch.columns().get(*column)?, place),
            Output::Average { sum: (sum, kind), count } => {
                let sum = kind.datum(batch.columns().get(*sum)?, place)?;
                match Kind::Int.datum(batch.columns().get(*count)?, place)? {
                    Datum::Int(count) => average(&sum, count).ok(),
                    _ => None,
                }
            }
        };
        for (place, row) in rows.iter_mut().enumerate() {
            row.push(value(place).ok_or_else(|| Trouble::Other("a column of another kind".to_owned()))?);
        }
    }
    Ok(rows)
}

fn trouble(error: DataFusionError) -> Trouble {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => Trouble::Memory,
        _ => Trouble::Other(error.to_string()),
    }
}
