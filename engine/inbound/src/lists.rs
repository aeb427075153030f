//! Lists of addresses (DNSBL and DNSWL, RFC 5782), which the configuration names. When an external
//! client names its first recipient, name servers are asked whether the client is on the lists.
//!
//! | the client is on | effect |
//! |---|---|
//! | a list of `dnsbl` | all recipients except `postmaster` and `abuse` are refused (554 5.7.1) |
//! | a list of `dnsbl_junk` | the client's mail goes to Junk, with the listing as the reason |
//! | a list of `dnswl` | a listing in the other two kinds of lists has no effect |
//!
//! The 554 reply and the reason for Junk name the list. They also have the list's text about the
//! client (a TXT record), if there is one.
//!
//! Invariants:
//! - RCPT waits at most [`PATIENCE`] for name servers. A list that does not answer has no effect.
//! - Addresses in 127.0.0.0/8 mean "listed", except 127.255.255.0/24 and 127.0.0.255. With these
//!   addresses, a list says that it refuses the question.
//! - A list that did not answer is not asked for the time [`QUIET`]. So no other client waits for
//!   that list, or for a place in the queue to name servers.
//! - If too many questions wait, a client that cannot be looked up is deferred, and not accepted
//!   unchecked. Each network has a share of those questions (`resolver`), so a client cannot cause
//!   the deferral of others.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use configuration::{Abuse, HostName};
use connections::Caller;
use dns::{Answer, Name, Question, Record, RecordKind, Unanswered};
use machine::{Instant, Micros};
use resolver::{Known, QuestionNumber};

use super::context::SmtpContext;
use super::waiting::name_known_at;

/// The longest wait for the answers of all lists.
const PATIENCE: Micros = Micros::from_secs(5);
/// The time for which a list that did not answer is not asked.
const QUIET: Micros = Micros::from_secs(60);
/// The most characters that are kept of a list's text.
const WORDS_MAX: usize = 200;

/// The lists, and the number of clients that are being looked up.
pub(crate) struct Lists {
    lists: Vec<DnsList>,
    pub(super) searches: usize,
}

struct DnsList {
    name: Name,
    meaning: Meaning,
    asked_again_at: Instant,
}

/// The meaning of a listing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    Refused,
    Suspicious,
    Trusted,
}

/// The listings of a client that are known so far.
pub(super) struct Listings {
    /// The questions that are not answered.
    asked: Vec<(QuestionNumber, ListQuery)>,
    /// The questions that could not be asked because too many wait. After each answer one of them
    /// is asked.
    put_off: Vec<ListQuery>,
    until: Instant,
    listings: Vec<Listing>,
    /// Whether a list was not asked because too many questions wait.
    is_limited: bool,
}

/// A question about a client, to the list with this index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ListQuery {
    /// Whether the client is listed.
    Whether(usize),
    /// The list's text about a listed client.
    Why(usize),
}

struct Listing {
    list: usize,
    meaning: Meaning,
    /// A sentence which says that the client is listed, with the list's text.
    reason: String,
}

impl Lists {
    /// Whether no lists are configured.
    pub(super) fn are_none(&self) -> bool {
        self.lists.is_empty()
    }

    pub(crate) fn new(abuse: &Abuse) -> Lists {
        let of = |names: &[HostName], meaning| -> Vec<DnsList> {
            let names = names.iter().filter_map(|name| Name::parse(name.as_str()).ok());
            names.map(|name| DnsList { name, meaning, asked_again_at: Instant::START }).collect()
        };
        let kinds = [
            of(&abuse.dnswl, Meaning::Trusted),
            of(&abuse.dnsbl, Meaning::Refused),
            of(&abuse.dnsbl_junk, Meaning::Suspicious),
        ];
        Lists { lists: kinds.into_iter().flatten().collect(), searches: 0 }
    }

    fn did_not_answer(&mut self, inquiry: ListQuery, now: Instant) {
        if let Some(list) = self.lists.get_mut(inquiry.list()) {
            list.asked_again_at = now + QUIET;
        }
    }
}

impl ListQuery {
    fn list(self) -> usize {
        let (ListQuery::Whether(list) | ListQuery::Why(list)) = self;
        list
    }
}

impl Listings {
    /// Begins to look a client up, if the rules apply to it.
    pub(super) fn begin(
        caller: Caller,
        lists: &mut Lists,
        cx: &mut SmtpContext<'_>,
    ) -> Option<Listings> {
        if !cx.inbound_policy_applies(caller) || !cx.names.can_be_asked() {
            return None;
        }
        let until = cx.turn.now + PATIENCE;
        let (asked, put_off, listings) = (Vec::new(), Vec::new(), Vec::new());
        let mut listings_so_far = Listings { asked, put_off, until, listings, is_limited: false };
        for number in 0..lists.lists.len() {
            listings_so_far.ask(ListQuery::Whether(number), caller, lists, cx);
        }
        lists.searches += usize::from(!listings_so_far.asked.is_empty());
        Some(listings_so_far)
    }

    /// Whether the lookup is complete. If not, sets the deadline of the connection to the end of
    /// the lookup.
    pub(super) fn is_known(&self, caller: Caller, cx: &mut SmtpContext<'_>) -> bool {
        if self.asked.is_empty() {
            return true;
        }
        let left = self.until.since(cx.turn.now);
        cx.connections.set_deadline(cx.turn.now, caller.connection, Some(left));
        false
    }

