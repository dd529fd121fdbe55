//! The procedures of a database, by number and name.

use std::sync::Arc;

use super::{AnyProcedure, Declaration, Declared, Footprint, Procedure, Stop, Transaction};
use crate::data::Schema;
use crate::error::Error;
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
        declaration.finish()?;
        Ok(declared)
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
            return Err(Stop::Invalid(format!(
                "result of {length} bytes exceeds the limit of {RESULT_BYTES_MAX}: return less"
            )));
        }
        Ok(())
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
