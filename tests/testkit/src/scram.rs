//! The example of RFC 7677 section 3: "user" logs in with SCRAM-SHA-256 and the password "pencil".

use sasl::{Puzzle, ScramProof, ServerSignature, Verifier};

/// The verifier of the password, and the server's nonce.
const VERIFIER: &str = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
const NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

/// The client's first message. All messages are in base64.
pub const FIRST: &str = "biwsbj11c2VyLHI9ck9wck5HZndFYmVSV2diTkVrcU8=";
/// The server's challenge.
pub const SERVER_FIRST: &str = "cj1yT3ByTkdmd0ViZVJXZ2JORWtxTyVodllEcFdVYTJSYVRDQWZ1eEZJbGopaE5sRiRrMCxzPVcyMlphSjBTTlk3c29Fc1VFamI2Z1E9PSxpPTQwOTY=";
/// The client's proof.
pub const LAST: &str = "Yz1iaXdzLHI9ck9wck5HZndFYmVSV2diTkVrcU8laHZZRHBXVWEyUmFUQ0FmdXhGSWxqKWhObEYkazAscD1kSHpiWmFwV0lrNGpVaE4rVXRlOXl0YWc5empmTUhnc3FtbWl6N0FuZFZRPQ==";
/// The server's signature.
pub const SERVER_FINAL: &str = "dj02cnJpVFJCaTIzV3BSUi93dHVwK21NaFVaVW4vZEI1bkxUSlJzamw5NUc0PQ==";
/// [`LAST`] with another proof.
pub const WRONG_LAST: &str = "Yz1iaXdzLHI9ck9wck5HZndFYmVSV2diTkVrcU8laHZZRHBXVWEyUmFUQ0FmdXhGSWxqKWhObEYkazAscD1lSHpiWmFwV0lrNGpVaE4rVXRlOXl0YWc5empmTUhnc3FtbWl6N0FuZFZRPQ==";
/// [`LAST`] with another nonce.
pub const REPLAYED_LAST: &str = "Yz1iaXdzLHI9ck9wck5HZndFYmVSV2diTkVrcU8lYW5vdGhlcixwPWRIemJaYXBXSWs0alVoTitVdGU5eXRhZzl6amZNSGdzcW1taXo3QW5kVlE9";
/// A first message that requests channel binding.
pub const BINDING_FIRST: &str = "cD10bHMtdW5pcXVlLCxuPXVzZXIscj1yT3ByTkdmd0ViZVJXZ2JORWtxTw==";

/// The server's challenge to the client, with the nonce of the example.
pub fn puzzle() -> Puzzle {
    verifier().puzzle(NONCE.to_string())
}

/// The server's signature, if the proof is correct.
pub fn check(proof: &ScramProof) -> Option<ServerSignature> {
    verifier().check(proof)
}

#[allow(clippy::expect_used, reason = "the text is a constant")]
fn verifier() -> Verifier {
    Verifier::parse(VERIFIER).expect("the verifier is well-formed")
}
