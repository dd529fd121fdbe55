//! A network namespace of Linux for each process, all on one bridge, on which this program and its clients are, too.
//!
//! A direction is cut by a route: what one process sends to another goes into a black hole, below TCP, which sends it again when the
//! cut heals, as late as it does. Nobody is told of it; only who connects anew while its own direction is cut gets an error at once.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use ordain::caller::random_number;

/// The program that changes networks.
const IP: &str = "ip";

/// Where each process listens, in a namespace of its own.
const PORT: u16 = 7_400;

/// The name of the interface in each namespace.
const INTERFACE: &str = "cluster";

/// The last number of this program's address; those of processes begin with 1.
const OWN_ADDRESS: u8 = 254;

/// See the [module](self). Everything goes with this value.
pub(in crate::kill_test) struct Namespaces {
    /// Random, and part of all names.
    name: String,
    /// All but the last number of the addresses: of the networks that are kept for tests of networks (RFC 2544).
    network: [u8; 3],
    processes: usize,
    /// By sender and receiver.
    cuts: BTreeSet<(usize, usize)>,
}

impl Namespaces {
    /// Makes the bridge, and a namespace on it for each process.
    ///
    /// # Errors
    /// When this is not Linux, or the program lacks the rights.
    pub(super) fn create(processes: usize) -> Result<Namespaces, String> {
        let random = random_number().map_err(|error| error.to_string())?;
        let name = format!("ordain{:06x}", random & 0xff_ffff);
        let network = [198, 18 + (random >> 24 & 1) as u8, (random >> 25) as u8];
        let namespaces = Namespaces { name, network, processes, cuts: BTreeSet::new() };
        // What was made by then goes if something cannot be made.
        namespaces.make().map_err(|error| {
            format!("cannot make network namespaces: {error}: be root on Linux, or use --links proxies")
        })?;
        Ok(namespaces)
    }

    fn make(&self) -> Result<(), String> {
        let bridge = &self.name;
        ip(&["link", "add", bridge, "type", "bridge"])?;
        ip(&["address", "add", &self.subnet(OWN_ADDRESS), "dev", bridge])?;
        ip(&["link", "set", bridge, "up"])?;
        for process in 0..self.processes {
            let (inside, port) = (self.namespace(process), format!("{bridge}-{process}"));
            ip(&["netns", "add", &inside])?;
            ip(&["link", "add", &port, "type", "veth", "peer", "name", INTERFACE, "netns", &inside])?;
            ip(&["link", "set", &port, "master", bridge, "up"])?;
            ip(&["-netns", &inside, "address", "add", &self.subnet(last_number(process)), "dev", INTERFACE])?;
            ip(&["-netns", &inside, "link", "set", INTERFACE, "up"])?;
            ip(&["-netns", &inside, "link", "set", "lo", "up"])?;
        }
        Ok(())
    }

    /// Where a process listens.
    pub(super) fn listening(&self, process: usize) -> SocketAddr {
        SocketAddr::from((self.address(last_number(process)), PORT))
    }

    /// What runs a program in the namespace of a process.
    pub(super) fn command(&self, process: usize, program: &Path) -> Command {
        let mut command = Command::new(IP);
        // It becomes the program, without a process of its own.
        command.args(["netns", "exec", &self.namespace(process)]).arg(program);
        command
    }

    /// Drops what one process sends to another, or lets it through.
    ///
    /// # Errors
    /// When the route cannot be changed.
    pub(super) fn set_cut(&mut self, from: usize, to: usize, cut: bool) -> Result<(), String> {
        let changes = if cut { self.cuts.insert((from, to)) } else { self.cuts.remove(&(from, to)) };
        if !changes {
            return Ok(());
        }
        let (inside, receiver) = (self.namespace(from), self.address(last_number(to)).to_string());
        let change = if cut { "add" } else { "delete" };
        ip(&["-netns", &inside, "route", change, "blackhole", &receiver])
            .map_err(|error| format!("cannot cut a link, or mend it: {error}"))
    }

    fn namespace(&self, process: usize) -> String {
        format!("{}-{process}", self.name)
    }

    fn address(&self, last: u8) -> Ipv4Addr {
        let [first, second, third] = self.network;
        Ipv4Addr::new(first, second, third, last)
    }

    /// An address with the length of the network's part.
    fn subnet(&self, last: u8) -> String {
        format!("{}/24", self.address(last))
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // What was not made cannot be removed. The other ends of the links go with their namespaces.
        for process in 0..self.processes {
            let _ = ip(&["netns", "delete", &self.namespace(process)]);
        }
        let _ = ip(&["link", "delete", &self.name]);
    }
}

fn last_number(process: usize) -> u8 {
    process as u8 + 1
}

/// Runs the program `ip`.
fn ip<S: AsRef<OsStr>>(arguments: &[S]) -> Result<(), String> {
    let output = Command::new(IP).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run `{IP}`: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        Ok(())
    } else {
        Err(said.lines().next().unwrap_or("`ip` failed").to_owned())
    }
}
