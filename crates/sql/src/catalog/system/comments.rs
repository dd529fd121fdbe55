//! Tables of comments.

use super::super::{Catalog, Subject};
use super::{System, number, table_object, text};
use crate::types::{Datum, SqlType};

/// The comments on what is of one database, as `pg_description` has them.
pub(super) fn descriptions(catalog: &Catalog) -> System {
    let columns = vec![
        ("objoid", SqlType::OID),
        ("classoid", SqlType::OID),
        ("objsubid", SqlType::INT4),
        ("description", SqlType::TEXT),
    ];
    let own = catalog.comments().filter(|(subject, _)| !subject.class.is_shared());
    let row = |(subject, comment): (Subject, &str)| {
        vec![number(subject.object), class(subject), number(subject.column), text(comment)]
    };
    (own.map(row).collect(), columns)
}

/// The comments on what is of all databases, as `pg_shdescription` has them.
pub(super) fn shared_descriptions(catalog: &Catalog) -> System {
    let columns = vec![("objoid", SqlType::OID), ("classoid", SqlType::OID), ("description", SqlType::TEXT)];
    let shared = catalog.comments().filter(|(subject, _)| subject.class.is_shared());
    let row =
        |(subject, comment): (Subject, &str)| vec![number(subject.object), class(subject), text(comment)];
    (shared.map(row).collect(), columns)
}

fn class(subject: Subject) -> Datum {
    number(table_object(subject.class.table()).unwrap_or_default())
}
