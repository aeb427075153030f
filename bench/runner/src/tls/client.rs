//! A browser for measurements: one connection, over TLS or in the clear. Each step of a transaction
//! is a separate function.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use host::Failure;
use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind, StreamOwned};

use super::Channel;

/// Longer than any answer takes under emulation.
const PATIENCE: Duration = Duration::from_secs(60);
/// The name in `Host:` and SNI.
const HOST: &str = "mail.barepost.test";
const HEARD_BYTES: usize = 64 << 10;

/// A connection.
pub(super) struct Client {
    stream: Stream,
    heard: Vec<u8>,
    room: Box<[u8]>,
}

/// The transport.
enum Stream {
    Plain(TcpStream),
    /// TLS. The handshake may not have happened yet.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// A request as bytes, and the expected status of the response.
pub(super) struct Question {
    bytes: Vec<u8>,
    status: &'static str,
}

impl Question {
    /// A file.
    pub(super) fn get(name: &str) -> Question {
        Question {
            bytes: format!("GET /{name} HTTP/1.1\r\nHost: {HOST}\r\n\r\n").into_bytes(),
            status: "200",
        }
    }

    pub(super) fn is_get(&self) -> bool {
        self.status == "200"
    }

    /// A POST of this many bytes to a file. The server reads the whole body and rejects the
    /// request, because a file accepts no POST.
    pub(super) fn post(name: &str, bytes: usize) -> Question {
        let head =
            format!("POST /{name} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {bytes}\r\n\r\n");
        Question { bytes: [head.as_bytes(), &vec![b'x'; bytes]].concat(), status: "405" }
    }
}

impl Client {
    /// Connects. The TLS handshake has not begun yet.
    pub(super) fn connect(
        guest: Ipv4Addr,
        channel: Channel,
        settings: &Arc<ClientConfig>,
    ) -> Result<Client, Failure> {
        let address = SocketAddr::from((guest, if channel == Channel::Tls { 443 } else { 80 }));
        let doing = format!("connecting to {address}");
        let socket = TcpStream::connect_timeout(&address, PATIENCE).map_err(Failure::io(&doing))?;
        socket.set_nodelay(true).map_err(Failure::io(&doing))?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(Failure::io(&doing))?;
        let stream = match channel {
            Channel::Plain => Stream::Plain(socket),
            Channel::Tls => {
                let name = ServerName::try_from(HOST).map_err(Failure::broke)?;
                let tls =
                    ClientConnection::new(Arc::clone(settings), name).map_err(Failure::broke)?;
                Stream::Tls(Box::new(StreamOwned::new(tls, socket)))
            }
        };
        Ok(Client {
            stream,
            heard: Vec::with_capacity(HEARD_BYTES),
            room: vec![0; HEARD_BYTES].into_boxed_slice(),
        })
    }

    /// Performs the handshake, if this is TLS, and returns its kind.
    pub(super) fn shake_hands(&mut self) -> Result<Option<HandshakeKind>, Failure> {
        let Stream::Tls(stream) = &mut self.stream else { return Ok(None) };
        let StreamOwned { conn, sock } = stream.as_mut();
        while conn.is_handshaking() || conn.wants_write() {
            conn.complete_io(sock).map_err(Failure::io("shaking hands"))?;
        }
        Ok(conn.handshake_kind())
    }

    /// Sends a request and waits for the whole response.
    pub(super) fn ask(&mut self, question: &Question) -> Result<(), Failure> {
        self.say(&question.bytes)?;
        self.hear_answer(question)
    }

    pub(super) fn say(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let doing = "asking";
        match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(bytes).map_err(Failure::io(doing)),
            Stream::Tls(stream) => {
                stream.write_all(bytes).map_err(Failure::io(doing))?;
                stream.flush().map_err(Failure::io(doing))
            }
        }
    }

    /// Sends a request without waiting for its response.
    pub(super) fn begin_asking(&mut self, question: &Question) -> Result<(), Failure> {
        self.say(&question.bytes)
    }

    pub(super) fn hear_answer(&mut self, question: &Question) -> Result<(), Failure> {
        self.heard.clear();
        loop {
            if let Some(length) = answer_bytes(&self.heard, question.status)? {
                match self.heard.len().cmp(&length) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return Ok(()),
                    std::cmp::Ordering::Greater => {
                        return Err(Failure::broke("the response is too long"));
                    }
                }
            }
            self.hear()?;
        }
    }

    /// Reads the next bytes and adds them to `heard`.
    fn hear(&mut self) -> Result<(), Failure> {
        let doing = "reading an answer";
        let count = match &mut self.stream {
            Stream::Plain(socket) => socket.read(&mut self.room),
            Stream::Tls(stream) => stream.read(&mut self.room),
        };
        let count = count.map_err(Failure::io(doing))?;
        if count == 0 {
            return Err(Failure::broke("the connection ended in an answer"));
        }
        self.heard.extend_from_slice(self.room.get(..count).unwrap_or_default());
        Ok(())
    }

    /// Reads this many bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<u8>, Failure> {
        while self.heard.len() < count {
            self.hear()?;
        }
        let rest = self.heard.split_off(count);
        Ok(std::mem::replace(&mut self.heard, rest))
    }

    /// Closes the connection, and waits until the server has closed it too.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        let doing = "closing";
        let socket = match &mut self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => {
                stream.conn.send_close_notify();
                while stream.conn.wants_write() {
                    stream.conn.write_tls(&mut stream.sock).map_err(Failure::io(doing))?;
                }
                &mut stream.sock
            }
        };
        socket.shutdown(std::net::Shutdown::Write).map_err(Failure::io(doing))?;
        // Later bytes do not matter. The connection may also end with a reset.
        while socket.read(&mut self.room).is_ok_and(|count| count > 0) {}
        Ok(())
    }
}

/// The length of the response at the start of `heard`, including the header. `None` while the
/// header is incomplete.
fn answer_bytes(heard: &[u8], status: &str) -> Result<Option<usize>, Failure> {
    const END: &[u8] = b"\r\n\r\n";
    let Some(end) = heard.windows(END.len()).position(|window| window == END) else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(heard.get(..end).unwrap_or_default()).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse::<usize>().ok())?
    });
    match length {
        Some(length) if head.starts_with(&format!("HTTP/1.1 {status} ")) => {
            Ok(Some(end + END.len() + length))
        }
        _ => Err(Failure::broke(format_args!("the answer was\n{head}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_has_declared_length_and_expected_status() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        assert_eq!(answer_bytes(answer, "200").unwrap(), Some(answer.len()));
        assert_eq!(answer_bytes(b"HTTP/1.1 200 OK\r\nContent-L", "200").unwrap(), None);
        assert!(answer_bytes(answer, "405").is_err());
        assert!(answer_bytes(b"HTTP/1.1 200 OK\r\n\r\n", "200").is_err());
    }
}
