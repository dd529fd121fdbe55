//! Which way to the rows: conditions become keys and ranges.

use super::partial::has_all;
use super::walk;
use crate::plan::{COMPUTED, Expression, Path, TableShape, is_same};
use crate::types::operators::BinaryOperator;
use crate::types::{BaseType, Datum, SqlType};

/// A condition on one column that can tell where rows are.
struct Sight<'e> {
    column: u16,
    operator: BinaryOperator,
    value: &'e Expression,
}

/// Most keys or ranges that the values of several conditions come to together.
const COMBINATIONS_MAX: usize = 1024;

/// What the conditions on a table tell of where its rows are.
struct Knowledge<'e> {
    /// What holds for all of its rows.
    sights: Vec<Sight<'e>>,
    /// Of each of these, one of several holds: what `IN` and `OR` say.
    alternatives: Vec<Vec<Vec<Sight<'e>>>>,
    /// Columns that equal an element of an array which is known when the statement runs.
    arrays: Vec<(u16, &'e Expression)>,
    /// Columns that are not null.
    present: Vec<u16>,
}

/// The leading values of a range.
struct Prefix {
    values: Vec<Expression>,
    /// For each of the conditions with alternatives, which of these the values are of.
    chosen: Vec<Option<usize>>,
}

/// A way to the rows, and how good it is.
struct Candidate {
    path: Path,
    worth: usize,
}

/// Chooses how to read a table whose rows must fulfil all `conditions`, over its own columns. The values of keys and bounds must not
/// depend on the row itself.
pub(super) fn choose(shape: &TableShape, conditions: &[Expression]) -> Path {
    let prefixes: Vec<Expression> =
        conditions.iter().flat_map(|condition| bounds_of_pattern(shape, condition)).collect();
    let spelled = if shape.computed.is_empty() { Vec::new() } else { spelled_out(conditions) };
    let all: Vec<&Expression> = conditions.iter().chain(&prefixes).chain(&spelled).collect();
    let knowledge = Knowledge::of(shape, &all);
    let mut best: Option<Candidate> = None;
    let mut offer = |candidate: Option<Candidate>| {
        let Some(candidate) = candidate else { return };
        if best.as_ref().is_none_or(|best| candidate.worth > best.worth) {
            best = Some(candidate);
        }
    };
    // The key before the indexes: of two ways that are as good, that without look-ups of rows.
    offer(knowledge.candidate(None, &shape.key, true));
    for (number, index) in (0..).zip(&shape.indexes) {
        if has_all(index, &all) {
            let candidate = knowledge.candidate(Some(number), &index.columns, index.unique);
            // Of two that know as much, that with fewer rows.
            let fewer = usize::from(index.predicate.is_some());
            offer(candidate.map(|Candidate { path, worth }| Candidate { path, worth: worth + fewer }));
        }
    }
    best.map_or(Path::All, |best| best.path)
}

