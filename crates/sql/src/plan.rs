//! What a statement becomes: a plan that names no table by name and needs nothing but rows to run.
//!
//! A plan is data. It travels in the arguments of the ordered transaction that runs it, so it is the same on every replica, whatever
//! the catalog there has come to.

mod calls;
mod definitions;
mod foreign_keys;
mod form;
mod path;
mod shared;
mod tables;
mod tree;

use ordain_db::data::Direction;
use serde::{Deserialize, Serialize};

use crate::state::Signal;
use crate::types::functions::FunctionId;
use crate::types::operators::{BinaryOperator, Resolved, ResolvedUnary, UnaryOperator};
use crate::types::{Datum, SqlType};

pub use calls::{
    AggregateCall, CallForm, Distance, Frame, FrameBound, FrameUnit, GroupingSets, SortKey, WindowCall,
    WindowFunction,
};
pub use definitions::{DefinitionChange, Reliance, Reservation};
pub use foreign_keys::{ForeignKeyShape, ReferentialAction, Search};
pub use form::{FORM, other_form};
pub use path::Path;
pub use shared::SharedPlan;
pub use tables::{
    COMPUTED, CheckShape, ColumnShape, ComputedShape, GeneratedShape, IndexShape, IndexState, TableShape,
};
pub use tree::is_same;

/// What an expression tests a value against in a subquery.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum SubqueryKind {
    /// The only value of the only row; null without rows.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// Whether the operand is among the values.
    In {
        /// The operand.
        operand: Box<Expression>,
        /// How it is compared.
        resolved: Resolved,
    },
    /// All values, as an array.
    Array,
}

/// A computation over a row. Names and types have been resolved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Expression {
    /// A value.
    Constant(Datum),
    /// A parameter of the statement, from 0 on.
    Parameter(u16),
    /// A column of the row.
    Column(u16),
    /// A column of the row of a query around this one, 1 being the next.
    Outer {
        /// How many queries outwards.
        depth: u16,
        /// The column there.
        column: u16,
    },
    /// An operator with two operands, but `AND` and `OR`.
    Binary {
        /// Which.
        operator: BinaryOperator,
        /// Its types.
        resolved: Resolved,
        /// The left operand.
        left: Box<Expression>,
        /// The right operand.
        right: Box<Expression>,
    },
    /// An operator with one operand, but `NOT`.
    Unary {
        /// Which.
        operator: UnaryOperator,
        /// Its types.
        resolved: ResolvedUnary,
        /// The operand.
        operand: Box<Expression>,
    },
    /// All of them.
    And(Vec<Expression>),
    /// Any of them.
    Or(Vec<Expression>),
    /// The opposite.
    Not(Box<Expression>),
    /// A value of another type.
    Cast {
        /// The value.
        operand: Box<Expression>,
        /// Its type.
        from: SqlType,
        /// The new one.
        to: SqlType,
    },
    /// Makes a value fit the length of its type.
    Coerce {
        /// The value.
        operand: Box<Expression>,
        /// The type.
        to: SqlType,
        /// Whether it is cut, or an error if it is too long.
        explicit: bool,
    },
    /// A function.
    Call {
        /// Which.
        function: FunctionId,
        /// Its arguments.
        arguments: Vec<Expression>,
    },
    /// The result of the first branch whose condition holds.
    Case {
        /// Conditions and results.
        branches: Vec<(Expression, Expression)>,
        /// The result if none holds.
        otherwise: Option<Box<Expression>>,
    },
    /// The first that is not null.
    Coalesce(Vec<Expression>),
    /// Whether it is null.
    IsNull {
        /// The value.
        operand: Box<Expression>,
        /// The opposite.
        negated: bool,
    },
    /// Whether a boolean is true or false, never null.
    IsBoolean {
        /// The boolean.
        operand: Box<Expression>,
        /// What it is asked to be.
        value: bool,
        /// The opposite.
        negated: bool,
    },
    /// Whether it equals one of them.
    InList {
        /// The value.
        operand: Box<Expression>,
        /// The others.
        list: Vec<Expression>,
        /// How they are compared.
        resolved: Resolved,
    },
    /// Whether a comparison holds for any, or for all, elements of an array.
    Quantified {
        /// The comparison.
        operator: BinaryOperator,
        /// Its types.
        resolved: Resolved,
        /// The value.
        left: Box<Expression>,
        /// The array.
        array: Box<Expression>,
        /// For all.
        all: bool,
    },
    /// An array of values.
    Array(Vec<Expression>),
    /// An element of an array, from 1 on.
    Element {
        /// The array.
        array: Box<Expression>,
        /// The number.
        index: Box<Expression>,
    },
    /// Values that are computed once, and an expression that may name each of them more than once.
    Let {
        /// The values.
        values: Vec<Expression>,
        /// Over the same row.
        body: Box<Expression>,
    },
    /// A value of the [`Expression::Let`] that is the nearest around, by its number.
    Local(u16),
    /// A query within.
    Subquery {
        /// What is asked of it.
        kind: SubqueryKind,
        /// The query.
        query: Box<Node>,
        /// Whether it depends on the row, so that it must be run for each.
        correlated: bool,
    },
    /// The next number of a sequence of the statement.
    NextValue(u16),
    /// Sets a sequence of the statement; the value.
    SetValue {
        /// The sequence, by its number in the statement.
        sequence: u16,
        /// The number that was last given out, or is the next: see `called`.
        value: Box<Expression>,
        /// Whether the number was given out.
        called: Box<Expression>,
    },
    /// A random value, another one each time.
    Random(RandomKind),
    /// What the session has answered to one of the statement's questions; see [`Inputs::answers`](crate::execute::Inputs::answers).
    Answer(u16),
    /// Does something to a session of the process; whether there is one. The statement's own session does it, when the statement has run.
    Signal {
        /// Its number.
        process: Box<Expression>,
        /// The numbers of all sessions, as an array.
        processes: Box<Expression>,
        /// What.
        signal: Signal,
    },
}

