//! A minimal mail client for measurements. It sends one command at a time and waits for its reply.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use host::Failure;

/// Longer than any reply takes under emulation.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a service with a line-based protocol.
pub(super) struct Client {
    connection: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Client {
    /// Connects, and reads the greeting.
    pub(super) fn connect(address: SocketAddr, greeting: &str) -> Result<Client, Failure> {
        let connect = || {
            let connection = TcpStream::connect_timeout(&address, PATIENCE)?;
            connection.set_nodelay(true)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            Ok(connection)
        };
        let connection = connect().map_err(Failure::io(format_args!("connecting to {address}")))?;
        let mut client = Client { connection: BufReader::new(connection), line: Vec::new() };
        client.expect(greeting)?;
        Ok(client)
    }

    /// Sends `command`, which includes its line end, and reads a reply that starts with `reply`. An
    /// SMTP reply may have several lines.
    pub(super) fn command(&mut self, command: &[u8], reply: &str) -> Result<(), Failure> {
        self.connection.get_mut().write_all(command).map_err(Failure::io("sending a command"))?;
        self.expect(reply)
    }

    /// Sends `command`, which includes its line end. Reads a POP3 reply that ends with a line of
    /// one dot. Returns the size of the lines between the first line and the dot, in bytes.
    pub(super) fn fetch(&mut self, command: &[u8]) -> Result<usize, Failure> {
        self.command(command, "+OK")?;
        let mut bytes = 0;
        loop {
            self.read_line()?;
            if self.line == b".\r\n" {
                return Ok(bytes);
            }
            bytes += self.line.len();
        }
    }

    fn expect(&mut self, start: &str) -> Result<(), Failure> {
        loop {
            self.read_line()?;
            if !self.line.starts_with(start.as_bytes()) {
                let line = String::from_utf8_lossy(&self.line);
                return Err(Failure::broke(format_args!(
                    "expected {start}, but the answer was {}",
                    line.trim_end()
                )));
            }
            let is_continued = start != "+OK" && self.line.get(3) == Some(&b'-');
            if !is_continued {
                return Ok(());
            }
        }
    }

    fn read_line(&mut self) -> Result<(), Failure> {
        self.line.clear();
        self.connection
            .read_until(b'\n', &mut self.line)
            .map_err(Failure::io("reading a reply"))?;
        if self.line.ends_with(b"\n") {
            Ok(())
        } else {
            Err(Failure::broke("the connection ended in a reply"))
        }
    }
}

/// A message of `size` bytes, including the header. The line with the dot that ends the message
/// follows, and is not counted in `size`.
pub(super) fn message(size: usize) -> Vec<u8> {
    let mut text =
        b"From: bench@client.test\r\nTo: ada@barepost.test\r\nSubject: measured\r\n\r\n".to_vec();
    const LINE: &[u8] =
        b"The quick brown fox jumps over the lazy dog, and then it rests a while.\r\n";
    while text.len() + LINE.len() <= size {
        text.extend_from_slice(LINE);
    }
    let rest = size.saturating_sub(text.len());
    text.extend(std::iter::repeat_n(b'x', rest.saturating_sub(2)));
    text.extend_from_slice(b"\r\n.\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_message_has_its_size() {
        for size in [512, 1024, 1025, 4096] {
            assert_eq!(message(size).len(), size + b".\r\n".len());
        }
    }

    #[test]
    fn multiline_replies_are_read_whole_and_wrong_ones_reported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut connection, _) = listener.accept().unwrap();
            connection
                .write_all(
                    b"220 hello\r\n250-a\r\n250-b\r\n250 c\r\n+OK\r\nab\r\n..\r\n.\r\n550 no\r\n",
                )
                .unwrap();
            std::io::copy(&mut connection, &mut std::io::sink()).unwrap();
        });
        let mut client = Client::connect(address, "220").unwrap();
        client.command(b"EHLO a\r\n", "250").unwrap();
        assert_eq!(client.fetch(b"RETR 1\r\n").unwrap(), 8);
        assert!(client.command(b"RCPT\r\n", "250").unwrap_err().to_string().contains("550 no"));
    }
}
