//! Turns the fields of a block into the request line and fields of HTTP/1.1.
//!
//! Implements: RFC 9113 sections 8.1.1 (malformed), 8.2 (fields), 8.3.1 (requests) and 8.5
//! (CONNECT).

use http2::FieldList;

use crate::framing;
use crate::head::{self, FieldBuffer, FieldName, RequestHead};

/// The request is malformed. Only its stream ends, and the connection continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Malformed;

/// The parsed head of a request.
pub(super) struct Request<'a> {
    method: &'a [u8],
    target: &'a [u8],
    fields: FieldBuffer<'a>,
    /// The length of the body in bytes, if the client announced it.
    pub(super) length: Option<u64>,
}

/// The pseudo-header fields, which replace the request line.
#[derive(Default)]
struct Pseudo<'a> {
    method: Option<&'a [u8]>,
    scheme: Option<&'a [u8]>,
    authority: Option<&'a [u8]>,
    path: Option<&'a [u8]>,
}

impl<'a> Pseudo<'a> {
    /// Stores the value of the field called `name`. Errors: the name is unknown, or occurs twice.
    fn take(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), Malformed> {
        let place = match name {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            _ => return Err(Malformed),
        };
        if place.replace(value).is_some() { Err(Malformed) } else { Ok(()) }
    }

    /// The method and the target of the equivalent request line.
    fn request_line(&self) -> Result<(&'a [u8], &'a [u8]), Malformed> {
        let method = self.method.filter(|method| head::is_token(method)).ok_or(Malformed)?;
        if method == b"CONNECT" {
            let is_connect = self.scheme.is_none() && self.path.is_none();
            return self
                .authority
                .filter(|_| is_connect)
                .map(|authority| (method, authority))
                .ok_or(Malformed);
        }
        self.scheme.filter(|scheme| head::is_token(scheme)).ok_or(Malformed)?;
        let path = self.path.filter(|path| head::is_visible(path)).ok_or(Malformed)?;
        let is_path = path.starts_with(b"/") || (path == b"*" && method == b"OPTIONS");
        if is_path { Ok((method, path)) } else { Err(Malformed) }
    }
}

impl<'a> Request<'a> {
    pub(super) fn read(fields: &'a FieldList) -> Result<Request<'a>, Malformed> {
        let mut pseudo = Pseudo::default();
        let mut room = FieldBuffer::new();
        let mut length = None;
        let mut is_behind = false;
        for (name, value) in fields.iter() {
            check(name, value)?;
            if name.starts_with(b":") {
                pseudo.take(name, value)?;
                if is_behind {
                    return Err(Malformed);
                }
                continue;
            }
            is_behind = true;
            let Some(name) = known(name, value)? else { continue };
            match name {
                FieldName::ContentLength if length.is_some() => return Err(Malformed),
                FieldName::ContentLength => {
                    length = Some(framing::decimal(value).ok_or(Malformed)?)
                }
                // A request may have both `Host` and `:authority`, if they have the same value.
                FieldName::Host if pseudo.authority.is_some() => {
                    if pseudo.authority != Some(value) {
                        return Err(Malformed);
                    }
                }
                _ => room.push((name, value)).map_err(|_| Malformed)?,
            }
        }
        let (method, target) = pseudo.request_line()?;
        if let Some(authority) = pseudo.authority {
            room.push((FieldName::Host, authority)).map_err(|_| Malformed)?;
        }
        Ok(Request { method, target, fields: room, length })
    }

    /// The equivalent head of HTTP/1.1.
    pub(super) fn head(&self) -> RequestHead<'a, '_> {
        RequestHead::of(self.method, self.target, &self.fields)
    }
}

/// Checks that the fields are valid as trailers.
pub(super) fn check_trailers(fields: &FieldList) -> Result<(), Malformed> {
    fields.iter().try_for_each(|(name, value)| {
        check(name, value)?;
        if name.starts_with(b":") { Err(Malformed) } else { known(name, value).map(|_| ()) }
    })
}

/// Checks a field (RFC 9113 section 8.2.1): its name is a lower-case token, and its value is valid
/// in HTTP/1.1.
fn check(name: &[u8], value: &[u8]) -> Result<(), Malformed> {
    let bare = name.strip_prefix(b":").unwrap_or(name);
    let is_name = head::is_token(bare) && !bare.iter().any(u8::is_ascii_uppercase);
    let is_value =
        head::is_value(value) && !matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
    if is_name && is_value { Ok(()) } else { Err(Malformed) }
}

/// The name of the field, if it has a [`FieldName`]. Errors: the field is a connection-specific
/// field of HTTP/1.1 (RFC 9113 section 8.2.2).
fn known(name: &[u8], value: &[u8]) -> Result<Option<FieldName>, Malformed> {
    match name {
        b"proxy-connection" | b"keep-alive" | b"upgrade" => return Err(Malformed),
        b"te" if value != b"trailers" => return Err(Malformed),
        _ => {}
    }
    match FieldName::of(name) {
        Some(FieldName::Connection | FieldName::TransferEncoding) => Err(Malformed),
        name => Ok(name),
    }
}
