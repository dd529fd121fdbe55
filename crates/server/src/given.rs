//! Options of `ordain start` that are given elsewhere than on its command line: in the environment, or in a file.
//!
//! They become part of the command line before that is read, so each has one meaning, wherever it comes from. What is on the command line
//! counts first, then the environment, then the file.

use std::ffi::{OsStr, OsString};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command};

use crate::sql::options::PASSWORD;

/// The command whose options may come from elsewhere.
const COMMAND: &str = "start";

/// What the names of variables begin with.
const PREFIX: &str = "ORDAIN_";

/// What says what is logged.
pub const LOG: &str = "ORDAIN_LOG";

/// Variables that are no options, the last of them read by the tool that breaks disks.
const OTHERS: [&str; 3] = [LOG, PASSWORD, "ORDAIN_KILL_TEST_FAULT"];

/// The option that names the file.
const FILE: &str = "config";

/// A command line, with what was given elsewhere.
#[derive(Debug)]
pub struct Completed {
    /// All of it.
    pub arguments: Vec<OsString>,
    /// The options that came from elsewhere, each with where from.
    pub from_elsewhere: Vec<(String, String)>,
}

/// Adds to a command line what the environment and the file give, if it is of `ordain start`.
///
/// # Errors
/// Names the file or the variable, and says what is wrong with it.
pub fn complete(
    command: &Command,
    arguments: Vec<OsString>,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Completed, String> {
    let as_it_is = |arguments| Ok(Completed { arguments, from_elsewhere: Vec::new() });
    let Some(start) =
        command.find_subcommand(COMMAND).filter(|_| arguments.get(1).is_some_and(|name| name == COMMAND))
    else {
        return as_it_is(arguments);
    };
    let parsed = command.clone().ignore_errors(true).try_get_matches_from(&arguments);
    let Ok(matches) = parsed else { return as_it_is(arguments) };
    let Some(given) = matches.subcommand_matches(COMMAND) else { return as_it_is(arguments) };
    let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    let path = given.get_raw(FILE).and_then(|mut values| values.next()).map(OsStr::to_owned);
    let path = path.or_else(|| environment(&variable(FILE)));
    let file = path.map(|path| read(&path, start)).transpose()?;
    let mut completed = Completed { arguments, from_elsewhere: Vec::new() };
    for option in options(start) {
        let (id, Some(long)) = (option.get_id().as_str(), option.get_long()) else { continue };
        if is_given(id) {
            continue;
        }
        let from_environment = environment(&variable(id)).map(|value| (value, variable(id)));
        let from_file = || {
            let (name, table) = file.as_ref()?;
            Some((text_of(table.get(id)?)?.into(), format!("{id} in {name}")))
        };
        let Some((value, origin)) = from_environment.or_else(from_file) else { continue };
        if let Some(argument) = argument(start, option, long, &value, &origin)? {
            // Behind the command's name: what follows a workload's name is the workload's.
            completed.arguments.insert(2, argument);
            completed.from_elsewhere.push((format!("--{long}"), origin));
        }
    }
    Ok(completed)
}

/// Those of the variables with these names that look like ours and are read by nobody.
pub fn unread<'n>(command: &Command, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let Some(start) = command.find_subcommand(COMMAND) else { return Vec::new() };
    let of_options: Vec<String> = options(start).map(|option| variable(option.get_id().as_str())).collect();
    let is_read = |name: &str| {
        OTHERS.contains(&name) || name == variable(FILE) || of_options.iter().any(|known| known == name)
    };
    names.into_iter().filter(|name| name.starts_with(PREFIX) && !is_read(name)).collect()
}

/// The options that may come from elsewhere.
fn options(start: &Command) -> impl Iterator<Item = &Arg> {
    let is_option = |option: &&Arg| {
        option.get_long().is_some()
            && !option.is_hide_set()
            && !matches!(option.get_id().as_str(), FILE | "help")
    };
    start.get_arguments().filter(is_option)
}

/// The variable of an option.
fn variable(id: &str) -> String {
    format!("{PREFIX}{}", id.to_uppercase())
}

