//! Responses of web servers to our own requests: the verdict of a filter about a message, or the
//! MTA-STS policy of a recipient domain.
//!
//! Oracles:
//! - Any input: no panic. When the server has sent everything, the result is known.
//! - The result depends neither on the pieces in which the response arrives nor on bytes after its
//!   end.
//! - The text of a filter that is passed on is printable ASCII, in one line, and short.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};

use dns::Name;
use relay::filter::{FilterEnvelope, FilterQuestion, FilterVerdict};
use relay::{Fetch, Lost, Speaker};

/// The most bytes of a filter's text, which may contain a score and the names of symbols.
const TEXT_BYTES_MAX: usize = 500;

/// Runs one input: a byte that selects the service, a byte for the piece size, and the response.
pub fn run(data: &[u8]) {
    let [service, piece_bytes, answer @ ..] = data else { return };
    // The whole response in one piece, and in pieces of the input's size.
    let sizes = [usize::MAX, 1 + usize::from(*piece_bytes) * usize::from(*piece_bytes)];
    if service & 1 == 0 {
        let [whole, cut] = sizes.map(|piece_bytes| verdict(answer, piece_bytes));
        assert_eq!(whole, cut, "the result does not depend on cuts");
        if let Some(
            FilterVerdict::Suspect(text) | FilterVerdict::Later(text) | FilterVerdict::Never(text),
        ) = whole
        {
            assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{text:?}");
            assert!(text.len() <= TEXT_BYTES_MAX, "{text:?}");
        }
    } else {
        let [whole, cut] = sizes.map(|piece_bytes| policy(answer, piece_bytes));
        assert_eq!(whole, cut, "the result does not depend on cuts");
    }
}

fn verdict(answer: &[u8], piece_bytes: usize) -> Option<FilterVerdict> {
    let recipients = ["ada@mail.test".to_string()];
    let envelope = FilterEnvelope {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        hello: "far.test",
        reverse_path: "me@far.test",
        recipients: &recipients,
        hostname: "mail.test",
        identifier: "4D2",
    };
    let question =
        FilterQuestion::about(b"Message\n".to_vec(), &envelope, "filter.test:11333", None);
    outcome_of(question, answer, piece_bytes, |question| {
        question.verdict().map(|verdict| verdict.cloned())
    })
}

fn policy(answer: &[u8], piece_bytes: usize) -> String {
    let Ok(server) = Name::parse("mta-sts.far.test") else { return String::new() };
    outcome_of(Fetch::from(&server), answer, piece_bytes, |fetch| {
        fetch.outcome().map(|outcome| format!("{outcome:?}"))
    })
}

/// The outcome after the whole response of the server, in pieces of `piece_bytes` bytes.
fn outcome_of<S: Speaker, T: Clone + PartialEq + Debug>(
    mut speaker: S,
    answer: &[u8],
    piece_bytes: usize,
    outcome: impl Fn(&S) -> Option<T>,
) -> T {
    speaker.sent(speaker.output().len());
    let mut known = None;
    for piece in answer.chunks(piece_bytes) {
        speaker.arrived(piece);
        let now = outcome(&speaker);
        assert!(known.is_none() || known == now, "an outcome never changes");
        known = now;
    }
    speaker.lost(Lost::Closed);
    let last = outcome(&speaker);
    assert!(known.is_none() || known == last, "an outcome never changes");
    last.unwrap_or_else(|| panic!("there is no outcome"))
}
