//! The cost of a transaction, step by step, in our guest and in the peer's guest: guest
//! instructions, and the client's time.
//!
//! Many connections go through a step, one after the other. The guest comes to rest before the next
//! step begins. The cost of a step is the number of instructions that the guest executed during the
//! step, minus those of an idle guest. It does not depend on other load on the host.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use barepost::guest::Guest;
use fabric::trusting::{self, Tickets};
use host::{Failure, Repository, Stop, remark};
use rustls::HandshakeKind;
use rustls::client::ClientConfig;

use super::client::{Client, Question};
use super::two::Two;
use super::{Channel, FILES, PAGE, PAGE_BYTES};
use crate::beside::{Beside, Side};
use crate::counters::{Counters, Sample};
use crate::network::enter;
use crate::profile::Profiler;
use crate::statistics::median;
use crate::workplace::refuse_if_stopped;

/// Connections that go through a step, one after the other.
const CONNECTIONS: usize = 24;
/// The number of requests in one count.
const REQUESTS: usize = 100;
/// The number of connections that send requests at the same time.
const CROWD: usize = 16;
/// The number of times that these connections send requests.
const WAVES: usize = 20;
/// The median of this many repetitions counts.
const REPETITIONS: usize = 3;
/// The time after which all work of a step is finished.
const SETTLE: Duration = Duration::from_millis(250);
const IDLE: Duration = Duration::from_secs(3);
/// Numbers of requests in one connection.
pub(super) const NUMBERS: [usize; 5] = [1, 2, 5, 10, 20];
/// The number of connections for each of these numbers.
const NUMBERED: usize = 10;

/// The cost of one repetition: the mean of the guest's instructions, and the median of the client's
/// time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) instructions: f64,
    pub(super) ms: f64,
}

/// The cost of each step of a transaction. The steps of TLS are `None` in the clear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    pub(super) connection: Taken,
    pub(super) handshake: Option<Taken>,
    pub(super) resumed: Option<Taken>,
    pub(super) get: Taken,
    pub(super) post: Taken,
    pub(super) end: Taken,
}

/// The results at one guest, on one channel.
pub(super) struct Found {
    pub(super) side: Side,
    pub(super) channel: Channel,
    pub(super) steps: Steps,
    /// The cost of a GET, by the size of the file in bytes.
    pub(super) gets: Vec<(usize, Taken)>,
    /// The cost of a POST, by the size of the body in bytes.
    pub(super) posts: Vec<(usize, Taken)>,
    /// Whole transactions by the number of files of 4 KB.
    pub(super) numbers: Vec<(usize, Taken)>,
    /// The cost of a request while several connections send requests.
    pub(super) crowd: Taken,
    /// The cost of a request in HTTP/2.
    pub(super) two: Option<Taken>,
}

/// A guest that is measured.
struct Target<'a> {
    guest: Ipv4Addr,
    side: Side,
    channel: Channel,
    counters: &'a Counters,
    /// Instructions in a second in which nothing happens.
    idle: f64,
    profiler: &'a Profiler,
    stop: &'a Stop,
}

/// Measures both guests, with and without TLS. Call this in a separate thread, because it moves the
/// thread into a network namespace that the thread cannot leave.
pub(super) fn measure(
    repository: &Repository,
    beside: &Beside,
    stop: &Stop,
) -> Result<Vec<Found>, Failure> {
    let profiler = Profiler::new(repository, "tls")?;
    enter()?;
    let guests: Result<Vec<(Side, Guest)>, Failure> = [Side::Ours, Side::Peer]
        .into_iter()
        .map(|side| Ok((side, beside.boot(side, &[80, 443], stop)?)))
        .collect();
    let mut found = Vec::new();
    for (side, _guest) in &guests? {
        let counters = beside.counters(*side);
        let idle = idle(counters)?;
        for channel in [Channel::Plain, Channel::Tls] {
            let target = Target {
                guest: side.guest(),
                side: *side,
                channel,
                counters,
                idle,
                profiler: &profiler,
                stop,
            };
            found.push(target.measure()?);
        }
    }
    Ok(found)
}

fn idle(counters: &Counters) -> Result<f64, Failure> {
    let (before, started) = (counters.sample()?, Instant::now());
    std::thread::sleep(IDLE);
    Ok(counters.sample()?.since(&before).total() as f64 / started.elapsed().as_secs_f64())
}