/// What a random value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum RandomKind {
    /// A `double precision` from 0 on and below 1.
    Float,
    /// A `uuid` of version 4.
    Uuid,
}

/// An array whose elements become rows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct List {
    /// The array.
    pub array: Expression,
    /// How many columns an element becomes: if not one, it is an array of their values itself.
    pub width: u16,
}

/// How rows of two inputs are matched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and rows of the left without one.
    Left,
    /// Pairs, and rows of either side without one.
    Full,
}

/// How the rows of two queries are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SetOperation {
    /// All of both.
    Union,
    /// Those in both.
    Intersect,
    /// Those that are not in the second.
    Except,
}

/// A query: a tree whose leaves are tables.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Node {
    /// Rows that are written down.
    Values(Vec<Vec<Expression>>),
    /// Rows of a table of the statement.
    Scan {
        /// Which, by its number in the statement.
        table: u16,
        /// How.
        path: Path,
        /// From which end of the path on.
        direction: Direction,
        /// Which rows.
        filter: Option<Expression>,
        /// Which columns its rows have, in order: those that anybody looks at; all of the table if it is not said.
        needed: Option<Vec<u16>>,
    },
    /// The numbers from one to another.
    Series {
        /// First, last, and the step.
        bounds: [Expression; 3],
    },
    /// The elements of arrays side by side, as many rows as the longest has.
    Unnest {
        /// The arrays.
        lists: Vec<List>,
        /// Whether a column with the number of the row follows.
        ordinality: bool,
    },
    /// Rows that fulfil a condition.
    Filter {
        /// Of these.
        input: Box<Node>,
        /// The condition.
        condition: Expression,
    },
    /// Rows made of others.
    Project {
        /// Of these.
        input: Box<Node>,
        /// A value each.
        expressions: Vec<Expression>,
    },
    /// Matching rows, the left's columns before the right's.
    Join {
        /// The left input.
        left: Box<Node>,
        /// The right input; it sees the left's row as its next outer row.
        right: Box<Node>,
        /// The number of columns of the left and the right.
        widths: (u16, u16),
        /// How.
        kind: JoinKind,
        /// Values of the left and the right row that are equal in a pair.
        equal: Vec<(Expression, Expression)>,
        /// What else holds for a pair.
        condition: Option<Expression>,
        /// Whether the right depends on the left's row.
        dependent: bool,
    },
    /// A row for each group: what it is grouped by, its aggregates, and what `GROUPING()` says of it.
    Aggregate {
        /// Of these rows.
        input: Box<Node>,
        /// What they are grouped by; if that is nothing, there is one group.
        groups: Vec<Expression>,
        /// By which of them, if there are several ways.
        sets: Option<GroupingSets>,
        /// The aggregates.
        aggregates: Vec<AggregateCall>,
    },
    /// Each row, and behind it what functions make of the rows around it.
    Window {
        /// Of these rows.
        input: Box<Node>,
        /// How many columns they have.
        width: u16,
        /// Values that are equal for the rows of a partition.
        partition: Vec<Expression>,
        /// The order of the rows of a partition.
        order: Vec<SortKey>,
        /// The functions.
        calls: Vec<WindowCall>,
    },
    /// Rows, those that follow from them, those that follow from these, and so on.
    Recursive {
        /// What [`Node::Working`] names it by.
        number: u16,
        /// The rows that it begins with.
        first: Box<Node>,
        /// What follows from the rows that came last.
        step: Box<Node>,
        /// Whether equal rows stay.
        all: bool,
    },
    /// The rows of a recursive query that came last, in its own step.
    Working(u16),
    /// The rows of a query that depends on nothing around it, for what runs many times: kept when there is more to them than a few, and then
    /// found by values that equal theirs.
    Kept {
        /// These rows.
        input: Box<Node>,
        /// Values of its rows, and what they must equal: values of the rows around.
        keys: Vec<(Expression, Expression)>,
        /// Whether what is around tests these too: then it gets the rows for which they cannot be computed, and may have no need to.
        tested: bool,
        /// How the table of a scan is read while few of its rows were. What is around tests all that these must fulfil.
        direct: Option<Path>,
    },
    /// The rows of a query of `WITH`, which runs once, wherever it is named: each place has a copy of it, and the first that is asked runs.
    Once {
        /// Which, by its number in the statement.
        number: u16,
        /// The query.
        query: Box<Node>,
    },
    /// In order.
    Sort {
        /// These rows.
        input: Box<Node>,
        /// By what.
        keys: Vec<SortKey>,
    },
    /// The first row of each set of rows that are equal in some columns; in all of them if none are named.
    Distinct {
        /// Of these rows.
        input: Box<Node>,
        /// What makes rows different.
        on: Vec<Expression>,
    },
    /// Some of the rows.
    Limit {
        /// Of these.
        input: Box<Node>,
        /// How many.
        limit: Option<Expression>,
        /// After how many.
        offset: Option<Expression>,
        /// Values of which those of the last row may come again: such rows come, too.
        ties: Vec<Expression>,
    },
    /// The rows of two queries.
    Combine {
        /// How.
        operation: SetOperation,
        /// Whether equal rows stay.
        all: bool,
        /// The first.
        left: Box<Node>,
        /// The second.
        right: Box<Node>,
    },
}

