//! A page of the webmail, and the parts of it that a client parses.

use std::collections::BTreeMap;

use super::line::field;
use super::lists::ListRow;
use super::model::Model;

pub(super) struct WebmailPage {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl WebmailPage {
    pub(super) fn new(head: String, body: Vec<u8>) -> WebmailPage {
        let status = head.get(9..12).and_then(|code| code.parse().ok()).expect("a status line");
        WebmailPage { status, head, body }
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }

    /// Whether the response redirects to the login page.
    pub(super) fn is_login_redirect(&self) -> bool {
        self.status == 303 && self.location().starts_with("/mail/login")
    }

    pub(super) fn location(&self) -> &str {
        field(&self.head, "Location").unwrap_or_default()
    }

    /// The account that the title of the page names. `None` if the response is not an HTML page.
    pub(super) fn owner(&self) -> Option<String> {
        let is_page =
            field(&self.head, "Content-Type").is_some_and(|kind| kind.starts_with("text/html"));
        let title = between(self.text(), "<title>", "</title>").filter(|_| is_page)?;
        title.rsplit_once(" · ").map(|(_, owner)| owner.to_string())
    }

    /// The token that the forms of the page contain.
    pub(super) fn token(&self) -> Option<String> {
        self.value_of("token")
    }

    /// The value of a field of a form.
    pub(super) fn value_of(&self, name: &str) -> Option<String> {
        let (_, rest) = self.text().split_once(&format!("name=\"{name}\""))?;
        let field = rest.split('>').next()?;
        between(field, "value=\"", "\"").map(str::to_string)
    }

    /// The notice about the last action, and whether it is an error.
    pub(super) fn notice(&self) -> Option<(&str, bool)> {
        let (_, rest) = self.text().split_once("<main")?;
        let (_, rest) = rest.split_once("<div class=\"notice")?;
        let (class, rest) = rest.split_once('"')?;
        Some((between(rest, "<span>", "</span>")?, class.contains("error")))
    }

    /// The key that undoes the last action, from the form.
    pub(super) fn undo(&self) -> Option<String> {
        self.value_of("what")
    }

    /// The number of unread messages of each mailbox, as the menu shows it.
    pub(super) fn unseen(&self) -> BTreeMap<u32, u32> {
        let count = |entry: &str| {
            let mailbox = entry.split('"').next()?.parse().ok()?;
            let count = between(entry.split("</a>").next()?, "<span class=\"count\">", "<");
            Some((mailbox, count.map_or(0, |count| count.parse().expect("a count is a number"))))
        };
        self.text().split("<li><a href=\"/mail/box/").skip(1).filter_map(count).collect()
    }

    /// The rows of the list on the page.
    pub(super) fn rows(&self, account: usize, model: &Model) -> Vec<ListRow> {
        let row = |row: &str| {
            let (mailbox, uid) = between(row, "name=\"key\" value=\"", "\"")?.split_once('.')?;
            let subject = between(row, "class=\"subject\">", "<")?;
            let (mailbox, uid) = (mailbox.parse().ok()?, uid.parse().ok()?);
            Some(ListRow {
                mailbox,
                uid,
                message: model.named(subject).or_else(|| model.report_at(account, mailbox, uid)),
                is_starred: between(row, "aria-pressed=\"", "\"")? == "true",
            })
        };
        let rows = self.text().split("<li class=\"row").skip(1);
        rows.map(|found| row(found).unwrap_or_else(|| panic!("a row cannot be parsed: {found}")))
            .collect()
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0)
}
