//! Properties that hold whatever a peer sends.

use alloc::vec;

use proptest::prelude::*;

use super::*;

/// Replies of peers, and text that no peer would send.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => Just("220 x\r\n"),
        8 => Just(ABLE),
        4 => Just(PLAIN),
        20 => Just("250 ok\r\n"),
        8 => Just("354 go\r\n"),
        6 => Just("550 5.1.1 no\r\n"),
        4 => Just("451 wait\r\n"),
        1 => Just("421 going\r\n"),
        2 => Just("250-more\r\n"),
        1 => Just("334 x\r\n"),
        1 => Just("2"),
        1 => Just("\r"),
        1 => Just("\n"),
    ];
    proptest::collection::vec(word, 0..24).prop_map(|words| words.concat().into_bytes())
}

/// A whole conversation. Each segment of the peer arrives in pieces of the length `piece`, and then
/// the client sends its output. Returns the outcomes and everything that the client sent.
fn run(segments: &[Vec<u8>], piece: usize) -> (Vec<String>, String) {
    let mut harness = ClientHarness::with_tls(TlsMode::IfOffered);
    harness.deliver(outgoing(&["bob@there.test", "eve@there.test"]));
    let mut sent_by_client = String::new();
    for segment in segments {
        segment.chunks(piece).for_each(|piece| harness.client.arrived(piece));
        sent_by_client.push_str(&harness.says());
        if core::mem::take(&mut harness.wants_tls) {
            harness.client.secured();
            sent_by_client.push_str(&harness.says());
        }
    }
    harness.client.lost(Lost::Closed);
    sent_by_client.push_str(&harness.says());
    assert!(harness.is_over);
    (harness.outcomes(), sent_by_client)
}

proptest! {
    #[test]
    fn each_recipient_has_one_outcome_however_input_is_cut(
        segments in proptest::collection::vec(words(), 0..8),
        piece in 1_usize..40,
    ) {
        let whole = run(&segments, usize::MAX);
        prop_assert_eq!(whole.0.len(), 2);
        let mut numbers: Vec<_> = whole.0.iter().map(|outcome| &outcome[..1]).collect();
        numbers.sort_unstable();
        prop_assert_eq!(numbers, ["1", "2"]);
        prop_assert_eq!(run(&segments, piece), whole);
    }

    #[test]
    fn any_bytes_give_each_recipient_one_outcome(
        segments in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..64), 0..8),
    ) {
        prop_assert_eq!(run(&segments, usize::MAX).0.len(), 2);
    }

    #[test]
    fn message_survives_dot_stuffing(message in "[.\r\nab]{0,40}", piece in 1_usize..8) {
        let sent = super::bodies::sent(message.as_bytes(), piece);
        let text = core::str::from_utf8(&sent).unwrap();
        let body = text.strip_suffix(".\r\n").unwrap();
        prop_assert!(!body.contains("\r\n.\r\n") && !body.starts_with(".\r\n"), "{:?}", body);
        let received: String = body.split_inclusive("\r\n").map(|line| line.strip_prefix('.').unwrap_or(line)).collect();
        let mut normal = message.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
        if !normal.is_empty() && !normal.ends_with("\r\n") {
            normal.push_str("\r\n");
        }
        prop_assert_eq!(received, normal);
    }
}
