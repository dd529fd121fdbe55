//! Window functions, and the windows they are over.

use sqlparser::ast::{
    self, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    NamedWindowDefinition, NamedWindowExpr, OrderByExpr, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};

use super::Binder;
use super::functions::plain_argument;
use super::names::name_of;
use super::numbering::{self, Numbering};
use super::query::sort_key;
use super::scope::{Bound, Windows};
use crate::error::{SqlError, SqlState};
use crate::plan::{
    Distance, Expression, Frame, FrameBound, FrameUnit, Node, SortKey, WindowCall, WindowFunction, is_same,
};
use crate::types::operators::{self, BinaryOperator};
use crate::types::{BaseType, SqlType, aggregate, functions};

/// A window: partitions, their order, and the rows around a row.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Window {
    partition: Vec<Expression>,
    order: Vec<SortKey>,
    /// The type of what rows are sorted by, if that is one value.
    order_type: Option<SqlType>,
    /// Whether the frame was written.
    is_framed: bool,
    frame: Frame,
}

/// Whether there is a window function of that name that is no aggregate.
pub(super) fn is_window_function(name: &str) -> bool {
    matches!(
        name,
        "row_number"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
            | "ntile"
            | "lag"
            | "lead"
            | "first_value"
            | "last_value"
            | "nth_value"
    )
}

/// The error of a window function that is called like any other.
pub(super) fn without_over(name: &str) -> SqlError {
    let message = format!("window function {name} requires an OVER clause");
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
}

/// The expressions of a window as written.
pub(super) fn expressions_of(spec: &WindowSpec) -> impl Iterator<Item = &Expr> {
    spec.partition_by.iter().chain(spec.order_by.iter().map(|key| &key.expr))
}

