//! The microbenchmark without a constraint: each transaction adds one to ten records, whatever they hold (Fan and Golab, §V-A1).

use ordain_db::data::{DataError, Table};
use ordain_db::procedure::{
    Arithmetic, Declaration, Declared, Functor, OwnRow, Procedure, Stop, Transaction,
};

use super::procedure::{Arguments, RecordName, key_of};
use super::{ADD, RECORDS_PER_TRANSACTION, column};

/// How the additions are declared, which makes no difference but to an engine that computes functors by themselves (ALO-X11 e, trap
/// T-23).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Declare {
    /// As arithmetic: nothing need be run.
    Arithmetic,
    /// As functors of the procedure's own.
    Own,
    /// Not at all: the procedure is run as a whole.
    Whole,
}

/// Adds one to ten records. Returns nothing and never aborts.
pub struct Add {
    records: Table,
    declare: Declare,
}

impl Add {
    pub(super) fn new(records: Table, declare: Declare) -> Add {
        Add { records, declare }
    }

    fn add(name: RecordName, record: &mut OwnRow<'_>) -> Result<(), Stop> {
        match record.change(column::COUNTER, Arithmetic::Add(1))? {
            true => Ok(()),
            false => Err(Stop::Invalid(format!("there is no record {name:?}"))),
        }
    }
}

impl Procedure for Add {
    type Arguments = Arguments;
    type Output = ();

    fn name(&self) -> &str {
        ADD
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        for (place, name) in (0..).zip(arguments.records) {
            let key = key_of(&self.records, name)?;
            let one = Functor::Arithmetic { column: column::COUNTER, operation: Arithmetic::Add(1) };
            match self.declare {
                Declare::Arithmetic => footprint.functor(&key, one)?,
                Declare::Own => footprint.functor(&key, Functor::Own(place))?,
                Declare::Whole => footprint.update(&key)?,
            }
        }
        if self.declare != Declare::Whole {
            footprint.only_functors();
        }
        Ok(Declared::Complete)
    }

    fn functors(&self) -> u16 {
        RECORDS_PER_TRANSACTION as u16
    }

    fn functor(&self, arguments: &Arguments, place: u16, record: &mut OwnRow<'_>) -> Result<(), Stop> {
        Add::add(arguments.records[usize::from(place)], record)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        arguments.records.iter().try_for_each(|name| {
            let key = key_of(&self.records, *name)?;
            Add::add(*name, &mut transaction.own_row(&key)?)
        })
    }
}
