//! Tests of SCRAM-SHA-256 with an independent client.

use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

use base64ct::{Base64, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::{RecordingHost, base64, challenge, respond};
use crate::verifier::Verifier;
use crate::{Derivation, Exchange, Mechanism, Nonces, Puzzle, SaslStep};

/// The salt of the example in RFC 7677.
pub(super) const RFC_7677: [u8; 16] =
    *b"\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81";

fn verifier(password: &str, iterations: u32) -> Verifier {
    let mut derivation = Derivation::of(password.as_bytes(), RFC_7677, iterations);
    core::iter::repeat_with(|| derivation.step()).find_map(|verifier| verifier).unwrap()
}

fn asking(puzzle: Puzzle) -> RecordingHost {
    RecordingHost { puzzle: Some(puzzle), ..RecordingHost::default() }
}

/// A host that returns the puzzle for the password `pencil`.
fn host() -> RecordingHost {
    asking(verifier("pencil", 16).puzzle(Nonces::new([7; 32]).draw()))
}

/// The last message of an independent client after `server_first`. It follows RFC 5802 section 3
/// and uses the crate `pbkdf2`.
fn client_final(password: &str, header: &str, bare: &str, server_first: &str) -> String {
    let mut parts = server_first.split(',').map(|attribute| &attribute[2..]);
    let [nonce, salt, iterations] = [(); 3].map(|()| parts.next().unwrap());
    let hmac = |key: &[u8], message: &[u8]| -> [u8; 32] {
        Hmac::<Sha256>::new_from_slice(key)
            .unwrap()
            .chain_update(message)
            .finalize()
            .into_bytes()
            .into()
    };
    let mut salted = [0; 32];
    let salt = Base64::decode_vec(salt).unwrap();
    pbkdf2::pbkdf2::<Hmac<Sha256>>(
        password.as_bytes(),
        &salt,
        iterations.parse().unwrap(),
        &mut salted,
    )
    .unwrap();
    let client_key = hmac(&salted, b"Client Key");
    let without_proof = format!("c={},r={nonce}", base64(header));
    let message = format!("{bare},{server_first},{without_proof}");
    let signature = hmac(&Sha256::digest(client_key), message.as_bytes());
    let proof: Vec<u8> =
        client_key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
    format!("{without_proof},p={}", base64(proof))
}

/// An exchange after the first message, `header` and `bare`, and the challenge to it.
fn begun(header: &str, bare: &str, host: &mut RecordingHost) -> (Exchange, String) {
    let mut exchange = Exchange::begin(Mechanism::ScramSha256);
    let server_first = challenge(respond(&mut exchange, [header, bare].concat(), host));
    (exchange, server_first)
}

/// Whether a client is accepted that sends this first message and then the correct last message.
fn is_let_in(header: &str, bare: &str) -> bool {
    let mut host = host();
    let (mut exchange, server_first) = begun(header, bare, &mut host);
    let last = client_final("pencil", header, bare, &server_first);
    assert_eq!(respond(&mut exchange, last, &mut host), SaslStep::Complete);
    assert_eq!(host.name, host.asked_of);
    verifier("pencil", 16).check(&host.proof.unwrap()).is_some()
}

#[test]
fn the_server_follows_the_example_of_rfc_7677() {
    let mut host =
        asking(verifier("pencil", 4096).puzzle("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_string()));
    let mut exchange = Exchange::begin(Mechanism::ScramSha256);
    assert_eq!(challenge(exchange.opening()), "");
    assert_eq!(
        challenge(respond(&mut exchange, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO", &mut host)),
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    assert_eq!(respond(&mut exchange, last, &mut host), SaslStep::Complete);
    assert_eq!([host.asked_of.as_deref(), host.name.as_deref()], [Some("user"); 2]);
    let signature = verifier("pencil", 4096).check(&host.proof.take().unwrap()).unwrap();
    let (mut exchange, answer) = Exchange::signed(&signature);
    assert_eq!(challenge(answer), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    assert!(exchange.is_signed());
    assert_eq!(respond(&mut exchange, "", &mut host), SaslStep::Acknowledged);
    assert_eq!(respond(&mut exchange, "x", &mut host), SaslStep::Malformed);
    assert_eq!(exchange.response_arrived(b"*", &mut host), SaslStep::GivenUp);
}

#[test]
fn only_the_right_password_gives_a_valid_proof() {
    for (password, is_right) in
        [("pencil", true), ("Pencil", false), ("", false), ("pencil ", false)]
    {
        let mut host = host();
        let (mut exchange, server_first) = begun("n,,", "n=user,r=abc", &mut host);
        let last = client_final(password, "n,,", "n=user,r=abc", &server_first);
        assert_eq!(respond(&mut exchange, last, &mut host), SaslStep::Complete);
        let proof = host.proof.unwrap();
        assert_eq!(verifier("pencil", 16).check(&proof).is_some(), is_right, "{password}");
        for bit in 0..256 {
            let mut other = proof.clone();
            other.proof[bit / 8] ^= 1 << (bit % 8);
            assert!(verifier("pencil", 16).check(&other).is_none());
        }
        assert!(Verifier::for_unknown_name(&[1; 16], "user").check(&proof).is_none());
    }
}

#[test]
fn a_replayed_proof_is_invalid() {
    let mut nonces = Nonces::new([7; 32]);
    let mut host = || asking(verifier("pencil", 16).puzzle(nonces.draw()));
    let (mut first, mut second) = (host(), host());
    let (mut exchange, server_first) = begun("n,,", "n=user,r=abc", &mut first);
    let last = client_final("pencil", "n,,", "n=user,r=abc", &server_first);
    assert_eq!(respond(&mut exchange, &last, &mut first), SaslStep::Complete);
    let (mut exchange, other) = begun("n,,", "n=user,r=abc", &mut second);
    assert_ne!(server_first, other);
    assert_eq!(respond(&mut exchange, &last, &mut second), SaslStep::NotAllowed);
    // With the second nonce the proof is not valid either, since it covers the nonce.
    let nonce = |server_first: &str| server_first.split_once(',').unwrap().0.to_string();
    let last = last.replace(&nonce(&server_first), &nonce(&other));
    assert_eq!(respond(&mut exchange, &last, &mut second), SaslStep::Complete);
    assert!(verifier("pencil", 16).check(&second.proof.unwrap()).is_none());
}

#[test]
fn the_client_must_repeat_nonce_and_header() {
    let (bare, header) = ("n=user,r=abc", "n,,");
    for (wanted, sent) in [
        ("c=biws", "c=eSws"),
        ("c=biws", "c=biwsYQ=="),
        ("r=abc", "r=abd"),
        ("r=abc", "r="),
        ("r=abc", "r=abcabc"),
        ("c=biws", "c=biw"),
        ("c=biws", "c="),
    ] {
        let mut host = host();
        let (mut exchange, server_first) = begun(header, bare, &mut host);
        let last = client_final("pencil", header, bare, &server_first).replacen(wanted, sent, 1);
        assert_eq!(respond(&mut exchange, last, &mut host), SaslStep::NotAllowed, "{sent}");
        assert!(host.name.is_none());
    }
    let mut host = host();
    let (mut exchange, server_first) = begun(header, bare, &mut host);
    let ours = server_first.split_once(',').unwrap().0;
    let last = client_final("pencil", header, bare, &server_first).replace(ours, "r=abc");
    assert_eq!(
        respond(&mut exchange, last, &mut host),
        SaslStep::NotAllowed,
        "the client's nonce alone"
    );
}

#[test]
fn client_first_names_user_and_channel_binding() {
    for (header, bare) in [
        ("n,,", "n=user,r=abc"),
        ("y,,", "n=user,r=abc"),
        ("n,a=user,", "n=user,r=abc"),
        ("n,a=USER,", "n=user,r=abc"),
        ("n,,", "n=jürgen=2C=3D@mail.test,r=!\"#$%"),
        ("n,a=j=2C,", "n=j=2C,r=abc"),
        ("n,,", "n=user,r=abc,x=what,z=ever=s"),
    ] {
        assert!(is_let_in(header, bare), "{header}{bare}");
    }
    let mut escaped = host();
    begun("n,,", "n=a=2Cb=3Dc=3D2C,r=abc", &mut escaped);
    assert_eq!(escaped.asked_of.as_deref(), Some("a,b=c=2C"));
    for (first, answer) in [
        ("n,a=eve,n=user,r=abc", SaslStep::NotAllowed),
        ("p=tls-exporter,,n=user,r=abc", SaslStep::Malformed),
        ("p=tls-unique,,n=user,r=abc", SaslStep::Malformed),
        ("n,,m=must,n=user,r=abc", SaslStep::Malformed),
        ("n,,n=user,r=abc,m=must", SaslStep::Malformed),
    ] {
        let mut host = host();
        assert_eq!(
            respond(&mut Exchange::begin(Mechanism::ScramSha256), first, &mut host),
            answer,
            "{first}"
        );
        assert!(host.asked_of.is_none(), "{first}");
    }
}

#[test]
fn a_malformed_scram_message_ends_the_exchange() {
    let long = "x".repeat(97);
    for first in [
        "",
        "n",
        "n,",
        "n,,",
        "x,,n=user,r=abc",
        ",,n=user,r=abc",
        "N,,n=user,r=abc",
        "n,b=user,n=user,r=abc",
        "n,,r=abc,n=user",
        "n,,n=user",
        "n,,n=user,r=",
        "n,,n=user,r=a b",
        "n,,n=user,r=\u{e9}",
        "n,,n=,r=abc",
        "n,,n=us=er,r=abc",
        "n,,n=user=2c,r=abc",
        "n,,n=us\ner,r=abc",
        "n,,n=user,r=abc,",
        "n,,n=user,r=abc,x=",
        "n,,n=user,r=abc,xy=z",
        "n,,n=user,r=abc,1=z",
        &format!("n,,n=user,r={long}"),
    ] {
        let mut host = host();
        let answer = respond(&mut Exchange::begin(Mechanism::ScramSha256), first, &mut host);
        assert_eq!((answer, host.asked_of), (SaslStep::Malformed, None), "{first}");
    }
    let longest = format!("n=user,r={}", &long[1..]);
    assert!(is_let_in("n,,", &longest), "the longest nonce");
    let proof = base64([1; 32]);
    for last in [
        "".to_string(),
        "c=biws".to_string(),
        "c=biws,r=abc".to_string(),
        format!("c=biws,p={proof}"),
        format!("r=abc,c=biws,p={proof}"),
        format!("c=biws,r=abc,m=x,p={proof}"),
        format!("c=biws,r=abc,p={proof},x=y"),
        format!("c=biws,r=abc,p={}", base64([1; 31])),
        format!("c=biws,r=abc,p={}", base64([1; 33])),
        "c=biws,r=abc,p=".to_string(),
        "c=biws,r=abc,p=no-base64".to_string(),
    ] {
        let mut host = host();
        let (mut exchange, _) = begun("n,,", "n=user,r=abc", &mut host);
        assert_eq!(respond(&mut exchange, &last, &mut host), SaslStep::Malformed, "{last}");
        assert!(host.name.is_none());
    }
}

proptest! {
    #[test]
    fn any_client_with_the_password_is_accepted(
        name in "[^\\p{Cc},=]{1,60}", nonce in "[!-+\\--~]{1,96}", binds: bool, acts: bool, extension: Option<char>,
    ) {
        let header = format!("{},{},", if binds { 'y' } else { 'n' }, if acts { format!("a={name}") } else { "".into() });
        let extension = extension.filter(|value| !matches!(value, '\0' | ',')).map_or("".into(), |value| format!(",e={value}"));
        let bare = format!("n={name},r={nonce}{extension}");
        prop_assert!(is_let_in(&header, &bare));
    }

    #[test]
    fn a_changed_scram_message_is_not_accepted(at: prop::sample::Index, byte: u8, cut: bool, in_last: bool) {
        let garbled = |text: &str| {
            let mut text = text.as_bytes().to_vec();
            let at = at.index(text.len());
            if cut { text.truncate(at) } else { text[at] = byte };
            text
        };
        let mut host = host();
        let first = "n,,n=user,r=abc";
        let mut exchange = Exchange::begin(Mechanism::ScramSha256);
        let sent = if in_last { first.into() } else { garbled(first) };
        let SaslStep::Challenge(server_first) = respond(&mut exchange, &sent, &mut host) else { return Ok(()) };
        let server_first = challenge(SaslStep::Challenge(server_first));
        let last = client_final("pencil", "n,,", "n=user,r=abc", &server_first);
        let answered = if in_last { garbled(&last) } else { last.clone().into() };
        respond(&mut exchange, &answered, &mut host);
        let is_let_in = host.proof.is_some_and(|proof| verifier("pencil", 16).check(&proof).is_some());
        prop_assert_eq!(is_let_in, sent == first.as_bytes() && answered == last.as_bytes());
    }

    #[test]
    fn no_bytes_break_a_scram_exchange(first: Vec<u8>, last: Vec<u8>, flag in "[nyp]?,?,?") {
        let mut host = host();
        let mut exchange = Exchange::begin(Mechanism::ScramSha256);
        respond(&mut exchange, [flag.as_bytes(), &first].concat(), &mut host);
        let (mut exchange, _) = begun("n,,", "n=user,r=abc", &mut self::host());
        respond(&mut exchange, last, &mut host);
        prop_assert!(host.proof.is_none());
    }
}
