//! How Payment and Order-Status name their customer (clauses 2.5.1.2 and 2.6.1.2).

use ordain_db::procedure::{Stop, Transaction};
use serde::{Deserialize, Serialize};

use super::random::LastName;
use super::schema::Tables;

/// How a customer is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum CustomerName {
    /// By number.
    Number(i32),
    /// By last name: of all with that name in the district, ordered by first name, the middle one (clauses 2.5.2.2, 2.6.2.2).
    Last(LastName),
}

impl CustomerName {
    /// The number of the customer of a warehouse's district.
    pub(super) fn find(
        &self,
        tables: &Tables,
        (warehouse, district): (i32, i32),
        transaction: &mut Transaction<'_>,
    ) -> Result<i32, Stop> {
        let last = match self {
            CustomerName::Number(number) => return Ok(*number),
            CustomerName::Last(last) => last,
        };
        let named = tables.customer_by_name.prefix((warehouse, district, last.as_str()))?;
        let found = transaction.scan(&named, usize::MAX)?;
        if found.is_empty() {
            return Err(Stop::abort(format!("no customer of the district is named {last}")));
        }
        // The place n / 2, rounded up, counted from one (clause 2.5.2.2).
        let middle = &found[found.len().div_ceil(2) - 1];
        let columns = tables.customer_by_name.key_values(&middle.key)?;
        let number = columns.last().and_then(|column| column.integer());
        number.map(|number| number as i32).ok_or_else(|| Stop::Invalid("malformed index key".to_owned()))
    }
}
