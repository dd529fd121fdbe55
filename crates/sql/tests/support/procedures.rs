//! Procedures and a table that a program has registered beside SQL.

use ordain_db::data::{ColumnType, DataError, SchemaBuilder, Table};
use ordain_db::procedure::{Declaration, Declared, Procedure, Procedures, Stop, Transaction};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Arguments {
    from: i64,
    to: i64,
    amount: i64,
    note: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub struct Balances {
    from_balance: i64,
    to_balance: i64,
    note: Option<String>,
}

/// Moves money between accounts, which begin with 100.
struct Transfer(Table);

impl Transfer {
    fn balance(&self, transaction: &mut Transaction<'_>, account: i64) -> Result<i64, Stop> {
        let key = self.0.key((account,))?;
        Ok(match transaction.get(&key)? {
            Some(row) => row.int64("balance")?,
            None => 100,
        })
    }
}

impl Procedure for Transfer {
    type Arguments = Arguments;
    type Output = Balances;

    fn name(&self) -> &str {
        "transfer"
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        footprint.update(&self.0.key((arguments.from,))?)?;
        footprint.update(&self.0.key((arguments.to,))?)?;
        Ok(Declared::Complete)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Balances, Stop> {
        let Arguments { from, to, amount, note } = arguments;
        let from_balance = self.balance(transaction, *from)? - amount;
        let to_balance = self.balance(transaction, *to)? + amount;
        if from_balance < 0 {
            return Err(Stop::abort(format!("account {from} has not enough")));
        }
        for (account, balance) in [(from, from_balance), (to, to_balance)] {
            transaction.put(&self.0, &self.0.key((*account,))?, (balance,))?;
        }
        Ok(Balances { from_balance, to_balance, note: note.clone() })
    }
}

/// Adds numbers up.
struct Total;

impl Procedure for Total {
    type Arguments = Vec<f64>;
    type Output = f64;

    fn name(&self) -> &str {
        "total"
    }

    fn declare(&self, _: &Vec<f64>, _: &mut Declaration<'_>) -> Result<Declared, DataError> {
        Ok(Declared::Complete)
    }

    fn run(&self, numbers: &Vec<f64>, _: &mut Transaction<'_>) -> Result<f64, Stop> {
        Ok(numbers.iter().fold(0.0, |sum, number| sum + number))
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub enum Choice {
    None,
    Number(u8),
    Named(String),
}

#[derive(Clone, Serialize, Deserialize)]
pub struct Mixture {
    small: i16,
    normal: i32,
    is_so: bool,
    real: f32,
    text: String,
    choice: Choice,
    pair: (i64, i64),
}

/// Gives back what it is given.
struct Mix;

impl Procedure for Mix {
    type Arguments = Mixture;
    type Output = (i16, i32, bool, f32, String, Choice, (i64, i64));

    fn name(&self) -> &str {
        "mix"
    }

    fn declare(&self, _: &Mixture, _: &mut Declaration<'_>) -> Result<Declared, DataError> {
        Ok(Declared::Complete)
    }

    fn run(&self, mixture: &Mixture, _: &mut Transaction<'_>) -> Result<Self::Output, Stop> {
        let Mixture { small, normal, is_so, real, text, choice, pair } = mixture.clone();
        Ok((small, normal, is_so, real, text, choice, pair))
    }
}

/// Does nothing.
struct Nothing;

impl Procedure for Nothing {
    type Arguments = ();
    type Output = ();

    fn name(&self) -> &str {
        "rest"
    }

    fn declare(&self, (): &(), _: &mut Declaration<'_>) -> Result<Declared, DataError> {
        Ok(Declared::Complete)
    }

    fn run(&self, (): &(), _: &mut Transaction<'_>) -> Result<(), Stop> {
        Ok(())
    }
}

/// Adds the table and the procedures.
pub fn register(schema: &mut SchemaBuilder, procedures: &mut Procedures) {
    let table =
        Table::builder("accounts").column("id", ColumnType::Int64).column("balance", ColumnType::Int64);
    let table = schema.table(table.primary_key(&["id"])).unwrap();
    procedures.register(Transfer(table)).unwrap();
    procedures.register(Total).unwrap();
    procedures.register(Nothing).unwrap();
    procedures.register(Mix).unwrap();
}
