//! What the checks need to know of a Cargo.toml.
//!
//! Read by hand and not by a TOML library, because the comments matter: they carry the reason for a dependency.

/// One dependency of a manifest.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Dependency {
    /// The name of the package, also when the manifest gives it another name.
    pub package: String,
    /// Where the entry starts, from 1.
    pub line: usize,
    /// From `[workspace.dependencies]`: where a dependency comes from, and not a dependency of any crate.
    pub of_workspace: bool,
    /// It is given by its folder, so it is a crate of this workspace.
    pub by_path: bool,
    /// The comment after the entry, or on the line before it.
    pub comment: Option<String>,
}

/// The name in `[package]`. The root manifest of a workspace has none.
pub(crate) fn package_name(text: &str) -> Option<String> {
    let mut section = String::new();
    for line in text.lines() {
        let (code, _) = split_comment(line);
        if let Some(header) = header(code) {
            section = header.into();
        } else if section == "package"
            && let Some((key, value)) = code.split_once('=')
            && key.trim() == "name"
        {
            return Some(value.trim().trim_matches(['"', '\'']).into());
        }
    }
    None
}

/// All dependencies of a manifest: of the crate, of its tests, of its build script, of any platform, of the workspace.
pub(crate) fn dependencies(text: &str) -> Vec<Dependency> {
    let mut reader = Reader::default();
    for (line, number) in text.lines().zip(1..) {
        reader.line(line, number);
    }
    reader.found
}

#[derive(Default)]
struct Reader {
    /// The header that the lines are under, such as `dev-dependencies`.
    section: String,
    /// The comment on the line before, if that line was nothing but a comment.
    comment_above: Option<String>,
    /// Brackets and braces that the entry has opened and not yet closed: a value may go over several lines.
    open: i32,
    found: Vec<Dependency>,
}

impl Reader {
    fn line(&mut self, line: &str, number: usize) {
        let (code, comment) = split_comment(line);
        let comment_above = self.comment_above.take();
        if code.is_empty() && self.open == 0 {
            self.comment_above = comment;
        } else if self.open > 0 {
            self.continue_entry(code, comment);
        } else if let Some(header) = header(code) {
            self.section = header.into();
            // `[dependencies.name]`: the header is the entry.
            if let Some((table, name)) = split_table(header) {
                self.start_entry(table, name, "", number, comment.or(comment_above));
            }
        } else if is_dependency_table(&self.section)
            && let Some((key, value)) = code.split_once('=')
        {
            let table = self.section.clone();
            self.start_entry(&table, key, value, number, comment.or(comment_above));
            // `name.workspace = true` is the short form of an inline table.
            if let Some((_, field)) = key.split_once('.') {
                self.field(field.trim(), value);
            }
            self.open = depth(code);
        } else if split_table(&self.section).is_some()
            && let Some((key, value)) = code.split_once('=')
        {
            self.field(key.trim(), value);
        }
    }

    fn start_entry(&mut self, table: &str, key: &str, value: &str, line: usize, comment: Option<String>) {
        let name = key.split('.').next().unwrap_or(key).trim().trim_matches('"');
        let of_workspace = table == "workspace.dependencies";
        self.found.push(Dependency { package: name.into(), line, of_workspace, by_path: false, comment });
        self.fields(value);
    }

    fn continue_entry(&mut self, code: &str, comment: Option<String>) {
        self.fields(code);
        self.open += depth(code);
        if let Some(dependency) = self.found.last_mut() {
            dependency.comment = dependency.comment.take().or(comment);
        }
    }

    /// Notes the fields of an inline table, or of a part of it.
    fn fields(&mut self, value: &str) {
        for part in value.split(['{', ',', '}']) {
            if let Some((key, value)) = part.split_once('=') {
                self.field(key.trim(), value);
            }
        }
    }

    fn field(&mut self, key: &str, value: &str) {
        let Some(dependency) = self.found.last_mut() else { return };
        match key {
            "path" => dependency.by_path = true,
            "package" => dependency.package = value.trim().trim_matches('"').into(),
            _ => {}
        }
    }
}

