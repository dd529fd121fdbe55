//! What the server sends.
//!
//! Each function appends one message. Zero bytes inside texts are left out, since one would end the text in the middle of the
//! message, and texts are cut at [`TEXT_BYTES_MAX`]: whatever a statement makes an error say, the borders between messages hold.

use std::io::Write;

use crate::error::{SqlError, SqlState};

pub use super::Format;

/// How long a text in a message may be, in bytes; what is longer is cut. Values of rows are no texts in this sense.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// How long a message may be, in bytes, as in PostgreSQL: clients refuse longer ones.
pub const MESSAGE_BYTES_MAX: usize = 0x3fff_ffff;
/// How many columns or parameters a message can name.
pub const COLUMNS_MAX: usize = i16::MAX as usize;

/// Where a session is, as [`ready_for_query`](Encoder::ready_for_query) says it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TransactionStatus {
    /// In no transaction block.
    Idle,
    /// In a transaction block.
    InBlock,
    /// In a transaction block that has failed.
    Failed,
}

/// How bad an error is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Severity {
    /// The statement has failed.
    Error,
    /// The connection ends.
    Fatal,
    /// All connections end.
    Panic,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
            Severity::Panic => "PANIC",
        }
    }
}

/// How urgent a notice is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NoticeSeverity {
    /// Something is probably wrong.
    Warning,
    /// Worth knowing.
    Notice,
    /// For whoever looks for a mistake.
    Debug,
    /// What was asked for.
    Info,
    /// For the log.
    Log,
}

impl NoticeSeverity {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            NoticeSeverity::Warning => "WARNING",
            NoticeSeverity::Notice => "NOTICE",
            NoticeSeverity::Debug => "DEBUG",
            NoticeSeverity::Info => "INFO",
            NoticeSeverity::Log => "LOG",
        }
    }
}

/// A column of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldDescription<'a> {
    /// Its name.
    pub name: &'a str,
    /// The table that it is a column of, or 0.
    pub table_oid: u32,
    /// Its number in that table, or 0.
    pub column: i16,
    /// Its type.
    pub type_oid: u32,
    /// How many bytes a value has in memory, in bytes (`pg_type.typlen`); negative if that varies.
    pub type_size: i16,
    /// The modifier of the type, or -1.
    pub type_modifier: i32,
    /// The form in which values are sent.
    pub format: Format,
}

