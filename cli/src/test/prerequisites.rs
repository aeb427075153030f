//! What the integration tests need from Debian: mail clients, installed; and servers and libraries, unpacked beside the build.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use host::{Failure, House, Stop, hold, house, packages};

use crate::test::{checkers, npm};

/// Programs and the packages that hold them.
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
/// The script that watches whom browsers contact.
const PRIVACY: &str = "tests/webmail_privacy.py";
/// The script that asks axe-core.
const ACCESS: &str = "tests/webmail_access.py";
/// Programs that only one script needs: the script, the program, and the package that holds it.
const PROGRAMS_OF_ONE: &[(&str, &str, &str)] = &[
    ("tests/browser.py", "chromium", "chromium"),
    ("tests/webmail.py", "chromium", "chromium"),
    ("tests/webmail.py", "chromedriver", "chromium-driver"),
    (ACCESS, "chromium", "chromium"),
    (ACCESS, "chromedriver", "chromium-driver"),
    (CORPUS, "chromium", "chromium"),
    (CORPUS, "chromedriver", "chromium-driver"),
    (PRIVACY, "chromium", "chromium"),
    (PRIVACY, "chromedriver", "chromium-driver"),
    (PRIVACY, "firefox-esr", "firefox-esr"),
    ("tests/webmail_pictures.py", "chromium", "chromium"),
    ("tests/webmail_pictures.py", "chromedriver", "chromium-driver"),
    (checkers::SCRIPT, "testssl", "testssl.sh"),
];
/// The script that reads the letters with which CPython tests its own reading of mail.
const CORPUS: &str = "tests/webmail_corpus.py";

/// What is unpacked below `target/tools` and never installed: it would start servers on this machine, or be in the way of the host's own.
struct Unpacked {
    /// Of its folder there.
    name: &'static str,
    /// The scripts that need it.
    scripts: &'static [&'static str],
    packages: &'static str,
    /// What is kept of it, in the words of a shell.
    kept: &'static str,
}

const UNPACKED: &[Unpacked] = &[
    Unpacked {
        name: "python-letters",
        scripts: &[CORPUS],
        packages: "libpython3.11-testsuite",
        kept: "usr/lib/python3*/test/test_email/data/*",
    },
    // pyspf carries the suite of RFC 7208's authors.
    Unpacked {
        name: "spf",
        scripts: &["tests/spf.py"],
        packages: "python3-spf python3-yaml",
        kept: "usr/share/doc/python3-spf/rfc7208-tests.yml.gz usr/lib/python3/dist-packages/yaml",
    },
    NSD,
    Unpacked {
        name: "unbound",
        scripts: &[RELAY],
        packages: "unbound ldnsutils libldns3 libprotobuf-c1 libevent-2.1-7 libpython3.11",
        kept: "*",
    },
    Unpacked {
        name: "dkim",
        scripts: &["tests/dkim.py", RELAY],
        packages: "python3-dkim python3-authres python3-nacl python3-cffi-backend libsodium23",
        kept: "usr/lib/python3/dist-packages/* usr/lib/x86_64-linux-gnu/libsodium.so.23*",
    },
    Unpacked {
        name: "exim",
        scripts: &[RELAY],
        packages: "exim4-daemon-light exim4-base libgnutls-dane0 libunbound8 libidn12 libevent-2.1-7",
        kept: "*",
    },
    Unpacked { name: "sasl", scripts: &[RELAY], packages: "libsasl2-modules libsasl2-modules-db sasl2-bin", kept: "*" },
    Unpacked {
        name: "rspamd",
        scripts: &[FILTER],
        packages: "rspamd libluajit-5.1-2 libhyperscan5 libunwind8 libpcre2-8-0 libicu72 libsodium23 libglib2.0-0 libsqlite3-0",
        kept: "*",
    },
    POSTFIX,
];
/// The script that has a filter of others for a peer.
const FILTER: &str = "tests/filter.py";
/// The script that has mail servers of others for peers.
const RELAY: &str = "tests/relay.py";
/// The script that uses NSD as a name server, and Postfix as a mail server.
const ATTACKS: &str = "tests/attacks.py";
const NSD: Unpacked = Unpacked {
    name: "nsd",
    scripts: &["tests/dns.py", RELAY, FILTER, ATTACKS],
    packages: "nsd libevent-2.1-7 libfstrm0 libprotobuf-c1",
    kept: "*",
};
const POSTFIX: Unpacked = Unpacked { name: "postfix", scripts: &[RELAY, ATTACKS], packages: "postfix", kept: "*" };

/// Libraries that Postfix's programs need beside its own.
const LIBRARIES: &[(&str, &str)] =
    &[("libdb-5.3.so", "libdb5.3"), ("libicuuc.so.72", "libicu72"), ("libnsl.so.2", "libnsl2")];
/// Modules of Perl's without which swaks speaks no TLS.
const MODULES: &[(&str, &str)] = &[("Net::SSLeay", "libnet-ssleay-perl")];
const UNPACK_BUDGET: Duration = Duration::from_secs(120);

