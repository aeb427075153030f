//! A browser for measurements: one connection over TLS, one request at a time, and cookies.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use host::Failure;
use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

/// Longer than any answer takes under emulation, and under load.
const PATIENCE: Duration = Duration::from_secs(600);
/// The host in the requests.
const HOST: &str = "mail.barepost.test";
const HEAD_LINES_MAX: usize = 64;
const BODY_BYTES_MAX: u64 = 4 << 20;

/// A browser.
pub(super) struct Browser {
    address: SocketAddr,
    settings: Arc<ClientConfig>,
    cookies: BTreeMap<String, String>,
    connection: BufReader<StreamOwned<ClientConnection, TcpStream>>,
}

/// A request and the expected response.
#[derive(Clone, Debug)]
pub(super) struct Question {
    method: &'static str,
    target: String,
    /// Header lines besides the usual ones.
    fields: String,
    body: Vec<u8>,
    status: u16,
    /// A text that the response body must contain.
    text: &'static str,
}

/// A response.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) location: String,
    pub(super) body: String,
}

impl Question {
    pub(super) fn get(target: impl Into<String>, text: &'static str) -> Question {
        let fields = String::new();
        Question {
            method: "GET",
            target: target.into(),
            fields,
            body: Vec::new(),
            status: 200,
            text,
        }
    }

    /// A form, as a browser sends it.
    pub(super) fn form(target: impl Into<String>, fields: &[(&str, &str)]) -> Question {
        let body: String =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Question::post(target, "application/x-www-form-urlencoded", body.into_bytes())
    }

