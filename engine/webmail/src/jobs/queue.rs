//! Shows the queue of all cores to an administrator, or changes its entries. Each core answers for
//! the entries that it owns, and this job merges the answers.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use outbound::{
    Handled, LINES, QueueAction, QueueCounts, QueueEntryId, QueueLine, QueueQuery, QueueReply,
    QueueState, Which,
};

use crate::WebPage;
use crate::answer;
use crate::context::JobContext;
use crate::flash::FlashMessage;
use crate::layout::{AuthenticatedClient, PageLayout, display_size};
use crate::moments::LocalClock;
use crate::queue::{QueuePage, QueueRow, past};
use crate::step::{JobProgress, why};
use crate::tls_counts::TlsRow;

/// A question to the cores.
#[derive(Debug)]
pub(crate) struct QueueJob {
    asked: QueueQuery,
    /// The path of the redirect after a change.
    next_page: String,
    is_asked: bool,
}

impl QueueJob {
    pub(super) fn new(asked: QueueQuery, next_page: String) -> QueueJob {
        QueueJob { asked, next_page, is_asked: false }
    }

    /// The job that cancels the message of this entry for its sender.
    pub(super) fn cancel(entry: QueueEntryId, next_page: String) -> QueueJob {
        let asked = QueueQuery::Handle(QueueAction::Delete, Which::Message(entry));
        QueueJob { asked, next_page, is_asked: false }
    }

    /// Sends the question to the cores. The handler is woken once, when all cores have answered.
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
            QueueQuery::Look(_) => JobProgress::Reply(self.page(client, answers, cx)),
            QueueQuery::Handle(handling, which) => {
                let flash = flash_of(*handling, which, answers);
                JobProgress::Redirect(self.next_page.clone(), flash)
            }
        }
    }

    fn page(
        &self,
        client: &AuthenticatedClient,
        answers: Vec<QueueReply>,
        cx: &mut JobContext<'_, '_>,
    ) -> Reply {
        let (mut lines, mut counts, mut tls, mut is_busy) =
            (Vec::new(), QueueCounts::default(), Vec::new(), false);
        for answer in answers {
            match answer {
                QueueReply::Lines(own, count, own_tls) => {
                    lines.extend(own);
                    tls.extend(own_tls);
                    counts.entries += count.entries;
                    counts.held += count.held;
                    counts.under_way += count.under_way;
                }
                QueueReply::Handled(_) | QueueReply::Busy => is_busy = true,
            }
        }
        if is_busy {
            return answer::refused(store::Refusal::Busy, why(store::Refusal::Busy));
        }
        lines.sort_by_key(|line: &QueueLine| line.posted);
        let is_more = lines.len() > LINES;
        lines.truncate(LINES);
        let last = lines
            .last()
            .filter(|_| is_more)
            .map(|line| WebPage::Queue(Some(line.posted)).to_string());
        let clock = LocalClock { now: cx.now(), zone: cx.zone(client.account) };
        let rows: Vec<QueueRow> =
            lines.into_iter().map(|line| QueueRow::of(line, &clock)).collect();
        let after = if let QueueQuery::Look(after) = &self.asked { *after } else { None };
        let layout = PageLayout::of(client, cx.store(), None);
        answer::page(&QueuePage {
            frame: layout.frame(client, &layout.links()),
            counts: &in_words(counts),
            here: &WebPage::Queue(after).to_string(),
            rows: &rows,
            is_later: after.is_some(),
            next: last.as_deref(),
            tls: &TlsRow::all(tls, clock.now),
        })
    }
}

