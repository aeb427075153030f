//! The queue of all cores, for an administrator: shows it, or changes entries. Each core answers
//! for the entries that it owns, and this job merges the answers.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use machine::UnixTime;
use outbound::{
    Handled, LINES, QueueAction, QueueAsked, QueueCounts, QueueLine, QueueState, QueueTold, Which,
};

use crate::Page;
use crate::answer;
use crate::context::JobContext;
use crate::flash::FlashMessage;
use crate::layout::{AuthenticatedClient, PageLayout, display_size};
use crate::moments::Moment;
use crate::queue::{QueuePage, QueueRow, past};
use crate::step::{JobProgress, why};
use crate::tls_counts::TlsRow;

/// A question to the cores.
#[derive(Debug)]
pub(crate) struct QueueJob {
    asked: QueueAsked,
    /// The redirect after a change.
    next_page: String,
    is_asked: bool,
}

impl QueueJob {
    pub(super) fn new(asked: QueueAsked, next_page: String) -> QueueJob {
        QueueJob { asked, next_page, is_asked: false }
    }

    /// The handler is woken once, when all cores have answered.
    pub(super) fn ask(
        &mut self,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if !core::mem::replace(&mut self.is_asked, true) {
            cx.ask_queue(&self.asked);
            *under_way += 1;
        }
        JobProgress::Waiting
    }

    pub(super) fn done(
        &mut self,
        client: &AuthenticatedClient,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        let answers = cx.take_queue_answers();
        match &self.asked {
            QueueAsked::Look(_) => JobProgress::Reply(self.page(client, answers, cx)),
            QueueAsked::Handle(handling, which) => {
                JobProgress::Redirect(self.next_page.clone(), flash_of(*handling, which, answers))
            }
        }
    }

    fn page(
        &self,
        client: &AuthenticatedClient,
        answers: Vec<QueueTold>,
        cx: &JobContext<'_, '_>,
    ) -> Reply {
        let (mut lines, mut counts, mut tls, mut is_busy) =
            (Vec::new(), QueueCounts::default(), Vec::new(), false);
        for answer in answers {
            match answer {
                QueueTold::Lines(own, count, own_tls) => {
                    lines.extend(own);
                    tls.extend(own_tls);
                    counts.entries += count.entries;
                    counts.held += count.held;
                    counts.under_way += count.under_way;
                }
                QueueTold::Handled(_) | QueueTold::Busy => is_busy = true,
            }
        }
        if is_busy {
            return answer::refused(store::Refusal::Busy, why(store::Refusal::Busy));
        }
        lines.sort_by_key(|line: &QueueLine| line.posted);
        let is_more = lines.len() > LINES;
        lines.truncate(LINES);
        let last =
            lines.last().filter(|_| is_more).map(|line| Page::Queue(Some(line.posted)).to_string());
        let now = cx.now();
        let rows: Vec<QueueRow> = lines.into_iter().map(|line| QueueRow::of(line, now)).collect();
        let after = if let QueueAsked::Look(after) = &self.asked { *after } else { None };
        let layout = PageLayout::of(client, cx.store(), None);
        answer::page(&QueuePage {
            frame: layout.frame(client, &layout.links()),
            counts: &in_words(counts),
            here: &Page::Queue(after).to_string(),
            rows: &rows,
            is_later: after.is_some(),
            next: last.as_deref(),
            tls: &TlsRow::all(tls, now),
        })
    }
}

/// The flash message about a change.
fn flash_of(handling: QueueAction, which: &Which, answers: Vec<QueueTold>) -> FlashMessage {
    let mut all = Handled::default();
    for answer in answers {
        match answer {
            QueueTold::Handled(own) => {
                all.done += own.done;
                all.under_way += own.under_way;
                all.refused = all.refused.or(own.refused);
            }
            QueueTold::Busy | QueueTold::Lines(..) => {
                all.refused = all.refused.or(Some(store::Refusal::Busy))
            }
        }
    }
    let done = match (which, all.done) {
        (Which::One(_), 1) => format!("One letter: {}.", past(handling, 1)),
        (Which::One(_), _) => {
            "Nothing was done with the letter: it is not there any more, or as it was to be."
                .to_string()
        }
        (Which::Domain(domain), 0) => {
            format!("Nothing for {domain} waits with which that could be done.")
        }
        (Which::Domain(domain), count) => {
            format!("Letters for {domain}: {count} {}.", past(handling, count))
        }
    };
    let under_way = match all.under_way {
        0 => "",
        _ => " What has just been said to its host was left alone: look again in a moment.",
    };
    if let Some(refusal) = all.refused {
        return FlashMessage::failure(&format!("{done}{under_way} For the rest: {}", why(refusal)));
    }
    let text = format!("{done}{under_way}");
    if all.done > 0 { FlashMessage::success(&text) } else { FlashMessage::failure(&text) }
}

/// How many entries wait, as text.
fn in_words(counts: QueueCounts) -> String {
    let QueueCounts { entries, held, under_way } = counts;
    let waiting = if entries == 1 { "letter waits" } else { "letters wait" };
    format!(
        "{entries} {waiting} to leave: {held} held, {under_way} under way. By outbox, the oldest first; times are UTC."
    )
}

impl QueueRow {
    fn of(line: QueueLine, now: UnixTime) -> QueueRow {
        let now = Moment::of(now);
        let is_readable = line.recipients.is_some();
        let all = line.recipients.unwrap_or_default();
        let domain =
            all.first().and_then(|address| address.rsplit_once('@')).map_or("", |(_, name)| name);
        let tries = match line.tries {
            0 => "not tried yet".to_string(),
            1 => "tried once".to_string(),
            tries => format!("tried {tries} times"),
        };
        let state = match line.state {
            QueueState::Next => "Is next".to_string(),
            QueueState::Waits(until) => {
                format!("Next try: {}", Moment::of(until).to_the_minute(&now))
            }
            QueueState::Behind => format!("Waits for others at {domain}"),
            QueueState::UnderWay => "Under way".to_string(),
            QueueState::Held => "Held".to_string(),
            QueueState::LeftAlone => "Cannot be sent".to_string(),
        };
        let recipients = match &all[..] {
            _ if !is_readable => "Somebody whom nobody knows any more".to_string(),
            [] => "Nobody: all have it, and who sent it is to hear that".to_string(),
            all => all.join(", "),
        };
        let sender = match line.sender {
            sender if !is_readable => format!("the outbox of {sender}"),
            sender if sender.is_empty() => "nobody, as a report".to_string(),
            sender => sender,
        };
        let (since, size) =
            (Moment::of(line.since).in_few_words(&now), display_size(line.octets.into()));
        QueueRow {
            key: line.posted.to_string(),
            state,
            facts: format!("since {since}, {size}, {tries}"),
            last_result: line
                .said
                .map_or_else(String::new, |said| format!("The last time: {said}.")),
            is_held: line.state == QueueState::Held,
            is_under_way: line.state == QueueState::UnderWay,
            recipients,
            is_readable,
            is_left_alone: line.state == QueueState::LeftAlone,
            sender,
        }
    }
}
