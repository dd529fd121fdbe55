//! From the tokens of a file to its [`Contents`].
//!
//! The scanner knows just enough of Rust's grammar: where a function's body begins, where an item ends, how a `use` is
//! nested. Anything else it passes through, looking inside every pair of brackets.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

use super::contents::{Attribute, Contents, Function, Import, MacroCall, ModuleDeclaration, PathUse};

/// Reads the tokens of a file that is the module `module`.
pub(super) fn scan(tokens: TokenStream, module: Vec<String>) -> Contents {
    let mut scanner = Scanner { contents: Contents::default() };
    scanner.walk(&trees(tokens), &Place { module, owners: Vec::new() });
    scanner.contents
}

struct Scanner {
    contents: Contents,
}

/// Where in the file the scanner is.
#[derive(Clone)]
struct Place {
    module: Vec<String>,
    /// Inline modules, types and functions around it: the prefix of a function's name.
    owners: Vec<String>,
}

impl Scanner {
    fn walk(&mut self, tokens: &[TokenTree], place: &Place) {
        let mut at = 0;
        while at < tokens.len() {
            let next = self.step(tokens, at, place);
            assert!(next > at, "the scanner moves forward");
            at = next;
        }
    }

    /// Notes what starts at a token, and returns where to go on.
    fn step(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        let ident = match &tokens[at] {
            TokenTree::Ident(ident) => ident,
            TokenTree::Group(group) => {
                self.walk(&trees(group.stream()), place);
                return at + 1;
            }
            TokenTree::Punct(punct) if punct.as_char() == '#' => return self.attribute(tokens, at, place),
            TokenTree::Punct(_) | TokenTree::Literal(_) => return at + 1,
        };
        match ident.to_string().as_str() {
            // `impl Trait + use<'a>` is a bound and not an import.
            "use" if !is_punct(tokens, at + 1, '<') => self.import(tokens, at, place),
            "mod" => self.module(tokens, at, place),
            "fn" => self.function(tokens, at, place),
            "impl" | "trait" => self.implementation(tokens, at, place),
            keyword @ ("unsafe" | "async" | "await") => {
                self.contents.keywords.push((keyword.into(), line_of(&tokens[at])));
                at + 1
            }
            _ => self.path(tokens, at, place),
        }
    }

    /// `#[…]` or `#![…]`. What it says holds for the item that follows, or for the rest of the brackets around it.
    fn attribute(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        let is_inner = is_punct(tokens, at + 1, '!');
        let bracket = at + 1 + usize::from(is_inner);
        let Some(group) = group_at(tokens, bracket, Delimiter::Bracket) else { return at + 1 };
        let inside = trees(group.stream());
        let (segments, arguments) = path_at(&inside, 0);
        let words = words(&inside[arguments..]);
        if is_test_attribute(&segments, &inside[arguments..]) {
            let end = if is_inner { tokens.len() } else { item_end(tokens, bracket + 1) };
            self.contents.test_lines.push(line_of(&tokens[at])..=last_line_of(&tokens[end - 1]));
        }
        let attribute = Attribute { name: segments.join("::"), words, line: line_of(&tokens[at]) };
        self.contents.attributes.push(attribute);
        self.walk(&inside, place);
        bracket + 1
    }

    fn import(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        let end = (at..tokens.len()).find(|end| is_punct(tokens, *end, ';')).unwrap_or(tokens.len());
        self.import_tree(&tokens[at + 1..end], &[], place);
        end
    }

