//! Types of PostgreSQL that are listed, since system tables and clients name them, though no value here has them: numbers of objects are
//! `oid`s, and letters are texts.

/// What `pg_type` says of such a type.
pub(crate) struct Other {
    pub oid: u32,
    pub name: &'static str,
    pub size: i16,
    /// `b` for a type of values, `p` for one that stands for others.
    pub kind: &'static str,
    pub category: &'static str,
    /// The number of the type of its elements, or 0.
    pub element: u32,
    /// The number of the type of arrays of it, or 0.
    pub array: u32,
}

const fn other(
    oid: u32,
    name: &'static str,
    size: i16,
    [kind, category]: [&'static str; 2],
    element: u32,
    array: u32,
) -> Other {
    Other { oid, name, size, kind, category, element, array }
}

/// All of them, but those of arrays.
pub(crate) const OTHERS: &[Other] = &[
    other(18, "char", 1, ["b", "Z"], 0, 1002),
    other(22, "int2vector", -1, ["b", "A"], 21, 1006),
    other(24, "regproc", 4, ["b", "N"], 0, 1008),
    other(27, "tid", 6, ["b", "U"], 0, 1010),
    other(28, "xid", 4, ["b", "U"], 0, 1011),
    other(29, "cid", 4, ["b", "U"], 0, 1012),
    other(30, "oidvector", -1, ["b", "A"], 26, 1013),
    other(2205, "regclass", 4, ["b", "N"], 0, 2210),
    other(2206, "regtype", 4, ["b", "N"], 0, 2211),
    other(2249, "record", -1, ["p", "P"], 0, 2287),
    other(2275, "cstring", -2, ["p", "P"], 0, 1263),
    other(2276, "any", 4, ["p", "P"], 0, 0),
    other(2277, "anyarray", -1, ["p", "P"], 0, 0),
    other(2278, "void", 4, ["p", "P"], 0, 0),
    other(2283, "anyelement", 4, ["p", "P"], 0, 0),
    other(4089, "regnamespace", 4, ["b", "N"], 0, 4090),
    other(4096, "regrole", 4, ["b", "N"], 0, 4097),
    other(5077, "anycompatible", 4, ["p", "P"], 0, 0),
    other(5078, "anycompatiblearray", -1, ["p", "P"], 0, 0),
];

impl Other {
    /// The name as `format_type` prints it.
    pub fn shown(&self) -> String {
        // Without quotes it would be the type of texts that have one character, and the other is a word of its own.
        if matches!(self.name, "char" | "any") { format!("\"{}\"", self.name) } else { self.name.to_owned() }
    }
}

/// How the type with a number is shown, if it is one of these or of arrays of them.
pub(crate) fn shown(oid: u32) -> Option<String> {
    let found = OTHERS.iter().find(|other| oid == other.oid || oid == other.array)?;
    Some(if oid == found.oid { found.shown() } else { format!("{}[]", found.shown()) })
}

/// The number of the type that a name stands for, if it is one of these or of arrays of them.
pub(crate) fn number(name: &str) -> Option<u32> {
    OTHERS.iter().find_map(|other| {
        let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
        match name.strip_prefix('_').or_else(|| name.strip_suffix("[]")) {
            // That of arrays of `char` is one of texts.
            Some(element) if element == other.name && other.array != 0 && element != "char" => {
                Some(other.array)
            }
            _ if name == other.shown() => Some(other.oid),
            _ => None,
        }
    })
}
