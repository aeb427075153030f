//! The cost of a webmail step in our guest and in the peer's guest. Each step is measured at both
//! before the next step.

use std::net::SocketAddr;
use std::time::Instant;

use barepost::guest::Guest;
use host::{Failure, Repository, Stop, remark};

use super::browser::{Browser, Question};
use super::reader::{Login, Reader};
use super::target::{Heard, SETTLE, Taken, Target};
use crate::at_tap::{Place, Queues, service};
use crate::beside::mailboxes::{self, GRACE, INBOXES, KEEPER, READER, SIZES, WRITER};
use crate::beside::{Beside, Side};
use crate::client::Client;
use crate::profile::Profiler;
use crate::workplace::refuse_if_stopped;

/// The number of repetitions of a step at our guest. With so many repetitions, deferred work
/// (message summaries, pieces of the log) counts at its average.
const OUR_REPETITIONS: usize = 24;
/// The number of repetitions of a step at the peer's guest.
const PEER_REPETITIONS: usize = 3;
/// File sizes in bytes. The TLS paper uses the same sizes.
pub(super) const FILES: [usize; 3] = [1_000, 8_000, 16_000];

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The page for a login.
    LoginPage,
    /// The login form, with a password that the server has not verified yet.
    FirstLogin,
    /// The login form again, with a password that the server has verified before.
    Login,
    /// Opens an inbox with this many messages.
    Inbox(usize),
    /// Requests the message list of that inbox again, by the cheapest request.
    List(usize),
    /// Opens a message with this many bytes of text.
    Read(usize),
    /// Opens the page for writing a message.
    Compose,
    /// Sends a message with this many bytes of text.
    Send(usize),
    /// Sends a message with a file of this many bytes.
    SendFile(usize),
    /// Fetches a file of this many bytes.
    FetchFile(usize),
}

impl Step {
    /// Whether the step requests a page.
    pub(super) fn is_page(self) -> bool {
        matches!(
            self,
            Step::LoginPage | Step::Inbox(_) | Step::List(_) | Step::Read(_) | Step::Compose
        )
    }
}

/// A step, with its cost at ours and at the peer.
pub(super) struct Found {
    pub(super) step: Step,
    pub(super) ours: Taken,
    pub(super) peers: Taken,
}

/// Boots both guests, with messages in their mailboxes. The guests run until the returned values
/// are dropped. Call this in a thread with its own network namespace.
pub(super) fn boot(beside: &Beside, stop: &Stop) -> Result<[Guest; 2], Failure> {
    let guests =
        [beside.boot(Side::Ours, &[25, 443], stop)?, beside.boot(Side::Peer, &[443], stop)?];
    deliver(SocketAddr::from((Side::Ours.guest(), 25)))?;
    Ok(guests)
}

/// Prepares the measurement of a guest.
pub(super) fn target<'a>(
    beside: &'a Beside,
    side: Side,
    guest: &Guest,
) -> Result<Target<'a>, Failure> {
    let counters = beside.counters(side);
    Target::at(side, SocketAddr::from((side.guest(), 443)), guest.process_id(), counters)
}

/// Delivers messages to our guest by SMTP. The peer's disk already contains the same messages.
fn deliver(service: SocketAddr) -> Result<(), Failure> {
    let mut client = Client::connect(service, "220")?;
    client.command(b"EHLO client.test\r\n", "250")?;
    for account in mailboxes::accounts() {
        let address = account.address();
        for (index, text_bytes) in account.messages.iter().enumerate() {
            client.command(b"MAIL FROM:<charles@client.test>\r\n", "250")?;
            client.command(format!("RCPT TO:<{address}>\r\n").as_bytes(), "250")?;
            client.command(b"DATA\r\n", "354")?;
            let message = mailboxes::message(mailboxes::CHARLES, &address, index, *text_bytes);
            client.command(format!("{message}.\r\n").as_bytes(), "250")?;
        }
    }
    client.command(b"QUIT\r\n", "221")
}

/// All steps.
fn steps() -> impl Iterator<Item = Step> {
    let inboxes =
        INBOXES.into_iter().flat_map(|messages| [Step::Inbox(messages), Step::List(messages)]);
    let files = FILES.into_iter().map(Step::SendFile).chain(FILES.into_iter().map(Step::FetchFile));
    [Step::LoginPage, Step::FirstLogin, Step::Login]
        .into_iter()
        .chain(inboxes)
        .chain(SIZES.map(Step::Read))
        .chain([Step::Compose])
        .chain(SIZES.map(Step::Send))
        .chain(files)
}