    /// One or more branches of a `use`, separated by commas, below a common path.
    fn import_tree(&mut self, tokens: &[TokenTree], above: &[String], place: &Place) {
        for branch in tokens.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
        {
            let (mut segments, mut name, mut is_glob) = (above.to_vec(), None, false);
            let mut renamed = false;
            let mut nested = None;
            for token in branch {
                match token {
                    TokenTree::Ident(ident) if *ident == "as" => renamed = true,
                    TokenTree::Ident(ident) if renamed => name = Some(ident.to_string()),
                    TokenTree::Ident(ident) => segments.push(ident.to_string()),
                    TokenTree::Group(group) => nested = Some(group),
                    TokenTree::Punct(punct) => is_glob |= punct.as_char() == '*',
                    TokenTree::Literal(_) => {}
                }
            }
            if let Some(group) = nested {
                self.import_tree(&trees(group.stream()), &segments, place);
                continue;
            }
            let Some(last_token) = branch.last() else { continue };
            // `use a::{self}` brings in `a`.
            if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
                segments.pop();
            }
            let name = name.or_else(|| segments.last().cloned()).filter(|name| name != "_" && !is_glob);
            let line = line_of(last_token);
            self.contents.imports.push(Import {
                module: place.module.clone(),
                segments,
                name,
                is_glob,
                line,
            });
        }
    }

    fn module(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        let Some(name) = ident_at(tokens, at + 1) else { return at + 1 };
        let name = name.to_string();
        let declaration = ModuleDeclaration {
            parent: place.module.clone(),
            name: name.clone(),
            line: line_of(&tokens[at]),
        };
        self.contents.modules.push(declaration);
        let Some(body) = group_at(tokens, at + 2, Delimiter::Brace) else { return at + 2 };
        let mut inside = place.below(&name);
        inside.module.push(name);
        self.walk(&trees(body.stream()), &inside);
        at + 3
    }

    fn function(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        // Without a name it is a type: `fn(u8) -> u8`.
        let Some(name) = ident_at(tokens, at + 1) else { return at + 1 };
        let inside = place.below(&name.to_string());
        let end = header_end(tokens, at + 2);
        self.walk(&tokens[at + 2..end], &inside);
        let Some(body) = group_at(tokens, end, Delimiter::Brace) else { return end };
        let lines = line_of(&tokens[at])..=last_line_of(&tokens[end]);
        self.contents.functions.push(Function { name: inside.owners.join("::"), lines });
        self.walk(&trees(body.stream()), &inside);
        end + 1
    }

    /// `impl … { … }` or `trait … { … }`.
    fn implementation(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        let end = header_end(tokens, at + 1);
        // Without a body it is a type: `impl Iterator<Item = u8>`.
        let Some(body) = group_at(tokens, end, Delimiter::Brace) else { return at + 1 };
        let header = &tokens[at + 1..end];
        self.walk(header, place);
        let is_trait = matches!(&tokens[at], TokenTree::Ident(ident) if *ident == "trait");
        let owner =
            if is_trait { ident_at(header, 0).map(Ident::to_string) } else { implemented_type(header) };
        self.walk(&trees(body.stream()), &place.below(&owner.unwrap_or_else(|| "_".into())));
        end + 1
    }

    /// A path, and the call of a macro if `!` and brackets follow it.
    fn path(&mut self, tokens: &[TokenTree], at: usize, place: &Place) -> usize {
        let line = line_of(&tokens[at]);
        let (segments, end) = path_at(tokens, at);
        if is_punct(tokens, end, '!')
            && let Some(TokenTree::Group(group)) = tokens.get(end + 1)
            && let Some(name) = segments.last()
        {
            let words = words(&trees(group.stream()));
            self.contents.macro_calls.push(MacroCall { name: name.clone(), words, line });
        }
        // In `<T as Trait>::a::b` and `Vec::<u8>::a::b`, `a::b` is the end of a path and not a path.
        let is_tail = at >= 3 && is_separator(tokens, at - 2) && is_punct(tokens, at - 3, '>');
        if segments.len() >= 2 && !is_tail {
            self.contents.paths.push(PathUse { module: place.module.clone(), segments, line });
        }
        end
    }
}

impl Place {
    fn below(&self, owner: &str) -> Place {
        let mut place = self.clone();
        place.owners.push(owner.into());
        place
    }
}

/// Where the header of a function or an implementation that starts at `from` ends: at its body, at `;`, or at the end.
///
/// Braces between angle brackets are constant arguments: `fn f() -> Array<{ N + 1 }> { … }`.
fn header_end(tokens: &[TokenTree], from: usize) -> usize {
    let mut angles = 0;
    for at in from..tokens.len() {
        angles += angle(tokens, at);
        if angles == 0 && (is_punct(tokens, at, ';') || group_at(tokens, at, Delimiter::Brace).is_some()) {
            return at;
        }
    }
    tokens.len()
}

/// The name of the type in `impl<…> Trait for path::Type<…> where …`: the last name that is in no brackets.
fn implemented_type(header: &[TokenTree]) -> Option<String> {
    let mut angles = 0;
    let mut last = None;
    for (at, token) in header.iter().enumerate() {
        angles += angle(header, at);
        match token {
            TokenTree::Ident(ident) if angles == 0 && *ident == "where" => break,
            TokenTree::Ident(ident) if angles == 0 => last = Some(ident.to_string()),
            _ => {}
        }
    }
    last
}

/// How a token changes the depth of angle brackets. The `>` of `->` and `=>` is none.
fn angle(tokens: &[TokenTree], at: usize) -> i32 {
    if is_punct(tokens, at, '<') {
        1
    } else if is_punct(tokens, at, '>')
        && (at == 0 || !(is_punct(tokens, at - 1, '-') || is_punct(tokens, at - 1, '=')))
    {
        -1
    } else {
        0
    }
}