/// Gets what is missing for `script`, for one script at a time. Returns the search path with which programs find all of it.
pub(super) fn fetch(house: &House, script: &str, stop: &Stop) -> Result<OsString, Failure> {
    static FETCHING: Mutex<()> = Mutex::new(());
    // Nothing lies behind the lock that a panic could have spoilt.
    let _alone = FETCHING.lock().unwrap_or_else(PoisonError::into_inner);
    let of_one =
        PROGRAMS_OF_ONE.iter().filter(|(of, ..)| *of == script).map(|(_, program, package)| (*program, *package));
    let missing: Vec<&str> = PROGRAMS
        .iter()
        .copied()
        .chain(of_one)
        .filter(|(program, _)| house::program(program).is_none())
        .chain(LIBRARIES.iter().copied().filter(|(library, _)| !has_library(library)))
        .chain(MODULES.iter().copied().filter(|(module, _)| !has_module(module)))
        .map(|(_, package)| package)
        .collect();
    if !missing.is_empty() {
        packages::install(&missing, "what the tests need", stop)?;
    }
    if script == checkers::SCRIPT {
        checkers::fetch(house, stop)?;
    }
    if script == ACCESS {
        npm::AXE.fetch(house, stop)?;
    }
    for unpacked in UNPACKED.iter().filter(|unpacked| unpacked.scripts.contains(&script)) {
        unpack(house, unpacked, stop)?;
    }
    let tools = house.target("tools/bin");
    SMTP_SOURCE.get(house, stop)?;
    let before = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(tools).chain(std::env::split_paths(&before));
    std::env::join_paths(folders).map_err(|error| Failure::broke(format_args!("PATH: {error}")))
}

fn has_library(name: &str) -> bool {
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"]
        .iter()
        .any(|folder| PathBuf::from(folder).join(name).exists())
}

fn has_module(name: &str) -> bool {
    let mut perl = hold::command("perl");
    perl.arg(format!("-M{name}")).args(["-e", "1"]).stderr(Stdio::null());
    perl.status().is_ok_and(|status| status.success())
}

/// Downloads packages of Debian's and unpacks them, unless that was done before.
fn unpack(house: &House, unpacked: &Unpacked, stop: &Stop) -> Result<(), Failure> {
    let Unpacked { name, packages, kept, .. } = unpacked;
    let doing = format!("getting {packages}");
    let tools = house.target("tools");
    if tools.join(name).exists() {
        return Ok(());
    }
    std::fs::create_dir_all(&tools).map_err(Failure::io(&doing))?;
    // As root, apt would else complain that its own user cannot write here.
    let script = format!(
        "get='apt-get -qq -o APT::Sandbox::User=root'; rm -rf {name}.new {name}.kept && mkdir {name}.new {name}.kept && cd {name}.new \
         && {{ $get download {packages} || {{ $get update && $get download {packages}; }}; }} && for package in *.deb; do dpkg -x $package .; done && rm *.deb \
         && mv {kept} ../{name}.kept && cd .. && rm -r {name}.new && mv {name}.kept {name}"
    );
    let mut command = hold::command("sh");
    command.args(["-c", &script]).current_dir(&tools);
    hold::run_to_success(&mut command, &doing, UNPACK_BUDGET, stop)
}

/// A program that is unpacked and never installed.
pub(crate) struct Tool {
    name: &'static str,
    unpacked: &'static Unpacked,
    /// Below the folder of what was unpacked with it: where it is, and its libraries.
    folder: &'static str,
    libraries: &'static str,
}

/// Postfix's load generator.
pub(crate) const SMTP_SOURCE: Tool = of_postfix("smtp-source");
/// What takes any mail, and keeps none.
pub(crate) const SMTP_SINK: Tool = of_postfix("smtp-sink");
/// A name server.
pub(crate) const NAME_SERVER: Tool =
    Tool { name: "nsd", unpacked: &NSD, folder: "usr/sbin", libraries: "usr/lib/x86_64-linux-gnu" };

const fn of_postfix(name: &'static str) -> Tool {
    Tool { name, unpacked: &POSTFIX, folder: "usr/sbin", libraries: "usr/lib/postfix" }
}

impl Tool {
    /// Its path, with all that it needs.
    pub(crate) fn fetch(&self, house: &House, stop: &Stop) -> Result<PathBuf, Failure> {
        let lacking = LIBRARIES.iter().filter(|(library, _)| !has_library(library));
        let lacking: Vec<&str> = lacking.map(|(_, package)| *package).collect();
        if !lacking.is_empty() {
            packages::install(&lacking, "what Postfix's programs need", stop)?;
        }
        self.get(house, stop)
    }

    /// The same without the libraries of others.
    fn get(&self, house: &House, stop: &Stop) -> Result<PathBuf, Failure> {
        if let Some(path) = house::program(self.name) {
            return Ok(path);
        }
        let path = house.target("tools/bin").join(self.name);
        if !path.exists() {
            unpack(house, self.unpacked, stop)?;
            self.make_start(&path)?;
        }
        Ok(path)
    }

    /// Makes what starts it, so that it finds its libraries.
    fn make_start(&self, path: &Path) -> Result<(), Failure> {
        let Tool { name, unpacked, folder, libraries } = self;
        let doing = format!("getting {name} from Debian's packages {}", unpacked.packages);
        if let Some(bin) = path.parent() {
            std::fs::create_dir_all(bin).map_err(Failure::io(&doing))?;
        }
        let start = format!(
            "#!/bin/sh\n\
             there=$(dirname -- \"$(dirname -- \"$(readlink -f -- \"$0\")\")\")/{}\n\
             LD_LIBRARY_PATH=$there/{libraries} exec \"$there/{folder}/{name}\" \"$@\"\n",
            unpacked.name
        );
        std::fs::write(path, start).map_err(Failure::io(&doing))?;
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(Failure::io(&doing))
    }
}
