//! What a statement can fail with: PostgreSQL's five-character codes, and a text that says what to do.

use std::fmt;

use crate::plan::Plan;

/// A code of PostgreSQL's table of errors ("SQLSTATE"): five characters of `0-9A-Z`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }
}

impl SqlState {
    /// Whether it says of values that they are wrong.
    pub fn is_data_exception(self) -> bool {
        self.0.starts_with(b"22")
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState {
            $($(#[$doc])* pub const $name: SqlState = SqlState(*$code);)*
        }
    };
}

states! {
    /// A text that is no name.
    INVALID_NAME = b"42602";
    /// No error: of notices.
    SUCCESSFUL_COMPLETION = b"00000";
    /// What is told may not be what was meant.
    WARNING = b"01000";
    /// The client is gone.
    CONNECTION_FAILURE = b"08006";
    /// The client broke the protocol.
    PROTOCOL_VIOLATION = b"08P01";
    /// Something that PostgreSQL has and Ordain does not.
    FEATURE_NOT_SUPPORTED = b"0A000";
    /// A number does not fit its type.
    NUMERIC_VALUE_OUT_OF_RANGE = b"22003";
    /// A text is longer than its column allows.
    STRING_DATA_RIGHT_TRUNCATION = b"22001";
    /// A date or time does not fit its type.
    DATETIME_FIELD_OVERFLOW = b"22008";
    /// A date or time that is none.
    INVALID_DATETIME_FORMAT = b"22007";
    /// Division by zero.
    DIVISION_BY_ZERO = b"22012";
    /// A value that an operation or function cannot take.
    INVALID_PARAMETER_VALUE = b"22023";
    /// A subquery that stands for a value gave several rows.
    CARDINALITY_VIOLATION = b"21000";
    /// A null where there must be a value.
    NULL_VALUE_NOT_ALLOWED = b"22004";
    /// `ntile` was asked for no parts.
    INVALID_ARGUMENT_FOR_NTILE = b"22014";
    /// `nth_value` was asked for a row before the first.
    INVALID_ARGUMENT_FOR_NTH_VALUE = b"22016";
    /// The offset of a frame is negative.
    INVALID_PRECEDING_OR_FOLLOWING_SIZE = b"22013";
    /// `LIMIT` is negative.
    INVALID_ROW_COUNT_IN_LIMIT = b"2201W";
    /// `OFFSET` is negative.
    INVALID_ROW_COUNT_IN_OFFSET = b"2201X";
    /// A sequence is at its end.
    SEQUENCE_GENERATOR_LIMIT_EXCEEDED = b"2200H";
    /// A text does not have the form of its type.
    INVALID_TEXT_REPRESENTATION = b"22P02";
    /// Binary data does not have the form of its type.
    INVALID_BINARY_REPRESENTATION = b"22P03";
    /// Data of `COPY` does not have the form that was announced.
    BAD_COPY_FILE_FORMAT = b"22P04";
    /// Bytes that are no text.
    CHARACTER_NOT_IN_REPERTOIRE = b"22021";
    /// A column that must have a value was given none.
    NOT_NULL_VIOLATION = b"23502";
    /// A row refers to one that is not there, or one that is referred to was to vanish.
    FOREIGN_KEY_VIOLATION = b"23503";
    /// A key that is there already.
    UNIQUE_VIOLATION = b"23505";
    /// A check constraint does not hold.
    CHECK_VIOLATION = b"23514";
    /// A cursor or portal that is not there.
    INVALID_CURSOR_NAME = b"34000";
    /// A transaction is under way already.
    ACTIVE_SQL_TRANSACTION = b"25001";
    /// A transaction that was begun as read-only was to write.
    READ_ONLY_SQL_TRANSACTION = b"25006";
    /// A client left its block open and said nothing for longer than it may.
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = b"25P03";
    /// A client said nothing for longer than it may.
    IDLE_SESSION_TIMEOUT = b"57P05";
    /// The command needs a transaction block.
    NO_ACTIVE_SQL_TRANSACTION = b"25P01";
    /// The block has failed; only its end is accepted.
    IN_FAILED_SQL_TRANSACTION = b"25P02";
    /// A prepared statement that is not there.
    INVALID_SQL_STATEMENT_NAME = b"26000";
    /// The password is wrong, or there is no such user.
    INVALID_PASSWORD = b"28P01";
    /// The user may not connect.
    INVALID_AUTHORIZATION_SPECIFICATION = b"28000";
    /// Something else depends on what was to be dropped.
    DEPENDENT_OBJECTS_STILL_EXIST = b"2BP01";
    /// A savepoint that is not there.
    INVALID_SAVEPOINT_SPECIFICATION = b"3B001";
    /// A database that is not there.
    INVALID_CATALOG_NAME = b"3D000";
    /// A schema that is not there.
    INVALID_SCHEMA_NAME = b"3F000";
    /// What the transaction read has changed: begin it again.
    SERIALIZATION_FAILURE = b"40001";
    /// Sessions wait for each other.
    DEADLOCK_DETECTED = b"40P01";
    /// Whether the transaction has committed is not known.
    STATEMENT_COMPLETION_UNKNOWN = b"40003";
    /// The statement is not one.
    SYNTAX_ERROR = b"42601";
    /// A value for a column that always has its own.
    GENERATED_ALWAYS = b"428C9";
    /// The user may not do that.
    INSUFFICIENT_PRIVILEGE = b"42501";
    /// A type cannot be made into another.
    CANNOT_COERCE = b"42846";
    /// A column outside of an aggregate that the rows are not grouped by.
    GROUPING_ERROR = b"42803";
    /// A window function or definition that cannot be where it is, or be so.
    WINDOWING_ERROR = b"42P20";
    /// A recursive query that does not have the form of one.
    INVALID_RECURSION = b"42P19";
    /// A column that is not there.
    UNDEFINED_COLUMN = b"42703";
    /// A function or operator that is not there.
    UNDEFINED_FUNCTION = b"42883";
    /// A table that is not there.
    UNDEFINED_TABLE = b"42P01";
    /// A parameter that is not there.
    UNDEFINED_PARAMETER = b"42P02";
    /// An index, type or constraint that is not there.
    UNDEFINED_OBJECT = b"42704";
    /// A name that means several columns.
    AMBIGUOUS_COLUMN = b"42702";
    /// An operator or function that could be several.
    AMBIGUOUS_FUNCTION = b"42725";
    /// A column that is there twice.
    DUPLICATE_COLUMN = b"42701";
    /// A name of a table or alias that is there twice.
    DUPLICATE_ALIAS = b"42712";
    /// An index or constraint that is there already.
    DUPLICATE_OBJECT = b"42710";
    /// A prepared statement that is there already.
    DUPLICATE_PREPARED_STATEMENT = b"42P05";
    /// A cursor that is there already.
    DUPLICATE_CURSOR = b"42P03";
    /// A schema that is there already.
    DUPLICATE_SCHEMA = b"42P06";
    /// A name that only the server gives.
    RESERVED_NAME = b"42939";
    /// A table that is there already.
    DUPLICATE_TABLE = b"42P07";
    /// A foreign key that cannot be.
    INVALID_FOREIGN_KEY = b"42830";
    /// Types that do not go together.
    DATATYPE_MISMATCH = b"42804";
    /// The type of a parameter cannot be known.
    INDETERMINATE_DATATYPE = b"42P18";
    /// A reference to columns that makes no sense.
    INVALID_COLUMN_REFERENCE = b"42P10";
    /// A table that cannot be made so.
    INVALID_TABLE_DEFINITION = b"42P16";
    /// A column that cannot be changed so.
    INVALID_COLUMN_DEFINITION = b"42611";
    /// A view that would read itself, or a generated column that does not follow from others alone.
    INVALID_OBJECT_DEFINITION = b"42P17";
    /// An object of another kind.
    WRONG_OBJECT_TYPE = b"42809";
    /// The database can take no more for now.
    INSUFFICIENT_RESOURCES = b"53000";
    /// All statements together hold too much.
    OUT_OF_MEMORY = b"53200";
    /// More connections than are allowed.
    TOO_MANY_CONNECTIONS = b"53300";
    /// A limit of the database.
    PROGRAM_LIMIT_EXCEEDED = b"54000";
    /// A statement that is too large for its kind.
    STATEMENT_TOO_COMPLEX = b"54001";
    /// More columns than there may be.
    TOO_MANY_COLUMNS = b"54011";
    /// A call with more arguments than there may be.
    TOO_MANY_ARGUMENTS = b"54023";
    /// A parameter of the session that cannot be set.
    CANT_CHANGE_RUNTIME_PARAM = b"55P02";
    /// The object is not in the state that the command needs.
    OBJECT_NOT_IN_PREREQUISITE_STATE = b"55000";
    /// Something is to be done with it yet.
    OBJECT_IN_USE = b"55006";
    /// What was to be read is from before what is kept.
    SNAPSHOT_TOO_OLD = b"72000";
    /// The client asked to cancel, or a time limit passed.
    QUERY_CANCELED = b"57014";
    /// The server ends.
    ADMIN_SHUTDOWN = b"57P01";
    /// The server cannot take statements now.
    CANNOT_CONNECT_NOW = b"57P03";
    /// A mistake of Ordain.
    INTERNAL_ERROR = b"XX000";
    /// A procedure of the database has aborted.
    RAISE_EXCEPTION = b"P0001";
}

/// Why a statement failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SqlError {
    /// What programs look at.
    pub state: SqlState,
    /// What happened, in a line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1 on.
    pub position: Option<u32>,
    /// In what it happened, if that is no statement: the line of data.
    pub context: Option<String>,
    /// What a constraint that does not hold is about.
    pub subject: Option<Box<Subject>>,
    /// Whether it is that the definitions changed which a plan was made with: the session makes a new plan, and tries again.
    pub is_stale: bool,
}

/// What a constraint that does not hold is about: programs tell by it which of their mistakes it is. Names that are empty are not told.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Subject {
    /// The schema of the table, which the session knows and adds.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The column, if it is about one.
    pub column: String,
    /// The constraint, if it has a name.
    pub constraint: String,
}

