//! Fills a disk with many messages: a client sends them by SMTP to the engine, which runs as a
//! process. Then the image boots from that disk.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use barepost::guest::{End, Event, Running};
use barepost::run::Hosting;
use barepost_hosted::Hosted;
use host::{Failure, Repository, Stop, remark};

use super::at_tap::{INTERFACE, Place, Queues, make_interface, service};
use super::beside::mailboxes;
use super::boot::resident_mib;
use super::network::ip;
use super::statistics::median;
use super::workplace::refuse_if_stopped;

/// Simultaneous sessions that fill a disk quickly. A session never has more than one message that
/// the server has not acknowledged.
pub(super) const SESSIONS: usize = 64;
const MESSAGE_BYTES: usize = 1_000;
const READY_BUDGET: Duration = Duration::from_secs(20);
const STARTS: usize = 3;
/// The time in which a machine finishes its work after a start.
const SETTLE: Duration = Duration::from_secs(2);
const STOP_BUDGET: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(60);

/// Messages that a sender sends.
pub(super) struct Messages {
    /// The address of the server that receives them.
    pub(super) server: SocketAddr,
    /// The number of simultaneous sessions.
    pub(super) sessions: usize,
    /// The login command of each session. Empty: the sender does not log in.
    pub(super) login: String,
    pub(super) from: String,
    /// The recipients. Each message goes to one of them, in turn.
    pub(super) to: Vec<String>,
    pub(super) count: usize,
}

/// Starts a machine on `place`, sends it all of these messages, and stops it. Call this in a thread
/// with its own network namespace, because it makes a tap interface.
pub(super) fn fill(place: &Place, all: &[Messages], stop: &Stop) -> Result<(), Failure> {
    make_interface(1)?;
    let taps = Hosted::attach(INTERFACE, 1)?;
    let machine = Hosted::start(taps, 1, &place.data, place.memory_mib)?;
    await_ready(&machine, stop)?;
    for messages in all {
        let began = Instant::now();
        messages.deliver()?;
        remark(format_args!(
            "{} messages arrived in {:.1} s",
            messages.count,
            began.elapsed().as_secs_f64()
        ));
    }
    end(machine)?;
    ip(&format!("link delete {INTERFACE}"))
}

/// The cost of starting the image from a filled disk, as medians.
pub(super) struct Start {
    /// Guest instructions.
    pub(super) instructions: f64,
    /// The time from QEMU's start until the machine serves.
    pub(super) ms: f64,
    /// The host memory that the machine uses after the start.
    pub(super) mib: f64,
}

impl Start {
    /// Starts the image several times.
    pub(super) fn measure(repository: &Repository, place: &Place) -> Result<Start, Failure> {
        let (mut instructions, mut ms, mut mib) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..STARTS {
            let began = Instant::now();
            let serving = place.boot(repository, 1, Queues::One)?;
            ms.push(began.elapsed().as_secs_f64() * 1000.0);
            instructions.push(serving.total_of(0)? as f64);
            std::thread::sleep(SETTLE);
            mib.push(resident_mib(serving.process_id())?);
            serving.stop()?;
        }
        Ok(Start { instructions: median(instructions), ms: median(ms), mib: median(mib) })
    }
}

fn await_ready(machine: &Hosted, stop: &Stop) -> Result<(), Failure> {
    let began = Instant::now();
    while began.elapsed() < READY_BUDGET {
        refuse_if_stopped(stop)?;
        if TcpStream::connect_timeout(&service(25), Duration::from_millis(200)).is_ok() {
            return Ok(());
        }
        let _ = machine.next_event(Duration::from_millis(20));
    }
    Err(Failure::broke("the machine that is to be filled does not serve"))
}

fn end(mut machine: Hosted) -> Result<(), Failure> {
    machine.ask_to_stop();
    let began = Instant::now();
    while began.elapsed() < STOP_BUDGET {
        if let Some(Event::Ended) = machine.next_event(Duration::from_millis(20)) {
            return match machine.end()? {
                End::Clean => Ok(()),
                End::Other(how) => {
                    Err(Failure::broke(format_args!("the machine did not stop cleanly: {how}")))
                }
            };
        }
    }
    Err(Failure::broke("the machine that was filled did not stop in time"))
}

impl Messages {
    /// Sends all messages. Each message is different.
    pub(super) fn deliver(&self) -> Result<(), Failure> {
        let numbers = AtomicUsize::new(0);
        let next =
            || Some(numbers.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < self.count);
        std::thread::scope(|scope| {
            let senders: Vec<_> = (0..self.sessions.min(self.count))
                .map(|_| scope.spawn(|| self.send(next)))
                .collect();
            senders
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| Failure::broke("a sender panicked"))?)
        })
    }

    /// Sends messages in one session, which pipelines its commands (RFC 2920). MAIL, RCPT and DATA
    /// of the next message follow a message at once. Then the session waits for all replies.
    fn send(&self, next: impl Fn() -> Option<usize>) -> Result<(), Failure> {
        let doing = "sending messages";
        let connect = || {
            let connection = TcpStream::connect_timeout(&self.server, PATIENCE)?;
            connection.set_nodelay(true)?;
            connection.set_read_timeout(Some(PATIENCE))?;
            Ok(connection)
        };
        let mut connection = BufReader::new(connect().map_err(Failure::io(doing))?);
        let mut commands = "EHLO client.test\r\n".to_string();
        // Expect the greeting and the EHLO reply. The EHLO reply has several lines.
        let mut expected = vec!["220", "250 "];
        exchange(&mut connection, &mut commands, &mut expected).map_err(Failure::io(doing))?;
        if !self.login.is_empty() {
            commands.push_str(&self.login);
            expected.push("235 ");
        }
        let recipient = |number: usize| self.to.get(number.checked_rem(self.to.len())?);
        while let Some((number, to)) = next().and_then(|number| Some((number, recipient(number)?)))
        {
            commands.push_str(&format!("MAIL FROM:<{}>\r\nRCPT TO:<{to}>\r\nDATA\r\n", self.from));
            expected.extend(["250 ", "250 ", "354 "]);
            exchange(&mut connection, &mut commands, &mut expected).map_err(Failure::io(doing))?;
            commands.push_str(&mailboxes::message(&self.from, to, number, MESSAGE_BYTES));
            commands.push_str(".\r\n");
            expected.push("250 ");
        }
        exchange(&mut connection, &mut commands, &mut expected).map_err(Failure::io(doing))
    }
}

/// Sends `commands`, reads the `expected` replies, and empties both.
fn exchange(
    connection: &mut BufReader<TcpStream>,
    commands: &mut String,
    expected: &mut Vec<&str>,
) -> std::io::Result<()> {
    connection.get_mut().write_all(commands.as_bytes())?;
    commands.clear();
    for reply in expected.drain(..) {
        let mut line = String::new();
        while line.is_empty() || line.get(3..4) == Some("-") {
            line.clear();
            connection.read_line(&mut line)?;
        }
        if !line.starts_with(reply) {
            return Err(std::io::Error::other(format!(
                "expected {reply}, but the answer was {}",
                line.trim_end()
            )));
        }
    }
    Ok(())
}
