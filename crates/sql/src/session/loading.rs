//! Rows of `COPY` that are loaded into storages of which only their block knows, before it ends.

use super::Session;
use super::block::Block;
use super::copy::CopyIn;
use crate::bind::Prepared;
use crate::error::SqlError;

impl Session {
    /// The storages into which the rows of an insertion can be loaded at once, if they can.
    pub(super) fn own_storages(&self, insertion: &Prepared) -> Option<Vec<(u32, bool)>> {
        let (block, shape) = (self.block.as_ref()?, insertion.plan.tables.first()?);
        let can_load = block.can_load(shape.storage) && !block.defers(&insertion.plan);
        let indexes = shape.indexes.iter().map(|index| index.storage);
        let all = std::iter::once(shape.storage).chain(indexes);
        can_load.then(|| all.map(|storage| (storage, shape.replicated)).collect())
    }

    /// More has come than goes into one transaction as rows. A table that is empty gets new storages, into which they can be loaded; that it
    /// was empty is certified when the block ends, which is one of the statement's own if there is none.
    pub(super) fn load_from_here(&mut self, copy: &mut CopyIn) -> Result<(), SqlError> {
        let begins = self.block.is_none();
        self.begin_implicitly()?;
        if begins {
            let catalog = self.catalog()?;
            self.renew(&catalog)?;
        }
        let query = crate::syntax::parse(&format!("SELECT FROM {} LIMIT 1", copy.table))?;
        let (_, prepared) = self.prepare(&query[0], &[])?;
        let (_, output, _) = self.execute(&query[0], &prepared, &[], false)?;
        // What is to be checked at the end of the block is about the storages as they are.
        let is_awaited = |block: &Block| !block.pending.is_empty() || block.defers(&copy.prepared.plan);
        copy.has_others = !output.rows.is_empty() || self.block.as_ref().is_some_and(is_awaited);
        if copy.has_others {
            if begins {
                self.roll_back();
            }
            return Ok(());
        }
        let table = copy.table.clone();
        self.define_so(|catalog, surroundings, timing, random| {
            crate::bind::renew(&table, catalog, surroundings, timing, random)
        })?;
        copy.prepared = self.insertion(&copy.table, &copy.named)?.0;
        copy.loads = self.own_storages(&copy.prepared);
        Ok(())
    }
}
