//! Postfix and Dovecot as the peer. The Linux guest receives mail by SMTP, flushes it to its queue,
//! delivers it into a Maildir, and serves it by POP3.
//!
//! The peer is tuned as an administrator would tune it: no DNS lookups, no client delays and no
//! logs. Postfix's own delivery agent delivers, which is the shortest path. Postfix itself flushes
//! before it replies 250.

use super::Peer;
use super::installed::{Installation, write};
use super::mailboxes::{self, Account};
use host::{Failure, Repository, Stop};

const FILES: &[(&str, &str)] = &[
    ("etc/postfix/main.cf", SETTINGS),
    ("etc/postfix/master.cf", include_str!("postfix/master.cf")),
    ("etc/dovecot.conf", include_str!("postfix/dovecot.conf")),
    (
        "etc/passwd",
        "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:\ndovecot:x:100:100::/:\ndovenull:x:101:101::/:\npostfix:x:102:102::/:\nnobody:x:65534:65534::/:\n",
    ),
    (
        "etc/group",
        "root:x:0:\nwww-data:x:33:\ndovecot:x:100:\ndovenull:x:101:\npostfix:x:102:\npostdrop:x:103:\nnogroup:x:65534:\n",
    ),
    ("etc/hosts", "127.0.0.1 localhost\n"),
    ("etc/nsswitch.conf", "hosts: files\n"),
];
const POSTFIX: Installation = Installation {
    folder: "postfix-peer",
    wanted: &["postfix", "dovecot-pop3d", "busybox-static"],
    folders: &[
        "proc",
        "sys",
        "dev",
        "run",
        "tmp",
        "etc/postfix",
        "var/lib/dovecot",
        "var/spool/postfix",
        "var/mail",
    ],
    files: FILES,
    init: include_str!("postfix/init"),
    disk_bytes: 4 << 30,
    name: "Postfix and Dovecot of Debian 12",
};

/// Postfix's settings, as the peer has them.
pub(crate) const SETTINGS: &str = include_str!("postfix/main.cf");

/// Makes the peer, with these accounts and these files.
///
/// Errors: [`Failure::refused`] on a host without access to Debian's packages.
pub(super) fn make(
    repository: &Repository,
    accounts: &[Account],
    files: &[(&str, String)],
    stop: &Stop,
) -> Result<Peer, Failure> {
    POSTFIX.make(repository, stop, |root| {
        write(&root.join("etc/dovecot.users"), &mailboxes::passwords(accounts.iter()))?;
        let mailboxes: String =
            accounts.iter().map(|account| format!("{0} {0}/\n", account.address())).collect();
        write(&root.join("etc/postfix/mailboxes"), &mailboxes)?;
        files.iter().try_for_each(|(path, text)| write(&root.join(path), text))
    })
}
