//! What a client is sent of a statement.

use std::sync::Arc;

use super::Session;
use super::copy::{CopyIn, CopyOut};
use super::out::Out;
use crate::bind::Field;
use crate::error::{SqlError, SqlState};
use crate::execute::{EncodedRows, Kept, Output};
use crate::plan::{Action, CallForm, Plan};
use crate::protocol::Format;
use crate::protocol::backend::{Encoder, FieldDescription};
use crate::types::{BaseType, Datum, SqlType, Zone, binary, row, text};

/// What came of a statement.
pub(super) enum Answer {
    /// Rows.
    Rows(Rows),
    /// That it is done.
    Tag(Tag),
    /// Rows are expected from the client.
    CopyIn(Box<CopyIn>),
    /// Rows go to the client.
    CopyOut(Box<CopyOut>),
    /// Nothing was asked.
    Empty,
}

/// The rows of a result.
pub(super) struct Rows {
    pub fields: Arc<[Field]>,
    /// Encoded.
    pub rows: EncodedRows,
    /// What is said at their end.
    pub tag: Tag,
    /// How many have been sent.
    pub sent: usize,
    /// What counts them; `None` for few.
    pub _kept: Option<Kept>,
}

/// How values are written.
pub(super) struct Manner<'f> {
    /// The form of each column; see [`format_of`].
    pub formats: &'f [Format],
    /// The zone of moments.
    pub zone: Zone,
    /// Whether intervals are written as ISO 8601 has them.
    pub iso_intervals: bool,
}

/// What a command tag is made of.
pub(super) enum Tag {
    /// The number of rows that are sent follows.
    Counting(&'static str),
    /// This number follows.
    Counted(&'static str, u64),
    /// Nothing follows.
    Plain(&'static str),
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
            tag: Tag::Plain(tag),
            sent: 0,
            _kept: None,
        }
    }

    /// Those of a query whose rows were all sent.
    pub(super) fn given(fields: Arc<[Field]>) -> Rows {
        Rows { fields, rows: EncodedRows::new(), tag: Tag::Counting("SELECT"), sent: 0, _kept: None }
    }
}

impl Tag {
    /// Says it, where `sent` rows were sent just now.
    pub(super) fn say(&self, sent: usize, out: &mut Vec<u8>) {
        let (tag, count) = match *self {
            Tag::Counting(tag) => (tag, Some(sent as u64)),
            Tag::Counted(tag, count) => (tag, Some(count)),
            Tag::Plain(tag) => (tag, None),
        };
        Encoder::new(out).command_complete(tag, count);
    }
}

pub(super) fn text_field(name: &str) -> Field {
    Field { name: name.to_owned(), data_type: SqlType::TEXT, origin: None, hidden: false }
}

impl Answer {
    /// The answer to a planned statement.
    pub(super) fn of(
        plan: &Plan,
        fields: Option<Arc<[Field]>>,
        (output, kept): (Output, Option<Kept>),
    ) -> Answer {
        let written = output.written;
        let tag = match &plan.action {
            Action::Call { form: CallForm::Statement, .. } => Tag::Plain("CALL"),
            Action::Query(_) | Action::Call { .. } => Tag::Counting("SELECT"),
            Action::Insert { .. } => Tag::Counted("INSERT 0", written),
            Action::Update { .. } => Tag::Counted("UPDATE", written),
            Action::Delete { .. } => Tag::Counted("DELETE", written),
            _ => Tag::Plain(""),
        };
        match fields {
            Some(fields) => Answer::Rows(Rows { fields, rows: output.rows, tag, sent: 0, _kept: kept }),
            None => Answer::Tag(tag),
        }
    }
}

impl Session {
    /// How the client is written values.
    pub(super) fn manner<'f>(&self, formats: &'f [Format]) -> Manner<'f> {
        let (zone, iso_intervals) = (self.surroundings.zone, self.settings.has_iso_intervals());
        Manner { formats, zone, iso_intervals }
    }

    /// Sends an answer as a whole, as simple queries are answered.
    pub(super) fn answer(
        &mut self,
        answer: Answer,
        formats: &[Format],
        out: &mut Out<'_>,
    ) -> Result<(), SqlError> {
        self.tell(out);
        match answer {
            Answer::Empty => Encoder::new(out).empty_query_response(),
            Answer::Tag(tag) => tag.say(0, out),
            Answer::Rows(mut rows) => {
                describe(&rows.fields, formats, out)?;
                send(&mut rows, &self.manner(formats), usize::MAX, out)?;
                rows.tag.say(rows.sent, out);
            }
            Answer::CopyIn(copy) => {
                copy.announce(out)?;
                self.copying = Some(*copy);
            }
            Answer::CopyOut(copy) => self.answer_copy(&copy, out)?,
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

/// Sends the next rows, if there are more, as they come.
pub(super) fn send(
    rows: &mut Rows,
    manner: &Manner<'_>,
    most: usize,
    out: &mut Out<'_>,
) -> Result<(), SqlError> {
    let end = rows.rows.len().min(rows.sent.saturating_add(most));
    let mut values = Vec::new();
    for bytes in &rows.rows[rows.sent..end] {
        values.clear();
        row::decode(bytes, &mut values)?;
        send_row(&values, &rows.fields, manner, out)?;
        out.relieve()?;
    }
    rows.sent = end;
    Ok(())
}

/// Sends a row.
pub(super) fn send_row(
    values: &[Datum],
    fields: &[Field],
    manner: &Manner<'_>,
    out: &mut Vec<u8>,
) -> Result<(), SqlError> {
    if values.len() != fields.len() {
        let message = "a row does not have the columns of its result";
        return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
    }
    let mut encoder = Encoder::new(out);
    let mut sent = encoder.data_row(values.len());
    for (place, (value, field)) in values.iter().zip(fields).enumerate() {
        let shown = shown_type(field.data_type);
        match (value, format_of(manner.formats, place)) {
            (Datum::Interval { months, days, microseconds }, Format::Text) if manner.iso_intervals => {
                sent.value(|buffer| text::format_iso_interval(*months, *days, *microseconds, buffer));
            }
            (Datum::Null, _) => sent.null(),
            (value, Format::Text) => sent.value(|buffer| text::format(value, shown, manner.zone, buffer)),
            (value, Format::Binary) => sent.value(|buffer| binary::encode(value, shown, buffer)),
        }
    }
    sent.finish()
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
