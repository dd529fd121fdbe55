//! The clients: what each needs, and what is run.

/// A client. Its programs are in the folder `clients/NAME`.
pub(super) struct Client {
    /// Its name, and that of its folder.
    pub name: &'static str,
    /// Programs that must be installed.
    pub tools: &'static [&'static str],
    /// The files that say which packages it needs.
    pub packages: &'static [&'static str],
    /// Commands that install the packages below the client's folder. Not repeated until `packages` changes.
    pub install: &'static [&'static str],
    /// What is run, one after the other, with the same database.
    pub steps: &'static [Step],
}

/// A command, in words between single spaces.
pub(super) struct Step {
    /// The command.
    pub command: &'static str,
    /// The file that it reads as its input.
    pub input: Option<&'static str>,
    /// The file with what it must print.
    pub expected: Option<&'static str>,
}

const fn run(command: &'static str) -> Step {
    Step { command, input: None, expected: None }
}

const fn compare(command: &'static str, input: &'static str, expected: &'static str) -> Step {
    Step { command, input: Some(input), expected: Some(expected) }
}

/// All clients, the quickest first.
pub(super) const CLIENTS: [Client; 7] = [
    Client {
        name: "psql",
        tools: &["psql"],
        packages: &[],
        install: &[],
        steps: &[compare("psql -X -a -q", "session.sql", "session.expected")],
    },
    Client {
        name: "pgbench",
        tools: &["pgbench", "psql"],
        packages: &[],
        install: &[],
        steps: &[
            run("pgbench --initialize --quiet"),
            run("pgbench -n -c 1 -j 1 -t 60 --max-tries=100 -M simple -b tpcb-like"),
            run("pgbench -n -c 1 -j 1 -t 60 --max-tries=100 -M extended -b tpcb-like"),
            run("pgbench -n -c 1 -j 1 -t 60 --max-tries=100 -M prepared -b tpcb-like"),
            run("pgbench -n -c 8 -j 2 -t 20 --max-tries=100 -M simple -b tpcb-like"),
            run("pgbench -n -c 8 -j 2 -t 20 --max-tries=100 -M extended -b tpcb-like"),
            run("pgbench -n -c 8 -j 2 -t 20 --max-tries=100 -M prepared -b tpcb-like"),
            run("pgbench -n -c 32 -j 2 -t 10 --max-tries=100 -M simple -b tpcb-like"),
            run("pgbench -n -c 32 -j 2 -t 10 --max-tries=100 -M extended -b tpcb-like"),
            run("pgbench -n -c 32 -j 2 -t 10 --max-tries=100 -M prepared -b tpcb-like"),
            compare("psql -X -q", "balances.sql", "balances.expected"),
            run("pgbench -n -c 1 -j 1 -t 60 --max-tries=100 -M simple -b simple-update"),
            run("pgbench -n -c 1 -j 1 -t 60 --max-tries=100 -M extended -b simple-update"),
            run("pgbench -n -c 1 -j 1 -t 60 --max-tries=100 -M prepared -b simple-update"),
            run("pgbench -n -c 8 -j 2 -t 20 --max-tries=100 -M simple -b simple-update"),
            run("pgbench -n -c 8 -j 2 -t 20 --max-tries=100 -M extended -b simple-update"),
            run("pgbench -n -c 8 -j 2 -t 20 --max-tries=100 -M prepared -b simple-update"),
            run("pgbench -n -c 32 -j 2 -t 10 --max-tries=100 -M simple -b simple-update"),
            run("pgbench -n -c 32 -j 2 -t 10 --max-tries=100 -M extended -b simple-update"),
            run("pgbench -n -c 32 -j 2 -t 10 --max-tries=100 -M prepared -b simple-update"),
            run("pgbench -n -c 1 -j 1 -t 60 -M simple -b select-only"),
            run("pgbench -n -c 1 -j 1 -t 60 -M extended -b select-only"),
            run("pgbench -n -c 1 -j 1 -t 60 -M prepared -b select-only"),
            run("pgbench -n -c 8 -j 2 -t 20 -M simple -b select-only"),
            run("pgbench -n -c 8 -j 2 -t 20 -M extended -b select-only"),
            run("pgbench -n -c 8 -j 2 -t 20 -M prepared -b select-only"),
            run("pgbench -n -c 32 -j 2 -t 10 -M simple -b select-only"),
            run("pgbench -n -c 32 -j 2 -t 10 -M extended -b select-only"),
            run("pgbench -n -c 32 -j 2 -t 10 -M prepared -b select-only"),
            compare("psql -X -q", "history.sql", "history.expected"),
        ],
    },
    Client {
        name: "node",
        tools: &["node", "npm"],
        packages: &["package.json", "package-lock.json"],
        install: &["npm ci --no-audit --no-fund"],
        steps: &[run("node client.js")],
    },
    Client {
        name: "java",
        tools: &["java", "mvn", "sha256sum"],
        packages: &["pom.xml", "SHA256SUMS"],
        install: &[
            "mvn -q -B dependency:copy-dependencies -DoutputDirectory=packages",
            "sha256sum --check --strict SHA256SUMS",
        ],
        steps: &[run("java -Dfile.encoding=UTF-8 -cp packages/* Client.java")],
    },
    Client {
        name: "python",
        tools: &["python3"],
        packages: &["requirements.txt"],
        install: &[
            "python3 -m venv --clear packages",
            "packages/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt",
        ],
        // The first takes its tables away again: it asks which ones there are.
        steps: &[
            run("packages/bin/python sqlalchemy_client.py"),
            run("packages/bin/python psycopg_client.py"),
            run("packages/bin/python asyncpg_client.py"),
        ],
    },
    Client {
        name: "go",
        tools: &["go"],
        packages: &["go.mod", "go.sum"],
        install: &["go mod download"],
        steps: &[run("go run .")],
    },
    Client {
        name: "history",
        tools: &["go"],
        packages: &["go.mod", "go.sum"],
        install: &["go mod download"],
        steps: &[run("go run . -connections 8 -transactions 4000")],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn clients_have_the_files_that_they_name() {
        let folder = crate::workspace_root().join("clients");
        for client in &CLIENTS {
            let steps = client.steps.iter().flat_map(|step| step.input.into_iter().chain(step.expected));
            for file in client.packages.iter().copied().chain(steps) {
                assert!(folder.join(client.name).join(file).is_file(), "clients/{}/{file}", client.name);
            }
        }
    }

    #[test]
    fn each_folder_is_a_client() {
        let folders = std::fs::read_dir(crate::workspace_root().join("clients")).unwrap();
        let folders: BTreeSet<String> =
            folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let names: BTreeSet<String> = CLIENTS.iter().map(|client| client.name.to_owned()).collect();
        assert_eq!(folders, names);
    }

    #[test]
    fn where_psql_is_installed_it_runs() {
        let psql = CLIENTS.iter().find(|client| client.name == "psql").unwrap();
        assert_eq!((psql.tools, psql.install), (&["psql"][..], &[][..]));
    }

    #[test]
    fn packages_are_installed_where_there_are_some() {
        for client in &CLIENTS {
            assert_eq!(client.packages.is_empty(), client.install.is_empty(), "{}", client.name);
            assert!(!client.tools.is_empty() && !client.steps.is_empty(), "{}", client.name);
        }
    }
}
