//! Operators and queries in a row, of which the parser makes a tree that is as deep, and so are the ways through it.
//!
//! What is in brackets begins anew, since brackets are nested as deep as the parser lets them be, and so does each branch of a `CASE`: they are
//! beside one another. Of a branch it is certain only where `CASE` stands where an expression begins, which the parser takes for nothing else
//! then, and where `WHEN`, `THEN` and `ELSE` follow an operand: whoever calls columns so has them counted.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{SqlError, SqlState};

/// Most operators and keywords in a row, without a comma or brackets around them.
const CHAIN_MAX: usize = 2000;

/// Most queries that `UNION`, `INTERSECT` and `EXCEPT` combine, without brackets around some of them.
const COMBINED_MAX: usize = 1000;

/// Refuses operators or queries in a row that are too many.
pub(super) fn refuse(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut chains = Chains { chain: 0, combined: 0, around: Vec::new(), before: Before::Expression };
    for token in tokens {
        chains.take(&token.token);
        if chains.chain > CHAIN_MAX {
            let message = format!("more than {CHAIN_MAX} operators and keywords in a row");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .with_hint("Use IN with a list, or = ANY with an array."));
        }
        if chains.combined >= COMBINED_MAX {
            let message = format!("more than {COMBINED_MAX} queries are combined");
            return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
                .with_hint("Use VALUES, or put some of them in brackets."));
        }
    }
    Ok(())
}

/// What is open around a token.
enum Around {
    /// Brackets, with what was counted before them, and whether they are around the name of an operator.
    Brackets { chain: usize, combined: usize, is_operator: bool },
    /// A `CASE`, with what was counted before it.
    Case { chain: usize },
}

impl Around {
    fn is_case(&mut self) -> bool {
        matches!(self, Around::Case { .. })
    }
}

/// What the last token was.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// After it an expression begins, and nothing else.
    Expression,
    /// It ends an operand.
    Operand,
    /// After it comes a name.
    Name,
    /// `OPERATOR`.
    Operator,
    Other,
}

struct Chains {
    /// How many operators and keywords there are since the last comma.
    chain: usize,
    /// How many queries are combined.
    combined: usize,
    around: Vec<Around>,
    before: Before,
}

impl Chains {
    fn take(&mut self, token: &Token) {
        self.before = match token {
            Token::Whitespace(_) => return,
            Token::LParen | Token::LBracket => {
                let is_operator = self.before == Before::Operator;
                // An index and a call are operators, too.
                let (chain, combined) = (self.chain + 1, self.combined);
                self.around.push(Around::Brackets { chain, combined, is_operator });
                (self.chain, self.combined) = (0, 0);
                Before::Expression
            }
            Token::RParen | Token::RBracket => self.close_brackets(),
            Token::Comma => {
                self.chain = 0;
                Before::Expression
            }
            Token::SemiColon => {
                (self.chain, self.combined) = (0, 0);
                self.around.clear();
                Before::Other
            }
            Token::Word(word) if word.quote_style.is_some() => Before::Operand,
            Token::Word(word) => self.word(word.keyword),
            Token::Number(..) | Token::SingleQuotedString(_) => Before::Operand,
            Token::Placeholder(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::UnicodeStringLiteral(_) => {
                self.chain += 1;
                Before::Operand
            }
            other => {
                self.chain += 1;
                match other {
                    Token::Eq
                    | Token::Neq
                    | Token::Lt
                    | Token::LtEq
                    | Token::Gt
                    | Token::GtEq
                    | Token::Plus
                    | Token::Minus
                    | Token::Mul
                    | Token::Div
                    | Token::StringConcat => Before::Expression,
                    Token::Period | Token::DoubleColon | Token::Colon | Token::AtSign => Before::Name,
                    _ => Before::Other,
                }
            }
        };
    }

    fn close_brackets(&mut self) -> Before {
        while let Some(open) = self.around.pop() {
            if let Around::Brackets { chain, combined, is_operator } = open {
                (self.chain, self.combined) = (chain, combined);
                return if is_operator { Before::Other } else { Before::Operand };
            }
        }
        Before::Operand
    }

    /// A word that is not in quotes.
    fn word(&mut self, keyword: Keyword) -> Before {
        let is_name = self.before == Before::Name;
        let ends_operand = self.before == Before::Operand;
        match keyword {
            Keyword::NoKeyword => return Before::Operand,
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => {
                self.combined += 1;
                self.chain = 0;
                return Before::Other;
            }
            Keyword::JOIN => {
                // Only a table was called `case`.
                while let Some(Around::Case { chain }) = self.around.pop_if(Around::is_case) {
                    self.chain += chain;
                }
            }
            Keyword::CASE if self.before == Before::Expression => {
                self.around.push(Around::Case { chain: self.chain });
                self.chain = 0;
                return Before::Expression;
            }
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE
                if ends_operand && self.around.last_mut().is_some_and(Around::is_case) =>
            {
                self.chain = 0;
                return Before::Expression;
            }
            Keyword::END
                if !is_name && let Some(Around::Case { chain }) = self.around.pop_if(Around::is_case) =>
            {
                // Where it may be a name, what was counted within goes on.
                self.chain = chain + 1 + if ends_operand { 0 } else { self.chain };
                return if ends_operand { Before::Operand } else { Before::Other };
            }
            _ => {}
        }
        self.chain += 1;
        match keyword {
            Keyword::SELECT => Before::Expression,
            _ if is_name => Before::Operand,
            Keyword::AS => Before::Name,
            Keyword::OPERATOR => Before::Operator,
            Keyword::AND
            | Keyword::BY
            | Keyword::ELSE
            | Keyword::HAVING
            | Keyword::NOT
            | Keyword::OR
            | Keyword::RETURNING
            | Keyword::THEN
            | Keyword::WHEN
            | Keyword::WHERE => Before::Expression,
            Keyword::CURRENT_DATE
            | Keyword::CURRENT_TIMESTAMP
            | Keyword::DATE
            | Keyword::FALSE
            | Keyword::ID
            | Keyword::KEY
            | Keyword::NAME
            | Keyword::NULL
            | Keyword::STATUS
            | Keyword::TIMESTAMP
            | Keyword::TRUE
            | Keyword::TYPE
            | Keyword::VALUE => Before::Operand,
            _ => Before::Other,
        }
    }
}
