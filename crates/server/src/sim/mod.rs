//! `ordain sim`: what the simulator needs of the real world.
//!
//! - [`calibrate`]: measures what the parts of a node's step cost on this machine.
//! - [`options`]: the command line.
//! - [`seeds`]: runs seeds over the cores.
//! - [`steps`]: steps real nodes in one thread and times each step.

pub mod calibrate;
pub mod options;
pub mod seeds;
pub mod steps;