impl<'e> Knowledge<'e> {
    fn of(shape: &TableShape, conditions: &[&'e Expression]) -> Knowledge<'e> {
        let mut knowledge = Knowledge {
            sights: Vec::new(),
            alternatives: Vec::new(),
            arrays: Vec::new(),
            present: Vec::new(),
        };
        for condition in conditions {
            see(shape, condition, &mut knowledge.sights);
            knowledge.alternatives.extend(alternatives_of(shape, condition));
            knowledge.arrays.extend(array_of(shape, condition));
            knowledge.present.extend(present_of(shape, condition));
        }
        // A bound of its own says more than one that follows from several conditions.
        for condition in conditions {
            see_common_bounds(shape, condition, &mut knowledge.sights);
        }
        knowledge
    }

    /// The way by a key or an index with these columns, if anything is known of the first.
    fn candidate(&self, index: Option<u16>, columns: &[u16], is_unique: bool) -> Option<Candidate> {
        let chosen = vec![None; self.alternatives.len()];
        let mut prefixes = vec![Prefix { values: Vec::new(), chosen }];
        let mut known = 0;
        for column in columns {
            if let Some(value) = equal_to(*column, &self.sights) {
                prefixes.iter_mut().for_each(|prefix| prefix.values.push(value.clone()));
            } else if let Some(place) = self.alternatives_for(*column, prefixes.len(), &prefixes[0].chosen) {
                prefixes = self.spread(prefixes, *column, place);
            } else {
                break;
            }
            known += 1;
        }
        let next = columns.get(known);
        let array = next.and_then(|next| self.arrays.iter().find(|(column, _)| column == next));
        let bound = |operators| next.and_then(|next| bound_of(*next, &self.sights, operators));
        let lower = bound([BinaryOperator::Greater, BinaryOperator::GreaterOrEqual]);
        let upper = bound([BinaryOperator::Less, BinaryOperator::LessOrEqual]);
        let is_whole = known == columns.len() && !columns.is_empty();
        let mut prefixes: Vec<Vec<Expression>> = prefixes.into_iter().map(|prefix| prefix.values).collect();
        // One row at most for each prefix is best; then the more that is known, and of an array less than of a value.
        let worth = 4 * known
            + 3 * usize::from(array.is_some())
            + usize::from(lower.is_some())
            + usize::from(upper.is_some())
            + if is_whole && is_unique { 1000 } else { 0 }
            + if is_whole && index.is_none() { 1000 } else { 0 };
        let path = if is_whole && index.is_none() {
            Path::Keys(prefixes)
        } else if let Some((_, array)) = array {
            Path::Ranges { index, prefixes, array: Some((*array).clone()) }
        } else if prefixes.len() > 1 {
            Path::Ranges { index, prefixes, array: None }
        } else {
            let not_null = next.is_some_and(|next| self.present.contains(next));
            Path::Range { index, equal: prefixes.pop()?, lower, upper, not_null }
        };
        (worth > 0).then_some(Candidate { path, worth })
    }

    /// The alternatives that each tell the value of a column, if there may be as many ranges.
    fn alternatives_for(&self, column: u16, ranges: usize, chosen: &[Option<usize>]) -> Option<usize> {
        let tells = |sights: &Vec<Sight<'_>>| equal_to(column, sights).is_some();
        let is_fit = |(alternatives, chosen): (&Vec<Vec<Sight<'_>>>, &Option<usize>)| {
            let fits = chosen.is_some() || ranges == 1 || ranges * alternatives.len() <= COMBINATIONS_MAX;
            fits && alternatives.iter().all(tells)
        };
        self.alternatives.iter().zip(chosen).position(is_fit)
    }

    /// Adds the value of a column to each range, of which there are as many as alternatives if none was chosen for them yet.
    fn spread(&self, prefixes: Vec<Prefix>, column: u16, place: usize) -> Vec<Prefix> {
        let mut spread = Vec::new();
        for Prefix { values, chosen } in prefixes {
            let alternatives = &self.alternatives[place];
            let open = chosen[place].map_or(0..alternatives.len(), |chosen| chosen..chosen + 1);
            for alternative in open {
                let (mut values, mut chosen) = (values.clone(), chosen.clone());
                values.extend(equal_to(column, &alternatives[alternative]));
                chosen[place] = Some(alternative);
                spread.push(Prefix { values, chosen });
            }
        }
        spread
    }
}

/// What one of several is known to hold of, if a condition says that and of each of them a value of a column.
fn alternatives_of<'e>(shape: &TableShape, condition: &'e Expression) -> Option<Vec<Vec<Sight<'e>>>> {
    match condition {
        Expression::InList { operand, list, .. } => {
            let column = place_of(shape, operand)?;
            let sight = |value| Sight { column, operator: BinaryOperator::Equal, value };
            let is_known = !list.is_empty() && list.iter().all(is_fixed);
            is_known.then(|| list.iter().map(|value| vec![sight(value)]).collect())
        }
        Expression::Or(branches) if !branches.is_empty() => {
            let sights = branches.iter().map(|branch| {
                let mut sights = Vec::new();
                match branch {
                    Expression::And(all) => all.iter().for_each(|one| see(shape, one, &mut sights)),
                    one => see(shape, one, &mut sights),
                }
                sights.retain(|sight| sight.operator == BinaryOperator::Equal);
                (!sights.is_empty()).then_some(sights)
            });
            sights.collect()
        }
        _ => None,
    }
}

