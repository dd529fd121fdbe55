//! Functions of values: a table of them, how one is chosen, and how it is called.

mod arrays;
mod catalog;
mod date_time;
mod format;
mod json;
mod make;
mod mathematics;
mod network;
mod number_pattern;
mod numbers;
mod regular;
mod sets;
mod strings;
mod time_pattern;
mod values;
mod work;

pub(crate) use arrays::PAD_EACH;
pub(crate) use catalog::{NAME_AS_QUOTED, NUMBER_OF_NONE};
pub(crate) use json::ORDER_OF_JSONB;
pub use json::ROW as ROW_TO_JSON;
pub(crate) use json::{key_of as json_key, of_value as json_of};
pub(crate) use number_pattern::ordinal;
pub(crate) use numbers::{Numbered, name_of as function_name, number_of as function_number, numbered};
pub(crate) use sets::SUBSCRIPTS_OF_VECTOR;
pub use sets::{is_set, is_view, resolve_set, set_columns};
pub(crate) use strings::{check_length, quote_ident};
pub(crate) use work::{
    is_search, memory_of_call, memory_of_cast, work_of_digits, work_of_number, work_of_pattern,
};
pub use work::{length, work_of_call, work_of_cast, work_of_operator};

use serde::{Deserialize, Serialize};

use super::cast::{self, CastContext};
use super::operators::common_type;
use super::{Datum, SqlType, Zone};
use crate::error::{SqlError, SqlState};

/// A function of the table. The numbers stay the same within a version of Ordain only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FunctionId(pub u16);

/// A function that was chosen for some arguments.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Function {
    /// What to call.
    pub id: FunctionId,
    /// The types that the arguments must be cast to, as many as there are arguments.
    pub arguments: Vec<SqlType>,
    /// The type of what it gives.
    pub result: SqlType,
    /// Whether each argument is followed by the number of its type: see [`typed_arguments`].
    pub typed: bool,
}

/// What functions may know besides their arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallContext {
    /// When the transaction began: microseconds since 2000-01-01 in UTC.
    pub now: i64,
    /// The time zone of the session.
    pub zone: Zone,
}

type Body = fn(&[Datum], &CallContext) -> Result<Datum, SqlError>;

/// What a parameter takes, or what a function gives.
#[derive(Clone, Copy)]
enum Kind {
    /// One type.
    Of(SqlType),
    /// Any array.
    Array,
    /// The element of the array, of all such parameters the same.
    Element,
    /// Any type that all such parameters can be cast to.
    Common,
    /// Any type as it is. Each argument of a function that has such is followed by the number of its type.
    Any,
}

/// A row of the table.
struct Entry {
    name: &'static str,
    parameters: &'static [Kind],
    /// The last parameter may be given any number of times, but once at least.
    variadic: bool,
    result: Kind,
    /// `Null` is what it gives for an argument of `Null`; the body is not asked.
    strict: bool,
    body: Body,
}

const fn strict(name: &'static str, parameters: &'static [Kind], result: Kind, body: Body) -> Entry {
    Entry { name, parameters, variadic: false, result, strict: true, body }
}

const fn lenient(name: &'static str, parameters: &'static [Kind], result: Kind, body: Body) -> Entry {
    Entry { name, parameters, variadic: false, result, strict: false, body }
}

const fn variadic(name: &'static str, parameters: &'static [Kind], result: Kind, body: Body) -> Entry {
    Entry { name, parameters, variadic: true, result, strict: false, body }
}