/// What to do with a row whose key is there already.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum OnConflict {
    /// The statement fails.
    Fail,
    /// The row is left out, if the conflict is with the key (`None`), an index, or anything.
    Nothing(ConflictTarget),
    /// The row that is there is changed: the expressions see its columns and then those of the new one.
    Update {
        /// What the conflict must be with.
        target: ConflictTarget,
        /// Columns and their new values.
        assignments: Vec<(u16, Expression)>,
        /// Which rows.
        condition: Option<Expression>,
    },
}

impl OnConflict {
    /// The conflict that it is about.
    pub fn arbiter(&self) -> Option<ConflictTarget> {
        match self {
            OnConflict::Fail => None,
            OnConflict::Nothing(target) | OnConflict::Update { target, .. } => Some(*target),
        }
    }
}

/// What rows of an insertion may conflict with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ConflictTarget {
    /// Anything.
    Any,
    /// The primary key.
    Key,
    /// An index, by its number in the shape.
    Index(u16),
}

/// What a statement does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Action {
    /// Reads.
    Query(Node),
    /// Inserts the rows of a query: a value for each column of the table.
    Insert {
        /// The table, by its number in the statement.
        table: u16,
        /// The rows.
        source: Node,
        /// What to do with those that are there.
        on_conflict: OnConflict,
        /// What to tell of each row that was written.
        returning: Option<Vec<Expression>>,
    },
    /// Changes rows. The source gives the row, then what the expressions need besides.
    Update {
        /// The table.
        table: u16,
        /// The rows.
        source: Node,
        /// Columns and their new values.
        assignments: Vec<(u16, Expression)>,
        /// What to tell of each row as it is then, followed by what was besides.
        returning: Option<Vec<Expression>>,
    },
    /// Deletes rows. The source gives the row, then what the expressions need besides.
    Delete {
        /// The table.
        table: u16,
        /// The rows.
        source: Node,
        /// What to tell of each row as it was.
        returning: Option<Vec<Expression>>,
    },
    /// Changes definitions, and fills indexes from a table that is small.
    Define {
        /// The changes.
        changes: Vec<DefinitionChange>,
        /// Tables and the numbers of their indexes that are to be filled.
        fill: Vec<(u16, u16)>,
        /// Sets sequences: their storage, and the number before the next.
        sequences: Vec<(u32, i64)>,
    },
    /// Puts the rows of a table from one key on into an index that is being built; the result says where to go on.
    Fill {
        /// The table.
        table: u16,
        /// The index, by its number in the shape.
        index: u16,
        /// The encoded key after which to go on.
        after: Option<Vec<u8>>,
        /// At most so many rows.
        rows: u32,
    },
    /// Puts encoded rows into a table that nobody sees yet.
    Load {
        /// The table.
        table: u16,
        /// The rows.
        rows: Vec<Vec<u8>>,
    },
    /// Deletes rows of a storage that no table has any more, from one key on; the result says how many, and where to go on.
    Clear {
        /// The storage.
        storage: u32,
        /// Whether it is a copy on every partition.
        replicated: bool,
        /// The encoded key after which to go on.
        after: Option<Vec<u8>>,
        /// At most so many rows.
        rows: u32,
    },
    /// Checks what the statements before it have left of foreign keys for the end of the transaction.
    Settle {
        /// The foreign keys, by the storages of their tables and their names.
        constraints: Vec<(u32, String)>,
    },
    /// Draws numbers from the first sequence, or gives some back.
    Reserve(Reservation),
    /// Calls a procedure of the database, as a transaction of its own.
    Call {
        /// Its name.
        routine: String,
        /// A value for each of its parameters.
        arguments: Vec<Expression>,
        /// How its result is shown.
        form: CallForm,
    },
}

