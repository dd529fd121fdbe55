//! `SET CONSTRAINTS`: when a block checks its foreign keys.
//!
//! Plans say of each foreign key whether it is checked at the end of the block; a block changes that in the plans that it runs. What has
//! been left until then and is to be checked at once is checked by a statement of its own, which the block certifies as any other.

use std::collections::BTreeMap;

use sqlparser::ast::Ident;

use super::Session;
use super::answer::Answer;
use super::block::Block;
use super::commands::tag;
use crate::bind::names::name_of;
use crate::catalog::{Catalog, Definition, Table};
use crate::error::{SqlError, SqlState};
use crate::plan::{Action, Plan, SharedPlan};
use crate::types::Values;

/// Foreign keys, by the storages of their tables and their names, and whether they are deferred.
pub(super) type Deferrals = BTreeMap<(u32, String), bool>;

impl Session {
    /// Runs `SET CONSTRAINTS`; without names it is for all.
    pub(super) fn set_constraints(
        &mut self,
        names: &[Vec<Ident>],
        deferred: bool,
    ) -> Result<Answer, SqlError> {
        let catalog = self.catalog()?;
        let mut chosen = Vec::new();
        if names.is_empty() {
            for (_, _, table) in tables(&catalog) {
                let keys = table.foreign_keys.iter().filter(|key| key.deferrable.is_some());
                chosen.extend(keys.map(|key| (table.storage, key.name.clone())));
            }
        }
        for name in names {
            chosen.extend(self.constraints_named(&catalog, name)?);
        }
        let Some(block) = &mut self.block else {
            let text = "SET CONSTRAINTS can only be used in transaction blocks";
            self.warn(SqlState::NO_ACTIVE_SQL_TRANSACTION, text);
            return Ok(tag("SET CONSTRAINTS"));
        };
        block.deferrals.extend(chosen.iter().cloned().map(|constraint| (constraint, deferred)));
        if !deferred && block.has_pending(&chosen) {
            let action = Action::Settle { constraints: chosen };
            let plan = Plan::of(action);
            self.in_block(&plan.into(), self.inputs(Values::new()))?;
        }
        Ok(tag("SET CONSTRAINTS"))
    }

    /// The foreign keys of a name, in the first schema that has a constraint of it.
    fn constraints_named(&self, catalog: &Catalog, name: &[Ident]) -> Result<Vec<(u32, String)>, SqlError> {
        let parts: Vec<String> = name.iter().map(name_of).collect();
        let (schemas, name) = match parts.as_slice() {
            [name] => (self.surroundings.search_path.as_slice(), name),
            [.., schema, name] => (std::slice::from_ref(schema), name),
            [] => return Ok(Vec::new()),
        };
        let own = Some(&self.surroundings.temporary).filter(|own| parts.len() == 1 && !own.is_empty());
        for schema in own.into_iter().chain(schemas) {
            let mut found = Vec::new();
            for (_, _, table) in tables(catalog).filter(|(of, ..)| of == schema) {
                let is_other = table.primary_key.as_ref().is_some_and(|key| key.name == *name)
                    || table.checks.iter().any(|check| check.name == *name)
                    || table.indexes.iter().any(|index| index.unique && index.name == *name);
                let foreign = table.foreign_keys.iter().find(|key| key.name == *name);
                if is_other || foreign.is_some_and(|key| key.deferrable.is_none()) {
                    let message = format!("constraint \"{name}\" is not deferrable");
                    return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message));
                }
                found.extend(foreign.map(|key| (table.storage, key.name.clone())));
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let message = format!("constraint \"{}\" does not exist", parts.join("."));
        Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message))
    }
}

impl Block {
    /// A plan that checks foreign keys when the block is to check them.
    pub(super) fn timed(&self, plan: &SharedPlan) -> SharedPlan {
        let differs = |plan: &Plan| {
            plan.foreign_keys
                .iter()
                .map(|key| {
                    let shape = plan.tables.get(usize::from(key.table))?;
                    let chosen = *self.deferrals.get(&(shape.storage, key.name.clone()))?;
                    (chosen != key.deferred).then_some(chosen)
                })
                .collect::<Vec<Option<bool>>>()
        };
        if self.deferrals.is_empty() || plan.foreign_keys.is_empty() {
            return plan.clone();
        }
        let chosen = differs(plan);
        let mut plan = Plan::clone(plan);
        for (key, chosen) in plan.foreign_keys.iter_mut().zip(chosen) {
            key.deferred = chosen.unwrap_or(key.deferred);
        }
        plan.into()
    }

    /// Whether foreign keys of the table that a plan inserts into, which is its first, are checked at its end.
    pub(super) fn defers(&self, insertion: &SharedPlan) -> bool {
        let plan = self.timed(insertion);
        plan.foreign_keys.iter().any(|key| key.table == 0 && key.deferred)
    }

    /// Whether some of these foreign keys are yet to be checked.
    fn has_pending(&self, constraints: &[(u32, String)]) -> bool {
        self.pending.iter().any(|(step, pending)| {
            let plan = &self.steps[*step].plan;
            pending.iter().any(|pending| pending.is_of(plan, constraints))
        })
    }
}

fn tables(catalog: &Catalog) -> impl Iterator<Item = (&str, &str, &Table)> {
    catalog.iter().filter_map(|(schema, name, definition)| match definition {
        Definition::Table(table) => Some((schema, name, table)),
        _ => None,
    })
}
