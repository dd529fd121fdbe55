//! Parts of general queries over columns, by DataFusion.
//!
//! [`Columns`] is a [`QueryEngine`] of SQL. It takes the upper part of a query, its [region](Region), as far down as it can give exactly what
//! SQL's own executor gives ([`translate`]): joins with equal values, groups, orders, ranks, and what lies between, over types whose values
//! have one form in columns ([`kind`]). What is below gives its rows one by one; here they become columns.
//!
//! Only DataFusion's operators run, of one partition each, and nothing of its planning, files or threads. A region is a stream that is polled
//! until it needs rows that are not there yet ([`exchange`], [`region`]), so that whoever runs it stays in control, and needs no runtime. What
//! operators keep is limited, and there are no files ([`pool`]). Batches on their way between them are not counted: long rows are refused.

mod aggregates;
mod exchange;
mod expressions;
mod kind;
mod plans;
mod pool;
mod region;
mod translate;
mod watched;

use ordain_sql::execute::columns::{QueryEngine, Region, Surroundings};
use ordain_sql::plan::Node;

/// The engine. See the [crate](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Columns;

impl QueryEngine for Columns {
    fn region<'p>(
        &self,
        query: &'p Node,
        surroundings: Surroundings<'p>,
    ) -> Option<Box<dyn Region<'p> + 'p>> {
        let translated = translate::translate(query, surroundings)?;
        Some(Box::new(region::Columnar::new(translated, surroundings.bytes, surroundings.told)))
    }
}
