//! Ways to the rows of a table.

use serde::{Deserialize, Serialize};

use super::Expression;

/// How a table is read.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Path {
    /// As a whole.
    All,
    /// The rows with these keys: each has a value for every column of the key.
    Keys(Vec<Vec<Expression>>),
    /// A range of the key, or of an index.
    Range {
        /// The index by its number in the shape; the key if there is none.
        index: Option<u16>,
        /// Values of the leading columns.
        equal: Vec<Expression>,
        /// The least value of the next column, and whether it is included.
        lower: Option<(Expression, bool)>,
        /// The greatest one, and whether it is included.
        upper: Option<(Expression, bool)>,
        /// Whether rows without a value of that column are left out, where no bound does it.
        not_null: bool,
    },
    /// Several ranges of the key, or of an index, which do not overlap.
    Ranges {
        /// The index by its number in the shape; the key if there is none.
        index: Option<u16>,
        /// Of each range, the values of the leading columns.
        prefixes: Vec<Vec<Expression>>,
        /// The values of the column after these: each prefix with each of them is a range.
        array: Option<Expression>,
    },
}