/// Appends messages to a buffer. It keeps nothing: make one whenever there is something to say.
#[derive(Debug)]
pub struct Encoder<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Encoder<'a> {
    /// One that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Encoder<'a> {
        Encoder { out }
    }

    /// The answer to a request for encryption: `S` if it is granted, `N` if not.
    pub fn ssl_answer(&mut self, granted: bool) {
        self.out.push(if granted { b'S' } else { b'N' });
    }

    /// `AuthenticationOk`: the client is who it says.
    pub fn authentication_ok(&mut self) {
        self.authentication(0, |_| ());
    }

    /// `AuthenticationSASL`: choose one of these mechanisms.
    pub fn authentication_sasl(&mut self, mechanisms: &[&str]) {
        self.authentication(10, |out| {
            for mechanism in mechanisms {
                put_text(out, mechanism);
            }
            out.push(0);
        });
    }

    /// `AuthenticationSASLContinue`: the next message of the mechanism.
    pub fn sasl_continue(&mut self, message: &[u8]) {
        self.authentication(11, |out| out.extend_from_slice(message));
    }

    /// `AuthenticationSASLFinal`: the last message of the mechanism.
    pub fn sasl_final(&mut self, message: &[u8]) {
        self.authentication(12, |out| out.extend_from_slice(message));
    }

    fn authentication(&mut self, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
        self.small(b'R', |out| {
            put_u32(out, kind);
            write(out);
        });
    }

    /// `NegotiateProtocolVersion`: the newest minor version of protocol 3 that is spoken, and the options that are not known.
    pub fn negotiate_protocol_version(&mut self, minor: u16, unknown_options: &[impl AsRef<str>]) {
        self.small(b'v', |out| {
            // The documentation says "minor version"; what PostgreSQL sends, and libpq compares, is the whole version.
            put_u32(out, 3 << 16 | u32::from(minor));
            put_u32(out, u32::try_from(unknown_options.len()).unwrap_or(u32::MAX));
            for option in unknown_options {
                put_text(out, option.as_ref());
            }
        });
    }

    /// `BackendKeyData`: what a cancel request must name. In protocol 3.0 the secret must have 4 bytes, in 3.2 at most 256.
    pub fn backend_key_data(&mut self, process: i32, secret: &[u8]) {
        self.small(b'K', |out| {
            out.extend_from_slice(&process.to_be_bytes());
            out.extend_from_slice(secret);
        });
    }

    /// `ParameterStatus`: the value of a setting that drivers follow.
    pub fn parameter_status(&mut self, name: &str, value: &str) {
        self.small(b'S', |out| {
            put_text(out, name);
            put_text(out, value);
        });
    }

    /// `ReadyForQuery`: the client's turn.
    pub fn ready_for_query(&mut self, status: TransactionStatus) {
        let status = match status {
            TransactionStatus::Idle => b'I',
            TransactionStatus::InBlock => b'T',
            TransactionStatus::Failed => b'E',
        };
        self.small(b'Z', |out| out.push(status));
    }

    /// `RowDescription`: the columns of the rows that follow.
    ///
    /// # Errors
    ///
    /// 54000 if there are more than [`COLUMNS_MAX`] or the message becomes too long. Then nothing has been appended.
    pub fn row_description(&mut self, fields: &[FieldDescription<'_>]) -> Result<(), SqlError> {
        let count = column_count(fields.len())?;
        self.large(b'T', |out| {
            put_u16(out, count);
            for field in fields {
                put_text(out, field.name);
                put_u32(out, field.table_oid);
                out.extend_from_slice(&field.column.to_be_bytes());
                put_u32(out, field.type_oid);
                out.extend_from_slice(&field.type_size.to_be_bytes());
                out.extend_from_slice(&field.type_modifier.to_be_bytes());
                put_u16(out, field.format.code());
            }
        })
    }

    /// `DataRow`: a row of so many columns, which are then given one by one. Call [`finish`](DataRow::finish) at its end.
    pub fn data_row(&mut self, columns: usize) -> DataRow<'_> {
        let start = begin(self.out, b'D');
        put_u16(self.out, columns as u16);
        DataRow { out: self.out, start, columns, given: 0, overflow: columns > COLUMNS_MAX, finished: false }
    }

    /// `CommandComplete`, with a tag like `CREATE TABLE`, or like `INSERT 0 1`, where a number follows.
    pub fn command_complete(&mut self, tag: &str, count: Option<u64>) {
        self.small(b'C', |out| {
            put_text(out, tag);
            if let Some(count) = count {
                out.pop();
                // To memory, which does not fail.
                let _written = write!(out, " {count}\0");
            }
        });
    }

    /// `EmptyQueryResponse`: there was no statement.
    pub fn empty_query_response(&mut self) {
        self.small(b'I', |_| ());
    }

    /// `ParseComplete`
    pub fn parse_complete(&mut self) {
        self.small(b'1', |_| ());
    }

    /// `BindComplete`
    pub fn bind_complete(&mut self) {
        self.small(b'2', |_| ());
    }

    /// `CloseComplete`
    pub fn close_complete(&mut self) {
        self.small(b'3', |_| ());
    }

    /// `NoData`: the statement gives no rows.
    pub fn no_data(&mut self) {
        self.small(b'n', |_| ());
    }

    /// `PortalSuspended`: the limit of rows was reached; there may be more.
    pub fn portal_suspended(&mut self) {
        self.small(b's', |_| ());
    }

    /// `ParameterDescription`: the types of the parameters.
    ///
    /// # Errors
    ///
    /// 54000 if there are more than 65,535. Then nothing has been appended.
    pub fn parameter_description(&mut self, types: &[u32]) -> Result<(), SqlError> {
        let count = u16::try_from(types.len()).map_err(|_| too_many("parameters", types.len()))?;
        self.large(b't', |out| {
            put_u16(out, count);
            for oid in types {
                put_u32(out, *oid);
            }
        })
    }

    /// `ErrorResponse` with the fields S, V, C, M, and D, H, P, W, s, t, c, n where they are known.
    pub fn error(&mut self, error: &SqlError, severity: Severity) {
        self.small(b'E', |out| {
            let (detail, hint) = (error.detail.as_deref(), error.hint.as_deref());
            put_report(out, severity.name(), error.state, &error.message, detail, hint);
            if let Some(position) = error.position {
                put_field(out, b'P', &position.to_string());
            }
            if let Some(context) = &error.context {
                put_field(out, b'W', context);
            }
            if let Some(subject) = &error.subject {
                let fields = [
                    (b's', &subject.schema),
                    (b't', &subject.table),
                    (b'c', &subject.column),
                    (b'n', &subject.constraint),
                ];
                for (kind, name) in fields.into_iter().filter(|(_, name)| !name.is_empty()) {
                    put_field(out, kind, name);
                }
            }
            out.push(0);
        });
    }

    /// `NoticeResponse` with the fields S, V, C, M, and D, H where they are given.
    pub fn notice(
        &mut self,
        severity: NoticeSeverity,
        state: SqlState,
        message: &str,
        detail: Option<&str>,
        hint: Option<&str>,
    ) {
        self.small(b'N', |out| {
            put_report(out, severity.name(), state, message, detail, hint);
            out.push(0);
        });
    }

    /// `CopyInResponse`: send the data now, of so many columns, all in one form.
    ///
    /// # Errors
    ///
    /// 54000 if there are more columns than [`COLUMNS_MAX`]. Then nothing has been appended.
    pub fn copy_in_response(&mut self, format: Format, columns: usize) -> Result<(), SqlError> {
        self.copy_response(b'G', format, columns)
    }

    /// `CopyOutResponse`: the data follows, of so many columns, all in one form.
    ///
    /// # Errors
    ///
    /// As for [`copy_in_response`](Encoder::copy_in_response).
    pub fn copy_out_response(&mut self, format: Format, columns: usize) -> Result<(), SqlError> {
        self.copy_response(b'H', format, columns)
    }

    fn copy_response(&mut self, kind: u8, format: Format, columns: usize) -> Result<(), SqlError> {
        let count = column_count(columns)?;
        self.large(kind, |out| {
            out.push(format.code() as u8);
            put_u16(out, count);
            for _ in 0..count {
                put_u16(out, format.code());
            }
        })
    }

    /// `CopyData`: a piece of the data of `COPY`. Clients expect a row in each.
    ///
    /// # Errors
    ///
    /// 54000 if it is longer than a message may be. Then nothing has been appended.
    pub fn copy_data(&mut self, data: &[u8]) -> Result<(), SqlError> {
        if data.len() > MESSAGE_BYTES_MAX {
            return Err(too_long());
        }
        self.large(b'd', |out| out.extend_from_slice(data))
    }

    /// `CopyDone`: the end of the data.
    pub fn copy_done(&mut self) {
        self.small(b'c', |_| ());
    }

    /// A message of a few texts, each of limited length, so that it fits.
    fn small(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let start = begin(self.out, kind);
        write(self.out);
        end(self.out, start);
    }

    fn large(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), SqlError> {
        let start = begin(self.out, kind);
        write(self.out);
        if self.out.len() - start > MESSAGE_BYTES_MAX {
            self.out.truncate(start);
            return Err(too_long());
        }
        end(self.out, start);
        Ok(())
    }
}

