//! Scripts of sessions: each line `name: > statement` is sent by the session with that name.

mod support;

use std::error::Error;

use ordain_db::engine::EngineKind;
use ordain_sql::protocol::frontend::Frontend;
use support::{World, told};

struct Runner {
    world: World,
}

impl goldenscript::Runner for Runner {
    type Command = goldenscript::Command;

    fn run(
        &mut self,
        command: &goldenscript::Command,
        context: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        let session = context.prefix.clone().unwrap_or_else(|| "a".to_owned());
        let sent = match command.name.strip_prefix("data ") {
            Some(data) => {
                let mut sent = self.world.send(&session, Frontend::CopyData((data.to_owned() + "\n").into()));
                if data == "\\." {
                    sent.extend(self.world.send(&session, Frontend::CopyDone));
                }
                sent
            }
            None if command.name == "signals" => return Ok(self.world.signals()),
            None => self.world.send(&session, Frontend::Query(command.name.clone())),
        };
        Ok(told(&sent))
    }
}

/// A test for each script, with each engine.
macro_rules! scripts {
    ($($name:ident)*) => {
        $(mod $name {
            use super::*;

            fn run(engine: EngineKind, partitions: u16) {
                let path = concat!("tests/sessions/", stringify!($name));
                goldenscript::run(&mut Runner { world: World::new(engine, partitions) }, path).unwrap();
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

scripts! { aggregates basics blocks calls changes copy cursors definitions dependents expressions foreign_keys functions grouping_sets isolation joins json order paths prepared queries recursion reflection rewrites sequences session_state state statistics subqueries temporary windows }
