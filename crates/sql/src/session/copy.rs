//! `COPY`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, ObjectName, Statement,
};

use super::Session;
use super::answer::Answer;
use super::deliver::Deliver;
use super::numbers::refuse_restarted;
use super::out::Out;
use super::portals::Waiting;
use crate::bind::names::name_of;
use crate::bind::{self, Field, Prepared, RowCheck};
use crate::error::{SqlError, SqlState};
use crate::execute::receive::{Receive, pass_on};
use crate::plan::{Action, Expression, Node, Plan, SharedPlan};
use crate::procedure::Step;
use crate::procedure::too_much;
use crate::protocol::Format;
use crate::protocol::backend::Encoder;
use crate::protocol::copy::{CopyFormat, CopyOptions, Header, RowDecoder, RowEncoder};
use crate::protocol::frontend::Frontend;
use crate::types::{BaseType, Datum, SqlType, Values, Zone, binary, row, text};

/// Bytes of rows that go into one transaction when they are loaded into a table that nobody sees yet.
const LOAD_BYTES: usize = 512 * 1024;

/// Keys that such a transaction writes: half of what a footprint can hold.
const LOAD_KEYS: usize = ordain_db::limits::FOOTPRINT_ENTRIES_MAX / 2;

/// Numbers that are drawn from a sequence in one transaction; what is left at the end is lost, as in PostgreSQL.
const DRAWN_AT_ONCE: usize = 256;

/// Rows that come from a client.
pub(super) struct CopyIn {
    pub table: ObjectName,
    /// Those that the statement names.
    pub named: Vec<Ident>,
    decoder: RowDecoder,
    format: Format,
    /// Inserts rows whose columns are the statement's parameters.
    pub prepared: Prepared,
    /// The names of these columns.
    columns: Vec<String>,
    /// The storages of the table and its indexes, and whether they are copied to every partition, if only this block knows them: then
    /// rows are loaded at once.
    pub loads: Option<Vec<(u32, bool)>>,
    /// Whether the table is known to have rows already, or foreign keys are checked at the end of the block: then what comes must go into one
    /// transaction.
    pub has_others: bool,
    /// Rows that have come and are not written yet: full rows, encoded.
    rows: Vec<Vec<u8>>,
    bytes: usize,
    written: u64,
    /// Numbers that were drawn from the statement's sequences and are not used yet.
    numbers: BTreeMap<u16, VecDeque<i64>>,
    /// Something was wrong: what comes is thrown away.
    failed: Option<SqlError>,
    /// Asked for by the extended protocol, where only `Sync` is answered by the word that the client can go on.
    pub is_extended: bool,
}

/// Rows that go to a client.
pub(super) struct CopyOut {
    options: CopyOptions,
    statement: Statement,
    prepared: Prepared,
}

impl Session {
    pub(super) fn copy(
        &mut self,
        source: &CopySource,
        to: bool,
        target: &CopyTarget,
        options: &[CopyOption],
        legacy: &[CopyLegacyOption],
    ) -> Result<Answer, SqlError> {
        if !matches!((to, target), (true, CopyTarget::Stdout) | (false, CopyTarget::Stdin)) {
            return Err(SqlError::unsupported("COPY with a file or program of the server")
                .with_hint("Use COPY FROM STDIN or TO STDOUT; psql has \\copy for files of its own."));
        }
        let mut options = options.to_vec();
        legacy.iter().try_for_each(|option| spell_out(option, &mut options))?;
        let options = copy_options(&options)?;
        if to { self.copy_out(source, options) } else { self.copy_in(source, options) }
    }

