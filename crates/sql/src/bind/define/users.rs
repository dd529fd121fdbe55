//! Users: what they are called, and how they prove who they are. All of them may do everything.

use sqlparser::ast::{
    AlterRoleOperation, CreateRole, Expr, Ident, ObjectName, Owner, Password, RoleOption, Value,
};

use super::super::names::{last_name, name_of};
use super::Draft;
use crate::catalog::{Definition, FIRST_USER, user_definition};
use crate::error::{SqlError, SqlState};
use crate::protocol::scram::{ITERATIONS_DEFAULT, SALT_BYTES, Verifier};
use crate::session::ALL_RIGHTS;

impl Draft<'_> {
    pub(super) fn create_role(&mut self, create: &CreateRole) -> Result<&'static str, SqlError> {
        check_limits(create.connection_limit.as_ref(), create.valid_until.as_ref())?;
        let flags = [create.superuser, create.create_db, create.create_role, create.bypassrls];
        let groups = [&create.in_role, &create.in_group, &create.role, &create.user, &create.admin];
        if flags.contains(&Some(false)) || groups.iter().any(|group| !group.is_empty()) {
            self.remark(ALL_RIGHTS.to_owned());
        }
        for name in &create.names {
            let name = last_name(name)?;
            if self.user(&name).is_some() {
                let message = format!("role \"{name}\" already exists");
                let error = SqlError::new(SqlState::DUPLICATE_OBJECT, message);
                if !create.if_not_exists {
                    return Err(error);
                }
                self.skip(&error);
                continue;
            }
            let verifier = match &create.password {
                Some(password) => self.verifier(password)?,
                None => None,
            };
            let object = self.number();
            let definition = role(object, verifier, create.login == Some(true));
            self.set("", &user_definition(&name), Some(definition));
        }
        Ok("CREATE ROLE")
    }

    pub(super) fn alter_role(
        &mut self,
        name: &Ident,
        operation: &AlterRoleOperation,
    ) -> Result<&'static str, SqlError> {
        let name = name_of(name);
        let (object, mut verifier, mut may_connect) = match self.user(&name) {
            Some(Definition::User { object, verifier }) => (object, verifier, true),
            Some(Definition::Role { object, verifier }) => (object, verifier, false),
            _ => return Err(undefined(&name)),
        };
        match operation {
            AlterRoleOperation::WithOptions { options } => {
                for option in options {
                    match option {
                        RoleOption::Password(password) => verifier = self.verifier(password)?,
                        RoleOption::Login(login) => may_connect = *login,
                        RoleOption::ConnectionLimit(limit) => check_limits(Some(limit), None)?,
                        RoleOption::ValidUntil(time) => check_limits(None, Some(time))?,
                        RoleOption::SuperUser(false)
                        | RoleOption::CreateDB(false)
                        | RoleOption::CreateRole(false)
                        | RoleOption::BypassRLS(false) => self.remark(ALL_RIGHTS.to_owned()),
                        _ => {}
                    }
                }
            }
            // None is set.
            AlterRoleOperation::Reset { .. } => {}
            AlterRoleOperation::Set { .. } => {
                return Err(SqlError::unsupported("ALTER ROLE SET").with_hint(
                    "Let the client set its parameters when it connects: options=-c name=value.",
                ));
            }
            other => return Err(SqlError::unsupported(format!("ALTER ROLE {other}"))),
        }
        if !may_connect && name == FIRST_USER {
            let message = format!("role \"{name}\" must be able to log in");
            return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
        }
        let object = if object == 0 { self.number() } else { object };
        self.set("", &user_definition(&name), Some(role(object, verifier, may_connect)));
        Ok("ALTER ROLE")
    }

    pub(super) fn drop_roles(
        &mut self,
        names: &[ObjectName],
        if_exists: bool,
    ) -> Result<&'static str, SqlError> {
        for name in names {
            let name = last_name(name)?;
            if self.user(&name).is_none() {
                if !if_exists {
                    return Err(undefined(&name));
                }
                self.remark(format!("role \"{name}\" does not exist, skipping"));
            } else if name == FIRST_USER || name == self.surroundings.user {
                let message = format!("role \"{name}\" cannot be dropped");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            } else {
                self.set("", &user_definition(&name), None);
            }
        }
        Ok("DROP ROLE")
    }

    /// Fails unless there is whom something is to belong to. That changes nothing else: there is one user's worth of rights.
    pub(super) fn check_owner(&self, owner: &Owner) -> Result<(), SqlError> {
        let Owner::Ident(name) = owner else { return Ok(()) };
        let name = name_of(name);
        if self.user(&name).is_some() { Ok(()) } else { Err(undefined(&name)) }
    }

    fn user(&self, name: &str) -> Option<Definition> {
        match self.catalog.get("", &user_definition(name)) {
            None if name == FIRST_USER => Some(Definition::User { object: 0, verifier: None }),
            known => known.cloned(),
        }
    }

    /// What is kept of a password: by it a password can be recognised, and not be found out.
    fn verifier(&mut self, password: &Password) -> Result<Option<String>, SqlError> {
        let Password::Password(Expr::Value(value)) = password else { return Ok(None) };
        let Value::SingleQuotedString(password) = &value.value else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "a password is written in quotes"));
        };
        let known = Verifier::from_text(password);
        if password.is_empty() || known.as_ref().is_ok_and(|known| known.fits("")) {
            self.remark("empty string is not a valid password, clearing password".to_owned());
            return Ok(None);
        }
        if let Ok(verifier) = known {
            return Ok(Some(verifier.to_text()));
        }
        let salt = self.random.to_le_bytes();
        let salt = &salt[..SALT_BYTES.min(salt.len())];
        Ok(Some(Verifier::from_password(password, salt, ITERATIONS_DEFAULT).to_text()))
    }
}

fn role(object: u32, verifier: Option<String>, may_connect: bool) -> Definition {
    if may_connect { Definition::User { object, verifier } } else { Definition::Role { object, verifier } }
}

/// Fails if there are limits, which are not kept.
fn check_limits(connections: Option<&Expr>, valid_until: Option<&Expr>) -> Result<(), SqlError> {
    if connections.is_some_and(|limit| limit.to_string() != "-1") {
        return Err(SqlError::unsupported("CONNECTION LIMIT of a role")
            .with_hint("The server has a limit for all connections together: --sql-connections."));
    }
    if valid_until.is_some_and(|time| !time.to_string().eq_ignore_ascii_case("'infinity'")) {
        return Err(SqlError::unsupported("VALID UNTIL of a role")
            .with_hint("Bar the role when its time has come: ALTER ROLE name NOLOGIN."));
    }
    Ok(())
}

fn undefined(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}
