//! Tests of invalid signatures, and of their verdicts.

use super::*;
use crate::SignatureReason::*;

fn changed(from: &str, to: &str) -> SignatureReason {
    assert!(TAGS.contains(from), "{from}");
    reason(&signed(&TAGS.replace(from, to), &FIELDS, BODY))
}

/// The reason for a message if `keys` is the answer for the key of the domain.
fn with_keys(tags: &str, keys: Texts<'_>) -> SignatureReason {
    verdict_of(&read(signed(tags, &FIELDS, BODY).as_bytes()), 0, keys).reason
}

#[test]
fn signature_with_invalid_syntax_is_neutral() {
    for (from, to) in [
        ("v=1; ", ""),
        ("v=1", "v1"),
        ("v=1; ", "v=1;; "),
        ("v=1", "v=1; v=1"),
        ("v=1", "1v=1; v=1"),
        ("v=1", "v=1; x\u{7f}=1"),
        ("v=1", "v=1; z=\u{1}"),
        ("a=ed25519-sha256; ", ""),
        ("d=example.test; ", ""),
        ("d=example.test", "d="),
        ("d=example.test", "d=exa mple.test"),
        ("d=example.test", "d=\"example.test\""),
        ("d=example.test", "d=example..test"),
        ("s=key; ", ""),
        ("s=key", "s=k%65y"),
        ("h=From:To:Subject", "g=From"),
        ("h=From:To:Subject", "h=From::Subject"),
        ("h=From:To:Subject", "h="),
        ("h=From", "t=; h=From"),
        ("h=From", "t=-1; h=From"),
        ("h=From", "x=tomorrow; h=From"),
        ("h=From", "l=1e3; h=From"),
        ("h=From", "t=1999990; x=1999990; h=From"),
        ("h=From", "bh=; h=From"),
        ("h=From", "bh=MTIz=; h=From"),
    ] {
        assert_eq!(changed(from, to), Syntax, "{from} {to}");
    }
    let message = signed(TAGS, &FIELDS, BODY);
    let (before, rest) = message.split_once(" b=").unwrap();
    let (_, after) = rest.split_once("\r\n").unwrap();
    for broken in ["", ";", " b=", " b=;", " b=MTIz=", " b=M*Iz", " b=MTIz; b=MTIz"] {
        assert_eq!(reason(&format!("{before}{broken}\r\n{after}")), Syntax, "{broken}");
    }
}

#[test]
fn signature_of_an_unknown_kind_is_neutral() {
    for (from, to) in [
        ("v=1", "v=2"),
        ("v=1", "v=1.0"),
        ("a=ed25519-sha256", "a=ed448-sha256"),
        ("a=ed25519-sha256", "a=rsa-sha512"),
        ("c=relaxed/simple", "c=loose/simple"),
        ("c=relaxed/simple", "c=relaxed/nofws"),
        ("c=relaxed/simple", "c=relaxed/simple/simple"),
        ("s=key", "s=key; q=http/post"),
    ] {
        assert_eq!(changed(from, to), Unknown, "{from} {to}");
    }
    assert_eq!(
        changed("s=key", "s=key; q=http/post : dns/txt; z=what=20ever|it:is; xyz=1"),
        Verified
    );
}

