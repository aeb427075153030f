//! `mailbox`: a mailbox of 200,000 messages, beside one of 50 (one page) and one of 20. It measures
//! the cost of listing, reading, searching and filing in each, and of the machine's start.
//!
//! To fill the mailboxes, the engine runs as a process and receives the messages by SMTP. The
//! measured machine is a guest in QEMU, with the same disk.

use super::browser::Question;
use super::reader::Reader;
use super::target::{SETTLE, Taken, Target};
use crate::at_tap::{Equipment, Place, Queues, service};
use crate::beside::Side;
use crate::beside::mailboxes::{self, HASH};
use crate::filling::{Messages, SESSIONS, Start, fill};
use crate::network::enter;
use crate::profile::Profiler;
use crate::report::{Report, Row};
use crate::workplace::refuse_if_stopped;
use host::{Failure, Repository, Stop, remark};

/// The number of messages in the large mailbox.
const MANY: usize = 200_000;
/// The number of messages on a page of a mailbox, and in the middle-sized mailbox.
const FIFTY: usize = 50;
/// The number of messages in the small mailbox.
const FEW: usize = 20;

const MEMORY_MIB: u32 = 256;
/// The size of the disk. A message takes a page of 4 KiB.
const DISK_BYTES: u64 = 2 << 30;
/// The number of repetitions of each action.
const TIMES: usize = 12;
/// A word that no message contains.
const NOWHERE: &str = "nowhere";
/// A word that all messages contain.
const EVERYWHERE: &str = "engine";

/// An action in a mailbox. Its cost is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MailboxAction {
    /// Lists the page with the newest messages.
    Newest,
    /// Lists a page that begins in the middle and continues with older messages.
    Middle,
    /// Lists a page that begins in the middle and continues with newer messages.
    MiddleUpwards,
    /// Lists the page with the oldest messages.
    Oldest,
    /// Reads the newest message.
    ReadNewest,
    /// Reads the oldest message.
    ReadOldest,
    /// Searches for a word that all messages contain. The search ends when its first page is full.
    SearchEverywhere,
    /// Searches for a word that no message contains. The search examines as many messages as it may
    /// for one page of results, and finds none.
    SearchNowhere,
    /// Gives a message in the middle a star.
    Star,
    /// Archives a message near the middle, another one in each repetition.
    Archive,
}

impl MailboxAction {
    const ALL: [MailboxAction; 10] = [
        MailboxAction::Newest,
        MailboxAction::Middle,
        MailboxAction::MiddleUpwards,
        MailboxAction::Oldest,
        MailboxAction::ReadNewest,
        MailboxAction::ReadOldest,
        MailboxAction::SearchEverywhere,
        MailboxAction::SearchNowhere,
        MailboxAction::Star,
        MailboxAction::Archive,
    ];

    fn name(self) -> &'static str {
        match self {
            MailboxAction::Newest => "the newest are listed",
            MailboxAction::Middle => "those from the middle on are listed",
            MailboxAction::MiddleUpwards => "those up to the middle are listed",
            MailboxAction::Oldest => "the oldest are listed",
            MailboxAction::ReadNewest => "the newest is read",
            MailboxAction::ReadOldest => "the oldest is read",
            MailboxAction::SearchEverywhere => "a search finds every message",
            MailboxAction::SearchNowhere => "a search finds nothing on its first page",
            MailboxAction::Star => "a message gets a star",
            MailboxAction::Archive => "a message is archived",
        }
    }

    /// Whether the action exists in a mailbox of this size. A mailbox of one page has no middle.
    fn exists_in(self, messages: usize) -> bool {
        messages > FIFTY
            || !matches!(
                self,
                MailboxAction::Middle | MailboxAction::MiddleUpwards | MailboxAction::Oldest
            )
    }

    /// The requests of the browser, for each repetition.
    fn questions(
        self,
        reader: &mut Reader,
        messages: usize,
    ) -> Result<Vec<Vec<Question>>, Failure> {
        let page = |target: String| Question::get(target, "Notes on the engine");
        let same = match self {
            MailboxAction::Newest => page("/mail/box/1".into()),
            MailboxAction::Middle => {
                page(format!("/mail/box/1?before={}", reader.place(messages / 2)?))
            }
            MailboxAction::MiddleUpwards => {
                page(format!("/mail/box/1?after={}", reader.place(messages / 2)?))
            }
            MailboxAction::Oldest => {
                page(format!("/mail/box/1?before={}", reader.place(FIFTY + 1)?))
            }
            MailboxAction::ReadNewest => reader.message(messages),
            MailboxAction::ReadOldest => reader.message(1),
            MailboxAction::SearchEverywhere => page(format!("/mail/search?q={EVERYWHERE}")),
            MailboxAction::SearchNowhere => {
                Question::get(format!("/mail/search?q={NOWHERE}"), "0 results")
            }
            MailboxAction::Star => reader.act(&[("star", &key(messages / 2))]),
            MailboxAction::Archive => {
                let first = (messages - TIMES) / 2;
                return Ok((0..TIMES)
                    .map(|time| vec![reader.act(&[("do", "archive"), ("key", &key(first + time))])])
                    .collect());
            }
        };
        Ok(vec![vec![same]; TIMES])
    }
}

fn key(number: usize) -> String {
    format!("1.{number}")
}

