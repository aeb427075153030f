//! The presentation of a message: the place of each of its parts on a page.
//!
//! Each leaf of the structure has one [`Role`]: it is shown as text or HTML at its place among the
//! other parts, it is drawn by an HTML part, it is an attachment, it belongs to an attached
//! message, or it is an alternative that was not chosen. All views of a message follow its
//! presentation: a page, a printed page, a reply, a forwarded message and a line of a list.
//!
//! - Texts and HTML parts are shown one after the other, in their order (RFC 2046 section 5.1.3).
//! - Of a `multipart/alternative`, one alternative is chosen: the last of those with the greatest
//!   `Worth` (section 5.1.4). Files in the others are attachments nevertheless.
//! - An image is drawn only if the caller has found that a shown HTML part refers to it. Otherwise
//!   it is an attachment, even if it has an identifier.
//! - A multipart without parts cannot be taken apart, so its source is shown.
//!
//! Invariant: each part without parts, and each attached message, has a role. No other part has
//! one. So no content of a message is lost.

mod rules;

use alloc::vec::Vec;

use crate::structure::{Disposition, Part};
pub use rules::{OTHER_TEXT_BYTES_MAX, ShownAs, shown_as};

/// The role of a part without parts, or of an attached message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It is shown.
    Shown(ShownAs),
    /// It is an image that a shown HTML part draws.
    Drawn,
    /// It is an attachment.
    Attachment,
    /// It belongs to an attached message.
    Enclosed,
    /// It is an alternative that was not chosen.
    NotChosen,
}

/// A part without parts, or an attached message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaf {
    /// The index of the part in the structure.
    pub part: usize,
    /// The role of the part.
    pub role: Role,
    /// Whether the part is listed as a file. A shown part with a file name is also listed, and so
    /// is a file in an attached message.
    pub is_listed: bool,
}

/// The content of a part that may be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// It shows nothing.
    Blank,
    /// It shows something.
    Visible,
    /// It cannot be shown, since it is too large.
    TooLarge,
}

/// The alternatives that are preferred.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preference {
    /// The best that the sender offers.
    Html,
    /// Plain text.
    Text,
}

/// The places of a message's parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Presentation {
    leaves: Vec<Leaf>,
}

impl Presentation {
    /// The presentation of a message with these parts. `content`: the content of the part with this
    /// index, for which [`shown_as`] is not `None`.
    pub fn of(
        parts: &[Part],
        preference: Preference,
        content: impl Fn(usize) -> Content,
    ) -> Presentation {
        let leaves = (0..parts.len()).filter_map(|part| leaf(parts, part, &content));
        let mut presentation = Presentation { leaves: leaves.collect() };
        for (index, part) in parts.iter().enumerate() {
            if part.media_type == "multipart/alternative" && !part.is_enclosed(parts) {
                presentation.choose(parts, index, preference, &content);
            }
        }
        presentation
    }

    /// All parts with a role, in the order of the message.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// The parts that are shown, in the order of the message.
    pub fn shown(&self) -> impl Iterator<Item = (usize, ShownAs)> {
        self.leaves.iter().filter_map(|leaf| match leaf.role {
            Role::Shown(shown_as) => Some((leaf.part, shown_as)),
            _ => None,
        })
    }

    /// The parts that are listed as files, in the order of the message.
    pub fn listed(&self) -> impl Iterator<Item = usize> {
        self.leaves.iter().filter(|leaf| leaf.is_listed).map(|leaf| leaf.part)
    }

    /// A shown HTML part draws the image with this index. So the image is not listed.
    pub fn image_is_drawn(&mut self, part: usize) {
        let place = self.leaves.binary_search_by_key(&part, |leaf| leaf.part);
        let leaf = place.ok().and_then(|place| self.leaves.get_mut(place));
        if let Some(leaf) = leaf.filter(|leaf| leaf.role == Role::Attachment) {
            *leaf = Leaf { role: Role::Drawn, is_listed: false, ..*leaf };
        }
    }

    /// Chooses one of the alternatives in the part with this index.
    fn choose(
        &mut self,
        parts: &[Part],
        alternative: usize,
        preference: Preference,
        content: &impl Fn(usize) -> Content,
    ) {
        let depth = parts.get(alternative).map_or(0, |part| part.depth);
        let inside = parts.iter().enumerate().skip(alternative + 1);
        let inside = inside.take_while(|(_, part)| part.depth > depth);
        let mut alternatives: Vec<Alternative> = Vec::new();
        for (index, part) in inside {
            if part.depth == depth + 1 {
                alternatives.push(Alternative { first: index, end: index, worth: Worth::Nothing });
            }
            if let Some(last) = alternatives.last_mut() {
                last.end = index + 1;
            }
        }
        for alternative in &mut alternatives {
            let shown = self.leaves_of(*alternative).iter().filter_map(|leaf| match leaf.role {
                Role::Shown(shown_as) => Some((leaf.part, shown_as)),
                _ => None,
            });
            alternative.worth = Worth::of(shown, parts, preference, content);
        }
        // Of equal alternatives, the last one is the maximum.
        let Some(chosen) = alternatives.iter().max_by_key(|alternative| alternative.worth) else {
            return;
        };
        for alternative in alternatives.iter().filter(|other| other.first != chosen.first) {
            for leaf in self.leaves_of_mut(*alternative) {
                if matches!(leaf.role, Role::Shown(_)) {
                    *leaf = Leaf { role: Role::NotChosen, is_listed: false, ..*leaf };
                }
            }
        }
    }

