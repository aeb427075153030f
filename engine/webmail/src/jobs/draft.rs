//! A draft: the fields of the compose page and its form. The login page keeps a draft as text while
//! the user logs in again.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use store::Store;

use super::compose::attachments;
use crate::MessageKey;
use crate::address;
use crate::answer;
use crate::compose::ComposePage;
use crate::flash::FlashMessage;
use crate::form::Form;
use crate::layout::{AuthenticatedClient, PageLayout};

/// The fields of the compose page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Draft {
    /// The recipients.
    pub to: String,
    /// The recipients of copies.
    pub cc: String,
    /// The recipients of blind copies.
    pub bcc: String,
    /// The subject.
    pub subject: String,
    /// The text.
    pub text: String,
    /// The saved draft. Before the first save, the message to forward.
    pub draft: Option<MessageKey>,
    /// The files of the saved draft that stay attached: the part and the name of each.
    pub carried: Vec<(u16, String)>,
    /// The message that the draft replies to.
    pub answers: Option<MessageKey>,
    /// Whether files of the form were not saved.
    pub has_lost_files: bool,
}

/// The text about files of the form that the server has not saved.
const LOST_FILES: &str = " Attach your files again.";

impl Draft {
    /// Reads the draft from a form of the compose page.
    pub(crate) fn of(form: &Form<'_>) -> Draft {
        let text = |name| form.text(name).unwrap_or_default().to_string();
        let key = |name| form.text(name).and_then(|key| key.parse().ok());
        let detached: Vec<u16> =
            form.texts("detach").filter_map(|part| address::part(part).ok()).collect();
        let carried = form.texts("carry").filter_map(|file| {
            let (part, name) = file.split_once(' ')?;
            let part = address::part(part).ok().filter(|part| !detached.contains(part))?;
            Some((part, name.to_string()))
        });
        Draft {
            to: text("to"),
            cc: text("cc"),
            bcc: text("bcc"),
            subject: text("subject"),
            text: text("text"),
            draft: key("draft"),
            carried: carried.collect(),
            answers: key("answers"),
            has_lost_files: false,
        }
    }

    /// The memory of the draft, in bytes.
    pub fn kept_bytes(&self) -> usize {
        let Draft { to, cc, bcc, subject, text, carried, .. } = self;
        let words: usize = [to, cc, bcc, subject, text].into_iter().map(String::len).sum();
        let carried: usize =
            carried.iter().map(|(_, name)| size_of::<(u16, String)>() + name.len()).sum();
        size_of::<Draft>() + words + carried
    }

    /// The draft as text in the format of a form, without files that were just uploaded.
    pub fn to_text(&self) -> String {
        let key = |key: Option<MessageKey>| key.map_or_else(String::new, |key| key.to_string());
        let (draft, answers) = (key(self.draft), key(self.answers));
        let fields = [
            ("to", &self.to),
            ("cc", &self.cc),
            ("bcc", &self.bcc),
            ("subject", &self.subject),
            ("text", &self.text),
        ];
        let fields = fields.into_iter().chain([("draft", &draft), ("answers", &answers)]);
        let carried: Vec<String> =
            self.carried.iter().map(|(part, name)| format!("{part} {name}")).collect();
        let fields = fields.chain(carried.iter().map(|file| ("carry", file)));
        form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
    }

    /// Reads the draft from a text of [`Draft::to_text`]. `None`: the text is empty.
    pub(crate) fn from_text(text: &str) -> Option<Box<Draft>> {
        let form = Form::of("application/x-www-form-urlencoded", text.as_bytes()).ok()?;
        (!text.is_empty()).then(|| Box::new(Draft::of(&form)))
    }

    /// Whether files of the saved draft stay attached.
    pub(super) fn carries(&self) -> bool {
        self.draft.is_some() && !self.carried.is_empty()
    }

    /// Whether both drafts are equal apart from their attached files.
    pub(super) fn has_same_fields(&self, other: &Draft) -> bool {
        let words =
            |draft: &Draft| Draft { carried: Vec::new(), has_lost_files: false, ..draft.clone() };
        words(self) == words(other)
    }

    /// The compose page with these fields, after the writer has logged in again.
    pub(crate) fn page_again(&self, client: AuthenticatedClient, store: &Store) -> Reply {
        let files = if self.has_lost_files { LOST_FILES } else { "" };
        let text = format!("Signed in again – your message is still here.{files}");
        let client = AuthenticatedClient { flash: Some(FlashMessage::success(&text)), ..client };
        self.page_of("New message", None, &client, store)
    }

    /// The compose page with these fields. `error`: the reason why the message was not sent.
    pub(crate) fn page(&self, error: &str, client: &AuthenticatedClient, store: &Store) -> Reply {
        let files = if self.has_lost_files { LOST_FILES } else { "" };
        self.page_of("Message not sent", Some(&format!("{error}{files}")), client, store)
    }

    fn page_of(
        &self,
        title: &str,
        error: Option<&str>,
        client: &AuthenticatedClient,
        store: &Store,
    ) -> Reply {
        let layout = PageLayout::of(client, store, None);
        let key = |key: Option<MessageKey>| key.map_or_else(String::new, |key| key.to_string());
        answer::page(&ComposePage {
            frame: layout.frame(client, &layout.links()),
            title,
            draft: &key(self.draft),
            answers: &key(self.answers),
            to: &self.to,
            cc: &self.cc,
            bcc: &self.bcc,
            subject: &self.subject,
            text: &self.text,
            attachments: &attachments(&self.carried),
            error,
            is_unsaved: true,
        })
    }
}
