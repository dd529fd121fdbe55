//! Draws what a client does, one thing after the other.

use ordain_workload::random::Random;

use super::Options;
use super::job::{Job, Message, Statement};

/// Numbers that one client appends; their multiples are the clients' first numbers.
const NUMBERS_PER_CLIENT: u64 = 1 << 20;

/// Addresses that persons have.
const MAILS: u64 = 6;

/// The jobs of a client.
pub(crate) struct Jobs {
    options: Options,
    random: Random,
    /// The next number that it appends.
    number: u64,
}

impl Jobs {
    pub(crate) fn new(options: &Options, seed: u64, client: u64) -> Jobs {
        let random = Random::new(seed, "statements of a client", &[client]);
        Jobs { options: options.clone(), random, number: (client + 1) * NUMBERS_PER_CLIENT }
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> Job {
        let options = &self.options;
        let (definitions, blocks) = (options.definitions_percent, options.blocks_percent);
        let drawn = self.random.below(100);
        if drawn < definitions {
            Job::alone(Statement::Plain(self.definition()))
        } else if drawn < definitions + blocks {
            self.block()
        } else {
            Job::alone(self.statement())
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn account(&mut self) -> u32 {
        self.random.below(u64::from(self.options.accounts)) as u32
    }

    /// Two accounts that are not the same.
    fn accounts(&mut self) -> (u32, u32) {
        let accounts = self.options.accounts;
        let (first, further) = (self.account(), 1 + self.random.below(u64::from(accounts) - 1) as u32);
        (first, (first + further) % accounts)
    }

    fn person(&mut self) -> u64 {
        self.random.below(u64::from(self.options.persons))
    }

    fn list(&mut self) -> u32 {
        self.random.below(u64::from(self.options.lists)) as u32
    }

    fn append(&mut self) -> Statement {
        self.number += 1;
        Statement::Append { list: self.list(), number: self.number }
    }

    fn block(&mut self) -> Job {
        let mut messages = vec![Message::Begin];
        match self.below(8) {
            0 => {
                messages[0] = Message::BeginReadOnly;
                for _ in 0..1 + self.below(3) {
                    let statement = self.reading();
                    messages.push(Message::Say(statement));
                }
            }
            1 | 2 => {
                let ((from, to), amount) = (self.accounts(), 1 + self.below(30) as i64);
                messages.extend(
                    [
                        Statement::Balance(from),
                        Statement::Balance(to),
                        Statement::SetBalance { account: from, read_by: 1, amount: -amount },
                        Statement::SetBalance { account: to, read_by: 2, amount },
                    ]
                    .map(Message::Say),
                );
            }
            3 => {
                messages.push(Message::Say(self.statement()));
                messages.push(Message::Savepoint);
                messages.push(Message::Say(self.statement()));
                messages.push(Message::GoBack);
                messages.push(Message::Say(self.statement()));
            }
            4 | 5 => {
                messages.push(Message::Say(Statement::ReadList(self.list())));
                for _ in 0..1 + self.below(2) {
                    let statement = self.append();
                    messages.push(Message::Say(statement));
                }
            }
            6 if self.below(100) < self.options.definitions_percent => {
                let definition = Statement::Plain(self.definition());
                messages.extend([definition, self.statement()].map(Message::Say));
            }
            _ => {
                for _ in 0..1 + self.below(3) {
                    let statement = self.statement();
                    messages.push(Message::Say(statement));
                }
            }
        }
        messages.push(if self.below(10) == 0 { Message::RollBack } else { Message::Commit });
        Job::block(messages)
    }

    fn reading(&mut self) -> Statement {
        match self.below(7) {
            0..=2 => Statement::ReadList(self.list()),
            3 => Statement::ReadLists,
            4 | 5 => Statement::Total,
            _ => Statement::Plain(self.query()),
        }
    }

    fn statement(&mut self) -> Statement {
        match self.below(10) {
            0 | 1 => self.append(),
            2 | 3 => self.reading(),
            4 => Statement::Ticket,
            5 => Statement::Plain(self.money()),
            6 | 7 => Statement::Plain(self.people()),
            8 => Statement::Plain(self.visits()),
            _ => Statement::Plain(self.others()),
        }
    }

    fn query(&mut self) -> String {
        let (person, branch) = (self.person(), self.below(3));
        match self.below(4) {
            0 => format!("SELECT id, mail FROM person WHERE mail = 'm{}'", self.below(MAILS)),
            1 => "SELECT p.id, count(v.id) FROM person p LEFT JOIN visit v ON v.person = p.id GROUP BY p.id \
                  ORDER BY p.id"
                .to_owned(),
            2 => format!("SELECT id, balance FROM account WHERE branch = {branch} ORDER BY id"),
            _ => format!(
                "SELECT v.id, p.mail FROM visit v JOIN person p ON p.id = v.person WHERE p.id = {person}"
            ),
        }
    }

    /// Money is moved, and what there is of it is noted; its sum stays.
    fn money(&mut self) -> String {
        let ((from, to), amount) = (self.accounts(), self.below(30));
        let (branch, other) = (self.below(3), self.below(3));
        match self.below(5) {
            0 | 1 => format!(
                "UPDATE account SET balance = balance + CASE id WHEN {from} THEN -{amount} ELSE {amount} END \
                 WHERE id IN ({from}, {to})"
            ),
            2 => format!("UPDATE account SET branch = {branch} WHERE id = {from} RETURNING branch"),
            3 => format!("UPDATE account SET branch = {other} WHERE branch = {branch} RETURNING id"),
            _ => "INSERT INTO audit SELECT sum(balance), count(*) FROM account".to_owned(),
        }
    }

    fn people(&mut self) -> String {
        let (person, other) = (self.person(), self.person());
        let (mail, new) = (self.below(MAILS), self.below(MAILS));
        match self.below(7) {
            0 | 1 => format!(
                "INSERT INTO person VALUES ({person}, 'm{mail}', 1) ON CONFLICT (mail) DO UPDATE SET visits = \
                 person.visits + 1 RETURNING visits"
            ),
            2 => format!("INSERT INTO person VALUES ({person}, 'm{mail}', 0) ON CONFLICT DO NOTHING"),
            3 => format!("UPDATE person SET mail = 'm{new}' WHERE mail = 'm{mail}' RETURNING id"),
            4 => format!("DELETE FROM person WHERE id = {person} RETURNING mail"),
            5 => format!("UPDATE person SET id = {other} WHERE id = {person}"),
            _ => format!(
                "UPDATE person SET visits = (SELECT count(*) FROM visit WHERE visit.person = person.id) WHERE id = \
                 {person}"
            ),
        }
    }

    fn visits(&mut self) -> String {
        let (person, note) = (self.person(), self.below(20));
        match self.below(4) {
            0 | 1 => format!("INSERT INTO visit (person, note) VALUES ({person}, {note}) RETURNING id"),
            2 => format!("DELETE FROM visit WHERE person = {person} AND note < {note}"),
            _ => format!("UPDATE visit SET note = note + 1 WHERE person = {person} RETURNING id, note"),
        }
    }

    fn others(&mut self) -> String {
        let (name, number) = (["a", "b"][self.below(2) as usize], self.below(50));
        match self.below(4) {
            0 | 1 => format!("UPDATE setting SET value = value + 1 WHERE name = '{name}' RETURNING value"),
            2 => format!("INSERT INTO note VALUES ({number}, {number}), ({}, 0)", number + 50),
            _ => format!("DELETE FROM note WHERE id = {number}"),
        }
    }

    /// A definition; many fail, as what they make is there already, or what they take is not.
    fn definition(&mut self) -> String {
        let number = self.below(2);
        match self.below(14) {
            0 | 1 => "CREATE INDEX account_balance ON account (balance)".to_owned(),
            2 | 3 => "DROP INDEX IF EXISTS account_balance".to_owned(),
            4 => "CREATE UNIQUE INDEX person_visits ON person (visits) WHERE visits > 1".to_owned(),
            5 => "DROP INDEX IF EXISTS person_visits".to_owned(),
            6 => "CREATE INDEX visit_note ON visit ((note % 7), person) WHERE note > 2".to_owned(),
            7 => "DROP INDEX IF EXISTS visit_note".to_owned(),
            8 => format!("ALTER TABLE person ADD COLUMN IF NOT EXISTS extra{number} int DEFAULT {number}"),
            9 => format!("ALTER TABLE person DROP COLUMN IF EXISTS extra{number}"),
            10 => "TRUNCATE visit".to_owned(),
            11 => "CREATE TABLE IF NOT EXISTS note (id int, value int)".to_owned(),
            12 => "ALTER TABLE note ADD PRIMARY KEY (id)".to_owned(),
            _ => "DROP TABLE IF EXISTS note".to_owned(),
        }
    }
}
