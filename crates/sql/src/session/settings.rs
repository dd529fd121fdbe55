//! `SET`, `SHOW`, and what a client is told of the server when it connects.

use std::borrow::Cow;

use super::setting_table::{Kind, LEAST_TOLD, Rule, SETTINGS, Setting};
use super::setting_values::{check_date_style, check_float_digits, checked, in_base_unit, milliseconds};
use crate::bind::names::names_in;
use crate::error::{SqlError, SqlState};
use crate::protocol::backend::NoticeSeverity;
use crate::types::{Datum, Unfit, Zone};

/// How urgent notices may be, the least first.
const LEVELS: [&str; 9] =
    ["debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"];

/// The parameters of a session.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// The values that the client gave when it connected, which a reset goes back to.
    first: Values,
    now: Changes,
    limits: TimeLimits,
}

/// The limits of time that a session sets itself, in microseconds; `None` is for no limit. They are looked at with every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct TimeLimits {
    /// Of a statement.
    pub statement: Option<u64>,
    /// Of a client that says nothing outside of a block.
    pub idle: Option<u64>,
    /// Of a client that says nothing in a block.
    pub idle_in_block: Option<u64>,
}

/// Names in lower case and values.
type Values = Vec<(String, String)>;

/// What has been changed; a transaction that fails takes it back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Changes {
    session: Values,
    /// Until the transaction ends.
    local: Values,
}

fn find<'v>(values: &'v Values, name: &str) -> Option<&'v str> {
    values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

impl Settings {
    /// The value of a parameter.
    pub(super) fn get(&self, name: &str) -> Result<&str, SqlError> {
        let name = canonical(name);
        let changed = [&self.now.local, &self.now.session, &self.first];
        if let Some(value) = changed.into_iter().find_map(|values| find(values, &name)) {
            return Ok(value);
        }
        Setting::find(&name).map(|setting| setting.value).ok_or_else(|| unknown(&name))
    }

