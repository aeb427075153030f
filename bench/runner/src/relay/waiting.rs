//! Our image with a long queue. All entries are for a destination that is down. The bench measures
//! the start, the memory, and the delay of a new message for another destination. It also measures
//! how fast the queue empties when the destination is up again.
//!
//! The engine runs as a process, receives the messages by SMTP, and fills a disk. The image boots
//! from that disk.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use host::{Failure, Repository, Stop, remark};

use super::outside::{Destination, Outside, Sink};
use super::{ANOTHER, SENDER, login};
use crate::at_tap::{Place, Queues, Serving, service};
use crate::beside::mailboxes::{self, address};
use crate::beside::{Side, rest};
use crate::boot::resident_mib;
use crate::client::Client;
use crate::filling::{Messages, SESSIONS, Start, fill};
use crate::network::{enter, widen};
use crate::statistics::median;
use crate::workplace::refuse_if_stopped;

/// The queue lengths in entries, in ascending order.
pub(super) const SIZES: [u32; 3] = [10_000, 100_000, 1_000_000];
/// The most messages that leave while the bench measures how fast the queue empties. Of a short
/// queue, only half leaves.
const DRAINED_MAX: u32 = 20_000;
/// The time for which the bench sends messages for another destination. After a minute, the engine
/// retries the destination that is down, and then examines all waiting entries.
const SENDING_SPAN: Duration = Duration::from_secs(150);
/// The pause between two of these messages.
const PAUSE: Duration = Duration::from_millis(250);
const MESSAGE_BYTES: usize = 1_000;
const BUDGET: Duration = Duration::from_secs(600);

/// The delay of a new message for another destination beside a long queue, in milliseconds, until
/// that destination has received it.
#[derive(Clone, Copy)]
pub(super) struct Waits {
    pub(super) median: f64,
    pub(super) longest: f64,
}

impl Waits {
    fn of(all: &[f64]) -> Waits {
        Waits { median: median(all.to_vec()), longest: all.iter().copied().fold(0.0, f64::max) }
    }
}

/// The results with a queue of this many entries.
pub(super) struct Found {
    pub(super) entries: u32,
    pub(super) start: Start,
    /// The seconds from ready until the machine is at rest. By then it has examined each entry. If
    /// this takes more than a minute, it has examined some entries more than once.
    pub(super) rests_after: f64,
    /// Guest instructions from ready until the machine is at rest, divided by the number of
    /// entries.
    pub(super) for_each: f64,
    /// The host memory that the machine uses when it is at rest.
    pub(super) mib: f64,
    /// The delays for a sender with no other message in the queue, and for the sender of all queued
    /// messages.
    pub(super) others: Waits,
    pub(super) own: Waits,
    /// Messages a second that leave when the destination is up, and guest instructions for each.
    /// None without a queue.
    pub(super) drained: Option<(f64, f64)>,
}

pub(super) struct Measurement<'a> {
    pub(super) repository: &'a Repository,
    pub(super) place: &'a Place,
    pub(super) outside: &'a Outside,
    pub(super) sizes: Vec<u32>,
    pub(super) stop: &'a Stop,
}

