//! What a step at a webmail takes in our guest and in the peer's: guest instructions, and the browser's time.
//!
//! A step is done several times, one after the other, and then the guest comes to rest. What it executed meanwhile, less what it executes at rest, is theirs, whatever
//! else the host does. Each step is done at both machines before the next.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric::trusting::{self, Tickets};
use rustls::client::ClientConfig;

use super::browser::{Browser, Question};
use super::reader::{Login, Reader};
use crate::bench::beside::mailboxes::{self, GRACE, INBOXES, KEEPER, READER, SIZES, WRITER};
use crate::bench::beside::{Beside, Side};
use crate::bench::client::Client;
use crate::bench::counters::{Counters, Sample};
use crate::bench::median;
use crate::bench::profile::Functions;
use crate::bench::workplace::refuse_if_stopped;
use crate::failure::Failure;
use crate::guest::Guest;
use crate::house::House;
use crate::image;
use crate::stop::Stop;
use crate::terminal::remark;

/// How often a step is done: ours so often that what a step leaves behind for later (summaries of letters, pieces of the log) counts as it does on the average.
const OURS: usize = 24;
const PEERS: usize = 3;
/// After this nothing of a step is under way any more.
const SETTLE: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(2);
/// Bytes of the files that are sent and fetched, as with TLS in the paper.
const FILES: [usize; 3] = [1_000, 8_000, 16_000];

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The page for a login.
    LoginPage,
    /// The form of somebody whose password was not seen yet.
    FirstLogin,
    /// The form again.
    Login,
    /// An inbox with so many letters is opened.
    Inbox(usize),
    /// What is in it is shown again, by the least that does.
    List(usize),
    /// A letter with so many bytes of text is opened.
    Read(usize),
    /// The page for writing a letter is opened.
    Compose,
    /// One with so many bytes of text is sent.
    Send(usize),
    /// One with a file of so many bytes.
    SendFile(usize),
    /// That file is fetched.
    FetchFile(usize),
}

/// What one of several took, and the first byte that came for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) instructions: f64,
    pub(super) ms: f64,
    pub(super) first_byte_ms: f64,
}

/// A step, with what it took ours and the peer.
pub(super) struct Found {
    pub(super) step: Step,
    pub(super) ours: Taken,
    pub(super) peers: Taken,
}

/// A guest that is measured.
pub(super) struct Target<'a> {
    /// Runs until this is dropped.
    _guest: Guest,
    side: Side,
    address: SocketAddr,
    settings: Arc<ClientConfig>,
    counters: &'a Counters,
    /// Instructions in a second in which nothing happens.
    idle: f64,
}

/// What finds out where our instructions go.
struct Profiler {
    functions: Functions,
    folder: PathBuf,
}

/// Boots both, with letters in their mailboxes. To be called in a network of its own.
pub(super) fn boot<'a>(beside: &'a Beside, stop: &Stop) -> Result<[Target<'a>; 2], Failure> {
    let boot = |side: Side, ports: &[u16]| {
        let guest = beside.boot(side, ports, stop)?;
        Ok::<_, Failure>((side, guest, trusting::settings(&["http/1.1"], Tickets::Forgotten).map_err(Failure::broke)?))
    };
    let guests = [boot(Side::Ours, &[25, 443])?, boot(Side::Peer, &[443])?];
    deliver(SocketAddr::from((Side::Ours.guest(), 25)))?;
    let [ours, peers] = guests.map(|(side, guest, settings)| {
        let counters = beside.counters(side);
        let address = SocketAddr::from((side.guest(), 443));
        Ok(Target { _guest: guest, side, address, settings, counters, idle: idle(counters)? })
    });
    Ok([ours?, peers?])
}

fn idle(counters: &Counters) -> Result<f64, Failure> {
    std::thread::sleep(SETTLE);
    let (before, started) = (counters.sample()?, Instant::now());
    std::thread::sleep(IDLE);
    Ok(counters.sample()?.since(&before).total() as f64 / started.elapsed().as_secs_f64())
}

