//! The attachments of a message: their names, sizes and addresses.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use message::structure::{Part, Structure};

use crate::conversation::Attachment;
use crate::moments::size;
use crate::{MessageKey, WebPage};

/// The file name of a part, or a default name.
pub(super) fn name_of(part: &Part) -> String {
    let usual = || {
        if part.holds_message() { "message.eml".into() } else { part.media_type.replace('/', ".") }
    };
    part.file_name.clone().unwrap_or_else(usual)
}

/// An attachment, as text.
pub(super) struct Attached {
    pub(super) name: String,
    size: String,
    href: String,
}

impl Attached {
    /// All attachments of a message. `shown`: the index of the part that the page shows.
    pub(super) fn of(
        structure: &Structure,
        key: MessageKey,
        shown: Option<usize>,
    ) -> Vec<Attached> {
        let attached = structure
            .parts
            .iter()
            .enumerate()
            .filter(|(index, part)| part.is_attachment() && Some(*index) != shown);
        attached
            .map(|(index, part)| Attached {
                name: name_of(part),
                size: size(part.body.end.saturating_sub(part.body.start)),
                href: WebPage::Part(key, u16::try_from(index).unwrap_or(u16::MAX)).to_string(),
            })
            .collect()
    }

    /// The name and the size.
    pub(super) fn in_words(&self) -> (&str, &str) {
        (&self.name, &self.size)
    }

    /// The link on the page.
    pub(super) fn link(&self) -> Attachment<'_> {
        Attachment { name: &self.name, size: &self.size, href: &self.href }
    }
}