    fn copy_out(&mut self, source: &CopySource, options: CopyOptions) -> Result<Answer, SqlError> {
        if matches!(options.header, Header::Match(_)) {
            let message = "cannot use \"match\" with HEADER in COPY TO";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let statement = match source {
            CopySource::Query(query) => Statement::Query(query.clone()),
            CopySource::Table { table_name, columns } => {
                refuse_twice(columns)?;
                let columns = self.copied(table_name, columns)?;
                let columns = if columns.is_empty() { "*".to_owned() } else { list(&columns) };
                let query = crate::syntax::parse_query(&format!("SELECT {columns} FROM {table_name}"))?;
                Statement::Query(Box::new(query))
            }
        };
        let (_, prepared) = self.prepare(&statement, &[])?;
        Ok(Answer::CopyOut(Box::new(CopyOut { options, statement, prepared })))
    }

    fn copy_in(&mut self, source: &CopySource, mut options: CopyOptions) -> Result<Answer, SqlError> {
        let CopySource::Table { table_name, columns } = source else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "cannot copy from a query"));
        };
        self.refuse_change("COPY FROM")?;
        // The plan is kept until all rows have come: it is not made from old definitions.
        let catalog = self.catalog()?;
        self.renew(&catalog)?;
        let columns = self.copied(table_name, columns)?;
        let (prepared, names) = self.insertion(table_name, &columns)?;
        if let Header::Match(wanted) = &mut options.header {
            wanted.clone_from(&names);
        }
        let loads = self.own_storages(&prepared);
        let format = if options.format == CopyFormat::Binary { Format::Binary } else { Format::Text };
        let decoder = RowDecoder::new(options)?;
        let copy = CopyIn {
            table: table_name.clone(),
            named: columns,
            decoder,
            format,
            prepared,
            columns: names,
            loads,
            has_others: false,
            rows: Vec::new(),
            bytes: 0,
            written: 0,
            numbers: BTreeMap::new(),
            failed: None,
            is_extended: false,
        };
        Ok(Answer::CopyIn(Box::new(copy)))
    }

    fn copied(&mut self, table: &ObjectName, named: &[Ident]) -> Result<Vec<Ident>, SqlError> {
        let catalog = self.catalog()?;
        bind::copied(table, named, &catalog, &self.surroundings)
    }

    /// The plan that inserts a row of parameters.
    pub(super) fn insertion(
        &mut self,
        table: &ObjectName,
        columns: &[Ident],
    ) -> Result<(Prepared, Vec<String>), SqlError> {
        let names: Vec<String> = if columns.is_empty() {
            let query = crate::syntax::parse(&format!("SELECT * FROM {table}"))?;
            let (_, prepared) = self.prepare(&query[0], &[])?;
            prepared.fields.iter().flat_map(|fields| &**fields).map(|field| field.name.clone()).collect()
        } else {
            columns.iter().map(name_of).collect()
        };
        let values: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
        let columns = if columns.is_empty() { String::new() } else { format!("({})", list(columns)) };
        let text = format!("INSERT INTO {table} {columns} VALUES ({})", values.join(", "));
        let statement = crate::syntax::parse(&text)?;
        let (_, mut prepared) = self.prepare(&statement[0], &[])?;
        if let Action::Insert { source: Node::Values(rows), .. } = &prepared.plan.action {
            rows.iter().flatten().for_each(|value| read_as_fields(value, &mut prepared.parameters));
            return Ok((prepared, names));
        }
        Err(SqlError::new(SqlState::INTERNAL_ERROR, "COPY without an insertion"))
    }

    /// Takes a message of a client that copies.
    pub(super) fn copy_message(&mut self, message: Frontend, out: &mut Vec<u8>) {
        // What still comes after an error is thrown away.
        let Some(mut copy) = self.copying.take() else { return };
        let is_extended = copy.is_extended;
        let outcome = match message {
            Frontend::CopyData(data) => {
                if copy.failed.is_none() {
                    copy.decoder.feed(&data);
                    copy.failed = self.interrupt.error().or_else(|| self.take_rows(&mut copy).err());
                }
                self.copying = Some(copy);
                return;
            }
            // Clients that prepare all statements send them without a look at what these are.
            Frontend::Sync | Frontend::Flush => {
                self.copying = Some(copy);
                return;
            }
            Frontend::CopyDone => match copy.failed.take() {
                Some(error) => Err(error),
                None if is_extended && self.block.is_none() => {
                    self.waiting = Some(Waiting::Copy(Box::new(copy)));
                    return;
                }
                None => self.finish_copy(&mut copy),
            },
            Frontend::CopyFail(reason) => {
                let message = format!("COPY from stdin failed: {reason}");
                Err(SqlError::new(SqlState::QUERY_CANCELED, message))
            }
            Frontend::Wrong { error, .. } => Err(error),
            _ => {
                let message = "unexpected message during COPY from stdin";
                Err(SqlError::new(SqlState::PROTOCOL_VIOLATION, message))
            }
        };
        match outcome {
            Ok(written) => Encoder::new(out).command_complete("COPY", Some(written)),
            Err(error) => {
                self.fail(&error, out);
                self.skips = is_extended;
            }
        }
        if is_extended { self.end_timing() } else { self.end_simple(out) }
    }

    fn take_rows(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        loop {
            let line = copy.decoder.line() + 1;
            let context = copy.context(line);
            let in_line = |error: SqlError| SqlError {
                context: Some(error.context.clone().unwrap_or_else(|| context.clone())),
                ..error
            };
            let Some(fields) = copy.decoder.next_row().map_err(in_line)? else { return Ok(()) };
            let values = copy.values(&fields, self.surroundings.zone, &context).map_err(in_line)?;
            let answers = self.answers(&copy.prepared.questions, &values)?;
            let inputs = crate::execute::Inputs { answers, ..self.inputs(values) };
            let encoded = self.full_row(copy, &inputs).map_err(in_line)?;
            copy.bytes += encoded.len() + 8;
            copy.rows.push(encoded);
            if copy.loads.is_none() && !copy.has_others && copy.bytes >= LOAD_BYTES {
                self.load_from_here(copy)?;
            }
            let is_enough = copy.bytes >= LOAD_BYTES || copy.rows.len() >= copy.load_rows();
            if copy.loads.is_some() && is_enough {
                self.write_rows(copy)?;
            }
            if copy.loads.is_none() && copy.bytes > ordain_db::limits::ARGUMENTS_BYTES_MAX {
                return Err(too_much());
            }
        }
    }

    /// The row of the table that a row of data is, with defaults.
    fn full_row(&self, copy: &mut CopyIn, inputs: &crate::execute::Inputs) -> Result<Vec<u8>, SqlError> {
        let CopyIn { prepared, numbers, .. } = copy;
        let Action::Insert { source: Node::Values(rows), .. } = &prepared.plan.action else {
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, "COPY without an insertion"));
        };
        let mut draw = |sequence: u16| {
            let known = numbers.entry(sequence).or_default();
            if known.is_empty() {
                let shape = prepared.plan.sequences.get(usize::from(sequence));
                let shape =
                    shape.ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "no such sequence"))?;
                refuse_restarted(self.block.as_ref(), std::slice::from_ref(shape))?;
                known.extend(self.draw(shape, DRAWN_AT_ONCE)?);
            }
            known
                .pop_front()
                .ok_or_else(|| SqlError::new(SqlState::INTERNAL_ERROR, "a sequence gave no number"))
        };
        let (mut values, mut randoms) = (Vec::new(), 0);
        for expression in rows.iter().flatten() {
            values.push(crate::execute::try_evaluate(expression, inputs, &mut randoms, &mut draw)?);
        }
        let mut bytes = Vec::new();
        row::encode(&values, &mut bytes);
        Ok(bytes)
    }

    pub(super) fn finish_copy(&mut self, copy: &mut CopyIn) -> Result<u64, SqlError> {
        copy.decoder.finish();
        self.take_rows(copy)?;
        self.write_rows(copy)?;
        if let Some(storages) = &copy.loads {
            // Nobody has asked whether what was loaded refers to something.
            for check in RowCheck::of_written(&copy.prepared.plan) {
                self.check_in_block(&check)?;
            }
            // More can follow: when the checks run again, they show the same for that.
            if let Some(block) = &mut self.block {
                let steps = block.steps();
                for (storage, _) in storages {
                    block.own.entry(*storage).and_modify(|made| made.loaded = steps);
                }
            }
        }
        if !copy.is_extended && self.block.as_ref().is_some_and(|block| block.implicit) {
            // Before the client is told that all is well.
            self.commit().map_err(overtaken)?;
        }
        Ok(copy.written)
    }

    /// Writes what has come: at once where nobody else sees it, else as the insertion that it is.
    fn write_rows(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        let rows = std::mem::take(&mut copy.rows);
        copy.bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        if let Some(storages) = &copy.loads {
            for rows in rows.chunks(copy.load_rows()) {
                let action = Action::Load { table: 0, rows: rows.to_vec() };
                // The tables are this block's own: nobody else can know of them, so nothing is relied on.
                let plan = Plan { tables: copy.prepared.plan.tables.clone(), ..Plan::of(action) };
                copy.written += self.load(plan, storages)?;
            }
            return Ok(());
        }
        let mut values = Vec::with_capacity(rows.len());
        for bytes in &rows {
            let mut datums = Vec::new();
            row::decode(bytes, &mut datums)?;
            values.push(datums.into_iter().map(Expression::Constant).collect());
        }
        let mut plan = Plan::clone(&copy.prepared.plan);
        if let Action::Insert { source, .. } = &mut plan.action {
            *source = Node::Values(values);
        }
        copy.written += self.insert_copied(plan.into())?;
        Ok(())
    }

    fn insert_copied(&mut self, plan: SharedPlan) -> Result<u64, SqlError> {
        let inputs = self.inputs(Values::new());
        if self.block.is_some() {
            return Ok(self.in_block(&plan, inputs)?.written);
        }
        Ok(self.call(&[Step { plan, inputs, shown: None }])?.written)
    }
}