impl Measurement<'_> {
    /// Measures an empty queue first, and then each of `sizes`. Call this in a separate thread,
    /// because it moves the thread into a network namespace.
    pub(super) fn make(&self, folder: &Path) -> Result<Vec<Found>, Failure> {
        enter()?;
        widen()?;
        // The name server runs until this value is dropped.
        let _names = self.outside.begin(folder)?;
        let (mut found, mut there) = (Vec::new(), 0);
        for entries in [0].into_iter().chain(self.sizes.iter().copied()) {
            if entries > there {
                fill(self.place, &[old_messages(entries - there)], self.stop)?;
            }
            let (one, drained) = self.with(entries)?;
            remark(format_args!(
                "{entries} entries: ready after {:.0} ms, rests after {:.1} s ({:.0} instructions each), {:.1} MiB; another account waits {:.1} ms, {:.1} at most, their owner {:.1}, {:.1} at most; {:?} leave in a second",
                one.start.ms,
                one.rests_after,
                one.for_each,
                one.mib,
                one.others.median,
                one.others.longest,
                one.own.median,
                one.own.longest,
                one.drained
            ));
            found.push(one);
            there = entries - drained;
        }
        Ok(found)
    }

    /// Returns the results with this many entries, and the number of entries that have left.
    fn with(&self, entries: u32) -> Result<(Found, u32), Failure> {
        refuse_if_stopped(self.stop)?;
        let start = Start::measure(self.repository, self.place)?;
        let serving = self.boot()?;
        let before = serving.total_of(0)? as f64;
        let rests_after = rest(serving.counters(), 0.0, BUDGET)?.as_secs_f64();
        let for_each = (serving.total_of(0)? as f64 - before) / f64::from(entries.max(1));
        let mib = resident_mib(serving.process_id())?;
        serving.stop()?;
        let serving = self.boot()?;
        let [others, own] = self.measure_delays()?;
        serving.stop()?;
        let (drained, left) =
            if entries == 0 { (None, 0) } else { self.drain((entries / 2).min(DRAINED_MAX))? };
        Ok((Found { entries, start, rests_after, for_each, mib, others, own, drained }, left))
    }

    fn boot(&self) -> Result<Serving, Failure> {
        self.place.boot(self.repository, 1, Queues::One)
    }

    /// Sends messages to a fast destination and returns their delays.
    fn measure_delays(&self) -> Result<[Waits; 2], Failure> {
        let sink = self.outside.open(Destination::Fast, Side::Ours, 0)?;
        let mut clients = [submit(ANOTHER)?, submit(SENDER)?];
        let (began, mut waits) = (Instant::now(), [const { Vec::new() }; 2]);
        while began.elapsed() < SENDING_SPAN {
            for ((client, waits), name) in clients.iter_mut().zip(&mut waits).zip([ANOTHER, SENDER])
            {
                waits.push(self.send(client, name, &sink)?);
                std::thread::sleep(PAUSE);
            }
        }
        Ok(waits.map(|waits| Waits::of(&waits)))
    }

    /// Sends a message. Returns the milliseconds from its reply 250 until the sink has it.
    fn send(&self, client: &mut Client, name: &str, sink: &Sink) -> Result<f64, Failure> {
        let (from, to) = (address(name), Destination::Fast.address(Side::Ours));
        let wanted = sink.taken() + 1;
        client.command(format!("MAIL FROM:<{from}>\r\n").as_bytes(), "250")?;
        client.command(format!("RCPT TO:<{to}>\r\n").as_bytes(), "250")?;
        client.command(b"DATA\r\n", "354")?;
        let message = mailboxes::message(&from, &to, wanted as usize, MESSAGE_BYTES);
        client.command(format!("{message}.\r\n").as_bytes(), "250")?;
        let began = Instant::now();
        sink.wait_for(wanted, BUDGET, self.stop)?;
        Ok(began.elapsed().as_secs_f64() * 1000.0)
    }

    /// Empties the queue: the destination is up when the machine starts. Returns the messages a
    /// second and the guest instructions for each, both from the first message until this many have
    /// left. Also returns the number of messages that have left when the machine stops.
    fn drain(&self, messages: u32) -> Result<(Option<(f64, f64)>, u32), Failure> {
        let sink = self.outside.open(Destination::Down, Side::Ours, 0)?;
        let serving = self.boot()?;
        sink.wait_for(1, BUDGET, self.stop)?;
        let (began, before, first) = (Instant::now(), serving.total_of(0)?, sink.taken());
        sink.wait_for(messages, BUDGET, self.stop)?;
        let (took, count) = (began.elapsed().as_secs_f64(), f64::from(sink.taken() - first));
        let each = (serving.total_of(0)? - before) as f64 / count;
        serving.stop()?;
        Ok((Some((count / took, each)), sink.taken()))
    }
}

/// The messages that fill the queue.
fn old_messages(count: u32) -> Messages {
    Messages {
        server: service(587),
        sessions: SESSIONS,
        login: login(SENDER),
        from: address(SENDER),
        to: vec![Destination::Down.address(Side::Ours)],
        count: count as usize,
    }
}

/// A submission session of one account.
fn submit(name: &str) -> Result<Client, Failure> {
    let server: SocketAddr = service(587);
    let mut client = Client::connect(server, "220")?;
    client.command(b"EHLO client.test\r\n", "250")?;
    client.command(login(name).as_bytes(), "235")?;
    Ok(client)
}