    /// Takes an answer of name servers. Returns whether all questions are answered.
    ///
    /// Errors: the answer belongs to another question.
    pub(super) fn name_known(
        &mut self,
        (number, known): (QuestionNumber, Known),
        caller: Caller,
        lists: &mut Lists,
        cx: &mut SmtpContext<'_>,
    ) -> Result<bool, Known> {
        let Some(place) = self.asked.iter().position(|(asked, _)| *asked == number) else {
            return Err(known);
        };
        let (_, inquiry) = self.asked.swap_remove(place);
        let makes_room = !matches!(known, Err(Unanswered::Busy));
        match known {
            Ok(answer) => self.learn(inquiry, &answer, (caller, lists, cx)),
            // A question that is put off is asked again after the next answer about this client. If
            // no other question of the client waits for an answer, the lookup stays incomplete.
            Err(Unanswered::Busy) if matches!(inquiry, ListQuery::Whether(_)) => {
                self.put_off.push(inquiry);
                self.is_limited |= self.asked.is_empty();
            }
            Err(Unanswered::Busy | Unanswered::NoServer) => {}
            Err(_) => lists.did_not_answer(inquiry, cx.turn.now),
        }
        if makes_room {
            self.ask_again(caller, lists, cx);
        }
        let is_last = self.asked.is_empty();
        lists.searches -= usize::from(is_last);
        Ok(is_last)
    }

    /// Ends the lookup: listings without an answer stay unknown. Returns false if no question
    /// waits.
    pub(super) fn forget(&mut self, lists: &mut Lists, now: Instant) -> bool {
        if self.asked.is_empty() {
            return false;
        }
        self.is_limited |= !self.put_off.is_empty();
        for (_, inquiry) in self.asked.drain(..) {
            if self.until <= now {
                lists.did_not_answer(inquiry, now);
            }
        }
        lists.searches -= 1;
        true
    }

    /// Whether the client was not looked up because of a limit of ours, and no list trusts it.
    pub(super) fn is_not_looked_up(&self) -> bool {
        self.is_limited && !self.is_trusted()
    }

    /// Whether a trusted list names the client.
    pub(super) fn is_trusted(&self) -> bool {
        self.listings.iter().any(|listing| listing.meaning == Meaning::Trusted)
    }

    fn ask(&mut self, inquiry: ListQuery, caller: Caller, lists: &Lists, cx: &mut SmtpContext<'_>) {
        let Some(list) = lists.lists.get(inquiry.list()) else { return };
        let Ok(name) = Name::in_list(&list.name, caller.address.to_canonical()) else { return };
        if list.asked_again_at > cx.turn.now {
            return;
        }
        let kind = if matches!(inquiry, ListQuery::Whether(_)) {
            RecordKind::Ipv4
        } else {
            RecordKind::Text
        };
        let number = cx.names.ask_about(
            caller.address,
            name_known_at(caller.connection.0),
            Question { name, kind },
        );
        self.asked.push((number, inquiry));
    }

    /// Asks one of the lists that could not be asked.
    fn ask_again(&mut self, caller: Caller, lists: &Lists, cx: &mut SmtpContext<'_>) {
        let before = self.asked.len();
        while self.asked.len() == before
            && let Some(inquiry) = self.put_off.pop()
        {
            self.ask(inquiry, caller, lists, cx);
        }
    }

    fn learn(
        &mut self,
        inquiry: ListQuery,
        answer: &Answer,
        (caller, lists, cx): (Caller, &Lists, &mut SmtpContext<'_>),
    ) {
        let Some(list) = lists.lists.get(inquiry.list()) else { return };
        match inquiry {
            ListQuery::Whether(number) if is_listing(answer) => {
                let meaning = list.meaning;
                let reason =
                    format!("{} is listed by {}", caller.address.to_canonical(), list.name);
                self.listings.push(Listing { list: number, meaning, reason });
                if meaning != Meaning::Trusted {
                    self.ask(ListQuery::Why(number), caller, lists, cx);
                }
            }
            ListQuery::Whether(_) => {}
            ListQuery::Why(number) => {
                let listing = self.listings.iter_mut().find(|listing| listing.list == number);
                if let (Some(listing), Some(words)) = (listing, words(answer)) {
                    listing.reason += &format!(": {words}");
                }
            }
        }
    }

    /// The reason why no mail of the client is accepted. `None`: mail is accepted.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.reasons(Meaning::Refused).next()
    }

    /// Why the client's mail goes to Junk.
    pub(super) fn suspicions(&self) -> impl Iterator<Item = &str> {
        self.reasons(Meaning::Suspicious)
    }

    fn reasons(&self, meaning: Meaning) -> impl Iterator<Item = &str> {
        let is_trusted = self.is_trusted();
        let listings =
            self.listings.iter().filter(move |listing| listing.meaning == meaning && !is_trusted);
        listings.map(|listing| listing.reason.as_str())
    }
}

/// Whether an answer means "listed" (RFC 5782 section 2.1). Some answers mean that the list refuses
/// the question.
fn is_listing(answer: &Answer) -> bool {
    answer.records.iter().any(|record| match record {
        Record::Address(IpAddr::V4(address)) => {
            address.is_loopback()
                && !matches!(address.octets(), [127, 255, 255, _])
                && *address != NOT_ALLOWED_TO_ASK
        }
        _ => false,
    })
}

/// The address by which some lists say that they were asked too often.
const NOT_ALLOWED_TO_ASK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 255);

/// A list's text about an address: its printable characters.
fn words(answer: &Answer) -> Option<String> {
    let text = answer.records.iter().find_map(|record| match record {
        Record::Text(text) => Some(text),
        _ => None,
    })?;
    let visible = text.iter().filter(|byte| byte.is_ascii_graphic() || **byte == b' ');
    Some(visible.take(WORDS_MAX).map(|byte| char::from(*byte)).collect())
}
