//! Golden scripts of the sequencing layer, each part driven by itself.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[macro_use]
#[path = "../scripts/mod.rs"]
mod scripts;
mod epochs;
mod sequencing;
mod sessions;
mod tokens;
