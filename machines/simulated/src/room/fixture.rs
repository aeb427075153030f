//! The facts that all machines of a room share: their name, their accounts, and the mailboxes of
//! each account.

/// The hostname of all machines.
pub(super) const HOSTNAME: &str = "mail.barepost.test";
/// The earliest time of day at which machines start: the first day of 2026, in seconds since 1970.
pub(super) const STARTED_SECONDS: u64 = 1_767_225_600;

/// The accounts. The last one uses the webmail, the others use POP3 and SMTP.
pub(super) const ACCOUNTS: [&str; 3] =
    ["ada@barepost.test", "grace@barepost.test", "mary@barepost.test"];
/// The number of accounts that use POP3. These are the first ones in [`ACCOUNTS`].
pub(super) const BY_POP3: usize = 2;
/// The index of the account that uses the webmail.
pub(super) const AT_WEBMAIL: usize = 2;

/// The numbers of the mailboxes that every account has: `docs/format.md`, section 7.
pub(super) const INBOX: u32 = 1;
pub(super) const DRAFTS: u32 = 2;
pub(super) const SENT: u32 = 3;
pub(super) const OUTBOX: u32 = 7;
