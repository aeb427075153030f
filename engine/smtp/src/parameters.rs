//! The parameters after a path in MAIL and RCPT.
//!
//! Implements: RFC 5321 section 4.1.1.11, RFC 1870 section 3 (SIZE), RFC 6152 section 2 (BODY), RFC
//! 6531 section 3.4, RFC 4954 section 5 (AUTH), RFC 3461 sections 4.1 to 4.4 (NOTIFY, ORCPT, RET,
//! ENVID), RFC 4865 section 4 (HOLDFOR, HOLDUNTIL).

use crate::command::{BodyType, CommandError};
use crate::dsn::{EnvelopeId, Notify, Original, Return};
use crate::hold::Hold;
use crate::path::split_at_byte;

/// The parameters of MAIL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct MailParameters<'a> {
    pub(crate) declared_bytes: Option<u64>,
    pub(crate) body: Option<BodyType>,
    pub(crate) smtputf8: bool,
    pub(crate) auth: bool,
    pub(crate) returned: Option<Return>,
    pub(crate) envelope_id: Option<EnvelopeId<'a>>,
    pub(crate) hold: Option<Hold>,
}

/// The parameters of RCPT.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RecipientParameters<'a> {
    pub(crate) notify: Option<Notify>,
    pub(crate) original: Option<Original<'a>>,
}

/// Reads the text after the path of MAIL.
pub(crate) fn mail_parameters(text: &str) -> Result<MailParameters<'_>, CommandError> {
    let mut parameters = MailParameters::default();
    for (keyword, value) in parameters_of(text) {
        let repeated = if keyword.eq_ignore_ascii_case("SIZE") {
            parameters.declared_bytes.replace(read(value, decimal)?).is_some()
        } else if keyword.eq_ignore_ascii_case("BODY") {
            parameters.body.replace(body(value)?).is_some()
        } else if keyword.eq_ignore_ascii_case("SMTPUTF8") {
            if value.is_some() {
                return Err(CommandError::BadParameter);
            }
            core::mem::replace(&mut parameters.smtputf8, true)
        } else if keyword.eq_ignore_ascii_case("AUTH") {
            // The original submitter (RFC 4954 section 5). It is ignored, because the client is not
            // trusted.
            if value.is_none_or(str::is_empty) {
                return Err(CommandError::BadParameter);
            }
            core::mem::replace(&mut parameters.auth, true)
        } else if keyword.eq_ignore_ascii_case("RET") {
            parameters.returned.replace(read(value, Return::read)?).is_some()
        } else if keyword.eq_ignore_ascii_case("ENVID") {
            parameters.envelope_id.replace(read(value, EnvelopeId::read)?).is_some()
        } else if keyword.eq_ignore_ascii_case("HOLDFOR") {
            parameters.hold.replace(read(value, Hold::read_for)?).is_some()
        } else if keyword.eq_ignore_ascii_case("HOLDUNTIL") {
            parameters.hold.replace(read(value, Hold::read_until)?).is_some()
        } else {
            return Err(CommandError::UnknownParameter);
        };
        if repeated {
            return Err(CommandError::BadParameter);
        }
    }
    Ok(parameters)
}

/// Reads the text after the path of RCPT.
pub(crate) fn recipient_parameters(text: &str) -> Result<RecipientParameters<'_>, CommandError> {
    let mut parameters = RecipientParameters::default();
    for (keyword, value) in parameters_of(text) {
        let repeated = if keyword.eq_ignore_ascii_case("NOTIFY") {
            parameters.notify.replace(read(value, Notify::read)?).is_some()
        } else if keyword.eq_ignore_ascii_case("ORCPT") {
            parameters.original.replace(read(value, Original::read)?).is_some()
        } else {
            return Err(CommandError::UnknownParameter);
        };
        if repeated {
            return Err(CommandError::BadParameter);
        }
    }
    Ok(parameters)
}

/// The keywords and values of the text after a path. Some clients leave out the space before the
/// first of them, after a closing bracket.
fn parameters_of(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.split(' ').filter(|word| !word.is_empty()).map(|word| {
        split_at_byte(word, b'=').map_or((word, None), |(keyword, value)| (keyword, Some(value)))
    })
}

fn read<'a, T>(value: Option<&'a str>, read: fn(&'a str) -> Option<T>) -> Result<T, CommandError> {
    value.and_then(read).ok_or(CommandError::BadParameter)
}

fn body(value: Option<&str>) -> Result<BodyType, CommandError> {
    match value {
        Some(value) if value.eq_ignore_ascii_case("7BIT") => Ok(BodyType::SevenBit),
        Some(value) if value.eq_ignore_ascii_case("8BITMIME") => Ok(BodyType::EightBitMime),
        _ => Err(CommandError::BadParameter),
    }
}

/// A number of one to twenty digits. A number of more than 64 bits becomes `u64::MAX`, which
/// exceeds every limit.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    if !(1..=20).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}