/// A row that is being written. One that is dropped before [`finish`](DataRow::finish) takes back what it has appended, so that a
/// value that cannot be written leaves no half message.
#[derive(Debug)]
#[must_use = "a row that is not finished is taken back"]
pub struct DataRow<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    columns: usize,
    given: usize,
    overflow: bool,
    finished: bool,
}

impl DataRow<'_> {
    /// The next column is null.
    pub fn null(&mut self) {
        self.out.extend_from_slice(&(-1_i32).to_be_bytes());
        self.given += 1;
    }

    /// The next column has the value that `write` appends. It must do nothing to the buffer but append. What it returns is
    /// returned.
    pub fn value<Output>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Output) -> Output {
        let at = self.out.len();
        put_u32(self.out, 0);
        let output = write(self.out);
        self.given += 1;
        match self.out.len().checked_sub(at + 4) {
            Some(length) if length <= MESSAGE_BYTES_MAX => {
                self.out[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
            }
            _ => self.overflow = true,
        }
        output
    }

    /// Completes the message.
    ///
    /// # Errors
    ///
    /// 54000 if the row is longer than a message may be or has more than [`COLUMNS_MAX`] columns, and `XX000` if not as many
    /// columns were given as announced. Then the row has been taken back.
    pub fn finish(mut self) -> Result<(), SqlError> {
        if self.overflow || self.out.len() - self.start > MESSAGE_BYTES_MAX {
            return Err(too_long());
        }
        if self.given != self.columns {
            let message = format!("a row of {} columns was given {}", self.columns, self.given);
            return Err(SqlError::new(SqlState::INTERNAL_ERROR, message));
        }
        end(self.out, self.start);
        self.finished = true;
        Ok(())
    }
}

