//! Operators and queries in a row, of which the parser makes a tree that is as deep, and so are the ways through it.
//!
//! What is in brackets begins anew, and so does each branch of a `CASE`, since they are beside one another; what is within one another has a limit
//! of its own. Of a branch it is certain only where `CASE` stands where an expression begins, which the parser takes for nothing else
//! then, and where `WHEN`, `THEN` and `ELSE` follow an operand: whoever calls columns so has them counted.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{SqlError, SqlState};

/// Most operators and keywords in a row, without a comma or brackets around them.
const CHAIN_MAX: usize = 2000;

/// Most of them within one another: brackets around the first operand of each chain make a tree that is as deep as all chains together.
const WITHIN_MAX: usize = 2 * CHAIN_MAX;

/// Most queries that `UNION`, `INTERSECT` and `EXCEPT` combine, without brackets around some of them.
const COMBINED_MAX: usize = 1000;

/// Refuses operators or queries in a row that are too many.
pub(super) fn refuse(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut chains = Chains { level: Level::default(), around: Vec::new(), before: Before::Expression };
    for token in tokens {
        chains.take(&token.token);
        let level = &chains.level;
        let (message, hint) = if level.chain > CHAIN_MAX {
            let message = format!("more than {CHAIN_MAX} operators and keywords in a row");
            (message, "Use IN with a list, or = ANY with an array.")
        } else if level.chain + level.within > WITHIN_MAX {
            let message = format!("more than {WITHIN_MAX} operators and keywords within one another");
            (message, "Use IN with a list, or = ANY with an array.")
        } else if level.combined >= COMBINED_MAX {
            let message = format!("more than {COMBINED_MAX} queries are combined");
            (message, "Use VALUES, or put some of them in brackets.")
        } else {
            continue;
        };
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message).with_hint(hint));
    }
    Ok(())
}

/// What was counted of what lies in the same brackets, or in the same `CASE`.
#[derive(Clone, Copy, Default)]
struct Level {
    /// How many operators and keywords there are since the last comma.
    chain: usize,
    /// How deep the deepest is of what is within these.
    within: usize,
    /// How deep the deepest is of what was before the comma.
    deepest: usize,
    /// How many queries are combined.
    combined: usize,
}

impl Level {
    /// Another part begins, beside the last.
    fn part(&mut self) {
        self.deepest = self.depth();
        (self.chain, self.within) = (0, 0);
    }

    fn depth(&self) -> usize {
        self.deepest.max(self.chain + self.within)
    }
}

/// What is open around a token.
enum Around {
    /// Brackets, with what was counted before them, and whether they are around the name of an operator.
    Brackets(Level, bool),
    /// A `CASE`, with what was counted before it.
    Case(Level),
}

impl Around {
    fn is_case(&mut self) -> bool {
        matches!(self, Around::Case(_))
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
    level: Level,
    around: Vec<Around>,
    before: Before,
}

impl Chains {
    fn take(&mut self, token: &Token) {
        self.before = match token {
            Token::Whitespace(_) => return,
            Token::LParen | Token::LBracket => {
                let is_operator = self.before == Before::Operator;
                self.around.push(Around::Brackets(std::mem::take(&mut self.level), is_operator));
                Before::Expression
            }
            Token::RParen | Token::RBracket => self.close_brackets(),
            Token::Comma => {
                self.level.part();
                Before::Expression
            }
            Token::SemiColon => {
                self.level = Level::default();
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
                self.level.chain += 1;
                Before::Operand
            }
            other => {
                self.level.chain += 1;
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
            match open {
                Around::Brackets(outer, is_operator) => {
                    // An index and a call are operators, too.
                    self.close(outer, 1);
                    return if is_operator { Before::Other } else { Before::Operand };
                }
                Around::Case(outer) => self.close(outer, self.level.chain),
            }
        }
        Before::Operand
    }

    /// Goes on after what was within a level, which counts as so many operators.
    fn close(&mut self, outer: Level, operators: usize) {
        let within = outer.within.max(self.level.depth() + self.level.combined);
        self.level = Level { chain: outer.chain + operators, within, ..outer };
    }

    /// A word that is not in quotes.
    fn word(&mut self, keyword: Keyword) -> Before {
        let is_name = self.before == Before::Name;
        let ends_operand = self.before == Before::Operand;
        match keyword {
            Keyword::NoKeyword => return Before::Operand,
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT => {
                self.level.combined += 1;
                self.level.part();
                return Before::Other;
            }
            Keyword::JOIN => {
                // Only a table was called `case`.
                while let Some(Around::Case(outer)) = self.around.pop_if(Around::is_case) {
                    self.close(outer, self.level.chain);
                }
            }
            Keyword::CASE if self.before == Before::Expression => {
                self.around.push(Around::Case(std::mem::take(&mut self.level)));
                return Before::Expression;
            }
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE
                if ends_operand && self.around.last_mut().is_some_and(Around::is_case) =>
            {
                self.level.part();
                return Before::Expression;
            }
            Keyword::END
                if !is_name && let Some(Around::Case(outer)) = self.around.pop_if(Around::is_case) =>
            {
                // Where it may be a name, what was counted within goes on.
                self.close(outer, if ends_operand { 1 } else { 1 + self.level.chain });
                return if ends_operand { Before::Operand } else { Before::Other };
            }
            _ => {}
        }
        self.level.chain += 1;
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
