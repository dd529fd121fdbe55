//! `EXPLAIN`: what is asked, and of which plan it is told.

use std::borrow::Cow;

use sqlparser::ast::{AnalyzeFormatKind, Statement, UtilityOption};

use super::Session;
use super::answer::{Answer, Rows};
use super::commands::setting_text;
use super::extended::Named;
use crate::bind::Prepared;
use crate::bind::names::{name_of, parts_of};
use crate::error::{SqlError, SqlState};
use crate::execute::columns::{Confined, QueryEngine};
use crate::execute::receive::Unseen;
use crate::execute::within_a_block;
use crate::explain::{Cluster, Within};
use crate::plan::Action;
use crate::types::Datum;

/// What a plan is told of.
struct Explained<'s> {
    statement: Cow<'s, Statement>,
    prepared: Cow<'s, Prepared>,
    /// The values of its parameters.
    values: Vec<Datum>,
}

impl Session {
    /// `EXPLAIN`, of a statement that was planned before with values for its parameters, or of one that is planned now.
    pub(super) fn explain(
        &mut self,
        explain: &Statement,
        planned: Option<(&Prepared, &[Datum])>,
    ) -> Result<Answer, SqlError> {
        let Statement::Explain { statement, analyze, format, options, .. } = explain else {
            return Err(SqlError::unsupported("this statement"));
        };
        let asked = Asked::of(*analyze, format.as_ref(), options.as_deref().unwrap_or_default())?;
        let Explained { statement, prepared, values } = match planned {
            Some((prepared, values)) => Explained {
                statement: Cow::Borrowed(&**statement),
                prepared: Cow::Borrowed(prepared),
                values: values.to_vec(),
            },
            None => self.explained(statement)?,
        };
        if let (Action::Call { routine, .. }, Some(_)) = (&prepared.plan.action, &self.block) {
            return Err(within_a_block(routine));
        }
        let within = match &self.block {
            None => Within::Nothing,
            Some(block) if block.past => Within::Past,
            Some(block) if block.read_only && !block.certifies => Within::ReadOnlyBlock,
            Some(_) => Within::Block,
        };
        let query_engine = self.query_engine.clone();
        let confined = query_engine.as_deref().and_then(|engine| match &self.block {
            Some(block) => {
                block.confine(engine, &prepared.plan, super::cursors::declaration(&statement).is_some())
            }
            None => Some(Confined::anywhere(engine)),
        });
        let query_engine = confined.as_ref().map(|engine| engine as &dyn QueryEngine);
        let cluster = Cluster {
            storages: &self.storages,
            schema: &self.schema,
            routines: &self.surroundings.routines,
            partitions: self.database.partitions(),
            query_engine,
        };
        let mut told = crate::explain::tell(&prepared.plan, &values, &cluster, within);
        if asked.analyze {
            let begun = self.database.now();
            self.observes = true;
            let outcome = self.execute_to(&statement, &prepared, &values, false, &mut Unseen);
            self.observes = false;
            let (prepared, output) = outcome?;
            let duration = self.database.now() - begun;
            told = told.observed(&prepared.plan, &values, query_engine, (&output.observed, duration));
        }
        let lines = if asked.json { vec![told.json()] } else { told.lines() };
        let rows: Vec<Vec<String>> = lines.into_iter().map(|line| vec![line]).collect();
        Ok(Answer::Rows(Rows::of_texts(&["QUERY PLAN"], &rows, "EXPLAIN")))
    }

    /// The statement that `EXPLAIN` names: itself, or with `EXECUTE` one that was prepared.
    fn explained<'s>(&mut self, statement: &'s Statement) -> Result<Explained<'s>, SqlError> {
        let Statement::Execute { name: Some(name), parameters, .. } = statement else {
            if super::commands::planned_part(statement).is_none() {
                return Err(SqlError::unsupported("EXPLAIN of a statement that has no plan"));
            }
            let (_, prepared) = self.prepare(statement, &[])?;
            let statement = Cow::Borrowed(statement);
            return Ok(Explained { statement, prepared: Cow::Owned(prepared), values: Vec::new() });
        };
        let name = parts_of(name)?.join(".");
        let values = self.values_for(&name, parameters)?;
        match self.planned(&name)? {
            (Named { statement: Some(statement), .. }, Some(prepared)) => {
                let statement = Cow::Owned(Statement::clone(&statement));
                Ok(Explained { statement, prepared: Cow::Owned(Prepared::clone(&prepared)), values })
            }
            _ => Err(SqlError::unsupported("EXPLAIN of a statement that has no plan")),
        }
    }
}

/// What is asked of `EXPLAIN`.
#[derive(Default)]
struct Asked {
    analyze: bool,
    json: bool,
}

impl Asked {
    fn of(
        analyze: bool,
        format: Option<&AnalyzeFormatKind>,
        options: &[UtilityOption],
    ) -> Result<Asked, SqlError> {
        let mut asked = Asked { analyze, json: false };
        let format = format.map(|format| match format {
            AnalyzeFormatKind::Keyword(format) | AnalyzeFormatKind::Assignment(format) => format.to_string(),
        });
        let written = options.iter().map(|option| {
            let value = option.arg.as_ref().map(setting_text);
            (name_of(&option.name), value.map(|value| value.to_lowercase()))
        });
        for (name, value) in
            format.map(|format| ("format".to_owned(), Some(format.to_lowercase()))).into_iter().chain(written)
        {
            let is_on = value.as_deref().is_none_or(|value| matches!(value, "true" | "on" | "1"));
            match (name.as_str(), value.as_deref()) {
                ("analyze", _) => asked.analyze = is_on,
                ("format", Some("json")) => asked.json = true,
                ("format", Some("text")) => asked.json = false,
                ("format", Some(other)) => {
                    return Err(SqlError::unsupported(format!("EXPLAIN (FORMAT {other})")));
                }
                // What they would add is not known here.
                ("verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary", _) => {}
                (other, _) => {
                    let message = format!("unrecognized EXPLAIN option \"{other}\"");
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
            }
        }
        Ok(asked)
    }
}
