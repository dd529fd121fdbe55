//! Footprints of statements: as they are declared, or were found, and as they grow.

use super::message::Statement;
use crate::data::Key;
use crate::error::Error;
use crate::execution::{Call, Context, Missing};
use crate::position::Position;
use crate::procedure::{Catalog, Declaration, Declared, Footprint};

/// A call of a statement, and whether its footprint may grow. At its coordinator a procedure that declares nothing begins with
/// nothing; elsewhere it has what it was sent with.
pub(super) fn place(
    statement: &Statement,
    begins: bool,
    context: &mut Context<'_>,
) -> Result<(Call, bool), Error> {
    let Catalog { schema, procedures } = context.catalog;
    let mut footprint = context.effects.footprints.pop().unwrap_or_default();
    let grows = match &statement.footprint {
        Some(encoded) => {
            footprint.decode(encoded, schema, context.partitions)?;
            begins
        }
        None => {
            let (procedure, arguments) = (statement.procedure, &statement.arguments);
            let declared =
                procedures.declare(procedure, arguments, schema, context.partitions, &mut footprint)?;
            let grows = declared == Declared::Unknown;
            if grows {
                footprint.clear();
            }
            grows
        }
    };
    let Statement { request, procedure, arguments, .. } = statement.clone();
    let reconnoitred = grows || statement.footprint.is_some();
    let call = Call { position: Position::LOADED, request, procedure, arguments, footprint, reconnoitred };
    Ok((call, grows))
}

/// A footprint with what it lacked.
pub(super) fn grown(
    footprint: &Footprint,
    missing: &[Missing],
    catalog: &Catalog,
    partitions: u16,
) -> Result<Footprint, Error> {
    let mut grown = Footprint::default();
    let mut declaration = Declaration::new(&catalog.schema, partitions, &mut grown);
    for entry in footprint.keys() {
        declaration.touch(&Key::from_bytes(footprint.key(entry)), entry.access)?;
    }
    for entry in footprint.ranges() {
        declaration.touch_range(&entry.range, entry.access)?;
    }
    for missing in missing {
        match missing {
            Missing::Key(key, access) => declaration.touch(key, *access)?,
            Missing::Range(range, access) => declaration.touch_range(range, *access)?,
        }
    }
    Ok(grown)
}
