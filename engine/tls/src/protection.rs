//! Record protection: the key of one direction, which encrypts and decrypts records.
//!
//! TLS 1.2 and 1.3 use the same three algorithms. They differ in the source of the nonce, in the
//! authenticated data, and in the place of the content type.
//!
//! Invariant: a key encrypts at most as many records as its algorithm allows. The nonce of each
//! record that it encrypts is derived from the number of the record.
//!
//! Implements: RFC 8446 sections 5.2, 5.3 and 5.5; RFC 5246 section 6.2.3.3, RFC 5288 section 3,
//! RFC 7905 section 2.

use ring::aead::{self, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rustls::ConnectionTrafficSecrets;

use crate::alert::Alert;
use crate::record::{ContentType, HEADER_BYTES, PLAINTEXT_BYTES_MAX, header};

const TAG_BYTES: usize = 16;
/// The size of the explicit nonce in a record of TLS 1.2 with AES-GCM.
const EXPLICIT_BYTES: usize = 8;
/// The size of the fixed part of a nonce of TLS 1.2 with AES-GCM.
const SALT_BYTES: usize = NONCE_LEN - EXPLICIT_BYTES;

/// The maximum number of bytes of an encrypted record in addition to its plaintext.
pub const ENCRYPTION_OVERHEAD_MAX: usize = HEADER_BYTES + EXPLICIT_BYTES + TAG_BYTES;

/// The record layout of a version and its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// TLS 1.3: the content type is encrypted.
    Tls13,
    /// TLS 1.2 with AES-GCM: the explicit nonce precedes the ciphertext.
    Tls12Explicit,
    /// TLS 1.2 with ChaCha20-Poly1305.
    Tls12,
}

impl Layout {
    /// The number of bytes of an encrypted record before and after its plaintext.
    pub(crate) fn around(self) -> (usize, usize) {
        match self {
            Layout::Tls13 => (HEADER_BYTES, 1 + TAG_BYTES),
            Layout::Tls12Explicit => (HEADER_BYTES + EXPLICIT_BYTES, TAG_BYTES),
            Layout::Tls12 => (HEADER_BYTES, TAG_BYTES),
        }
    }
}

/// The key and the counters of one direction of a connection.
pub(crate) struct RecordCipher {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    /// The number of the next record.
    sequence: u64,
    /// The number of records that the key may still encrypt.
    left: u64,
    pub(crate) layout: Layout,
}

/// Plaintext in two places that becomes one record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitPlaintext<'a> {
    /// The first part.
    pub first: &'a [u8],
    /// The part that follows.
    pub second: &'a [u8],
}

/// Plaintext in one place.
impl<'a> From<&'a [u8]> for SplitPlaintext<'a> {
    fn from(whole: &'a [u8]) -> SplitPlaintext<'a> {
        SplitPlaintext { first: whole, second: &[] }
    }
}

impl<'a, const LENGTH: usize> From<&'a [u8; LENGTH]> for SplitPlaintext<'a> {
    fn from(whole: &'a [u8; LENGTH]) -> SplitPlaintext<'a> {
        whole.as_slice().into()
    }
}

impl<'a> SplitPlaintext<'a> {
    /// The number of bytes in both places.
    pub fn len(&self) -> usize {
        self.first.len() + self.second.len()
    }

    /// Whether both places are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The plaintext after the first `count` bytes.
    pub fn behind(self, count: usize) -> SplitPlaintext<'a> {
        let of_second = count.saturating_sub(self.first.len());
        SplitPlaintext {
            first: self.first.get(count..).unwrap_or_default(),
            second: self.second.get(of_second..).unwrap_or_default(),
        }
    }

    fn up_to(self, count: usize) -> SplitPlaintext<'a> {
        let of_second = count.saturating_sub(self.first.len());
        SplitPlaintext {
            first: self.first.get(..count).unwrap_or(self.first),
            second: self.second.get(..of_second).unwrap_or(self.second),
        }
    }

    /// Copies the plaintext to `place`, which has exactly its length. `None` if the lengths differ.
    fn copy_to(self, place: &mut [u8]) -> Option<()> {
        let (first, second) = place.split_at_mut_checked(self.first.len())?;
        first.copy_from_slice(self.first);
        second.copy_from_slice(self.second);
        Some(())
    }
}

