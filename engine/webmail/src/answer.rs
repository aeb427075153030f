//! Replies to a browser: a page, a document or a redirect, and the header fields that keep them
//! safe.
//!
//! Invariants:
//! - Our pages run no inline code, load nothing from other sites, and cannot be framed.
//! - A part of a message is a download, or a document in a sandbox without scripts and forms. The
//!   document in a frame has our origin, so that the script of the page can measure it. But nothing
//!   in it can use that origin: it runs no code, loads nothing from our host, and navigates no
//!   window but its own and those that it opens. The same holds for a document that is alone in a
//!   window.
//! - No cache may store a part of an account's mail.
//! - A page of another site cannot get a handle of our windows, and cannot load our replies as
//!   images or scripts. A document in a sandbox has no opener policy, since browsers would refuse
//!   to show it.
//! - A browser does not resolve the host names in the links of a page or a message before the
//!   reader follows a link.
//!
//! Implements: RFC 9110 section 15; Content Security Policy Level 3; RFC 6266 (names of downloads);
//! Clear Site Data section 3; HTML section 7.1.3 (Cross-Origin-Opener-Policy); Fetch section 3.7
//! (Cross-Origin-Resource-Policy). `X-DNS-Prefetch-Control` has no standard, but Chromium and
//! Firefox support it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use askama::Template;
use http::{OpenReply, Reply, ReplyField, Status};
use store::Refusal;

use crate::address::with_flash;
use crate::login::LoginPage;
use crate::refused::RefusedPage;
use crate::remote_content::RemoteContent;
use crate::ticket::clear_cookie;
use crate::{Destination, WebPage};

/// The size of a list page without its rows in bytes, for a user with a few mailboxes.
const AROUND_ROWS_BYTES: usize = 6_144;

/// The policy of our pages.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; \
                           base-uri 'none'; frame-ancestors 'none'";

/// The policy of a message's HTML in our frame. Its links open a new window. Its images are
/// attachments of the message, which are inlined as `data:`.
const MESSAGE_POLICY: &str = "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                             form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// The policy of a message's HTML after the reader has asked for remote content. It may load only
/// images, fonts and styles. A policy cannot allow all hosts except ours. So `router` refuses to
/// send a page as an image.
const MESSAGE_POLICY_LOADED: &str = "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox; default-src 'none'; style-src 'unsafe-inline' https:; font-src https: data:; \
                                    img-src https: http: data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// The policy of all other replies.
const NOTHING_POLICY: &str = "sandbox; default-src 'none'; frame-ancestors 'none'";

/// Facts about a document that are known before its octets are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Title {
    /// A file to download.
    File {
        /// The name. If it is empty, the browser takes the name from the link to the file.
        name: String,
        media_type: &'static str,
        /// The length in octets, if it is known.
        length: Option<u64>,
    },
    /// The HTML of a message, which is shown in a sandbox.
    Html(RemoteContent),
}

impl Title {
    pub(crate) fn media_type(&self) -> &'static str {
        match self {
            Title::File { media_type, .. } => media_type,
            Title::Html(_) => "text/html; charset=utf-8",
        }
    }
}

/// A page of the webmail.
pub(crate) fn page(page: &impl Template) -> Reply {
    page_of(Status::Ok, page)
}

/// A list page. `bytes`: the size of its rows, for which memory is reserved at once.
pub(crate) fn page_with_rows(page: &impl Template, bytes: usize) -> Reply {
    written(Status::Ok, page, AROUND_ROWS_BYTES + bytes)
}

/// A page, sent with this status.
pub(crate) fn page_of<T: Template>(status: Status, page: &T) -> Reply {
    written(status, page, T::SIZE_HINT)
}

/// Renders a page. `bytes`: its expected size.
fn written(status: Status, page: &impl Template, bytes: usize) -> Reply {
    let mut text = String::with_capacity(bytes);
    // Rendering cannot fail, whatever values the template gets.
    let _ = page.render_into(&mut text);
    // With the policy `no-referrer`, a browser would not send `Origin` with our own forms.
    private(status, "text/html; charset=utf-8", text.into_bytes())
        .with(ReplyField::ReferrerPolicy, "same-origin")
        .with(ReplyField::XDnsPrefetchControl, "off")
        .with(ReplyField::ContentSecurityPolicy, PAGE_POLICY)
        .with(ReplyField::CrossOriginOpenerPolicy, "same-origin")
}

/// The error page for an address without a page.
pub(crate) fn not_found() -> Reply {
    error_page(
        Status::NotFound,
        "This page does not exist, or what it showed was moved or deleted.",
    )
}

/// The error page after the store has refused a request. `why`: the text for the reader.
pub(crate) fn refused(refusal: Refusal, why: &str) -> Reply {
    let is_gone =
        matches!(refusal, Refusal::NoSuchMessage | Refusal::NoSuchMailbox | Refusal::NoSuchAccount);
    error_page(if is_gone { Status::NotFound } else { Status::ServiceUnavailable }, why)
}

