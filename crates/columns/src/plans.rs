//! Plans of DataFusion.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion_common::{DataFusionError, JoinSide, JoinType, NullEquality, Result};
use datafusion_expr::{AggregateUDF, WindowFrame, WindowFunctionDefinition};
use datafusion_functions_aggregate::count::count_udaf;
use datafusion_functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion_functions_window::rank::{dense_rank_udwf, rank_udwf};
use datafusion_functions_window::row_number::row_number_udwf;
use datafusion_physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion_physical_expr::expressions::{CastExpr, Column, lit};
use datafusion_physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::windows::{BoundedWindowAggExec, create_window_expr};
use datafusion_physical_plan::{ExecutionPlan, InputOrderMode};
use ordain_sql::execute::Interrupt;
use ordain_sql::plan::JoinKind;

use crate::aggregates::{Overflowed, exact_sum};
use crate::exchange::{Between, Shared, SharedTap};
use crate::expressions::Typed;
use crate::kind::{Kind, schema_of};
use crate::translate::{Call, Function, Join, Key, LeafKinds, Numbering, Operation, Tree};
use crate::watched::Watched;

pub(crate) type Plan = Arc<dyn ExecutionPlan>;
type Expression = Arc<dyn PhysicalExpr>;

/// Makes plans.
pub(crate) struct Plans<'t> {
    shared: &'t Shared,
    told: &'t Arc<Interrupt>,
    leaves: &'t [LeafKinds],
    /// What waits for the decision on a leaf, and the kinds of its columns.
    pub(crate) taps: BTreeMap<usize, (SharedTap, Vec<Kind>)>,
    /// Whether some sum did not fit.
    pub(crate) overflowed: Overflowed,
    /// The plans of nodes, by where these are in memory.
    pub(crate) nodes: Vec<(usize, Plan)>,
}