impl Binder<'_> {
    /// Binds `WINDOW`, and lets window functions be from here on.
    pub(super) fn begin_windows(&mut self, written: &[NamedWindowDefinition]) -> Result<(), SqlError> {
        self.level().windows = Some(Windows { place: "window definitions", ..Windows::default() });
        numbering::check_count(written.len(), "a query", "windows")?;
        for NamedWindowDefinition(name, definition) in written {
            let name = name_of(name);
            if self.windows()?.named.iter().any(|(known, _)| *known == name) {
                return Err(windowing(format!("window \"{name}\" is already defined")));
            }
            let window = match definition {
                NamedWindowExpr::NamedWindow(other) => self.named_window(&name_of(other))?,
                NamedWindowExpr::WindowSpec(spec) => self.window(spec)?,
            };
            self.windows()?.named.push((name, window));
        }
        self.windows()?.place = "";
        Ok(())
    }

    fn windows(&mut self) -> Result<&mut Windows, SqlError> {
        let level = self.levels.last_mut();
        let clause = level.as_ref().map_or("", |level| level.clause);
        let windows = level.and_then(|level| level.windows.as_mut());
        windows.ok_or_else(|| {
            windowing(match clause {
                "" => "window functions are not allowed here".to_owned(),
                clause => format!("window functions are not allowed in {clause}"),
            })
        })
    }

    /// A call of a window function.
    pub(super) fn window_function(
        &mut self,
        name: &str,
        function: &Function,
        over: &WindowType,
    ) -> Result<Bound, SqlError> {
        if self.levels.last().is_some_and(|level| level.in_aggregate) {
            let message = "aggregate function calls cannot contain window function calls";
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message));
        }
        match self.windows()?.place {
            "" => {}
            "calls" => return Err(windowing("window function calls cannot be nested")),
            place => return Err(windowing(format!("window functions are not allowed in {place}"))),
        }
        if function.null_treatment.is_some() {
            return Err(SqlError::unsupported("RESPECT NULLS and IGNORE NULLS"));
        }
        self.windows()?.place = "calls";
        let (function, arguments, filter, data_type) = self.windowed(name, function)?;
        self.windows()?.place = "window definitions";
        let window = match over {
            WindowType::NamedWindow(name) => self.named_window(&name_of(name))?,
            WindowType::WindowSpec(spec) => self.window(spec)?,
        };
        let shares = self.level().shares_calls;
        let windows = self.windows()?;
        windows.place = "";
        let call = WindowCall { function, arguments, filter, frame: window.frame.clone() };
        let shares = shares || !call.is_volatile();
        let call = (window.partition, window.order, call);
        let known = windows.calls.iter().position(|known| shares && is_same(known, &call));
        let place = known.unwrap_or_else(|| {
            windows.calls.push(call);
            windows.calls.len() - 1
        });
        Ok(Bound { expression: Expression::Column(numbering::window(place)?), data_type })
    }

    /// The function of a call, its arguments and filter, and the type of what it gives.
    fn windowed(
        &mut self,
        name: &str,
        function: &Function,
    ) -> Result<(WindowFunction, Vec<Expression>, Option<Expression>, SqlType), SqlError> {
        let FunctionArguments::List(list) = &function.args else {
            return Err(functions::undefined(name, &[]));
        };
        let is_aggregate = aggregate::exists(name);
        let refused = |what: &str| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, what);
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
            return Err(refused("DISTINCT is not implemented for window functions"));
        }
        if !list.clauses.is_empty() {
            return Err(refused("aggregate ORDER BY is not implemented for window functions"));
        }
        if function.filter.is_some() && !is_aggregate {
            return Err(refused("FILTER is not implemented for non-aggregate window functions"));
        }
        let mut arguments = Vec::new();
        for argument in &list.args {
            if !matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard)) {
                arguments.push(self.expression(&plain_argument(argument)?)?);
            }
        }
        let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
        if !is_aggregate && !is_window_function(name) {
            functions::resolve(name, &types)?;
            let message =
                format!("OVER specified, but {name} is not a window function nor an aggregate function");
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
        }
        if !is_aggregate {
            let (function, arguments, data_type) = self.of_rows(name, arguments)?;
            return Ok((function, arguments, None, data_type));
        }
        if aggregate::is_ordered(name) {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        let aggregate = aggregate::resolve(name, &types)?;
        let mut values = Vec::new();
        for (argument, wanted) in arguments.into_iter().zip(&aggregate.arguments) {
            values.push(self.implicit(argument, *wanted)?.expression);
        }
        let filter = match &function.filter {
            Some(filter) => Some(self.condition(filter, "FILTER")?),
            None => None,
        };
        let result = aggregate.result;
        Ok((WindowFunction::Aggregate(aggregate), values, filter, result))
    }

    /// A function that is no aggregate, with its arguments and the type of its result.
    fn of_rows(
        &mut self,
        name: &str,
        arguments: Vec<Bound>,
    ) -> Result<(WindowFunction, Vec<Expression>, SqlType), SqlError> {
        let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
        let (function, data_type) = match (name, types.as_slice()) {
            ("row_number", []) => (WindowFunction::RowNumber, SqlType::INT8),
            ("rank", []) => (WindowFunction::Rank, SqlType::INT8),
            ("dense_rank", []) => (WindowFunction::DenseRank, SqlType::INT8),
            ("percent_rank", []) => (WindowFunction::PercentRank, SqlType::FLOAT8),
            ("cume_dist", []) => (WindowFunction::CumulativeDistribution, SqlType::FLOAT8),
            ("ntile", [_]) => (WindowFunction::Tile, SqlType::INT4),
            ("lag", [value] | [value, _] | [value, _, _]) => (WindowFunction::Lag, *value),
            ("lead", [value] | [value, _] | [value, _, _]) => (WindowFunction::Lead, *value),
            ("first_value", [value]) => (WindowFunction::FirstValue, *value),
            ("last_value", [value]) => (WindowFunction::LastValue, *value),
            ("nth_value", [value, _]) => (WindowFunction::NthValue, *value),
            _ => return Err(functions::undefined(name, &types)),
        };
        let mut arguments = arguments.into_iter();
        let mut values: Vec<Bound> = arguments.by_ref().take(1).collect();
        if function == WindowFunction::Tile {
            let tiles = self.count_argument(values.remove(0), name, &types)?;
            return Ok((function, vec![tiles], data_type));
        }
        let offset = match arguments.next() {
            Some(offset) => Some(self.count_argument(offset, name, &types)?),
            None => None,
        };
        values.extend(arguments);
        if values.is_empty() {
            return Ok((function, Vec::new(), data_type));
        }
        // The value that is given where there is no row has the type of the others.
        let (values, data_type) = self.unified(values, name)?;
        let mut values = values.into_iter();
        let value = values.next();
        Ok((function, value.into_iter().chain(offset).chain(values).collect(), data_type))
    }

    /// An argument that counts rows.
    fn count_argument(
        &mut self,
        argument: Bound,
        name: &str,
        types: &[SqlType],
    ) -> Result<Expression, SqlError> {
        let bound = self.implicit(argument, SqlType::INT4);
        bound.map(|bound| bound.expression).map_err(|error| match error.state {
            SqlState::CANNOT_COERCE => functions::undefined(name, types),
            _ => error,
        })
    }

    fn named_window(&mut self, name: &str) -> Result<Window, SqlError> {
        let known = self.windows()?.named.iter().find(|(known, _)| known == name);
        known.map(|(_, window)| window.clone()).ok_or_else(|| {
            SqlError::new(SqlState::UNDEFINED_OBJECT, format!("window \"{name}\" does not exist"))
        })
    }

    /// A window as written in parentheses, which may complete one that is named.
    fn window(&mut self, spec: &WindowSpec) -> Result<Window, SqlError> {
        let mut window = match &spec.window_name {
            None => Window {
                partition: Vec::new(),
                order: Vec::new(),
                order_type: None,
                is_framed: false,
                frame: whole(FrameUnit::Range),
            },
            Some(name) => {
                let name = name_of(name);
                let window = self.named_window(&name)?;
                completable(&name, &window, spec)?;
                window
            }
        };
        for written in &spec.partition_by {
            window.partition.push(self.typed(written)?.expression);
        }
        for key in &spec.order_by {
            let OrderByExpr { expr, .. } = key;
            let bound = self.typed(expr)?;
            window.order_type = (spec.order_by.len() == 1).then_some(bound.data_type);
            window.order.push(sort_key(key, bound)?);
        }
        if let Some(frame) = &spec.window_frame {
            window.frame = self.frame(frame, &window)?;
            window.is_framed = true;
        }
        Ok(window)
    }

    /// A value whose type is known: literals become texts.
    fn typed(&mut self, written: &Expr) -> Result<Bound, SqlError> {
        let bound = self.expression(written)?;
        if bound.data_type == SqlType::UNKNOWN { self.implicit(bound, SqlType::TEXT) } else { Ok(bound) }
    }

    fn frame(&mut self, written: &ast::WindowFrame, window: &Window) -> Result<Frame, SqlError> {
        use WindowFrameBound::{CurrentRow, Following, Preceding};
        let (start, end) = (&written.start_bound, written.end_bound.as_ref().unwrap_or(&CurrentRow));
        let refused = match (start, end) {
            (Following(None), _) => Some("frame start cannot be UNBOUNDED FOLLOWING"),
            (_, Preceding(None)) => Some("frame end cannot be UNBOUNDED PRECEDING"),
            (CurrentRow, Preceding(_)) => Some("frame starting from current row cannot have preceding rows"),
            (Following(_), CurrentRow) if written.end_bound.is_none() => {
                Some("frame starting from following row cannot end with current row")
            }
            (Following(_), Preceding(_) | CurrentRow) => {
                Some("frame starting from following row cannot have preceding rows")
            }
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(windowing(refused));
        }
        let mut frame = whole(match written.units {
            WindowFrameUnits::Rows => FrameUnit::Rows,
            WindowFrameUnits::Range => FrameUnit::Range,
            WindowFrameUnits::Groups => FrameUnit::Groups,
        });
        if frame.unit == FrameUnit::Groups && window.order.is_empty() {
            return Err(windowing("GROUPS mode requires an ORDER BY clause"));
        }
        frame.start = self.frame_bound(start, window, &mut frame)?;
        frame.end = self.frame_bound(end, window, &mut frame)?;
        Ok(frame)
    }

    fn frame_bound(
        &mut self,
        written: &WindowFrameBound,
        window: &Window,
        frame: &mut Frame,
    ) -> Result<FrameBound, SqlError> {
        Ok(match written {
            WindowFrameBound::CurrentRow => FrameBound::CurrentRow,
            WindowFrameBound::Preceding(None) => FrameBound::UnboundedPreceding,
            WindowFrameBound::Following(None) => FrameBound::UnboundedFollowing,
            WindowFrameBound::Preceding(Some(offset)) => {
                FrameBound::Preceding(self.frame_offset(offset, window, frame)?)
            }
            WindowFrameBound::Following(Some(offset)) => {
                FrameBound::Following(self.frame_offset(offset, window, frame)?)
            }
        })
    }

    fn frame_offset(
        &mut self,
        written: &Expr,
        window: &Window,
        frame: &mut Frame,
    ) -> Result<Expression, SqlError> {
        let unit = match frame.unit {
            FrameUnit::Rows => "ROWS",
            FrameUnit::Range => "RANGE",
            FrameUnit::Groups => "GROUPS",
        };
        let offset = self.expression(written)?;
        if offset.expression.reads_row() {
            let message = format!("argument of {unit} must not contain variables");
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        if frame.unit != FrameUnit::Range {
            return self.counting(offset, unit);
        }
        let ([key], Some(data_type)) = (window.order.as_slice(), window.order_type) else {
            let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(windowing(message));
        };
        let measured = measured(data_type, offset.data_type).ok_or_else(|| {
            let message = format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                data_type.name()
            );
            // Another offset would do if it can be measured with one whose type is open.
            if measured(data_type, SqlType::UNKNOWN).is_none() {
                return SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
            }
            let message = format!("{message} and offset type {}", offset.data_type.name());
            SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
                .with_hint("Cast the offset value to an appropriate type.")
        })?;
        let value = Bound { expression: key.expression.clone(), data_type };
        let value = self.implicit(value, measured.0)?.expression;
        let add = operators::resolve_binary(BinaryOperator::Add, measured.0, measured.1)?;
        let subtract = operators::resolve_binary(BinaryOperator::Subtract, measured.0, measured.1)?;
        frame.distance = Some(Distance { value, add, subtract });
        Ok(self.implicit(offset, measured.1)?.expression)
    }
}

