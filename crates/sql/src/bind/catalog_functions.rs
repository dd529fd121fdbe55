//! Functions of PostgreSQL that tell of the catalog. What they say of an object is looked up when the statement is planned.

use super::Binder;
use super::expression::{boolean, constant, text_constant};
use super::names::{quoted, relation_named};
use super::scope::Bound;
use crate::catalog::system::Names;
use crate::catalog::{Class, Definition, system};
use crate::error::{SqlError, SqlState};
use crate::plan::Expression;
use crate::types::functions::{self, NAME_AS_QUOTED, NUMBER_OF_NONE};
use crate::types::operators::{BinaryOperator, resolve_binary};
use crate::types::{Datum, SqlType, others};

impl Binder<'_> {
    /// A function of the catalog by its name, if it is one.
    pub(super) fn catalog_function(
        &mut self,
        name: &str,
        arguments: &[Bound],
    ) -> Result<Option<Bound>, SqlError> {
        let first = || arguments.first().cloned().unwrap_or_else(|| constant(Datum::Null, SqlType::TEXT));
        if let Some(bound) = same_for_all(name) {
            return Ok(Some(bound));
        }
        if let Some(bound) = self.object_function(name, first())? {
            return Ok(Some(bound));
        }
        Ok(Some(match name {
            "obj_description" | "col_description" | "shobj_description" => {
                self.description(name, arguments)?
            }
            "pg_get_serial_sequence" => self.serial_sequence(arguments)?,
            "to_regclass" => {
                if let Some(name) = literal(arguments.first()) {
                    let found = self.find_object(&name, None).ok();
                    let number = found.map_or(Datum::Null, |object| Datum::Int(i64::from(object)));
                    return Ok(Some(constant(number, SqlType::OID)));
                }
                let name = self.implicit(first(), SqlType::TEXT)?;
                self.relation_number(name, true)?
            }
            "pg_get_viewdef" => self.looked_up(first(), &system::view_definitions(self.catalog))?,
            // What is stored is the expression as written.
            "pg_get_expr" => Bound { data_type: SqlType::TEXT, ..first() },
            "pg_get_indexdef" => {
                // A pretty one leaves out the schema where the table is found without.
                let pretty = boolean(Expression::Constant(Datum::Bool(true)));
                let names = arguments.get(2).filter(|is_pretty| **is_pretty == pretty).map(|_| self.names());
                let definitions = system::index_definitions(self.catalog, names);
                match arguments.get(1) {
                    Some(column) if !is_zero(Some(column)) => {
                        self.index_column(first(), column.clone(), definitions)?
                    }
                    _ => self.looked_up(first(), &definitions)?,
                }
            }
            "pg_get_constraintdef" => {
                self.looked_up(first(), &system::constraint_definitions(self.names()))?
            }
            // Nobody waits for a lock that another session holds.
            "pg_blocking_pids" => constant(Datum::Array(Vec::new()), SqlType::INT4.array_of()),
            // No table is a partition of another.
            "pg_partition_ancestors" => constant(Datum::Null, SqlType::OID),
            "current_schemas" => {
                let with_implicit = matches!(
                    arguments.first().map(|first| &first.expression),
                    Some(Expression::Constant(Datum::Bool(true)))
                );
                let own = Some(self.surroundings.temporary.as_str());
                let implicit =
                    own.filter(|own| self.catalog.has_schema(own)).into_iter().chain(["pg_catalog"]);
                let schemas = implicit.filter(|_| with_implicit).chain(self.schemas_of_path());
                let schemas = schemas.map(|schema| Datum::Text(schema.to_owned())).collect();
                constant(Datum::Array(schemas), SqlType::NAME.array_of())
            }
            "to_regtype" => {
                if let Some(name) = literal(arguments.first()) {
                    return Ok(Some(constant(type_number(&name), SqlType::OID)));
                }
                let name = self.implicit(first(), SqlType::TEXT)?;
                self.computed_type_number(name)?
            }
            _ => return Ok(None),
        }))
    }

    /// A function that tells whether an object is found by its name alone, or which number a name has.
    fn object_function(&mut self, name: &str, argument: Bound) -> Result<Option<Bound>, SqlError> {
        Ok(Some(match name {
            "pg_table_is_visible" => self.is_seen(argument, &system::relations_seen(self.names()))?,
            "pg_type_is_visible" => {
                let types = system::type_numbers().into_iter();
                self.is_seen(argument, &types.map(|number| (number, true)).collect::<Vec<_>>())?
            }
            "pg_function_is_visible" => {
                let known = functions::numbered().map(|function| (function.number, true));
                self.is_seen(argument, &known.collect::<Vec<_>>())?
            }
            "pg_opclass_is_visible" => {
                let classes = system::operator_class_numbers().into_iter();
                self.is_seen(argument, &classes.map(|number| (number, true)).collect::<Vec<_>>())?
            }
            "to_regnamespace" => {
                let known = system::schema_names(self.catalog);
                let known: Vec<(u32, String)> =
                    known.into_iter().map(|(number, name)| (number, quoted(&name))).collect();
                let name = self.name_as_quoted(argument)?;
                self.number_named(name, &known)?
            }
            "to_regproc" => {
                let mut known = Vec::new();
                for function in functions::numbered() {
                    known.push((function.number, quoted(function.name)));
                    known.push((function.number, format!("pg_catalog.{}", quoted(function.name))));
                }
                let name = self.name_as_quoted(argument)?;
                Bound { data_type: SqlType::REGPROC, ..self.number_named(name, &known)? }
            }
            _ => return Ok(None),
        }))
    }

    /// The name that a number stands for, as `regclass` shows it.
    pub(super) fn relation_name(&mut self, number: Bound) -> Result<Bound, SqlError> {
        self.with_locals([number], |binder, [number]| {
            let mut found = binder.looked_up(number.clone(), &system::relation_names(binder.names()))?;
            if let Expression::Case { otherwise, .. } = &mut found.expression {
                // The number of none stays one.
                *otherwise = Some(Box::new(binder.explicit(number, SqlType::TEXT)?.expression));
            }
            Ok(found)
        })
    }

    /// Where names are looked up.
    fn names(&self) -> Names<'_> {
        Names { catalog: self.catalog, surroundings: self.surroundings }
    }

    /// Whether an object is found by its name alone; null for a number of none.
    fn is_seen(&mut self, number: Bound, known: &[(u32, bool)]) -> Result<Bound, SqlError> {
        let number = self.implicit(number, SqlType::OID)?;
        let resolved = resolve_binary(BinaryOperator::Equal, SqlType::OID, SqlType::OID)?;
        self.with_locals([number], |_, [number]| {
            let is_among = |wanted: bool| {
                let list = known.iter().filter(|(_, seen)| *seen == wanted);
                let list =
                    list.map(|(object, _)| Expression::Constant(Datum::Int(i64::from(*object)))).collect();
                Expression::InList { operand: Box::new(number.expression.clone()), list, resolved }
            };
            let branches =
                [true, false].map(|seen| (is_among(seen), Expression::Constant(Datum::Bool(seen))));
            Ok(boolean(Expression::Case { branches: branches.to_vec(), otherwise: None }))
        })
    }

    /// A text that is computed as the names in it are quoted.
    fn name_as_quoted(&mut self, name: Bound) -> Result<Bound, SqlError> {
        let name = self.explicit(name, SqlType::TEXT)?;
        let function = functions::resolve(NAME_AS_QUOTED, &[SqlType::TEXT])?;
        let arguments = vec![name.expression];
        let expression = Expression::Call { function: function.id, arguments };
        Ok(Bound { expression, data_type: function.result })
    }

    /// The number that goes with a text; null if there is none.
    fn number_named(&mut self, name: Bound, known: &[(u32, String)]) -> Result<Bound, SqlError> {
        self.with_locals([name], |binder, [name]| {
            let mut branches = Vec::with_capacity(known.len());
            for (number, text) in known {
                let is_it = binder.operate(BinaryOperator::Equal, name.clone(), text_constant(text))?;
                branches.push((is_it.expression, Expression::Constant(Datum::Int(i64::from(*number)))));
            }
            Ok(Bound { expression: Expression::Case { branches, otherwise: None }, data_type: SqlType::OID })
        })
    }

    /// The same for `regnamespace`.
    pub(super) fn schema_name(&mut self, number: Bound) -> Result<Bound, SqlError> {
        self.looked_up(number, &system::schema_names(self.catalog))
    }

    /// The same for `regtype`.
    pub(super) fn type_name(&mut self, number: Bound) -> Result<Bound, SqlError> {
        let function = functions::resolve("format_type", &[SqlType::OID, SqlType::INT4])?;
        let arguments = vec![number.expression, Expression::Constant(Datum::Null)];
        Ok(Bound {
            expression: Expression::Call { function: function.id, arguments },
            data_type: SqlType::TEXT,
        })
    }

    /// The column of an index, by the number of the index and its own place in it, from 1 on; at 0 is the definition of it all.
    fn index_column(
        &mut self,
        index: Bound,
        place: Bound,
        mut definitions: Vec<(u32, String)>,
    ) -> Result<Bound, SqlError> {
        self.with_locals([index, place], |binder, [index, place]| {
            let mut branches = Vec::new();
            for (object, columns) in system::index_columns(binder.catalog) {
                let whole = definitions.iter_mut().find(|(known, _)| *known == object);
                let whole = whole.map(|(_, statement)| std::mem::take(statement)).unwrap_or_default();
                for (number, column) in (0..).zip(std::iter::once(whole).chain(columns)) {
                    let object = constant(Datum::Int(i64::from(object)), SqlType::OID);
                    let is_index = binder.operate(BinaryOperator::Equal, index.clone(), object)?.expression;
                    let number = constant(Datum::Int(number), SqlType::INT4);
                    let is_place = binder.operate(BinaryOperator::Equal, place.clone(), number)?.expression;
                    let condition = Expression::And(vec![is_index, is_place]);
                    branches.push((condition, Expression::Constant(Datum::Text(column))));
                }
            }
            Ok(Bound { expression: Expression::Case { branches, otherwise: None }, data_type: SqlType::TEXT })
        })
    }

    /// The sequence that a column takes its numbers from, by the names of its table and its own; null if there is none.
    fn serial_sequence(&mut self, arguments: &[Bound]) -> Result<Bound, SqlError> {
        let (Some(table), Some(column)) = (literal(arguments.first()), literal(arguments.get(1))) else {
            return self.computed_sequence(arguments);
        };
        let (schema, table) = relation_named(&table)?;
        let (schema, definition) = self.find_table(schema.as_deref(), &table)?;
        if !definition.columns.iter().any(|known| known.name == column && !known.dropped) {
            let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message));
        }
        let owner = Some((table, column));
        let found = self.catalog.iter().find_map(|(in_schema, name, definition)| match definition {
            Definition::Sequence(sequence) if in_schema == schema && sequence.owner == owner => {
                Some(format!("{}.{}", quoted(in_schema), quoted(name)))
            }
            _ => None,
        });
        Ok(constant(found.map_or(Datum::Null, Datum::Text), SqlType::TEXT))
    }

    /// The same for names that are computed, as queries over the system tables ask it.
    fn computed_sequence(&mut self, arguments: &[Bound]) -> Result<Bound, SqlError> {
        let [table, column] = arguments else {
            let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
            return Err(functions::undefined("pg_get_serial_sequence", &types));
        };
        self.with_locals([table.clone(), column.clone()], |binder, [table, column]| {
            let mut branches = Vec::new();
            for (schema, name, definition) in binder.catalog.iter() {
                let Definition::Sequence(sequence) = definition else { continue };
                let Some((owner, owned)) = &sequence.owner else { continue };
                let is_column =
                    binder.operate(BinaryOperator::Equal, column.clone(), text_constant(owned))?;
                for shown in [quoted(owner), format!("{}.{}", quoted(schema), quoted(owner))] {
                    let is_table =
                        binder.operate(BinaryOperator::Equal, table.clone(), text_constant(&shown))?;
                    let both = Expression::And(vec![is_table.expression, is_column.expression.clone()]);
                    let found = Datum::Text(format!("{}.{}", quoted(schema), quoted(name)));
                    branches.push((both, Expression::Constant(found)));
                }
            }
            Ok(Bound { expression: Expression::Case { branches, otherwise: None }, data_type: SqlType::TEXT })
        })
    }

    /// The number of the type whose name is a text that is computed, as `pg_type` has it or as it is shown; null if there is none.
    pub(super) fn computed_type_number(&mut self, name: Bound) -> Result<Bound, SqlError> {
        // Quotes change none of these names, and their schema is there anyway.
        let name = ["\"", "pg_catalog."].into_iter().try_fold(name, |name, part| {
            let replace = functions::resolve("replace", &[SqlType::TEXT; 3])?;
            let [part, nothing] = [part, ""].map(|text| text_constant(text).expression);
            let arguments = vec![name.expression, part, nothing];
            let expression = Expression::Call { function: replace.id, arguments };
            Ok::<Bound, SqlError>(Bound { expression, data_type: SqlType::TEXT })
        })?;
        let mut known = Vec::new();
        for (name, data_type) in system::TYPES {
            let plain = [(*name).to_owned(), data_type.name()];
            let arrays = [format!("_{name}"), format!("{name}[]"), data_type.array_of().name()];
            known.extend(plain.map(|text| (data_type.oid(), text)));
            known.extend(arrays.map(|text| (data_type.array_of().oid(), text)));
        }
        self.number_named(name, &known)
    }

    /// The number of the relation whose name, with its schema or without, is a text that is computed; or which the text is itself. What
    /// names none is null if that `may_be`, else an error.
    pub(super) fn relation_number(&mut self, name: Bound, may_be: bool) -> Result<Bound, SqlError> {
        let name = self.explicit(name, SqlType::TEXT)?;
        let known = self.relations_by_name();
        self.with_locals([name], |binder, [name]| {
            let as_quoted = binder.name_as_quoted(name.clone())?;
            let mut found = binder.number_named(as_quoted, &known)?;
            if !may_be {
                let function = functions::resolve(NUMBER_OF_NONE, &[SqlType::TEXT])?;
                let none = Expression::Call { function: function.id, arguments: vec![name.expression] };
                let found_or_none = Expression::Coalesce(vec![found.expression, none]);
                found = Bound { expression: found_or_none, data_type: SqlType::OID };
            }
            Ok(found)
        })
    }

    /// The numbers of all relations, by each text that names one.
    fn relations_by_name(&mut self) -> Vec<(u32, String)> {
        let catalog = self.catalog;
        let own = catalog.iter().filter(|(_, relation, _)| !relation.is_empty());
        let own = own.filter_map(|(schema, relation, definition)| {
            let object = match definition {
                Definition::Index(table) => {
                    let numbers = system::index_numbers(catalog.get(schema, table));
                    numbers.into_iter().find(|(known, _)| known == relation)?.1
                }
                other => other.object().filter(|_| !schema.is_empty())?,
            };
            let is_found = self.find(None, relation).is_some_and(|(found, _)| found == schema);
            Some((schema, relation, object, is_found))
        });
        let own: Vec<(&str, &str, u32, bool)> = own.collect();
        let system = system::table_objects().map(|(relation, object)| ("pg_catalog", relation, object, true));
        let mut known = Vec::new();
        for (schema, relation, object, is_found) in own.into_iter().chain(system) {
            let alone = is_found.then(|| quoted(relation));
            let with_schema = format!("{}.{}", quoted(schema), quoted(relation));
            known.extend(alone.into_iter().chain([with_schema]).map(|shown| (object, shown)));
        }
        known
    }

    /// The comment on an object, by its number and the system table that it is in, or on a column, by its number and that of its relation.
    fn description(&mut self, function: &str, arguments: &[Bound]) -> Result<Bound, SqlError> {
        let of_column = function == "col_description";
        let (object, second) = match arguments {
            [object] if function == "obj_description" => (object, None),
            [object, second] => (object, Some(second)),
            _ => {
                let types: Vec<SqlType> = arguments.iter().map(|argument| argument.data_type).collect();
                return Err(functions::undefined(function, &types));
            }
        };
        let of_second = if of_column { SqlType::INT4 } else { SqlType::TEXT };
        let object = self.implicit(object.clone(), SqlType::OID)?;
        let second = second.map(|second| self.implicit(second.clone(), of_second)).transpose()?;
        let second = second.unwrap_or_else(|| constant(Datum::Null, of_second));
        let is_one = arguments.len() == 1;
        self.with_locals([object, second], |binder, [object, second]| {
            let mut branches = Vec::new();
            for (subject, comment) in binder.catalog.comments() {
                let is_asked = match function {
                    "col_description" => subject.class == Class::Relation,
                    "shobj_description" => subject.class.is_shared(),
                    _ => subject.column == 0 && !subject.class.is_shared(),
                };
                if !is_asked {
                    continue;
                }
                let number = constant(Datum::Int(subject.object.into()), SqlType::OID);
                let is_object = binder.operate(BinaryOperator::Equal, object.clone(), number)?;
                let which = match of_column {
                    true => constant(Datum::Int(subject.column.into()), SqlType::INT4),
                    false => text_constant(subject.class.table()),
                };
                let is_which = binder.operate(BinaryOperator::Equal, second.clone(), which)?;
                let mut conditions = vec![is_object.expression];
                conditions.extend((!is_one).then_some(is_which.expression));
                branches.push((
                    Expression::And(conditions),
                    Expression::Constant(Datum::Text(comment.to_owned())),
                ));
            }
            Ok(Bound { expression: Expression::Case { branches, otherwise: None }, data_type: SqlType::TEXT })
        })
    }

    /// The text that goes with a number.
    fn looked_up(&mut self, number: Bound, known: &[(u32, String)]) -> Result<Bound, SqlError> {
        self.with_locals([number], |binder, [number]| {
            let mut branches = Vec::with_capacity(known.len());
            for (object, text) in known {
                let object = constant(Datum::Int(i64::from(*object)), SqlType::OID);
                let is_it = binder.operate(BinaryOperator::Equal, number.clone(), object)?.expression;
                branches.push((is_it, Expression::Constant(Datum::Text(text.clone()))));
            }
            Ok(Bound { expression: Expression::Case { branches, otherwise: None }, data_type: SqlType::TEXT })
        })
    }
}

