//! Procedures of the database that statements call by name: those that its program has registered beside the procedure `sql`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use ordain_db::data::Schema;
use ordain_db::error::Error;
use ordain_db::procedure::signature::{Form, Value, ValueKind};
use ordain_db::procedure::{Declared, Footprint, ProcedureId, Procedures, Signature};
use serde_json::value::RawValue;

use crate::error::{SqlError, SqlState};
use crate::execute::{Inputs, Output, try_evaluate};
use crate::plan::{CallForm, Expression};
use crate::types::{BaseType, Datum, SqlType, Zone, json, row, text};

/// A procedure that can be called.
#[derive(Clone, PartialEq, Debug)]
pub struct Routine {
    /// Its number in the database.
    pub procedure: ProcedureId,
    /// Its name.
    pub name: String,
    signature: Signature,
}

/// A parameter, or a column of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoutineValue {
    /// The name.
    pub name: String,
    /// The type.
    pub data_type: SqlType,
}

/// The procedures of a database that can be called: cheap to clone.
#[derive(Clone, Default)]
pub struct Routines {
    procedures: Procedures,
    by_name: Arc<BTreeMap<String, Result<Arc<Routine>, String>>>,
}

impl std::fmt::Debug for Routines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.by_name.keys()).finish()
    }
}

impl Routines {
    /// All procedures but `sql` itself.
    pub fn of(procedures: &Procedures) -> Routines {
        let mut by_name = BTreeMap::new();
        for (number, name) in
            (0..).zip(procedures.names()).filter(|(_, name)| *name != crate::procedure::NAME)
        {
            let procedure = ProcedureId(number);
            let routine = match procedures.signature(procedure) {
                Ok(signature) => Ok(Arc::new(Routine { procedure, name: name.to_owned(), signature })),
                Err(error) => Err(error.to_string()),
            };
            by_name.insert(name.to_owned(), routine);
        }
        Routines { procedures: procedures.clone(), by_name: Arc::new(by_name) }
    }

    /// Whether there is a procedure with a name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The procedure with a name, if there is one.
    ///
    /// # Errors
    /// When it cannot be called with SQL.
    pub fn find(&self, name: &str) -> Result<Option<Arc<Routine>>, SqlError> {
        match self.by_name.get(name) {
            None => Ok(None),
            Some(Ok(routine)) => Ok(Some(Arc::clone(routine))),
            Some(Err(problem)) => Err(SqlError::unsupported(format!("CALL of {name}: {problem}"))),
        }
    }

    /// The procedure that a statement calls, and its encoded arguments.
    ///
    /// # Errors
    /// When there is no such procedure any more, when an argument cannot be computed, and as [`arguments`](Routines::arguments).
    pub(crate) fn call(
        &self,
        name: &str,
        arguments: &[Expression],
        inputs: &Inputs,
    ) -> Result<(Arc<Routine>, Vec<u8>), SqlError> {
        let undefined =
            || SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("procedure {name} does not exist"));
        let routine = self.find(name)?.ok_or_else(undefined)?;
        let mut no_draw = |_| Err(SqlError::unsupported("nextval in an argument of a procedure"));
        let mut randoms = 0;
        let values =
            arguments.iter().map(|argument| try_evaluate(argument, inputs, &mut randoms, &mut no_draw));
        let values = values.collect::<Result<Vec<Datum>, SqlError>>()?;
        let arguments = self.arguments(&routine, &values)?;
        Ok((routine, arguments))
    }

    /// What a call with these encoded arguments declares, on so many partitions; `None` if its keys depend on data.
    ///
    /// # Errors
    /// When the procedure cannot declare anything for them.
    pub(crate) fn footprint(
        &self,
        routine: &Routine,
        arguments: &[u8],
        (schema, partitions): (&Schema, u16),
    ) -> Result<Option<Footprint>, SqlError> {
        let mut footprint = Footprint::default();
        let declared =
            self.procedures.declare(routine.procedure, arguments, schema, partitions, &mut footprint);
        let invalid = |error: Error| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error.to_string());
        match declared.map_err(invalid)? {
            Declared::Complete => Ok(Some(footprint)),
            Declared::Unknown => Ok(None),
        }
    }

    /// The encoded arguments of a call, from values of the types of its parameters.
    ///
    /// # Errors
    /// When a value is missing that must be there, is out of range, or is no JSON of the right form.
    pub fn arguments(&self, routine: &Routine, values: &[Datum]) -> Result<Vec<u8>, SqlError> {
        let parameters = routine.signature.arguments.values();
        let mut arguments = String::new();
        for (parameter, value) in parameters.iter().zip(values) {
            arguments.push_str(if arguments.is_empty() { "" } else { "," });
            put_json(parameter, value, &mut arguments).map_err(|error| error.with_hint(routine.hint()))?;
        }
        match &routine.signature.arguments {
            Form::Nothing => arguments.push_str("null"),
            Form::One(_) => {}
            Form::Several(_) => arguments = format!("[{arguments}]"),
        }
        self.procedures.arguments_of_json(routine.procedure, &arguments).map_err(|error| {
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, error.to_string()).with_hint(routine.hint())
        })
    }

    /// What a client is shown of an encoded result: one row, with a column for each part of it or for all of it.
    ///
    /// # Errors
    /// When it cannot be told in SQL.
    pub fn output(&self, routine: &Routine, result: &[u8], form: CallForm) -> Result<Output, SqlError> {
        let internal = |problem: String| SqlError::new(SqlState::INTERNAL_ERROR, problem);
        let json = self.procedures.result_to_json(routine.procedure, result);
        let json = json.map_err(|error| internal(error.to_string()))?;
        let values = match (&routine.signature.result, form) {
            (Form::Nothing, CallForm::Value) => vec![Datum::Text(String::new())],
            (Form::Nothing, _) => Vec::new(),
            (Form::One(value), _) => vec![of_json(value, &json)?],
            (Form::Several(_), CallForm::Value) => vec![Datum::Text(json)],
            (Form::Several(values), _) => {
                let parts =
                    parts(values, &json).ok_or_else(|| internal("a result without its parts".to_owned()))?;
                let parts = values.iter().zip(parts);
                parts.map(|(value, part)| of_json(value, part)).collect::<Result<_, _>>()?
            }
        };
        let mut bytes = Vec::new();
        row::encode(&values, &mut bytes);
        let rows = if values.is_empty() { Vec::new() } else { vec![bytes] };
        Ok(Output { rows: rows.into(), ..Output::default() })
    }
}

