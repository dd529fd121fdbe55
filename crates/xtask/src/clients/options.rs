//! What `cargo xtask clients` was asked to do.

/// The options.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct Options {
    /// Names of clients; empty for all.
    pub only: Vec<String>,
    /// Whether clients whose tools or packages are missing are left out, and not mistakes.
    pub skip_missing: bool,
    /// Whether the server is the one that the tests were built with, rather than one built by itself: cargo unites the features of all
    /// packages that it builds at once, so that these are two builds.
    pub of_tests: bool,
}

impl Options {
    /// Reads options. The error is what to tell the user.
    pub(super) fn parse(arguments: &[&str], known: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut arguments = arguments.iter().copied();
        while let Some(argument) = arguments.next() {
            match argument.split_once('=').unwrap_or((argument, "")) {
                ("--skip-missing", "") => options.skip_missing = true,
                ("--of-tests", "") => options.of_tests = true,
                ("--only", "") => {
                    let names = arguments.next().ok_or("--only needs names of clients")?;
                    options.add(names, known)?;
                }
                ("--only", names) => options.add(names, known)?,
                _ => {
                    return Err(format!(
                        "unknown option `{argument}`: there are --only, --skip-missing and --of-tests"
                    ));
                }
            }
        }
        Ok(options)
    }

    fn add(&mut self, names: &str, known: &[&str]) -> Result<(), String> {
        for name in names.split(',') {
            if !known.contains(&name) {
                return Err(format!("no client `{name}`: there are {}", known.join(", ")));
            }
            self.only.push(name.to_owned());
        }
        Ok(())
    }

    /// Whether a client is to run.
    pub(super) fn include(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["psql", "node", "go"];

    #[test]
    fn all_clients_run_unless_some_are_named() {
        let all = Options::parse(&[], &KNOWN).unwrap();
        assert!(KNOWN.iter().all(|name| all.include(name)) && !all.skip_missing && !all.of_tests);
        assert!(Options::parse(&["--of-tests"], &KNOWN).unwrap().of_tests);
        for arguments in [&["--only", "go,psql", "--skip-missing"][..], &["--skip-missing", "--only=go,psql"]]
        {
            let some = Options::parse(arguments, &KNOWN).unwrap();
            assert!(some.include("psql") && some.include("go") && !some.include("node") && some.skip_missing);
        }
    }

    #[test]
    fn wrong_options_are_told() {
        for (arguments, words) in [
            (&["--only"][..], "needs names"),
            (&["--only", "perl"], "no client `perl`: there are psql, node, go"),
            (&["--only", ""], "no client ``"),
            (&["--fast"], "unknown option `--fast`"),
            (&["--skip-missing=no"], "unknown option"),
        ] {
            let error = Options::parse(arguments, &KNOWN).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
