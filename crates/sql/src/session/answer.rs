//! What a client is sent of a statement.

use super::Session;
use super::copy::{CopyIn, CopyOut};
use crate::bind::Field;
use crate::error::{SqlError, SqlState};
use crate::execute::Output;
use crate::plan::{Action, CallForm, Plan};
use crate::protocol::Format;
use crate::protocol::backend::{Encoder, FieldDescription};
use crate::types::{BaseType, Datum, SqlType, Zone, binary, row, text};

/// What came of a statement.
pub(super) enum Answer {
    /// Rows.
    Rows(Rows),
    /// That it is done.
    Tag(String),
    /// Rows are expected from the client.
    CopyIn(Box<CopyIn>),
    /// Rows go to the client.
    CopyOut(CopyOut),
    /// Nothing was asked.
    Empty,
}

/// The rows of a result.
pub(super) struct Rows {
    pub fields: Vec<Field>,
    /// Encoded.
    pub rows: Vec<Vec<u8>>,
    /// What is said at their end.
    pub tag: Tag,
    /// How many have been sent.
    pub sent: usize,
    /// Whether intervals are written as ISO 8601 has them.
    pub iso_intervals: bool,
}

/// What a command tag is made of.
pub(super) enum Tag {
    /// The number of rows follows.
    Counting(&'static str),
    /// As it is.
    Whole(String),
}

impl Rows {
    /// Rows of texts, as `SHOW` and `EXPLAIN` give.
    pub(super) fn of_texts(names: &[&str], rows: &[Vec<String>], tag: &'static str) -> Rows {
        let field = |name: &&str| text_field(name);
        let encode = |values: &Vec<String>| {
            let values: Vec<Datum> = values.iter().cloned().map(Datum::Text).collect();
            let mut bytes = Vec::new();
            row::encode(&values, &mut bytes);
            bytes
        };
        Rows {
            fields: names.iter().map(field).collect(),
            rows: rows.iter().map(encode).collect(),
            tag: Tag::Whole(tag.to_owned()),
            sent: 0,
            iso_intervals: false,
        }
    }

