//! The people in the header of a message, as text.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::header::HeaderMailbox;

/// The maximum number of recipients that the line of a message names.
const RECIPIENTS_MAX: usize = 20;

/// The names of the recipients: those in `To`, and then those in `Cc`.
pub(super) fn recipients(to: &[HeaderMailbox], cc: &[HeaderMailbox]) -> String {
    let mut names = String::new();
    let to = to.iter().map(|mailbox| ("", mailbox));
    let cc = cc.iter().enumerate();
    let cc = cc.map(|(number, mailbox)| (if number == 0 { "cc " } else { "" }, mailbox));
    let all = to.chain(cc);
    for (number, (prefix, mailbox)) in all.clone().take(RECIPIENTS_MAX).enumerate() {
        names.push_str(if number > 0 { ", " } else { "" });
        names.push_str(prefix);
        names.push_str(if mailbox.name.is_empty() { &mailbox.address } else { &mailbox.name });
    }
    match all.count().saturating_sub(RECIPIENTS_MAX) {
        0 if names.is_empty() => "undisclosed recipients".into(),
        0 => names,
        1 => format!("{names} and 1 other"),
        others => format!("{names} and {others} others"),
    }
}

/// The fields with people that a message has, and the people with their addresses.
pub(super) fn by_field(
    fields: [(&'static str, &[HeaderMailbox]); 5],
) -> Vec<(&'static str, String)> {
    let fields = fields.into_iter().filter(|(_, all)| !all.is_empty());
    fields.map(|(name, all)| (name, listed(all.iter()))).collect()
}

/// Mailboxes in the form in which a user types them.
pub(super) fn listed<'a>(mailboxes: impl Iterator<Item = &'a HeaderMailbox>) -> String {
    let mut list = String::new();
    for mailbox in mailboxes.filter(|mailbox| !mailbox.address.is_empty()) {
        if !list.is_empty() {
            list.push_str(", ");
        }
        list.push_str(&typed(mailbox));
    }
    list
}

/// A mailbox in the form in which a user types it. The quotes tell the name from the address, even
/// if the name looks like one.
pub(super) fn typed(mailbox: &HeaderMailbox) -> String {
    if mailbox.name.is_empty() {
        return mailbox.address.clone();
    }
    let name = mailbox.name.replace(['"', '\\'], "");
    format!("\"{name}\" <{}>", mailbox.address)
}
