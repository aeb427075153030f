//! The recipients of a draft: local accounts, and addresses of other servers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use message::header::{Address, Field, HeaderMailbox};
use store::{AccountId, Flags, Recipient, SENT};

use crate::context::JobContext;

use super::draft::Draft;

/// The maximum number of recipients of a message, including the copy in Sent.
const RECIPIENTS_MAX: usize = 100;

/// The local recipients of the draft, including the copy for Sent, and the remote addresses.
/// Errors: the text for the user, if the draft cannot be sent.
pub(super) fn recipients(
    draft: &Draft,
    account: AccountId,
    cx: &JobContext<'_, '_>,
) -> Result<(Vec<Recipient>, Vec<String>), String> {
    let mut remote = Vec::new();
    let mut recipients =
        alloc::vec![Recipient { mailbox: SENT, flags: Flags::SEEN, ..Recipient::inbox(account) }];
    let all = [&draft.to, &draft.cc, &draft.bcc].into_iter().flat_map(|list| mailboxes(list));
    for mailbox in all {
        match cx.recipient(&mailbox.address).map(Recipient::inbox) {
            Some(recipient) if recipients.contains(&recipient) => {}
            Some(recipient) => recipients.push(recipient),
            None if cx.may_post(&mailbox.address) => remote.push(mailbox.address.clone()),
            None => {
                let HeaderMailbox { name, address } = mailbox;
                return Err(match cx.is_local(&address) {
                    true => format!("There is no account “{address}”."),
                    false => format!(
                        "“{}” isn’t a valid email address.",
                        if address.is_empty() { name } else { address }
                    ),
                });
            }
        }
    }
    match recipients.len() + remote.len() {
        1 => Err("Add at least one recipient.".into()),
        2..=RECIPIENTS_MAX => Ok((recipients, remote)),
        _ => Err(format!("A message can have at most {} recipients.", RECIPIENTS_MAX - 1)),
    }
}

/// The mailboxes in a field that a user has typed.
pub(super) fn mailboxes(list: &str) -> Vec<HeaderMailbox> {
    let field = Field { name: b"To", value: list.as_bytes() };
    let people = field.addresses().into_iter().flat_map(|address| match address {
        Address::Mailbox(mailbox) => alloc::vec![mailbox],
        Address::Group { mailboxes, .. } => mailboxes,
    });
    people.collect()
}