impl Routine {
    /// What it takes.
    pub fn parameters(&self) -> Vec<RoutineValue> {
        let values = self.signature.arguments.values().iter().zip(1..);
        let name =
            |value: &Value, place: u32| value.name.clone().unwrap_or_else(|| format!("parameter{place}"));
        values
            .map(|(value, place)| RoutineValue { name: name(value, place), data_type: sql_type(value.kind) })
            .collect()
    }

    /// How it is called.
    pub(crate) fn hint(&self) -> String {
        let parameters = self.parameters();
        let has_json = parameters.iter().any(|parameter| parameter.data_type == SqlType::of(BaseType::Json));
        let written = parameters.iter().map(|value| format!("{} {}", value.name, value.data_type.name()));
        let how = format!("It is {}({}).", self.name, written.collect::<Vec<_>>().join(", "));
        if !has_json {
            return how;
        }
        format!(
            "{how} A structure is a JSON object of its fields, such as '{{\"id\": 1}}', a tuple or a list a JSON array."
        )
    }

    /// The columns of its result.
    pub fn columns(&self, form: CallForm) -> Vec<RoutineValue> {
        let one = |data_type| vec![RoutineValue { name: self.name.clone(), data_type }];
        match (&self.signature.result, form) {
            (Form::Nothing, CallForm::Value) => one(SqlType::TEXT),
            (Form::Nothing, _) => Vec::new(),
            (Form::One(value), _) => one(sql_type(value.kind)),
            (Form::Several(_), CallForm::Value) => one(SqlType::of(BaseType::Json)),
            (Form::Several(values), _) => {
                let name = |value: &Value, place: u32| {
                    value.name.clone().unwrap_or_else(|| format!("column{place}"))
                };
                let columns = values.iter().zip(1..);
                columns
                    .map(|(value, place)| RoutineValue {
                        name: name(value, place),
                        data_type: sql_type(value.kind),
                    })
                    .collect()
            }
        }
    }
}

fn sql_type(kind: ValueKind) -> SqlType {
    match kind {
        ValueKind::Bool => SqlType::BOOL,
        ValueKind::Integer(2) => SqlType::INT2,
        ValueKind::Integer(4) => SqlType::INT4,
        ValueKind::Integer(_) => SqlType::INT8,
        ValueKind::Float32 => SqlType::of(BaseType::Float4),
        ValueKind::Float64 => SqlType::FLOAT8,
        ValueKind::Text => SqlType::TEXT,
        ValueKind::Json => SqlType::of(BaseType::Json),
    }
}

/// Writes a value as a parameter takes it.
fn put_json(parameter: &Value, value: &Datum, out: &mut String) -> Result<(), SqlError> {
    match value {
        Datum::Null if parameter.optional => out.push_str("null"),
        Datum::Null => {
            let name = parameter.name.as_deref().unwrap_or("a parameter");
            let message = format!("{name} of a procedure must not be null");
            return Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message));
        }
        Datum::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        // A text takes all that it is given.
        Datum::Int(value) => drop(write!(out, "{value}")),
        // With a point or an exponent: it stays a float.
        Datum::Float(value) if value.is_finite() => drop(write!(out, "{value:?}")),
        Datum::Float(_) => {
            let message = "a procedure takes no number that is infinite or none";
            return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        Datum::Text(value) if parameter.kind == ValueKind::Json => {
            // Nothing but one value may stand in its place.
            let json: &RawValue = serde_json::from_str(value).map_err(|error| {
                let message = format!("invalid input syntax for type json: {error}");
                SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
            })?;
            out.push_str(json.get());
        }
        Datum::Text(value) => json::put_quoted(value, out),
        _ => {
            let message = "an argument of another type than its parameter";
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
        }
    }
    Ok(())
}

fn of_json(value: &Value, json: &str) -> Result<Datum, SqlError> {
    if json == "null" {
        return Ok(Datum::Null);
    }
    if value.kind == ValueKind::Json {
        return Ok(Datum::Text(json.to_owned()));
    }
    if json.starts_with('"') {
        let text = serde_json::from_str(json).map(Datum::Text);
        return text.map_err(|error| SqlError::new(SqlState::INTERNAL_ERROR, error.to_string()));
    }
    text::parse(json, sql_type(value.kind), Zone::Utc)
}

/// The parts of a result that has several.
fn parts<'j>(values: &[Value], json: &'j str) -> Option<Vec<&'j str>> {
    if json.starts_with('[') {
        let parts: Vec<&RawValue> = serde_json::from_str(json).ok()?;
        return (parts.len() == values.len()).then(|| parts.into_iter().map(RawValue::get).collect());
    }
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    // What is left out of JSON is not there.
    let take = |value: &Value| Some(fields.get(value.name.as_deref()?).map_or("null", |part| part.get()));
    values.iter().map(take).collect()
}
