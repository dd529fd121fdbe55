//! What must hold of the state: what statements can tell of it, and that indexes agree with their tables.

use std::collections::BTreeMap;

use bytes::Bytes;
use ordain_db::data::{Key, KeyRange};
use ordain_db::error::Error;
use ordain_db::message::{Operation, Page};
use ordain_db::position::{PartitionId, Position};
use ordain_db::procedure::Catalog;
use ordain_sql::bind::shape_with_indexes;
use ordain_sql::catalog::{Definition, locator};
use ordain_sql::error::SqlError;
use ordain_sql::execute::values_in_index;
use ordain_sql::keys::{ROW_COLUMN, Storages};
use ordain_sql::plan::{IndexShape, IndexState, TableShape};
use ordain_sql::types::{Datum, row};
use ordain_workload::{CheckLine, SnapshotReader};

use super::job::numbers;
use super::population::ask;
use super::told::Told;
use super::transcript::{Answer, Conversation, Question, Scene};
use super::{BALANCE, Options};

/// All rows of a state.
type Rows = BTreeMap<Bytes, Bytes>;

/// A condition, and what a query says of which no row may be left.
const NO_ROWS: [(&str, &str); 3] = [
    (
        "each visit refers to a person",
        "SELECT v.id, v.person FROM visit v LEFT JOIN person p ON p.id = v.person WHERE p.id IS NULL",
    ),
    ("no two persons have one address", "SELECT mail FROM person GROUP BY mail HAVING count(*) > 1"),
    ("no account is overdrawn", "SELECT id, balance FROM account WHERE balance < 0"),
];

/// What all accounts together have, as a client is told.
pub(crate) fn total(options: &Options) -> String {
    let accounts = u64::from(options.accounts);
    format!("{accounts} accounts with {}", accounts * BALANCE)
}

pub(super) fn check(
    options: &Options,
    catalog: &Catalog,
    reader: &mut dyn SnapshotReader,
) -> Result<Vec<CheckLine>, Error> {
    let mut rows = Rows::new();
    for table in catalog.schema.tables() {
        reader.scan(&table.all(), &mut |key, row| {
            rows.insert(Bytes::copy_from_slice(key), Bytes::copy_from_slice(row));
        })?;
    }
    let mut lines = Vec::new();
    let mut line = |condition: &str, problem: Option<String>| {
        let (holds, detail) = (problem.is_none(), problem.unwrap_or_else(|| "checked".to_owned()));
        lines.push(CheckLine { condition: condition.to_owned(), holds, detail });
    };
    for (condition, text) in NO_ROWS {
        let told = query(catalog, &rows, text)?;
        line(condition, told.rows.first().map(|row| format!("{row:?}")).or(error(&told)));
    }
    let told = query(catalog, &rows, "SELECT count(*), sum(balance) FROM account")?;
    let found = told
        .rows
        .first()
        .map(|row| row.iter().flatten().cloned().collect::<Vec<_>>().join(" accounts with "));
    let right = total(options);
    line(
        "money is conserved",
        (found.as_ref() != Some(&right)).then(|| format!("{found:?} against {right:?}")),
    );
    let text = format!(
        "SELECT * FROM audit WHERE total <> {} OR accounts <> {}",
        u64::from(options.accounts) * BALANCE,
        options.accounts
    );
    let told = query(catalog, &rows, &text)?;
    line("each audit saw all money", told.rows.first().map(|row| format!("{row:?}")).or(error(&told)));
    line("no list repeats a number", repeated(&lists(catalog, &rows)?));
    line(
        "indexes agree with their tables",
        disagreement(catalog, &rows).unwrap_or_else(|problem| Some(problem.to_string())),
    );
    Ok(lines)
}

fn error(told: &Told) -> Option<String> {
    told.error.as_ref().map(|(state, message)| format!("{state}: {message}"))
}

fn repeated(lists: &BTreeMap<u32, Vec<u64>>) -> Option<String> {
    let mut seen = BTreeMap::new();
    let mut all = lists.iter().flat_map(|(list, numbers)| numbers.iter().map(move |number| (list, number)));
    all.find_map(|(list, number)| {
        let before = seen.insert(*number, *list)?;
        Some(format!("{number} in list {list} and in list {before}"))
    })
}

/// The lists of a state.
pub(crate) fn lists(catalog: &Catalog, rows: &Rows) -> Result<BTreeMap<u32, Vec<u64>>, Error> {
    let told = query(catalog, rows, "SELECT id, numbers FROM list ORDER BY id")?;
    let list = |row: &Vec<Option<String>>| match row.as_slice() {
        [Some(id), Some(text)] => Some((id.parse().ok()?, numbers(text))),
        _ => None,
    };
    Ok(told.rows.iter().filter_map(list).collect())
}

