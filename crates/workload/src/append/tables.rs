//! The tables, and how their rows hold numbers.

use ordain_db::data::{ColumnType, DataError, Key, KeyRange, Row, SchemaBuilder, Table};

use super::RowName;

/// Column numbers.
mod column {
    pub(super) const NUMBERS: usize = 2;
    pub(super) const TARGET_SITE: usize = 2;
    pub(super) const TARGET_ID: usize = 3;
    pub(super) const NOTE: usize = 2;
    pub(super) const SETTING: usize = 1;
}

#[derive(Clone)]
pub(super) struct Tables {
    pub(super) lists: Table,
    pub(super) pointers: Table,
    pub(super) notes: Table,
    pub(super) settings: Table,
}

impl Tables {
    pub(super) fn add_to(schema: &mut SchemaBuilder) -> Result<Tables, DataError> {
        let at_site = |name: &str| {
            let table = Table::builder(name).column("site", ColumnType::Int32);
            let table = table.column("id", ColumnType::Int64).primary_key(&["site", "id"]);
            table.partition_by_column("site")
        };
        let pointers = at_site("pointers").column("target_site", ColumnType::Int32);
        let settings = Table::builder("settings").column("id", ColumnType::Int64).primary_key(&["id"]);
        Ok(Tables {
            lists: schema.table(at_site("lists").column("numbers", ColumnType::Bytes))?,
            pointers: schema.table(pointers.column("target_id", ColumnType::Int64))?,
            notes: schema.table(at_site("notes").column("number", ColumnType::Int64))?,
            settings: schema.table(settings.column("number", ColumnType::Int64).replicated())?,
        })
    }

    pub(super) fn list(&self, name: RowName) -> Result<Key, DataError> {
        key(&self.lists, name)
    }

    pub(super) fn pointer(&self, name: RowName) -> Result<Key, DataError> {
        key(&self.pointers, name)
    }

    pub(super) fn note(&self, name: RowName) -> Result<Key, DataError> {
        key(&self.notes, name)
    }

    /// The notes from one name to another, both included.
    pub(super) fn note_range(&self, from: RowName, to: RowName) -> Result<KeyRange, DataError> {
        let (start, end) = (i64::from(from.id), i64::from(to.id) + 1);
        self.notes.range((i32::from(from.site), start), (i32::from(to.site), end))
    }

    /// The name in the key of a note.
    pub(super) fn note_name(&self, key: &[u8]) -> Result<RowName, DataError> {
        let values = self.notes.key_values(key)?;
        let column = |index: usize| values.get(index).and_then(|value| value.integer());
        row_name(column(0), column(1))
    }

    pub(super) fn setting(&self, id: u32) -> Result<Key, DataError> {
        self.settings.key((i64::from(id),))
    }
}

fn key(table: &Table, name: RowName) -> Result<Key, DataError> {
    table.key((i32::from(name.site), i64::from(name.id)))
}

fn row_name(site: Option<i64>, id: Option<i64>) -> Result<RowName, DataError> {
    let site = site.and_then(|site| u16::try_from(site).ok());
    let id = id.and_then(|id| u32::try_from(id).ok());
    let (Some(site), Some(id)) = (site, id) else { return Err(DataError::Malformed("row name")) };
    Ok(RowName { site, id })
}

/// The numbers of a row of `lists`.
pub(super) fn list_numbers(row: Row<'_>) -> Result<Vec<u64>, DataError> {
    let (numbers, rest) = row.byte_string(column::NUMBERS)?.as_chunks();
    if !rest.is_empty() {
        return Err(DataError::Malformed("list"));
    }
    Ok(numbers.iter().map(|number| u64::from_le_bytes(*number)).collect())
}

/// The numbers as a row of `lists` holds them.
pub(super) fn list_bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The list that a row of `pointers` names.
pub(super) fn pointer_target(row: Row<'_>) -> Result<RowName, DataError> {
    let site = i64::from(row.int32(column::TARGET_SITE)?);
    row_name(Some(site), Some(row.int64(column::TARGET_ID)?))
}

/// The number of a row of `notes`.
pub(super) fn note_number(row: Row<'_>) -> Result<u64, DataError> {
    Ok(row.int64(column::NOTE)? as u64)
}

/// The number of a row of `settings`.
pub(super) fn setting_number(row: Row<'_>) -> Result<u64, DataError> {
    Ok(row.int64(column::SETTING)? as u64)
}
