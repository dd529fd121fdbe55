//! Names, object identifiers and kinds of the types.

use super::interval_fields::{self, Fields};
use super::{BaseType, SqlType};
use BaseType::*;

/// What the catalog of PostgreSQL says about a type.
struct Facts {
    base: BaseType,
    oid: u32,
    array_oid: u32,
    size: i16,
    name: &'static str,
}

/// The modifier of a type that is [a vector](SqlType::vector_of).
const VECTOR: i32 = -2;

/// The modifier of [numbers of functions](SqlType::REGPROC).
const FUNCTION: i32 = -3;

const fn facts(base: BaseType, oid: u32, array_oid: u32, size: i16, name: &'static str) -> Facts {
    Facts { base, oid, array_oid, size, name }
}

/// In the order of [`BaseType`], so that a type is its own index.
const FACTS: [Facts; 24] = [
    facts(Bool, 16, 1000, 1, "boolean"),
    facts(Int2, 21, 1005, 2, "smallint"),
    facts(Int4, 23, 1007, 4, "integer"),
    facts(Int8, 20, 1016, 8, "bigint"),
    facts(Float4, 700, 1021, 4, "real"),
    facts(Float8, 701, 1022, 8, "double precision"),
    facts(Numeric, 1700, 1231, -1, "numeric"),
    facts(Text, 25, 1009, -1, "text"),
    facts(Varchar, 1043, 1015, -1, "character varying"),
    facts(Char, 1042, 1014, -1, "character"),
    facts(Name, 19, 1003, 64, "name"),
    facts(Bytea, 17, 1001, -1, "bytea"),
    facts(Date, 1082, 1182, 4, "date"),
    facts(Time, 1083, 1183, 8, "time without time zone"),
    facts(Timestamp, 1114, 1115, 8, "timestamp without time zone"),
    facts(TimestampTz, 1184, 1185, 8, "timestamp with time zone"),
    facts(Interval, 1186, 1187, 16, "interval"),
    facts(Uuid, 2950, 2951, 16, "uuid"),
    facts(Inet, 869, 1041, -1, "inet"),
    facts(Cidr, 650, 651, -1, "cidr"),
    facts(Json, 114, 199, -1, "json"),
    facts(Jsonb, 3802, 3807, -1, "jsonb"),
    facts(Oid, 26, 1028, 4, "oid"),
    facts(Unknown, 705, 0, -2, "unknown"),
];

fn facts_of(base: BaseType) -> &'static Facts {
    &FACTS[base as usize]
}

macro_rules! constants {
    ($($name:ident = $base:ident),* $(,)?) => {
        impl SqlType {
            $(
                #[doc = concat!("[`BaseType::", stringify!($base), "`] without a modifier.")]
                pub const $name: SqlType = SqlType::of($base);
            )*
        }
    };
}

constants! {
    BOOL = Bool, INT2 = Int2, INT4 = Int4, INT8 = Int8, FLOAT4 = Float4, FLOAT8 = Float8, NUMERIC = Numeric,
    TEXT = Text, VARCHAR = Varchar, CHAR = Char, NAME = Name, BYTEA = Bytea, DATE = Date, TIME = Time,
    TIMESTAMP = Timestamp, TIMESTAMPTZ = TimestampTz, INTERVAL = Interval, UUID = Uuid, INET = Inet, CIDR = Cidr, JSON = Json, JSONB = Jsonb,
    OID = Oid, UNKNOWN = Unknown,
}

impl SqlType {
    /// The type without a modifier.
    pub const fn of(base: BaseType) -> SqlType {
        SqlType { base, modifier: -1, array: false }
    }

    /// `varchar(length)`, in characters.
    pub const fn varchar(length: i32) -> SqlType {
        SqlType { base: Varchar, modifier: length + 4, array: false }
    }

    /// `char(length)`, in characters.
    pub const fn char(length: i32) -> SqlType {
        SqlType { base: Char, modifier: length + 4, array: false }
    }

