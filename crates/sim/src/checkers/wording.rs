//! How checkers name what they found: requests, keys and rows as people read them.

use ordain_db::data::key::KeyValue;
use ordain_db::data::{Schema, Value};
use ordain_db::error::Outcome;
use ordain_db::message::{RequestId, Verdict};

/// Characters of one value that are shown.
const VALUE_CHARACTERS_MAX: usize = 40;

/// A request: its client's number and home, and its own number, as in `c7@p1#3`.
pub(crate) fn request(id: RequestId) -> String {
    format!("c{}@{}#{}", id.client.number, id.client.home, id.sequence)
}

/// A key: its table and its columns, as in `accounts (0, 3)`.
pub(crate) fn key(schema: &Schema, key: &[u8]) -> String {
    let decoded = schema.table_of(key).and_then(|table| Ok((table.name(), table.key_values(key)?)));
    let Ok((table, values)) = decoded else { return format!("a key of no table {}", hexadecimal(key)) };
    let values = values.iter().map(|value| match value {
        KeyValue::Bool(value) => value.to_string(),
        KeyValue::Int32(value) => value.to_string(),
        KeyValue::Int64(value) => value.to_string(),
        KeyValue::Float64(value) => value.to_string(),
        KeyValue::Text(value) => shortened(format!("{value:?}")),
        KeyValue::Bytes(value) => hexadecimal(value),
    });
    format!("{table} ({})", values.collect::<Vec<String>>().join(", "))
}

/// A row of a key: the columns that are not part of the key, as in `[100, "a name"]`.
pub(crate) fn row(schema: &Schema, key: &[u8], row: Option<&[u8]>) -> String {
    let Some(row) = row else { return "no row".to_owned() };
    let Ok(table) = schema.table_of(key) else { return format!("bytes {}", hexadecimal(row)) };
    if table.layout().check(row).is_err() {
        return format!("bytes {} that are no row", hexadecimal(row));
    }
    let reader = table.read(row);
    // Columns of the key are not in the row, and reading them is an error.
    let values = (0..table.layout().column_count()).filter_map(|column| reader.value(column).ok());
    let values = values.map(|value| match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int32(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::Float64(value) => value.to_string(),
        Value::Text(value) => shortened(format!("{value:?}")),
        Value::Bytes(value) => hexadecimal(value),
    });
    format!("[{}]", values.collect::<Vec<String>>().join(", "))
}

/// What one side of a comparison says of a key: see [`Difference`](super::evidence::Difference).
pub(crate) fn read(schema: &Schema, key: &[u8], found: Option<Option<&[u8]>>) -> String {
    found.map_or_else(|| "it was not read".to_owned(), |found| row(schema, key, found))
}

/// A verdict.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Committed(result) => format!("committed with result {}", hexadecimal(result)),
        Verdict::Failed(error) => format!("failed, {error}"),
        Verdict::FootprintMissed => "missed its footprint".to_owned(),
    }
}

/// An answer.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Ok(result) => format!("result {}", hexadecimal(result)),
        Err(error) => error.to_string(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    shortened(format!("0x{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use ordain_db::data::{ColumnType, SchemaBuilder, Table};

    use super::*;

    #[test]
    fn keys_and_rows_are_shown_decoded() {
        let mut schema = SchemaBuilder::new();
        let table = Table::builder("notes")
            .column("author", ColumnType::Text)
            .column("number", ColumnType::Int32)
            .column("text", ColumnType::Text)
            .nullable("likes", ColumnType::Int64)
            .primary_key(&["author", "number"]);
        let table = schema.table(table).unwrap();
        let schema = schema.finish();
        let written = table.key(("ada", -2_i32)).unwrap();
        let contents = table.row(("ü".repeat(60).as_str(), None::<i64>)).unwrap();
        assert_eq!(key(&schema, &written), "notes (\"ada\", -2)");
        let expected = format!("[\"{}…, null]", "ü".repeat(39));
        assert_eq!(row(&schema, &written, Some(&contents)), expected);
        assert_eq!(row(&schema, &written, None), "no row");
        assert_eq!(row(&schema, &written, Some(&[1, 2])), "bytes 0x0102 that are no row");
        assert_eq!(row(&schema, &[9, 9], Some(&[1, 2])), "bytes 0x0102");
        assert_eq!(key(&schema, &written[..4]), "a key of no table 0x00006164");
        assert_eq!(key(&schema, &[7]), "a key of no table 0x07");
    }
}