const BOOL: Kind = Kind::Of(SqlType::BOOL);
const INT4: Kind = Kind::Of(SqlType::INT4);
const INT8: Kind = Kind::Of(SqlType::INT8);
const FLOAT8: Kind = Kind::Of(SqlType::FLOAT8);
const NUMERIC: Kind = Kind::Of(SqlType::NUMERIC);
const TEXT: Kind = Kind::Of(SqlType::TEXT);
const BYTEA: Kind = Kind::Of(SqlType::BYTEA);
const DATE: Kind = Kind::Of(SqlType::DATE);
const TIME: Kind = Kind::Of(SqlType::TIME);
const TIMESTAMP: Kind = Kind::Of(SqlType::TIMESTAMP);
const TIMESTAMPTZ: Kind = Kind::Of(SqlType::TIMESTAMPTZ);
const INTERVAL: Kind = Kind::Of(SqlType::INTERVAL);

/// All functions. A number is the place in all of them, one after the other.
const TABLES: [&[Entry]; 17] = [
    strings::TABLE,
    mathematics::TABLE,
    date_time::TABLE,
    values::TABLE,
    catalog::TABLE,
    arrays::TABLE,
    regular::TABLE,
    json::TABLE,
    make::TABLE,
    sets::TABLE,
    catalog::NAMES,
    json::ORDER,
    sets::VECTOR,
    catalog::SIZES,
    number_pattern::LATER,
    arrays::LATER,
    network::TABLE,
];

fn entries() -> impl Iterator<Item = (FunctionId, &'static Entry)> {
    let all = TABLES.iter().flat_map(|table| table.iter());
    all.enumerate().map(|(at, entry)| (FunctionId(at as u16), entry))
}

fn entry_of(id: FunctionId) -> Option<&'static Entry> {
    let mut at = usize::from(id.0);
    for table in TABLES {
        if let Some(entry) = table.get(at) {
            return Some(entry);
        }
        at -= table.len();
    }
    None
}

/// Whether there is a function of that name, in lower case, whatever its arguments are.
pub fn exists(name: &str) -> bool {
    entries().any(|(_, entry)| entry.name == name)
}

/// The name of a function.
pub fn name(id: FunctionId) -> &'static str {
    entry_of(id).map_or("", |entry| entry.name)
}

/// The function of that name, in lower case, that fits the arguments best: most arguments of just its types, then most preferred
/// types. Error 42883 if there is none.
pub fn resolve(name: &str, arguments: &[SqlType]) -> Result<Function, SqlError> {
    let arguments: Vec<SqlType> = arguments.iter().map(|ty| ty.plain()).collect();
    let mut best: Option<(Score, Function)> = None;
    for (id, entry) in entries().filter(|(_, entry)| entry.name == name) {
        let Some((types, result)) = fit(entry, &arguments) else { continue };
        let score = Score::of(&arguments, &types);
        if best.as_ref().is_none_or(|(other, _)| score > *other) {
            let typed = entry.parameters.iter().any(|kind| matches!(kind, Kind::Any));
            best = Some((score, Function { id, arguments: types, result, typed }));
        }
    }
    if best.is_none() && matches!(name, "greatest" | "least") && !arguments.is_empty() {
        common_type(&arguments, &name.to_ascii_uppercase())?;
    }
    best.map(|(_, function)| function).ok_or_else(|| undefined(name, &arguments))
}

/// `function ... does not exist`, with the types of the arguments.
pub(crate) fn undefined(name: &str, arguments: &[SqlType]) -> SqlError {
    if let Some(gap) = crate::syntax::unknown_function(name) {
        return gap;
    }
    let names: Vec<String> = arguments.iter().map(|ty| ty.plain().name()).collect();
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {name}({}) does not exist", names.join(", ")),
    )
    .with_hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

/// How well a function fits.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    exact: usize,
    /// Literals whose type is open are rather texts.
    texts: usize,
    preferred: usize,
}

impl Score {
    fn of(arguments: &[SqlType], types: &[SqlType]) -> Score {
        let count = |test: fn(SqlType, SqlType) -> bool| {
            arguments.iter().zip(types).filter(|(given, taken)| test(**given, **taken)).count()
        };
        Score {
            exact: count(|given, taken| given.is_same(taken)),
            texts: count(|given, taken| given.is_unknown() && taken.is_text()),
            preferred: count(|given, taken| !given.is_same(taken) && taken.is_preferred()),
        }
    }
}

