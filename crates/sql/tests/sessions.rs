//! Scripts of sessions: each line `name: > statement` is sent by the session with that name, `> data ...` is a row for `COPY`, and
//! `> numbers 1 5000` are so many: a number and a text of some length. `keep` keeps the state for reads of the past, `calls
//! 3` puts the database out of reach after three calls, and `calls` back into it. From `places` on it is told where in a statement errors
//! are, and `quit` ends a session as when its connection breaks.

mod support;

use std::error::Error;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, places, told};

struct Runner {
    world: World,
    /// Whether it is told where errors are.
    tells_places: bool,
}

impl goldenscript::Runner for Runner {
    type Command = goldenscript::Command;

    fn run(
        &mut self,
        command: &goldenscript::Command,
        context: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        if command.name == "keep" {
            return Ok(format!("kept {} s\n", self.world.keep()));
        }
        if let Some(calls) = command.name.strip_prefix("calls") {
            self.world.calls_left(if calls.is_empty() { None } else { Some(calls.trim().parse()?) });
            return Ok(String::new());
        }
        let session = context.prefix.clone().unwrap_or_else(|| "a".to_owned());
        let numbers = command.name.strip_prefix("numbers ").and_then(|numbers| numbers.split_once(' '));
        let sent = match (command.name.strip_prefix("data "), numbers) {
            (None, Some((first, last))) => {
                let rows: Vec<u64> = (first.parse()?..=last.parse()?).collect();
                let mut sent = Vec::new();
                for rows in rows.chunks(1000) {
                    let data: String = rows
                        .iter()
                        .map(|row| format!("{row}\tnumber {row}{}\n", " and so on".repeat(4)))
                        .collect();
                    sent.extend(self.world.send(&session, Frontend::CopyData(data.into())));
                }
                sent
            }
            (Some(data), _) => {
                let mut sent = self.world.send(&session, Frontend::CopyData((data.to_owned() + "\n").into()));
                if data == "\\." {
                    sent.extend(self.world.send(&session, Frontend::CopyDone));
                }
                sent
            }
            (None, None) if command.name == "signals" => return Ok(self.world.signals()),
            (None, None) if command.name == "places" => {
                self.tells_places = true;
                return Ok(String::new());
            }
            (None, None) if command.name == "quit" => {
                self.world.kill(&session);
                return Ok(String::new());
            }
            (None, None) => self.world.send(&session, Frontend::Query(command.name.clone())),
        };
        Ok(told(&sent) + &if self.tells_places { places(&sent) } else { String::new() })
    }
}

/// A test for each script, with each engine.
macro_rules! scripts {
    ($($name:ident)*) => {
        $(mod $name {
            use super::*;

            fn run(engine: EngineKind, partitions: u16) {
                let path = concat!("tests/sessions/", stringify!($name));
                let mut runner = Runner { world: World::new(engine, partitions), tells_places: false };
                goldenscript::run(&mut runner, path).unwrap();
            }

            #[test]
            fn calvin() {
                run(EngineKind::Calvin, 1);
            }

            #[test]
            fn calvin_on_three_partitions() {
                run(EngineKind::CalvinVll, 3);
            }

            #[test]
            fn aloha_on_two_partitions() {
                run(EngineKind::Aloha, 2);
            }

            #[test]
            fn serial() {
                run(EngineKind::Serial, 1);
            }
        })*
    };
}

scripts! { advisory aggregates alter_table around backward basics blocks calls changes comments constraints copy cursors definitions definitions_meet dependents describe expressions foreign_keys functions gaps generated grouping_sets indexes intervals isolation joins json kept locks long_values mixed_types networks not_a_number notices options order partial_indexes past paths places postgresql_differences prepared primary_keys pushed queries queries_in_definitions recursion reflection renames rewrites schemas sequences session_state state subqueries system temporary timeouts unfinished unseen view_columns windows zones }