    /// What is said at their end, or wherever else they end, of which `count` were sent just now.
    pub(super) fn tag(&self, count: usize) -> String {
        match &self.tag {
            Tag::Counting(name) => format!("{name} {count}"),
            Tag::Whole(tag) => tag.clone(),
        }
    }
}

pub(super) fn text_field(name: &str) -> Field {
    Field { name: name.to_owned(), data_type: SqlType::TEXT, origin: None, hidden: false }
}

impl Answer {
    /// The answer to a planned statement.
    pub(super) fn of(plan: &Plan, fields: Option<Vec<Field>>, output: Output) -> Answer {
        let written = output.written;
        let tag = match &plan.action {
            Action::Call { form: CallForm::Statement, .. } => Tag::Whole("CALL".to_owned()),
            Action::Query(_) | Action::Call { .. } => Tag::Counting("SELECT"),
            Action::Insert { .. } => Tag::Whole(format!("INSERT 0 {written}")),
            Action::Update { .. } => Tag::Whole(format!("UPDATE {written}")),
            Action::Delete { .. } => Tag::Whole(format!("DELETE {written}")),
            _ => Tag::Whole(String::new()),
        };
        match (fields, tag) {
            (Some(fields), tag) => {
                Answer::Rows(Rows { fields, rows: output.rows, tag, sent: 0, iso_intervals: false })
            }
            (None, Tag::Whole(tag)) => Answer::Tag(tag),
            (None, Tag::Counting(name)) => Answer::Tag(name.to_owned()),
        }
    }
}

impl Answer {
    /// The same answer, with intervals written as ISO 8601 has them, or not.
    pub(super) fn with_iso_intervals(mut self, iso_intervals: bool) -> Answer {
        if let Answer::Rows(rows) = &mut self {
            rows.iso_intervals = iso_intervals;
        }
        self
    }
}

impl Session {
    /// Sends an answer as a whole, as simple queries are answered.
    pub(super) fn answer(
        &mut self,
        answer: Answer,
        formats: &[Format],
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        self.tell(out);
        match answer {
            Answer::Empty => Encoder::new(out).empty_query_response(),
            Answer::Tag(tag) => Encoder::new(out).command_complete(&tag),
            Answer::Rows(mut rows) => {
                describe(&rows.fields, formats, out)?;
                send(&mut rows, formats, self.surroundings.zone, usize::MAX, out)?;
                Encoder::new(out).command_complete(&rows.tag(rows.sent));
            }
            Answer::CopyIn(copy) => {
                copy.announce(out)?;
                self.copying = Some(*copy);
            }
            Answer::CopyOut(copy) => copy.send(self.surroundings.zone, out)?,
        }
        Ok(())
    }
}

/// Sends the descriptions of columns.
pub(super) fn describe(fields: &[Field], formats: &[Format], out: &mut Vec<u8>) -> Result<(), SqlError> {
    let mut described = Vec::with_capacity(fields.len());
    for (place, field) in fields.iter().enumerate() {
        let (table_oid, column) = field.origin.unwrap_or((0, 0));
        let shown = shown_type(field.data_type);
        described.push(FieldDescription {
            name: &field.name,
            table_oid,
            column,
            type_oid: shown.oid(),
            type_size: shown.size(),
            type_modifier: shown.modifier.max(-1),
            format: format_of(formats, place),
        });
    }
    Encoder::new(out).row_description(&described)
}

/// The type as which a client sees a value.
pub(super) fn shown_type(data_type: SqlType) -> SqlType {
    if data_type.base == BaseType::Unknown { SqlType::TEXT } else { data_type }
}

/// The form of a column: none are given for text, one for all, or one for each.
pub(super) fn format_of(formats: &[Format], place: usize) -> Format {
    match formats {
        [] => Format::Text,
        [one] => *one,
        all => all.get(place).copied().unwrap_or(Format::Text),
    }
}

/// Sends the next rows, with moments in a zone, if there are more.
pub(super) fn send(
    rows: &mut Rows,
    formats: &[Format],
    zone: Zone,
    most: usize,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    let end = rows.rows.len().min(rows.sent.saturating_add(most));
    let mut values = Vec::new();
    for bytes in &rows.rows[rows.sent..end] {
        values.clear();
        row::decode(bytes, &mut values)?;
        if values.len() != rows.fields.len() {
            return Err(SqlError::new(
                SqlState::INTERNAL_ERROR,
                "a row does not have the columns of its result",
            ));
        }
        let mut encoder = Encoder::new(out);
        let mut sent = encoder.data_row(values.len());
        for (place, (value, field)) in values.iter().zip(&rows.fields).enumerate() {
            let shown = shown_type(field.data_type);
            match (value, format_of(formats, place)) {
                (Datum::Interval { months, days, microseconds }, Format::Text) if rows.iso_intervals => {
                    sent.value(|buffer| text::format_iso_interval(*months, *days, *microseconds, buffer));
                }
                (Datum::Null, _) => sent.null(),
                (value, Format::Text) => sent.value(|buffer| text::format(value, shown, zone, buffer)),
                (value, Format::Binary) => sent.value(|buffer| binary::encode(value, shown, buffer)),
            }
        }
        sent.finish()?;
    }
    rows.sent = end;
    Ok(())
}

/// Fails unless a client that knows the columns of one plan can take the rows of another.
pub(super) fn same_columns(known: Option<&[Field]>, new: Option<&[Field]>) -> Result<(), SqlError> {
    let of = |fields: Option<&[Field]>| {
        let columns = fields.unwrap_or_default().iter().map(|field| (field.name.clone(), field.data_type));
        columns.collect::<Vec<_>>()
    };
    if of(known) == of(new) {
        return Ok(());
    }
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, "cached plan must not change result type"))
}