impl SqlError {
    /// An error with a line of text.
    pub fn new(state: SqlState, message: impl Into<String>) -> SqlError {
        SqlError {
            state,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            context: None,
            subject: None,
            is_stale: false,
        }
    }

    /// Something that is not built.
    pub fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// The same with more about it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.detail = Some(detail.into());
        self
    }

    /// The same with what to do.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.hint = Some(hint.into());
        self
    }

    /// The same with the schema of the table that it is about, as the plan that has failed knows it.
    #[must_use]
    pub(crate) fn in_schema_of(mut self, plan: &Plan) -> SqlError {
        if let Some(subject) = self.subject.as_mut().filter(|subject| subject.schema.is_empty())
            && let Some(reliance) = plan.reliances.iter().find(|reliance| reliance.name == subject.table)
        {
            subject.schema.clone_from(&reliance.schema);
        }
        self
    }

    /// The same with the constraint that does not hold.
    #[must_use]
    pub fn of_constraint(mut self, table: &str, constraint: &str) -> SqlError {
        let subject = Subject { table: table.into(), constraint: constraint.into(), ..Subject::default() };
        self.subject = Some(Box::new(subject));
        self
    }

    /// The same with the column that a value is missing in.
    #[must_use]
    pub fn of_column(mut self, table: &str, column: &str) -> SqlError {
        let subject = Subject { table: table.into(), column: column.into(), ..Subject::default() };
        self.subject = Some(Box::new(subject));
        self
    }
}

/// What a definition tells besides that it is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// What programs look at.
    pub state: SqlState,
    /// The text.
    pub text: String,
}

impl Remark {
    /// A remark that programs do not look at.
    pub fn new(text: impl Into<String>) -> Remark {
        Remark { state: SqlState::SUCCESSFUL_COMPLETION, text: text.into() }
    }

    /// That something was left out since it is there already, which would be an error without `IF NOT EXISTS`.
    pub fn skipping(error: &SqlError) -> Remark {
        Remark { state: error.state, text: format!("{}, skipping", error.message) }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.state.as_str())
    }
}

impl std::error::Error for SqlError {}