/// A sequence as plans know it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SequenceShape {
    /// For errors.
    pub name: String,
    /// Where its state is.
    pub storage: u32,
    /// The first number.
    pub start: i64,
    /// What is added each time.
    pub increment: i64,
    /// The least number.
    pub minimum: i64,
    /// The greatest number.
    pub maximum: i64,
    /// Whether it begins anew at its end.
    pub cycles: bool,
}

/// A statement that can be run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// The definitions that it was made from.
    pub reliances: Vec<Reliance>,
    /// The tables.
    pub tables: Vec<TableShape>,
    /// The sequences.
    pub sequences: Vec<SequenceShape>,
    /// The foreign keys.
    pub foreign_keys: Vec<ForeignKeyShape>,
    /// What it does.
    pub action: Action,
}

impl Plan {
    /// One of an action that relies on no definition, and is about no table, sequence or foreign key.
    pub fn of(action: Action) -> Plan {
        let (reliances, tables, sequences, foreign_keys) = Default::default();
        Plan { reliances, tables, sequences, foreign_keys, action }
    }

    /// The part of its query whose rows may come in [any order](Node::part_in_any_order).
    pub fn part_in_any_order(&self) -> Option<&Node> {
        if let Action::Query(query) = &self.action { query.part_in_any_order() } else { None }
    }
}
