//! Texts that nothing has to be spelled in another way in: the ways through their tokens are saved.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::{conflicts, spelling};

/// With what statements begin.
const BEGINNINGS: [Keyword; 8] = [
    Keyword::BEGIN,
    Keyword::COMMIT,
    Keyword::DELETE,
    Keyword::END,
    Keyword::INSERT,
    Keyword::ROLLBACK,
    Keyword::SELECT,
    Keyword::UPDATE,
];

/// What they go on with, names that are words of the language among it.
const OTHERS: [Keyword; 60] = [
    Keyword::NoKeyword,
    Keyword::AND,
    Keyword::AS,
    Keyword::ASC,
    Keyword::AVG,
    Keyword::BETWEEN,
    Keyword::BY,
    Keyword::CASE,
    Keyword::CONFLICT,
    Keyword::COUNT,
    Keyword::CROSS,
    Keyword::CURRENT_DATE,
    Keyword::CURRENT_TIMESTAMP,
    Keyword::DATE,
    Keyword::DEFAULT,
    Keyword::DELTA,
    Keyword::DESC,
    Keyword::DISTINCT,
    Keyword::DO,
    Keyword::ELSE,
    Keyword::END,
    Keyword::EXISTS,
    Keyword::FALSE,
    Keyword::FROM,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::ID,
    Keyword::IN,
    Keyword::INNER,
    Keyword::INTO,
    Keyword::IS,
    Keyword::JOIN,
    Keyword::KEY,
    Keyword::LEFT,
    Keyword::LIMIT,
    Keyword::MAX,
    Keyword::MIN,
    Keyword::NAME,
    Keyword::NOT,
    Keyword::NOTHING,
    Keyword::NULL,
    Keyword::OFFSET,
    Keyword::ON,
    Keyword::OR,
    Keyword::ORDER,
    Keyword::OUTER,
    Keyword::RETURNING,
    Keyword::RIGHT,
    Keyword::SET,
    Keyword::STATUS,
    Keyword::SUM,
    Keyword::THEN,
    Keyword::TIMESTAMP,
    Keyword::TRUE,
    Keyword::TYPE,
    Keyword::UPDATE,
    Keyword::VALUE,
    Keyword::VALUES,
    Keyword::WHEN,
    Keyword::WHERE,
];

/// Whether all tokens are of those that the parser takes as PostgreSQL does: the statements that come most often are made of no others.
pub(super) fn is_plain(tokens: &[TokenWithSpan]) -> bool {
    let (mut begins, mut has_text, mut has_line, mut has_conflict) = (true, false, false, false);
    let is_each_plain = tokens.iter().all(|token| match &token.token {
        Token::Word(word) if word.quote_style.is_some() => !std::mem::take(&mut begins),
        Token::Word(word) => match std::mem::take(&mut begins) {
            true => BEGINNINGS.contains(&word.keyword),
            false => {
                has_conflict |= word.keyword == Keyword::CONFLICT;
                OTHERS.contains(&word.keyword) && !spelling::is_null_test(word)
            }
        },
        Token::SemiColon => {
            begins = true;
            true
        }
        Token::SingleQuotedString(_) => {
            has_text = true;
            true
        }
        Token::Whitespace(Whitespace::Newline) => {
            has_line = true;
            true
        }
        Token::Whitespace(Whitespace::Space | Whitespace::Tab)
        | Token::EOF
        | Token::Comma
        | Token::Eq
        | Token::Gt
        | Token::GtEq
        | Token::LParen
        | Token::Lt
        | Token::LtEq
        | Token::Minus
        | Token::Mul
        | Token::Neq
        | Token::Number(..)
        | Token::Period
        | Token::Placeholder(_)
        | Token::Plus
        | Token::RParen => true,
        _ => false,
    });
    // Texts on several lines are one.
    is_each_plain && !(has_text && has_line) && (!has_conflict || conflicts::expressions(tokens).is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{spell_out, tokens_of};
    use super::*;

    fn part() -> impl Strategy<Value = String> {
        let word = proptest::sample::select([&BEGINNINGS[..], &OTHERS[..]].concat());
        prop_oneof![
            4 => word.prop_map(|word| format!("{word:?}")),
            2 => proptest::sample::select(vec!["a", "move", "t1", "\"like\"", "system", "'as of'", "'x'", "7", "1.5", "$1"])
                .prop_map(str::to_owned),
            2 => proptest::sample::select(vec![";", ",", "(", ")", "=", "<", "<=", "<>", ">=", "-", "+", "*", ".", "\n"])
                .prop_map(str::to_owned),
            1 => proptest::sample::select(vec!["LIKE", "FETCH", "TABLE", "OF", "DEFERRABLE", "USER", "/**/", "||-"])
                .prop_map(str::to_owned),
        ]
    }

    /// As `pgbench` sends them.
    #[test]
    fn the_most_usual_statements_are_plain() {
        for text in [
            "BEGIN;",
            "UPDATE pgbench_accounts SET abalance = abalance + -4211 WHERE aid = 77;",
            "SELECT abalance FROM pgbench_accounts WHERE aid = 77;",
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 2, 77, -4211, CURRENT_TIMESTAMP);",
            "END;",
        ] {
            assert!(is_plain(&tokens_of(text, |_| {}).unwrap()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_plain_text_stays_as_it_is(parts in proptest::collection::vec(part(), 0..40)) {
            let tokens = tokens_of(&parts.join(" "), |_| {}).unwrap();
            if is_plain(&tokens) {
                let mut spelled = tokens.clone();
                let times = spell_out(&mut spelled).unwrap();
                prop_assert_eq!(&spelled, &tokens);
                prop_assert!(times.iter().all(Option::is_none));
            }
        }

        #[test]
        fn statements_of_plain_words_are_plain(words in proptest::collection::vec(proptest::sample::select(OTHERS.to_vec()), 0..20)) {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            let tokens = tokens_of(&format!("SELECT {}", words.join(" ")), |_| {}).unwrap();
            prop_assert_eq!(is_plain(&tokens), true);
            let tokens = tokens_of(&format!("SELECT {} OF", words.join(" ")), |_| {}).unwrap();
            prop_assert_eq!(is_plain(&tokens), false);
        }
    }
}
