//! The dialect of the parser: that of PostgreSQL, with its operators for patterns on the level of all operators that have none of their own.

use std::any::{Any, TypeId};

use sqlparser::ast::{CastKind, Expr};
use sqlparser::dialect::{BindPlaceholderStyle, Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::keyword;

/// PostgreSQL's dialect as `sqlparser` has it, where `a ~ b || c` is read from the left, as PostgreSQL reads it.
#[derive(Debug)]
pub(super) struct PostgreSql;

/// The fields of intervals.
const FIELDS: [Keyword; 6] =
    [Keyword::YEAR, Keyword::MONTH, Keyword::DAY, Keyword::HOUR, Keyword::MINUTE, Keyword::SECOND];

const BASE: PostgreSqlDialect = PostgreSqlDialect {};

/// Answers questions as the dialect does that this one is made from.
macro_rules! as_base {
    ($($question:ident,)*) => {
        $(fn $question(&self) -> bool {
            BASE.$question()
        })*
    };
}

impl Dialect for PostgreSql {
    as_base! {
        supports_cte_materialization,
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        supports_drop_group,
        supports_alter_user_as_alter_role,
        supports_create_group,
        supports_create_role_if_not_exists,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_create_index_with_clause,
        supports_sql_option_without_value,
        supports_explain_with_utility_options,
        supports_listen_notify,
        supports_exclude_constraint,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_tilde_like_match_operator,
        supports_comparison_in_between_low_bound,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_colon_operator,
        supports_named_fn_args_with_expr_name,
        supports_named_fn_args_with_assignment_operator,
        supports_empty_projections,
        supports_nested_comments,
        supports_copy_from_stdin_data,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_non_decimal_integer_literals,
        supports_array_typedef_with_brackets,
        supports_geometric_types,
        supports_order_by_using_operator,
        supports_set_names,
        supports_alter_column_type_using,
        supports_left_associative_joins_without_parens,
        supports_notnull_operator,
        supports_interval_options,
        supports_insert_table_alias,
        supports_create_table_like_parenthesized,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_xml_expressions,
        supports_aliased_function_args,
        supports_comment_optimizer_hint,
        supports_add_column_if_not_exists,
        supports_attach_partition_of,
        supports_detach_partition_of,
        supports_table_inheritance_markers,
        supports_column_generic_options,
    }

    fn dialect(&self) -> TypeId {
        BASE.type_id()
    }

    /// Reads `((SELECT …) UNION (SELECT …))` where a value may stand: the parser looks for no query behind two brackets. And intervals whose type
    /// says more than that they are intervals, which the parser would forget.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if let Some(literal) = interval_of_type(parser) {
            return Some(literal);
        }
        begins_combined(parser).then(|| {
            parser.expect_token(&Token::LParen)?;
            let query = parser.parse_query()?;
            parser.expect_token(&Token::RParen)?;
            Ok(Expr::Subquery(query))
        })
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => Some(Ok(self.prec_value(Precedence::PgOther))),
            _ => BASE.get_next_precedence(parser),
        }
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        BASE.prec_value(precedence)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn ordered_bind_placeholder_style(&self) -> Option<BindPlaceholderStyle> {
        BASE.ordered_bind_placeholder_style()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        BASE.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        BASE.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        BASE.is_identifier_part(character)
    }

    fn is_custom_operator_part(&self, character: char) -> bool {
        BASE.is_custom_operator_part(character)
    }

    /// Nothing is called `case` without quotes, so that where an expression begins, the word begins one.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        keyword == Keyword::CASE || BASE.is_reserved_for_identifier(keyword)
    }

    /// `FOR` begins a locking clause.
    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        *keyword != Keyword::FOR && BASE.is_column_alias(keyword, parser)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser) -> bool {
        BASE.is_table_alias(keyword, parser)
    }

    fn supports_string_literal_column_alias(&self, explicit: bool) -> bool {
        BASE.supports_string_literal_column_alias(explicit)
    }

    fn supports_string_literal_table_alias(&self, explicit: bool) -> bool {
        BASE.supports_string_literal_table_alias(explicit)
    }

    /// PostgreSQL has no others, so that `INTERVAL '1' days` is one second by the name of `days`.
    fn is_interval_qualifier(&self, keyword: Keyword) -> bool {
        FIELDS.contains(&keyword)
    }

    fn is_custom_type_typed_string(&self, first: Keyword, qualified: bool) -> bool {
        BASE.is_custom_type_typed_string(first, qualified)
    }
}

/// Reads `INTERVAL (3) '…'` as a cast, which it is. Fields come behind the text only.
fn interval_of_type(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let word = |place: usize| keyword(&parser.peek_nth_token_ref(place).token);
    let text_at = |place: usize| {
        let token = &parser.peek_nth_token_ref(place).token;
        matches!(token, Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_)).then_some(place)
    };
    if word(0) != Keyword::INTERVAL {
        return None;
    }
    if FIELDS.contains(&word(1)) {
        let place = text_at(2).or_else(|| (word(2) == Keyword::TO).then(|| text_at(4)).flatten())?;
        return Some(
            parser.expected_ref("the fields of an interval behind it", parser.peek_nth_token_ref(place)),
        );
    }
    let digits = &parser.peek_nth_token_ref(2).token;
    let has_digits = parser.peek_nth_token_ref(1).token == Token::LParen
        && matches!(digits, Token::Number(..))
        && parser.peek_nth_token_ref(3).token == Token::RParen;
    text_at(4).filter(|_| has_digits)?;
    Some(parser.parse_data_type().and_then(|data_type| {
        let expr = Box::new(Expr::Value(parser.parse_value()?));
        if FIELDS.contains(&keyword(&parser.peek_token_ref().token)) {
            return parser.expected_ref("either digits or fields of an interval", parser.peek_token_ref());
        }
        Ok(Expr::Cast { kind: CastKind::DoubleColon, expr, data_type, format: None })
    }))
}

/// Whether two brackets are next, with a query in the inner ones and then what makes a part of another one of it.
fn begins_combined(parser: &Parser) -> bool {
    if (0..2).any(|place| parser.peek_nth_token_ref(place).token != Token::LParen) {
        return false;
    }
    let solid = (0..).map(|place| parser.peek_nth_token_no_skip(place).token);
    let mut solid = solid.filter(|token| !matches!(token, Token::Whitespace(_))).skip(1);
    let (mut depth, mut is_query) = (0_usize, None);
    for token in solid.by_ref() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::EOF => return false,
            other => {
                let first = keyword(&other);
                is_query.get_or_insert(matches!(first, Keyword::SELECT | Keyword::VALUES | Keyword::WITH));
            }
        }
        if depth == 0 || is_query == Some(false) {
            break;
        }
    }
    let follows = solid.next().map_or(Keyword::NoKeyword, |token| keyword(&token));
    let goes_on = matches!(
        follows,
        Keyword::UNION
            | Keyword::INTERSECT
            | Keyword::EXCEPT
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
    );
    is_query == Some(true) && goes_on
}
