//! Enhanced status codes (RFC 3463), and what they mean in words.
//!
//! Implements: RFC 3463 section 3, with codes of RFC 3886, 5248, 7372 and 7505 that servers use.

use core::fmt;

/// An enhanced status code: `5.1.1`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Enhanced {
    /// 2, 4 or 5: success, a temporary failure, a permanent failure.
    pub class: u8,
    /// The subject, such as the address, the mailbox or the network.
    pub subject: u16,
    /// The detail.
    pub detail: u16,
}

/// The meaning of codes, by subject and detail. A code that says nothing to a sender is left out.
const MEANINGS: &[(u16, u16, &str)] = &[
    (1, 1, "The address does not exist."),
    (1, 2, "The domain of the address does not exist or accepts no mail."),
    (1, 3, "The address is not valid."),
    (1, 4, "The address belongs to more than one mailbox."),
    (1, 6, "The mailbox has moved, and mail for it is not forwarded."),
    (1, 7, "The address of the sender is not valid."),
    (1, 8, "The domain of the sender does not exist or cannot be reached."),
    // RFC 7505 means a domain without mail. Exchange means an unknown address.
    (1, 10, "The address does not exist, or its domain accepts no mail."),
    (2, 1, "The mailbox does not accept messages."),
    (2, 2, "The mailbox is full."),
    (2, 3, "The message is too large for the mailbox."),
    (2, 4, "The mailing list could not be expanded."),
    (3, 1, "The server has no space for the message."),
    (3, 2, "The server does not accept messages at present."),
    (3, 3, "The server cannot handle this message."),
    (3, 4, "The message is too large for the server."),
    (3, 5, "The server is not set up correctly."),
    (4, 1, "The server could not be reached."),
    (4, 2, "The connection to the server was lost."),
    (4, 3, "A name server or directory did not answer."),
    (4, 4, "The server for the address was not found."),
    (4, 5, "The server was too busy."),
    (4, 6, "The message was forwarded in a circle."),
    (4, 7, "The server gave up after many attempts."),
    (5, 3, "The message has too many recipients."),
    (6, 1, "The server does not accept this kind of content."),
    (6, 7, "The server does not support addresses with such characters."),
    (7, 0, "The server refused the message by its rules."),
    (7, 1, "The server refused the message by its rules."),
    (7, 2, "The sender may not write to this mailing list."),
    (7, 7, "The message is damaged or was changed on its way."),
    (7, 8, "The sender was not authenticated."),
    (7, 13, "The sender’s account is disabled."),
    (7, 17, "The mailbox has a new owner."),
    (7, 20, "The message has no valid DKIM signature."),
    (7, 23, "The sender’s domain does not allow the sending server (SPF)."),
    (7, 24, "The sender’s domain could not be checked (SPF)."),
    (7, 25, "The sending server has no valid name."),
    (7, 26, "The sender could not be verified (SPF, DKIM and DMARC)."),
    (7, 27, "The domain of the sender accepts no mail."),
    (7, 28, "There were too many messages."),
];

/// The number of words at the beginning of a reply that may be its code.
const WORDS_BEFORE_CODE: usize = 3;

impl Enhanced {
    /// Reads a word that is a code and nothing else.
    pub fn read(word: &[u8]) -> Option<Enhanced> {
        let mut numbers = word.split(|byte| *byte == b'.').map(|digits| {
            let is_number =
                (1..=3).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
            is_number.then(|| {
                digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))
            })
        });
        let (class, subject, detail) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let class = u8::try_from(class).ok().filter(|class| matches!(class, 2 | 4 | 5))?;
        numbers.next().is_none().then_some(Enhanced { class, subject, detail })
    }

    /// The code of a field, which a comment may follow: `5.1.1 (no such address)`.
    pub(super) fn in_field(text: &str) -> Option<Enhanced> {
        Enhanced::read(text.split([' ', '(']).next()?.as_bytes())
    }

    /// The code in a reply of a server: `550 5.1.1 no such user`, `550-5.1.1 no such user`.
    pub(super) fn in_reply(reply: &str) -> Option<Enhanced> {
        let words = reply.split([' ', '-']).take(WORDS_BEFORE_CODE);
        words.map(str::as_bytes).find_map(Enhanced::read)
    }

    /// The code in the field `Status`, or that in the reply if it says more.
    pub(super) fn most_specific(
        field: Option<Enhanced>,
        reply: Option<Enhanced>,
    ) -> Option<Enhanced> {
        let says_more = |reply: &Enhanced| {
            field.is_none_or(|field| field.detail == 0 && field.class == reply.class)
        };
        reply.filter(says_more).or(field)
    }

    /// The meaning of the code as a sentence. `None`: it has none that a sender understands.
    pub fn words(self) -> Option<&'static str> {
        let mut known = MEANINGS.iter();
        let is_this = |(subject, detail, _): &&(u16, u16, &str)| {
            (*subject, *detail) == (self.subject, self.detail)
        };
        known.find(is_this).map(|(_, _, words)| *words)
    }
}

impl fmt::Display for Enhanced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}