    /// Sets a parameter, `local`ly until the end of the transaction.
    pub(super) fn set(&mut self, name: &str, value: &str, local: bool) -> Result<(), SqlError> {
        let name = canonical(name);
        let known = Setting::find(&name);
        let value = &*accepted(&name, value)?;
        match known.map(|setting| setting.rule) {
            Some(Rule::Fixed) => return Ok(()),
            Some(Rule::Constant) => {
                let message = format!("parameter \"{name}\" cannot be changed");
                return Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
            }
            // Names with a dot are for whoever uses them.
            None if !name.contains('.') => return Err(unknown(&name)),
            Some(Rule::Free) | None => {}
        }
        if !local {
            self.now.local.retain(|(known, _)| *known != name);
        }
        let values = if local { &mut self.now.local } else { &mut self.now.session };
        let is_full = values.len() >= SETTINGS_MAX;
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => value.clone_into(known),
            None if !is_full => values.push((name.into_owned(), value.to_owned())),
            None => {
                let message = format!("more than {SETTINGS_MAX} parameters of one session");
                return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
            }
        }
        self.read_limits();
        Ok(())
    }

    /// Whether the client is told of notices of this urgency.
    pub(super) fn tells_of(&self, severity: NoticeSeverity) -> bool {
        let least = self.get(LEAST_TOLD).unwrap_or_default();
        let least = LEVELS.iter().position(|level| *level == least);
        let name = severity.name().to_ascii_lowercase();
        // What is only for a search for mistakes is of the last of these levels.
        let own = LEVELS.iter().rposition(|level| level.starts_with(&name));
        // What was asked for is told whatever the level.
        own.is_none() || own >= least
    }

    /// Makes what has been set so far the values that a reset goes back to.
    pub(super) fn begin(&mut self) {
        self.first = std::mem::take(&mut self.now).session;
    }

    /// What has been changed, for [`take_back`](Settings::take_back).
    pub(super) fn changes(&self) -> Changes {
        self.now.clone()
    }

    /// Goes back to what had been changed before.
    pub(super) fn take_back(&mut self, before: Changes) {
        self.now = before;
        self.read_limits();
    }

    /// Whether something was set for the transaction.
    pub(super) fn has_local(&self) -> bool {
        !self.now.local.is_empty()
    }

    /// Ends what was set for the transaction.
    pub(super) fn end_local(&mut self) {
        self.now.local.clear();
        self.read_limits();
    }

    /// The limits of time that are set now.
    pub(super) fn limits(&self) -> TimeLimits {
        self.limits
    }

    /// Whether intervals are written as ISO 8601 has them.
    pub(super) fn has_iso_intervals(&self) -> bool {
        self.get("intervalstyle").is_ok_and(|style| style == "iso_8601")
    }

    fn read_limits(&mut self) {
        let microseconds = |name| {
            let milliseconds = milliseconds(name, self.get(name).ok()?).ok()?;
            u64::try_from(milliseconds).ok().filter(|time| *time > 0).map(|time| time * 1_000)
        };
        self.limits = TimeLimits {
            statement: microseconds("statement_timeout"),
            idle: microseconds("idle_session_timeout"),
            idle_in_block: microseconds("idle_in_transaction_session_timeout"),
        };
    }

    /// The time zone.
    pub(super) fn zone(&self) -> Zone {
        // It was found when it was set.
        self.get("timezone").ok().and_then(Zone::named).unwrap_or_default()
    }

    /// What a parameter goes back to when it is reset.
    pub(super) fn first(&self, name: &str) -> Result<&str, SqlError> {
        let name = canonical(name);
        let known = Setting::find(&name).map(|setting| setting.value);
        find(&self.first, &name).or(known).ok_or_else(|| unknown(&name))
    }

    /// Gives a parameter its first value; all of them without a name.
    pub(super) fn reset(&mut self, name: Option<&str>) {
        let name = name.map(canonical);
        for values in [&mut self.now.session, &mut self.now.local] {
            values.retain(|(known, _)| name.as_ref().is_some_and(|name| name != known));
        }
        self.read_limits();
    }

    /// The parameters that a client is told of, as it knows them.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&str, &str)> {
        SETTINGS
            .iter()
            .filter(|setting| setting.is_reported())
            .map(|setting| (setting.spelled(), self.get(setting.name).unwrap_or(setting.value)))
    }

    /// All parameters, in order of their names.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        SETTINGS.iter().map(|setting| (setting.spelled(), self.get(setting.name).unwrap_or(setting.value)))
    }

    /// The rows of `pg_settings`.
    pub(super) fn rows(&self) -> Vec<Vec<Datum>> {
        let text = |text: &str| Datum::Text(text.to_owned());
        let row = |setting: &Setting| {
            let value = self.get(setting.name).unwrap_or(setting.value);
            let source = match value == setting.value {
                true => "default",
                false if find(&self.first, setting.name) == Some(value) => "client",
                false => "session",
            };
            let (unit, vartype) = match setting.kind {
                Kind::Boolean => (Datum::Null, "bool"),
                Kind::Number if setting.value.contains('.') => (Datum::Null, "real"),
                Kind::Number => (Datum::Null, "integer"),
                Kind::Time => (text("ms"), "integer"),
                Kind::Memory(1) => (text("kB"), "integer"),
                Kind::Memory(unit) => (Datum::Text(format!("{unit}kB")), "integer"),
                Kind::Word(_) => (Datum::Null, "enum"),
                Kind::Text => (Datum::Null, "string"),
            };
            let words = match setting.kind {
                Kind::Word(words) => Datum::Array(words.iter().map(|word| text(word)).collect()),
                _ => Datum::Null,
            };
            let context = if setting.rule == Rule::Constant { "internal" } else { "user" };
            let [now, first, reset] =
                [value, setting.value, self.first(setting.name).unwrap_or(setting.value)]
                    .map(|value| Datum::Text(in_base_unit(setting, value)));
            let mut row = vec![text(setting.spelled()), now, unit, Datum::Null, Datum::Null, Datum::Null];
            row.extend([text(context), text(vartype), text(source), Datum::Null, Datum::Null, words]);
            row.extend([first, reset, Datum::Null, Datum::Null, Datum::Bool(false)]);
            row
        };
        SETTINGS.iter().map(row).collect()
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
        "datestyle" => check_date_style(value).map(|()| true)?,
        "extra_float_digits" => check_float_digits(value).map(|()| true)?,
        "intervalstyle" if matches!(lower.as_str(), "postgres" | "iso_8601") => return Ok(Cow::Owned(lower)),
        "intervalstyle" => false,
        LEAST_TOLD if LEVELS.contains(&lower.as_str()) => return Ok(Cow::Owned(lower)),
        LEAST_TOLD if lower == "debug" => return Ok(Cow::Borrowed("debug2")),
        LEAST_TOLD => {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            let hint = format!("Available values: {}.", LEVELS.join(", "));
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_hint(hint));
        }
        "session_replication_role" => lower == "origin",
        "search_path" if !value.trim().is_empty() && names_in(value, ',').is_none() => {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            let detail = "List syntax is invalid.";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).with_detail(detail));
        }
        "standard_conforming_strings" => truth(&lower) == Some(true),
        "timezone" => return zone_name(value).map(Cow::Owned),
        _ => match checked(name, value) {
            Some(value) => return value,
            None => true,
        },
    };
    if is_known {
        return Ok(Cow::Borrowed(value));
    }
    Err(SqlError::unsupported(format!("the value \"{value}\" of parameter \"{name}\"")))
}