impl<'t> Plans<'t> {
    pub(crate) fn new(
        (shared, told): (&'t Shared, &'t Arc<Interrupt>),
        leaves: &'t [LeafKinds],
    ) -> Plans<'t> {
        Plans {
            shared,
            told,
            leaves,
            taps: BTreeMap::new(),
            overflowed: Overflowed::default(),
            nodes: Vec::new(),
        }
    }

    /// The plan of a query. Its columns have their numbers for names.
    pub(crate) fn build(&mut self, tree: &Tree) -> Result<Plan> {
        if let Operation::Leaf(number) = &tree.operation {
            let LeafKinds(kinds) = &self.leaves[*number];
            return Ok(Between::leaf(*number, schema_of(kinds), self.shared));
        }
        let plan = self.build_node(tree)?;
        self.nodes.push((tree.node, Arc::clone(&plan)));
        Ok(plan)
    }

    fn build_node(&mut self, tree: &Tree) -> Result<Plan> {
        match &tree.operation {
            Operation::Leaf(_) => self.build(tree),
            Operation::Filter { input, condition } => {
                let input = self.build(input)?;
                Ok(Arc::new(FilterExec::try_new(Arc::clone(&condition.expression), input)?))
            }
            Operation::Project { input, expressions } => {
                let input = self.build(input)?;
                project(input, expressions.iter().map(|typed| Arc::clone(&typed.expression)))
            }
            Operation::Join(join) => self.join(join),
            Operation::Aggregate { input, groups, calls } => self.aggregate(input, groups, calls),
            Operation::Sort { input, keys, most } => {
                let input = self.build(input)?;
                Ok(Arc::new(SortExec::new(ordering(keys.iter().map(Key::sort))?, input).with_fetch(*most)))
            }
            Operation::Window { input, partition, order, functions } => {
                self.window(input, partition, order, functions)
            }
        }
    }

    fn join(&mut self, join: &Join) -> Result<Plan> {
        let Join { left, right, kind, equal, condition, waits } = join;
        let (left_width, right_width) = (left.kinds.len(), right.kinds.len());
        let mut left_plan = self.build(left)?;
        if let Some(leaf) = waits {
            let (plan, tap) = Between::tap(left_plan, self.shared);
            self.taps.insert(*leaf, (tap, left.kinds.clone()));
            left_plan = plan;
        }
        let right_plan = self.build(right)?;
        // All rows of the right are read first, and those of the left go by.
        let on =
            equal.iter().map(|(left, right)| (Arc::clone(&right.expression), Arc::clone(&left.expression)));
        let filter = condition.as_ref().map(|(condition, named)| {
            let side = |column: &usize| match column.checked_sub(left_width) {
                None => ColumnIndex { index: *column, side: JoinSide::Right },
                Some(index) => ColumnIndex { index, side: JoinSide::Left },
            };
            let kinds: Vec<Kind> = named
                .iter()
                .filter_map(|column| left.kinds.iter().chain(&right.kinds).nth(*column))
                .copied()
                .collect();
            let expression = Watched::of(&condition.expression, self.told);
            JoinFilter::new(expression, named.iter().map(side).collect(), schema_of(&kinds))
        });
        let kind = match kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Right,
            JoinKind::Full => JoinType::Full,
        };
        let (mode, nulls) = (PartitionMode::CollectLeft, NullEquality::NullEqualsNothing);
        let joined = HashJoinExec::try_new(
            right_plan,
            left_plan,
            on.collect(),
            filter,
            &kind,
            None,
            mode,
            nulls,
            false,
        )?;
        let joined = Between::pausing(Arc::new(joined), self.shared);
        let order = (right_width..right_width + left_width).chain(0..right_width);
        let schema = joined.schema();
        let columns =
            order.map(|place| -> Expression { Arc::new(Column::new(schema.field(place).name(), place)) });
        project(joined, columns)
    }

    fn aggregate(&mut self, input: &Tree, groups: &[Typed], calls: &[Call]) -> Result<Plan> {
        // Nothing is known of the order of its rows then: all of them come before the first group goes out.
        let input = Between::pausing(self.build(input)?, self.shared);
        let schema = input.schema();
        let group = |(place, group): (usize, &Typed)| (Arc::clone(&group.expression), place.to_string());
        let by = PhysicalGroupBy::new_single(groups.iter().enumerate().map(group).collect());
        let call = |(place, call): (usize, &Call)| -> Result<Arc<AggregateFunctionExpr>> {
            let argument = match &call.argument {
                Some(argument) => Arc::clone(&argument.expression),
                None => lit(1_i64),
            };
            let builder = AggregateExprBuilder::new(self.function(call.function), vec![argument])
                .schema(Arc::clone(&schema))
                .alias((groups.len() + place).to_string())
                .with_distinct(call.function == Function::Count { distinct: true });
            Ok(Arc::new(builder.build()?))
        };
        let functions = calls.iter().enumerate().map(call).collect::<Result<_>>()?;
        let filters = calls
            .iter()
            .map(|call| call.filter.as_ref().map(|filter| Arc::clone(&filter.expression)))
            .collect();
        let mode = AggregateMode::Single;
        Ok(Arc::new(AggregateExec::try_new(mode, by, functions, filters, input, schema)?))
    }

    fn function(&self, function: Function) -> Arc<AggregateUDF> {
        match function {
            Function::Count { .. } => count_udaf(),
            Function::Sum => exact_sum(&self.overflowed),
            Function::Least => min_udaf(),
            Function::Greatest => max_udaf(),
        }
    }

    fn window(
        &mut self,
        input: &Tree,
        partition: &[Typed],
        order: &[Key],
        functions: &[Numbering],
    ) -> Result<Plan> {
        let width = input.kinds.len();
        let input = self.build(input)?;
        let ascending = |value: &Typed| {
            let options = SortOptions { descending: false, nulls_first: false };
            PhysicalSortExpr::new(Arc::clone(&value.expression), options)
        };
        let keys = partition.iter().map(ascending).chain(order.iter().map(Key::sort));
        let sorted: Plan = Arc::new(SortExec::new(ordering(keys)?, input));
        let partition: Vec<Expression> =
            partition.iter().map(|value| Arc::clone(&value.expression)).collect();
        let order: Vec<PhysicalSortExpr> = order.iter().map(Key::sort).collect();
        let frame = Arc::new(WindowFrame::new((!order.is_empty()).then_some(false)));
        let mut windows = Vec::new();
        for (place, function) in functions.iter().enumerate() {
            let function = WindowFunctionDefinition::WindowUDF(match function {
                Numbering::RowNumber => row_number_udwf(),
                Numbering::Rank => rank_udwf(),
                Numbering::DenseRank => dense_rank_udwf(),
            });
            let (name, schema) = ((width + place).to_string(), sorted.schema());
            let frame = Arc::clone(&frame);
            windows.push(create_window_expr(
                &function,
                name,
                &[],
                &partition,
                &order,
                frame,
                schema,
                false,
                false,
                None,
            )?);
        }
        let window: Plan =
            Arc::new(BoundedWindowAggExec::try_new(windows, sorted, InputOrderMode::Sorted, false)?);
        let schema = window.schema();
        let columns = (0..width + functions.len()).map(|place| -> Expression {
            let column = Arc::new(Column::new(schema.field(place).name(), place));
            // DataFusion counts without a sign.
            if place < width { column } else { Arc::new(CastExpr::new(column, Kind::Int.data_type(), None)) }
        });
        project(window, columns)
    }
}

impl Key {
    fn sort(&self) -> PhysicalSortExpr {
        let options = SortOptions { descending: self.descending, nulls_first: self.nulls_first };
        PhysicalSortExpr::new(Arc::clone(&self.value.expression), options)
    }
}

fn ordering(keys: impl Iterator<Item = PhysicalSortExpr>) -> Result<LexOrdering> {
    LexOrdering::new(keys).ok_or_else(|| DataFusionError::Internal("an order by nothing".to_owned()))
}

fn project(input: Plan, expressions: impl Iterator<Item = Expression>) -> Result<Plan> {
    let expression = |(place, expr): (usize, Expression)| ProjectionExpr { expr, alias: place.to_string() };
    Ok(Arc::new(ProjectionExec::try_new(expressions.enumerate().map(expression), input)?))
}
