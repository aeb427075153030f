//! HTTP/2 with one stream at a time (RFC 9113). It can request a file and check that the file
//! arrived whole.

use super::client::Client;
use host::Failure;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The largest window (section 6.9.1).
const WINDOW_MAX: u32 = (1 << 31) - 1;
const WINDOW_AT_FIRST: u32 = 65_535;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// An HTTP/2 connection.
pub(super) struct Two {
    client: Client,
    next_stream: u32,
}

impl Two {
    /// Sends the connection preface. `client` has completed its TLS handshake. The windows are so
    /// large that no update is needed.
    pub(super) fn begin(mut client: Client) -> Result<Two, Failure> {
        let [high, low] = INITIAL_WINDOW_SIZE.to_be_bytes();
        let setting = [&[high, low], WINDOW_MAX.to_be_bytes().as_slice()].concat();
        let wider = (WINDOW_MAX - WINDOW_AT_FIRST).to_be_bytes();
        let words =
            [PREFACE, &frame(SETTINGS, 0, 0, &setting), &frame(WINDOW_UPDATE, 0, 0, &wider)]
                .concat();
        client.say(&words)?;
        Ok(Two { client, next_stream: 1 })
    }

    /// Asks for a file of this many bytes.
    pub(super) fn get(&mut self, name: &str, bytes: usize) -> Result<(), Failure> {
        let stream = self.next_stream;
        self.next_stream += 2;
        let path = format!("/{name}");
        // RFC 7541: GET, https, a path and a host. The path and the host are literals without
        // indexing.
        let block = [
            &[0x82, 0x87, 0x04, path.len() as u8],
            path.as_bytes(),
            &[0x01, HOST.len() as u8],
            HOST.as_bytes(),
        ]
        .concat();
        self.client.say(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &block))?;
        let mut left = bytes;
        loop {
            let (kind, flags, of, length) = self.head()?;
            self.client.take(length)?;
            match kind {
                SETTINGS if flags & ACK == 0 => self.client.say(&frame(SETTINGS, ACK, 0, &[]))?,
                DATA if of == stream => {
                    left = left
                        .checked_sub(length)
                        .ok_or_else(|| Failure::broke("the response is too long"))?;
                }
                HEADERS if of == stream => {}
                SETTINGS | WINDOW_UPDATE => continue,
                other => return Err(Failure::broke(format_args!("a frame of kind {other} came"))),
            }
            if of == stream && flags & END_STREAM != 0 {
                return if left == 0 {
                    Ok(())
                } else {
                    Err(Failure::broke("the page is not whole"))
                };
            }
        }
    }

    pub(super) fn close(self) -> Result<(), Failure> {
        self.client.close()
    }

    /// Reads the header of the next frame: kind, flags, stream and length.
    fn head(&mut self) -> Result<(u8, u8, u32, usize), Failure> {
        let head = self.client.take(HEAD_BYTES)?;
        let &[a, b, c, kind, flags, d, e, f, g] = head.as_slice() else {
            return Err(Failure::broke("a head has nine bytes"));
        };
        Ok((
            kind,
            flags,
            u32::from_be_bytes([d, e, f, g]),
            u32::from_be_bytes([0, a, b, c]) as usize,
        ))
    }
}

const HOST: &str = "mail.barepost.test";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    [&[a, b, c, kind, flags], stream.to_be_bytes().as_slice(), payload].concat()
}
