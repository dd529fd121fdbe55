//! Forms of definitions that the parser does not know.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::SqlError;

/// Writes `REINDEX INDEX name` as `VACUUM REINDEX name`, and `REINDEX TABLE name` as `VACUUM REINDEX name BOOST`, which the parser knows;
/// leaves out `CONCURRENTLY`, as which an index is always made and dropped.
pub(super) fn spell_out(tokens: &mut Vec<TokenWithSpan>) -> Result<(), SqlError> {
    let keyword = |token: &Token| match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let mut words: Vec<Keyword> = Vec::new();
    let mut spelled = Vec::with_capacity(tokens.len());
    let mut is_table = false;
    for mut token in std::mem::take(tokens) {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::SemiColon | Token::EOF => {
                words.clear();
                if std::mem::take(&mut is_table) {
                    spelled.push(TokenWithSpan { token: Token::make_keyword("BOOST"), span: token.span });
                }
            }
            other => {
                let word = keyword(other);
                match words.as_slice() {
                    [] if word == Keyword::REINDEX => token.token = Token::make_keyword("VACUUM"),
                    [Keyword::REINDEX] => {
                        is_table = word == Keyword::TABLE;
                        if !is_table && word != Keyword::INDEX {
                            return Err(SqlError::unsupported(format!("REINDEX {}", token.token)));
                        }
                        token.token = Token::make_keyword("REINDEX");
                    }
                    [Keyword::REINDEX, Keyword::INDEX | Keyword::TABLE] | [Keyword::DROP, Keyword::INDEX]
                        if word == Keyword::CONCURRENTLY =>
                    {
                        continue;
                    }
                    _ => {}
                }
                words.push(word);
            }
        }
        spelled.push(token);
    }
    if let Some(last) = spelled.last().filter(|_| is_table) {
        let span = last.span;
        spelled.push(TokenWithSpan { token: Token::make_keyword("BOOST"), span });
    }
    *tokens = spelled;
    Ok(())
}
