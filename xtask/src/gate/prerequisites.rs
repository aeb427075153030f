//! The Debian packages that the integration tests need. Mail clients are installed. Servers and
//! libraries are only unpacked, below `target`.

use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use host::unpacked::{LIBRARIES, NSD, POSTFIX, SMTP_SOURCE, Unpacked, has_library};
use host::{Failure, Repository, Stop, hold, packages, repository};

use super::{checkers, npm};

/// Programs, and the packages that contain them.
const PROGRAMS: &[(&str, &str)] = &[
    ("python3", "python3"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("qemu-img", "qemu-utils"),
    ("curl", "curl"),
    ("h2load", "nghttp2-client"),
    ("ip", "iproute2"),
    ("ping", "iputils-ping"),
    ("tshark", "tshark"),
    ("swaks", "swaks"),
    ("msmtp", "msmtp"),
    ("mpop", "mpop"),
    ("fetchmail", "fetchmail"),
];
/// The script that uses axe-core.
const ACCESS: &str = "tests/webmail_access.py";
/// The script that prints messages and reads what is on the paper.
const HTML: &str = "tests/webmail_html.py";
/// Programs, the packages that contain them, and the scripts that need them.
const PROGRAMS_OF_SOME: &[(&str, &str, &[&str])] = &[
    ("chromium", "chromium", BROWSING),
    ("chromedriver", "chromium-driver", BROWSING),
    ("firefox-esr", "firefox-esr", &["tests/webmail_privacy.py", HTML]),
    ("pdftotext", "poppler-utils", &[HTML]),
    ("testssl", "testssl.sh", &[checkers::SCRIPT]),
];
/// The scripts that use Chromium.
const BROWSING: &[&str] = &[
    "tests/browser.py",
    "tests/webmail.py",
    "tests/webmail_sending.py",
    "tests/webmail_privacy.py",
    "tests/webmail_pictures.py",
    HTML,
    ACCESS,
    CORPUS,
];
/// The script that reads the messages of CPython's own tests of mail parsing.
const CORPUS: &str = "tests/webmail_corpus.py";

/// Packages that are unpacked without installation: the name of the folder, the packages, the files
/// of them that are kept, and the scripts that need them.
const UNPACKED: &[(&str, &str, &str, &[&str])] = &[
    (
        "python-messages",
        "libpython3.11-testsuite",
        "usr/lib/python3*/test/test_email/data/*",
        &[CORPUS],
    ),
    // pyspf includes the test suite of RFC 7208's authors.
    (
        "spf",
        "python3-spf python3-yaml",
        "usr/share/doc/python3-spf/rfc7208-tests.yml.gz usr/lib/python3/dist-packages/yaml",
        &["tests/spf.py"],
    ),
    (NSD.name, NSD.packages, NSD.kept, &["tests/dns.py", RELAY, FILTER, ATTACKS]),
    (
        "unbound",
        "unbound ldnsutils libldns3 libprotobuf-c1 libevent-2.1-7 libpython3.11",
        "*",
        &[RELAY],
    ),
    (
        "dkim",
        "python3-dkim python3-authres python3-nacl python3-cffi-backend libsodium23",
        "usr/lib/python3/dist-packages/* usr/lib/x86_64-linux-gnu/libsodium.so.23*",
        &["tests/dkim.py", RELAY],
    ),
    (
        "exim",
        "exim4-daemon-light exim4-base libgnutls-dane0 libunbound8 libidn12 libevent-2.1-7",
        "*",
        &[RELAY],
    ),
    // Sendmail's configuration is written with m4.
    (
        "sendmail",
        "sendmail-bin sendmail-base sendmail-cf libwrap0 liblockfile1 libsasl2-2 libldap-2.5-0 libnsl2 libdb5.3 m4 libsigsegv2",
        "*",
        &[RELAY],
    ),
    ("opensmtpd", "opensmtpd libevent-2.1-7 libdb5.3", "*", &[RELAY]),
    ("sasl", "libsasl2-modules libsasl2-modules-db sasl2-bin", "*", &[RELAY]),
    (
        "rspamd",
        "rspamd libluajit-5.1-2 libhyperscan5 libunwind8 libpcre2-8-0 libicu72 libsodium23 libglib2.0-0 libsqlite3-0",
        "*",
        &[FILTER],
    ),
    (POSTFIX.name, POSTFIX.packages, POSTFIX.kept, &[RELAY, ATTACKS]),
];
/// The script that uses another project's filter as a peer.
const FILTER: &str = "tests/filter.py";
/// The script that uses other projects' mail servers as peers.
const RELAY: &str = "tests/relay.py";
/// The script that uses NSD as a name server, and Postfix as a mail server.
const ATTACKS: &str = "tests/attacks.py";
/// Perl modules that swaks needs for TLS, and their packages.
const MODULES: &[(&str, &str)] = &[("Net::SSLeay", "libnet-ssleay-perl")];

/// Installs or unpacks the prerequisites of `script`, for one script at a time. Returns the search
/// path of their programs.
pub(super) fn fetch(
    repository: &Repository,
    script: &str,
    stop: &Stop,
) -> Result<OsString, Failure> {
    static FETCHING: Mutex<()> = Mutex::new(());
    // The lock protects no data, so a panic of another holder does no harm.
    let _alone = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let of_some = PROGRAMS_OF_SOME.iter().filter(|(.., scripts)| scripts.contains(&script));
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .copied()
        .chain(of_some.map(|(program, package, _)| (*program, *package)))
        .filter(|(program, _)| repository::program(program).is_none())
        .chain(LIBRARIES.iter().copied().filter(|(library, _)| !has_library(library)))
        .chain(MODULES.iter().copied().filter(|(module, _)| !has_module(module)))
        .map(|(_, package)| package)
        .collect();
    if !missing.is_empty() {
        packages::install(&missing, "what the tests need", stop)?;
    }
    if script == checkers::SCRIPT {
        checkers::fetch(repository, stop)?;
    }
    if script == ACCESS {
        npm::AXE.fetch(repository, stop)?;
    }
    for (name, packages, kept, scripts) in UNPACKED {
        if scripts.contains(&script) {
            Unpacked { name, packages, kept }.fetch(repository, stop)?;
        }
    }
    SMTP_SOURCE.get(repository, stop)?;
    let before = std::env::var_os("PATH").unwrap_or_default();
    let path = [repository.target("tools/bin")].into_iter().chain(std::env::split_paths(&before));
    std::env::join_paths(path).map_err(|error| Failure::broke(format_args!("PATH: {error}")))
}

fn has_module(name: &str) -> bool {
    let mut perl = hold::command("perl");
    perl.arg(format!("-M{name}")).args(["-e", "1"]).stderr(Stdio::null());
    perl.status().is_ok_and(|status| status.success())
}
