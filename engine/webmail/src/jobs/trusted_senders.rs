//! Trusted senders: their messages load remote content without asking the reader.
//!
//! The account has a note with the trusted senders: one address per line, the latest last.
//!
//! Invariants:
//! - The note never exceeds the size limit of a note: the oldest entries are removed for new ones.
//! - A message's `From` may be forged, so it is believed in two cases only. In the first case, this
//!   server has recorded at the top of the message that DMARC passed for the author's domain. In
//!   the second case, an account that had logged in sent the message from this address.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use message::header::Header;
use message::names_a_login;
use store::{AccountId, AccountInfo, NOTE_BYTES_MAX, NoteChange, Refusal};

use crate::answer;
use crate::context::JobContext;
use crate::flash::FlashMessage;
use crate::step::{JobProgress, why};

/// The key of the note.
const KEY: &[u8] = b"pictures";

/// The longest mail address (RFC 5321 section 4.5.3.1.3).
const ADDRESS_BYTES_MAX: usize = 254;

/// A change of a sender's trust.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum TrustChange {
    /// Trust this sender.
    Begin(String),
    /// No longer trust this sender.
    End(String),
}

/// A change in progress.
#[derive(Debug)]
pub(crate) struct TrustJob {
    trust: TrustChange,
    next_page: String,
    is_asked: bool,
    refused: Option<Refusal>,
}

/// The facts about the author that this server verified when the message arrived.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum VerifiedAuthor {
    /// No facts: `From` may be forged.
    #[default]
    Nobody,
    /// DMARC has passed for this domain of the author.
    Domain(String),
    /// The message was written in the webmail, which sets `From`.
    Written,
    /// An account that had logged in submitted the message with this reverse path. The author may
    /// be another person, since an account may resend a message (`Resent-From:`).
    Submitted(String),
}

impl VerifiedAuthor {
    /// Reads the facts from `beginning`, the first octets of the message. This server adds a
    /// `Received:` field at the top of each message that arrives by SMTP, and its results above
    /// that field. So all fields above the first `Received:` are from this server.
    pub(crate) fn of(beginning: &[u8]) -> VerifiedAuthor {
        let mut path = None;
        let mut fields = Header::new(beginning).fields().inspect(|field| {
            if field.is("Return-Path") {
                path = Some(field.value);
            }
        });
        let results =
            match fields.find(|field| field.is("Received") || field.is("Authentication-Results")) {
                // A message written in the webmail has no `Received:` field.
                None => return VerifiedAuthor::Written,
                Some(field) if field.is("Received") => {
                    let path =
                        String::from_utf8_lossy(path.unwrap_or_default().trim_ascii()).into_owned();
                    return if names_a_login(field.value) {
                        VerifiedAuthor::Submitted(path)
                    } else {
                        VerifiedAuthor::Nobody
                    };
                }
                Some(results) => results,
            };
        // Each result is on a separate line. A quoted string in a result cannot end a line.
        let lines = results.value.split(|byte| *byte == b'\n');
        let passed =
            lines.filter_map(|line| line.strip_prefix(b"\tdmarc=pass header.from=")).next();
        let domain =
            passed.and_then(|rest| rest.split(|byte| matches!(byte, b';' | b'\r' | b' ')).next());
        domain.map_or(VerifiedAuthor::Nobody, |domain| {
            VerifiedAuthor::Domain(String::from_utf8_lossy(domain).into_owned())
        })
    }

    pub(crate) fn is_author(&self, address: &str) -> bool {
        match self {
            VerifiedAuthor::Nobody => false,
            VerifiedAuthor::Written => true,
            VerifiedAuthor::Submitted(path) => {
                let sender = path.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
                sender.is_some_and(|sender| {
                    !sender.is_empty() && sender.eq_ignore_ascii_case(address)
                })
            }
            VerifiedAuthor::Domain(domain) => address
                .rsplit_once('@')
                .is_some_and(|(_, theirs)| theirs.eq_ignore_ascii_case(domain)),
        }
    }
}

/// Whether a message of this author loads remote content.
pub(crate) fn is_trusted(
    known: Option<&AccountInfo<'_>>,
    address: &str,
    verified: &VerifiedAuthor,
) -> bool {
    let note = known.and_then(|known| known.note(KEY)).unwrap_or_default();
    is_listed(note, address) && verified.is_author(address)
}

fn is_listed(note: &[u8], address: &str) -> bool {
    !address.is_empty() && lines(note).any(|line| line.eq_ignore_ascii_case(address.as_bytes()))
}

fn lines(note: &[u8]) -> impl Iterator<Item = &[u8]> {
    note.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

impl TrustJob {
    pub(super) fn new(trust: TrustChange, next_page: String) -> TrustJob {
        TrustJob { trust, next_page, is_asked: false, refused: None }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if self.is_asked {
            return JobProgress::Waiting;
        }
        let note =
            cx.store().account(account).and_then(|known| known.note(KEY)).unwrap_or_default();
        let Some(change) = self.trust.change(note) else { return JobProgress::Waiting };
        let continuation = cx.continuation();
        match cx.store_mut().change_notes(account, alloc::vec![change], continuation) {
            Ok(()) => {
                self.is_asked = true;
                *under_way += 1;
            }
            Err(Refusal::Busy) => return JobProgress::Yield,
            Err(refusal) => self.refused(refusal),
        }
        JobProgress::Waiting
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.is_asked = true;
        // It is not an error if a note to remove does not exist.
        self.refused = Some(refusal).filter(|refusal| *refusal != Refusal::NoSuchNote);
    }

    pub(super) fn done(&self) -> JobProgress {
        match self.refused {
            Some(refusal) => {
                JobProgress::Redirect(self.next_page.clone(), FlashMessage::failure(why(refusal)))
            }
            None => JobProgress::Reply(answer::redirect(&self.next_page)),
        }
    }
}

impl TrustChange {
    /// The change of the note. `None`: the note stays unchanged.
    pub(crate) fn change(&self, note: &[u8]) -> Option<NoteChange> {
        let (TrustChange::Begin(address) | TrustChange::End(address)) = self;
        let is_address =
            (1..=ADDRESS_BYTES_MAX).contains(&address.len()) && !address.contains(['\n', '\r']);
        let others: Vec<&[u8]> =
            lines(note).filter(|line| !line.eq_ignore_ascii_case(address.as_bytes())).collect();
        let is_new = matches!(self, TrustChange::Begin(_));
        if !is_address || !is_new && others.len() == lines(note).count() {
            return None;
        }
        let mut room = NOTE_BYTES_MAX - if is_new { address.len() + 1 } else { 0 };
        let fits =
            |line: &&&[u8]| room.checked_sub(line.len() + 1).inspect(|left| room = *left).is_some();
        let mut kept: Vec<&[u8]> = others.iter().rev().take_while(fits).copied().collect();
        kept.reverse();
        kept.extend(is_new.then_some(address.as_bytes()));
        let value = kept.join(&b'\n');
        Some(if value.is_empty() {
            NoteChange::Remove(Box::from(KEY))
        } else {
            NoteChange::Put(Box::from(KEY), value.into())
        })
    }
}