#[test]
fn sha_1_is_a_permanent_error_and_names_its_signer() {
    let message = signed(&TAGS.replace("ed25519-sha256", "rsa-sha1"), &FIELDS, BODY);
    let verdict = verdict_of(&read(message.as_bytes()), 0, Ok(&[record("").as_bytes()]));
    let text = verdict.to_string();
    let expected = "dkim=permerror reason=\"SHA-1 is not secure\" header.d=example.test header.s=key header.a=rsa-sha1 header.b=";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn from_field_must_be_signed() {
    assert_eq!(changed("h=From:To", "h=To"), FromNotSigned);
    assert_eq!(changed("h=From:To", "h=Resent-From:To"), FromNotSigned);
    assert_eq!(changed("h=From:To", "h=To : \r\n fRoM "), Verified);
    let message = signed(TAGS, &FIELDS, BODY);
    assert_eq!(reason(&message.replace("To: ", "From: eve@other.test\r\nTo: ")), FromNotSigned);
    assert_eq!(reason(&format!("from : eve@other.test\r\n{message}")), FromNotSigned);
}

#[test]
fn signature_agent_must_be_within_its_domain() {
    for (agent, expected) in [
        ("ada@example.test", Verified),
        ("@EXAMPLE.test", Verified),
        ("ada@mail.example.test", Verified),
        ("\"ada@other.test\"@example.test", Verified),
        ("ada@anexample.test", ForeignAgent),
        ("ada@test", ForeignAgent),
        ("ada@example.test.other.test", ForeignAgent),
        ("ada@", ForeignAgent),
        ("", ForeignAgent),
    ] {
        assert_eq!(changed("s=key", &format!("s=key; i={agent}")), expected, "{agent}");
    }
}

#[test]
fn signature_is_valid_until_it_expires() {
    for (times, expected) in [
        ("x=1999999", Expired),
        ("x=2000000", Verified),
        ("t=1999990; x=1999999", Expired),
        ("x=99999999999999999999999999", Verified),
        ("t=2003600", Verified),
        ("t=2003601", FromTheFuture),
        ("t=99999999999999999999999999", FromTheFuture),
    ] {
        assert_eq!(changed("s=key", &format!("s=key; {times}")), expected, "{times}");
    }
}

#[test]
fn signature_of_a_part_of_the_body_is_refused() {
    let whole = BODY.len();
    for (bytes, expected) in [
        (whole.to_string(), Verified),
        ((whole - 1).to_string(), BodyPartlySigned),
        ("0".into(), BodyPartlySigned),
        ((whole + 1).to_string(), BodyTooShort),
        ("9".repeat(76), BodyTooShort),
        ("9".repeat(77), Syntax),
    ] {
        assert_eq!(changed("s=key", &format!("s=key; l={bytes}")), expected, "{bytes}");
    }
    // This is so even if the signature is valid for the beginning of the body.
    let message =
        signed(&TAGS.replace("s=key", "s=key; l=5"), &FIELDS, "Hi.\r\n") + "Pay here.\r\n";
    assert_eq!(reason(&message), BodyPartlySigned);
}

#[test]
fn changed_body_fails_before_the_signature() {
    let message = signed(TAGS, &FIELDS, BODY);
    assert_eq!(reason(&message.replace("hungry", "hangry")), BodyChanged);
    assert_eq!(changed("s=key", "s=key; bh=MTIz"), BodyChanged);
    assert_eq!(reason(&message.replace("dinner", "sinner")), SignatureWrong);
    assert_eq!(reason(&message.replace("s=key;", "s=key; t=1;")), SignatureWrong);
}

#[test]
fn key_record_limits_the_use_of_the_key() {
    for (tags, expected) in [
        ("", Verified),
        ("h=sha1:sha256; s=*; t=; n=whatever; g=old; ", Verified),
        ("s=web : email; ", Verified),
        ("h=sha1; ", KeyOfAnotherHash),
        ("s=web; ", KeyNotForMail),
        ("t=y; ", Testing),
        ("t=s; ", Verified),
        ("t=s:y; ", Testing),
    ] {
        assert_eq!(with_keys(TAGS, Ok(&[record(tags).as_bytes()])), expected, "{tags}");
    }
    let part = TAGS.replace("s=key", "s=key; i=@mail.example.test");
    assert_eq!(with_keys(&part, Ok(&[record("t=s; ").as_bytes()])), KeyNotForPart);
    assert_eq!(with_keys(&part, Ok(&[record("").as_bytes()])), Verified);
}

#[test]
fn signature_of_a_testing_domain_is_ignored() {
    let wrong = signed(TAGS, &FIELDS, BODY).replace("dinner", "sinner");
    let verdict = verdict_of(&read(wrong.as_bytes()), 0, Ok(&[record("t=y; ").as_bytes()]));
    assert_eq!(verdict.outcome(), SignatureOutcome::Neutral);
}

#[test]
fn invalid_key_is_a_permanent_error() {
    let good = record("");
    let key = |text: &str| with_keys(TAGS, Ok(&[text.as_bytes()]));
    assert_eq!(with_keys(TAGS, Ok(&[])), NoKey);
    assert_eq!(key("v=DKIM1; k=ed25519; p="), KeyRevoked);
    assert_eq!(key("p="), KeyRevoked);
    assert_eq!(key(&good.replace("ed25519", "rsa")), KeyOfAnotherKind);
    assert_eq!(key(&good.replace("ed25519", "ed448")), KeyOfAnotherKind);
    for broken in [
        "",
        "v=spf1 -all",
        "v=DKIM1; k=ed25519",
        "v=DKIM1; k=ed25519; p=MTIz=",
        "v=DKIM1; k=ed25519; p=MTIz",
        "v=DKIM1; k=ed25519; p=MTIz; p=MTIz",
        &good.replace("DKIM1", "DKIM2"),
        &good.replace("v=DKIM1", "v=dkim1"),
    ] {
        assert_eq!(key(broken), KeyBroken, "{broken}");
    }
    for why in [Unanswered::Silence, Unanswered::NoServer, Unanswered::Nonsense, Unanswered::Busy] {
        let verdict = verdict_of(&read(signed(TAGS, &FIELDS, BODY).as_bytes()), 0, Err(why));
        assert_eq!(
            (verdict.outcome(), verdict.reason),
            (SignatureOutcome::TempError, KeyUnanswered(why))
        );
    }
}

#[test]
fn one_matching_key_of_several_is_enough() {
    let (good, stray, other) = (record(""), "v=spf1 -all", "v=DKIM1; k=rsa; p=MTIz");
    let keys = |keys: &[&str]| {
        let keys: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
        with_keys(TAGS, Ok(&keys))
    };
    assert_eq!(keys(&[stray, other, &good]), Verified);
    assert_eq!(keys(&[other, other, other, &good]), Verified);
    assert_eq!(
        keys(&[other, other, other, other, &good]),
        KeyOfAnotherKind,
        "only four keys are tried"
    );
    assert_eq!(keys(&[stray, other]), KeyOfAnotherKind);
}

/// An object in DER encoding.
fn object(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = (content.len() as u16).to_be_bytes();
    let length = match length {
        [0, low @ 0..128] => Vec::from([low]),
        [0, low] => Vec::from([0x81, low]),
        [high, low] => Vec::from([0x82, high, low]),
    };
    [&[tag][..], &length, &content].concat()
}

/// An RSA key with this many bits, in the usual form or in the form of RFC 6376.
fn rsa(bits: usize, is_wrapped: bool) -> String {
    let mut modulus = Vec::from([0xff_u8 >> (7 - (bits - 1) % 8)]);
    modulus.resize(bits.div_ceil(8), 0xff);
    // Without a leading zero, a number with its first bit set would be negative.
    let sign: &[u8] = if bits.is_multiple_of(8) { &[0] } else { &[] };
    let key = object(0x30, &[&object(2, &[sign, &modulus]), &[2, 3, 1, 0, 1]]);
    let kind = [0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 13, 1, 1, 1, 5, 0];
    let key = if is_wrapped { object(0x30, &[&kind, &object(3, &[&[0], &key])]) } else { key };
    format!("p={}", Base64::encode_string(&key))
}

#[test]
fn rsa_key_size_is_limited_both_ways() {
    let tags = TAGS.replace("ed25519-sha256", "rsa-sha256");
    let key = |bits, is_wrapped| with_keys(&tags, Ok(&[rsa(bits, is_wrapped).as_bytes()]));
    for (bits, expected) in [
        (1023, KeyTooShort),
        (1024, SignatureWrong),
        (2048, SignatureWrong),
        (4096, SignatureWrong),
        (4097, KeyTooLong),
    ] {
        assert_eq!([key(bits, false), key(bits, true)], [expected; 2], "{bits}");
    }
    let garbled = |from: usize| {
        let key = Base64::decode_vec(rsa(1024, true).strip_prefix("p=").unwrap()).unwrap();
        let mut garbled = key.clone();
        garbled[from] ^= 1;
        with_keys(&tags, Ok(&[format!("p={}", Base64::encode_string(&garbled)).as_bytes()]))
    };
    // One garbled byte is in the outer length, the other in the algorithm of the key.
    assert_eq!([garbled(2), garbled(15)], [KeyBroken; 2]);
}
