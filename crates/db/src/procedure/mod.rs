//! Procedures: deterministic functions of their arguments and of what they read.
//!
//! A [`Procedure`] is written once and runs unchanged on every engine. It must not use a clock, randomness, the iteration
//! order of a randomly seeded map or anything else that could differ between two runs (DET-09): put such values into
//! the arguments.

pub mod footprint;
pub mod functor;
pub(crate) mod layers;
pub mod overlay;
pub mod own_row;
pub(crate) mod range_index;
pub mod registry;
pub mod signature;
pub mod transaction;
pub mod translation;

use std::any::Any;

use serde::{Serialize, de::DeserializeOwned};

use crate::data::{DataError, Schema};
use crate::error::{Error, Limit};
use crate::kept::decode_whole;
use crate::limits::ABORT_REASON_BYTES_MAX;

pub use footprint::{Declaration, Footprint};
pub use functor::{Arithmetic, Functor};
pub use own_row::OwnRow;
pub use registry::{ProcedureId, Procedures};
pub use signature::Signature;
pub use transaction::Transaction;

/// Whether a procedure knows from its arguments which keys it will touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Declared {
    /// The declaration is complete: an access outside of it is an error.
    Complete,
    /// The keys depend on data: the gateway finds them by reconnaissance (Calvin §3.2.1). What was declared is ignored. A run that
    /// knows them all before it has ended should say so: see [`Transaction::declare_rest`].
    Unknown,
}

/// A transaction's logic.
pub trait Procedure: Send + Sync + 'static {
    /// The arguments; sent and logged in their serialised form.
    type Arguments: Serialize + DeserializeOwned + 'static;
    /// The result of a commit.
    type Output: Serialize + DeserializeOwned;

    /// The name by which clients call the procedure; unique in a database.
    fn name(&self) -> &str;

    /// Declares every key and range that [`run`](Procedure::run) may touch with these arguments, before anything is read.
    ///
    /// The default declares nothing and asks for reconnaissance.
    fn declare(
        &self,
        arguments: &Self::Arguments,
        footprint: &mut Declaration<'_>,
    ) -> Result<Declared, DataError> {
        let _ = (arguments, footprint);
        Ok(Declared::Unknown)
    }

    /// Whether the call may commit, where it declares [functors](Declaration::functor): whoever applies one, or runs the call, asks here
    /// first, at each partition alone. Reads only keys that were declared as [guards](Declaration::guard), and writes nothing. It must stop where
    /// [`run`](Procedure::run) would abort and pass where it would not: `run` cannot take back what a functor has done (ALO-101).
    fn guard(&self, arguments: &Self::Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        let _ = (arguments, transaction);
        Ok(())
    }

    /// How many functors of its own the procedure has: those that calls may declare have the numbers below this. A call that declares
    /// another one is refused, before it has a place in the order (ALO-64).
    fn functors(&self) -> u16 {
        0
    }

    /// Writes the key that was declared with [`Functor::Own`] of this number, reading nothing but the key itself. It does to it what
    /// [`run`](Procedure::run) does, which may therefore call it with [`Transaction::own_row`]. It must not stop where the
    /// [guard](Procedure::guard) passes: it is too late to take back what other functors of the call do. Where it does, the key is left
    /// alone, and the node's [status](crate::node::Status::functors_stopped) tells. [`translation`] finds such mistakes in tests.
    fn functor(&self, arguments: &Self::Arguments, number: u16, row: &mut OwnRow<'_>) -> Result<(), Stop> {
        let _ = (arguments, row);
        Err(Stop::Invalid(format!("there is no functor {number}")))
    }

    /// Whether the logic comes to an end whatever rows it is shown. Then reconnaissance runs it on past rows of other partitions that it does
    /// not have yet, as if there were none, and asks for all that it comes to at once; what else such a run gives is thrown away. Otherwise
    /// each row whose key follows from another one takes a run of its own, unless [`Transaction::declare_next`] tells of it before.
    fn runs_past_gaps(&self) -> bool {
        false
    }

    /// The logic. Reads see the state as of the transaction's position and the transaction's own writes; writes are
    /// buffered and take effect together when `run` returns `Ok`. Pass every [`Stop`] on with `?`.
    fn run(
        &self,
        arguments: &Self::Arguments,
        transaction: &mut Transaction<'_>,
    ) -> Result<Self::Output, Stop>;
}

