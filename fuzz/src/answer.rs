//! Answers from web servers to our own requests: from a filter for a message, or from a recipient
//! domain for its MTA-STS policy.
//!
//! Oracles:
//! - Any input: no panic. When the server has sent everything, the result is known.
//! - Where the answer is cut on its way changes nothing, and neither do bytes after its end.
//! - What a filter says to be passed on is printable ASCII, in one line, and short.

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};

use dns::Name;
use relay::filter::{FilterEnvelope, FilterQuestion, FilterVerdict};
use relay::{Fetch, Lost, Speaker};

/// Words of a filter's are no longer, with the points and the names of what they are for.
const WORDS_BYTES_MAX: usize = 500;

/// Runs one input: which service is asked, how the answer is cut, and the answer.
pub fn run(data: &[u8]) {
    let [service, size, answer @ ..] = data else { return };
    // Large and small pieces.
    let sizes = [usize::MAX, 1 + usize::from(*size) * usize::from(*size)];
    if service & 1 == 0 {
        let [whole, cut] = sizes.map(|size| verdict(answer, size));
        assert_eq!(whole, cut, "the result does not depend on cuts");
        if let Some(
            FilterVerdict::Suspect(words)
            | FilterVerdict::Later(words)
            | FilterVerdict::Never(words),
        ) = whole
        {
            assert!(words.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{words:?}");
            assert!(words.len() <= WORDS_BYTES_MAX, "{words:?}");
        }
    } else {
        let [whole, cut] = sizes.map(|size| policy(answer, size));
        assert_eq!(whole, cut, "the result does not depend on cuts");
    }
}

fn verdict(answer: &[u8], size: usize) -> Option<FilterVerdict> {
    let recipients = ["ada@mail.test".to_string()];
    let said = FilterEnvelope {
        address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        hello: "far.test",
        reverse_path: "me@far.test",
        recipients: &recipients,
        hostname: "mail.test",
        identifier: "4D2",
    };
    let question = FilterQuestion::about(b"Message\n".to_vec(), &said, "filter.test:11333", None);
    hear(question, answer, size, |question| question.verdict().map(|verdict| verdict.cloned()))
}

fn policy(answer: &[u8], size: usize) -> String {
    let Ok(server) = Name::parse("mta-sts.far.test") else { return String::new() };
    hear(Fetch::from(&server), answer, size, |fetch| {
        fetch.outcome().map(|outcome| format!("{outcome:?}"))
    })
}

/// The outcome after the whole answer of the server, which arrives in pieces of this many bytes.
fn hear<S: Speaker, T: Clone + PartialEq + Debug>(
    mut speaker: S,
    answer: &[u8],
    size: usize,
    outcome: impl Fn(&S) -> Option<T>,
) -> T {
    speaker.sent(speaker.output().len());
    let mut known = None;
    for piece in answer.chunks(size) {
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
