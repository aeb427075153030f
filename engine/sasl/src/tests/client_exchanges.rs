//! SCRAM-SHA-256 as a client, tested with the RFC's example and with our own server side.

use std::format;
use std::string::{String, ToString};

use proptest::prelude::*;

use super::scram::RFC_7677;
use super::{RecordingHost, base64, challenge};
use crate::verifier::Verifier;
use crate::{ClientExchange, Derivation, Exchange, Mechanism, Nonces, NotAChallenge, SaslStep};

const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
const SERVER_FIRST: &str =
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
const SERVER_FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

fn proof(client: &mut ClientExchange) -> (String, usize) {
    let mut steps = 0;
    loop {
        steps += 1;
        if let Some(proof) = client.step() {
            return (proof, steps);
        }
    }
}

#[test]
fn the_client_follows_the_example_of_rfc_7677() {
    let (mut client, first) = ClientExchange::begin("user", NONCE.to_string());
    assert_eq!(first, base64(format!("n,,n=user,r={NONCE}")));
    assert!(!client.is_answered_by(&base64(SERVER_FINAL)), "nothing is proved yet");
    client.challenged("pencil", &base64(SERVER_FIRST)).unwrap();
    let (proof, steps) = proof(&mut client);
    assert_eq!((proof, steps), (base64(CLIENT_FINAL), 16));
    assert!(client.is_answered_by(&base64(SERVER_FINAL)));
    assert!(client.is_answered_by(&base64(format!("{SERVER_FINAL},x=more"))));
    for wrong in
        ["v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "v=", "e=other-error", "", "v=6rriTRBi"]
    {
        assert!(!client.is_answered_by(&base64(wrong)), "{wrong}");
    }
    assert!(!client.is_answered_by(SERVER_FINAL), "it is not in base64");
}

#[test]
fn a_malformed_or_abusive_challenge_is_not_answered() {
    let (head, salt) = (format!("r={NONCE}%more"), "s=W22ZaJ0SNY7soEsUEjb6gQ==");
    for wrong in [
        String::new(),
        "no words".to_string(),
        format!("r={NONCE},{salt},i=4096"),
        format!("r=another%more,{salt},i=4096"),
        format!("m=x,{head},{salt},i=4096"),
        format!("{head},{salt}"),
        format!("{head},i=4096,{salt}"),
        format!("{head},s=,i=4096"),
        format!("{head},s=W22Z!,i=4096"),
        format!("{head},{salt},i=4095"),
        format!("{head},{salt},i=1000001"),
        format!("{head},{salt},i=99999999999"),
        format!("{head},{salt},i=x"),
    ] {
        let (mut client, _) = ClientExchange::begin("user", NONCE.to_string());
        assert_eq!(client.challenged("pencil", &base64(&wrong)), Err(NotAChallenge), "{wrong}");
        assert_eq!(client.step(), None, "nothing is proved");
    }
    let (mut client, _) = ClientExchange::begin("user", NONCE.to_string());
    assert_eq!(
        client.challenged("pencil", SERVER_FIRST),
        Err(NotAChallenge),
        "it is not in base64"
    );
    client.challenged("pencil", &base64(format!("{head},{salt},i=1000000,x=more"))).unwrap();
    assert_eq!(
        client.challenged("pencil", &base64(SERVER_FIRST)),
        Err(NotAChallenge),
        "a second challenge is refused"
    );
}

#[test]
fn derived_keys_are_not_printed() {
    let (mut client, _) = ClientExchange::begin("user", NONCE.to_string());
    client.challenged("pencil", &base64(SERVER_FIRST)).unwrap();
    assert_eq!(format!("{client:?}"), "ClientExchange { .. }");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn our_client_and_server_authenticate_each_other(name in "[a-z,=@]{1,20}", password in ".{1,20}", is_right: bool) {
        let mut derivation = Derivation::of(password.as_bytes(), RFC_7677, 4096);
        let verifier: Verifier = core::iter::repeat_with(|| derivation.step()).find_map(|made| made).unwrap();
        let mut host = RecordingHost { puzzle: Some(verifier.puzzle(Nonces::new([7; 32]).draw())), ..RecordingHost::default() };
        let mut exchange = Exchange::begin(Mechanism::ScramSha256);
        let (mut client, first) = ClientExchange::begin(&name, Nonces::new([8; 32]).draw());
        let asked = challenge(exchange.response_arrived(first.as_bytes(), &mut host));
        prop_assert_eq!(host.asked_of.as_deref(), Some(name.as_str()));
        let password_sent = if is_right { password } else { password + "x" };
        client.challenged(&password_sent, &base64(asked)).unwrap();
        let (proof, _) = proof(&mut client);
        prop_assert_eq!(exchange.response_arrived(proof.as_bytes(), &mut host), SaslStep::Complete);
        let signature = verifier.check(&host.proof.unwrap());
        prop_assert_eq!(signature.is_some(), is_right);
        if let Some(signature) = signature {
            let message = String::from_utf8(signature.server_final()).unwrap();
            prop_assert!(client.is_answered_by(&message));
        }
    }
}