    /// `numeric(precision, scale)`: all digits, and those after the point.
    pub const fn numeric(precision: u16, scale: i16) -> SqlType {
        SqlType {
            base: Numeric,
            modifier: (((precision as i32) << 16) | (scale as i32 & 0x7FF)) + 4,
            array: false,
        }
    }

    /// The type of arrays of it. An array of arrays is an array, as in PostgreSQL.
    pub const fn array_of(self) -> SqlType {
        SqlType { array: true, ..self }
    }

    /// PostgreSQL's `int2vector` or `oidvector`, of system tables: an array that clients see as numbers with spaces between them.
    pub const fn vector_of(self) -> SqlType {
        SqlType { array: true, modifier: VECTOR, ..self }
    }

    /// PostgreSQL's `regproc`, of system tables: a number that clients see as the name of a function.
    pub const REGPROC: SqlType = SqlType { base: Oid, modifier: FUNCTION, array: false };

    /// Whether it is [that](Self::REGPROC).
    pub const fn is_regproc(self) -> bool {
        self.modifier == FUNCTION && matches!(self.base, Oid) && !self.array
    }

    /// Whether it is [one](Self::vector_of).
    pub const fn is_vector(self) -> bool {
        self.array && self.modifier == VECTOR
    }

    /// The type of its elements; itself if it is no array.
    pub const fn element(self) -> SqlType {
        if self.is_vector() { self.plain().element() } else { SqlType { array: false, ..self } }
    }

    /// The same type without its modifier.
    pub const fn plain(self) -> SqlType {
        SqlType { modifier: -1, ..self }
    }

    /// Whether both are the same type, whatever their modifiers are.
    pub fn is_same(self, other: SqlType) -> bool {
        self.base == other.base && self.array == other.array
    }

    /// PostgreSQL's object identifier.
    pub fn oid(self) -> u32 {
        let facts = facts_of(self.base);
        match self.base {
            Int2 if self.is_vector() => 22,
            Oid if self.is_vector() => 30,
            Oid if self.is_regproc() => 24,
            _ if self.array => facts.array_oid,
            _ => facts.oid,
        }
    }

    /// The type with PostgreSQL's object identifier; none for one that Ordain has not.
    pub fn from_oid(oid: u32, modifier: i32) -> Option<SqlType> {
        if oid == 0 {
            return None;
        }
        let facts = FACTS.iter().find(|facts| facts.oid == oid || facts.array_oid == oid)?;
        Some(SqlType { base: facts.base, modifier, array: facts.array_oid == oid })
    }

    /// PostgreSQL's `typlen`: bytes of a value, -1 for one of any length.
    pub fn size(self) -> i16 {
        if self.array { -1 } else { facts_of(self.base).size }
    }

    /// The name as PostgreSQL's `format_type` prints it, such as `character varying(10)`.
    pub fn name(self) -> String {
        let name = facts_of(self.base).name;
        match self.base {
            Int2 if self.is_vector() => return "int2vector".to_owned(),
            Oid if self.is_vector() => return "oidvector".to_owned(),
            Oid if self.is_regproc() => return "regproc".to_owned(),
            _ => {}
        }
        let mut text = match (self.base, self.modifier) {
            (Varchar | Char, 4..) => format!("{name}({})", self.modifier - 4),
            (Numeric, 4..) => match self.precision_and_scale() {
                Some((precision, scale)) => format!("{name}({precision},{scale})"),
                None => name.to_owned(),
            },
            (Time | Timestamp | TimestampTz, 0..) => {
                let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
                format!("{first}({}) {rest}", self.modifier)
            }
            (Interval, 0..) => {
                let fields =
                    Fields::of(self.modifier).map_or_else(String::new, |fields| format!(" {fields}"));
                let digits = interval_fields::digits(self.modifier);
                format!("{name}{fields}{}", digits.map_or_else(String::new, |digits| format!("({digits})")))
            }
            _ => name.to_owned(),
        };
        if self.array {
            text.push_str("[]");
        }
        text
    }

