//! `SET`, `SHOW`, and what a client is told of the server when it connects.

use std::borrow::Cow;

use crate::bind::VERSION_NUMBER;
use crate::error::{SqlError, SqlState};

/// A parameter of the session.
struct Setting {
    name: &'static str,
    /// What it is at first.
    value: &'static str,
    /// Whether the client is told of it.
    reported: bool,
    /// Whether it can be set. One that cannot be is accepted all the same where clients send it as a matter of course.
    rule: Rule,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Takes any value.
    Free,
    /// Stays as it is: other values are accepted and mean nothing.
    Fixed,
    /// The same, of a limit of time that ends nothing: the client is told so.
    WithoutEffect,
    /// Cannot be set.
    Constant,
}

const fn setting(name: &'static str, value: &'static str, reported: bool, rule: Rule) -> Setting {
    Setting { name, value, reported, rule }
}

/// The parameters, by their names in lower case. What a planner is told by them changes nothing here.
const SETTINGS: &[Setting] = &[
    setting("application_name", "", true, Rule::Free),
    setting("as_of", "", false, Rule::Free),
    setting("bytea_output", "hex", false, Rule::Fixed),
    setting("check_function_bodies", "on", false, Rule::Fixed),
    setting("client_encoding", "UTF8", true, Rule::Fixed),
    setting("client_min_messages", "notice", false, Rule::Free),
    setting("datestyle", "ISO, MDY", true, Rule::Fixed),
    setting("default_table_access_method", "heap", false, Rule::Fixed),
    setting("default_tablespace", "", false, Rule::Fixed),
    setting("default_transaction_deferrable", "off", false, Rule::Fixed),
    setting("default_transaction_isolation", "serializable", false, Rule::Fixed),
    setting("default_transaction_read_only", "off", true, Rule::Free),
    setting("enable_bitmapscan", "on", false, Rule::Free),
    setting("enable_hashagg", "on", false, Rule::Free),
    setting("enable_hashjoin", "on", false, Rule::Free),
    setting("enable_indexonlyscan", "on", false, Rule::Free),
    setting("enable_indexscan", "on", false, Rule::Free),
    setting("enable_material", "on", false, Rule::Free),
    setting("enable_mergejoin", "on", false, Rule::Free),
    setting("enable_nestloop", "on", false, Rule::Free),
    setting("enable_seqscan", "on", false, Rule::Free),
    setting("enable_sort", "on", false, Rule::Free),
    setting("escape_string_warning", "on", false, Rule::Fixed),
    setting("extra_float_digits", "1", false, Rule::Free),
    setting("idle_in_transaction_session_timeout", "0", false, Rule::WithoutEffect),
    setting("in_hot_standby", "off", true, Rule::Constant),
    setting("integer_datetimes", "on", true, Rule::Constant),
    setting("intervalstyle", "postgres", true, Rule::Fixed),
    setting("is_superuser", "on", true, Rule::Constant),
    setting("jit", "off", false, Rule::Fixed),
    setting("lock_timeout", "0", false, Rule::WithoutEffect),
    setting("maintenance_work_mem", "64MB", false, Rule::Free),
    setting("max_identifier_length", "63", false, Rule::Constant),
    setting("max_parallel_workers_per_gather", "0", false, Rule::Free),
    setting("max_prepared_transactions", "0", false, Rule::Constant),
    setting("min_parallel_table_scan_size", "8MB", false, Rule::Free),
    setting("parallel_setup_cost", "1000", false, Rule::Free),
    setting("parallel_tuple_cost", "0.1", false, Rule::Free),
    setting("random_page_cost", "4", false, Rule::Free),
    setting("row_security", "on", false, Rule::Fixed),
    setting("search_path", "public", false, Rule::Free),
    setting("seq_page_cost", "1", false, Rule::Free),
    setting("server_encoding", "UTF8", true, Rule::Constant),
    setting("server_version", "15.0", true, Rule::Constant),
    setting("server_version_num", VERSION_NUMBER, false, Rule::Constant),
    setting("session_authorization", "ordain", true, Rule::Fixed),
    setting("standard_conforming_strings", "on", true, Rule::Fixed),
    setting("statement_timeout", "0", false, Rule::WithoutEffect),
    setting("synchronize_seqscans", "on", false, Rule::Fixed),
    setting("timezone", "UTC", true, Rule::Fixed),
    setting("transaction_deferrable", "off", false, Rule::Fixed),
    setting("transaction_isolation", "serializable", false, Rule::Fixed),
    setting("transaction_read_only", "off", false, Rule::Fixed),
    setting("work_mem", "4MB", false, Rule::Free),
    setting("xmloption", "content", false, Rule::Fixed),
];