/// Measures all chosen steps at our guest alone. `place` belongs to that guest.
pub(super) fn measure_ours(
    repository: &Repository,
    place: &Place,
    is_chosen: impl Fn(Step) -> bool,
    stop: &Stop,
) -> Result<Vec<(Step, Taken)>, Failure> {
    let serving = place.boot(repository, 1, Queues::One)?;
    deliver(service(25))?;
    let target = Target::at(Side::Ours, service(443), serving.process_id(), serving.counters())?;
    let profiler = Profiler::new(repository, "webmail")?;
    let mut found = Vec::new();
    for step in steps().filter(|step| is_chosen(*step)) {
        refuse_if_stopped(stop)?;
        found.push((step, target.take(step, &profiler)?));
    }
    serving.stop()?;
    Ok(found)
}

/// Measures all steps, each at both guests.
pub(super) fn measure(
    repository: &Repository,
    targets: &[Target<'_>; 2],
    stop: &Stop,
) -> Result<Vec<Found>, Failure> {
    let profiler = Profiler::new(repository, "webmail")?;
    let mut found = Vec::new();
    for step in steps() {
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
    fn times(&self) -> usize {
        if self.side == Side::Ours { OUR_REPETITIONS } else { PEER_REPETITIONS }
    }

    fn take(&self, step: Step, profiler: &Profiler) -> Result<Taken, Failure> {
        match step {
            Step::LoginPage => {
                let mut browser = Browser::open(self.address, &self.settings)?;
                self.same(step, self.times(), &mut browser, &[Login::page(self.side)], profiler)
            }
            Step::FirstLogin => self.logins(step, 1, profiler),
            Step::Login => self.logins(step, self.times(), profiler),
            Step::Inbox(messages) => {
                self.see(step, &mailboxes::inbox(messages), Reader::inbox, profiler)
            }
            Step::List(messages) => {
                self.see(step, &mailboxes::inbox(messages), Reader::list, profiler)
            }
            Step::Read(bytes) => self.see(
                step,
                READER,
                |reader| vec![reader.message(mailboxes::number(bytes))],
                profiler,
            ),
            Step::Compose => {
                let mut writer = self.log_in(WRITER)?;
                writer.begin_message()?;
                std::thread::sleep(SETTLE);
                self.count(step, self.times(), profiler, |index| match self.side {
                    Side::Ours => {
                        self.hear(&mut writer.browser, &[Reader::page_for_message()], index)
                    }
                    // When a client begins a message, the peer redirects it from one page to
                    // another.
                    Side::Peer => {
                        let began = Instant::now();
                        writer.begin_message()?;
                        Ok(Heard { to_first_byte: None, time: began.elapsed() })
                    }
                })
            }
            Step::Send(bytes) => self.messages(step, GRACE, bytes, None, profiler),
            Step::SendFile(bytes) => {
                self.messages(step, KEEPER, 1_000, Some(&vec![b'z'; bytes]), profiler)
            }
            Step::FetchFile(bytes) => {
                // The messages of one file size were sent before those of the next size.
                let before = FILES.iter().position(|size| *size == bytes).unwrap_or_default();
                self.see(
                    step,
                    KEEPER,
                    |reader| vec![reader.file(before * self.times() + 1)],
                    profiler,
                )
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
            self.hear(&mut login.browser, &[form], index)
        })
    }

    /// Measures a user that requests the same page again and again.
    fn see(
        &self,
        step: Step,
        name: &str,
        questions: impl Fn(&Reader) -> Vec<Question>,
        profiler: &Profiler,
    ) -> Result<Taken, Failure> {
        let mut reader = self.log_in(name)?;
        let questions = questions(&reader);
        self.same(step, self.times(), &mut reader.browser, &questions, profiler)
    }

    /// Measures messages that a user sends. The requests that prepare them are not counted.
    fn messages(
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
            let begun = writer.begin_message()?;
            all.push(writer.send(&begun, to, text_bytes, file));
        }
        std::thread::sleep(SETTLE);
        self.repeat(step, &mut writer.browser, &all, profiler)
    }
}
