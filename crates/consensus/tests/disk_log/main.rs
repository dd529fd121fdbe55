//! The log on disk: what a crash may do to it, what it must notice, and its form byte by byte.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod crash;
mod damage;
mod failure;
mod format;
mod script;
mod segments;
