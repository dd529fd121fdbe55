//! What a simulated client does with a session: a statement by itself, or a block, and what it learns from that.

use std::collections::BTreeSet;

use super::told::Told;
use super::transcript::Script;
use crate::history::{Conclusion, Fact};

/// A statement. Those of which the client learns something that is checked have a form of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Statement {
    /// Anything.
    Plain(String),
    /// Reads a list by its key.
    ReadList(u32),
    /// Reads all lists.
    ReadLists,
    /// Appends a number to a list, and reads it.
    Append {
        /// The list.
        list: u32,
        /// The number, which is appended nowhere else.
        number: u64,
    },
    /// Reads the balance of an account.
    Balance(u32),
    /// Sets the balance of an account to what the client has read before, and an amount more.
    SetBalance {
        /// The account.
        account: u32,
        /// The number of the message that has read it.
        read_by: usize,
        /// The amount.
        amount: i64,
    },
    /// Counts all accounts, and what they have together.
    Total,
    /// Draws a number.
    Ticket,
}

/// A message of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Message {
    Begin,
    BeginReadOnly,
    Say(Statement),
    Savepoint,
    /// Goes back to the savepoint.
    GoBack,
    Commit,
    RollBack,
}

/// What a client does as one transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// One statement, or a block: from its beginning to its end.
    messages: Vec<Message>,
}

/// SQLSTATEs, or classes of them, of errors that leave it open what became of a statement.
const OPEN: [&str; 4] = ["40003", "57", "53", "08"];

impl Job {
    /// A statement by itself.
    pub(crate) fn alone(statement: Statement) -> Job {
        Job { messages: vec![Message::Say(statement)] }
    }

    /// A block.
    pub(crate) fn block(messages: Vec<Message>) -> Job {
        Job { messages }
    }

    fn is_block(&self) -> bool {
        self.messages.len() > 1
    }