impl CopyIn {
    pub(super) fn announce(&self, out: &mut Vec<u8>) -> Result<(), SqlError> {
        Encoder::new(out).copy_in_response(self.format, self.prepared.parameters.len())
    }

    /// Rows that one transaction loads at most.
    fn load_rows(&self) -> usize {
        LOAD_KEYS / self.loads.as_ref().map_or(1, Vec::len).max(1)
    }

    /// What errors in a line of the data are told to have happened in.
    fn context(&self, line: u64) -> String {
        let table = self.prepared.plan.tables.first().map_or("", |shape| shape.name.as_str());
        format!("COPY {table}, line {line}")
    }

    /// The values of a row as they came.
    fn values(&self, fields: &[Option<bytes::Bytes>], zone: Zone, context: &str) -> Result<Values, SqlError> {
        let types = &self.prepared.parameters;
        if fields.len() != types.len() {
            let problem = match self.columns.get(fields.len()) {
                Some(column) => format!("missing data for column \"{column}\""),
                None => "extra data after last expected column".to_owned(),
            };
            return Err(SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, problem));
        }
        let mut values = Values::with_capacity(fields.len());
        for (place, (field, data_type)) in fields.iter().zip(types).enumerate() {
            let in_column = |error: SqlError, written: Option<&str>| {
                let column = self.columns.get(place).map_or("", String::as_str);
                let written =
                    written.map_or_else(String::new, |written| format!(": \"{}\"", beginning(written)));
                SqlError { context: Some(format!("{context}, column {column}{written}")), ..error }
            };
            values.push(match (field, self.format) {
                (None, _) => Datum::Null,
                (Some(bytes), Format::Binary) => {
                    binary::decode(bytes, *data_type).map_err(|error| in_column(error, None))?
                }
                (Some(bytes), Format::Text) => {
                    let written = std::str::from_utf8(bytes).map_err(|_| {
                        let message = "invalid byte sequence for encoding \"UTF8\"";
                        SqlError::new(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
                    })?;
                    text::parse(written, *data_type, zone).map_err(|error| in_column(error, Some(written)))?
                }
            });
        }
        Ok(values)
    }
}

