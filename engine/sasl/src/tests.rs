//! Tests of SASL exchanges.

mod client_exchanges;
mod exchanges;
mod scram;
mod verifiers;

use std::string::{String, ToString};
use std::vec::Vec;

use base64ct::{Base64, Encoding};

use crate::{Credentials, Exchange, Host, Proof, Puzzle, SaslStep, ScramProof};

/// A host that records the calls it gets, and returns a given puzzle.
#[derive(Default)]
struct RecordingHost {
    puzzle: Option<Puzzle>,
    asked_of: Option<String>,
    name: Option<String>,
    password: Option<Vec<u8>>,
    proof: Option<ScramProof>,
}

impl Host for RecordingHost {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        assert!(self.asked_of.is_none());
        self.asked_of = Some(name.to_string());
        self.puzzle.clone().unwrap()
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        assert!(self.name.is_none());
        self.name = Some(credentials.name.to_string());
        match credentials.proof {
            Proof::Password(password) => self.password = Some(password.to_vec()),
            Proof::Scram(proof) => self.proof = Some(proof),
        }
    }
}

fn base64(text: impl AsRef<[u8]>) -> String {
    Base64::encode_string(text.as_ref())
}

/// The content of a challenge.
fn challenge(answer: SaslStep) -> String {
    match answer {
        SaslStep::Challenge(challenge) => {
            assert!(challenge.len() <= crate::CHALLENGE_BYTES_MAX);
            String::from_utf8(
                Base64::decode_vec(core::str::from_utf8(&challenge).unwrap()).unwrap(),
            )
            .unwrap()
        }
        answer => std::panic!("{answer:?}"),
    }
}

fn respond(
    exchange: &mut Exchange,
    message: impl AsRef<[u8]>,
    host: &mut RecordingHost,
) -> SaslStep {
    exchange.response_arrived(base64(message).as_bytes(), host)
}