/// PostgreSQL's spelling of names that are reported with capitals.
fn reported_name(name: &str) -> &str {
    match name {
        "datestyle" => "DateStyle",
        "intervalstyle" => "IntervalStyle",
        "timezone" => "TimeZone",
        other => other,
    }
}

/// The parameters of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    changed: Vec<(String, String)>,
}

impl Settings {
    /// The value of a parameter.
    pub(super) fn get(&self, name: &str) -> Result<&str, SqlError> {
        let name = canonical(name);
        if let Some((_, value)) = self.changed.iter().find(|(known, _)| *known == name) {
            return Ok(value);
        }
        SETTINGS
            .iter()
            .find(|setting| setting.name == name)
            .map(|setting| setting.value)
            .ok_or_else(|| unknown(&name))
    }

    /// Sets a parameter; whether the client is to be told.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<bool, SqlError> {
        let name = canonical(name);
        let known = SETTINGS.iter().find(|setting| setting.name == name);
        let value = &*accepted(&name, value)?;
        match known.map(|setting| setting.rule) {
            Some(Rule::Fixed | Rule::WithoutEffect) => return Ok(false),
            Some(Rule::Constant) => {
                let message = format!("parameter \"{name}\" cannot be changed");
                return Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
            }
            // Names with a dot are for whoever uses them.
            None if !name.contains('.') => return Err(unknown(&name)),
            Some(Rule::Free) | None => {}
        }
        let is_full = self.changed.len() >= SETTINGS_MAX;
        match self.changed.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => value.clone_into(known),
            None if !is_full => self.changed.push((name, value.to_owned())),
            None => {
                let message = format!("more than {SETTINGS_MAX} parameters of one session");
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
        }
        Ok(known.is_some_and(|setting| setting.reported))
    }

    /// Gives a parameter its first value; all of them without a name.
    pub(super) fn reset(&mut self, name: Option<&str>) {
        let name = name.map(canonical);
        self.changed.retain(|(known, _)| name.as_ref().is_some_and(|name| name != known));
    }

    /// The parameters that a client is told of, as it knows them.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&str, &str)> {
        SETTINGS
            .iter()
            .filter(|setting| setting.reported)
            .map(|setting| (reported_name(setting.name), self.get(setting.name).unwrap_or(setting.value)))
    }

    /// All parameters, in order of their names.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        SETTINGS.iter().map(|setting| (setting.name, self.get(setting.name).unwrap_or(setting.value)))
    }
}

/// The value that a parameter gets. Forms of values in which nothing is sent or read here are refused, rather than taken for others.
fn accepted<'v>(name: &str, value: &'v str) -> Result<Cow<'v, str>, SqlError> {
    let lower = value.to_ascii_lowercase();
    let is_known = match name {
        "client_encoding" => {
            let letters: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
            matches!(letters.as_str(), "utf8" | "unicode" | "sqlascii")
        }
        "bytea_output" => lower == "hex",
        "datestyle" => !["sql", "postgres", "german"].iter().any(|style| lower.contains(style)),
        "intervalstyle" => lower == "postgres",
        "timezone" if !is_utc(&lower) => {
            let message = format!("the time zone \"{value}\"");
            return Err(SqlError::unsupported(message)
                .with_hint("Times are in UTC: convert them in the client, or add an interval."));
        }
        "standard_conforming_strings" => truth(&lower) == Some(true),
        "default_transaction_read_only" => {
            let invalid = || {
                let message = format!("parameter \"{name}\" requires a Boolean value");
                SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
            };
            return Ok(Cow::Borrowed(if truth(&lower).ok_or_else(invalid)? { "on" } else { "off" }));
        }
        _ => true,
    };
    if is_known {
        return Ok(Cow::Borrowed(value));
    }
    Err(SqlError::unsupported(format!("the value \"{value}\" of parameter \"{name}\"")))
}

/// Whether a value of a parameter asks for something that is not done.
pub(super) fn is_without_effect(name: &str, value: &str) -> bool {
    let name = canonical(name);
    let of = |setting: &Setting| setting.name == name && setting.rule == Rule::WithoutEffect;
    value != "0" && SETTINGS.iter().any(of)
}

/// Whether the name of a zone, in lower case, is one of UTC's.
fn is_utc(name: &str) -> bool {
    let name = name.strip_prefix("etc/").unwrap_or(name);
    matches!(name, "utc" | "gmt" | "uct" | "z" | "zulu" | "universal" | "greenwich" | "local" | "default")
        || name.trim_start_matches(['+', '-']).trim_end_matches(":00").chars().all(|digit| digit == '0')
            && name.contains('0')
}

/// What a parameter that is on or off is set to.
pub(super) fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Most parameters of one session that have been set.
const SETTINGS_MAX: usize = 256;

fn canonical(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "time zone" => "timezone".to_owned(),
        "transaction isolation level" => "transaction_isolation".to_owned(),
        _ => name,
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}
