//! Reports for who sent a letter: that somebody does not get it, or that it takes long.
//!
//! That somebody does not get it a report says of one recipient: it comes once because it has an origin of its own, and so it says one thing. That it takes long one report says of all
//! whom an entry stands for and who have not got it. Either comes into the inbox of the account that sent the letter, whatever the letter's reverse
//! path is, which is one of its addresses.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use dns::Name;
use machine::UnixTime;
use relay::report::{self, Fate, Kind, Report};
use relay::route::Unroutable;
use relay::{Enhanced, Reason, schedule};
use store::{MessageInfo, Refusal};

use crate::common::Common;

use super::courier::{Courier, Hands, bits};
use super::entry;

/// Why somebody does not get it.
#[derive(Clone, Debug)]
pub(super) enum Why {
    /// His host said so, or was not to be spoken with. With its name, if it was there and has one.
    Said(Reason, Option<Name>),
    /// There is no way to his host.
    Nowhere(Unroutable),
    /// He would be here, and is not.
    Nobody,
    /// He is here, and his mailbox has no room for it.
    Full,
    /// The same, and it would have none were it empty.
    NeverFits,
    /// Nobody came to try it.
    Busy,
}

impl Why {
    /// `class`: 5 where it is final, as what was tried for as long as it may be is; else 4.
    fn status(&self, class: u8) -> Enhanced {
        match self {
            Why::Said(reason, _) => reason.status(class),
            Why::Nowhere(unroutable) => Enhanced { class, ..unroutable.status() },
            Why::Nobody => Enhanced { class, subject: 1, detail: 1 },
            Why::Full | Why::NeverFits => Enhanced { class, subject: 2, detail: 2 },
            Why::Busy => Enhanced { class, subject: 4, detail: 5 },
        }
    }

    /// Which host that is.
    fn host(&self) -> Option<String> {
        if let Why::Said(_, host) = self { host.as_ref().map(Name::to_string) } else { None }
    }

    /// In words, without a full stop.
    fn words(&self) -> String {
        match self {
            Why::Said(reason, _) => reason.to_string(),
            Why::Nowhere(unroutable) => unroutable.to_string(),
            Why::Nobody => "there is no such address on this server".to_string(),
            Why::Full => "the mailbox is full".to_string(),
            Why::NeverFits => "it is larger than all that the mailbox may hold".to_string(),
            Why::Busy => "this server has had too much to do".to_string(),
        }
    }
}

impl Courier {
    /// Whether who sent the letter wants to hear this of somebody.
    pub(super) fn is_told(&self, bit: u8, kind: Kind) -> bool {
        let recipient = self.envelope().zip(self.recipient(bit));
        recipient.is_some_and(|(envelope, recipient)| report::is_wanted(envelope, recipient, kind))
    }

    /// That somebody does not get it, in words.
    pub(super) fn report(&self, bit: u8, hands: &mut Hands<'_>) -> Result<Vec<u8>, Refusal> {
        let (_, why) = self.failed.iter().find(|(failed, _)| *failed == bit).ok_or(Refusal::NoSuchMessage)?;
        self.write(Kind::Failed, &[(bit, why)], hands)
    }

    /// The same of that it takes long, for all who wait and of whom it is to be told.
    pub(super) fn delay_report(&self, hands: &mut Hands<'_>) -> Result<Vec<u8>, Refusal> {
        let info = self.info(hands)?;
        let kind = delayed(info);
        let known = |bit| self.later.iter().rev().find(|(later, _)| *later == bit).map(|(_, why)| why);
        let waiting = bits(self.all() & !entry::done(info.keywords)).filter(|bit| self.is_told(*bit, kind));
        let all: Vec<(u8, &Why)> = waiting.map(|bit| (bit, known(bit).unwrap_or(&Why::Busy))).collect();
        self.write(kind, &all, hands)
    }

    fn write(&self, kind: Kind, all: &[(u8, &Why)], hands: &mut Hands<'_>) -> Result<Vec<u8>, Refusal> {
        let info = self.info(hands)?;
        let entry = self.entry.as_ref().ok_or(Refusal::NoSuchMessage)?;
        let Common { hostname, identifiers, store, wall, .. } = &mut *hands.common;
        let identifier = identifiers.next();
        let identifier = core::str::from_utf8(identifier.as_bytes()).unwrap_or_default();
        let class = if kind == Kind::Failed { 5 } else { 4 };
        let words: Vec<(String, Option<String>)> = all.iter().map(|(_, why)| (why.words(), why.host())).collect();
        let mut fates: Vec<Fate<'_>> = Vec::new();
        for ((bit, why), (words, host)) in all.iter().zip(&words) {
            let recipient = self.recipient(*bit).ok_or(Refusal::NoSuchMessage)?;
            let reply = if let Why::Said(reason, _) = why { reason.reply() } else { None };
            fates.push(Fate { recipient, status: why.status(class), words, reply, host: host.as_deref() });
        }
        let mut text = b"Return-Path: <>\r\n".to_vec();
        let report = Report {
            kind,
            hostname,
            from: &["postmaster@", hostname].concat(),
            to: &entry.envelope.reverse_path,
            date: *wall,
            message_id: &[identifier, ".report@", hostname].concat(),
            secret: u128::from_le_bytes(store.own.store.secret(identifier.as_bytes())),
            arrived: info.internal_date,
            envelope_id: entry.envelope.envelope_id.as_deref(),
            recipients: &fates,
            letter: &entry.header,
        };
        report::write(&report, &mut text);
        Ok(text)
    }
}

/// That a letter takes long.
pub(super) fn delayed(info: MessageInfo) -> Kind {
    Kind::Delayed { until: UnixTime(info.internal_date.0.saturating_add(schedule::LIFETIME.0)) }
}
