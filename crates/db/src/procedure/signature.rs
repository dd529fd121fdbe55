//! What a procedure takes and gives, for callers that know no Rust: found out from its types, so that nobody writes it down twice.

use std::collections::BTreeSet;

use serde::{Serialize, de::DeserializeOwned};
use serde_reflection::{ContainerFormat, Format, Registry, Samples, Tracer, TracerConfig, VariantFormat};

/// The kind of a value, as other languages have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// A truth value.
    Bool,
    /// An integer of at most so many bytes: 2, 4 or 8.
    Integer(u8),
    /// A floating point number of single precision.
    Float32,
    /// A floating point number of double precision.
    Float64,
    /// Text: also a character, and the name of a variant.
    Text,
    /// Anything else, which only JSON can tell.
    Json,
}

/// A parameter, or a part of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Its name, where the types have one.
    pub name: Option<String>,
    /// Its kind.
    pub kind: ValueKind,
    /// Whether it may be missing.
    pub optional: bool,
}

/// The form of arguments, and of results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// Nothing.
    Nothing,
    /// One value.
    One(Value),
    /// Several, in order: an array or an object in JSON.
    Several(Vec<Value>),
}

impl Form {
    /// Its values.
    pub fn values(&self) -> &[Value] {
        match self {
            Form::Nothing => &[],
            Form::One(value) => std::slice::from_ref(value),
            Form::Several(values) => values,
        }
    }
}

/// See the [module](self).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// What it takes.
    pub arguments: Form,
    /// What it gives.
    pub result: Form,
}

/// The signature of a procedure with these types.
///
/// # Errors
/// When a type does not tell its form, as one that refuses the values it is tried with.
pub(super) fn signature<A, R>() -> Result<Signature, String>
where
    A: Serialize + DeserializeOwned,
    R: Serialize + DeserializeOwned,
{
    Ok(Signature { arguments: form::<A>()?, result: form::<R>()? })
}

/// Largest number of times that a type is tried: each shows one more variant of each of its enums.
const MAX_TRIALS: usize = 4096;

/// The format of a type, with those of the types inside it.
fn trace<T: DeserializeOwned>() -> Result<(Format, Registry), String> {
    let samples = Samples::new();
    let mut enums = BTreeSet::<String>::new();
    let mut trials = 1;
    loop {
        // A tracer tells which enums it has not seen whole only when it ends, and goes on with one only when it is
        // asked about it by its name: so one that ended before gives the names for the next.
        let mut tracer = Tracer::new(TracerConfig::default().is_human_readable(true));
        let mut format = tracer.trace_type_once::<T>(&samples).map_err(|error| error.to_string())?.0;
        for _ in 1..trials {
            for name in &enums {
                tracer.check_incomplete_enum(name);
            }
            format = tracer.trace_type_once::<T>(&samples).map_err(|error| error.to_string())?.0;
        }
        match tracer.registry() {
            Ok(registry) => return Ok((format, registry)),
            Err(serde_reflection::Error::MissingVariants(names)) if trials < MAX_TRIALS => {
                enums.extend(names);
                trials *= 2;
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn form<T: DeserializeOwned>() -> Result<Form, String> {
    let (format, registry) = trace::<T>()?;
    Ok(match named(&format, &registry) {
        Shape::Fields(fields) => {
            Form::Several(fields.iter().map(|(name, format)| value(*name, format, &registry)).collect())
        }
        Shape::Plain(Format::Unit) => Form::Nothing,
        Shape::Plain(Format::Tuple(formats)) => {
            Form::Several(formats.iter().map(|format| value(None, format, &registry)).collect())
        }
        Shape::Plain(_) | Shape::Variants { .. } => Form::One(value(None, &format, &registry)),
    })
}

/// What a format is, once names of types are looked up.
enum Shape<'f> {
    Plain(&'f Format),
    Fields(Vec<(Option<&'f str>, &'f Format)>),
    Variants { all_plain: bool },
}

fn named<'f>(format: &'f Format, registry: &'f Registry) -> Shape<'f> {
    let Format::TypeName(name) = format else { return Shape::Plain(format) };
    match registry.get(name) {
        None | Some(ContainerFormat::UnitStruct) => Shape::Plain(&Format::Unit),
        Some(ContainerFormat::NewTypeStruct(inner)) => named(inner, registry),
        Some(ContainerFormat::TupleStruct(formats)) => {
            Shape::Fields(formats.iter().map(|format| (None, format)).collect())
        }
        Some(ContainerFormat::Struct(fields)) => {
            Shape::Fields(fields.iter().map(|field| (Some(field.name.as_str()), &field.value)).collect())
        }
        Some(ContainerFormat::Enum(variants)) => {
            let plain = |format: &VariantFormat| matches!(format, VariantFormat::Unit);
            Shape::Variants { all_plain: variants.values().all(|variant| plain(&variant.value)) }
        }
    }
}

fn value(name: Option<&str>, format: &Format, registry: &Registry) -> Value {
    let (format, optional) = match format {
        Format::Option(inner) => (&**inner, true),
        other => (other, false),
    };
    let kind = match named(format, registry) {
        Shape::Plain(Format::Bool) => ValueKind::Bool,
        Shape::Plain(Format::I8 | Format::I16 | Format::U8) => ValueKind::Integer(2),
        Shape::Plain(Format::I32 | Format::U16) => ValueKind::Integer(4),
        Shape::Plain(Format::I64 | Format::U32 | Format::U64) => ValueKind::Integer(8),
        Shape::Plain(Format::F32) => ValueKind::Float32,
        Shape::Plain(Format::F64) => ValueKind::Float64,
        Shape::Plain(Format::Char | Format::Str) | Shape::Variants { all_plain: true } => ValueKind::Text,
        _ => ValueKind::Json,
    };
    Value { name: name.map(str::to_owned), kind, optional }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Line {
        item: i32,
    }

    #[derive(Serialize, Deserialize)]
    enum Way {
        Here,
        There,
        By { stops: Vec<Stop> },
    }

    #[derive(Serialize, Deserialize)]
    enum Stop {
        Long,
        Short(Kind),
    }

    #[derive(Serialize, Deserialize)]
    enum Kind {
        First,
        Second,
        Third,
    }

    #[derive(Serialize, Deserialize)]
    struct Order {
        customer: u32,
        note: Option<String>,
        way: Way,
        kind: Option<Kind>,
        lines: Vec<Line>,
    }

    #[derive(Serialize, Deserialize)]
    struct Number(i64);

    fn told(form: &Form) -> String {
        let value = |value: &Value| {
            let name = value.name.as_deref().unwrap_or("_");
            format!("{name}: {:?}{}", value.kind, if value.optional { "?" } else { "" })
        };
        form.values().iter().map(value).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn types_tell_their_form() {
        let order = form::<Order>().unwrap();
        assert_eq!(told(&order), "customer: Integer(8), note: Text?, way: Json, kind: Text?, lines: Json");
        assert!(matches!(order, Form::Several(_)));
        assert_eq!(told(&form::<(bool, f64, u8)>().unwrap()), "_: Bool, _: Float64, _: Integer(2)");
        assert_eq!(told(&form::<Number>().unwrap()), "_: Integer(8)");
        assert_eq!(told(&form::<Vec<Line>>().unwrap()), "_: Json");
        assert_eq!(told(&form::<Line>().unwrap()), "item: Integer(4)", "a struct of one field has several");
        assert_eq!(form::<()>().unwrap(), Form::Nothing);
    }
}
