//! What lists of addresses say of a stranger (DNSBL and DNSWL, RFC 5782): those that the
//! configuration names, asked by name servers when the stranger names the first recipient.
//!
//! | he stands on | |
//! |---|---|
//! | one of `dnsbl` | each recipient is refused but the postmaster (554 5.7.1), with the list and what it says |
//! | one of `dnsbl_junk` | what he brings goes to Junk, for that reason |
//! | one of `dnswl` | neither of both |
//!
//! Invariants:
//! - RCPT does not wait for longer than [`PATIENCE`], whatever name servers do; and a list that
//!   does not answer says nothing.
//! - Addresses in 127.0.0.0/8 mean "listed", but for those in 127.255.255.0/24, by which lists say
//!   that they were asked wrongly.
//! - A list that did not answer is not asked for a while ([`QUIET`]), so that no other client waits
//!   for it, or for a place in the queue to name servers.
//! - A client that was not looked up because too many questions wait is deferred, and not let
//!   through unchecked. Each network has a share of those questions (`resolver`), so a client
//!   cannot have others deferred.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use configuration::{Abuse, HostName};
use connections::Caller;
use dns::{Answer, Name, Question, Record, RecordKind, Unanswered};
use machine::{Instant, Micros};
use resolver::{Known, QuestionNumber};

use super::context::Context;
use super::waiting::name_known_at;

/// How long lists may take.
const PATIENCE: Micros = Micros::from_secs(5);
/// How long one that did not answer is not asked.
const QUIET: Micros = Micros::from_secs(60);
/// Characters that are kept of what a list says about an address.
const WORDS_MAX: usize = 200;

/// The lists, and how many strangers are looked up in them.
pub(crate) struct Lists {
    lists: Vec<List>,
    pub(super) searches: usize,
}

struct List {
    name: Name,
    meaning: Meaning,
    asked_again_at: Instant,
}

/// What it means to stand on a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Meaning {
    Refused,
    Suspicious,
    Trusted,
}

/// What is known of where a stranger stands.
pub(super) struct Standing {
    /// What was asked, and is not answered.
    asked: Vec<(QuestionNumber, Inquiry)>,
    /// Lists that could not be asked: too many questions wait. Each answer makes room for one.
    put_off: Vec<Inquiry>,
    until: Instant,
    listings: Vec<Listing>,
    /// Whether a list was not asked because too many questions wait.
    is_limited: bool,
}

/// A question about a stranger, to the list with this index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inquiry {
    /// Whether he stands on it.
    Whether(usize),
    /// Why he does.
    Why(usize),
}

struct Listing {
    list: usize,
    meaning: Meaning,
    /// That he stands there, and what the list says about it.
    reason: String,
}

impl Lists {
    pub(super) fn are_none(&self) -> bool {
        self.lists.is_empty()
    }

    pub(crate) fn new(abuse: &Abuse) -> Lists {
        let of = |names: &[HostName], meaning| -> Vec<List> {
            let names = names.iter().filter_map(|name| Name::parse(name.as_str()).ok());
            names.map(|name| List { name, meaning, asked_again_at: Instant::START }).collect()
        };
        let kinds = [
            of(&abuse.dnswl, Meaning::Trusted),
            of(&abuse.dnsbl, Meaning::Refused),
            of(&abuse.dnsbl_junk, Meaning::Suspicious),
        ];
        Lists { lists: kinds.into_iter().flatten().collect(), searches: 0 }
    }

    fn did_not_answer(&mut self, inquiry: Inquiry, now: Instant) {
        if let Some(list) = self.lists.get_mut(inquiry.list()) {
            list.asked_again_at = now + QUIET;
        }
    }
}

impl Inquiry {
    fn list(self) -> usize {
        let (Inquiry::Whether(list) | Inquiry::Why(list)) = self;
        list
    }
}

impl Standing {
    /// Begins to look a client up, if it is to be.
    pub(super) fn begin(
        caller: Caller,
        lists: &mut Lists,
        cx: &mut Context<'_>,
    ) -> Option<Standing> {
        if !cx.is_judged(caller) || !cx.names.can_be_asked() {
            return None;
        }
        let until = cx.turn.now + PATIENCE;
        let (asked, put_off, listings) = (Vec::new(), Vec::new(), Vec::new());
        let mut standing = Standing { asked, put_off, until, listings, is_limited: false };
        for number in 0..lists.lists.len() {
            standing.ask(Inquiry::Whether(number), caller, lists, cx);
        }
        lists.searches += usize::from(!standing.asked.is_empty());
        Some(standing)
    }