/// The place of the content of a decrypted record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DecryptedContent {
    pub(crate) content: ContentType,
    /// The offset of the content from the start of the record.
    pub(crate) start: usize,
    pub(crate) length: usize,
}

impl RecordCipher {
    /// Makes the cipher of one direction. `number`: the number of the first record. `None` if the
    /// secrets belong to an algorithm that we do not offer.
    pub(crate) fn new(
        number: u64,
        secrets: ConnectionTrafficSecrets,
        is_tls13: bool,
    ) -> Option<RecordCipher> {
        let (algorithm, key, iv) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&aead::AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&aead::AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => {
                (&aead::CHACHA20_POLY1305, key, iv)
            }
            _ => return None,
        };
        let layout = match is_tls13 {
            true => Layout::Tls13,
            false if algorithm == &aead::CHACHA20_POLY1305 => Layout::Tls12,
            false => Layout::Tls12Explicit,
        };
        // The limit of RFC 8446 section 5.5. ChaCha20-Poly1305 has no limit that a connection could
        // reach.
        let records_max = if algorithm == &aead::CHACHA20_POLY1305 { u64::MAX } else { 1 << 24 };
        Some(RecordCipher {
            key: LessSafeKey::new(UnboundKey::new(algorithm, key.as_ref()).ok()?),
            iv: iv.as_ref().try_into().ok()?,
            sequence: number,
            left: records_max.saturating_sub(number),
            layout,
        })
    }

    /// Whether the key may encrypt only one more record, which is reserved for a message to the
    /// peer: a key update or an alert.
    pub(crate) fn is_at_its_end(&self) -> bool {
        self.left <= 1
    }

    /// Makes the key behave as if it may encrypt only `left` more records.
    #[cfg(test)]
    pub(crate) fn set_records_left(&mut self, left: u64) {
        self.left = left;
    }

    fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, number) in
            nonce.iter_mut().skip(NONCE_LEN - size_of::<u64>()).zip(self.sequence.to_be_bytes())
        {
            *byte ^= number;
        }
        nonce
    }

    /// The data that TLS 1.2 authenticates with the plaintext.
    fn tls12_data(
        &self,
        [content, major, minor, ..]: [u8; HEADER_BYTES],
        length: usize,
    ) -> [u8; 13] {
        let [a, b, c, d, e, f, g, h] = self.sequence.to_be_bytes();
        let [high, low] = (length as u16).to_be_bytes();
        [a, b, c, d, e, f, g, h, content, major, minor, high, low]
    }

    /// Encrypts as much of `plaintext` as fits into one record at the start of `into`. Returns the
    /// number of plaintext bytes encrypted and the number of bytes written. Both are zero if `into`
    /// has no space, or if the key has reached its limit.
    pub(crate) fn encrypt<'a>(
        &mut self,
        content: ContentType,
        plaintext: impl Into<SplitPlaintext<'a>>,
        into: &mut [u8],
    ) -> (usize, usize) {
        let (before, behind) = self.layout.around();
        let room = into.len().saturating_sub(before + behind).min(PLAINTEXT_BYTES_MAX);
        let plaintext = plaintext.into().up_to(room);
        let length = before + plaintext.len() + behind;
        let Some(record) = into.get_mut(..length).filter(|_| room > 0 && self.left > 0) else {
            return (0, 0);
        };
        match self.encrypt_record(content, plaintext, record) {
            Some(()) => (plaintext.len(), length),
            None => (0, 0),
        }
    }

    /// Encrypts a record. `record`: exactly as long as the result.
    pub(crate) fn encrypt_record(
        &mut self,
        content: ContentType,
        plaintext: SplitPlaintext<'_>,
        record: &mut [u8],
    ) -> Option<()> {
        let nonce = self.nonce();
        let outer =
            if self.layout == Layout::Tls13 { ContentType::ApplicationData } else { content };
        let header = header(outer, record.len() - HEADER_BYTES);
        let (front, payload) = record.split_first_chunk_mut::<HEADER_BYTES>()?;
        *front = header;
        let (payload, tag_place) = payload.split_last_chunk_mut::<TAG_BYTES>()?;
        let ring_nonce = Nonce::assume_unique_for_key(nonce);
        let tag = match self.layout {
            Layout::Tls13 => {
                let (kind, text) = payload.split_last_mut()?;
                plaintext.copy_to(text)?;
                *kind = content as u8;
                self.key.seal_in_place_separate_tag(ring_nonce, Aad::from(header), payload)
            }
            Layout::Tls12Explicit => {
                let (explicit, text) = payload.split_first_chunk_mut::<EXPLICIT_BYTES>()?;
                explicit.copy_from_slice(nonce.get(SALT_BYTES..)?);
                plaintext.copy_to(text)?;
                let data = self.tls12_data(header, plaintext.len());
                self.key.seal_in_place_separate_tag(ring_nonce, Aad::from(data), text)
            }
            Layout::Tls12 => {
                plaintext.copy_to(payload)?;
                let data = self.tls12_data(header, plaintext.len());
                self.key.seal_in_place_separate_tag(ring_nonce, Aad::from(data), payload)
            }
        };
        tag_place.copy_from_slice(tag.ok()?.as_ref());
        self.sequence += 1;
        self.left -= 1;
        Some(())
    }

    /// Decrypts a whole record in place.
    ///
    /// Errors: the alert to send to the peer.
    pub(crate) fn open(
        &mut self,
        content: ContentType,
        record: &mut [u8],
    ) -> Result<DecryptedContent, Alert> {
        let (before, behind) = self.layout.around();
        if record.len() < before + behind {
            return Err(Alert::BAD_RECORD_MAC);
        }
        let header = *record.first_chunk::<HEADER_BYTES>().ok_or(Alert::DECODE_ERROR)?;
        let text = match self.layout {
            Layout::Tls13 => {
                if content != ContentType::ApplicationData {
                    return Err(Alert::UNEXPECTED_MESSAGE);
                }
                let nonce = self.nonce();
                let payload = record.get_mut(before..).ok_or(Alert::DECODE_ERROR)?;
                self.key.open_in_place(
                    Nonce::assume_unique_for_key(nonce),
                    Aad::from(header),
                    payload,
                )
            }
            Layout::Tls12Explicit => {
                let mut nonce = self.iv;
                let data = self.tls12_data(header, record.len() - before - behind);
                let (head, payload) =
                    record.split_at_mut_checked(before).ok_or(Alert::DECODE_ERROR)?;
                let explicit = head.last_chunk::<EXPLICIT_BYTES>().ok_or(Alert::DECODE_ERROR)?;
                nonce
                    .last_chunk_mut::<EXPLICIT_BYTES>()
                    .ok_or(Alert::INTERNAL_ERROR)?
                    .copy_from_slice(explicit);
                self.key.open_in_place(
                    Nonce::assume_unique_for_key(nonce),
                    Aad::from(data),
                    payload,
                )
            }
            Layout::Tls12 => {
                let data = self.tls12_data(header, record.len() - before - behind);
                let nonce = self.nonce();
                let payload = record.get_mut(before..).ok_or(Alert::DECODE_ERROR)?;
                self.key.open_in_place(
                    Nonce::assume_unique_for_key(nonce),
                    Aad::from(data),
                    payload,
                )
            }
        };
        let text = text.map_err(|_| Alert::BAD_RECORD_MAC)?;
        self.sequence = self.sequence.checked_add(1).ok_or(Alert::INTERNAL_ERROR)?;
        let (content, length) = match self.layout {
            Layout::Tls13 => inner_content(text)?,
            Layout::Tls12Explicit | Layout::Tls12 => (content, text.len()),
        };
        if length > PLAINTEXT_BYTES_MAX {
            return Err(Alert::RECORD_OVERFLOW);
        }
        Ok(DecryptedContent { content, start: before, length })
    }
}

/// The content type of a decrypted record of TLS 1.3, and its length. The content type and zeros
/// follow the content (RFC 8446 section 5.4).
fn inner_content(text: &[u8]) -> Result<(ContentType, usize), Alert> {
    if text.len() > PLAINTEXT_BYTES_MAX + 1 {
        return Err(Alert::RECORD_OVERFLOW);
    }
    let at = text.iter().rposition(|byte| *byte != 0).ok_or(Alert::UNEXPECTED_MESSAGE)?;
    let kind = text.get(at).copied().and_then(ContentType::of).ok_or(Alert::UNEXPECTED_MESSAGE)?;
    Ok((kind, at))
}
