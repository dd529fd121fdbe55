//! The form in which SQL keeps what it writes down.

/// The version of the form in which plans, statements and definitions are kept: raised whenever one of their types changes, what an ordered
/// transaction may do, or what functions give, since a log is run again. A test has the form (`tests/kept_forms.rs`).
pub const FORM: u8 = 11;

/// Why something that is kept in another form cannot be used.
pub fn other_form(form: u8) -> String {
    format!(
        "it has form {form} of what SQL keeps, and this release knows {FORM}: use the release that wrote it"
    )
}
