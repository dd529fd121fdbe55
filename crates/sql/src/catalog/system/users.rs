//! Tables of users and roles: `pg_roles`, `pg_user` and their like.

use super::super::{Catalog, Definition};
use super::{OWNER, OWNER_NAME, System, number, text, truth};
use crate::types::{Datum, SqlType};

/// A role.
pub(super) struct Role<'c> {
    object: u32,
    pub name: &'c str,
    may_connect: bool,
    has_password: bool,
}

/// All of them, the one first that is there without a definition.
pub(super) fn all(catalog: &Catalog) -> Vec<Role<'_>> {
    let mut roles = vec![Role { object: OWNER, name: OWNER_NAME, may_connect: true, has_password: false }];
    for (_, name, definition) in catalog.iter() {
        let (object, verifier, may_connect) = match definition {
            Definition::User { object, verifier } => (*object, verifier, true),
            Definition::Role { object, verifier } => (*object, verifier, false),
            _ => continue,
        };
        let Some(name) = name.strip_prefix("user ") else { continue };
        let has_password = verifier.is_some();
        if name == OWNER_NAME {
            roles[0].has_password = has_password;
        } else {
            roles.push(Role { object, name, may_connect, has_password });
        }
    }
    roles
}

/// All roles, as `pg_roles` and `pg_authid` have them.
pub(super) fn roles(catalog: &Catalog) -> System {
    let columns = vec![
        ("oid", SqlType::OID),
        ("rolname", SqlType::NAME),
        ("rolsuper", SqlType::BOOL),
        ("rolinherit", SqlType::BOOL),
        ("rolcreaterole", SqlType::BOOL),
        ("rolcreatedb", SqlType::BOOL),
        ("rolcanlogin", SqlType::BOOL),
        ("rolreplication", SqlType::BOOL),
        ("rolconnlimit", SqlType::INT4),
        ("rolbypassrls", SqlType::BOOL),
        ("rolvaliduntil", SqlType::TIMESTAMPTZ),
    ];
    let row = |role: Role<'_>| {
        let mut row = vec![number(role.object), text(role.name)];
        row.extend([true, true, false, false, role.may_connect, false].map(truth));
        row.extend([number(-1), truth(true), Datum::Null]);
        row
    };
    (all(catalog).into_iter().map(row).collect(), columns)
}

/// Those who may connect, as `pg_shadow` and `pg_user` have them. Verifiers are not shown; the latter says that there is something to hide.
pub(super) fn users(catalog: &Catalog, hides: bool) -> System {
    let columns = vec![
        ("usename", SqlType::NAME),
        ("usesysid", SqlType::OID),
        ("usecreatedb", SqlType::BOOL),
        ("usesuper", SqlType::BOOL),
        ("userepl", SqlType::BOOL),
        ("usebypassrls", SqlType::BOOL),
        ("passwd", SqlType::TEXT),
        ("valuntil", SqlType::TIMESTAMPTZ),
        ("useconfig", SqlType::TEXT.array_of()),
    ];
    let row = |role: Role<'_>| {
        let mut row = vec![text(role.name), number(role.object)];
        row.extend([false, true, false, true].map(truth));
        row.extend([
            if hides || role.has_password { text("********") } else { Datum::Null },
            Datum::Null,
            Datum::Null,
        ]);
        row
    };
    (all(catalog).into_iter().filter(|role| role.may_connect).map(row).collect(), columns)
}

/// Those who may not, as `pg_group` has them. Nobody is a member of another role.
pub(super) fn groups(catalog: &Catalog) -> System {
    let columns =
        vec![("groname", SqlType::NAME), ("grosysid", SqlType::OID), ("grolist", SqlType::OID.array_of())];
    let row = |role: Role<'_>| vec![text(role.name), number(role.object), Datum::Array(Vec::new())];
    (all(catalog).into_iter().filter(|role| !role.may_connect).map(row).collect(), columns)
}
