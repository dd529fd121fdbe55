//! Answers over HTTP/1.1 for those who watch a process: one short request, one short answer, and the connection ends.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::transport::sync::{SpawnError, ThreadGroup};

/// Most connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 16;

/// How long a request may be, in bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// How long a client may take to say what it wants, and to take the answer.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(2);

/// How long the accepting thread rests when the operating system has no more connections to give.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The status: 200 and the like.
    pub status: u16,
    /// The text.
    pub body: String,
}

impl Answer {
    /// An answer that all is well, or that it is not.
    pub fn of(well: bool, body: impl Into<String>) -> Answer {
        Answer { status: if well { 200 } else { 503 }, body: body.into() }
    }
}

/// What answers, by the path that is asked for; `None` if there is nothing under it.
pub type Handler = dyn Fn(&str) -> Option<Answer> + Send + Sync;

/// Listens until it is dropped.
pub struct HttpServer {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
}

impl HttpServer {
    /// Begins to answer on `socket`.
    ///
    /// # Errors
    /// If the socket has no address, or the operating system gives no thread.
    pub fn start(socket: TcpListener, handler: Arc<Handler>) -> io::Result<HttpServer> {
        let address = socket.local_addr()?;
        let closing = Arc::new(AtomicBool::new(false));
        let server = HttpServer { address, closing: Arc::clone(&closing) };
        let accept = move || {
            let threads = ThreadGroup::default();
            loop {
                let accepted = socket.accept();
                if closing.load(Ordering::SeqCst) {
                    return;
                }
                let Ok((stream, _)) = accepted else {
                    std::thread::sleep(EXHAUSTED_PAUSE);
                    continue;
                };
                let handler = Arc::clone(&handler);
                // A client that is gone has no use for an answer.
                let serve = move || drop(answer(&stream, &*handler));
                if let Err(SpawnError::System(error)) =
                    threads.spawn("http".to_owned(), CONNECTIONS_MAX, serve)
                {
                    tracing::warn!(%error, "a request over HTTP was not answered");
                }
            }
        };
        std::thread::Builder::new().name("http-accept".to_owned()).spawn(accept)?;
        Ok(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::SeqCst);
        let mut wake = self.address;
        match wake.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => wake.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => wake.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        // std has no other way to end an `accept`.
        let _ = TcpStream::connect_timeout(&wake, REQUEST_TIME_MAX);
    }
}

/// Answers the request of one connection.
fn answer(stream: &TcpStream, handler: &Handler) -> io::Result<()> {
    let deadline = Instant::now() + REQUEST_TIME_MAX;
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match (&*stream).read(&mut buffer)? {
            0 => return Ok(()),
            read => request.extend_from_slice(&buffer[..read]),
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Answer { status, body } = respond(&String::from_utf8_lossy(line), handler);
    let reason = match status {
        200 => "OK",
        404 => "Not Found",
        405 => "Method Not Allowed",
        _ => "Service Unavailable",
    };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.set_write_timeout(Some(REQUEST_TIME_MAX))?;
    (&*stream).write_all(format!("{head}{body}").as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// The answer to a line of a request.
fn respond(line: &str, handler: &Handler) -> Answer {
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method != "GET" {
        return Answer { status: 405, body: "only GET is answered\n".to_owned() };
    }
    let path = path.split('?').next().unwrap_or_default();
    let missing = || Answer { status: 404, body: "there are /health, /ready and /metrics\n".to_owned() };
    handler(path).unwrap_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_are_answered_by_their_path() {
        let handler = |path: &str| match path {
            "/health" => Some(Answer::of(true, "ok\n")),
            "/ready" => Some(Answer::of(false, "not yet\n")),
            _ => None,
        };
        let server = HttpServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(handler)).unwrap();
        let address = server.address();
        let well = ask(address, "GET /health?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(well.starts_with("HTTP/1.1 200 OK\r\n") && well.ends_with("\r\n\r\nok\n"), "{well}");
        assert!(well.contains("Content-Length: 3\r\n"), "{well}");
        assert!(ask(address, "GET /ready HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "POST /health HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        drop(server);
    }
}