/// As much of a value as errors show.
fn beginning(value: &str) -> &str {
    const SHOWN_MAX: usize = 100;
    &value[..value.floor_char_boundary(SHOWN_MAX)]
}

/// Sends rows in a form of `COPY`.
struct CopySending<'a, 'o> {
    out: &'a mut Out<'o>,
    encoder: RowEncoder,
    format: Format,
    zone: Zone,
    fields: Arc<[Field]>,
    has_begun: bool,
    sent: u64,
    data: Vec<u8>,
}

impl CopySending<'_, '_> {
    fn begin(&mut self) -> Result<(), SqlError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(());
        }
        Encoder::new(self.out).copy_out_response(self.format, self.fields.len())?;
        self.encoder.begin(&mut self.data, self.fields.iter().map(|field| field.name.as_str()))
    }

    fn end(mut self) -> Result<(), SqlError> {
        self.begin()?;
        self.encoder.end(&mut self.data);
        if !self.data.is_empty() {
            Encoder::new(self.out).copy_data(&self.data)?;
        }
        Encoder::new(self.out).copy_done();
        Encoder::new(self.out).command_complete("COPY", Some(self.sent));
        Ok(())
    }
}

impl Receive for CopySending<'_, '_> {
    fn receive(&mut self, values: &[Datum]) -> Result<(), SqlError> {
        self.begin()?;
        let mut columns: Vec<Option<Vec<u8>>> = Vec::with_capacity(values.len());
        for (value, field) in values.iter().zip(&*self.fields) {
            let mut column = Vec::new();
            match (value, self.format) {
                (Datum::Null, _) => {
                    columns.push(None);
                    continue;
                }
                (value, Format::Binary) => binary::encode(value, field.data_type, &mut column),
                (value, Format::Text) => text::format(value, field.data_type, self.zone, &mut column),
            }
            columns.push(Some(column));
        }
        self.encoder.row(&mut self.data, columns.iter().map(Option::as_deref))?;
        Encoder::new(self.out).copy_data(&self.data)?;
        self.data.clear();
        self.sent += 1;
        self.out.relieve()
    }
}

