//! A server with data of its own for one client.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use super::bounded;

/// How long a server may take until it lets clients in.
const START: Duration = Duration::from_secs(60);

/// How many lines of its log are shown when a client fails.
const LINES_SHOWN: usize = 40;

/// A server that runs until this is dropped.
pub(super) struct Server {
    process: Child,
    log: PathBuf,
    /// The port for clients.
    pub port: u16,
}

impl Server {
    /// Starts a server with new data below a folder, and waits until it lets clients in.
    pub(super) fn start(executable: &Path, folder: &Path) -> Result<Server, String> {
        let data = folder.join("data");
        if data.exists() {
            std::fs::remove_dir_all(&data).map_err(|error| format!("old data stays: {error}"))?;
        }
        std::fs::create_dir_all(&data).map_err(|error| format!("no folder for data: {error}"))?;
        let [library, sql, http] = free_ports().map_err(|error| format!("no free ports: {error}"))?;
        let log = folder.join("server.log");
        let mut command = Command::new(executable);
        command.args(["start", "--data-dir"]).arg(&data);
        for (option, port) in [("--listen", library), ("--sql-listen", sql), ("--http-listen", http)] {
            command.arg(option).arg(format!("127.0.0.1:{port}"));
        }
        let process = bounded::start(&mut command, &log)
            .map_err(|error| format!("{} did not start: {error}", executable.display()))?;
        let mut server = Server { process, log, port: sql };
        server.wait(http)?;
        Ok(server)
    }

    fn wait(&mut self, http: u16) -> Result<(), String> {
        let started = Instant::now();
        while started.elapsed() < START {
            if is_ready(http) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(format!("the server has ended: {status}\n{}", self.log_tail()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(format!("the server lets nobody in after {} s\n{}", START.as_secs(), self.log_tail()))
    }

    /// The end of what the server said.
    pub(super) fn log_tail(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&log), LINES_SHOWN).to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        bounded::end(&mut self.process);
    }
}

/// Ports that nobody listens on. Another process may take one before the server does; then it does not start, and says why.
fn free_ports() -> std::io::Result<[u16; 3]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let listeners = [listen()?, listen()?, listen()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// Whether the server says over HTTP that clients are served.
fn is_ready(http: u16) -> bool {
    let ask = || -> std::io::Result<bool> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, http));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        Ok(answer.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

/// The last lines of a text.
fn last_lines(text: &str, count: usize) -> &str {
    let ends = text.trim_end().rmatch_indices('\n');
    ends.map(|(at, _)| &text[at + 1..]).nth(count - 1).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last_lines("a\nb\nc", 1), "c");
        assert_eq!(last_lines("a\nb\n", 2), "a\nb\n");
        assert_eq!(last_lines("", 2), "");
    }

    #[test]
    fn ports_differ() {
        let [first, second, third] = free_ports().unwrap();
        assert!(first != second && second != third && first != third && first != 0);
    }
}
