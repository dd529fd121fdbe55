//! The network between the processes, which can be cut.

mod namespaces;
mod proxies;

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;

use self::namespaces::Namespaces;
use self::proxies::Proxies;

/// What is between the processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Links {
    /// Proxies of this program: nothing needs rights, bytes can be late, and connections can be reset.
    Proxies,
    /// Each process has a network namespace of Linux, and packets are dropped: the operating system's own cuts. Needs the rights of
    /// root, and the program `ip`.
    Namespaces,
}

impl Links {
    /// Whether what goes over them can be late.
    pub(super) fn can_be_slow(self) -> bool {
        self == Links::Proxies
    }
}

/// See the [module](self).
pub(super) enum Network {
    Proxies(Proxies),
    Namespaces(Namespaces),
}

impl Network {
    /// A network of so many processes; nothing is cut.
    ///
    /// # Errors
    /// Says what the operating system does not allow.
    pub(super) fn start(links: Links, processes: usize) -> Result<Network, String> {
        Ok(match links {
            Links::Proxies => Network::Proxies(Proxies::start(processes)?),
            Links::Namespaces => Network::Namespaces(Namespaces::create(processes)?),
        })
    }

    /// Where a process listens, and clients reach it.
    pub(super) fn listening(&self, process: usize) -> SocketAddr {
        match self {
            Network::Proxies(proxies) => proxies.listening(process),
            Network::Namespaces(namespaces) => namespaces.listening(process),
        }
    }

    /// Where a process reaches another.
    pub(super) fn address(&self, from: usize, to: usize) -> SocketAddr {
        match self {
            Network::Proxies(proxies) => proxies.address(from, to),
            Network::Namespaces(namespaces) => namespaces.listening(to),
        }
    }

    /// What runs a program at the place of a process; its arguments are to be added.
    pub(super) fn command(&self, process: usize, program: &Path) -> Command {
        match self {
            Network::Proxies(_) => Command::new(program),
            Network::Namespaces(namespaces) => namespaces.command(process, program),
        }
    }

    /// Keeps back what one process sends to another, or lets it through.
    ///
    /// # Errors
    /// When the operating system does not.
    pub(super) fn set_cut(&mut self, from: usize, to: usize, cut: bool) -> Result<(), String> {
        match self {
            Network::Proxies(proxies) => {
                proxies.set_cut(from, to, cut);
                Ok(())
            }
            Network::Namespaces(namespaces) => namespaces.set_cut(from, to, cut),
        }
    }

    /// Delays what one process sends to another, where [`Links::can_be_slow`].
    pub(super) fn set_delay(&self, from: usize, to: usize, delay: Duration) {
        if let Network::Proxies(proxies) = self {
            proxies.set_delay(from, to, delay);
        }
    }

    /// Resets all connections between two processes, if this program has them in its hands.
    pub(super) fn reset(&self, one: usize, other: usize) {
        if let Network::Proxies(proxies) = self {
            proxies.reset(one, other);
        }
    }
}