/// The cost of an action in a mailbox of this many messages.
struct Found {
    action: MailboxAction,
    messages: usize,
    taken: Taken,
}

struct All {
    /// The costs of a start with the two small mailboxes on the disk, and with all three.
    starts: [Start; 2],
    found: Vec<Found>,
}

pub(crate) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let users = [FEW, FIFTY, MANY].map(|messages| {
        let address = mailboxes::address(&mailboxes::inbox(messages));
        format!("[[user]]\naddress = \"{address}\"\npassword_hash = \"{HASH}\"\n")
    });
    let equipment = Equipment {
        memory_mib: MEMORY_MIB,
        disk_bytes: DISK_BYTES,
        users: users.concat(),
        network: "",
        signing_keys: &[],
    };
    let place = Place::with(repository, "mailbox", equipment, stop)?;
    // The measurement runs in a separate thread, because the thread enters a new network namespace
    // and cannot leave it. The programs that the thread starts end with the thread (`host::hold`).
    let measuring =
        std::thread::scope(|scope| scope.spawn(|| measure(repository, &place, stop)).join());
    let all = measuring.map_err(|_| Failure::broke("the bench panicked"))??;
    Ok(Report {
        machine: format!(
            "QEMU, TCG, q35, one core, {MEMORY_MIB} MiB, virtio-net on a tap, over TLS"
        ),
        rows: rows(&all),
        note: "Lower is better. Each figure for 200,000 messages is beside the figure for 50 messages (one page), and above the figure for 20 messages. A page of older messages is beside the newest page, and a start is beside a start with 70 messages. \
               A search without a result examines 2,000 messages for a page. The page says so, and has a link to continue the search. Guest instructions are repeatable on any host; ms are the times that the browser measures; the guest is emulated. Where our instructions went: target/bench/mailbox-*.profile.",
        figure: None,
    })
}

fn measure(repository: &Repository, place: &Place, stop: &Stop) -> Result<All, Failure> {
    enter()?;
    fill(place, &[FEW, FIFTY].map(messages), stop)?;
    let few = Start::measure(repository, place)?;
    fill(place, &[messages(MANY)], stop)?;
    let many = Start::measure(repository, place)?;
    let serving = place.boot(repository, 1, Queues::One)?;
    let target = Target::at(Side::Ours, service(443), serving.process_id(), serving.counters())?;
    let profiler = Profiler::new(repository, "mailbox")?;
    let mut found = Vec::new();
    for action in MailboxAction::ALL {
        for messages in
            [FEW, FIFTY, MANY].into_iter().filter(|messages| action.exists_in(*messages))
        {
            refuse_if_stopped(stop)?;
            let mut reader = target.log_in(&mailboxes::inbox(messages))?;
            let questions = action.questions(&mut reader, messages)?;
            std::thread::sleep(SETTLE);
            let taken =
                target.repeat((action, messages), &mut reader.browser, &questions, &profiler)?;
            remark(format_args!(
                "{action:?} of {messages}: {:.0} instructions, {:.1} ms",
                taken.instructions, taken.ms
            ));
            found.push(Found { action, messages, taken });
        }
    }
    serving.stop()?;
    Ok(All { starts: [few, many], found })
}

/// The messages for a mailbox of this size.
fn messages(count: usize) -> Messages {
    let to = mailboxes::address(&mailboxes::inbox(count));
    let (server, from) = (service(25), mailboxes::CHARLES.into());
    Messages { server, sessions: SESSIONS, login: String::new(), from, to: vec![to], count }
}

fn rows(all: &All) -> Vec<Row> {
    const FEW_MESSAGES: &str = "70 messages";
    const PAGE: &str = "50 messages";
    let [few, many] = &all.starts;
    let case = "200,000 messages: start to ready";
    let mut rows = vec![
        Row::alone(case, "guest instructions", many.instructions).beside(
            FEW_MESSAGES,
            few.instructions,
            None,
        ),
        Row::alone(case, "ms, emulated", many.ms).beside(FEW_MESSAGES, few.ms, None),
        Row::alone(case, "MiB of the host's memory after the start", many.mib).beside(
            FEW_MESSAGES,
            few.mib,
            None,
        ),
        Row::alone(
            case,
            "bytes of memory for a message",
            (many.mib - few.mib) * 1_048_576.0 / MANY as f64,
        ),
    ];
    let taken = |action, messages| {
        all.found
            .iter()
            .find(|one| (one.action, one.messages) == (action, messages))
            .map(|one| &one.taken)
    };
    for action in MailboxAction::ALL {
        let beside = if action.exists_in(FIFTY) { action } else { MailboxAction::Newest };
        let (Some(many), Some(page)) = (taken(action, MANY), taken(beside, FIFTY)) else {
            continue;
        };
        let case = format!("200,000 messages: {}", action.name());
        rows.push(Row::alone(case.clone(), "guest instructions", many.instructions).beside(
            PAGE,
            page.instructions,
            None,
        ));
        rows.push(Row::alone(case, "ms", many.ms).beside(PAGE, page.ms, None));
        if let Some(few) = taken(action, FEW) {
            rows.push(Row::alone(
                format!("20 messages: {}", action.name()),
                "guest instructions",
                few.instructions,
            ));
        }
    }
    rows
}