    /// The messages that were answered, each with what was told of it, in the order in which they were said: after an error some are
    /// left out.
    fn said<'j, 't>(&'j self, told: &'t [Told]) -> (Vec<(usize, &'t Told)>, Option<&'j Message>) {
        let (mut said, mut place) = (Vec::new(), 0);
        for told in told {
            said.push((place, told));
            place = match self.messages.get(place) {
                // Nothing but the end is accepted after an error, or going back to before it.
                Some(Message::Say(_)) if told.error.is_some() && self.is_block() => self.after_error(place),
                Some(Message::RollBack | Message::Commit) | None => self.messages.len(),
                Some(_) if told.error.is_some() => self.messages.len(),
                Some(_) => place + 1,
            };
        }
        (said, self.messages.get(place))
    }

    /// The message that follows an error of another one.
    fn after_error(&self, place: usize) -> usize {
        let back = self.messages.iter().position(|message| *message == Message::GoBack);
        let saved = self.messages.iter().position(|message| *message == Message::Savepoint);
        match (saved, back) {
            (Some(saved), Some(back)) if (saved..back).contains(&place) => back,
            // `COMMIT` rolls back a block that has failed.
            _ => self.messages.len() - 1,
        }
    }

    /// Whether the effects of a message are taken back by going back to a savepoint.
    fn is_undone(&self, place: usize) -> bool {
        let find = |wanted: &Message| self.messages.iter().position(|message| message == wanted);
        matches!((find(&Message::Savepoint), find(&Message::GoBack)), (Some(saved), Some(back)) if (saved..back).contains(&place))
    }

    /// What became of it, and what the client knows by what it was told.
    pub(crate) fn learnt(&self, told: &[Told]) -> (Conclusion, Vec<Fact>) {
        let (said, _) = self.said(told);
        let conclusion = self.conclusion(&said);
        let mut facts = Vec::new();
        for (place, told) in said {
            let Some(Message::Say(statement)) = self.messages.get(place) else { continue };
            if let Statement::Append { list, number } = statement {
                let stays = !self.is_undone(place) && (told.error.is_none() || !self.is_block());
                facts.push(Fact::Appended { list: *list, number: *number, stays });
            }
            if told.error.is_none() {
                facts.extend(shown(statement, told));
            }
        }
        (conclusion, facts)
    }

    fn conclusion(&self, said: &[(usize, &Told)]) -> Conclusion {
        let Some((_, last)) = said.last() else { return Conclusion::Failed };
        match last.state() {
            Some(state) if OPEN.iter().any(|open| state.starts_with(open)) => Conclusion::Unknown,
            Some(_) => Conclusion::Failed,
            None if self.is_block() && last.tag != "COMMIT" => Conclusion::Failed,
            None => Conclusion::Committed,
        }
    }
}

impl Script for Job {
    fn next(&self, told: &[Told]) -> Option<String> {
        let (said, next) = self.said(told);
        Some(match next? {
            Message::Begin => "BEGIN".to_owned(),
            Message::BeginReadOnly => "BEGIN READ ONLY".to_owned(),
            Message::Savepoint => "SAVEPOINT here".to_owned(),
            Message::GoBack => "ROLLBACK TO SAVEPOINT here".to_owned(),
            Message::Commit => "COMMIT".to_owned(),
            Message::RollBack => "ROLLBACK".to_owned(),
            Message::Say(statement) => statement.text(&said),
        })
    }
}

impl Statement {
    fn text(&self, said: &[(usize, &Told)]) -> String {
        match self {
            Statement::Plain(text) => text.clone(),
            Statement::ReadList(list) => format!("SELECT id, numbers FROM list WHERE id = {list}"),
            Statement::ReadLists => "SELECT id, numbers FROM list ORDER BY id".to_owned(),
            Statement::Append { list, number } => format!(
                "UPDATE list SET numbers = numbers || '{number},' WHERE id = {list} RETURNING id, numbers"
            ),
            Statement::Balance(account) => format!("SELECT balance FROM account WHERE id = {account}"),
            Statement::SetBalance { account, read_by, amount } => {
                let read = said.iter().find(|(place, _)| place == read_by).and_then(|(_, told)| told.value());
                let balance = read.and_then(|balance| balance.parse::<i64>().ok()).unwrap_or_default();
                format!("UPDATE account SET balance = {} WHERE id = {account}", balance + amount)
            }
            Statement::Total => "SELECT count(*), sum(balance) FROM account".to_owned(),
            Statement::Ticket => "SELECT nextval('tickets')".to_owned(),
        }
    }
}

/// The numbers of a list, as its text has them.
pub(crate) fn numbers(text: &str) -> Vec<u64> {
    text.split(',').filter_map(|number| number.parse().ok()).collect()
}

fn shown(statement: &Statement, told: &Told) -> Vec<Fact> {
    let list = |row: &Vec<Option<String>>| match row.as_slice() {
        [Some(id), Some(text)] => Some(Fact::List { list: id.parse().ok()?, numbers: numbers(text) }),
        _ => None,
    };
    match statement {
        Statement::ReadList(_) | Statement::ReadLists | Statement::Append { .. } => {
            told.rows.iter().filter_map(list).collect()
        }
        Statement::Total => {
            let total = told.rows.iter().map(|row| row.iter().flatten().cloned().collect::<Vec<_>>());
            total.map(|total| Fact::Total(total.join(" accounts with "))).collect()
        }
        Statement::Ticket => {
            told.value().and_then(|ticket| ticket.parse().ok()).map(Fact::Ticket).into_iter().collect()
        }
        Statement::Plain(_) | Statement::Balance(_) | Statement::SetBalance { .. } => Vec::new(),
    }
}

/// The errors that no statement of a job may meet: those of a database that contradicts itself.
pub(crate) fn contradictions(told: &[Told]) -> BTreeSet<String> {
    let error = |told: &Told| told.error.clone().filter(|(state, _)| state.starts_with("XX"));
    told.iter().filter_map(error).map(|(state, message)| format!("{state}: {message}")).collect()
}