/// Reads the file, and refuses what is no option.
fn read(path: &OsStr, start: &Command) -> Result<(String, toml::Table), String> {
    let name = path.to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).map_err(|error| format!("options file {name}: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("options file {name}: {error}"))?;
    for (key, value) in &table {
        if !options(start).any(|option| option.get_id() == key.as_str()) {
            let known: Vec<&str> = options(start).map(|option| option.get_id().as_str()).collect();
            return Err(format!(
                "options file {name}: there is no option {key}; there are {}",
                known.join(", ")
            ));
        }
        if text_of(value).is_none() {
            return Err(format!("options file {name}: {key}: give a text, a number, true or false"));
        }
    }
    Ok((name, table))
}

/// A value of the file as it would be written on the command line.
fn text_of(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

/// An option with its value, as on the command line; `None` for one that is off.
fn argument(
    start: &Command,
    option: &Arg,
    long: &str,
    value: &OsStr,
    origin: &str,
) -> Result<Option<OsString>, String> {
    if matches!(option.get_action(), ArgAction::SetTrue) {
        return match value.to_str() {
            Some("true" | "1") => Ok(Some(format!("--{long}").into())),
            Some("false" | "0" | "") => Ok(None),
            _ => Err(format!("{origin}: {}: give true or false", value.to_string_lossy())),
        };
    }
    let mut written = OsString::from(format!("--{long}="));
    written.push(value);
    // Alone, so that what is wrong is known to be this.
    let alone = start.clone().try_get_matches_from([OsString::from(COMMAND), written.clone()]);
    match alone {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) => {
            let told = error.to_string();
            // The values that there are may stand in a line of their own; behind them comes how the command is used.
            let lines: Vec<&str> = told.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
            Err(format!("{origin}: {}", lines.join(" ").trim_start_matches("error: ")))
        }
        _ => Ok(Some(written)),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Parser, Subcommand};

    use super::*;
    use crate::start::StartOptions;

    #[derive(Parser)]
    struct Line {
        #[command(subcommand)]
        command: OneCommand,
    }

    #[derive(Subcommand)]
    enum OneCommand {
        Start(Box<StartOptions>),
        Other(Nothing),
    }

    #[derive(Args)]
    struct Nothing {
        #[arg(long)]
        listen: Option<String>,
    }

    fn completed(line: &[&str], environment: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let command = <Line as clap::CommandFactory>::command();
        let find = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        let line = line.iter().map(OsString::from).collect();
        let completed = complete(&command, line, &find)?;
        Ok(completed.arguments.into_iter().map(|argument| argument.into_string().unwrap()).collect())
    }

    /// A file with a text, which is deleted at the end.
    fn file(text: &str) -> (std::path::PathBuf, String) {
        let name = format!("ordain-options-{}-{:p}.toml", std::process::id(), text);
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let shown = path.display().to_string();
        (path, shown)
    }

    #[test]
    fn the_command_line_counts_first_then_the_environment_then_the_file() {
        let (path, shown) =
            file("listen = \"file:1\"\nsql_listen = \"file:2\"\npartitions = 3\nwith_sql = true\n");
        let environment = [("ORDAIN_LISTEN", "environment:1"), ("ORDAIN_SQL_LISTEN", "environment:2")];
        let line = ["ordain", "start", "--listen", "line:1", "--config", shown.as_str()];
        let mut all = completed(&line, &environment).unwrap();
        all.sort();
        let mut right = line.map(str::to_owned).to_vec();
        right.extend(["--sql-listen=environment:2", "--partitions=3", "--with-sql"].map(str::to_owned));
        right.sort();
        assert_eq!(all, right);
        let environment =
            [("ORDAIN_CONFIG", shown.as_str()), ("ORDAIN_WITH_SQL", "false"), ("ORDAIN_DATA_DIR", "d")];
        let all = completed(&["ordain", "start", "bank"], &environment).unwrap();
        assert_eq!(all.last().unwrap(), "bank");
        assert!(
            all.contains(&"--data-dir=d".to_owned()) && !all.contains(&"--with-sql".to_owned()),
            "{all:?}"
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let (path, shown) = file("sql_lisen = \"x\"\n");
        let error = completed(&["ordain", "start", "--config", &shown], &[]).unwrap_err();
        assert!(error.contains(&shown) && error.contains("no option sql_lisen; there are"), "{error}");
        std::fs::remove_file(path).unwrap();
        let (path, shown) = file("sql_connections = 0\n");
        let error = completed(&["ordain", "start", "--config", &shown], &[]).unwrap_err();
        assert!(error.starts_with(&format!("sql_connections in {shown}: invalid value '0'")), "{error}");
        std::fs::remove_file(path).unwrap();
        let error = completed(&["ordain", "start"], &[("ORDAIN_EPOCH_MILLISECONDS", "ten")]).unwrap_err();
        assert!(error.starts_with("ORDAIN_EPOCH_MILLISECONDS: invalid value 'ten'"), "{error}");
        let error = completed(&["ordain", "start"], &[("ORDAIN_LOG_FORMAT", "xml")]).unwrap_err();
        assert!(error.starts_with("ORDAIN_LOG_FORMAT: invalid value 'xml'"), "{error}");
        assert!(error.ends_with("[possible values: text, json]"), "{error}");
        let error = completed(&["ordain", "start"], &[("ORDAIN_WITH_SQL", "maybe")]).unwrap_err();
        assert_eq!(error, "ORDAIN_WITH_SQL: maybe: give true or false");
        let error = completed(&["ordain", "start"], &[("ORDAIN_CONFIG", "/nowhere/at/all")]).unwrap_err();
        assert!(error.contains("/nowhere/at/all"), "{error}");
    }

    #[test]
    fn variables_that_nobody_reads_are_found() {
        let command = <Line as clap::CommandFactory>::command();
        let names = ["ORDAIN_LOG", "ORDAIN_CONFIG", "ORDAIN_SQL_LISTEN", "PATH", "ORDAIN_SQL_LISEN"];
        assert_eq!(unread(&command, names), ["ORDAIN_SQL_LISEN"]);
    }

    #[test]
    fn other_commands_are_left_alone() {
        let line = ["ordain", "other", "--listen", "x"];
        assert_eq!(completed(&line, &[("ORDAIN_LISTEN", "y")]).unwrap(), line);
    }
}
