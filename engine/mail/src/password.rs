//! Password hashes: argon2id (RFC 9106) in PHC strings.
//!
//! One hash is a call into a library that cannot be split. It takes about 20 ms of a real core,
//! with 19 MiB and two passes (OWASP's second choice of 2024). So hashes wait at a gate, and a turn
//! computes one.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

use argon2::{Algorithm, Argon2, Block, Params, Version};
use phc::{Output, PasswordHash, Salt};

/// Memory of the hashes that this server makes, in KiB.
const MEMORY_KIB: u32 = 19_456;
/// The number of passes over that memory.
const PASSES: u32 = 2;
/// The most memory that an imported hash may need, in KiB.
pub const MEMORY_KIB_MAX: u32 = 65_536;
/// The most work (memory in KiB times passes) of an imported hash: four times 64 MiB.
pub const WORK_KIB_MAX: u32 = 4 * MEMORY_KIB_MAX;

/// Bytes of salt in a hash that this server makes.
pub const SALT_BYTES: usize = 16;
const OUTPUT_BYTES: usize = 32;

/// The error of a password hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HashError {
    /// The text is not a PHC string with salt and hash.
    Syntax,
    /// The algorithm is not argon2id version 19.
    Algorithm,
    /// The hash needs more memory or more work than this machine allows.
    TooCostly,
}

/// Distinguishes the successive passwords of an account. It is the end of the hash string.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PasswordMark([u8; 16]);

impl PasswordMark {
    /// The mark of a password with this PHC string.
    pub fn of(hash: &str) -> PasswordMark {
        PasswordMark(hash.as_bytes().last_chunk().copied().unwrap_or_default())
    }

    /// The mark with the bytes of [`PasswordMark::as_bytes`].
    pub fn from_bytes(bytes: [u8; 16]) -> PasswordMark {
        PasswordMark(bytes)
    }

    /// The bytes that are stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Makes and checks password hashes. It has the buffer for their computation.
pub struct Hasher {
    memory: Vec<Block>,
}

impl Default for Hasher {
    fn default() -> Hasher {
        Hasher::new()
    }
}

impl Hasher {
    /// A hasher with a buffer for the hashes that this server makes.
    pub fn new() -> Hasher {
        Hasher { memory: vec![Block::new(); MEMORY_KIB as usize] }
    }

    /// Makes the buffer large enough for all of `hashes`, PHC strings from any source. It is called
    /// once, when the hashes are known.
    pub fn make_room_for<'a>(&mut self, hashes: impl Iterator<Item = &'a str>) {
        let blocks = hashes
            .filter_map(|hash| ParsedHash::parse(hash).ok())
            .map(|parsed| parsed.params.block_count())
            .max();
        if let Some(blocks) = blocks.filter(|blocks| *blocks > self.memory.len()) {
            self.memory = Vec::new();
            self.memory = vec![Block::new(); blocks];
        }
    }

    /// The PHC string of `password`.
    ///
    /// Errors: [`HashError::Syntax`] for a password of more than 4 GiB.
    pub fn hash(&mut self, password: &[u8], salt: [u8; SALT_BYTES]) -> Result<String, HashError> {
        let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(|_| HashError::TooCostly)?;
        let salt = Salt::new(&salt).map_err(|_| HashError::Syntax)?;
        let output = self.compute(&params, password, salt.as_ref(), OUTPUT_BYTES)?;
        let mut phc = String::with_capacity(128);
        let written = write!(phc, "$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p=1${salt}${output}");
        written.map(|()| phc).map_err(|_| HashError::Syntax)
    }

    /// Whether `hash`, a PHC string, was made from `password`.
    ///
    /// Errors: [`HashError`] if the hash cannot be checked. In this case it is unknown whether the
    /// password is right.
    pub fn verify(&mut self, password: &[u8], hash: &str) -> Result<bool, HashError> {
        let ParsedHash { params, salt, expected } = ParsedHash::parse(hash)?;
        let output = self.compute(&params, password, salt.as_ref(), expected.len())?;
        Ok(output == expected)
    }

    /// Takes as long as one hash, so that the reply time does not show whether a name exists.
    pub fn spend(&mut self, password: &[u8]) {
        let _ = self.hash(password, [0; SALT_BYTES]);
    }

    fn compute(
        &mut self,
        params: &Params,
        password: &[u8],
        salt: &[u8],
        bytes: usize,
    ) -> Result<Output, HashError> {
        let memory = self.memory.get_mut(..params.block_count()).ok_or(HashError::TooCostly)?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone());
        let mut output = [0; Output::MAX_LENGTH];
        let output = output.get_mut(..bytes).ok_or(HashError::Syntax)?;
        argon2
            .hash_password_into_with_memory(password, salt, output, memory)
            .map_err(|_| HashError::Syntax)?;
        Output::new(output).map_err(|_| HashError::Syntax)
    }
}

/// Checks that `hash`, from a configuration, is a PHC string that this machine can verify.
///
/// Errors: the reason why it cannot.
pub fn check_hash(hash: &str) -> Result<(), HashError> {
    ParsedHash::parse(hash).map(|_| ())
}

struct ParsedHash {
    params: Params,
    salt: Salt,
    expected: Output,
}

impl ParsedHash {
    fn parse(hash: &str) -> Result<ParsedHash, HashError> {
        let hash = PasswordHash::new(hash).map_err(|_| HashError::Syntax)?;
        if hash.algorithm.as_str() != "argon2id" || hash.version != Some(0x13) {
            return Err(HashError::Algorithm);
        }
        let parameter = |name: &str| hash.params.get_decimal(name).ok_or(HashError::Syntax);
        let (memory_kib, passes, lanes) = (parameter("m")?, parameter("t")?, parameter("p")?);
        if memory_kib > MEMORY_KIB_MAX || memory_kib.saturating_mul(passes) > WORK_KIB_MAX {
            return Err(HashError::TooCostly);
        }
        let (salt, expected) =
            (hash.salt.ok_or(HashError::Syntax)?, hash.hash.ok_or(HashError::Syntax)?);
        let params = Params::new(memory_kib, passes, lanes, Some(expected.len()))
            .map_err(|_| HashError::Syntax)?;
        Ok(ParsedHash { params, salt, expected })
    }
}
