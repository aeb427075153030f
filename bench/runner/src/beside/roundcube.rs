//! Roundcube as the peer: a Linux guest with nginx, PHP-FPM, Roundcube with SQLite, and Dovecot, on
//! its own disk.
//!
//! The peer is tuned as an administrator would tune it. PHP caches compiled code and does not check
//! files again. nginx keeps its connections to PHP. Dovecot caches verified passwords. A small SMTP
//! server passes sent messages to Dovecot's delivery agent, which is less work than a mail server
//! does. Roundcube's processes and Dovecot's run as one user.

use std::path::Path;

use host::{Failure, Repository, Stop};

use super::Peer;
use super::debian::{copy, files};
use super::installed::{Installation, write};
use super::mailboxes;

const FOLDERS: &[&str] = &[
    "proc",
    "sys",
    "dev",
    "run",
    "tmp",
    "var/lib/nginx",
    "var/log/nginx",
    "var/log/roundcube",
    "var/lib/dovecot",
    "var/lib/roundcube/data",
];
const FILES: &[(&str, &str)] = &[
    ("etc/nginx.conf", include_str!("roundcube/nginx.conf")),
    ("etc/php-fpm.conf", include_str!("roundcube/php-fpm.conf")),
    ("etc/php.ini", include_str!("roundcube/php.ini")),
    ("etc/dovecot.conf", include_str!("roundcube/dovecot.conf")),
    ("etc/roundcube/config.inc.php", include_str!("roundcube/config.inc.php")),
    (
        "etc/passwd",
        "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:\ndovecot:x:100:100::/:\ndovenull:x:101:101::/:\n",
    ),
    ("etc/group", "root:x:0:\nwww-data:x:33:\ndovecot:x:100:\ndovenull:x:101:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
    ("etc/nsswitch.conf", "hosts: files\n"),
];
const ROUNDCUBE: Installation = Installation {
    folder: "roundcube-peer",
    wanted: &[
        "nginx-light",
        "php-fpm",
        "roundcube-core",
        "roundcube-sqlite3",
        "dovecot-imapd",
        "msmtp-mta",
        "busybox-static",
    ],
    folders: FOLDERS,
    files: FILES,
    init: include_str!("roundcube/init"),
    disk_bytes: 1 << 30,
    name: "Roundcube of Debian 12, its nginx, PHP-FPM, SQLite and Dovecot",
};

/// Makes the peer with the bench's mailboxes. The folder `identity` holds the certificate and the
/// key.
///
/// Errors: [`Failure::refused`] on a host without access to Debian's packages.
pub(super) fn make(repository: &Repository, identity: &Path, stop: &Stop) -> Result<Peer, Failure> {
    ROUNDCUBE.make(repository, stop, |root| {
        for file in files(identity)? {
            copy(&file, &root.join("etc").join(file.file_name().unwrap_or_default()))?;
        }
        write(
            &root.join("etc/dovecot.users"),
            &mailboxes::passwords(mailboxes::accounts().iter()),
        )?;
        mailboxes::accounts().iter().try_for_each(|account| {
            fill_mailbox(&root.join("var/mail").join(account.address()), account)
        })
    })
}

/// Fills the mailbox as a Maildir. Dovecot assigns UIDs in the order of the file names.
fn fill_mailbox(folder: &Path, account: &mailboxes::Account) -> Result<(), Failure> {
    let doing = "filling the peer's mailboxes";
    for part in ["cur", "new", "tmp"] {
        std::fs::create_dir_all(folder.join(part)).map_err(Failure::io(doing))?;
    }
    for (index, text_bytes) in account.messages.iter().enumerate() {
        let message =
            mailboxes::message(mailboxes::CHARLES, &account.address(), index, *text_bytes)
                .replace("\r\n", "\n");
        let name = format!("{}.M{index}P1.peer:2,", 1_700_000_000 + index);
        std::fs::write(folder.join("cur").join(name), message).map_err(Failure::io(doing))?;
    }
    Ok(())
}
