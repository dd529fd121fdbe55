//! The transfer.

use ordain_db::data::{DataError, Key, Table, Value};
use ordain_db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::{TRANSFER, column};

/// Which account: its site and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct AccountName {
    /// The site.
    pub site: u16,
    /// The number among the site's accounts.
    pub id: u32,
}

/// What to transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Arguments {
    /// The account that pays.
    pub from: AccountName,
    /// The account that is paid; another one.
    pub to: AccountName,
    /// How much, in cents; at least 1.
    pub amount: i64,
}

/// The balances after a transfer, in cents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Balances {
    /// Of the account that paid.
    pub from: i64,
    /// Of the account that was paid.
    pub to: i64,
}

/// Moves money from one account to another; aborts when there is too little.
pub struct Transfer {
    accounts: Table,
}

impl Transfer {
    pub(super) fn new(accounts: Table) -> Transfer {
        Transfer { accounts }
    }

    fn key(&self, name: AccountName) -> Result<Key, DataError> {
        self.accounts.key((i32::from(name.site), i64::from(name.id)))
    }
}

fn balance(transaction: &mut Transaction<'_>, key: &Key, name: AccountName) -> Result<i64, Stop> {
    match transaction.get(key)? {
        Some(row) => Ok(row.int64(column::BALANCE)?),
        None => Err(Stop::abort(format!("there is no account {name:?}"))),
    }
}

impl Procedure for Transfer {
    type Arguments = Arguments;
    type Output = Balances;

    fn name(&self) -> &str {
        TRANSFER
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        footprint.update(&self.key(arguments.from)?)?;
        footprint.update(&self.key(arguments.to)?)?;
        Ok(Declared::Complete)
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Balances, Stop> {
        let Arguments { from, to, amount } = *arguments;
        if from == to || amount < 1 {
            return Err(Stop::abort("a transfer takes two accounts and a positive amount"));
        }
        let (from_key, to_key) = (self.key(from)?, self.key(to)?);
        let before =
            Balances { from: balance(transaction, &from_key, from)?, to: balance(transaction, &to_key, to)? };
        if before.from < amount {
            return Err(Stop::abort(format!("account {from:?} has {}, less than {amount}", before.from)));
        }
        let Some(credited) = before.to.checked_add(amount) else {
            return Err(Stop::abort(format!("account {to:?} cannot hold {amount} more")));
        };
        let after = Balances { from: before.from - amount, to: credited };
        transaction.set(&self.accounts, &from_key, [(column::BALANCE, Value::Int64(after.from))])?;
        transaction.set(&self.accounts, &to_key, [(column::BALANCE, Value::Int64(after.to))])?;
        Ok(after)
    }
}