    /// The length of a `varchar` or `char`, in characters, if it has one.
    pub fn length(self) -> Option<usize> {
        matches!(self.base, Varchar | Char).then(|| usize::try_from(self.modifier - 4).ok()).flatten()
    }

    /// Precision and scale of a `numeric`, if it has them.
    pub fn precision_and_scale(self) -> Option<(u16, i16)> {
        if self.base != Numeric || self.modifier < 4 {
            return None;
        }
        let packed = self.modifier - 4;
        // Eleven bits with a sign, as PostgreSQL 15 keeps the scale.
        let scale = ((packed & 0x7FF) ^ 1024) - 1024;
        Some(((packed >> 16) as u16, scale as i16))
    }

    /// Whether it is a number: integers, floats, `numeric`, `oid`.
    pub fn is_numeric(self) -> bool {
        !self.array && matches!(self.base, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric | Oid)
    }

    /// Whether it is `smallint`, `integer` or `bigint`.
    pub fn is_integer(self) -> bool {
        !self.array && matches!(self.base, Int2 | Int4 | Int8)
    }

    /// Whether it is `real` or `double precision`.
    pub fn is_float(self) -> bool {
        !self.array && matches!(self.base, Float4 | Float8)
    }

    /// Whether it is a character type: `text`, `varchar`, `char`, `name`.
    pub fn is_text(self) -> bool {
        !self.array && matches!(self.base, Text | Varchar | Char | Name)
    }

    /// Whether it is `date`, `time`, `timestamp` or `timestamptz`.
    pub fn is_date_time(self) -> bool {
        !self.array && matches!(self.base, Date | Time | Timestamp | TimestampTz)
    }

    /// Whether the type is not known yet.
    pub fn is_unknown(self) -> bool {
        !self.array && self.base == Unknown
    }

    /// Whether values of it can be compared and so sorted, grouped and indexed: all but `json`.
    pub fn is_comparable(self) -> bool {
        self.base != Json
    }

    /// Whether PostgreSQL prefers it within its category when several would do.
    pub fn is_preferred(self) -> bool {
        !self.array && matches!(self.base, Bool | Float8 | Oid | Text | TimestampTz | Interval | Inet)
    }

    /// The letter of PostgreSQL's `typcategory`: `N` for numbers, `S` for texts and so on.
    pub fn category(self) -> char {
        if self.array {
            return 'A';
        }
        match self.base {
            Bool => 'B',
            Int2 | Int4 | Int8 | Float4 | Float8 | Numeric | Oid => 'N',
            Text | Varchar | Char | Name => 'S',
            Date | Time | Timestamp | TimestampTz => 'D',
            Interval => 'T',
            Inet | Cidr => 'I',
            Unknown => 'X',
            Bytea | Uuid | Json | Jsonb => 'U',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_the_index_of_its_facts() {
        for (at, facts) in FACTS.iter().enumerate() {
            assert_eq!(facts.base as usize, at);
            let ty = SqlType::of(facts.base);
            assert_eq!(SqlType::from_oid(ty.oid(), -1), Some(ty));
            if facts.array_oid != 0 {
                assert_eq!(SqlType::from_oid(ty.array_of().oid(), -1), Some(ty.array_of()));
            }
        }
        assert_eq!(SqlType::from_oid(0, -1), None);
    }

    #[test]
    fn names_are_those_of_format_type() {
        assert_eq!(SqlType::varchar(10).name(), "character varying(10)");
        assert_eq!(SqlType::varchar(10).array_of().name(), "character varying(10)[]");
        assert_eq!(SqlType::numeric(12, 2).name(), "numeric(12,2)");
        assert_eq!(SqlType::numeric(3, -2).name(), "numeric(3,-2)");
        assert_eq!(SqlType::numeric(12, 2).modifier, 786_438);
        let millis = SqlType { modifier: 3, ..SqlType::TIMESTAMPTZ };
        assert_eq!(millis.name(), "timestamp(3) with time zone");
    }
}