impl Drop for DataRow<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.out.truncate(self.start);
        }
    }
}

fn put_u16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
    for part in text.split('\0') {
        out.extend_from_slice(part.as_bytes());
    }
    out.push(0);
}

fn put_field(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    put_text(out, text);
}

fn put_report(
    out: &mut Vec<u8>,
    severity: &str,
    state: SqlState,
    message: &str,
    detail: Option<&str>,
    hint: Option<&str>,
) {
    // S may be translated, V may not; here they are the same.
    put_field(out, b'S', severity);
    put_field(out, b'V', severity);
    put_field(out, b'C', state.as_str());
    put_field(out, b'M', message);
    if let Some(detail) = detail {
        put_field(out, b'D', detail);
    }
    if let Some(hint) = hint {
        put_field(out, b'H', hint);
    }
}

fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    let start = out.len();
    out.push(kind);
    put_u32(out, 0);
    start
}

fn end(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start - 1).unwrap_or(u32::MAX);
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

fn column_count(columns: usize) -> Result<u16, SqlError> {
    if columns > COLUMNS_MAX { Err(too_many("columns", columns)) } else { Ok(columns as u16) }
}

fn too_many(what: &str, count: usize) -> SqlError {
    let message = format!("{count} {what} are more than a message can name");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
}