/// The flash message about a change.
fn flash_of(handling: QueueAction, which: &Which, answers: Vec<QueueReply>) -> FlashMessage {
    let mut all = Handled::default();
    for answer in answers {
        match answer {
            QueueReply::Handled(own) => {
                all.done += own.done;
                all.under_way += own.under_way;
                all.refused = all.refused.or(own.refused);
            }
            QueueReply::Busy | QueueReply::Lines(..) => {
                all.refused = all.refused.or(Some(store::Refusal::Busy))
            }
        }
    }
    let done = match (which, all.done) {
        (Which::Message(_), 1..) if all.under_way > 0 => {
            "Sending canceled for some recipients.".to_string()
        }
        (Which::Message(_), 1..) => {
            "Sending canceled. Recipients that have the message already keep it.".to_string()
        }
        (Which::Message(_), 0) if all.under_way > 0 => "Nothing was changed.".to_string(),
        (Which::Message(_), 0) => {
            "Nothing was changed: this is no message of yours that waits to be sent.".to_string()
        }
        (Which::One(_), 1) => format!("The message was {}.", past(handling, 1)),
        (Which::One(_), _) if all.under_way > 0 => "Nothing was changed.".to_string(),
        (Which::One(_), _) => {
            "Nothing was changed: the message has left the queue, or is already in that state."
                .to_string()
        }
        (Which::Domain(domain), 0) => {
            format!("The queue has no messages for {domain} to which this applies.")
        }
        (Which::Domain(domain), 1) => {
            format!("1 message for {domain} was {}.", past(handling, 1))
        }
        (Which::Domain(domain), count) => {
            format!("{count} messages for {domain} were {}.", past(handling, count))
        }
    };
    let under_way = match (which, all.under_way) {
        (_, 0) => "",
        (Which::Message(_), _) => {
            " The message is just being sent to recipients: check again in a moment."
        }
        _ => {
            " Messages whose delivery is just being completed were left unchanged: check again in a moment."
        }
    };
    if let Some(refusal) = all.refused {
        let why = why(refusal);
        return FlashMessage::failure(&match all.done {
            0 => format!("{why}{under_way}"),
            _ => format!("{done}{under_way} The rest failed: {why}"),
        });
    }
    let text = format!("{done}{under_way}");
    let is_done = match which {
        Which::Message(_) => all.done > 0 && all.under_way == 0,
        Which::One(_) | Which::Domain(_) => all.done > 0,
    };
    if is_done { FlashMessage::success(&text) } else { FlashMessage::failure(&text) }
}

/// The numbers of entries, as text.
fn in_words(counts: QueueCounts) -> String {
    let QueueCounts { entries, held, under_way } = counts;
    let messages = if entries == 1 { "message" } else { "messages" };
    format!(
        "{entries} {messages} in the queue: {held} held, {under_way} being sent. Grouped by outbox, oldest first."
    )
}

impl QueueRow {
    fn of(line: QueueLine, clock: &LocalClock) -> QueueRow {
        let now = clock.moment(clock.now);
        let is_readable = line.recipients.is_some();
        let all = line.recipients.unwrap_or_default();
        let domain =
            all.first().and_then(|address| address.rsplit_once('@')).map_or("", |(_, name)| name);
        let tries = match line.tries {
            0 => "not tried since startup".to_string(),
            1 => "1 attempt since startup".to_string(),
            tries => format!("{tries} attempts since startup"),
        };
        let state = match line.state {
            QueueState::Next => "Next to be sent".to_string(),
            QueueState::Waits(until) => {
                format!("Next attempt: {}", clock.moment(until).to_the_minute(&now))
            }
            QueueState::Behind => format!("Waiting behind other messages for {domain}"),
            QueueState::UnderWay => "Sending".to_string(),
            QueueState::Held => "Held".to_string(),
            QueueState::LeftAlone => "Cannot be sent".to_string(),
        };
        let recipients = match &all[..] {
            _ if !is_readable => "Unknown recipients".to_string(),
            [] => "No recipients left: a report to the sender is due".to_string(),
            all => all.join(", "),
        };
        let sender = match line.sender {
            sender if !is_readable => format!("the outbox of {sender}"),
            sender if sender.is_empty() => "an empty sender (bounce or report)".to_string(),
            sender => sender,
        };
        let (since, size) =
            (clock.moment(line.since).in_few_words(&now), display_size(line.octets.into()));
        QueueRow {
            key: line.posted.to_string(),
            state,
            facts: format!("queued since {since}, {size}, {tries}"),
            last_result: line
                .last_result
                .map_or_else(String::new, |result| format!("Last attempt: {result}.")),
            is_held: line.state == QueueState::Held,
            is_under_way: line.state == QueueState::UnderWay,
            recipients,
            is_readable,
            is_left_alone: line.state == QueueState::LeftAlone,
            sender,
        }
    }
}