/// The value of a function of the catalog that says the same of every object.
fn same_for_all(name: &str) -> Option<Bound> {
    Some(match name {
        "pg_get_userbyid" => constant(Datum::Text("ordain".to_owned()), SqlType::NAME),
        "pg_encoding_to_char" | "pg_client_encoding" | "getdatabaseencoding" => text_constant("UTF8"),
        "has_table_privilege"
        | "has_schema_privilege"
        | "has_database_privilege"
        | "has_column_privilege"
        | "has_any_column_privilege"
        | "has_sequence_privilege"
        | "has_function_privilege"
        | "has_type_privilege"
        | "has_tablespace_privilege"
        | "pg_has_role" => boolean(Expression::Constant(Datum::Bool(true))),
        // There are none of these.
        "pg_operator_is_visible"
        | "pg_collation_is_visible"
        | "pg_conversion_is_visible"
        | "pg_opfamily_is_visible"
        | "pg_statistics_obj_is_visible"
        | "pg_ts_config_is_visible"
        | "pg_ts_dict_is_visible"
        | "pg_ts_parser_is_visible"
        | "pg_ts_template_is_visible" => boolean(Expression::Constant(Datum::Null)),
        "pg_is_in_recovery" | "pg_relation_is_publishable" | "pg_is_other_temp_schema" => {
            boolean(Expression::Constant(Datum::Bool(false)))
        }
        "pg_get_statisticsobjdef_columns"
        | "pg_get_triggerdef"
        | "pg_get_partkeydef"
        | "pg_get_ruledef"
        | "pg_get_function_result"
        | "pg_get_function_arguments"
        | "pg_get_function_identity_arguments"
        | "pg_get_function_sqlbody"
        | "pg_get_functiondef"
        | "pg_get_statisticsobjdef"
        | "pg_tablespace_location"
        | "pg_describe_object" => constant(Datum::Null, SqlType::TEXT),
        "inet_server_addr" | "inet_client_addr" => constant(Datum::Null, SqlType::INET),
        "inet_server_port" | "inet_client_port" => constant(Datum::Null, SqlType::INT4),
        // UTF-8 is the only one.
        "pg_char_to_encoding" => constant(Datum::Int(6), SqlType::INT4),
        "pg_my_temp_schema" => constant(Datum::Int(0), SqlType::OID),
        "pg_relation_size"
        | "pg_total_relation_size"
        | "pg_table_size"
        | "pg_indexes_size"
        | "pg_database_size"
        | "pg_tablespace_size" => constant(Datum::Null, SqlType::INT8),
        _ => return None,
    })
}

/// The text of a literal.
fn literal(argument: Option<&Bound>) -> Option<String> {
    match &argument?.expression {
        Expression::Constant(Datum::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn is_zero(argument: Option<&Bound>) -> bool {
    argument.is_some_and(|argument| argument.expression == Expression::Constant(Datum::Int(0)))
}

/// The number of the type that a literal names; null if there is none.
pub(super) fn type_number(name: &str) -> Datum {
    if let Some(number) = others::number(name) {
        return Datum::Int(number.into());
    }
    match crate::syntax::parse_expression(&format!("NULL::{name}")) {
        Ok(sqlparser::ast::Expr::Cast { data_type, .. }) => {
            super::types::sql_type(&data_type).map_or(Datum::Null, |known| Datum::Int(i64::from(known.oid())))
        }
        _ => Datum::Null,
    }
}
