//! Accounts that both machines have, with the same messages.

/// The password of every account.
pub(crate) const PASSWORD: &str = "correct horse battery staple";
/// The hash of [`PASSWORD`] for both servers. Our machine hashes new passwords with the same
/// parameters.
pub(crate) const HASH: &str = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$ISO7kkvFzh19GM8qB7patN3C3Y9HHsjlVTfEZ9T600Y";

/// Text sizes, in bytes, of the messages that the benches read and write. The two studies of
/// bare PC webmail servers use these sizes: up to 120,000 bytes in the clear, up to 16 KB with TLS.
pub(crate) const SIZES: [usize; 7] = [1_000, 4_000, 8_000, 16_000, 40_000, 80_000, 120_000];
/// The numbers of messages in the inboxes.
pub(crate) const INBOXES: [usize; 3] = [6, 10, 50];
/// The number of users that put load on the machine.
pub(crate) const USERS: usize = 10;
/// The number of messages in the inbox of each of these users.
const MESSAGES: usize = 10;
const MESSAGE_BYTES: usize = 1_000;

/// The account that reads messages of all sizes.
pub(crate) const READER: &str = "reader";
/// The account that writes messages.
pub(crate) const WRITER: &str = "writer";
/// The recipient of written messages.
pub(crate) const GRACE: &str = "grace";
/// The recipient of messages with files.
pub(crate) const KEEPER: &str = "keeper";

/// An account.
pub(crate) struct Account {
    pub(crate) name: String,
    /// The text size, in bytes, of each message in its inbox.
    pub(crate) messages: Vec<usize>,
}

impl Account {
    pub(crate) fn address(&self) -> String {
        address(&self.name)
    }
}

pub(crate) fn address(name: &str) -> String {
    format!("{name}@barepost.test")
}

/// The account with this number of messages in its inbox.
pub(crate) fn inbox(messages: usize) -> String {
    format!("inbox{messages}")
}

/// One of the users that put load on the machine.
pub(crate) fn user(number: usize) -> String {
    format!("user{number}")
}

/// All accounts.
pub(crate) fn accounts() -> Vec<Account> {
    let account = |name: String, messages| Account { name, messages };
    let inboxes = INBOXES.map(|messages| account(inbox(messages), vec![MESSAGE_BYTES; messages]));
    let others = [account(READER.into(), SIZES.into())];
    let empty = [WRITER, GRACE, KEEPER].map(|name| account(name.into(), Vec::new()));
    let users = (0..USERS).map(|number| account(user(number), vec![MESSAGE_BYTES; MESSAGES]));
    inboxes.into_iter().chain(others).chain(empty).chain(users).collect()
}

/// The number of the reader's message with a text of this many bytes. The first is 1.
pub(crate) fn number(text_bytes: usize) -> usize {
    SIZES.iter().position(|size| *size == text_bytes).map_or(0, |index| index + 1)
}

/// The accounts as sections of our configuration.
pub(crate) fn users() -> String {
    accounts().iter().map(section).collect()
}

/// An account as a section of our configuration.
pub(crate) fn section(account: &Account) -> String {
    format!("[[user]]\naddress = \"{}\"\npassword_hash = \"{HASH}\"\n", account.address())
}

/// The accounts as lines of Dovecot's file.
pub(crate) fn passwords<'a>(accounts: impl Iterator<Item = &'a Account>) -> String {
    accounts.map(|account| format!("{}:{{ARGON2ID}}{HASH}\n", account.address())).collect()
}

/// An external sender that writes to the accounts.
pub(crate) const CHARLES: &str = "charles@client.test";

/// A message with a text of this many bytes.
pub(crate) fn message(from: &str, to: &str, number: usize, text_bytes: usize) -> String {
    let head = format!(
        "From: Charles Babbage <{from}>\r\nTo: {to}\r\nSubject: Notes on the engine, part {number}\r\n\
         Date: Sun, 22 Nov 2026 10:{:02}:00 +0000\r\nMessage-ID: <{number}.{to}>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n",
        number % 60
    );
    format!("{head}{}", text(text_bytes))
}

/// Text of this many bytes, in lines.
pub(crate) fn text(bytes: usize) -> String {
    const LINE: &str =
        "The quick brown fox jumps over the lazy dog, and then it rests a while.\r\n";
    let mut text = LINE.repeat(bytes / LINE.len());
    let rest = bytes.saturating_sub(text.len());
    text.push_str(&"x".repeat(rest.saturating_sub(2)));
    text.push_str("\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_requested_length() {
        for bytes in SIZES {
            assert_eq!(text(bytes).len(), bytes);
        }
    }

    #[test]
    fn our_configuration_with_all_accounts_is_valid() {
        assert!(
            server::configuration::Configuration::parse(&format!(
                "hostname = \"a.test\"\ndomains = [\"barepost.test\"]\n{}",
                users()
            ))
            .is_ok()
        );
    }
}
