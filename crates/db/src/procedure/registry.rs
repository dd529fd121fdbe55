//! The procedures of a database, by number and name.

use std::any::Any;
use std::sync::Arc;

use super::{
    AnyProcedure, Declaration, Declared, Footprint, OwnRow, Procedure, Signature, Stop, Transaction,
};
use crate::data::Schema;
use crate::error::{Error, Limit};
use crate::limits::{ARGUMENTS_BYTES_MAX, PROCEDURES_MAX, RESULT_BYTES_MAX};

/// Number of a procedure in its database: the order of registration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct ProcedureId(pub u16);

/// The registered procedures: cheap to clone.
#[derive(Clone, Default)]
pub struct Procedures(Vec<Arc<dyn AnyProcedure>>);

impl Procedures {
    /// No procedures yet.
    pub fn new() -> Procedures {
        Procedures::default()
    }

    /// Registers a procedure. Every node of a cluster must register the same ones in the same order.
    pub fn register<P: Procedure>(&mut self, procedure: P) -> Result<ProcedureId, Error> {
        if self.0.len() >= PROCEDURES_MAX {
            return Err(Error::Invalid(format!("at most {PROCEDURES_MAX} procedures can be registered")));
        }
        if self.find(Procedure::name(&procedure)).is_some() {
            let name = Procedure::name(&procedure);
            return Err(Error::Invalid(format!("a procedure named {name:?} is registered already")));
        }
        self.0.push(Arc::new(procedure));
        Ok(ProcedureId(self.0.len() as u16 - 1))
    }

    /// The procedure with a name.
    pub fn find(&self, name: &str) -> Option<ProcedureId> {
        self.0.iter().position(|procedure| procedure.name() == name).map(|index| ProcedureId(index as u16))
    }

    /// The names, by number.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|procedure| procedure.name())
    }

    /// The name of a procedure, for messages.
    pub fn name(&self, id: ProcedureId) -> &str {
        self.0.get(usize::from(id.0)).map_or("(unknown)", |procedure| procedure.name())
    }

    fn get(&self, id: ProcedureId) -> Result<&dyn AnyProcedure, Error> {
        let procedure = self.0.get(usize::from(id.0));
        procedure
            .map(|procedure| &**procedure)
            .ok_or_else(|| Error::Invalid(format!("there is no procedure number {}", id.0)))
    }

    /// Fills `footprint` with what the procedure declares for these arguments, placed on `partitions`.
    pub fn declare(
        &self,
        id: ProcedureId,
        arguments: &[u8],
        schema: &Schema,
        partitions: u16,
        footprint: &mut Footprint,
    ) -> Result<Declared, Error> {
        check_arguments(arguments)?;
        footprint.clear();
        let mut declaration = Declaration::new(schema, partitions, footprint);
        let declared = self.get(id)?.declare(arguments, &mut declaration)?;
        if footprint.has_functors() {
            footprint.check_functors();
        }
        Ok(declared)
    }

    /// Decodes the arguments of a procedure for several runs of its guard and functors.
    pub(crate) fn decode(&self, id: ProcedureId, arguments: &[u8]) -> Result<Decoded<'_>, Stop> {
        let procedure = self.get(id).map_err(|error| Stop::Invalid(error.to_string()))?;
        Ok(Decoded { procedure, arguments: procedure.decode(arguments)? })
    }

    /// Runs a procedure; its encoded result is appended to `output`.
    pub fn run(
        &self,
        id: ProcedureId,
        arguments: &[u8],
        transaction: &mut Transaction<'_>,
        output: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let start = output.len();
        let procedure = self.get(id).map_err(|error| Stop::Invalid(error.to_string()))?;
        procedure.run(arguments, transaction, output)?;
        let length = output.len() - start;
        if length > RESULT_BYTES_MAX {
            let problem =
                format!("result of {length} bytes exceeds the limit of {RESULT_BYTES_MAX}: return less");
            return Err(Stop::Exceeds(Limit::Result, problem));
        }
        Ok(())
    }

    /// See [`Procedure::runs_past_gaps`].
    pub fn runs_past_gaps(&self, id: ProcedureId) -> bool {
        self.get(id).is_ok_and(AnyProcedure::runs_past_gaps)
    }

    /// What a procedure takes and gives, for callers that know no Rust.
    ///
    /// # Errors
    /// When its types do not tell their form.
    pub fn signature(&self, id: ProcedureId) -> Result<Signature, Error> {
        self.get(id)?.signature()
    }

    /// The encoded arguments of a call, from their form in JSON.
    ///
    /// # Errors
    /// When they are no JSON, or do not have the types of the procedure's arguments.
    pub fn arguments_of_json(&self, id: ProcedureId, arguments: &str) -> Result<Vec<u8>, Error> {
        self.get(id)?.arguments_of_json(arguments)
    }

    /// The result of a call in JSON, from its encoded form.
    ///
    /// # Errors
    /// When it is no result of the procedure, or has what JSON cannot tell.
    pub fn result_to_json(&self, id: ProcedureId, result: &[u8]) -> Result<String, Error> {
        self.get(id)?.result_to_json(result)
    }
}