/// What a session tells of a state.
fn query(catalog: &Catalog, rows: &Rows, text: &str) -> Result<Told, Error> {
    let scene = Scene::of(catalog, 1)?;
    let mut conversation = Conversation::new(None, 0, 0);
    let told = ask(&mut conversation, &scene, &[text][..], &mut |question| answer(rows, question));
    Ok(told.into_iter().next().unwrap_or_default())
}

fn answer(rows: &Rows, question: &Question) -> Answer {
    match question {
        Question::Ask(Operation::OpenSnapshot) => {
            let at = postcard::to_allocvec(&Position::LOADED).map(Bytes::from);
            Answer::Outcome(at.map_err(|error| Error::Invalid(error.to_string())))
        }
        Question::Ask(_) => Answer::Outcome(Err(Error::Invalid("a state can only be read".to_owned()))),
        Question::Pages { ranges, direction, .. } => {
            let page = |(_, range): &(PartitionId, KeyRange)| {
                let inside = rows.iter().filter(|(key, _)| range.contains(key));
                let mut rows: Vec<(&Bytes, &Bytes)> = inside.collect();
                rows.sort_by(|left, right| direction.compare(left.0, right.0));
                Page { rows: rows.into_iter().collect(), more: false }
            };
            Answer::Pages(Ok(ranges.iter().map(page).collect()))
        }
    }
}

/// The first index that has an entry without its row, or lacks one. An index that is being built may lack some.
fn disagreement(catalog: &Catalog, rows: &Rows) -> Result<Option<String>, SqlError> {
    let Some(storages) = Storages::find(&catalog.schema) else { return Ok(None) };
    for (name, definition) in definitions(&storages, rows)? {
        let Definition::Table(table) = definition else { continue };
        let shape = shape_with_indexes(&name, &table)?;
        let stored = of_storage(&storages, &shape, shape.storage, rows)?;
        for index in &shape.indexes {
            let expected = entries(&storages, &shape, index, &stored)?;
            let found = of_storage(&storages, &shape, index.storage, rows)?;
            let lacks = expected.iter().find(|(key, content)| {
                let there = found.get(*key);
                let may_lack = index.state == IndexState::Building && there.is_none();
                there != Some(*content) && !may_lack
            });
            let left = found.keys().find(|key| !expected.contains_key(*key));
            if let Some((key, _)) = lacks {
                return Ok(Some(format!(
                    "{} of {name} lacks the entry {key:?}, or has another row there",
                    index.name
                )));
            }
            if let Some(key) = left {
                return Ok(Some(format!("{} of {name} has an entry {key:?} without a row", index.name)));
            }
        }
    }
    Ok(None)
}

fn definitions(storages: &Storages, rows: &Rows) -> Result<Vec<(String, Definition)>, SqlError> {
    let table = &storages.definitions;
    let mut found = Vec::new();
    for (key, row) in rows.iter().filter(|(key, _)| table.all().contains(key)) {
        let definition = table.read(row).byte_string(ordain_sql::keys::DEFINITION_COLUMN).unwrap_or_default();
        let names = table.key_values(key).unwrap_or_default();
        if let [_, ordain_db::data::key::KeyValue::Text(name)] = names.as_slice() {
            found.push((name.to_string(), Definition::decode(definition)?));
        }
    }
    Ok(found)
}

/// What a storage holds, by key.
fn of_storage(
    storages: &Storages,
    shape: &TableShape,
    storage: u32,
    rows: &Rows,
) -> Result<BTreeMap<Bytes, Vec<u8>>, SqlError> {
    let range = storages.all(shape.replicated, storage)?;
    let table = storages.table(shape.replicated);
    let inside = rows.iter().filter(|(key, _)| range.contains(key));
    let content =
        |row: &Bytes| table.read(row).byte_string(ROW_COLUMN).map(<[u8]>::to_vec).unwrap_or_default();
    Ok(inside.map(|(key, row)| (key.clone(), content(row))).collect())
}

/// The entries that an index must have for these rows.
fn entries(
    storages: &Storages,
    shape: &TableShape,
    index: &IndexShape,
    stored: &BTreeMap<Bytes, Vec<u8>>,
) -> Result<BTreeMap<Bytes, Vec<u8>>, SqlError> {
    let mut entries = BTreeMap::new();
    for (key, content) in stored {
        let mut values = Vec::new();
        row::decode(content, &mut values)?;
        let missing = shape.columns.iter().skip(values.len()).map(|column| column.missing.clone());
        let values: Vec<Datum> = values.clone().into_iter().chain(missing).collect();
        // A row for which nothing can be computed is from before an index that is being built.
        let Some(found) = values_in_index(shape, index, &values).flatten() else { continue };
        let key = Key::from_bytes(key);
        let entry = storages.entry(shape, index, &found, &key)?;
        let content = match index.covering {
            true => {
                let mut whole = Vec::new();
                row::encode(&values, &mut whole);
                whole
            }
            false => locator(&key).to_vec(),
        };
        entries.insert(Bytes::copy_from_slice(entry.bytes()), content);
    }
    Ok(entries)
}