impl Deliver for CopySending<'_, '_> {
    fn expect(&mut self, prepared: &Prepared) {
        self.fields = prepared.fields.clone().unwrap_or_default();
    }
}

impl Session {
    /// Sends the rows that `COPY … TO STDOUT` asks for.
    pub(super) fn answer_copy(&mut self, copy: &CopyOut, out: &mut Out<'_>) -> Result<(), SqlError> {
        let CopyOut { options, statement, prepared } = copy;
        let format = if options.format == CopyFormat::Binary { Format::Binary } else { Format::Text };
        let mut to = CopySending {
            out,
            encoder: RowEncoder::new(options.clone())?,
            format,
            zone: self.surroundings.zone,
            fields: Arc::default(),
            has_begun: false,
            sent: 0,
            data: Vec::new(),
        };
        let (_, output) = self.execute_to(statement, prepared, &[], false, &mut to)?;
        pass_on(&output.rows, &mut to)?;
        to.end()
    }
}

/// The error of rows that were loaded into a table while others changed it.
fn overtaken(error: SqlError) -> SqlError {
    if error.state != SqlState::SERIALIZATION_FAILURE {
        return error;
    }
    let message = "could not serialize access: the table was changed while many rows were copied into it";
    SqlError::new(error.state, message).with_hint("Run COPY again when nobody else writes to the table.")
}

