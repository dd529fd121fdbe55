//! The text form of AWDIT and Plume: one read or write of a register a line, `r(key,value,session,transaction)`.
//!
//! ```text
//! history = { ("r" | "w") "(" key "," value "," session "," transaction ")" "\n" }
//! ```
//!
//! All are decimal numbers. The lines of a transaction stand in the order of its operations, its number is unique in the
//! history, and the transactions of a session stand in the session's order. The value 0 is what every key holds at first. The
//! transaction -1 marks the writes of those that aborted.
//!
//! A list becomes a register that holds the list's last number. An append is a read of the number before it and a write of its
//! own: read-modify-writes of unique values, from which a checker knows the order of all versions. A session is a process of
//! the history: it has one call under way at a time.
//!
//! A call that was not answered is written, without its reads, if someone saw one of its numbers: then it took effect.
//! If nobody did, it is left out.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use ordain_db::error::Error;
use ordain_workload::append::Append;

use super::transactions::{End, Step, Transaction, transactions};
use crate::history::History;

/// The number of all transactions that aborted.
const ABORTED: i64 = -1;

/// The history as text. Fails when a call or its answer is none of the workload's.
pub fn export(history: &History, append: &Append) -> Result<String, Error> {
    let transactions = transactions(history, append)?;
    let seen: BTreeSet<u64> =
        transactions.iter().flat_map(|transaction| &transaction.steps).flat_map(reads).collect();
    let mut out = String::new();
    for (index, transaction) in transactions.iter().enumerate() {
        let wrote = |step: &Step| matches!(step, Step::Append { number, .. } if seen.contains(number));
        let number = match transaction.end {
            End::Committed(_) => index as i64,
            End::Aborted(_) => ABORTED,
            End::Unknown if transaction.steps.iter().any(wrote) => index as i64,
            End::Unknown => continue,
        };
        write_transaction(&mut out, transaction, number).expect("a string takes everything");
    }
    Ok(out)
}

/// The numbers that a step saw.
fn reads(step: &Step) -> Vec<u64> {
    match step {
        Step::Read { numbers, .. } => numbers.clone().unwrap_or_default(),
        Step::Append { after, .. } => after.iter().copied().collect(),
    }
}

fn write_transaction(out: &mut String, transaction: &Transaction, number: i64) -> fmt::Result {
    let session = transaction.process;
    for step in &transaction.steps {
        match step {
            Step::Read { numbers: None, .. } => {}
            Step::Read { list, numbers: Some(numbers) } => {
                let last = numbers.last().copied().unwrap_or(0);
                writeln!(out, "r({list},{last},{session},{number})")?;
            }
            Step::Append { list, number: value, after } => {
                if let Some(last) = after {
                    writeln!(out, "r({list},{last},{session},{number})")?;
                }
                writeln!(out, "w({list},{value},{session},{number})")?;
            }
        }
    }
    Ok(())
}