/// The rows of a query with what its window functions give; where that is is noted. The rows have `width` columns without it.
pub(super) fn windowed(mut node: Node, windows: Windows, width: u16, numbering: &mut Numbering) -> Node {
    let mut next = width;
    numbering.windows = vec![0; windows.calls.len()];
    let mut calls: Vec<(usize, _)> = windows.calls.into_iter().enumerate().collect();
    while let Some((_, (partition, order, _))) = calls.first() {
        let (partition, order) = (partition.clone(), order.clone());
        let (now, later): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|(_, (other, by, _))| *other == partition && *by == order);
        calls = later;
        let (mut shared, width) = (Vec::with_capacity(now.len()), next);
        for (place, (_, _, call)) in now {
            numbering.windows[place] = next;
            next += 1;
            shared.push(call);
        }
        node = Node::Window { input: Box::new(node), width, partition, order, calls: shared };
        numbering.settle_node(&mut node);
    }
    node
}

/// The types in which a value and its distance to others are measured, if they can be.
fn measured(data_type: SqlType, offset: SqlType) -> Option<(SqlType, SqlType)> {
    if data_type.array {
        return None;
    }
    let is = |wanted: &dyn Fn(SqlType) -> bool| offset == SqlType::UNKNOWN || wanted(offset);
    match data_type.base {
        BaseType::Int2 | BaseType::Int4 | BaseType::Int8 => {
            is(&SqlType::is_integer).then_some((SqlType::INT8, SqlType::INT8))
        }
        BaseType::Float4 | BaseType::Float8 => {
            is(&SqlType::is_numeric).then_some((SqlType::FLOAT8, SqlType::FLOAT8))
        }
        BaseType::Numeric => {
            let exact = |offset: SqlType| offset.is_integer() || offset.base == BaseType::Numeric;
            is(&exact).then_some((SqlType::NUMERIC, SqlType::NUMERIC))
        }
        base => {
            let by = match base {
                BaseType::Date | BaseType::Timestamp => SqlType::TIMESTAMP,
                BaseType::TimestampTz => SqlType::TIMESTAMPTZ,
                // Else it would begin anew at midnight.
                BaseType::Time | BaseType::Interval => SqlType::INTERVAL,
                _ => return None,
            };
            is(&|offset: SqlType| offset == SqlType::INTERVAL).then_some((by, SqlType::INTERVAL))
        }
    }
}

/// The frame from the first row of the partition on, to the row itself.
fn whole(unit: FrameUnit) -> Frame {
    Frame { unit, start: FrameBound::UnboundedPreceding, end: FrameBound::CurrentRow, distance: None }
}

/// Fails unless a window can be completed with what is written.
fn completable(name: &str, window: &Window, spec: &WindowSpec) -> Result<(), SqlError> {
    if !spec.partition_by.is_empty() {
        return Err(windowing(format!("cannot override PARTITION BY clause of window \"{name}\"")));
    }
    if !spec.order_by.is_empty() && !window.order.is_empty() {
        return Err(windowing(format!("cannot override ORDER BY clause of window \"{name}\"")));
    }
    if !window.is_framed {
        return Ok(());
    }
    let error = windowing(format!("cannot copy window \"{name}\" because it has a frame clause"));
    let is_bare = spec.order_by.is_empty() && spec.window_frame.is_none();
    Err(if is_bare { error.with_hint("Omit the parentheses in this OVER clause.") } else { error })
}

fn windowing(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::WINDOWING_ERROR, message)
}
