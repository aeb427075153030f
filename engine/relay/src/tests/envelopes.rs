//! Envelopes of waiting messages.

use machine::UnixTime;
use proptest::prelude::*;

use super::*;
use crate::envelope::{self, BYTES_MAX, RECIPIENTS_MAX, UnreadableEnvelope, UnwritableEnvelope};
use crate::{Notify, Return};

fn written(envelope: &Envelope) -> String {
    let mut out = b"before".to_vec();
    envelope::write(envelope, &mut out).unwrap();
    String::from_utf8(out.split_off("before".len())).unwrap()
}

#[test]
fn envelope_is_fields_above_the_message() {
    let plain = outgoing(&["bob@there.test"]).envelope;
    assert_eq!(written(&plain), "Return-Path: <ada@us.test>\r\nEnvelope-To: <bob@there.test>\r\n");
    let full = Envelope {
        reverse_path: String::new(),
        content: ContentWidth::EightBit,
        script: Script::Utf8,
        returned: Some(Return::Full),
        envelope_id: Some("QQ1".to_string()),
        held_until: Some(UnixTime::from_seconds(1_795_521_600)),
        recipients: Vec::from([
            OutgoingRecipient {
                notify: Some(Notify { success: false, failure: true, delay: true }),
                original: Some("rfc822;b,b@old.test".to_string()),
                ..to(7, "bøb@there.test")
            },
            OutgoingRecipient {
                notify: Some(Notify { success: false, failure: false, delay: false }),
                ..to(7, "\"a >,\"@[192.0.2.1]")
            },
        ]),
    };
    let text = written(&full);
    assert_eq!(
        text,
        "Return-Path: <>\r\nEnvelope-Options: BODY=8BITMIME SMTPUTF8 RET=FULL ENVID=QQ1 HELDUNTIL=1795521600\r\n\
         Envelope-To: <bøb@there.test> NOTIFY=FAILURE,DELAY ORCPT=rfc822;b,b@old.test,\r\n\t<\"a >,\"@[192.0.2.1]> NOTIFY=NEVER\r\n"
    );
    let (read, length) =
        envelope::read([text.as_bytes(), b"\tReceived: x\r\n"].concat().as_slice()).unwrap();
    assert_eq!(length, text.len());
    assert_eq!(read.recipients.iter().map(|to| to.number).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(written(&read), text);
}

#[test]
fn message_after_envelope_may_look_like_an_envelope() {
    let text = written(&outgoing(&["bob@there.test"]).envelope);
    for message in ["", "Envelope-To: <eve@there.test>\r\n", "\t<eve@there.test>\r\n", "\0"] {
        let (read, length) = envelope::read(std::format!("{text}{message}").as_bytes()).unwrap();
        assert_eq!((read.recipients.len(), length), (1, text.len()), "{message:?}");
    }
}

#[test]
fn invalid_envelope_is_neither_written_nor_read() {
    let refused = |change: fn(&mut Envelope)| {
        let mut envelope = outgoing(&["bob@there.test"]).envelope;
        change(&mut envelope);
        let mut out = Vec::new();
        let refusal = envelope::write(&envelope, &mut out).unwrap_err();
        assert!(out.is_empty());
        refusal
    };
    assert_eq!(refused(|it| it.reverse_path = "ada".into()), UnwritableEnvelope::Malformed);
    assert_eq!(
        refused(|it| it.recipients[0].address = "bob@x>\r\nX: y".into()),
        UnwritableEnvelope::Malformed
    );
    assert_eq!(
        refused(|it| it.recipients[0].original = Some("a b".into())),
        UnwritableEnvelope::Malformed
    );
    assert_eq!(
        refused(|it| it.recipients[0].original = Some("a,".into())),
        UnwritableEnvelope::Malformed
    );
    assert_eq!(refused(|it| it.envelope_id = Some(String::new())), UnwritableEnvelope::Malformed);
    assert_eq!(refused(|it| it.recipients.clear()), UnwritableEnvelope::Recipients);
    let many = |it: &mut Envelope| {
        it.recipients = (0..=1024).map(|number| to(number, "bob@there.test")).collect()
    };
    assert_eq!(refused(many), UnwritableEnvelope::Recipients);
    let long = |it: &mut Envelope| {
        it.recipients = (0..1024)
            .map(|number| OutgoingRecipient {
                original: Some("x".repeat(300)),
                ..to(number, "b@x")
            })
            .collect();
    };
    assert_eq!(refused(long), UnwritableEnvelope::TooLong);
    for text in [
        "Subject: x\r\n",
        "Return-Path: ada@us.test\r\n",
        "Return-Path: <ada@us.test>\n",
        "Return-Path: <ada>\r\n",
        "Return-Path: <>\r\nSubject: x\r\n",
        "Return-Path: <>\r\nEnvelope-Options: BODY=7BIT\r\n",
        "Return-Path: <>\r\nEnvelope-Options: RET=ALL\r\n",
        "Return-Path: <>\r\nEnvelope-Options: \r\n",
        "Return-Path: <>\r\nEnvelope-Options: HELDUNTIL=\r\n",
        "Return-Path: <>\r\nEnvelope-Options: HELDUNTIL=+1\r\n",
        "Return-Path: <>\r\nEnvelope-To: bob@there.test\r\n",
        "Return-Path: <>\r\nEnvelope-To: <postmaster>\r\n",
        "Return-Path: <>\r\nEnvelope-To: <@a.test:bob@there.test>\r\n",
        "Return-Path: <>\r\nEnvelope-To: <bob@there.test>x\r\n",
        "Return-Path: <>\r\nEnvelope-To: <bob@there.test> NOTIFY=SOMETIMES\r\n",
        "Return-Path: <>\r\nEnvelope-To: <bob@there.test> SIZE=1\r\n",
        "Return-Path: <>\r\nEnvelope-To: <bob@there.test> ORCPT=a\u{1}b\r\n",
        "Return-Path: <>\r\nEnvelope-To: <bob@there.test>,\r\n<eve@there.test>\r\n",
        "Return-Path: <>\r\nEnvelope-To: <b\u{1}b@there.test>\r\n",
    ] {
        assert_eq!(envelope::read(text.as_bytes()), Err(UnreadableEnvelope::Malformed), "{text:?}");
    }
    assert_eq!(
        envelope::read(b"Return-Path: <\xff@us.test>\r\n"),
        Err(UnreadableEnvelope::Malformed)
    );
}

#[test]
fn endless_envelope_is_malformed() {
    let mut text = b"Return-Path: <>\r\nEnvelope-To: <b@x>".to_vec();
    assert_eq!(envelope::read(&text), Err(UnreadableEnvelope::Partial));
    text.resize(BYTES_MAX, b' ');
    assert_eq!(envelope::read(&text), Err(UnreadableEnvelope::Malformed));
    let recipients = "<b@x>,\r\n\t".repeat(RECIPIENTS_MAX);
    let text = std::format!("Return-Path: <>\r\nEnvelope-To: {recipients}<b@x>\r\n");
    assert_eq!(envelope::read(text.as_bytes()), Err(UnreadableEnvelope::Malformed));
}

fn address() -> impl Strategy<Value = String> {
    let local = prop_oneof![
        "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~é-]{1,12}",
        "\"([ !#-\\[\\]-~æ]|\\\\[ -~]){0,10}\""
    ];
    let domain = prop_oneof![
        "[a-z0-9]{1,8}(\\.[a-z0-9]{1,8}){0,3}",
        Just("[192.0.2.1]".to_string()),
        Just("[IPv6:2001:db8::1]".to_string())
    ];
    (local, domain).prop_map(|(local, domain)| std::format!("{local}@{domain}"))
}

fn recipient() -> impl Strategy<Value = OutgoingRecipient> {
    let notify = any::<(bool, bool, bool)>().prop_map(|(success, failure, delay)| Notify {
        success,
        failure,
        delay,
    });
    let original = "rfc822;[!-+.-~,]{0,20}[a-z]";
    (address(), proptest::option::of(notify), proptest::option::of(original)).prop_map(
        |(address, notify, original)| OutgoingRecipient { number: 0, address, notify, original },
    )
}

prop_compose! {
    fn any_envelope()(
        reverse_path in prop_oneof![Just(String::new()), address()],
        mut recipients in proptest::collection::vec(recipient(), 1..20),
        is_eight_bit: bool,
        is_utf8: bool,
        returned in proptest::option::of(prop_oneof![Just(Return::Full), Just(Return::Header)]),
        envelope_id in proptest::option::of("[!-+.-~,=]{0,20}[a-z]"),
        held_seconds in proptest::option::of(0u64..=1 << 40),
    ) -> Envelope {
        for (number, recipient) in (0..).zip(&mut recipients) {
            recipient.number = number;
        }
        Envelope {
            reverse_path,
            recipients,
            content: if is_eight_bit { ContentWidth::EightBit } else { ContentWidth::SevenBit },
            script: if is_utf8 { Script::Utf8 } else { Script::Ascii },
            returned,
            envelope_id,
            held_until: held_seconds.map(UnixTime::from_seconds),
        }
    }
}

proptest! {
    #[test]
    fn written_envelope_is_read_again(envelope in any_envelope(), cut in any::<proptest::sample::Index>()) {
        let text = written(&envelope);
        prop_assert!(text.lines().all(|line| line.len() < 998));
        prop_assert_eq!(envelope::read(text.as_bytes()), Ok((envelope, text.len())));
        let cut = cut.index(text.len());
        prop_assert_eq!(envelope::read(&text.as_bytes()[..cut]), Err(UnreadableEnvelope::Partial));
    }

    #[test]
    fn envelope_that_is_read_is_written_identically(text in "(Return-Path: <(a@b)?>\r\n)(Envelope-Options: [A-Z0-9=]{0,9}\r\n)?(Envelope-To: <[a-z\"@]{0,6}>( NOTIFY=[A-Z,]{0,16})?,?\r\n)(\t<a@b>,?\r\n){0,2}") {
        if let Ok((envelope, length)) = envelope::read(text.as_bytes()) {
            let again = written(&envelope);
            prop_assert_eq!(envelope::read(again.as_bytes()), Ok((envelope, again.len())));
            prop_assert!(length <= text.len());
        }
    }
}
