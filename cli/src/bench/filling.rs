//! Letters for mailboxes, by SMTP to the engine as a process.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::bench::at_tap::{INTERFACE, Place, make_interface, service};
use crate::bench::beside::mailboxes;
use crate::bench::network::ip;
use crate::bench::workplace::refuse_if_stopped;
use crate::failure::Failure;
use crate::guest::{End, Event, Running};
use crate::hosted::Hosted;
use crate::stop::Stop;
use crate::terminal::remark;

/// Who sends at the same time. Each of them waits until his letter is on the disk.
const SENDERS: usize = 64;
const LETTER_BYTES: usize = 1_000;
const READY_BUDGET: Duration = Duration::from_secs(20);
const STOP_BUDGET: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(60);

/// Fills a mailbox with each of these numbers of letters. To be called in a network of its own, while nobody serves from the place.
pub(super) fn fill(place: &Place, numbers: &[usize], stop: &Stop) -> Result<(), Failure> {
    make_interface(1)?;
    let taps = Hosted::attach(INTERFACE, 1)?;
    let machine = Hosted::start(taps, 1, &place.data, super::MEMORY_MIB)?;
    await_ready(&machine, stop)?;
    for letters in numbers {
        let began = Instant::now();
        deliver(service(25), &mailboxes::address(&mailboxes::inbox(*letters)), *letters)?;
        remark(format_args!("{letters} letters came in {:.1} s", began.elapsed().as_secs_f64()));
    }
    end(machine)?;
    ip(&format!("link delete {INTERFACE}"))
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
                End::Other(how) => Err(Failure::broke(format_args!("the machine did not stop cleanly: {how}"))),
            };
        }
    }
    Err(Failure::broke("the machine that was filled did not stop in time"))
}

/// Sends so many letters to somebody, each of them another.
fn deliver(service: SocketAddr, to: &str, letters: usize) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let send = || send(service, to, || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|next| *next < letters));
        let senders: Vec<_> = (0..SENDERS.min(letters)).map(|_| scope.spawn(send)).collect();
        senders.into_iter().try_for_each(|one| one.join().map_err(|_| Failure::broke("a sender panicked"))?)
    })
}

/// One session, whose commands do not wait for each other's replies (RFC 2920): only a letter does.
fn send(service: SocketAddr, to: &str, next: impl Fn() -> Option<usize>) -> Result<(), Failure> {
    let doing = "sending letters";
    let connect = || {
        let connection = TcpStream::connect_timeout(&service, PATIENCE)?;
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        Ok(connection)
    };
    let mut connection = BufReader::new(connect().map_err(Failure::io(doing))?);
    let mut said = "EHLO client.test\r\n".to_string();
    // The greeting; and the EHLO's reply has several lines.
    let mut expected = vec!["220", "250 "];
    while let Some(number) = next() {
        said.push_str(&format!("MAIL FROM:<charles@client.test>\r\nRCPT TO:<{to}>\r\nDATA\r\n"));
        expected.extend(["250 ", "250 ", "354 "]);
        exchange(&mut connection, &mut said, &mut expected).map_err(Failure::io(doing))?;
        said.push_str(&mailboxes::letter(to, number, LETTER_BYTES));
        said.push_str(".\r\n");
        expected.push("250 ");
    }
    exchange(&mut connection, &mut said, &mut expected).map_err(Failure::io(doing))
}

/// Says all of it, and hears these replies.
fn exchange(connection: &mut BufReader<TcpStream>, said: &mut String, expected: &mut Vec<&str>) -> std::io::Result<()> {
    connection.get_mut().write_all(said.as_bytes())?;
    said.clear();
    for reply in expected.drain(..) {
        let mut line = String::new();
        while line.is_empty() || line.get(3..4) == Some("-") {
            line.clear();
            connection.read_line(&mut line)?;
        }
        if !line.starts_with(reply) {
            return Err(std::io::Error::other(format!("expected {reply}, but the answer was {}", line.trim_end())));
        }
    }
    Ok(())
}