fn too_long() -> SqlError {
    let message = format!("the row or message would be longer than {MESSAGE_BYTES_MAX} bytes");
    SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint("Select fewer or shorter values.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut out = b"before".to_vec();
        write(&mut Encoder::new(&mut out));
        assert_eq!(&out[..6], b"before");
        out.split_off(6)
    }

    #[test]
    fn authentication() {
        assert_eq!(written(|out| out.ssl_answer(true)), b"S");
        assert_eq!(written(|out| out.ssl_answer(false)), b"N");
        assert_eq!(written(|out| out.authentication_ok()), b"R\0\0\0\x08\0\0\0\0");
        let bytes = written(|out| out.authentication_sasl(&["SCRAM-SHA-256"]));
        assert_eq!(bytes, b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0");
        assert_eq!(written(|out| out.sasl_continue(b"r=a")), b"R\0\0\0\x0b\0\0\0\x0br=a");
        assert_eq!(written(|out| out.sasl_final(b"v=a")), b"R\0\0\0\x0b\0\0\0\x0cv=a");
    }

    #[test]
    fn beginning_of_a_session() {
        let bytes = written(|out| out.negotiate_protocol_version(2, &["_pq_.a"]));
        assert_eq!(bytes, b"v\0\0\0\x13\0\x03\0\x02\0\0\0\x01_pq_.a\0");
        let none: [&str; 0] = [];
        let bytes = written(|out| out.negotiate_protocol_version(0, &none));
        assert_eq!(bytes, b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0");
        let bytes = written(|out| out.backend_key_data(258, &[1, 2, 3, 4]));
        assert_eq!(bytes, b"K\0\0\0\x0c\0\0\x01\x02\x01\x02\x03\x04");
        let bytes = written(|out| out.parameter_status("client_encoding", "UTF8"));
        assert_eq!(bytes, b"S\0\0\0\x19client_encoding\0UTF8\0");
    }

    #[test]
    fn ready_for_query() {
        let status = |status| written(|out| out.ready_for_query(status));
        assert_eq!(status(TransactionStatus::Idle), b"Z\0\0\0\x05I");
        assert_eq!(status(TransactionStatus::InBlock), b"Z\0\0\0\x05T");
        assert_eq!(status(TransactionStatus::Failed), b"Z\0\0\0\x05E");
    }

    const FIELD: FieldDescription<'_> = FieldDescription {
        name: "id",
        table_oid: 0x0102_0304,
        column: 5,
        type_oid: 23,
        type_size: -1,
        type_modifier: -1,
        format: Format::Binary,
    };

    #[test]
    fn row_description() {
        let bytes = written(|out| out.row_description(&[FIELD]).unwrap());
        let field = b"id\0\x01\x02\x03\x04\0\x05\0\0\0\x17\xff\xff\xff\xff\xff\xff\0\x01";
        assert_eq!(bytes, [&b"T\0\0\0\x1b\0\x01"[..], field].concat());
        assert_eq!(written(|out| out.row_description(&[]).unwrap()), b"T\0\0\0\x06\0\0");
        let many = vec![FIELD; COLUMNS_MAX + 1];
        let bytes = written(|out| {
            let error = out.row_description(&many).unwrap_err();
            assert_eq!(error.state, SqlState::PROGRAM_LIMIT_EXCEEDED);
        });
        assert_eq!(bytes, b"");
    }

    #[test]
    fn data_row() {
        let bytes = written(|out| {
            let mut row = out.data_row(3);
            row.null();
            assert_eq!(row.value(|buffer| buffer.extend_from_slice(b"ab")), ());
            row.value(|_| ());
            row.finish().unwrap();
            out.data_row(0).finish().unwrap();
        });
        assert_eq!(bytes, b"D\0\0\0\x14\0\x03\xff\xff\xff\xff\0\0\0\x02ab\0\0\0\0D\0\0\0\x06\0\0");
    }

    #[test]
    fn rows_that_fail_are_taken_back() {
        let bytes = written(|out| {
            let mut row = out.data_row(2);
            row.null();
            assert_eq!(row.finish().unwrap_err().state, SqlState::INTERNAL_ERROR);
            let mut row = out.data_row(1);
            assert_eq!(row.value(|_| Err::<(), _>("no text")), Err("no text"));
            drop(row);
            let mut row = out.data_row(1);
            row.value(|buffer| buffer.pop());
            assert_eq!(row.finish().unwrap_err().state, SqlState::PROGRAM_LIMIT_EXCEEDED);
            let row = out.data_row(1 << 16);
            assert_eq!(row.finish().unwrap_err().state, SqlState::PROGRAM_LIMIT_EXCEEDED);
            out.no_data();
        });
        assert_eq!(bytes, b"n\0\0\0\x04");
    }

    #[test]
    fn completions() {
        assert_eq!(written(|out| out.command_complete("SELECT", Some(1))), b"C\0\0\0\x0dSELECT 1\0");
        assert_eq!(written(|out| out.command_complete("BEGIN", None)), b"C\0\0\0\x0aBEGIN\0");
        assert_eq!(written(|out| out.empty_query_response()), b"I\0\0\0\x04");
        assert_eq!(written(|out| out.parse_complete()), b"1\0\0\0\x04");
        assert_eq!(written(|out| out.bind_complete()), b"2\0\0\0\x04");
        assert_eq!(written(|out| out.close_complete()), b"3\0\0\0\x04");
        assert_eq!(written(|out| out.portal_suspended()), b"s\0\0\0\x04");
        let bytes = written(|out| out.parameter_description(&[23, 25]).unwrap());
        assert_eq!(bytes, b"t\0\0\0\x0e\0\x02\0\0\0\x17\0\0\0\x19");
        let bytes = written(|out| assert!(out.parameter_description(&[0; 65_536]).is_err()));
        assert_eq!(bytes, b"");
    }

    #[test]
    fn errors() {
        let mut error = SqlError::new(SqlState::SYNTAX_ERROR, "no").with_detail("d").with_hint("h");
        error.position = Some(12);
        let bytes = written(|out| out.error(&error, Severity::Error));
        assert_eq!(bytes, b"E\0\0\0\x28SERROR\0VERROR\0C42601\0Mno\0Dd\0Hh\0P12\0\0");
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, "no").of_constraint("a", "a_pkey");
        let bytes = written(|out| out.error(&error, Severity::Error));
        assert_eq!(bytes, b"E\0\0\0\x29SERROR\0VERROR\0C23505\0Mno\0ta\0na_pkey\0\0");
        let error = SqlError::new(SqlState::SYNTAX_ERROR, "no");
        let bytes = written(|out| out.error(&error, Severity::Fatal));
        assert_eq!(bytes, b"E\0\0\0\x1eSFATAL\0VFATAL\0C42601\0Mno\0\0");
        let bytes = written(|out| out.error(&error, Severity::Panic));
        assert_eq!(bytes, b"E\0\0\0\x1eSPANIC\0VPANIC\0C42601\0Mno\0\0");
    }

    #[test]
    fn notices() {
        let state = SqlState(*b"01000");
        let bytes =
            written(|out| out.notice(NoticeSeverity::Warning, state, "careful", Some("d"), Some("h")));
        assert_eq!(bytes, b"N\0\0\0\x2dSWARNING\0VWARNING\0C01000\0Mcareful\0Dd\0Hh\0\0");
        let bytes = written(|out| out.notice(NoticeSeverity::Notice, state, "", None, None));
        assert_eq!(bytes, b"N\0\0\0\x1eSNOTICE\0VNOTICE\0C01000\0M\0\0");
    }

    #[test]
    fn texts_cannot_break_the_borders() {
        assert_eq!(written(|out| out.command_complete("a\0b\0", None)), b"C\0\0\0\x07ab\0");
        let text = "ä".repeat(TEXT_BYTES_MAX);
        assert_eq!(written(|out| out.command_complete(&text, None)).len(), 5 + TEXT_BYTES_MAX + 1);
        let text = format!("a{text}");
        assert_eq!(written(|out| out.command_complete(&text, None)).len(), 5 + TEXT_BYTES_MAX);
    }

    #[test]
    fn copy() {
        let bytes = written(|out| out.copy_in_response(Format::Text, 2).unwrap());
        assert_eq!(bytes, b"G\0\0\0\x0b\0\0\x02\0\0\0\0");
        let bytes = written(|out| out.copy_out_response(Format::Binary, 1).unwrap());
        assert_eq!(bytes, b"H\0\0\0\x09\x01\0\x01\0\x01");
        assert_eq!(written(|out| out.copy_data(b"1\n").unwrap()), b"d\0\0\0\x061\n");
        assert_eq!(written(|out| out.copy_done()), b"c\0\0\0\x04");
    }
}
