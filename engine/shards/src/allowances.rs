//! Daily sending limits. The core that owns an account counts its messages, so that a stolen
//! password is of little use.
//!
//! A message counts when it begins: with DATA, with the first BDAT, or when the webmail sends it. A
//! message that fails later counts too. An external recipient counts, unless the account is known
//! to have written to this recipient before. A day is a UTC day.
//!
//! A note of the account (crate `store`) has the counts and the set of known recipients. No address
//! can be read from the set (B. Bloom, *Space/Time Trade-offs in Hash Coding with Allowable
//! Errors*). At most one in sixteen new recipients is mistaken for a known one. When the set is
//! half full, after about 1,400 recipients, it is cleared.
//!
//! Invariants:
//! - A refused message is not counted.
//! - The counts are stored after each sixteenth of a limit. So a restart loses less than a
//!   sixteenth of the daily limit.
//! - A core caches the sending state of [`CACHED_MAX`] accounts. For another account it reads the
//!   stored note.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use configuration::PerDay;
use store::{AccountId, NoteChange, Store};
use tasks::{Continuation, FrameId};

use crate::point::ShardWaitPoint;

/// The key of the note.
const KEY: &[u8] = b"sent";
/// The number of equal parts of a daily limit. The counts are stored after each part.
const NOTED_PARTS: u32 = 16;
/// Bytes of the set of known recipients.
const KNOWN_BYTES: usize = 1024;
/// The most accounts that a core caches, about 1 KiB each.
const CACHED_MAX: usize = 1024;

/// The continuation of a change of the note. No frame waits for it.
const UNUSED: Continuation =
    Continuation { frame: FrameId::new(u32::MAX, u32::MAX), entry: ShardWaitPoint::Noted.entry() };

/// The daily sending limits of an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Daily {
    /// Messages.
    pub messages: PerDay,
    /// External recipients that the account has not written to before.
    pub new_recipients: PerDay,
}

/// Whether a message may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendingDecision {
    /// The message may be sent.
    Granted,
    /// The account has reached this limit: for the first time today, or not.
    Refused(ReachedLimit, Occurrence),
}

/// A limit that an account has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReachedLimit {
    /// The account has sent this many messages today, its limit.
    Messages(u32),
    /// With this message, the account would exceed this limit of new recipients.
    NewRecipients(u32),
    /// The outbox of the account is full.
    Outbox,
}

/// How often a limit was reached today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Occurrence {
    /// The first time today.
    FirstToday,
    /// Not the first time today.
    Again,
}

impl SendingDecision {
    /// The line for administrators. `None` if a line about this account was returned today already.
    pub fn line(self, address: &str) -> Option<String> {
        let SendingDecision::Refused(met, Occurrence::FirstToday) = self else { return None };
        Some(match met {
            ReachedLimit::Messages(most) => {
                format!("limits: {address} has reached its limit of {most} messages a day")
            }
            ReachedLimit::Outbox => {
                format!("limits: {address} has reached its limit of mail waiting to be sent")
            }
            ReachedLimit::NewRecipients(most) => {
                format!("limits: {address} has reached its limit of {most} new recipients a day")
            }
        })
    }
}

/// The sending state of the accounts of a core.
#[derive(Default)]
pub(crate) struct Allowances {
    accounts: BTreeMap<AccountId, Box<SendingState>>,
}

/// The sending state of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SendingState {
    today: Counts,
    /// The counts in the stored note.
    noted: Counts,
    /// Whether a reached limit was reported to administrators today.
    is_reported: bool,
    /// The set of known recipients.
    known: [u8; KNOWN_BYTES],
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Counts {
    day: u32,
    messages: u32,
    people: u32,
}

impl Allowances {
    /// Decides whether an account of this core may send a message. If so, the message is counted.
    ///
    /// `day`: days since 1970. `people`: the external recipients of the message.
    pub(crate) fn may_send(
        &mut self,
        account: AccountId,
        (day, daily): (u32, Daily),
        people: &[String],
        store: &mut Store,
    ) -> SendingDecision {
        let sent = self.sent_by(account, store);
        if sent.today.day != day {
            (sent.today, sent.is_reported) = (Counts { day, ..Counts::default() }, false);
        }
        let mut new: Vec<Places> = people.iter().map(|person| places(person, store)).collect();
        new.retain(|places| !sent.knows(places));
        new.sort_unstable();
        new.dedup();
        let is_outbox_full = store.account(account).is_some_and(|known| known.is_outbox_full());
        let met = is_outbox_full.then_some(ReachedLimit::Outbox);
        if let Some(met) = met.or_else(|| sent.limit_reached(daily, new.len() as u32)) {
            let occurrence =
                if sent.is_reported { Occurrence::Again } else { Occurrence::FirstToday };
            sent.is_reported = true;
            return SendingDecision::Refused(met, occurrence);
        }
        sent.today.messages += 1;
        sent.today.people += new.len() as u32;
        new.iter().for_each(|places| sent.learn(places));
        if sent.is_to_be_noted(daily) {
            let change = NoteChange::Put(KEY.into(), sent.to_note());
            // The store may refuse the note. Then the next message stores it.
            if store.change_notes(account, Vec::from([change]), UNUSED).is_ok() {
                sent.noted = sent.today;
            }
        }
        SendingDecision::Granted
    }

    fn sent_by(&mut self, account: AccountId, store: &Store) -> &mut SendingState {
        if !self.accounts.contains_key(&account) && self.accounts.len() >= CACHED_MAX {
            self.accounts.pop_first();
        }
        self.accounts.entry(account).or_insert_with(|| {
            let noted = store.account(account).and_then(|known| SendingState::of(known.note(KEY)?));
            Box::new(noted.unwrap_or(SendingState::NOTHING))
        })
    }
}