/// Where the item ends that starts at `from`, behind the attribute that was just read: one past its last token.
fn item_end(tokens: &[TokenTree], from: usize) -> usize {
    let mut start = from;
    while is_punct(tokens, start, '#') && group_at(tokens, start + 1, Delimiter::Bracket).is_some() {
        start += 2;
    }
    if matches!(ident_at(tokens, start), Some(ident) if *ident == "pub") {
        start += 1 + usize::from(group_at(tokens, start + 1, Delimiter::Parenthesis).is_some());
    }
    let word = |at| ident_at(tokens, at).map(Ident::to_string).unwrap_or_default();
    let is_function = matches!(word(start + 1).as_str(), "fn" | "unsafe" | "async" | "extern");
    let end = match word(start).as_str() {
        // These may contain braces, and end at a semicolon.
        "use" | "static" | "type" | "let" => position(tokens, start, ';'),
        "const" if !is_function => position(tokens, start, ';'),
        "fn" | "const" | "async" | "unsafe" | "extern" | "mod" | "impl" | "trait" | "struct" | "enum"
        | "union" | "macro_rules" => header_end(tokens, start),
        // A field, a variant, an arm or a statement.
        _ => header_end(tokens, start).min(position(tokens, start, ',')),
    };
    (end + 1).min(tokens.len())
}

/// Where a punctuation mark is, or the end.
fn position(tokens: &[TokenTree], from: usize, mark: char) -> usize {
    (from..tokens.len()).find(|at| is_punct(tokens, *at, mark)).unwrap_or(tokens.len())
}

/// Whether what carries the attribute exists only in tests: `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`.
fn is_test_attribute(segments: &[String], arguments: &[TokenTree]) -> bool {
    if segments.last().is_some_and(|last| last == "test") {
        return true;
    }
    let Some(predicate) = group_at(arguments, 0, Delimiter::Parenthesis) else { return false };
    segments == ["cfg"] && requires_test(&trees(predicate.stream()))
}

fn requires_test(predicate: &[TokenTree]) -> bool {
    match ident_at(predicate, 0) {
        Some(word) if *word == "test" => predicate.len() == 1,
        Some(word) if *word == "all" => {
            let inside = group_at(predicate, 1, Delimiter::Parenthesis).map(|group| trees(group.stream()));
            let is_comma =
                |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
            inside.is_some_and(|inside| inside.split(is_comma).any(requires_test))
        }
        _ => false,
    }
}

/// The segments of the path that starts at a token, and where it ends.
fn path_at(tokens: &[TokenTree], at: usize) -> (Vec<String>, usize) {
    let mut segments = Vec::new();
    let mut end = at;
    while let Some(ident) = ident_at(tokens, end) {
        segments.push(ident.to_string());
        end += 1;
        if !(is_separator(tokens, end) && ident_at(tokens, end + 2).is_some()) {
            break;
        }
        end += 2;
    }
    (segments, end)
}

/// All identifiers, those inside brackets included.
fn words(tokens: &[TokenTree]) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident.to_string()),
            TokenTree::Group(group) => found.extend(words(&trees(group.stream()))),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found
}

fn trees(tokens: TokenStream) -> Vec<TokenTree> {
    tokens.into_iter().collect()
}

fn ident_at(tokens: &[TokenTree], at: usize) -> Option<&Ident> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident),
        _ => None,
    }
}

