//! Procedures of the database that statements call by name: those that its program has registered beside the procedure `sql`.

use std::collections::BTreeMap;
use std::sync::Arc;

use ordain_db::data::Schema;
use ordain_db::error::Error;
use ordain_db::procedure::signature::{Form, Value, ValueKind};
use ordain_db::procedure::{Declared, Footprint, ProcedureId, Procedures, Signature};
use serde_json::{Map, Number, Value as Json};

use crate::error::{SqlError, SqlState};
use crate::execute::{Inputs, Output, try_evaluate};
use crate::plan::{CallForm, Expression};
use crate::types::{BaseType, Datum, SqlType, Zone, row, text};

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
        let mut no_draw = |_| Err(SqlError::unsupported("nextval as an argument of a procedure"));
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
        let mut given = Vec::with_capacity(values.len());
        for (parameter, value) in parameters.iter().zip(values) {
            given.push(to_json(parameter, value)?);
        }
        let arguments = match &routine.signature.arguments {
            Form::Nothing => Json::Null,
            Form::One(_) => given.pop().unwrap_or(Json::Null),
            Form::Several(_) => Json::Array(given),
        };
        self.procedures.arguments_of_json(routine.procedure, arguments).map_err(|error| {
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
            (Form::One(value), _) => vec![of_json(value, json)?],
            (Form::Several(_), CallForm::Value) => vec![Datum::Text(json.to_string())],
            (Form::Several(values), _) => {
                let parts =
                    parts(values, json).ok_or_else(|| internal("a result without its parts".to_owned()))?;
                values
                    .iter()
                    .zip(parts)
                    .map(|(value, part)| of_json(value, part))
                    .collect::<Result<_, _>>()?
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

fn to_json(parameter: &Value, value: &Datum) -> Result<Json, SqlError> {
    match value {
        Datum::Null if parameter.optional => Ok(Json::Null),
        Datum::Null => {
            let name = parameter.name.as_deref().unwrap_or("a parameter");
            let message = format!("{name} of a procedure must not be null");
            Err(SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message))
        }
        Datum::Bool(value) => Ok(Json::Bool(*value)),
        Datum::Int(value) => Ok(Json::from(*value)),
        Datum::Float(value) => Number::from_f64(*value).map(Json::Number).ok_or_else(|| {
            let message = "a procedure takes no number that is infinite or none";
            SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
        }),
        Datum::Text(value) if parameter.kind == ValueKind::Json => {
            serde_json::from_str(value).map_err(|error| {
                let message = format!("invalid input syntax for type json: {error}");
                SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)
            })
        }
        Datum::Text(value) => Ok(Json::String(value.clone())),
        _ => Err(SqlError::new(SqlState::INTERNAL_ERROR, "an argument of another type than its parameter")),
    }
}

fn of_json(value: &Value, json: Json) -> Result<Datum, SqlError> {
    match json {
        Json::Null => Ok(Datum::Null),
        other if value.kind == ValueKind::Json => Ok(Datum::Text(other.to_string())),
        Json::String(text) => Ok(Datum::Text(text)),
        other => text::parse(&other.to_string(), sql_type(value.kind), Zone::Utc),
    }
}

/// The parts of a result that has several.
fn parts(values: &[Value], json: Json) -> Option<Vec<Json>> {
    match json {
        Json::Array(parts) if parts.len() == values.len() => Some(parts),
        Json::Object(mut fields) => {
            let take = |fields: &mut Map<String, Json>, value: &Value| {
                // What is left out of JSON is not there.
                Some(fields.remove(value.name.as_ref()?).unwrap_or(Json::Null))
            };
            values.iter().map(|value| take(&mut fields, value)).collect()
        }
        _ => None,
    }
}