/// The types of the arguments and the result, if the function can be called with them.
fn fit(entry: &Entry, arguments: &[SqlType]) -> Option<(Vec<SqlType>, SqlType)> {
    let fixed = entry.parameters.len();
    let enough = if entry.variadic { arguments.len() >= fixed } else { arguments.len() == fixed };
    if !enough {
        return None;
    }
    let kinds: Vec<Kind> = (0..arguments.len())
        .filter_map(|at| entry.parameters.get(at.min(fixed.wrapping_sub(1))).copied())
        .collect();
    let element = element_type(&kinds, arguments)?;
    let common = common(&kinds, arguments)?;
    let concrete = |kind: Kind, given: SqlType| match kind {
        Kind::Of(ty) => ty,
        Kind::Array => element.array_of(),
        Kind::Element => element,
        Kind::Common => common,
        Kind::Any if !given.is_unknown() => given,
        Kind::Any => SqlType::TEXT,
    };
    let types: Vec<SqlType> =
        kinds.iter().zip(arguments).map(|(kind, given)| concrete(*kind, *given)).collect();
    let castable = |(given, taken): (&SqlType, &SqlType)| {
        given.is_same(*taken) || cast::allowed(*given, *taken) == Some(CastContext::Implicit)
    };
    let fits = arguments.iter().zip(&types).all(castable);
    fits.then(|| (types, concrete(entry.result, SqlType::TEXT)))
}

/// The element of the arrays; that of texts if there are none in the parameters, so that nothing depends on it.
fn element_type(kinds: &[Kind], arguments: &[SqlType]) -> Option<SqlType> {
    if !kinds.iter().any(|kind| matches!(kind, Kind::Array)) {
        return Some(SqlType::TEXT);
    }
    let array = kinds.iter().zip(arguments).find(|(kind, ty)| matches!(kind, Kind::Array) && ty.array);
    array.map(|(_, ty)| ty.element())
}

fn common(kinds: &[Kind], arguments: &[SqlType]) -> Option<SqlType> {
    let types: Vec<SqlType> = kinds
        .iter()
        .zip(arguments)
        .filter(|(kind, _)| matches!(kind, Kind::Common))
        .map(|(_, ty)| *ty)
        .collect();
    common_type(&types, "").ok()
}

/// Whether a function gives null for an argument of null, whatever the others are.
pub fn is_strict(id: FunctionId) -> bool {
    entry_of(id).is_some_and(|entry| entry.strict)
}

/// Whether a function gives the same for the same arguments in every session, as PostgreSQL says it of those that it has.
pub fn is_immutable(id: FunctionId) -> bool {
    let Some(Entry { name, parameters, result, .. }) = entry_of(id) else { return false };
    let is_moment = |kind: &Kind| matches!(kind, Kind::Of(SqlType::TIMESTAMPTZ));
    let takes_moment = || parameters.iter().any(is_moment);
    match *name {
        "array_to_json"
        | "array_to_string"
        | "concat"
        | "concat_ws"
        | "convert_from"
        | "convert_to"
        | "current_date"
        | "current_time"
        | "current_timestamp"
        | "format"
        | "format_type"
        | "json_build_array"
        | "json_build_object"
        | "jsonb_build_array"
        | "jsonb_build_object"
        | "localtime"
        | "localtimestamp"
        | "make_timestamptz"
        | "now"
        | "quote_literal"
        | "quote_nullable"
        | "row_to_json"
        | "to_char"
        | "to_date"
        | "to_json"
        | "to_jsonb"
        | "to_number"
        | "transaction_timestamp" => false,
        // A zone is named.
        "timezone" => true,
        // Of seconds, not of a text; and between two, not until today.
        "to_timestamp" => parameters.len() == 1,
        "age" => parameters.len() == 2 && !takes_moment(),
        // Without arguments it tells of the transaction. Values of any type are written as the session has them.
        _ => {
            let is_of_session = |kind: &Kind| is_moment(kind) || matches!(kind, Kind::Any);
            !parameters.is_empty() && !is_moment(result) && !parameters.iter().any(is_of_session)
        }
    }
}

