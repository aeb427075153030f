//! A user that reads and writes mail in a browser, at our webmail or at Roundcube: the requests of
//! the browser at each step.
//!
//! For Roundcube, a step includes the requests of a page's scripts. For both webmails, a step
//! excludes files that a browser caches: scripts, styles and pictures.

use std::net::SocketAddr;
use std::sync::Arc;

use host::Failure;
use rustls::client::ClientConfig;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::browser::{Browser, Question};
use crate::beside::Side;
use crate::beside::mailboxes::{PASSWORD, address, text};

/// Texts by which a response is recognised: in each message, in each message list, and on the page
/// for writing a message.
const IN_MESSAGE: &str = "The quick brown fox";
const IN_LIST: &str = "Notes on the engine";

/// A user that is logged in.
pub(super) struct Reader {
    side: Side,
    pub(super) browser: Browser,
    /// The CSRF token in the user's forms.
    token: String,
}

/// A login in two requests: the page with the form, and the submitted form.
pub(super) struct Login {
    side: Side,
    pub(super) browser: Browser,
    token: String,
}

impl Login {
    /// Requests the login page.
    pub(super) fn begin(
        side: Side,
        guest: SocketAddr,
        settings: &Arc<ClientConfig>,
    ) -> Result<Login, Failure> {
        let mut browser = Browser::open(guest, settings)?;
        let page = browser.ask(&Login::page(side))?;
        let token = if side == Side::Peer {
            between(&page.body, "name=\"_token\" value=\"", "\"")?
        } else {
            ""
        }
        .into();
        Ok(Login { side, browser, token })
    }

    pub(super) fn page(side: Side) -> Question {
        match side {
            Side::Ours => Question::get("/mail/login", "Sign in"),
            Side::Peer => Question::get("/?_task=login", "_token"),
        }
    }

    /// The submitted login form.
    pub(super) fn form(&self, name: &str) -> Question {
        let name = address(name);
        match self.side {
            Side::Ours => {
                let fields = [("name", name.as_str()), ("password", PASSWORD), ("next", "")];
                Question::form("/mail/login", &fields).expecting(303, "")
            }
            Side::Peer => {
                let fields = [
                    ("_token", self.token.as_str()),
                    ("_task", "login"),
                    ("_action", "login"),
                    ("_timezone", "UTC"),
                    ("_url", ""),
                    ("_user", &name),
                    ("_pass", PASSWORD),
                ];
                Question::form("/?_task=login", &fields).expecting(302, "")
            }
        }
    }

    /// Returns the logged-in user. The caller has sent the form.
    pub(super) fn finish(self) -> Result<Reader, Failure> {
        let Login { side, mut browser, .. } = self;
        let mut token = String::new();
        if let Some(page) = inbox(side).first() {
            let body = browser.ask(&page.clone().expecting(200, ""))?.body;
            token = match side {
                Side::Ours => between(&body, "name=\"token\" value=\"", "\"")?,
                Side::Peer => between(&body, "\"request_token\":\"", "\"")?,
            }
            .to_string();
        }
        Ok(Reader { side, browser, token })
    }
}

impl Reader {
    pub(super) fn log_in(
        side: Side,
        guest: SocketAddr,
        settings: &Arc<ClientConfig>,
        name: &str,
    ) -> Result<Reader, Failure> {
        let mut login = Login::begin(side, guest, settings)?;
        let form = login.form(name);
        login.browser.ask(&form)?;
        login.finish()
    }

    /// All requests that open an inbox.
    pub(super) fn inbox(&self) -> Vec<Question> {
        inbox(self.side).into_iter().map(|question| self.known(question)).collect()
    }

    /// The cheapest requests that show the list of an inbox. At ours this is one page. At Roundcube
    /// it is the last request of the inbox page's scripts.
    pub(super) fn list(&self) -> Vec<Question> {
        self.inbox().pop().into_iter().collect()
    }

    /// Requests a message of the inbox. The first number is 1.
    pub(super) fn message(&self, number: usize) -> Question {
        let target = match self.side {
            Side::Ours => format!("/mail/box/1/{number}"),
            Side::Peer => format!("/?_task=mail&_uid={number}&_mbox=INBOX&_action=show"),
        };
        Question::get(target, IN_MESSAGE)
    }

    /// The place of a message in our list of the inbox, as addresses name it.
    pub(super) fn place(&mut self, number: usize) -> Result<String, Failure> {
        let page = self.browser.ask(&self.message(number))?.body;
        let moment = between(&page, "<time datetime=\"", "\"")?;
        let date = OffsetDateTime::parse(moment, &Rfc3339)
            .map_err(|_| Failure::broke(format_args!("{moment} is no time")))?;
        let guid = between(&page, "value=\"/mail/message/", "\"")?
            .split_once('.')
            .map_or("", |(_, rest)| rest.split('?').next().unwrap_or_default());
        Ok(format!("{}.{guid}.{number}", date.unix_timestamp()))
    }

