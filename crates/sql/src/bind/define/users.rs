//! Users: what they are called, and how they prove who they are. All of them may do everything.

use sqlparser::ast::{AlterRoleOperation, CreateRole, Expr, Ident, ObjectName, Password, RoleOption, Value};

use super::super::names::{last_name, name_of};
use super::Draft;
use crate::catalog::{Definition, FIRST_USER, user_definition};
use crate::error::{SqlError, SqlState};
use crate::protocol::scram::{ITERATIONS_DEFAULT, SALT_BYTES, Verifier};

impl Draft<'_> {
    pub(super) fn create_role(&mut self, create: &CreateRole) -> Result<&'static str, SqlError> {
        for name in &create.names {
            let name = last_name(name)?;
            if self.user(&name).is_some() {
                let message = format!("role \"{name}\" already exists");
                if !create.if_not_exists {
                    return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
                }
                self.notices.push(format!("{message}, skipping"));
                continue;
            }
            let verifier = match &create.password {
                Some(password) => self.verifier(password)?,
                None => None,
            };
            let object = self.number();
            self.set("", &user_definition(&name), Some(Definition::User { object, verifier }));
        }
        Ok("CREATE ROLE")
    }

    pub(super) fn alter_role(
        &mut self,
        name: &Ident,
        operation: &AlterRoleOperation,
    ) -> Result<&'static str, SqlError> {
        let name = name_of(name);
        let Some(Definition::User { object, mut verifier }) = self.user(&name) else {
            return Err(undefined(&name));
        };
        match operation {
            AlterRoleOperation::WithOptions { options } => {
                for option in options {
                    if let RoleOption::Password(password) = option {
                        verifier = self.verifier(password)?;
                    }
                }
            }
            AlterRoleOperation::Set { .. } | AlterRoleOperation::Reset { .. } => {}
            other => return Err(SqlError::unsupported(format!("ALTER ROLE {other}"))),
        }
        let object = if object == 0 { self.number() } else { object };
        self.set("", &user_definition(&name), Some(Definition::User { object, verifier }));
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
                self.notices.push(format!("role \"{name}\" does not exist, skipping"));
            } else if name == FIRST_USER || name == self.surroundings.user {
                let message = format!("role \"{name}\" cannot be dropped");
                return Err(SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
            } else {
                self.set("", &user_definition(&name), None);
            }
        }
        Ok("DROP ROLE")
    }

    fn user(&self, name: &str) -> Option<Definition> {
        match self.catalog.get("", &user_definition(name)) {
            None if name == FIRST_USER => Some(Definition::User { object: 0, verifier: None }),
            known => known.cloned(),
        }
    }

    /// What is kept of a password: by it a password can be recognised, and not be found out.
    fn verifier(&self, password: &Password) -> Result<Option<String>, SqlError> {
        let Password::Password(Expr::Value(value)) = password else { return Ok(None) };
        let Value::SingleQuotedString(password) = &value.value else {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "a password is written in quotes"));
        };
        if let Ok(verifier) = Verifier::from_text(password) {
            return Ok(Some(verifier.to_text()));
        }
        let salt = self.random.to_le_bytes();
        let salt = &salt[..SALT_BYTES.min(salt.len())];
        Ok(Some(Verifier::from_password(password, salt, ITERATIONS_DEFAULT).to_text()))
    }
}

fn undefined(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist"))
}