/// A column and the array one of whose elements it must equal, if a condition says that.
fn array_of<'e>(shape: &TableShape, condition: &'e Expression) -> Option<(u16, &'e Expression)> {
    match condition {
        Expression::Quantified { operator: BinaryOperator::Equal, left, array, all: false, .. } => {
            is_fixed(array).then(|| place_of(shape, left).map(|column| (column, &**array)))?
        }
        _ => None,
    }
}

/// The column that a condition says not to be null.
fn present_of(shape: &TableShape, condition: &Expression) -> Option<u16> {
    match condition {
        Expression::IsNull { operand, negated: true } => place_of(shape, operand),
        _ => None,
    }
}

/// Sees the bounds that hold whichever of several conditions does: `(a, b) < ($1, $2)`, which is `a < $1 OR a = $1 AND b < $2`, tells
/// that `a` is not above `$1`.
fn see_common_bounds<'e>(shape: &TableShape, condition: &'e Expression, sights: &mut Vec<Sight<'e>>) {
    let Expression::Or(branches) = condition else { return };
    let mut seen = branches.iter().map(|branch| {
        let mut seen = Vec::new();
        see_all(shape, branch, &mut seen);
        seen
    });
    let Some(first) = seen.next() else { return };
    let others: Vec<Vec<Sight<'e>>> = seen.collect();
    for (strict, weak) in [
        (BinaryOperator::Less, BinaryOperator::LessOrEqual),
        (BinaryOperator::Greater, BinaryOperator::GreaterOrEqual),
    ] {
        let bounds = [BinaryOperator::Equal, strict, weak];
        let is_common = |sight: &&Sight<'_>| {
            let is_same = |other: &Sight<'_>| {
                other.column == sight.column && other.value == sight.value && bounds.contains(&other.operator)
            };
            is_same(sight) && others.iter().all(|other| other.iter().any(is_same))
        };
        let common = first.iter().filter(is_common);
        sights.extend(common.map(|Sight { column, value, .. }| Sight {
            column: *column,
            operator: weak,
            value,
        }));
    }
}

/// Sees all of what must hold together.
fn see_all<'e>(shape: &TableShape, condition: &'e Expression, sights: &mut Vec<Sight<'e>>) {
    match condition {
        Expression::And(all) => all.iter().for_each(|one| see_all(shape, one, sights)),
        one => see(shape, one, sights),
    }
}

/// Takes apart what must hold.
pub(super) fn conjuncts(condition: Expression, into: &mut Vec<Expression>) {
    match condition {
        Expression::And(all) => all.into_iter().for_each(|one| conjuncts(one, into)),
        other => into.push(other),
    }
}

/// The opposite of [`conjuncts`].
pub(super) fn all_of(mut conditions: Vec<Expression>) -> Option<Expression> {
    if conditions.len() > 1 { Some(Expression::And(conditions)) } else { conditions.pop() }
}

fn see<'e>(shape: &TableShape, condition: &'e Expression, sights: &mut Vec<Sight<'e>>) {
    let Expression::Binary { operator, left, right, .. } = condition else { return };
    if let Some(column) = place_of(shape, left)
        && is_fixed(right)
    {
        sights.push(Sight { column, operator: *operator, value: right });
    } else if let Some(column) = place_of(shape, right)
        && is_fixed(left)
        && let Some(operator) = mirrored(*operator)
    {
        sights.push(Sight { column, operator, value: left });
    }
}

/// What follows from a text being `LIKE` a pattern that is written down: that it is between the texts that begin as the pattern does.
fn bounds_of_pattern(shape: &TableShape, condition: &Expression) -> Vec<Expression> {
    let Expression::Binary { operator: BinaryOperator::Like, resolved, left, right } = condition else {
        return Vec::new();
    };
    let (Some(column), Expression::Constant(Datum::Text(pattern))) = (place_of(shape, left), &**right) else {
        return Vec::new();
    };
    let is_plain = shape
        .described(column)
        .is_some_and(|(_, data_type)| data_type.is_text() && data_type.base != BaseType::Char);
    let end = pattern.find(['%', '_', '\\']).unwrap_or(pattern.len());
    let prefix = &pattern[..end];
    if !is_plain || prefix.is_empty() || pattern.contains('\\') {
        return Vec::new();
    }
    let bound = |operator, value: String| {
        let right = Box::new(Expression::Constant(Datum::Text(value)));
        Expression::Binary { operator, resolved: *resolved, left: left.clone(), right }
    };
    if end == pattern.len() {
        return vec![bound(BinaryOperator::Equal, prefix.to_owned())];
    }
    let lower = bound(BinaryOperator::GreaterOrEqual, prefix.to_owned());
    let upper = after_all_with(prefix).map(|after| bound(BinaryOperator::Less, after));
    std::iter::once(lower).chain(upper).collect()
}