fn group_at(tokens: &[TokenTree], at: usize, delimiter: Delimiter) -> Option<&Group> {
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

fn is_punct(tokens: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

/// `::`.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens, at, ':') && is_punct(tokens, at + 1, ':')
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

fn last_line_of(token: &TokenTree) -> usize {
    token.span().end().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str) -> Contents {
        scan(text.parse().unwrap(), vec!["crate".into()])
    }

    /// The imports as `line module: path as name`.
    fn check_imports(text: &str, expected: &[&str]) {
        let found = contents(text).imports.into_iter().map(|import| {
            let (module, path) = (import.module.join("::"), import.segments.join("::"));
            let glob = if import.is_glob { "::*" } else { "" };
            format!("{} {module}: {path}{glob} as {}", import.line, import.name.unwrap_or_else(|| "-".into()))
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    /// The functions as `name first-last`.
    fn check_functions(text: &str, expected: &[&str]) {
        let found = contents(text).functions.into_iter();
        let found = found.map(|f| format!("{} {}-{}", f.name, f.lines.start(), f.lines.end()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    fn check_paths(text: &str, expected: &[&str]) {
        let found = contents(text).paths.into_iter().map(|path| path.segments.join("::"));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    fn check_test_lines(text: &str, expected: &[(usize, usize)]) {
        let found = contents(text).test_lines.into_iter().map(|lines| (*lines.start(), *lines.end()));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn imports_are_flattened() {
        check_imports(
            "use a::b;\nuse a::{self as x, c::{D, E as F},\n  g::*};\nmod m { use super::T as _; }\n",
            &[
                "1 crate: a::b as b",
                "2 crate: a as x",
                "2 crate: a::c::D as D",
                "2 crate: a::c::E as F",
                "3 crate: a::g::* as -",
                "4 crate::m: super::T as -",
            ],
        );
        check_imports("fn f<'a>() -> impl Sized + use<'a> { use a::b; }", &["1 crate: a::b as b"]);
    }

    #[test]
    fn paths_are_found_everywhere_but_in_comments_and_strings() {
        check_paths("fn f(x: a::B) -> c::D { e::f() }", &["a::B", "c::D", "e::f"]);
        check_paths("fn f() { assert!(a::b == vec![c::d()]); }", &["a::b", "c::d"]);
        check_paths("macro_rules! m { () => { $crate::a::b() } }", &["crate::a::b"]);
        check_paths("#[derive(a::B)]\nstruct S { x: ::c::D }", &["a::B", "c::D"]);
        check_paths("impl a::T for b::U where V: c::W {}", &["a::T", "b::U", "c::W"]);
        check_paths("fn f() { <X as a::T>::b::c(); Vec::<d::E>::f::g() }", &["a::T", "d::E"]);
        check_paths("/// a::b\n// c::d\nfn f() { \"e::f\"; }", &[]);
    }

    #[test]
    fn functions_have_full_names_and_their_lines() {
        check_functions(
            "/// Docs.\npub fn f(\n  x: u8,\n) -> Array<{ N + 1 }> {\n}\nfn type_(f: fn(u8) -> u8) {}\n",
            &["f 2-5", "type_ 6-6"],
        );
        check_functions(
            "impl<T: A<B>> fmt::Display for c::D<T> where T: E {\n fn f() {}\n}\n",
            &["D::f 2-2"],
        );
        check_functions("impl D {\n fn f() { fn g() {} }\n}\n", &["D::f 2-2", "D::f::g 2-2"]);
        check_functions("trait T<X> {\n fn f();\n fn g() -> impl Fn() -> u8 {}\n}\n", &["T::g 3-3"]);
        check_functions("mod m { impl A for &mut B<C> { fn f() {} } }", &["m::B::f 1-1"]);
    }

    #[test]
    fn test_items_are_known_by_their_attributes() {
        check_test_lines("fn f() {}\n#[cfg(test)]\nmod tests {\n}\nfn g() {}\n", &[(2, 4)]);
        check_test_lines("#[cfg(test)]\nmod golden;\nfn g() {}\n", &[(1, 2)]);
        check_test_lines("#[cfg(test)]\nuse a::{\n  b,\n};\nfn g() {}\n", &[(1, 4)]);
        check_test_lines("#[cfg(all(test, unix))]\n#[inline]\npub(crate) const fn f() {\n}\n", &[(1, 4)]);
        check_test_lines("#[cfg(test)]\nconst X: S = S {\n};\nfn g() {}\n", &[(1, 3)]);
        check_test_lines("struct S {\n  #[cfg(test)]\n  a: u8,\n  b: u8,\n}\n", &[(2, 3)]);
        check_test_lines("#![cfg(test)]\nfn f() {}\nfn g() {}\n", &[(1, 3)]);
        check_test_lines("#[test]\nfn f() {\n}\n", &[(1, 3)]);
        check_test_lines("#[cfg(not(test))]\nfn f() {}\n#[cfg(any(test, a))]\nfn g() {}\n", &[]);
    }

    #[test]
    fn macro_calls_attributes_and_keywords() {
        let contents = contents(
            "#[a::b(c(d))]\nasync fn f() { x.await; e::g!(h, [i]); j != (k) }\nunsafe impl T for U {}",
        );
        assert_eq!(contents.attributes.len(), 1);
        assert_eq!(
            (contents.attributes[0].name.as_str(), contents.attributes[0].words.join(" ")),
            ("a::b", "c d".into())
        );
        assert_eq!(contents.macro_calls.len(), 1);
        assert_eq!(
            (contents.macro_calls[0].name.as_str(), contents.macro_calls[0].words.join(" ")),
            ("g", "h i".into())
        );
        let keywords: Vec<_> = contents.keywords.iter().map(|(word, line)| (word.as_str(), *line)).collect();
        assert_eq!(keywords, [("async", 2), ("await", 2), ("unsafe", 3)]);
    }
}
