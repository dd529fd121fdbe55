//! The transfer, with functors and without.

use ordain_db::data::{DataError, Key, Table, Value};
use ordain_db::procedure::{Declaration, Declared, Functor, OwnRow, Procedure, Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::{MOVE, TRANSFER, column};

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

/// The accounts, which are loaded and never deleted: which of them exist can be told without reading.
#[derive(Clone)]
pub(super) struct Accounts {
    pub(super) table: Table,
    pub(super) sites: u16,
    pub(super) per_site: u32,
}

impl Accounts {
    fn key(&self, name: AccountName) -> Result<Key, DataError> {
        self.table.key((i32::from(name.site), i64::from(name.id)))
    }

    fn balance(&self, transaction: &mut Transaction<'_>, name: AccountName) -> Result<i64, Stop> {
        match transaction.get(&self.key(name)?)? {
            Some(row) => Ok(row.int64(column::BALANCE)?),
            None => Err(missing(name)),
        }
    }

    /// Declares a functor for each of the two, and that the guard reads the one that pays.
    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        let (from, to) = (self.key(arguments.from)?, self.key(arguments.to)?);
        footprint.functor(&from, Functor::Own(PAYS))?;
        footprint.functor(&to, Functor::Own(IS_PAID))?;
        footprint.guard(&from)?;
        Ok(Declared::Complete)
    }

    /// Whether a transfer commits, out of its arguments and of what the one that pays has. All money of the bank fits into one account,
    /// so that nothing need be known of the one that is paid.
    fn guard(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        let Arguments { from, to, amount } = *arguments;
        check(arguments)?;
        for name in [from, to] {
            if name.site >= self.sites || name.id >= self.per_site {
                return Err(missing(name));
            }
        }
        covers(from, self.balance(transaction, from)?, amount)
    }

    /// Changes the balance of one of the two, and tells it.
    fn apply(arguments: &Arguments, number: u16, account: &mut OwnRow<'_>) -> Result<i64, Stop> {
        let (name, change) = match number {
            PAYS => (arguments.from, -arguments.amount),
            _ => (arguments.to, arguments.amount),
        };
        let Some(row) = account.get()? else { return Err(missing(name)) };
        let Some(balance) = row.int64(column::BALANCE)?.checked_add(change) else {
            return Err(Stop::Invalid(format!("account {name:?} has more than all money of the bank")));
        };
        account.set([(column::BALANCE, Value::Int64(balance))])?;
        Ok(balance)
    }

    /// Moves the money where the guard passes.
    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Balances, Stop> {
        self.guard(arguments, transaction)?;
        let (from, to) = (self.key(arguments.from)?, self.key(arguments.to)?);
        Ok(Balances {
            from: Accounts::apply(arguments, PAYS, &mut transaction.own_row(&from)?)?,
            to: Accounts::apply(arguments, IS_PAID, &mut transaction.own_row(&to)?)?,
        })
    }
}

/// The functors of a transfer.
const PAYS: u16 = 0;
const IS_PAID: u16 = 1;
const FUNCTORS: u16 = 2;

fn missing(name: AccountName) -> Stop {
    Stop::abort(format!("there is no account {name:?}"))
}

/// What can be told from the arguments alone.
fn check(arguments: &Arguments) -> Result<(), Stop> {
    if arguments.from == arguments.to || arguments.amount < 1 {
        return Err(Stop::abort("a transfer takes two accounts and a positive amount"));
    }
    Ok(())
}

fn covers(from: AccountName, balance: i64, amount: i64) -> Result<(), Stop> {
    match balance < amount {
        true => Err(Stop::abort(format!("account {from:?} has {balance}, less than {amount}"))),
        false => Ok(()),
    }
}

/// How transfers are declared: to an engine that computes functors by themselves it makes a difference which of these a bank has.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Declare {
    /// As keys that are updated: every engine runs the procedure.
    #[default]
    Whole,
    /// With a functor for each account, and a guard that reads the one that pays, which may be of another partition. The procedure is run
    /// for its result.
    Functors,
    /// With functors alone: nothing need be run, and nothing is returned (the paper's Figure 5). The procedure is [`Move`].
    OnlyFunctors,
}

/// Moves money from one account to another; aborts when there is too little.
pub struct Transfer {
    accounts: Accounts,
    /// Whether functors are declared.
    functors: bool,
}

impl Transfer {
    pub(super) fn new(accounts: Accounts, functors: bool) -> Transfer {
        Transfer { accounts, functors }
    }
}

impl Procedure for Transfer {
    type Arguments = Arguments;
    type Output = Balances;

    fn name(&self) -> &str {
        TRANSFER
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        if self.functors {
            return self.accounts.declare(arguments, footprint);
        }
        footprint.update(&self.accounts.key(arguments.from)?)?;
        footprint.update(&self.accounts.key(arguments.to)?)?;
        Ok(Declared::Complete)
    }

    fn guard(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        self.accounts.guard(arguments, transaction)
    }

    fn functors(&self) -> u16 {
        FUNCTORS
    }

    fn functor(&self, arguments: &Arguments, number: u16, account: &mut OwnRow<'_>) -> Result<(), Stop> {
        Accounts::apply(arguments, number, account).map(|_| ())
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<Balances, Stop> {
        if self.functors {
            return self.accounts.run(arguments, transaction);
        }
        let Arguments { from, to, amount } = *arguments;
        check(arguments)?;
        let Accounts { table, .. } = &self.accounts;
        let before = Balances {
            from: self.accounts.balance(transaction, from)?,
            to: self.accounts.balance(transaction, to)?,
        };
        covers(from, before.from, amount)?;
        let Some(credited) = before.to.checked_add(amount) else {
            return Err(Stop::abort(format!("account {to:?} cannot hold {amount} more")));
        };
        let after = Balances { from: before.from - amount, to: credited };
        let (from_key, to_key) = (self.accounts.key(from)?, self.accounts.key(to)?);
        transaction.set(table, &from_key, [(column::BALANCE, Value::Int64(after.from))])?;
        transaction.set(table, &to_key, [(column::BALANCE, Value::Int64(after.to))])?;
        Ok(after)
    }
}

/// Moves money like [`Transfer`], by functors alone, and returns nothing.
pub struct Move {
    accounts: Accounts,
}

impl Move {
    pub(super) fn new(accounts: Accounts) -> Move {
        Move { accounts }
    }
}

impl Procedure for Move {
    type Arguments = Arguments;
    type Output = ();

    fn name(&self) -> &str {
        MOVE
    }

    fn declare(&self, arguments: &Arguments, footprint: &mut Declaration<'_>) -> Result<Declared, DataError> {
        footprint.only_functors();
        self.accounts.declare(arguments, footprint)
    }

    fn guard(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        self.accounts.guard(arguments, transaction)
    }

    fn functors(&self) -> u16 {
        FUNCTORS
    }

    fn functor(&self, arguments: &Arguments, number: u16, account: &mut OwnRow<'_>) -> Result<(), Stop> {
        Accounts::apply(arguments, number, account).map(|_| ())
    }

    fn run(&self, arguments: &Arguments, transaction: &mut Transaction<'_>) -> Result<(), Stop> {
        self.accounts.run(arguments, transaction).map(|_| ())
    }
}
