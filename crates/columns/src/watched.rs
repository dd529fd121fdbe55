//! Conditions of joins that look whether the statement is to end.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::ColumnarValue;
use datafusion_physical_expr::PhysicalExpr;
use ordain_sql::execute::Interrupt;

/// A condition that fails once the statement is to end. A join of many pairs none of which fulfils its condition comes to nothing else for
/// as long as it takes.
#[derive(Debug)]
pub(crate) struct Watched {
    condition: Arc<dyn PhysicalExpr>,
    told: Arc<Interrupt>,
}

impl Watched {
    pub(crate) fn of(condition: &Arc<dyn PhysicalExpr>, told: &Arc<Interrupt>) -> Arc<dyn PhysicalExpr> {
        Arc::new(Watched { condition: Arc::clone(condition), told: Arc::clone(told) })
    }
}

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(formatter)
    }
}

impl PhysicalExpr for Watched {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.told.is_set() {
            return Err(DataFusionError::Execution("the statement is to end".to_owned()));
        }
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let condition = children.first().unwrap_or(&self.condition);
        Ok(Watched::of(condition, &self.told))
    }

    fn fmt_sql(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(formatter)
    }
}
