//! Functions that give rows, in `FROM` and in the list of a query.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderByExpr, Select, SelectItem,
    TableAlias,
};

use super::Binder;
use super::from::aliased;
use super::functions::arguments_of;
use super::join::Item;
use super::names::{last_name, name_of};
use super::numbering::check_relations;
use super::scope::{Field, Level, OF_FUNCTION, Relation};
use crate::error::SqlError;
use crate::plan::{Expression, List, Node};
use crate::types::functions::{self, is_set, resolve_set, set_columns};
use crate::types::{Datum, SqlType};

impl Binder<'_> {
    /// Rows of functions side by side, in `FROM`, where they see the rows before them.
    pub(super) fn sets(
        &mut self,
        calls: &[(String, Vec<Expr>)],
        ordinality: bool,
        alias: Option<&TableAlias>,
    ) -> Result<(Node, Relation, bool), SqlError> {
        self.levels.push(Level { clause: "functions in FROM", ..Level::default() });
        let bound: Vec<Result<_, SqlError>> =
            calls.iter().map(|(name, written)| self.rows_of(name, written)).collect();
        self.levels.pop();
        let (mut lists, mut fields) = (Vec::new(), Vec::new());
        for one in bound {
            let (list, field): (Vec<List>, Vec<Field>) = one?;
            lists.extend(list);
            fields.extend(field);
        }
        // The only column of a function takes the name of its alias.
        if let ([field], Some(alias)) = (fields.as_mut_slice(), alias)
            && calls.iter().all(|(name, _)| field.name == *name)
        {
            field.name = name_of(&alias.name);
        }
        if ordinality {
            fields.push(field("ordinality", SqlType::INT8));
        }
        let name = calls.first().map_or_else(String::new, |(name, _)| name.clone());
        Ok((Node::Unnest { lists, ordinality }, aliased(name, fields, alias)?, true))
    }

    /// The rows of a function, as lists, and their columns.
    fn rows_of(&mut self, name: &str, written: &[Expr]) -> Result<(Vec<List>, Vec<Field>), SqlError> {
        let mut arguments = Vec::with_capacity(written.len());
        for argument in written {
            arguments.push(self.expression(argument)?);
        }
        if name == "unnest" {
            let (mut lists, mut fields) = (Vec::new(), Vec::new());
            for array in arguments {
                if !array.data_type.array {
                    let types = [array.data_type];
                    return Err(functions::undefined(name, &types));
                }
                lists.push(List { array: array.expression, width: 1 });
                fields.push(field(name, array.data_type.element()));
            }
            return Ok((lists, fields));
        }
        if name == "generate_series" && arguments.len() == 2 {
            arguments.push(super::expression::constant(Datum::Int(1), SqlType::INT4));
        }
        let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
        let is_of_vector =
            name == "generate_subscripts" && types.first().is_some_and(|first| first.is_vector());
        let function = resolve_set(if is_of_vector { functions::SUBSCRIPTS_OF_VECTOR } else { name }, &types);
        let function = function.map_err(|error| self.misplaced_call(name).unwrap_or(error))?;
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, wanted) in arguments.into_iter().zip(&function.arguments) {
            values.push(self.argument(argument, *wanted)?);
        }
        let array = Expression::Call { function: function.id, arguments: values };
        let columns = set_columns(name, function.result);
        let mut fields: Vec<Field> = columns
            .iter()
            .map(|(column, data_type)| field(if column.is_empty() { name } else { column }, *data_type))
            .collect();
        if let [field] = fields.as_mut_slice()
            && field.name == "value"
        {
            field.origin = OF_FUNCTION;
        }
        Ok((vec![List { array, width: fields.len() as u16 }], fields))
    }

    /// The list of a query in which functions that give rows are columns of a relation, which is joined to those of `FROM`. The list as
    /// it is if it has none.
    pub(super) fn spread(
        &mut self,
        select: &Select,
        order: &[OrderByExpr],
        items: &mut Vec<Item>,
    ) -> Result<Option<Vec<SelectItem>>, SqlError> {
        let mut finder = Finder::default();
        let mut list = select.projection.clone();
        for item in &mut list {
            match item {
                // What is named by a function keeps that name.
                SelectItem::UnnamedExpr(expr) => {
                    let (name, known) = (Self::column_name(expr), finder.calls.len());
                    finder.look(expr)?;
                    if finder.calls.len() > known {
                        let (expr, alias) = (expr.clone(), Ident::with_quote('"', name));
                        *item = SelectItem::ExprWithAlias { expr, alias };
                    }
                }
                SelectItem::ExprWithAlias { expr, .. } => finder.look(expr)?,
                _ => {}
            }
        }
        if finder.calls.is_empty() {
            return Ok(None);
        }
        if super::aggregates::is_grouped(select, order) {
            return Err(SqlError::unsupported(
                "a function that gives rows in the list of a query with groups",
            )
            .with_hint("Group in a subquery in FROM."));
        }
        let (node, mut relation, _) = self.sets(&finder.calls, false, None)?;
        relation.name = SPREAD.to_owned();
        for (place, field) in (0..).zip(&mut relation.fields) {
            field.name = spread_column(place);
            field.hidden = true;
        }
        let (offset, width) = (self.level().width(), relation.fields.len() as u16);
        check_relations(items.len() + 1, usize::from(offset) + relation.fields.len())?;
        relation.offset = offset;
        self.level().relations.push(relation);
        items.push(Item { offset, lateral: true, ..Item::first(node, width) });
        Ok(Some(list))
    }
}

/// The relation of the functions in a list; no statement can name it.
const SPREAD: &str = " rows of the list";

fn spread_column(place: usize) -> String {
    format!(" {place}")
}

fn field(name: &str, data_type: SqlType) -> Field {
    Field { name: name.to_owned(), data_type, origin: None, hidden: false }
}

/// Puts columns in the place of functions that give rows.
#[derive(Default)]
struct Finder {
    calls: Vec<(String, Vec<Expr>)>,
}

impl Finder {
    fn take(&mut self, name: String, function: &Function) -> Result<Expr, SqlError> {
        let call = (name.clone(), arguments_of(function)?);
        if set_width(&name) != 1 || name == "unnest" && call.1.len() != 1 {
            return Err(SqlError::unsupported(format!("{name} with several columns in the list of a query"))
                .with_hint("Put it into FROM."));
        }
        self.calls.push(call);
        let column = spread_column(self.calls.len() - 1);
        let quoted = |text: &str| Ident::with_quote('"', text);
        Ok(Expr::CompoundIdentifier(vec![quoted(SPREAD), quoted(&column)]))
    }

    /// Looks where such functions mostly stand: at the top, under casts, operators, parts of arrays and other functions.
    fn look(&mut self, written: &mut Expr) -> Result<(), SqlError> {
        match written {
            Expr::Function(function) => {
                if let FunctionArguments::List(list) = &mut function.args {
                    for argument in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(inner)) = argument {
                            self.look(inner)?;
                        }
                    }
                }
                let name = last_name(&function.name)?;
                if function.over.is_none() && is_set(&name) {
                    *written = self.take(name, function)?;
                }
                Ok(())
            }
            Expr::Cast { expr, .. } | Expr::Nested(expr) | Expr::CompoundFieldAccess { root: expr, .. } => {
                self.look(expr)
            }
            Expr::BinaryOp { left, right, .. } => {
                self.look(left)?;
                self.look(right)
            }
            _ => Ok(()),
        }
    }
}

fn set_width(name: &str) -> usize {
    set_columns(name, SqlType::TEXT).len()
}
