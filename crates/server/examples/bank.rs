//! Two accounts and one procedure. Run it with `cargo run --example bank`.
use ordain::db::data::{ColumnType::Int64, DataError, Key, Table};
use ordain::db::procedure::{Declaration, Declared, Procedure, Stop, Transaction};
use ordain::{Database, Error};
struct Transfer(Table); // moves money between two accounts, which begin with 100
impl Procedure for Transfer {
    type Arguments = (i64, i64, i64); // from, to, amount
    type Output = i64; // what is left
    fn name(&self) -> &str {
        "transfer"
    }
    fn declare(
        &self,
        (from, to, _): &Self::Arguments,
        d: &mut Declaration<'_>,
    ) -> Result<Declared, DataError> {
        d.update(&self.0.key((*from,))?)?;
        d.update(&self.0.key((*to,))?).map(|()| Declared::Complete)
    }
    fn run(&self, (from, to, amount): &Self::Arguments, tx: &mut Transaction<'_>) -> Result<i64, Stop> {
        let mut add = |key: Key, amount: i64| -> Result<i64, Stop> {
            let balance = tx.get(&key)?.map_or(Ok(100), |row| row.int64("balance"))? + amount;
            tx.put(&self.0, &key, (balance,)).map(|()| balance)
        };
        add(self.0.key((*to,))?, *amount)?;
        let left = add(self.0.key((*from,))?, -amount)?;
        if left < 0 { Err(Stop::abort(format!("{} short", -left))) } else { Ok(left) }
    }
}
fn main() -> Result<(), Error> {
    let mut builder = Database::builder();
    let table = Table::builder("accounts").column("id", Int64).column("balance", Int64).primary_key(&["id"]);
    let accounts = builder.table(table)?;
    let transfer = builder.procedure(Transfer(accounts.clone()))?;
    let database = builder.partitions(2).open()?;
    assert_eq!(database.call(transfer, &(1, 2, 30)), Ok(70));
    assert_eq!(database.call(transfer, &(1, 2, 80)), Err(Error::Aborted("10 short".to_owned())));
    let mut total = 0;
    database.snapshot()?.scan(&accounts.all(), |_key, row| {
        total += accounts.read(row).int64("balance")?;
        Ok(())
    })?;
    assert_eq!(total, 200);
    database.close()
}
