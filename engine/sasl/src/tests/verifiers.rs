//! Tests of verifiers, the data that the server stores for a password.

use std::string::ToString;
use std::vec::Vec;

use hmac::Hmac;
use proptest::prelude::*;
use sha2::Sha256;

use super::scram::RFC_7677;
use crate::verifier::Verifier;
use crate::{Derivation, ITERATIONS, Nonces};

fn derived(password: &[u8], salt: [u8; 16], iterations: u32) -> Verifier {
    let mut derivation = Derivation::of(password, salt, iterations);
    core::iter::repeat_with(|| derivation.step()).take(1_000).find_map(|verifier| verifier).unwrap()
}

#[test]
fn a_verifier_equals_the_result_of_the_pbkdf2_library() {
    let long = [b'p'; 200];
    for (password, iterations) in
        [(&b"pencil"[..], 1), (b"", 2), (b"pencil", 256), (b"\xff\0", 257), (&long, 4096)]
    {
        let mut salted = [0; 32];
        pbkdf2::pbkdf2::<Hmac<Sha256>>(password, &[9; 16], iterations, &mut salted).unwrap();
        assert_eq!(
            derived(password, [9; 16], iterations),
            Verifier::new([9; 16], iterations, &salted)
        );
    }
    let mut derivation = Derivation::begin(b"pencil", [9; 16]);
    let steps = core::iter::repeat_with(|| derivation.step()).take_while(Option::is_none).count();
    assert_eq!(steps + 1, 64, "each of 256 iterations");
    const { assert!(ITERATIONS >= 4096, "RFC 7677 section 4") };
}

#[test]
fn a_verifier_has_the_text_form_of_rfc_5803() {
    // As PostgreSQL 15 writes it for "pencil" with this salt.
    let text = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    let verifier = derived(b"pencil", RFC_7677, 4096);
    assert_eq!(verifier.to_string(), text);
    assert!(Verifier::parse(text) == Some(verifier));
    for wrong in [
        "",
        "SCRAM-SHA-256",
        &text.replace("256$", "1$"),
        &text.replace("4096", "many"),
        &text.replace("4096:", ""),
        &text.replace("gQ==", "gQ"),
        &text.replace("W22Z", ""),
        &text.replace("WG5d", ""),
        &text.replace("2dU=", "2dU"),
        &[text, "$"].concat(),
    ] {
        assert!(Verifier::parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn an_unknown_name_has_a_stable_fake_verifier() {
    let salt = |secret: u8, name: &str| {
        Verifier::for_unknown_name(&[secret; 16], name).puzzle("n".to_string()).salt
    };
    assert_eq!(salt(1, "eve"), salt(1, "eve"));
    assert_ne!(salt(1, "eve"), salt(1, "eva"));
    assert_ne!(salt(1, "eve"), salt(2, "eve"));
    let puzzle = Verifier::for_unknown_name(&[1; 16], "eve").puzzle("n".to_string());
    assert_eq!(
        puzzle.iterations,
        derived(b"", [0; 16], ITERATIONS).puzzle("n".to_string()).iterations
    );
}

#[test]
fn no_nonce_is_issued_twice() {
    let (mut nonces, mut others) = (Nonces::new([1; 32]), Nonces::new([2; 32]));
    let mut all: Vec<_> = (0..1_000).flat_map(|_| [nonces.draw(), others.draw()]).collect();
    assert!(all.iter().all(|nonce| nonce.len() == 24 && !nonce.contains(',')));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2_000);
}

proptest! {
    #[test]
    fn a_verifier_survives_parse_and_display(text: std::string::String, iterations: u32, keys: [[u8; 16]; 5]) {
        prop_assert!(Verifier::parse(&text).is_none());
        let stored = super::base64([keys[1], keys[2]].concat());
        let server = super::base64([keys[3], keys[4]].concat());
        let text = std::format!("SCRAM-SHA-256${iterations}:{}${stored}:{server}", super::base64(keys[0]));
        prop_assert_eq!(Verifier::parse(&text).unwrap().to_string(), text);
    }
}