    /// A form with a file, as a browser sends it.
    pub(super) fn form_with_file(
        target: impl Into<String>,
        fields: &[(&str, &str)],
        (name, file): (&str, &[u8]),
    ) -> Question {
        const BOUNDARY: &str = "----WebKitFormBoundaryMeasured";
        let mut body = String::new();
        for (name, value) in fields {
            body.push_str(&format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            ));
        }
        body.push_str(&format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"plan.bin\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        ));
        let body = [body.as_bytes(), file, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
        Question::post(target, &format!("multipart/form-data; boundary={BOUNDARY}"), body)
    }

    fn post(target: impl Into<String>, media_type: &str, body: Vec<u8>) -> Question {
        let fields = format!("Content-Type: {media_type}\r\nContent-Length: {}\r\n", body.len());
        Question { method: "POST", target: target.into(), fields, body, status: 200, text: "" }
    }

    pub(super) fn with_field(mut self, name: &str, value: &str) -> Question {
        self.fields.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(super) fn expecting(self, status: u16, text: &'static str) -> Question {
        Question { status, text, ..self }
    }
}

impl Browser {
    /// A connected browser without cookies.
    pub(super) fn open(
        address: SocketAddr,
        settings: &Arc<ClientConfig>,
    ) -> Result<Browser, Failure> {
        let connection = connect(address, settings)?;
        Ok(Browser {
            address,
            settings: Arc::clone(settings),
            cookies: BTreeMap::new(),
            connection,
        })
    }

    /// Opens another connection with the same cookies.
    pub(super) fn another(&self) -> Result<Browser, Failure> {
        let connection = connect(self.address, &self.settings)?;
        Ok(Browser {
            address: self.address,
            settings: Arc::clone(&self.settings),
            cookies: self.cookies.clone(),
            connection,
        })
    }

    /// Sends a request and waits for the whole response. Errors: the response is not the expected
    /// one.
    pub(super) fn ask(&mut self, question: &Question) -> Result<Answer, Failure> {
        self.ask_and_note(question, &mut || {})
    }

    /// Sends the requests one after another. Returns their total time.
    pub(super) fn ask_all(&mut self, questions: &[Question]) -> Result<Duration, Failure> {
        let began = Instant::now();
        for question in questions {
            self.ask(question)?;
        }
        Ok(began.elapsed())
    }

    /// Like [`Browser::ask`], and calls a function as soon as the response's first byte arrives.
    pub(super) fn ask_and_note(
        &mut self,
        question: &Question,
        first_byte_arrived: &mut dyn FnMut(),
    ) -> Result<Answer, Failure> {
        self.say(question).map_err(Failure::io("asking"))?;
        let doing = format!("hearing the answer to {} {}", question.method, question.target);
        self.connection.fill_buf().map_err(Failure::io(&doing))?;
        first_byte_arrived();
        let (status, answer) = self.hear().map_err(Failure::io(&doing))?;
        if status == question.status && answer.body.contains(question.text) {
            return Ok(answer);
        }
        let body: String = answer.body.chars().take(2000).collect();
        Err(Failure::broke(format_args!("{doing}: it was {status} with\n{body}")))
    }

    fn say(&mut self, question: &Question) -> std::io::Result<()> {
        let Question { method, target, fields, body, .. } = question;
        let cookies: Vec<String> =
            self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookies = if cookies.is_empty() {
            String::new()
        } else {
            format!("Cookie: {}\r\n", cookies.join("; "))
        };
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {HOST}\r\n{cookies}{fields}\r\n");
        let stream = self.connection.get_mut();
        stream.write_all(&[head.as_bytes(), body].concat())?;
        stream.flush()
    }

    fn hear(&mut self) -> std::io::Result<(u16, Answer)> {
        let first = self.line()?;
        let status =
            first.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        let (mut location, mut length, mut is_chunked) = (String::new(), 0, false);
        for _ in 0..HEAD_LINES_MAX {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "location" => location = value.to_string(),
                "content-length" => length = value.parse().unwrap_or_default(),
                "transfer-encoding" => is_chunked = true,
                "set-cookie" => self.keep(value),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            self.hear_chunks(&mut body)?;
        } else {
            self.hear_bytes(length, &mut body)?;
        }
        Ok((status, Answer { location, body: String::from_utf8_lossy(&body).into_owned() }))
    }

    fn hear_chunks(&mut self, body: &mut Vec<u8>) -> std::io::Result<()> {
        loop {
            let length = u64::from_str_radix(&self.line()?, 16).unwrap_or(0);
            self.hear_bytes(length, body)?;
            self.line()?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn hear_bytes(&mut self, count: u64, body: &mut Vec<u8>) -> std::io::Result<()> {
        let heard = self.connection.by_ref().take(count.min(BODY_BYTES_MAX)).read_to_end(body)?;
        if heard as u64 == count { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Reads a line, without its line end.
    fn line(&mut self) -> std::io::Result<String> {
        let mut line = Vec::new();
        self.connection.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\r\n") {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_string())
    }

    /// Stores a cookie, or deletes it if its value is `-del-`, which Roundcube sends for that.
    fn keep(&mut self, cookie: &str) {
        let pair = cookie.split(';').next().unwrap_or_default();
        let Some((name, value)) = pair.split_once('=') else { return };
        if value == "-del-" {
            self.cookies.remove(name);
        } else {
            self.cookies.insert(name.into(), value.into());
        }
    }
}

fn connect(
    address: SocketAddr,
    settings: &Arc<ClientConfig>,
) -> Result<BufReader<StreamOwned<ClientConnection, TcpStream>>, Failure> {
    let doing = format!("connecting to {address}");
    let socket = TcpStream::connect_timeout(&address, PATIENCE).map_err(Failure::io(&doing))?;
    socket.set_nodelay(true).map_err(Failure::io(&doing))?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(Failure::io(&doing))?;
    let name = ServerName::try_from(HOST).map_err(Failure::broke)?;
    let tls = ClientConnection::new(Arc::clone(settings), name).map_err(Failure::broke)?;
    let mut stream = StreamOwned::new(tls, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(Failure::io(&doing))?;
    }
    Ok(BufReader::with_capacity(64 << 10, stream))
}