    fn leaves_of(&self, alternative: Alternative) -> &[Leaf] {
        let [start, end] = alternative.places(&self.leaves);
        self.leaves.get(start..end).unwrap_or_default()
    }

    fn leaves_of_mut(&mut self, alternative: Alternative) -> &mut [Leaf] {
        let [start, end] = alternative.places(&self.leaves);
        self.leaves.get_mut(start..end).unwrap_or_default()
    }
}

/// Whether a message with these parts has an attachment, as far as the parts say it without their
/// content. Images with an identifier in a message with HTML count as drawn. Signatures do not
/// count.
pub fn has_attachment(parts: &[Part]) -> bool {
    let presentation = Presentation::of(parts, Preference::Html, |_| Content::Visible);
    let has_html = presentation.shown().any(|(_, shown_as)| shown_as == ShownAs::Html);
    let mut attachments = presentation.leaves.iter().filter(|leaf| leaf.role == Role::Attachment);
    attachments.any(|leaf| {
        parts.get(leaf.part).is_some_and(|part| {
            let is_drawn = has_html
                && part.content_id.is_some()
                && part.has_main_type("image")
                && part.disposition != Disposition::Attachment;
            !is_drawn && !rules::is_signature(part)
        })
    })
}

/// The charset that the first text of a message declares.
pub fn body_charset(parts: &[Part]) -> Option<&str> {
    let mut texts = parts.iter().filter(|part| part.has_main_type("text"));
    texts.find(|part| !part.is_enclosed(parts))?.charset.as_deref()
}

/// One alternative of several: a part with all parts in it.
#[derive(Clone, Copy)]
struct Alternative {
    first: usize,
    end: usize,
    worth: Worth,
}

impl Alternative {
    /// The range of its leaves.
    fn places(&self, leaves: &[Leaf]) -> [usize; 2] {
        [self.first, self.end].map(|index| leaves.partition_point(|leaf| leaf.part < index))
    }
}

/// The worth of an alternative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Nothing,
    /// It has a text, which shows nothing or is too large to be shown.
    Blank,
    /// It has a text that is neither plain text nor HTML.
    OtherText,
    /// It has plain text or HTML.
    Text,
    /// It has only plain text, which is preferred.
    Preferred,
}

impl Worth {
    /// The worth of an alternative that shows these parts.
    fn of(
        shown: impl Iterator<Item = (usize, ShownAs)>,
        parts: &[Part],
        preference: Preference,
        content: &impl Fn(usize) -> Content,
    ) -> Worth {
        let (mut worth, mut has_html) = (Worth::Nothing, false);
        for (index, shown_as) in shown {
            let is_usual = parts.get(index).is_some_and(rules::is_usual_text);
            worth = worth.max(match content(index) {
                Content::Blank | Content::TooLarge => Worth::Blank,
                Content::Visible if is_usual => Worth::Text,
                Content::Visible => Worth::OtherText,
            });
            has_html |= shown_as == ShownAs::Html;
        }
        match (worth, preference) {
            (Worth::Text, Preference::Text) if !has_html => Worth::Preferred,
            _ => worth,
        }
    }
}

/// The part with this index with its role, before alternatives are chosen. `None`: it has parts,
/// and is not an attached message.
fn leaf(parts: &[Part], index: usize, content: &impl Fn(usize) -> Content) -> Option<Leaf> {
    let part = parts.get(index)?;
    let is_file = part.file_name.is_some() || part.disposition == Disposition::Attachment;
    let has_parts = parts.get(index + 1).is_some_and(|next| next.depth > part.depth);
    if part.is_enclosed(parts) {
        let is_listed = is_file || part.holds_message() || !rules::is_shown_in_messages(part);
        let enclosed = Leaf { part: index, role: Role::Enclosed, is_listed };
        return (!has_parts || part.holds_message()).then_some(enclosed);
    }
    if has_parts {
        let attachment = Leaf { part: index, role: Role::Attachment, is_listed: true };
        return part.holds_message().then_some(attachment);
    }
    let is_small = rules::is_usual_text(part)
        || part.has_main_type("multipart")
        || part.body.end - part.body.start <= OTHER_TEXT_BYTES_MAX;
    let shown_as =
        shown_as(parts.get(..=index)?).filter(|_| is_small && content(index) != Content::TooLarge);
    Some(match shown_as {
        Some(shown_as) => Leaf {
            part: index,
            role: Role::Shown(shown_as),
            is_listed: is_file || part.has_main_type("multipart") && !part.body.is_empty(),
        },
        None => Leaf { part: index, role: Role::Attachment, is_listed: true },
    })
}