/// The name of the time zone that a value means, as PostgreSQL shows it.
fn zone_name(value: &str) -> Result<String, SqlError> {
    let found = Zone::of_setting(value).map(|zone| match zone {
        // Of one that is written as POSIX has it, the name is what was written.
        Zone::Fixed(_) if Zone::named(value) == Some(zone) => value.to_ascii_uppercase(),
        _ => zone.name().into_owned(),
    });
    found.map_err(|problem| {
        let message = format!("invalid value for parameter \"TimeZone\": \"{value}\"");
        let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
        match problem {
            Unfit::Unknown => error,
            Unfit::Range => error.with_detail("UTC timezone offset is out of range."),
            Unfit::Months => error.with_detail("Cannot specify months in time zone interval."),
            Unfit::Days => error.with_detail("Cannot specify days in time zone interval."),
        }
    })
}

/// The parameters that a text of options sets, as clients give them when they connect: `-c name=value`, `-cname=value` or
/// `--name=value`, with a backslash before a blank that is part of one.
///
/// # Errors
/// When there is another option.
pub(super) fn options_of(text: &str) -> Result<Values, SqlError> {
    let mut words = vec![String::new()];
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, words.last_mut()) {
            ('\\', Some(word)) => word.extend(characters.next()),
            (blank, _) if blank.is_whitespace() => words.push(String::new()),
            (other, Some(word)) => word.push(other),
            (_, None) => {}
        }
    }
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    let mut values = Values::new();
    while let Some(word) = words.next() {
        let assignment = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(rest), _) => Some(rest.to_owned()),
            (None, Some("")) => words.next(),
            (None, rest) => rest.map(str::to_owned),
        };
        let parts = assignment.as_deref().and_then(|assignment| assignment.split_once('='));
        let (name, value) = parts.ok_or_else(|| {
            let message = format!("invalid command-line argument for server process: {word}");
            SqlError::new(SqlState::SYNTAX_ERROR, message).with_hint("Give options as -c name=value.")
        })?;
        values.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(values)
}

/// What a parameter that is on or off is set to.
pub(crate) fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Most parameters of one session that have been set.
const SETTINGS_MAX: usize = 256;

fn canonical(name: &str) -> Cow<'_, str> {
    let name = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    };
    match &*name {
        "time zone" => "timezone".into(),
        "transaction isolation level" => "transaction_isolation".into(),
        _ => name,
    }
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}