/// An error page with this text.
pub(crate) fn error_page(status: Status, words: &str) -> Reply {
    let title = if status == Status::NotFound { "Not found" } else { "Request failed" };
    page_of(status, &RefusedPage { title, words })
}

/// The error page for a form that does not come from a page of its session.
pub(crate) fn not_of_session() -> Reply {
    error_page(
        Status::Forbidden,
        "This form does not belong to your current session. Go back, reload the page, and try again.",
    )
}

/// A redirect. `path`: the address of a page of the webmail.
pub(crate) fn redirect(path: &str) -> Reply {
    private(Status::SeeOther, "text/plain; charset=utf-8", Vec::new())
        .with(ReplyField::ContentSecurityPolicy, NOTHING_POLICY)
        .with(ReplyField::Location, path)
}

/// The reply to the script if the page stays as it is.
pub(crate) fn nothing() -> Reply {
    private(Status::NoContent, "text/plain; charset=utf-8", Vec::new())
        .with(ReplyField::ContentSecurityPolicy, NOTHING_POLICY)
}

/// A redirect to a page. `notice`: the number of the flash message that the page shows, if one was
/// stored.
pub(crate) fn redirect_with_flash(path: &str, notice: Option<u64>) -> Reply {
    match notice {
        Some(notice) => redirect(&with_flash(path, notice)),
        None => redirect(path),
    }
}

/// A redirect to the login page. `wanted`: the destination after the login.
pub(crate) fn login(wanted: Destination) -> Reply {
    redirect(&WebPage::Login(wanted).to_string())
}

/// The reply to a client that is logged out. Its browser deletes the ticket and all cached pages.
pub(crate) fn logged_out() -> Reply {
    to_be_forgotten(login(Destination::default()))
}

/// The reply to a client that is logged out although the disk failed to store the end of the
/// session. The session stays ended until the machine restarts. If the store has removed its note
/// by then, the session stays ended for ever.
pub(crate) fn logged_out_until_restart(host: &str) -> Reply {
    let error = "You are signed out, but the server could not save this to its disk. It will keep \
                 trying. If it restarts before it succeeds, this session becomes valid again: \
                 sign in then, and end the session in Settings.";
    let next = Destination::default();
    let page = LoginPage {
        host,
        name: "",
        next: next.as_str(),
        notice: None,
        error: Some(error),
        draft: "",
    };
    to_be_forgotten(page_of(Status::ServiceUnavailable, &page))
}

/// Adds the fields that make the browser delete the ticket and all cached pages.
fn to_be_forgotten(reply: Reply) -> Reply {
    reply
        .with(ReplyField::SetCookie, &clear_cookie().to_string())
        .with(ReplyField::ClearSiteData, "\"cache\"")
}

/// A document from an account's mail: a file to download, or HTML to show.
pub(crate) fn document(title: &Title, body: Vec<u8>) -> Reply {
    titled(title, Reply::new(Status::Ok, title.media_type(), body))
}

/// An open reply with a document from an account's mail. `first`: the first piece of the document.
pub(crate) fn document_begins(title: &Title, first: Vec<u8>, open: OpenReply) -> Reply {
    titled(title, Reply::open(title.media_type(), first, open))
}

fn titled(title: &Title, reply: Reply) -> Reply {
    let reply = with_private_fields(reply);
    match title {
        Title::File { name, .. } => reply
            .with(ReplyField::ContentDisposition, &disposition(name))
            .with(ReplyField::ContentSecurityPolicy, NOTHING_POLICY),
        Title::Html(remote_content) => reply
            .with(ReplyField::ReferrerPolicy, "no-referrer")
            .with(ReplyField::XDnsPrefetchControl, "off")
            .with(
                ReplyField::ContentSecurityPolicy,
                match remote_content {
                    RemoteContent::Blocked => MESSAGE_POLICY,
                    RemoteContent::Loaded => MESSAGE_POLICY_LOADED,
                },
            ),
    }
}

fn private(status: Status, media_type: &'static str, body: Vec<u8>) -> Reply {
    with_private_fields(Reply::new(status, media_type, body))
}

fn with_private_fields(reply: Reply) -> Reply {
    reply
        .with(ReplyField::CacheControl, "no-store")
        .with(ReplyField::XContentTypeOptions, "nosniff")
        .with(ReplyField::CrossOriginResourcePolicy, "same-origin")
}

/// The value of `Content-Disposition` (RFC 6266 section 5, appendix D). It has a name in ASCII for
/// all browsers, and the true name for browsers that support `filename*`. Browsers use the name in
/// a link only if this value has no name.
fn disposition(name: &str) -> String {
    if name.is_empty() {
        return "attachment".into();
    }
    let is_plain = |character: char| {
        character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_' | ' ')
    };
    let ascii: String =
        name.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    let mut value = format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''");
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_') {
            value.push(char::from(byte));
        } else {
            value.push_str(&format!("%{byte:02X}"));
        }
    }
    value
}