/// The first text after all that begin so, by their bytes.
fn after_all_with(prefix: &str) -> Option<String> {
    let mut characters: Vec<char> = prefix.chars().collect();
    while let Some(last) = characters.pop() {
        if let Some(next) = ((last as u32 + 1)..=char::MAX as u32).find_map(char::from_u32) {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

/// Whether a value is the same for all rows of the table, and the same each time it is asked for.
pub(in crate::bind) fn is_fixed(value: &Expression) -> bool {
    !value.reads_row() && !value.is_volatile()
}

/// The column that an expression is, but for casts that keep order and encoding.
pub(super) fn column_of(expression: &Expression) -> Option<u16> {
    match expression {
        Expression::Column(column) => Some(*column),
        Expression::Cast { operand, from, to } if keeps_encoding(*from, *to) => column_of(operand),
        _ => None,
    }
}

/// The same, or the value that the indexes of a table compute.
pub(super) fn place_of(shape: &TableShape, expression: &Expression) -> Option<u16> {
    let computed = |expression: &Expression| {
        let place = shape.computed.iter().position(|computed| is_same(&computed.expression, expression))?;
        Some(COMPUTED + place as u16)
    };
    match expression {
        Expression::Cast { operand, from, to } if keeps_encoding(*from, *to) => {
            place_of(shape, operand).or_else(|| computed(expression))
        }
        other => column_of(other).or_else(|| computed(other)),
    }
}

/// Conditions in which values are named that they have several times, as `BETWEEN` has: with these values written out.
fn spelled_out(conditions: &[Expression]) -> Vec<Expression> {
    let mut spelled = Vec::new();
    for condition in conditions {
        let Expression::Let { values, body } = condition else { continue };
        let mut has_others = false;
        condition.visit(0, &mut |part, _| {
            has_others |= matches!(part, Expression::Let { .. }) && !std::ptr::eq(part, condition);
        });
        if has_others {
            continue;
        }
        let mut body = (**body).clone();
        walk::walk(&mut body, 0, &mut |part, _| {
            if let Expression::Local(number) = part
                && let Some(value) = values.get(usize::from(*number))
            {
                *part = value.clone();
            }
        });
        conjuncts(body, &mut spelled);
    }
    spelled
}

pub(super) fn keeps_encoding(from: SqlType, to: SqlType) -> bool {
    let plain_text = |data_type: SqlType| data_type.is_text() && data_type.base != BaseType::Char;
    let is_wider = |from: SqlType, to: SqlType| (from, to) == (SqlType::CIDR, SqlType::INET);
    !from.array
        && !to.array
        && ((from.is_integer() && to.is_integer())
            || (plain_text(from) && plain_text(to))
            || is_wider(from, to))
}

pub(super) fn mirrored(operator: BinaryOperator) -> Option<BinaryOperator> {
    Some(match operator {
        BinaryOperator::Equal => BinaryOperator::Equal,
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessOrEqual => BinaryOperator::GreaterOrEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterOrEqual => BinaryOperator::LessOrEqual,
        _ => return None,
    })
}

fn equal_to(column: u16, sights: &[Sight<'_>]) -> Option<Expression> {
    let sight =
        sights.iter().find(|sight| sight.column == column && sight.operator == BinaryOperator::Equal)?;
    Some(sight.value.clone())
}

/// A bound of a column's values on one side, and whether it is included.
fn bound_of(
    column: u16,
    sights: &[Sight<'_>],
    [strict, weak]: [BinaryOperator; 2],
) -> Option<(Expression, bool)> {
    let is_bound =
        |sight: &&Sight<'_>| sight.column == column && (sight.operator == strict || sight.operator == weak);
    let sight = sights.iter().find(is_bound)?;
    Some((sight.value.clone(), sight.operator == weak))
}
