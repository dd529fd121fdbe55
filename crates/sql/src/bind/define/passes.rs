//! The order in which the actions of an `ALTER TABLE` are done, wherever they are written: that of PostgreSQL.

use sqlparser::ast::{AlterColumnOperation, AlterTableOperation, TableConstraint};

use crate::error::SqlError;
use crate::syntax::{IdentityChange, identity_change};

/// When an action is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pass {
    /// What goes, so that something else can have its name.
    Drops,
    /// Types, which all that follows finds as they will be.
    Types,
    /// New columns, which constraints may be about.
    Columns,
    /// What columns say of their values.
    Attributes,
    /// Primary keys and unique constraints, which foreign keys may refer to.
    Keys,
    /// Defaults, which hold for later rows only, and other constraints.
    Constraints,
    /// All else.
    Others,
}

/// All of them, in their order.
pub(super) const PASSES: [Pass; 7] =
    [Pass::Drops, Pass::Types, Pass::Columns, Pass::Attributes, Pass::Keys, Pass::Constraints, Pass::Others];

/// When an action is done. Actions of one pass are done as they are written.
pub(super) fn pass_of(operation: &AlterTableOperation) -> Result<Pass, SqlError> {
    Ok(match operation {
        AlterTableOperation::DropColumn { .. } | AlterTableOperation::DropConstraint { .. } => Pass::Drops,
        AlterTableOperation::AddColumn { .. } => Pass::Columns,
        AlterTableOperation::AddConstraint { constraint, .. } => match constraint {
            TableConstraint::PrimaryKey(_) | TableConstraint::Unique(_) => Pass::Keys,
            _ => Pass::Constraints,
        },
        AlterTableOperation::AlterColumn { op, .. } => match op {
            AlterColumnOperation::DropDefault | AlterColumnOperation::DropNotNull => Pass::Drops,
            AlterColumnOperation::SetDataType { .. } => Pass::Types,
            AlterColumnOperation::SetNotNull => Pass::Attributes,
            AlterColumnOperation::AddGenerated { .. } => Pass::Constraints,
            AlterColumnOperation::SetDefault { value } => match identity_change(value)? {
                None => Pass::Constraints,
                Some(IdentityChange::Drop(_) | IdentityChange::DropExpression(_)) => Pass::Drops,
                Some(_) => Pass::Attributes,
            },
            _ => Pass::Others,
        },
        _ => Pass::Others,
    })
}
