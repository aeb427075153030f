//! Flows: bytes through one connection, and the goodput of those that arrived in time.

use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use barepost::services::{POP3, SMTP};
use host::Failure;
use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};

use super::FLOW_BUDGET;
use super::room::THERE;
use crate::client::message;

/// The ports of the reference server.
const SINK: u16 = 1025;
const SOURCE: u16 = 1110;

/// The size of a chunk. The receiver acknowledges each chunk.
const CHUNK_BYTES: usize = 32 << 10;
/// The time to connect, read the greeting and log in over the worst wire.
const PATIENCE: Duration = Duration::from_secs(60);

/// The direction of the bytes, seen from the machine at the end `there` of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    In,
    Out,
}

impl fmt::Display for Way {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Way::In => "in",
            Way::Out => "out",
        })
    }
}

type Connection = BufReader<TcpStream>;

/// A flow with an established connection, ready to begin. It returns its goodput in Mbit/s.
pub(super) type Flow = Box<dyn FnOnce() -> Result<f64, Failure> + Send>;

/// The user of the flow with this number. Each flow needs its own user, because a maildrop is open
/// to one session at a time.
pub(super) fn user(place: usize) -> String {
    format!("ada{place}@barepost.test")
}

/// Sends a message to each of the first `users` in chunks, all in one transaction. The machine
/// acknowledges each chunk.
pub(super) fn deliver_to_machine(users: usize, bytes: usize) -> Result<Flow, Failure> {
    let mut connection = connect(SMTP.port)?;
    expect(&mut connection, "220")?;
    say(&mut connection, "EHLO bench.test\r\n", "250 ")?;
    say(&mut connection, "MAIL FROM:<bench@client.test>\r\n", "250 ")?;
    for place in 0..users {
        say(&mut connection, &format!("RCPT TO:<{}>\r\n", user(place)), "250 ")?;
    }
    let mut text = message(bytes);
    text.truncate(bytes);
    let chunks = text.chunks(CHUNK_BYTES).enumerate();
    let framed: Vec<u8> = chunks
        .flat_map(|(index, chunk)| {
            let last = if (index + 1) * CHUNK_BYTES >= bytes { " LAST" } else { "" };
            [format!("BDAT {}{last}\r\n", chunk.len()).into_bytes(), chunk.to_vec()].concat()
        })
        .collect();
    Ok(Box::new(move || send(connection, framed, bytes, |connection| expect(connection, "250 "))))
}

/// Sends a message of `bytes` to one user, in chunks. All flows send to the same user.
pub(super) fn send_to_machine(_place: usize, bytes: usize) -> Result<Flow, Failure> {
    deliver_to_machine(1, bytes)
}

/// Sends `bytes` bytes to Linux, which replies to each chunk with one byte.
pub(super) fn send_to_linux(_place: usize, bytes: usize) -> Result<Flow, Failure> {
    let connection = connect(SINK)?;
    Ok(Box::new(move || {
        send(connection, vec![b'x'; bytes], bytes, |connection| {
            connection.read_exact(&mut [0]).map_err(Failure::io("reading an answer"))
        })
    }))
}

/// Fetches a user's first message.
pub(super) fn fetch_from_machine(place: usize, bytes: usize) -> Result<Flow, Failure> {
    let mut connection = connect(POP3.port)?;
    expect(&mut connection, "+OK")?;
    say(&mut connection, &format!("USER {}\r\n", user(place)), "+OK")?;
    say(&mut connection, "PASS lovelace\r\n", "+OK")?;
    Ok(Box::new(move || fetch(connection, b"RETR 1\r\n", bytes)))
}

/// Fetches `bytes` bytes from Linux, which sends them on request.
pub(super) fn fetch_from_linux(_place: usize, bytes: usize) -> Result<Flow, Failure> {
    let connection = connect(SOURCE)?;
    Ok(Box::new(move || fetch(connection, &(bytes as u64).to_be_bytes(), bytes)))
}

/// The reference server, in this thread's network namespace. It receives and sends bytes, and does
/// nothing else.
pub(super) fn listen() -> Result<(), Failure> {
    let doing = "listening";
    let [sink, source] =
        [SINK, SOURCE].map(|port| TcpListener::bind(SocketAddr::from((THERE, port))));
    let (sink, source) = (sink.map_err(Failure::io(doing))?, source.map_err(Failure::io(doing))?);
    use_cubic(&sink)?;
    use_cubic(&source)?;
    std::thread::spawn(move || for_each(&sink, take));
    std::thread::spawn(move || for_each(&source, give));
    Ok(())
}

fn for_each(listener: &TcpListener, serve: fn(TcpStream) -> std::io::Result<()>) {
    for connection in listener.incoming().flatten() {
        // A client may disconnect early, when it has measured enough.
        std::thread::spawn(move || connection.set_nodelay(true).and_then(|()| serve(connection)));
    }
}

fn take(mut connection: TcpStream) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        connection.read_exact(&mut chunk)?;
        connection.write_all(b"k")?;
    }
}

