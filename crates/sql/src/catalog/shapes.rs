//! From definitions to what plans know of them.

use super::{Index, Sequence, Table};
use crate::plan::{ColumnShape, Expression, IndexShape, SequenceShape, TableShape};

impl Table {
    /// The table as plans know it, but for its checks, indexes and the values of generated columns, which are to be bound.
    pub(crate) fn shape(&self, name: &str) -> TableShape {
        let columns = self.columns.iter().map(|column| ColumnShape {
            name: column.name.clone(),
            data_type: column.data_type,
            not_null: column.not_null && !column.dropped,
            missing: column.missing.clone(),
        });
        TableShape {
            name: name.to_owned(),
            storage: self.storage,
            replicated: self.replicated,
            placing: self.placing,
            columns: columns.collect(),
            key: self.primary_key.as_ref().map_or_else(Vec::new, |key| key.columns.clone()),
            key_name: self.primary_key.as_ref().map_or_else(String::new, |key| key.name.clone()),
            indexes: Vec::new(),
            computed: Vec::new(),
            checks: Vec::new(),
            generated: Vec::new(),
            gives_key: false,
        }
    }

    /// The number of a column that is not dropped.
    pub fn column(&self, name: &str) -> Option<u16> {
        let number = self.columns.iter().position(|column| !column.dropped && column.name == name)?;
        u16::try_from(number).ok()
    }
}

impl Index {
    /// The index as plans know it, of some columns and rows of its table's shape.
    pub(crate) fn shape(&self, columns: Vec<u16>, predicate: Option<Expression>) -> IndexShape {
        IndexShape {
            name: self.name.clone(),
            storage: self.storage,
            columns,
            predicate,
            unique: self.unique,
            covering: self.covering,
            state: self.state,
        }
    }
}

impl Sequence {
    /// The sequence as plans know it.
    pub fn shape(&self, name: &str) -> SequenceShape {
        SequenceShape {
            name: name.to_owned(),
            storage: self.storage,
            start: self.start,
            increment: self.increment,
            minimum: self.minimum,
            maximum: self.maximum,
            cycles: self.cycles,
        }
    }
}

/// The sequence that numbers storages which are made in blocks: a number of it is never given out again, even if the block fails.
pub fn storage_numbers() -> SequenceShape {
    SequenceShape {
        name: "storages".to_owned(),
        storage: 1,
        // Above all that definitions outside of blocks take.
        start: 1 << 31,
        increment: 1,
        minimum: 1 << 31,
        maximum: i64::from(u32::MAX),
        cycles: false,
    }
}