impl SendingState {
    const NOTHING: SendingState = SendingState {
        today: Counts { day: 0, messages: 0, people: 0 },
        noted: Counts { day: 0, messages: 0, people: 0 },
        is_reported: false,
        known: [0; KNOWN_BYTES],
    };

    /// The limit that one more message with this number of new recipients would exceed.
    fn limit_reached(&self, daily: Daily, new: u32) -> Option<ReachedLimit> {
        let messages = daily
            .messages
            .most()
            .filter(|most| self.today.messages >= *most)
            .map(ReachedLimit::Messages);
        messages.or(daily
            .new_recipients
            .most()
            .filter(|most| new > 0 && self.today.people + new > *most)
            .map(ReachedLimit::NewRecipients))
    }

    fn is_to_be_noted(&self, daily: Daily) -> bool {
        let SendingState { today, noted, .. } = self;
        let before = if noted.day == today.day { *noted } else { Counts::default() };
        let is_much = |more: u32, limit: PerDay| {
            limit.most().is_some_and(|most| more.saturating_mul(NOTED_PARTS) >= most)
        };
        is_much(today.messages - before.messages, daily.messages)
            || is_much(today.people - before.people, daily.new_recipients)
    }

    fn knows(&self, places: &Places) -> bool {
        places.iter().all(|place| {
            self.known.get(usize::from(place / 8)).is_some_and(|byte| byte >> (place % 8) & 1 == 1)
        })
    }

    fn learn(&mut self, places: &Places) {
        let set: u32 = self.known.iter().map(|byte| byte.count_ones()).sum();
        if set as usize >= KNOWN_BYTES * 8 / 2 {
            self.known = [0; KNOWN_BYTES];
        }
        for place in places {
            let Some(byte) = self.known.get_mut(usize::from(place / 8)) else {
                unreachable!("a place above the last one")
            };
            *byte |= 1 << (place % 8);
        }
    }

    fn to_note(&self) -> Box<[u8]> {
        let Counts { day, messages, people } = self.today;
        [&day.to_le_bytes()[..], &messages.to_le_bytes(), &people.to_le_bytes(), &self.known]
            .concat()
            .into()
    }

    /// Parses a note. `None` if it is malformed.
    fn of(note: &[u8]) -> Option<SendingState> {
        let (day, rest) = note.split_first_chunk()?;
        let (messages, rest) = rest.split_first_chunk()?;
        let (people, rest) = rest.split_first_chunk()?;
        let [day, messages, people] =
            [day, messages, people].map(|bytes| u32::from_le_bytes(*bytes));
        let today = Counts { day, messages, people };
        Some(SendingState { today, noted: today, is_reported: false, known: rest.try_into().ok()? })
    }
}

/// The positions of a recipient in the set.
type Places = [u16; 4];

/// The positions of an address, in upper or lower case, in the set. The keyed hash keeps outsiders
/// from finding addresses with equal positions.
fn places(address: &str, store: &Store) -> Places {
    let secret = u128::from_le_bytes(
        store.secret(["sent to ", &address.to_lowercase()].concat().as_bytes()),
    );
    [0, 32, 64, 96].map(|shift| (secret >> shift) as u16 % (KNOWN_BYTES as u16 * 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places_of(seed: u32) -> Places {
        let mixed = u128::from(seed)
            .wrapping_add(1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        [0, 32, 64, 96]
            .map(|shift| ((mixed >> shift) as u32 >> 7) as u16 % (KNOWN_BYTES as u16 * 8))
    }

    #[test]
    fn known_recipients_filter_has_few_false_positives() {
        let mut sent = SendingState::NOTHING;
        for person in 0..1000 {
            sent.learn(&places_of(person));
        }
        assert!((0..1000).all(|person| sent.knows(&places_of(person))));
        let unknown = (10_000..20_000).filter(|person| sent.knows(&places_of(*person))).count();
        assert!(unknown < 10_000 / 16, "{unknown}");
        for person in 1000..3000 {
            sent.learn(&places_of(person));
        }
        assert!(!(0..1000).all(|person| sent.knows(&places_of(person))));
        assert!(sent.knows(&places_of(2999)));
    }

    #[test]
    fn allowances_note_is_parsed_back_exactly() {
        let mut sent = SendingState {
            today: Counts { day: 20_000, messages: 7, people: 3 },
            ..SendingState::NOTHING
        };
        sent.learn(&places_of(1));
        let note = sent.to_note();
        assert_eq!(
            SendingState::of(&note),
            Some(SendingState { noted: sent.today, ..sent.clone() })
        );
        assert_eq!(SendingState::of(note.get(1..).unwrap_or_default()), None);
        assert_eq!(SendingState::of(&[&note[..], &[0]].concat()), None);
        assert_eq!(SendingState::of(b""), None);
    }

    #[test]
    fn allowances_are_noted_after_each_sixteenth() {
        let daily = |messages, new_recipients| Daily { messages, new_recipients };
        let sent = |messages, people| SendingState {
            today: Counts { day: 1, messages, people },
            ..SendingState::NOTHING
        };
        let both = daily(PerDay::Most(160), PerDay::Most(32));
        assert!(
            !sent(9, 1).is_to_be_noted(both)
                && sent(10, 0).is_to_be_noted(both)
                && sent(0, 2).is_to_be_noted(both)
        );
        assert!(sent(1, 0).is_to_be_noted(daily(PerDay::Most(3), PerDay::Unlimited)));
        assert!(!sent(9000, 9000).is_to_be_noted(daily(PerDay::Unlimited, PerDay::Unlimited)));
    }
}
