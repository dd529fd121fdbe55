//! The tables and their first rows: made by a session, in a cluster of one partition.

use bytes::Bytes;
use ordain_db::cluster::Cluster;
use ordain_db::engine::EngineKind;
use ordain_db::error::Error;
use ordain_db::message::{ClientId, Page};
use ordain_db::position::PartitionId;
use ordain_db::procedure::Catalog;
use ordain_db::storage::memory::MemoryStorage;

use super::told::Told;
use super::transcript::{Answer, Conversation, Progress, Question, Scene, Script};
use super::{BALANCE, Options};

/// Who makes the tables.
const CLIENT: ClientId = ClientId { home: PartitionId(0), number: 1 };

fn statements(options: &Options) -> Vec<String> {
    let Options { accounts, lists, replicated, .. } = options;
    let copies = if *replicated { " WITH (replicated = true)" } else { "" };
    let texts = [
        &format!(
            "CREATE TABLE account (id int PRIMARY KEY, branch int NOT NULL, balance bigint NOT NULL CHECK (balance >= \
             0)){copies}"
        ),
        "CREATE INDEX account_branch ON account (branch)",
        &format!(
            "INSERT INTO account SELECT i, i % 3, {BALANCE} FROM generate_series(0, {accounts} - 1) AS g(i)"
        ),
        "CREATE TABLE list (id int PRIMARY KEY, numbers text NOT NULL)",
        &format!("INSERT INTO list SELECT i, '' FROM generate_series(0, {lists} - 1) AS g(i)"),
        "CREATE TABLE person (id int PRIMARY KEY, mail text UNIQUE, visits int NOT NULL)",
        "CREATE TABLE visit (id bigserial PRIMARY KEY, person int NOT NULL REFERENCES person ON DELETE CASCADE, note int)",
        "CREATE INDEX visit_person ON visit (person)",
        "CREATE TABLE setting (name text PRIMARY KEY, value int NOT NULL) WITH (replicated = true)",
        "INSERT INTO setting VALUES ('a', 0), ('b', 0)",
        "CREATE TABLE audit (total numeric, accounts bigint)",
        "CREATE SEQUENCE tickets",
    ];
    texts.map(str::to_owned).to_vec()
}

/// What there is at first, ascending by key.
pub(super) fn rows(catalog: &Catalog, options: &Options) -> Result<Vec<(Bytes, Bytes)>, Error> {
    let mut cluster = Cluster::build(EngineKind::Serial, 1, catalog, 0, |_| Box::new(MemoryStorage::new()));
    let scene = Scene::of(catalog, 1)?;
    let mut known = None;
    for (number, text) in (1..).zip(statements(options)) {
        let mut conversation = Conversation::new(known, 0, number << 32);
        let script: [&str; 1] = [&text];
        for told in
            ask(&mut conversation, &scene, &script[..], &mut |question| answer(&mut cluster, question))
        {
            if let Some((state, message)) = told.error {
                return Err(Error::Invalid(format!("{text} fails with {state}: {message}")));
            }
        }
        known = conversation.known();
    }
    let at = cluster.open_snapshot(CLIENT)?;
    let mut rows = Vec::new();
    for table in catalog.schema.tables() {
        rows.extend(cluster.scan(CLIENT, at, &table.all())?);
    }
    rows.sort_unstable();
    Ok(rows)
}

/// Runs a conversation whose questions are answered at once.
pub(super) fn ask(
    conversation: &mut Conversation,
    scene: &Scene,
    script: &(impl Script + ?Sized),
    answer: &mut dyn FnMut(&Question) -> Answer,
) -> Vec<Told> {
    loop {
        match conversation.run(scene, script) {
            Progress::Ended(told) => return told,
            Progress::Asks(question) => {
                let answer = answer(&question);
                conversation.answer(question, answer);
            }
        }
    }
}

fn answer(cluster: &mut Cluster, question: &Question) -> Answer {
    match question {
        Question::Ask(operation) => {
            let request = cluster.submit(PartitionId(0), CLIENT, operation.clone());
            while cluster.replies(request).is_empty() && cluster.step() {}
            Answer::Outcome(cluster.reply(request).clone())
        }
        Question::Pages { at, ranges, direction, .. } => {
            let page = |(_, range): &(PartitionId, _)| {
                let mut rows = cluster.scan(CLIENT, *at, range)?;
                rows.sort_by(|left, right| direction.compare(&left.0, &right.0));
                Ok(Page { rows: rows.into_iter().collect(), more: false })
            };
            // The cluster ends soon, so that no snapshot need be closed.
            Answer::Pages(ranges.iter().map(page).collect())
        }
    }
}
