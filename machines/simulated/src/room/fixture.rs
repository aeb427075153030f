//! What all machines of a room have in common: their name, their accounts, and the mailboxes of each
//! account.

/// What machines are called.
pub(super) const HOSTNAME: &str = "mail.barepost.test";
/// When they start at the earliest: the first day of 2026.
pub(super) const STARTED_SECONDS: u64 = 1_767_225_600;

/// Those who get letters. The last one reads and writes at the webmail, the others by POP3 and SMTP.
pub(super) const ACCOUNTS: [&str; 3] =
    ["ada@barepost.test", "grace@barepost.test", "mary@barepost.test"];
/// Those who read by POP3 come first.
pub(super) const BY_POP3: usize = 2;
pub(super) const AT_WEBMAIL: usize = 2;

/// Mailboxes that everybody has, by their numbers: `docs/format.md`, section 7.
pub(super) const INBOX: u32 = 1;
pub(super) const DRAFTS: u32 = 2;
pub(super) const SENT: u32 = 3;
pub(super) const OUTBOX: u32 = 7;