/// Why a run ended without a result. Procedures make only [`Stop::abort`]; the other kinds come from the database and
/// are passed on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The logic decided to abort.
    Abort(String),
    /// The run, or its input, is wrong in a way that is the same on every replica.
    Invalid(String),
    /// The run needs more than one transaction may have, on every replica.
    Exceeds(Limit, String),
    /// An access outside of the footprint: an error for a declared footprint, a restart for a reconnoitred one (CAL-64).
    OutsideFootprint(String),
    /// Reconnaissance needs a value that lies on another partition; it continues when the value has come.
    ReadPending,
    /// Whoever only looks for the footprint knows all of it now: see [`Transaction::declare_rest`].
    FootprintKnown,
}

impl Stop {
    /// Aborts the transaction by logic, with a reason for the caller.
    pub fn abort(reason: impl Into<String>) -> Stop {
        Stop::Abort(cut(reason.into()))
    }

    /// Why it stopped, as a text of limited length.
    pub(crate) fn into_reason(self) -> String {
        match self {
            Stop::Abort(why) | Stop::Invalid(why) | Stop::Exceeds(_, why) | Stop::OutsideFootprint(why) => {
                cut(why)
            }
            Stop::ReadPending | Stop::FootprintKnown => "a stop that only reconnaissance has".to_owned(),
        }
    }
}

/// As much of a reason as is told.
fn cut(mut reason: String) -> String {
    let length = reason.floor_char_boundary(ABORT_REASON_BYTES_MAX);
    reason.truncate(length);
    reason
}

impl From<DataError> for Stop {
    fn from(error: DataError) -> Stop {
        match error.limit() {
            Some(limit) => Stop::Exceeds(limit, error.to_string()),
            None => Stop::Invalid(error.to_string()),
        }
    }
}

/// What the database runs: a [`Procedure`] behind its encoded arguments and result.
pub(crate) trait AnyProcedure: Send + Sync {
    fn name(&self) -> &str;

    /// Decodes the arguments and lets the procedure declare its footprint.
    fn declare(&self, arguments: &[u8], footprint: &mut Declaration<'_>) -> Result<Declared, Error>;

    /// Decodes arguments for [`guard`](AnyProcedure::guard) and [`functor`](AnyProcedure::functor).
    fn decode(&self, arguments: &[u8]) -> Result<Box<dyn Any>, Stop>;

    /// See [`Procedure::guard`].
    fn guard(&self, decoded: &dyn Any, transaction: &mut Transaction<'_>) -> Result<(), Stop>;

    /// See [`Procedure::functor`].
    fn functor(&self, decoded: &dyn Any, number: u16, row: &mut OwnRow<'_>) -> Result<(), Stop>;

    /// Runs the procedure and appends its encoded result to `output`.
    fn run(
        &self,
        arguments: &[u8],
        transaction: &mut Transaction<'_>,
        output: &mut Vec<u8>,
    ) -> Result<(), Stop>;

    /// See [`Procedure::runs_past_gaps`].
    fn runs_past_gaps(&self) -> bool;

    /// See [`Procedures::signature`].
    fn signature(&self) -> Result<Signature, Error>;

    /// See [`Procedures::arguments_of_json`].
    fn arguments_of_json(&self, arguments: &str) -> Result<Vec<u8>, Error>;

    /// See [`Procedures::result_to_json`].
    fn result_to_json(&self, result: &[u8]) -> Result<String, Error>;
}

impl<P: Procedure> AnyProcedure for P {
    fn name(&self) -> &str {
        Procedure::name(self)
    }

    fn declare(&self, arguments: &[u8], footprint: &mut Declaration<'_>) -> Result<Declared, Error> {
        let arguments = decode_arguments::<P>(self, arguments).map_err(Error::Invalid)?;
        let declared = Procedure::declare(self, &arguments, footprint)?;
        match footprint.unknown_functor(Procedure::functors(self)) {
            None => Ok(declared),
            Some(number) => Err(Error::Invalid(format!(
                "{} declares its functor {number}, but has {}: correct Procedure::functors or the declaration",
                Procedure::name(self),
                Procedure::functors(self)
            ))),
        }
    }

    fn decode(&self, arguments: &[u8]) -> Result<Box<dyn Any>, Stop> {
        Ok(Box::new(decode_arguments::<P>(self, arguments).map_err(Stop::Invalid)?))
    }

    fn guard(&self, decoded: &dyn Any, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        Procedure::guard(self, downcast::<P>(decoded)?, transaction)
    }

    fn functor(&self, decoded: &dyn Any, number: u16, row: &mut OwnRow<'_>) -> Result<(), Stop> {
        Procedure::functor(self, downcast::<P>(decoded)?, number, row)
    }

    fn run(
        &self,
        arguments: &[u8],
        transaction: &mut Transaction<'_>,
        output: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        let arguments = decode_arguments::<P>(self, arguments).map_err(Stop::Invalid)?;
        let result = Procedure::run(self, &arguments, transaction)?;
        postcard::to_extend(&result, Appender(output))
            .map(|_| ())
            .map_err(|error| Stop::Invalid(format!("result of {}: {error}", Procedure::name(self))))
    }

    fn runs_past_gaps(&self) -> bool {
        Procedure::runs_past_gaps(self)
    }

    fn signature(&self) -> Result<Signature, Error> {
        let wrong = |problem| {
            Error::Invalid(format!(
                "the types of {} do not tell their form: {problem}",
                Procedure::name(self)
            ))
        };
        signature::signature::<P::Arguments, P::Output>().map_err(wrong)
    }

    fn arguments_of_json(&self, arguments: &str) -> Result<Vec<u8>, Error> {
        let read = serde_json::from_str(arguments).or_else(|_| {
            // A tree takes objects with equal keys, of which the last counts, and tells better what is wrong.
            serde_json::from_str(arguments).and_then(serde_json::from_value::<P::Arguments>)
        });
        let arguments: P::Arguments =
            read.map_err(|error| Error::Invalid(format!("arguments of {}: {error}", Procedure::name(self))))?;
        encode_arguments(&arguments)
    }

    fn result_to_json(&self, result: &[u8]) -> Result<String, Error> {
        let result: P::Output = decode_output(result)?;
        serde_json::to_string(&result)
            .map_err(|error| Error::Invalid(format!("result of {}: {error}", Procedure::name(self))))
    }
}

/// Lets `postcard` append to a buffer that the caller reuses.
struct Appender<'a>(&'a mut Vec<u8>);

impl Extend<u8> for Appender<'_> {
    #[inline]
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        self.0.extend(bytes);
    }
}

