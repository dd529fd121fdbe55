//! Sums that are exact or fail: those of DataFusion begin anew where they do not fit.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use datafusion_common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::function::AccumulatorArgs;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// Whether some sum did not fit.
pub(crate) type Overflowed = Arc<AtomicBool>;

/// The sum of integers, or of numbers with so many digits after the point.
#[derive(Debug)]
struct ExactSum {
    signature: Signature,
    overflowed: Overflowed,
}

/// That of all values. Where it does not fit, it tells so, and is nothing of use.
pub(crate) fn exact_sum(overflowed: &Overflowed) -> Arc<AggregateUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(AggregateUDF::from(ExactSum { signature, overflowed: Arc::clone(overflowed) }))
}

impl PartialEq for ExactSum {
    fn eq(&self, other: &ExactSum) -> bool {
        Arc::ptr_eq(&self.overflowed, &other.overflowed)
    }
}

impl Eq for ExactSum {}

impl Hash for ExactSum {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

fn other_type(ty: &DataType) -> DataFusionError {
    DataFusionError::Internal(format!("a sum of {ty}"))
}

impl AggregateUDFImpl for ExactSum {
    fn name(&self) -> &str {
        "exact_sum"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        arguments.first().cloned().ok_or_else(|| other_type(&DataType::Null))
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let (ty, overflowed) = (arguments.return_type().clone(), Arc::clone(&self.overflowed));
        Ok(match ty {
            DataType::Int64 => Box::new(Sum::<Int64Type> { ty, sum: None, overflowed }),
            DataType::Decimal128(..) => Box::new(Sum::<Decimal128Type> { ty, sum: None, overflowed }),
            ty => return Err(other_type(&ty)),
        })
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let ty = arguments.return_type();
        Ok(match ty {
            DataType::Int64 => {
                Box::new(PrimitiveGroupsAccumulator::<Int64Type, _>::new(ty, adding(&self.overflowed)))
            }
            DataType::Decimal128(..) => {
                Box::new(PrimitiveGroupsAccumulator::<Decimal128Type, _>::new(ty, adding(&self.overflowed)))
            }
            ty => return Err(other_type(ty)),
        })
    }
}

/// Adds to a sum, and tells if it does not fit.
fn adding<T: ArrowNativeTypeOp>(overflowed: &Overflowed) -> impl Fn(&mut T, T) + Send + Sync + 'static {
    let overflowed = Arc::clone(overflowed);
    move |sum: &mut T, value: T| match sum.add_checked(value) {
        Ok(next) => *sum = next,
        Err(_) => overflowed.store(true, Ordering::Relaxed),
    }
}

/// The sum of what is grouped by nothing.
#[derive(Debug)]
struct Sum<T: ArrowPrimitiveType> {
    ty: DataType,
    sum: Option<T::Native>,
    overflowed: Overflowed,
}

impl<T: ArrowPrimitiveType + Debug> Accumulator for Sum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values.first().ok_or_else(|| other_type(&self.ty))?.as_primitive::<T>();
        let add = adding::<T::Native>(&self.overflowed);
        let mut sum = self.sum.unwrap_or_default();
        values.iter().flatten().for_each(|value| add(&mut sum, value));
        if values.null_count() < values.len() {
            self.sum = Some(sum);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::new_primitive::<T>(self.sum, &self.ty)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