    /// Requests the attached file of a message.
    pub(super) fn file(&self, number: usize) -> Question {
        let target = match self.side {
            Side::Ours => format!("/mail/part/1.{number}/2"),
            Side::Peer => {
                let token = &self.token;
                format!(
                    "/?_task=mail&_action=get&_mbox=INBOX&_uid={number}&_part=2&_download=1&_token={token}"
                )
            }
        };
        Question::get(target, "zzzz")
    }

    /// Performs an action on messages with our webmail's form.
    pub(super) fn act(&self, fields: &[(&str, &str)]) -> Question {
        let token = [("token", self.token.as_str()), ("here", "/mail/box/1")];
        Question::form("/mail/act", &[&token, fields].concat()).expecting(303, "")
    }

    /// Our page for writing a message.
    pub(super) fn page_for_message() -> Question {
        Question::get("/mail/compose", "name=\"text\"")
    }

    /// Opens the page for writing a message. Returns the peer's identifier for it.
    pub(super) fn begin_message(&mut self) -> Result<String, Failure> {
        if self.side == Side::Ours {
            // Undo send is off, because the measured time ends when messages reach their
            // recipients.
            let fields = [("token", self.token.as_str()), ("hold", "0"), ("do", "save")];
            self.browser.ask(&Question::form("/mail/settings", &fields).expecting(303, ""))?;
            self.browser.ask(&Reader::page_for_message())?;
            return Ok(String::new());
        }
        let begun = self
            .browser
            .ask(&Question::get("/?_task=mail&_action=compose", "").expecting(302, ""))?;
        self.browser.ask(&Question::get(&begun.location, "_message"))?;
        Ok(begun.location.rsplit_once("_id=").unwrap_or_default().1.to_string())
    }

    /// Sends a message with a text of this many bytes, and perhaps with a file.
    pub(super) fn send(
        &self,
        begun: &str,
        to: &str,
        text_bytes: usize,
        file: Option<&[u8]>,
    ) -> Vec<Question> {
        let (to, text) = (address(to), text(text_bytes));
        if self.side == Side::Peer {
            let upload = file.map(|file| self.upload(begun, file));
            return upload.into_iter().chain([self.send_at_peer(begun, &to, &text)]).collect();
        }
        let fields = [
            ("token", self.token.as_str()),
            ("draft", ""),
            ("answers", ""),
            ("to", &to),
            ("cc", ""),
            ("bcc", ""),
            ("subject", "Notes on the engine"),
            ("text", &text),
            ("do", "send"),
        ];
        let file = ("files", file.unwrap_or_default());
        let form = if file.1.is_empty() {
            Question::form("/mail/compose", &fields)
        } else {
            Question::form_with_file("/mail/compose", &fields, file)
        };
        vec![form.expecting(303, "")]
    }

    fn upload(&self, begun: &str, file: &[u8]) -> Question {
        let target = format!(
            "/?_task=mail&_action=upload&_id={begun}&_uploadid=upload1&_remote=1&_from=compose"
        );
        let form =
            Question::form_with_file(target, &[("_token", &self.token)], ("_attachments[]", file));
        self.known(form.expecting(200, "add2attachment_list"))
    }

    fn send_at_peer(&self, begun: &str, to: &str, text: &str) -> Question {
        let fields = [
            ("_token", self.token.as_str()),
            ("_task", "mail"),
            ("_action", "send"),
            ("_id", begun),
            ("_attachments", ""),
            ("_from", "1"),
            ("_to", to),
            ("_cc", ""),
            ("_bcc", ""),
            ("_subject", "Notes on the engine"),
            ("_message", text),
            ("_is_html", "0"),
            ("_store_target", "Sent"),
            ("_framed", "1"),
        ];
        Question::form("/?_task=mail&_action=send", &fields).expecting(200, "sent_successfully")
    }

    /// Adds the header fields by which Roundcube's scripts name their page.
    fn known(&self, question: Question) -> Question {
        match self.side {
            Side::Ours => question,
            Side::Peer => question.with_field("X-Roundcube-Request", &self.token),
        }
    }
}

fn inbox(side: Side) -> Vec<Question> {
    match side {
        Side::Ours => vec![Question::get("/mail/box/1", IN_LIST)],
        Side::Peer => vec![
            Question::get("/?_task=mail&_mbox=INBOX", "request_token"),
            Question::get("/?_task=mail&_action=list&_refresh=1&_mbox=INBOX&_remote=1", IN_LIST),
        ],
    }
}

/// The text between two others.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str, Failure> {
    let rest = text.split_once(before).map(|(_, rest)| rest);
    let found = rest.and_then(|rest| rest.split_once(after)).map(|(found, _)| found);
    found.ok_or_else(|| Failure::broke(format_args!("a page has no {before}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_token_of_a_page_is_found() {
        let page = "<input name=\"token\" value=\"abc\"><input name=\"token\" value=\"d\">";
        assert_eq!(between(page, "name=\"token\" value=\"", "\"").unwrap(), "abc");
        assert!(between(page, "name=\"_token\" value=\"", "\"").is_err());
    }
}