/// What the peer's disk begins with, ours gets as mail.
fn deliver(service: SocketAddr) -> Result<(), Failure> {
    let mut client = Client::connect(service, "220")?;
    client.command(b"EHLO client.test\r\n", "250")?;
    for account in mailboxes::accounts() {
        let address = account.address();
        for (index, text_bytes) in account.letters.iter().enumerate() {
            client.command(b"MAIL FROM:<charles@client.test>\r\n", "250")?;
            client.command(format!("RCPT TO:<{address}>\r\n").as_bytes(), "250")?;
            client.command(b"DATA\r\n", "354")?;
            let letter = mailboxes::letter(&address, index, *text_bytes);
            client.command(format!("{letter}.\r\n").as_bytes(), "250")?;
        }
    }
    client.command(b"QUIT\r\n", "221")
}

/// All steps, each at both.
pub(super) fn measure(house: &House, targets: &[Target<'_>; 2], stop: &Stop) -> Result<Vec<Found>, Failure> {
    let profiler = Profiler { functions: Functions::read(&image::unstripped(house))?, folder: house.target("bench") };
    let inboxes = INBOXES.into_iter().flat_map(|letters| [Step::Inbox(letters), Step::List(letters)]);
    let files = FILES.into_iter().map(Step::SendFile).chain(FILES.into_iter().map(Step::FetchFile));
    let steps = [Step::LoginPage, Step::FirstLogin, Step::Login]
        .into_iter()
        .chain(inboxes)
        .chain(SIZES.map(Step::Read))
        .chain([Step::Compose])
        .chain(SIZES.map(Step::Send))
        .chain(files);
    let mut found = Vec::new();
    for step in steps {
        refuse_if_stopped(stop)?;
        let [ours, peers] = targets;
        let (ours, peers) = (ours.take(step, &profiler)?, peers.take(step, &profiler)?);
        remark(format_args!(
            "{step:?}: {:.0} instructions beside {:.0}, {:.1} ms beside {:.1}",
            ours.instructions, peers.instructions, ours.ms, peers.ms
        ));
        found.push(Found { step, ours, peers });
    }
    Ok(found)
}

impl Target<'_> {
    fn log_in(&self, name: &str) -> Result<Reader, Failure> {
        Reader::log_in(self.side, self.address, &self.settings, name)
    }

    fn times(&self) -> usize {
        if self.side == Side::Ours { OURS } else { PEERS }
    }

    fn take(&self, step: Step, profiler: &Profiler) -> Result<Taken, Failure> {
        match step {
            Step::LoginPage => {
                let mut browser = Browser::open(self.address, &self.settings)?;
                self.repeat(step, &mut browser, vec![vec![Login::page(self.side)]; self.times()], profiler)
            }
            Step::FirstLogin => self.logins(step, 1, profiler),
            Step::Login => self.logins(step, self.times(), profiler),
            Step::Inbox(letters) => self.same(step, &mailboxes::inbox(letters), Reader::inbox, profiler),
            Step::List(letters) => self.same(step, &mailboxes::inbox(letters), Reader::list, profiler),
            Step::Read(bytes) => {
                self.same(step, READER, |reader| vec![reader.letter(mailboxes::number(bytes))], profiler)
            }
            Step::Compose => {
                let mut writer = self.log_in(WRITER)?;
                writer.begin_letter()?;
                self.count(step, self.times(), profiler, |_| {
                    let began = Instant::now();
                    writer.begin_letter()?;
                    Ok((began.elapsed(), began.elapsed()))
                })
            }
            Step::Send(bytes) => self.letters(step, GRACE, bytes, None, profiler),
            Step::SendFile(bytes) => self.letters(step, KEEPER, 1_000, Some(&vec![b'z'; bytes]), profiler),
            Step::FetchFile(bytes) => {
                // Those of one size came one after the other.
                let before = FILES.iter().position(|size| *size == bytes).unwrap_or_default();
                self.same(step, KEEPER, |reader| vec![reader.file(before * self.times() + 1)], profiler)
            }
        }
    }

    fn logins(&self, step: Step, times: usize, profiler: &Profiler) -> Result<Taken, Failure> {
        let begin = |_| Login::begin(self.side, self.address, &self.settings);
        let mut logins = (0..times).map(begin).collect::<Result<Vec<_>, _>>()?;
        std::thread::sleep(SETTLE);
        self.count(step, times, profiler, |index| {
            let login = logins.get_mut(index).ok_or_else(|| Failure::broke("each has its own"))?;
            let form = login.form(WRITER);
            ask_all(&mut login.browser, &[form])
        })
    }

    /// Once so that all is made that is made on first use, and then often.
    fn same(
        &self,
        step: Step,
        name: &str,
        questions: impl Fn(&Reader) -> Vec<Question>,
        profiler: &Profiler,
    ) -> Result<Taken, Failure> {
        let mut reader = self.log_in(name)?;
        let questions = questions(&reader);
        ask_all(&mut reader.browser, &questions)?;
        std::thread::sleep(SETTLE);
        self.repeat(step, &mut reader.browser, vec![questions; self.times()], profiler)
    }

    /// Letters that are sent. What is asked for before somebody can write one is no part of it.
    fn letters(
        &self,
        step: Step,
        to: &str,
        text_bytes: usize,
        file: Option<&[u8]>,
        profiler: &Profiler,
    ) -> Result<Taken, Failure> {
        let mut writer = self.log_in(WRITER)?;
        let mut all = Vec::new();
        for _ in 0..self.times() {
            let begun = writer.begin_letter()?;
            all.push(writer.send(&begun, to, text_bytes, file));
        }
        std::thread::sleep(SETTLE);
        self.repeat(step, &mut writer.browser, all, profiler)
    }

    fn repeat(
        &self,
        step: Step,
        browser: &mut Browser,
        all: Vec<Vec<Question>>,
        profiler: &Profiler,
    ) -> Result<Taken, Failure> {
        let times = all.len();
        self.count(step, times, profiler, |index| ask_all(browser, all.get(index).map_or(&[], Vec::as_slice)))
    }

    /// What `work` takes each time. It says how long it took, to the first byte and in all.
    fn count(
        &self,
        step: Step,
        times: usize,
        profiler: &Profiler,
        mut work: impl FnMut(usize) -> Result<(Duration, Duration), Failure>,
    ) -> Result<Taken, Failure> {
        let (began, before) = (Instant::now(), self.counters.sample()?);
        let took = (0..times).map(&mut work).collect::<Result<Vec<_>, _>>()?;
        std::thread::sleep(SETTLE);
        let executed = self.counters.sample()?.since(&before);
        let own = executed.total() as f64 - self.idle * began.elapsed().as_secs_f64();
        if self.side == Side::Ours {
            profiler.write(step, &executed, times)?;
        }
        let middle = |time: fn(&(Duration, Duration)) -> Duration| {
            median(took.iter().map(|one| time(one).as_secs_f64() * 1000.0).collect())
        };
        Ok(Taken { instructions: own / times as f64, first_byte_ms: middle(|one| one.0), ms: middle(|one| one.1) })
    }
}

/// How long it was to the first byte, and in all.
fn ask_all(browser: &mut Browser, questions: &[Question]) -> Result<(Duration, Duration), Failure> {
    let began = Instant::now();
    let mut first_byte = None;
    for question in questions {
        let answer = browser.ask(question)?;
        first_byte.get_or_insert(answer.first_byte);
    }
    Ok((first_byte.unwrap_or_default(), began.elapsed()))
}

impl Profiler {
    fn write(&self, step: Step, executed: &Sample, times: usize) -> Result<(), Failure> {
        let text = self.functions.profile(executed, times as u32)?;
        let name: String = format!("{step:?}").chars().filter(|letter| letter.is_alphanumeric()).collect();
        std::fs::write(self.folder.join(format!("webmail-{name}.profile")), text)
            .map_err(Failure::io("writing a profile"))
    }
}