/// Calls a function with values of the types that it was resolved with. Errors as PostgreSQL has them.
pub fn call(id: FunctionId, arguments: &[Datum], context: &CallContext) -> Result<Datum, SqlError> {
    let entry = entry_of(id).ok_or_else(|| {
        SqlError::new(SqlState::INTERNAL_ERROR, format!("function {} is not in the table", id.0))
    })?;
    if entry.strict && arguments.contains(&Datum::Null) {
        return Ok(Datum::Null);
    }
    (entry.body)(arguments, context)
}

/// Arguments do not have the types that the function was resolved with: a mistake of Ordain.
fn unexpected(at: usize) -> SqlError {
    SqlError::new(
        SqlState::INTERNAL_ERROR,
        format!("argument {at} does not have the type it was resolved for"),
    )
}

fn text(arguments: &[Datum], at: usize) -> Result<&str, SqlError> {
    match arguments.get(at) {
        Some(Datum::Text(value)) => Ok(value),
        _ => Err(unexpected(at)),
    }
}

fn bytes(arguments: &[Datum], at: usize) -> Result<&[u8], SqlError> {
    match arguments.get(at) {
        Some(Datum::Bytes(value)) => Ok(value),
        _ => Err(unexpected(at)),
    }
}

fn int(arguments: &[Datum], at: usize) -> Result<i64, SqlError> {
    match arguments.get(at) {
        Some(Datum::Int(value)) => Ok(*value),
        _ => Err(unexpected(at)),
    }
}

fn float(arguments: &[Datum], at: usize) -> Result<f64, SqlError> {
    match arguments.get(at) {
        Some(Datum::Float(value)) => Ok(*value),
        _ => Err(unexpected(at)),
    }
}

fn number(arguments: &[Datum], at: usize) -> Result<&super::Numeric, SqlError> {
    match arguments.get(at) {
        Some(Datum::Numeric(value)) => Ok(value),
        _ => Err(unexpected(at)),
    }
}

fn array(arguments: &[Datum], at: usize) -> Result<&[Datum], SqlError> {
    match arguments.get(at) {
        Some(Datum::Array(values)) => Ok(values),
        _ => Err(unexpected(at)),
    }
}

/// The arguments of a [`Function`] that is `typed`, from those that were given and their types.
pub fn typed_arguments(values: Vec<Datum>, types: &[SqlType]) -> Vec<Datum> {
    let typed = values.into_iter().zip(types);
    typed.flat_map(|(value, ty)| [value, Datum::Int(i64::from(ty.oid()))]).collect()
}

/// Arguments with their types as they are shown; none for those that are null.
fn shown(arguments: &[Datum], zone: Zone) -> Result<Vec<Option<String>>, SqlError> {
    let text = |pair: Result<(&Datum, SqlType), SqlError>| {
        let (value, ty) = pair?;
        Ok((!value.is_null()).then(|| super::text::to_string(value, ty, zone)))
    };
    pairs(arguments).map(text).collect()
}

/// Arguments with their types.
fn pairs(arguments: &[Datum]) -> impl Iterator<Item = Result<(&Datum, SqlType), SqlError>> {
    arguments.chunks(2).enumerate().map(|(at, pair)| match pair {
        [value, Datum::Int(oid)] => {
            let ty = u32::try_from(*oid).ok().and_then(|oid| SqlType::from_oid(oid, -1));
            Ok((value, ty.ok_or_else(|| unexpected(at))?))
        }
        _ => Err(unexpected(at)),
    })
}

fn parameter_error(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