impl Target<'_> {
    fn measure(&self) -> Result<Found, Failure> {
        let steps = self.steps()?;
        let [gets, posts] = self.by_size()?;
        let numbers = self.by_number()?;
        let crowd = self.crowd()?;
        let two = if self.channel == Channel::Tls { Some(self.two()?) } else { None };
        remark(format_args!(
            "{:?}, {:?}: {:.0} instructions for a page of 4 KB, {:.0} of {CROWD} at once, {:.0} in HTTP/2, {:.0} for a handshake",
            self.side,
            self.channel,
            steps.get.instructions,
            crowd.instructions,
            two.map_or(f64::NAN, |two| two.instructions),
            steps.handshake.map_or(f64::NAN, |handshake| handshake.instructions)
        ));
        Ok(Found {
            side: self.side,
            channel: self.channel,
            steps,
            gets,
            posts,
            numbers,
            crowd,
            two,
        })
    }

    fn connect(&self, settings: &Arc<ClientConfig>) -> Result<Client, Failure> {
        Client::connect(self.guest, self.channel, settings)
    }

    /// Opens a connection that is ready for a request.
    fn ready(&self) -> Result<Client, Failure> {
        let mut client = self.connect(&settings(Tickets::Forgotten)?)?;
        client.shake_hands()?;
        Ok(client)
    }

    /// The cost of each of `count` calls of `work`. The client's time is the median of the calls.
    fn count(
        &self,
        name: &str,
        count: usize,
        work: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<Taken, Failure> {
        self.count_all(name, count, 1, work)
    }

    /// Like `count`, but each call of `work` does `at_once` requests. The instructions are those of
    /// one request, and the time is that of one call.
    fn count_all(
        &self,
        name: &str,
        times: usize,
        at_once: usize,
        mut work: impl FnMut(usize) -> Result<(), Failure>,
    ) -> Result<Taken, Failure> {
        refuse_if_stopped(self.stop)?;
        let (began, before) = (Instant::now(), self.counters.sample()?);
        let mut took_ms = Vec::with_capacity(times);
        for index in 0..times {
            let began = Instant::now();
            work(index)?;
            took_ms.push(began.elapsed().as_secs_f64() * 1000.0);
        }
        std::thread::sleep(SETTLE);
        let executed = self.counters.sample()?.since(&before);
        let count = times * at_once;
        let own = executed.total() as f64 - self.idle * began.elapsed().as_secs_f64();
        self.write_profile(name, &executed, count)?;
        Ok(Taken { instructions: own / count as f64, ms: median(took_ms) })
    }

    /// Writes a profile of our guest over TLS.
    fn write_profile(&self, name: &str, executed: &Sample, count: usize) -> Result<(), Failure> {
        if self.side == Side::Peer || self.channel == Channel::Plain || name.is_empty() {
            return Ok(());
        }
        self.profiler.write(name, executed, count as u32)
    }

    fn steps(&self) -> Result<Steps, Failure> {
        let mut all = Vec::new();
        for _ in 0..REPETITIONS {
            all.push(self.steps_once()?);
        }
        let middle = |step: fn(&Steps) -> Taken| Taken {
            instructions: median(all.iter().map(|steps| step(steps).instructions).collect()),
            ms: median(all.iter().map(|steps| step(steps).ms).collect()),
        };
        const NOTHING: Taken = Taken { instructions: f64::NAN, ms: f64::NAN };
        let is_tls = self.channel == Channel::Tls;
        Ok(Steps {
            connection: middle(|steps| steps.connection),
            handshake: is_tls.then(|| middle(|steps| steps.handshake.unwrap_or(NOTHING))),
            resumed: is_tls.then(|| middle(|steps| steps.resumed.unwrap_or(NOTHING))),
            get: middle(|steps| steps.get),
            post: middle(|steps| steps.post),
            end: middle(|steps| steps.end),
        })
    }

    fn steps_once(&self) -> Result<Steps, Failure> {
        let (get, post) = (Question::get(PAGE), Question::post(PAGE, PAGE_BYTES));
        // Each client stores its own tickets.
        let settings =
            (0..CONNECTIONS).map(|_| settings(Tickets::Kept)).collect::<Result<Vec<_>, _>>()?;
        let mut clients = Vec::new();
        let connection = self.count("connection", CONNECTIONS, |index| {
            let settings = settings.get(index).ok_or_else(|| Failure::broke("each has its own"))?;
            clients.push(self.connect(settings)?);
            Ok(())
        })?;
        let handshake = self.handshakes("handshake", &mut clients, HandshakeKind::Full)?;
        // The first requests fill caches and receive tickets, so they are not counted.
        clients.iter_mut().try_for_each(|client| client.ask(&get))?;
        let get = self.on_each("get", &mut clients, |client| client.ask(&get))?;
        let post = self.on_each("post", &mut clients, |client| client.ask(&post))?;
        let mut left = clients.into_iter();
        let end = self.count("end", CONNECTIONS, |_| left.next().map_or(Ok(()), Client::close))?;
        let mut again = settings
            .iter()
            .map(|settings| self.connect(settings))
            .collect::<Result<Vec<_>, _>>()?;
        std::thread::sleep(SETTLE);
        let resumed = self.handshakes("resumed", &mut again, HandshakeKind::Resumed)?;
        again.into_iter().try_for_each(Client::close)?;
        Ok(Steps { connection, handshake, resumed, get, post, end })
    }

    fn handshakes(
        &self,
        name: &str,
        clients: &mut [Client],
        wanted: HandshakeKind,
    ) -> Result<Option<Taken>, Failure> {
        if self.channel == Channel::Plain {
            return Ok(None);
        }
        let taken = self.on_each(name, clients, |client| match client.shake_hands()? {
            Some(kind) if kind == wanted => Ok(()),
            kind => Err(Failure::broke(format_args!("a handshake was {kind:?}, not {wanted:?}"))),
        });
        taken.map(Some)
    }

    fn on_each(
        &self,
        name: &str,
        clients: &mut [Client],
        mut work: impl FnMut(&mut Client) -> Result<(), Failure>,
    ) -> Result<Taken, Failure> {
        let count = clients.len();
        self.count(name, count, |index| clients.get_mut(index).map_or(Ok(()), &mut work))
    }

    /// Costs by size: each size has its own connection, for GET and for POST.
    fn by_size(&self) -> Result<[Vec<(usize, Taken)>; 2], Failure> {
        let (mut gets, mut posts) = (Vec::new(), Vec::new());
        for (name, bytes) in FILES {
            for (of, question) in
                [(&mut gets, Question::get(name)), (&mut posts, Question::post(name, bytes))]
            {
                let mut client = self.ready()?;
                client.ask(&question)?;
                std::thread::sleep(SETTLE);
                let name = if bytes == PAGE_BYTES && question.is_get() { "kept" } else { "" };
                of.push((bytes, self.count(name, REQUESTS, |_| client.ask(&question))?));
            }
        }
        Ok([gets, posts])
    }

    /// Costs of whole transactions: a connection that requests this many files.
    fn by_number(&self) -> Result<Vec<(usize, Taken)>, Failure> {
        let get = Question::get(PAGE);
        let one = |number: usize| {
            let taken = self.count("", NUMBERED, |_| {
                let mut client = self.ready()?;
                (0..number).try_for_each(|_| client.ask(&get))?;
                client.close()
            })?;
            Ok((number, taken))
        };
        NUMBERS.into_iter().map(one).collect()
    }

    /// Several connections send requests. Then each reads its response.
    fn crowd(&self) -> Result<Taken, Failure> {
        let get = Question::get(PAGE);
        let mut clients = (0..CROWD).map(|_| self.ready()).collect::<Result<Vec<_>, _>>()?;
        clients.iter_mut().try_for_each(|client| client.ask(&get))?;
        std::thread::sleep(SETTLE);
        self.count_all("crowd", WAVES, CROWD, |_| {
            clients.iter_mut().try_for_each(|client| client.begin_asking(&get))?;
            clients.iter_mut().try_for_each(|client| client.hear_answer(&get))
        })
    }

    fn two(&self) -> Result<Taken, Failure> {
        let settings = trusting::settings(&["h2"], Tickets::Forgotten).map_err(Failure::broke)?;
        let mut client = self.connect(&settings)?;
        client.shake_hands()?;
        let mut two = Two::begin(client)?;
        two.get(PAGE, PAGE_BYTES)?;
        std::thread::sleep(SETTLE);
        let taken = self.count("two", REQUESTS, |_| two.get(PAGE, PAGE_BYTES))?;
        two.close()?;
        Ok(taken)
    }
}

fn settings(tickets: Tickets) -> Result<Arc<ClientConfig>, Failure> {
    trusting::settings(&["http/1.1"], tickets).map_err(Failure::broke)
}