fn decode_arguments<P: Procedure>(procedure: &P, arguments: &[u8]) -> Result<P::Arguments, String> {
    decode_whole(arguments).map_err(|error| format!("arguments of {}: {error}", Procedure::name(procedure)))
}

fn downcast<P: Procedure>(decoded: &dyn Any) -> Result<&P::Arguments, Stop> {
    decoded.downcast_ref().ok_or_else(|| Stop::Invalid("arguments of another procedure".to_owned()))
}

/// Encodes arguments as calls carry them.
pub fn encode_arguments<T: Serialize>(arguments: &T) -> Result<Vec<u8>, Error> {
    let bytes = postcard::to_allocvec(arguments).map_err(|error| Error::Invalid(error.to_string()))?;
    registry::check_arguments(&bytes)?;
    Ok(bytes)
}

/// Decodes the result of a call.
pub fn decode_output<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    postcard::from_bytes(bytes).map_err(|error| Error::Invalid(format!("result: {error}")))
}

/// What procedures and tables make up a database; the same on every node of a cluster.
#[derive(Clone)]
pub struct Catalog {
    /// The tables.
    pub schema: Schema,
    /// The procedures.
    pub procedures: Procedures,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_aborts_are_cut_between_characters() {
        assert_eq!(Stop::abort("no money"), Stop::Abort("no money".to_owned()));
        let Stop::Abort(exact) = Stop::abort("x".repeat(ABORT_REASON_BYTES_MAX)) else { panic!("an abort") };
        assert_eq!(exact.len(), ABORT_REASON_BYTES_MAX);
        for (padding, expected) in [(0, 1023), (1, 1024), (2, 1022)] {
            let reason = format!("{}{}", "x".repeat(padding), "€".repeat(ABORT_REASON_BYTES_MAX));
            let Stop::Abort(cut) = Stop::abort(reason.clone()) else { panic!("an abort") };
            assert!(reason.starts_with(&cut) && cut.len() <= ABORT_REASON_BYTES_MAX);
            assert_eq!(cut.len(), expected, "as long as characters of three bytes allow");
        }
    }

    #[test]
    fn results_that_are_none_are_refused() {
        assert_eq!(decode_output::<(u32, bool)>(&[7, 1]), Ok((7, true)));
        let problem = decode_output::<(u32, bool)>(&[7]).unwrap_err().to_string();
        assert!(problem.starts_with("invalid: result: "), "{problem}");
    }
}