/// `dependencies`, `dev-dependencies`, `target.'cfg(unix)'.build-dependencies`, `workspace.dependencies`, …
fn is_dependency_table(section: &str) -> bool {
    let last = section.rsplit('.').next().unwrap_or(section);
    matches!(last, "dependencies" | "dev-dependencies" | "build-dependencies")
}

/// Splits `dependencies.name` into the table and the name.
fn split_table(section: &str) -> Option<(&str, &str)> {
    section.rsplit_once('.').filter(|(table, _)| is_dependency_table(table))
}

/// The name inside `[…]`.
fn header(code: &str) -> Option<&str> {
    code.strip_prefix('[')?.strip_suffix(']').map(str::trim)
}

/// Opened less closed brackets outside of strings.
fn depth(code: &str) -> i32 {
    let mut depth = 0;
    for (_, character) in outside_strings(code) {
        match character {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
    }
    depth
}

/// The code and the comment of a line, both trimmed; an empty comment is none.
fn split_comment(line: &str) -> (&str, Option<String>) {
    let Some((at, _)) = outside_strings(line).find(|(_, character)| *character == '#') else {
        return (line.trim(), None);
    };
    let comment = line[at..].trim_matches(['#', ' ', '\t', '\r']);
    (line[..at].trim(), Some(comment.to_string()).filter(|comment| !comment.is_empty()))
}

/// The characters of a line, with their places, that are not inside `"…"` or `'…'`.
fn outside_strings(line: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    line.char_indices().filter(move |(_, character)| match quote {
        None if matches!(character, '"' | '\'') => {
            quote = Some(*character);
            false
        }
        None => true,
        Some(opening) => {
            if *character == opening {
                quote = None;
            }
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dependencies as `line package [workspace] [path] # comment`.
    fn check(text: &str, expected: &[&str]) {
        let found = dependencies(text).into_iter().map(|dependency| {
            let of_workspace = if dependency.of_workspace { " workspace" } else { "" };
            let by_path = if dependency.by_path { " path" } else { "" };
            let comment = dependency.comment.map(|comment| format!(" # {comment}")).unwrap_or_default();
            format!("{} {}{of_workspace}{by_path}{comment}", dependency.line, dependency.package)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn one_line_entries() {
        check("[dependencies]\na = \"1\" # why a\nb.workspace = true\n", &["2 a # why a", "3 b"]);
        check("[dev-dependencies]\na = { path = \"../a\", features = [\"x#y\"] }\n", &["2 a path"]);
        check("[package]\nname = \"x\"\n[lints]\nworkspace = true\n", &[]);
    }

    #[test]
    fn comments_above_and_inside() {
        check("[dependencies]\n# why\na = \"1\"\nb = \"1\"\n", &["3 a # why", "4 b"]);
        check("[dependencies]\n# about the section\n\na = \"1\"\n", &["4 a"]);
        check(
            "[dependencies]\na = { version = \"1\", features = [\n  \"x\",\n] } # why\nb = \"1\"\n",
            &["2 a # why", "5 b"],
        );
    }

    #[test]
    fn tables_of_all_kinds() {
        check("[target.'cfg(unix)'.dependencies]\na = \"1\"\n", &["2 a"]);
        check("[workspace.dependencies]\na = { path = \"crates/a\" }\n", &["2 a workspace path"]);
        check(
            "[dependencies.a] # why\nversion = \"1\"\npath = \"../a\"\n[build-dependencies]\nb = \"1\"\n",
            &["1 a path # why", "5 b"],
        );
        check("[dependencies]\nalias = { package = \"real\", version = \"1\" }\n", &["2 real"]);
    }

    #[test]
    fn the_name_of_the_package() {
        assert_eq!(package_name("[package]\nname = \"x\" # c\n[lib]\nname = \"y\"\n").as_deref(), Some("x"));
        assert_eq!(package_name("[workspace]\nmembers = []\n"), None);
    }
}
