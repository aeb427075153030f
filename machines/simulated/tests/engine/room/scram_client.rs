//! An independent client of SCRAM-SHA-256: written from RFC 5802 section 3, with the PBKDF2 of a
//! library.

use std::collections::BTreeMap;

use base64ct::{Base64, Encoding};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// The state of a client.
#[derive(Default)]
pub(crate) struct ScramClient {
    /// The salted passwords of earlier exchanges, by password, salt and iterations.
    salted: BTreeMap<(String, String, u32), [u8; 32]>,
    begun: u32,
}

/// One SCRAM exchange.
pub(crate) struct ScramExchange {
    bare: String,
    password: String,
    /// The final message that the server must send.
    pub(crate) server_final: String,
}

/// The server's challenge.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    pub(crate) nonce: String,
    pub(crate) salt: String,
    pub(crate) iterations: u32,
}

impl Asked {
    /// Parses a challenge in base64.
    pub(crate) fn parse(challenge: &str) -> Asked {
        let message = text(challenge);
        let mut attributes = message.split(',');
        let mut next = |name| {
            attributes
                .next()
                .and_then(|attribute| attribute.strip_prefix(name))
                .expect("the attributes are in order")
        };
        let asked = Asked {
            nonce: next("r=").to_string(),
            salt: next("s=").to_string(),
            iterations: next("i=").parse().expect("a number"),
        };
        assert_eq!(attributes.next(), None);
        asked
    }
}

impl ScramClient {
    /// Begins an exchange for `name` with `password`. Also returns the client's first message.
    pub(crate) fn begin(&mut self, name: &str, password: &str) -> (ScramExchange, String) {
        self.begun += 1;
        let bare = format!("n={name},r=client{}", self.begun);
        let first = Base64::encode_string(format!("n,,{bare}").as_bytes());
        (ScramExchange { bare, password: password.to_string(), server_final: String::new() }, first)
    }

    /// The client's final message, in answer to this challenge.
    pub(crate) fn answer(&mut self, scram: &mut ScramExchange, challenge: &str) -> String {
        let asked = Asked::parse(challenge);
        let salted = self.salted(&scram.password, &asked);
        let without_proof = format!("c=biws,r={}", asked.nonce);
        let message = format!("{},{},{without_proof}", scram.bare, text(challenge));
        let client_key = hmac(&salted, b"Client Key");
        let signature = hmac(&Sha256::digest(client_key), message.as_bytes());
        let proof: Vec<u8> =
            client_key.iter().zip(signature).map(|(key, signature)| key ^ signature).collect();
        let server_signature = hmac(&hmac(&salted, b"Server Key"), message.as_bytes());
        let server_final = format!("v={}", Base64::encode_string(&server_signature));
        scram.server_final = Base64::encode_string(server_final.as_bytes());
        Base64::encode_string(
            format!("{without_proof},p={}", Base64::encode_string(&proof)).as_bytes(),
        )
    }

    fn salted(&mut self, password: &str, asked: &Asked) -> [u8; 32] {
        let known = (password.to_string(), asked.salt.clone(), asked.iterations);
        *self.salted.entry(known).or_insert_with(|| {
            let salt = Base64::decode_vec(&asked.salt).expect("salt is in base64");
            let mut salted = [0; 32];
            let hashed = pbkdf2::pbkdf2::<Hmac<Sha256>>(
                password.as_bytes(),
                &salt,
                asked.iterations,
                &mut salted,
            );
            hashed.expect("HMAC takes keys of any length");
            salted
        })
    }
}

fn text(challenge: &str) -> String {
    String::from_utf8(Base64::decode_vec(challenge).expect("a challenge is in base64"))
        .expect("the bytes are UTF-8")
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let hmac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    hmac.chain_update(message).finalize().into_bytes().into()
}