fn give(mut connection: TcpStream) -> std::io::Result<()> {
    let mut count = [0; 8];
    connection.read_exact(&mut count)?;
    connection.write_all(&vec![b'x'; u64::from_be_bytes(count) as usize])
}

/// Sends `framed`, which carries `bytes`, and waits for an answer to each chunk of them.
fn send(
    mut connection: Connection,
    framed: Vec<u8>,
    bytes: usize,
    answer: impl Fn(&mut Connection) -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let doing = "sending";
    let mut writer = connection.get_ref().try_clone().map_err(Failure::io(doing))?;
    let is_over = Arc::new(AtomicBool::new(false));
    let is_over_there = Arc::clone(&is_over);
    let started = Instant::now();
    let writing = std::thread::spawn(move || {
        let written = writer.write_all(&framed);
        // After the budget has ended, the rest of the bytes is not needed.
        if is_over_there.load(Ordering::Relaxed) { Ok(()) } else { written }
    });
    connection.get_ref().set_read_timeout(Some(FLOW_BUDGET / 20)).map_err(Failure::io(doing))?;
    let (mut arrived, mut elapsed) = (0, FLOW_BUDGET);
    let mut failure = None;
    while arrived < bytes && started.elapsed() < FLOW_BUDGET {
        // `answer` reads whole replies. Once the first byte of a reply has arrived, its rest
        // arrives soon.
        match connection.fill_buf() {
            Ok([]) => {
                failure = Some(Failure::broke("the connection ended in a flow"));
                break;
            }
            Ok(_) => {
                failure = answer(&mut connection).err();
                if failure.is_some() {
                    break;
                }
                arrived = (arrived + CHUNK_BYTES).min(bytes);
                elapsed = started.elapsed();
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(Failure::io(doing)(error)),
        }
    }
    is_over.store(true, Ordering::Relaxed);
    let elapsed = if arrived < bytes { started.elapsed() } else { elapsed };
    let _ = connection.get_ref().shutdown(std::net::Shutdown::Both);
    let _ = writing.join();
    failure.map_or(Ok(rate(arrived, elapsed)), Err)
}

/// Asks for `bytes` and reads them.
fn fetch(mut connection: Connection, question: &[u8], bytes: usize) -> Result<f64, Failure> {
    let doing = "fetching";
    let started = Instant::now();
    connection.get_mut().write_all(question).map_err(Failure::io(doing))?;
    connection.get_ref().set_read_timeout(Some(FLOW_BUDGET / 20)).map_err(Failure::io(doing))?;
    let mut buffer = vec![0; 256 << 10];
    let mut arrived = 0;
    while arrived < bytes && started.elapsed() < FLOW_BUDGET {
        match connection.read(&mut buffer) {
            Ok(0) => return Err(Failure::broke("the connection ended in a flow")),
            Ok(count) => arrived += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(Failure::io(doing)(error)),
        }
    }
    Ok(rate(arrived, started.elapsed()))
}

/// Mbit/s.
fn rate(bytes: usize, elapsed: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e6 / elapsed.as_secs_f64()
}

fn connect(port: u16) -> Result<Connection, Failure> {
    let address = SocketAddr::from((THERE, port));
    let doing = format!("connecting to {address}");
    let connection = TcpStream::connect_timeout(&address, PATIENCE).map_err(Failure::io(&doing))?;
    use_cubic(&connection)?;
    connection.set_nodelay(true).map_err(Failure::io(&doing))?;
    connection.set_read_timeout(Some(PATIENCE)).map_err(Failure::io(&doing))?;
    Ok(BufReader::new(connection))
}

/// Sets CUBIC, the most common congestion control on the Internet, whatever this host prefers. It
/// must be set on each accepted connection too.
fn use_cubic(socket: &impl AsFd) -> Result<(), Failure> {
    setsockopt(socket, TcpCongestion, &OsString::from("cubic")).map_err(|error| {
        Failure::refused(format_args!("this Linux does not let us use CUBIC: {error}"))
    })
}

fn say(connection: &mut Connection, line: &str, reply: &str) -> Result<(), Failure> {
    connection.get_mut().write_all(line.as_bytes()).map_err(Failure::io("sending a command"))?;
    expect(connection, reply)
}

/// Reads lines until a line starts with `reply`. All earlier lines must belong to the same reply.
fn expect(connection: &mut Connection, reply: &str) -> Result<(), Failure> {
    let mut line = Vec::new();
    loop {
        line.clear();
        while !line.ends_with(b"\n") {
            match connection.read_until(b'\n', &mut line) {
                Ok(0) => return Err(Failure::broke("the connection ended in a reply")),
                Ok(_) => {}
                // The next read appends the rest of a partial line.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
                        && !line.is_empty() => {}
                Err(error) => return Err(Failure::io("reading a reply")(error)),
            }
        }
        if line.starts_with(reply.as_bytes()) {
            return Ok(());
        }
        if line.get(..3) != reply.as_bytes().get(..3) {
            let line = String::from_utf8_lossy(&line);
            return Err(Failure::broke(format_args!(
                "expected {reply}, but the answer was {}",
                line.trim_end()
            )));
        }
    }
}
