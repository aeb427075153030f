//! Parameters after a media type or a disposition: `; name=value; name="value"`.
//!
//! In a quoted value a backslash is a plain character. Browsers do not use it as an escape, and a
//! file name may end with a backslash.
//!
//! Implements: RFC 9110 section 5.6.6, except for quoted pairs; the HTML Standard section
//! 4.10.21.8.

use super::FormError;

/// The values of the parameters `names`. `parameters` begins at the first semicolon.
///
/// Errors: the syntax is invalid, or a parameter occurs twice.
pub(super) fn values<'a, const N: usize>(
    parameters: &'a str,
    names: [&str; N],
) -> Result<[Option<&'a str>; N], FormError> {
    let mut found = [None; N];
    let mut rest = blanks_cut(parameters);
    while !rest.is_empty() {
        let parameter = blanks_cut(rest.strip_prefix(';').ok_or(FormError::Malformed)?);
        if parameter.is_empty() {
            break;
        }
        let (name, value, tail) = parse(parameter).ok_or(FormError::Malformed)?;
        rest = blanks_cut(tail);
        let at = names.iter().position(|known| name.eq_ignore_ascii_case(known));
        if at.and_then(|at| found.get_mut(at)).is_some_and(|place| place.replace(value).is_some()) {
            return Err(FormError::Malformed);
        }
    }
    Ok(found)
}

/// The name and value of the first parameter, and the rest.
fn parse(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once('=').filter(|(name, _)| is_token(name))?;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(value, tail)| (name, value, tail)),
        None => {
            let (value, tail) = rest.split_at(rest.find([';', ' ', '\t']).unwrap_or(rest.len()));
            is_token(value).then_some((name, value, tail))
        }
    }
}

fn blanks_cut(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// Whether the text is a token (RFC 9110 section 5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_of_token)
}