/// A procedure with its arguments.
pub(crate) struct Decoded<'a> {
    procedure: &'a dyn AnyProcedure,
    arguments: Box<dyn Any>,
}

impl Decoded<'_> {
    /// See [`Procedure::guard`].
    pub(crate) fn guard(&self, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        self.procedure.guard(&*self.arguments, transaction)
    }

    /// See [`Procedure::functor`].
    pub(crate) fn functor(&self, number: u16, row: &mut OwnRow<'_>) -> Result<(), Stop> {
        self.procedure.functor(&*self.arguments, number, row)
    }
}

pub(crate) fn check_arguments(arguments: &[u8]) -> Result<(), Error> {
    if arguments.len() > ARGUMENTS_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "arguments of {} bytes exceed the limit of {ARGUMENTS_BYTES_MAX}: split the call",
            arguments.len()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::row::FixedValue;
    use crate::data::{ColumnType, DataError, Direction, Key, KeyRange, SchemaBuilder, Table};
    use crate::procedure::transaction::{Access, Found};
    use crate::procedure::{Declaration as Touches, decode_output, encode_arguments};

    /// Gives back as many bytes as it is asked for; declares a key of the first table for each of `keys`.
    struct Echo(&'static str);

    impl Procedure for Echo {
        type Arguments = (u32, Vec<u8>);
        type Output = Vec<u8>;

        fn name(&self) -> &str {
            self.0
        }

        fn declare(
            &self,
            (_, keys): &(u32, Vec<u8>),
            footprint: &mut Touches<'_>,
        ) -> Result<Declared, DataError> {
            for key in keys {
                footprint.read(&Key::from_bytes(&[0, 0, *key]))?;
            }
            Ok(if keys.is_empty() { Declared::Unknown } else { Declared::Complete })
        }

        fn run(&self, (bytes, _): &(u32, Vec<u8>), _: &mut Transaction<'_>) -> Result<Vec<u8>, Stop> {
            Ok(vec![7; *bytes as usize])
        }
    }

    struct Nothing;

    impl Access for Nothing {
        fn get(&mut self, _: &Key) -> Result<Option<&[u8]>, Stop> {
            Ok(None)
        }

        fn put(&mut self, _: &Key, _: &[u8]) -> Result<(), Stop> {
            Ok(())
        }

        fn replace(&mut self, _: &Table, _: &Key, _: &[FixedValue]) -> Result<bool, Stop> {
            Ok(false)
        }

        fn delete(&mut self, _: &Key) -> Result<(), Stop> {
            Ok(())
        }

        fn scan(&mut self, _: &KeyRange, _: Direction, _: usize) -> Result<Vec<Found>, Stop> {
            Ok(Vec::new())
        }
    }

    fn schema() -> Schema {
        let mut schema = SchemaBuilder::new();
        schema.table(Table::builder("t").column("id", ColumnType::Bool).primary_key(&["id"])).unwrap();
        schema.finish()
    }

    fn run(
        procedures: &Procedures,
        id: ProcedureId,
        arguments: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let schema = schema();
        let (mut access, mut scratch) = (Nothing, Vec::new());
        procedures.run(id, arguments, &mut Transaction::new(&schema, &mut access, &mut scratch), output)
    }

    fn declare(
        procedures: &Procedures,
        id: ProcedureId,
        arguments: &[u8],
    ) -> Result<(Declared, usize), Error> {
        let mut footprint = Footprint::default();
        let declared = procedures.declare(id, arguments, &schema(), 2, &mut footprint)?;
        Ok((declared, footprint.keys().len()))
    }

    fn registered() -> Procedures {
        let mut procedures = Procedures::new();
        assert_eq!(procedures.register(Echo("first")).unwrap(), ProcedureId(0));
        assert_eq!(procedures.register(Echo("second")).unwrap(), ProcedureId(1));
        procedures
    }

    #[test]
    fn procedures_have_names_and_numbers() {
        let mut procedures = registered();
        let taken = procedures.register(Echo("first")).unwrap_err().to_string();
        assert!(taken.contains("\"first\" is registered already"), "{taken}");
        assert_eq!((procedures.find("second"), procedures.find("third")), (Some(ProcedureId(1)), None));
        assert_eq!(
            (procedures.name(ProcedureId(1)), procedures.name(ProcedureId(2))),
            ("second", "(unknown)")
        );
        assert_eq!(procedures.names().collect::<Vec<_>>(), ["first", "second"]);
    }

    #[test]
    fn an_unknown_procedure_is_refused() {
        let unknown = declare(&registered(), ProcedureId(2), &[]).unwrap_err().to_string();
        assert!(unknown.contains("there is no procedure number 2"), "{unknown}");
        assert!(matches!(run(&registered(), ProcedureId(2), &[], &mut Vec::new()), Err(Stop::Invalid(_))));
    }

    #[test]
    fn arguments_are_decoded_as_a_whole() {
        let arguments = encode_arguments(&(3_u32, vec![1_u8, 2])).unwrap();
        assert_eq!(declare(&registered(), ProcedureId(0), &arguments).unwrap(), (Declared::Complete, 2));
        let empty = encode_arguments(&(3_u32, Vec::<u8>::new())).unwrap();
        assert_eq!(declare(&registered(), ProcedureId(0), &empty).unwrap(), (Declared::Unknown, 0));
        let more = [&arguments[..], &[0]].concat();
        let problem = declare(&registered(), ProcedureId(0), &more).unwrap_err().to_string();
        assert!(problem.contains("arguments of first: 1 bytes too many"), "{problem}");
        let less = &arguments[..arguments.len() - 1];
        assert!(
            declare(&registered(), ProcedureId(0), less)
                .unwrap_err()
                .to_string()
                .contains("arguments of first")
        );
        assert!(matches!(run(&registered(), ProcedureId(0), less, &mut Vec::new()), Err(Stop::Invalid(_))));
    }

    #[test]
    fn a_footprint_is_filled_anew() {
        let mut footprint = Footprint::default();
        let procedures = registered();
        for keys in [vec![0_u8, 1], vec![1]] {
            let arguments = encode_arguments(&(0_u32, &keys)).unwrap();
            procedures.declare(ProcedureId(0), &arguments, &schema(), 2, &mut footprint).unwrap();
            assert_eq!(footprint.keys().len(), keys.len());
        }
    }

    #[test]
    fn arguments_and_results_are_limited() {
        let long = vec![1_u8; ARGUMENTS_BYTES_MAX];
        let problem = encode_arguments(&long).unwrap_err().to_string();
        assert!(problem.contains("exceed the limit of 1048576: split the call"), "{problem}");
        let problem = declare(&registered(), ProcedureId(0), &vec![0; ARGUMENTS_BYTES_MAX + 1]).unwrap_err();
        assert!(problem.to_string().contains("split the call"));
        let result = |bytes: usize, output: &mut Vec<u8>| {
            let arguments = encode_arguments(&(bytes as u32, vec![1_u8])).unwrap();
            run(&registered(), ProcedureId(0), &arguments, output)
        };
        // What stands in the buffer already is not counted, and a result's length takes 3 bytes.
        let mut output = vec![9; 100];
        result(RESULT_BYTES_MAX - 3, &mut output).unwrap();
        assert_eq!(decode_output::<Vec<u8>>(&output[100..]).unwrap().len(), RESULT_BYTES_MAX - 3);
        let Err(Stop::Exceeds(Limit::Result, problem)) = result(RESULT_BYTES_MAX - 2, &mut Vec::new()) else {
            panic!("too long")
        };
        assert!(problem.contains("result of 1048577 bytes exceeds the limit of 1048576"), "{problem}");
    }
}