/// Fails if a column is named twice.
fn refuse_twice(columns: &[Ident]) -> Result<(), SqlError> {
    let mut names = BTreeSet::new();
    match columns.iter().map(name_of).find(|name| !names.insert(name.clone())) {
        Some(name) => {
            let message = format!("column \"{name}\" specified more than once");
            Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message))
        }
        None => Ok(()),
    }
}

fn list(columns: &[Ident]) -> String {
    columns.iter().map(Ident::to_string).collect::<Vec<_>>().join(", ")
}

/// Options as they are written without brackets, in the form that they have within these.
fn spell_out(option: &CopyLegacyOption, options: &mut Vec<CopyOption>) -> Result<(), SqlError> {
    match option {
        CopyLegacyOption::Binary => options.push(CopyOption::Format(Ident::new("binary"))),
        CopyLegacyOption::Delimiter(byte) => options.push(CopyOption::Delimiter(*byte)),
        CopyLegacyOption::Null(null) => options.push(CopyOption::Null(null.clone())),
        CopyLegacyOption::Header => options.push(CopyOption::Header(true)),
        CopyLegacyOption::Csv(more) => {
            options.push(CopyOption::Format(Ident::new("csv")));
            options.extend(more.iter().map(|option| match option {
                CopyLegacyCsvOption::Header => CopyOption::Header(true),
                CopyLegacyCsvOption::Quote(byte) => CopyOption::Quote(*byte),
                CopyLegacyCsvOption::Escape(byte) => CopyOption::Escape(*byte),
                CopyLegacyCsvOption::ForceQuote(columns) => CopyOption::ForceQuote(columns.clone()),
                CopyLegacyCsvOption::ForceNotNull(columns) => CopyOption::ForceNotNull(columns.clone()),
            }));
        }
        other => return Err(SqlError::unsupported(format!("COPY with {other}"))),
    }
    Ok(())
}

/// Has the text for a column that is an interval of some fields read as these say: a parameter is not.
fn read_as_fields(value: &Expression, parameters: &mut [SqlType]) {
    if let Expression::Coerce { operand, to, .. } = value
        && let Expression::Parameter(number) = **operand
        && to.base == BaseType::Interval
        && let Some(parameter) = parameters.get_mut(usize::from(number))
    {
        *parameter = *to;
    }
}

fn copy_options(written: &[CopyOption]) -> Result<CopyOptions, SqlError> {
    let format = written.iter().find_map(|option| match option {
        CopyOption::Format(name) => Some(name.value.to_ascii_lowercase()),
        _ => None,
    });
    let format = match format.as_deref() {
        None | Some("text") => CopyFormat::Text,
        Some("csv") => CopyFormat::Csv,
        Some("binary") => CopyFormat::Binary,
        Some(other) => {
            let message = format!("COPY format \"{other}\" not recognized");
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
    };
    let mut options = CopyOptions::new(format);
    let mut escape = None;
    for option in written {
        match option {
            CopyOption::Format(_) | CopyOption::Freeze(_) => {}
            CopyOption::Delimiter(byte) => {
                options.delimiter = CopyOptions::single_byte("delimiter", &byte.to_string())?;
            }
            CopyOption::Null(null) => options.null.clone_from(null),
            CopyOption::Header(header) => {
                options.header = if *header { Header::Present } else { Header::Absent }
            }
            CopyOption::Quote(byte) => options.quote = CopyOptions::single_byte("quote", &byte.to_string())?,
            CopyOption::Escape(byte) => escape = Some(CopyOptions::single_byte("escape", &byte.to_string())?),
            CopyOption::Encoding(name) if name == crate::syntax::HEADER_MATCH => {
                options.header = Header::Match(Vec::new())
            }
            CopyOption::Encoding(name) if name.to_ascii_lowercase().replace('-', "") == "utf8" => {}
            other => return Err(SqlError::unsupported(format!("COPY with {other}"))),
        }
    }
    options.escape = escape.unwrap_or(options.quote);
    options.check()?;
    Ok(options)
}