    /// Whether it is known where the client stands. It waits for that no longer than it may.
    pub(super) fn is_known(&self, caller: Caller, cx: &mut Context<'_>) -> bool {
        if self.asked.is_empty() {
            return true;
        }
        let left = self.until.since(cx.turn.now);
        cx.connections.set_deadline(cx.turn.now, caller.connection, Some(left));
        false
    }

    /// This came of a question. Says whether it was the last one.
    ///
    /// Errors: it was about something else, and comes back.
    pub(super) fn name_known(
        &mut self,
        (number, known): (QuestionNumber, Known),
        caller: Caller,
        lists: &mut Lists,
        cx: &mut Context<'_>,
    ) -> Result<bool, Known> {
        let Some(place) = self.asked.iter().position(|(asked, _)| *asked == number) else {
            return Err(known);
        };
        let (_, inquiry) = self.asked.swap_remove(place);
        let makes_room = !matches!(known, Err(Unanswered::Busy));
        match known {
            Ok(answer) => self.learn(inquiry, &answer, (caller, lists, cx)),
            // A client with no other waiting question is refused only if all places are taken.
            Err(Unanswered::Busy) if matches!(inquiry, Inquiry::Whether(_)) => {
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

    /// Nothing waits any more for answers: the rest stays unknown. False: nothing was asked.
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

    /// Whether one of the lists that are trusted names him.
    pub(super) fn is_trusted(&self) -> bool {
        self.listings.iter().any(|listing| listing.meaning == Meaning::Trusted)
    }

    fn ask(&mut self, inquiry: Inquiry, caller: Caller, lists: &Lists, cx: &mut Context<'_>) {
        let Some(list) = lists.lists.get(inquiry.list()) else { return };
        let Ok(name) = Name::in_list(&list.name, caller.address.to_canonical()) else { return };
        if list.asked_again_at > cx.turn.now {
            return;
        }
        let kind = if matches!(inquiry, Inquiry::Whether(_)) {
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
    fn ask_again(&mut self, caller: Caller, lists: &Lists, cx: &mut Context<'_>) {
        let before = self.asked.len();
        while self.asked.len() == before
            && let Some(inquiry) = self.put_off.pop()
        {
            self.ask(inquiry, caller, lists, cx);
        }
    }

    fn learn(
        &mut self,
        inquiry: Inquiry,
        answer: &Answer,
        (caller, lists, cx): (Caller, &Lists, &mut Context<'_>),
    ) {
        let Some(list) = lists.lists.get(inquiry.list()) else { return };
        match inquiry {
            Inquiry::Whether(number) if is_listing(answer) => {
                let meaning = list.meaning;
                let reason =
                    format!("{} is listed by {}", caller.address.to_canonical(), list.name);
                self.listings.push(Listing { list: number, meaning, reason });
                if meaning != Meaning::Trusted {
                    self.ask(Inquiry::Why(number), caller, lists, cx);
                }
            }
            Inquiry::Whether(_) => {}
            Inquiry::Why(number) => {
                let listing = self.listings.iter_mut().find(|listing| listing.list == number);
                if let (Some(listing), Some(words)) = (listing, words(answer)) {
                    listing.reason += &format!(": {words}");
                }
            }
        }
    }

    /// Why no mail is taken from him, if none is.
    pub(super) fn refusal(&self) -> Option<&str> {
        self.reasons(Meaning::Refused).next()
    }

    /// Why what he brings goes to Junk.
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

/// Whether an answer says "listed" (RFC 5782 §2.1), and not that the list was asked wrongly.
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

/// By this some lists say that they were asked too often.
const NOT_ALLOWED_TO_ASK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 255);

/// What a list says about an address, as far as it can be said on.
fn words(answer: &Answer) -> Option<String> {
    let text = answer.records.iter().find_map(|record| match record {
        Record::Text(text) => Some(text),
        _ => None,
    })?;
    let visible = text.iter().filter(|byte| byte.is_ascii_graphic() || **byte == b' ');
    Some(visible.take(WORDS_MAX).map(|byte| char::from(*byte)).collect())
}
