//! The one table of what `./barepost test` runs.

use std::time::Duration;

/// A part of the tests that can be run by its name.
pub(crate) struct Part {
    pub(crate) name: &'static str,
    /// What it shows, for `--help`.
    pub(crate) shows: &'static str,
    pub(crate) work: Work,
    /// It is killed, and fails, when it takes longer.
    pub(crate) budget: Duration,
    pub(crate) when: When,
}

/// What a part does.
pub(crate) enum Work {
    /// Checks the rules of the house, in this process.
    Tidy,
    /// Runs cargo, with these arguments, in the root.
    Cargo(&'static [&'static str]),
    /// Runs the tests of the store that are too long for `unit` and have this in their names.
    StoreAtLength(&'static str),
    /// Lives through machine rooms, with these arguments for the simulator.
    Rooms(&'static [&'static str]),
    /// Builds the fuzz targets, and runs each.
    Fuzz,
    /// Checks the types of the webmail's script.
    Types,
    /// Asks cargo-deny and its database of advisories about the crates from outside.
    Advisories,
    /// Builds the image, and checks what it must not hold.
    Image,
    /// Plays every packetdrill script in this folder, in this process.
    Scripts(&'static str),
    /// Runs a Python script, with these arguments.
    Script(&'static str, &'static [&'static str]),
    /// Runs the scripts of these parts, with so many cores in each machine whose test does not say how many it has.
    Again { parts: &'static [&'static str], cores: u8 },
}

/// When a part runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Always, on every change.
    Always,
    /// Only when it is named: it takes too long for every change.
    Named,
}

/// In the order in which they begin: what is cheap and tells most comes first.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "tidy",
        shows: "the rules of the house that no compiler checks",
        work: Work::Tidy,
        budget: Duration::from_secs(60),
        when: When::Always,
    },
    Part {
        name: "fmt",
        shows: "the sources are formatted",
        work: Work::Cargo(&["fmt", "--all", "--check"]),
        budget: Duration::from_secs(60),
        when: When::Always,
    },
    Part {
        name: "clippy",
        shows: "no lint complains",
        work: Work::Cargo(&["clippy", "--quiet", "--all-targets", "--target-dir", "target", "--", "-D", "warnings"]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "script",
        shows: "the webmail's script is what its types say",
        work: Work::Types,
        budget: Duration::from_secs(120),
        when: When::Always,
    },
    Part {
        name: "unit",
        shows: "every crate keeps its promises",
        work: Work::Cargo(&["test", "--quiet", "--target-dir", "target"]),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "loom",
        shows: "the rings between cores hold in every order of steps that the memory model allows",
        work: Work::Cargo(&[
            "test",
            "--quiet",
            "--release",
            "--package",
            "rings",
            "--test",
            "loom",
            "--target-dir",
            "target/loom",
            "--config",
            "build.rustflags=[\"--cfg\", \"loom\"]",
        ]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "sim",
        shows: "500 machine rooms full of faults and power cuts break no promise",
        work: Work::Rooms(&["--seeds", "500"]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "fuzz",
        shows: "each fuzz target holds for a few seconds, and on all that once broke it",
        work: Work::Fuzz,
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "pkt",
        shows: "TCP answers on the wire as the scripts in tests/pkt say",
        work: Work::Scripts("tests/pkt"),
        budget: Duration::from_secs(60),
        when: When::Always,
    },
    Part {
        name: "image",
        shows: "the image builds, and needs nothing from outside",
        work: Work::Image,
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "selftest",
        shows: "the bare machine below the engine is what it says, and dies as it should",
        work: Work::Script("machines/bare/selftest.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "boot",
        shows: "`run` boots, serves, refuses what is wrong in one line, and leaves nothing behind",
        work: Work::Script("tests/boot.py", &[]),
        budget: Duration::from_secs(360),
        when: When::Always,
    },
    Part {
        name: "hosted",
        shows: "the engine as a Linux process at a tap interface serves, keeps mail and ends as the image does",
        work: Work::Script("tests/hosted.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "spf",
        shows: "policies of senders are understood as the suite of RFC 7208 says",
        work: Work::Script("tests/spf.py", &[]),
        budget: Duration::from_secs(240),
        when: When::Always,
    },
    Part {
        name: "dkim",
        shows: "signatures of domains are made and verified as dkimpy does it, and what is submitted has them",
        work: Work::Script("tests/dkim.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "dns",
        shows: "NSD loads the records that `dns` prints, and what is missing or wrong there is found",
        work: Work::Script("tests/dns.py", &[]),
        budget: Duration::from_secs(120),
        when: When::Always,
    },
    Part {
        name: "relay",
        shows: "mail leaves for Postfix and Exim and comes from there, and hosts that are slow, refuse or break off get it once",
        work: Work::Script("tests/relay.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "filter",
        shows: "rspamd is asked about strangers' letters, and what it says of them, and when it is away, has its effect",
        work: Work::Script("tests/filter.py", &[]),
        budget: Duration::from_secs(180),
        when: When::Always,
    },
    Part {
        name: "flood",
        shows: "floods of SYNs, ACKs, RSTs and garbage keep nobody out and take no memory",
        work: Work::Script("tests/flood.py", &[]),
        budget: Duration::from_secs(240),
        when: When::Always,
    },
    Part {
        name: "attacks",
        shows: "nothing is forged, nothing is lost on its way out, and no client exhausts memory, with one core and four",
        work: Work::Script("tests/attacks.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "crowding",
        shows: "connections of one address and guesses of a whole network lock no other client out, with one core and four",
        work: Work::Script("tests/crowding.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Named,
    },
    Part {
        name: "cores",
        shows: "a machine of four cores serves as one of one core does, with a queue for each and with one for all",
        work: Work::Script("tests/cores.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "ipv6",
        shows: "over IPv6 the machine serves Linux's own programs, with fixed addresses and with a router's",
        work: Work::Script("tests/ipv6.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "clients",
        shows: "mail programs that people have send and fetch, and get back what was sent",
        work: Work::Script("tests/clients.py", &["--quick"]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "web",
        shows: "a site is served as browsers and curl ask for it, and what is ambiguous is refused",
        work: Work::Script("tests/web.py", &[]),
        budget: Duration::from_secs(240),
        when: When::Always,
    },
    Part {
        name: "tls",
        shows: "pages and mail come over TLS as curl, OpenSSL, h2load and Python ask for them, and floods of handshakes keep nobody out",
        work: Work::Script("tests/tls.py", &[]),
        budget: Duration::from_secs(420),
        when: When::Always,
    },
    Part {
        name: "webmail",
        shows: "Chromium reads, files, writes and sends mail at the webmail, with scripts and without, and what hostile letters try comes to nothing",
        work: Work::Script("tests/webmail.py", &["--quick"]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "webmail-privacy",
        shows: "in Chromium and Firefox an HTML message connects to no host and looks no name up before its reader asks",
        work: Work::Script("tests/webmail_privacy.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "conform",
        shows: "h2spec, sslyze and OpenSSL 3.5 find what is meant to be there, and no weakness",
        work: Work::Script("tests/conform.py", &["--quick"]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "crowd",
        shows: "10,000 idle and 1,000 busy HTTP connections fit in 256 MiB, and an idle one owns no buffer",
        work: Work::Script("tests/crowd.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "load",
        shows: "1,000 messages over 1, 10 and 100 sessions are stored, none twice",
        work: Work::Script("tests/load.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "powercut",
        shows: "12 kills under load lose nothing that was acknowledged",
        work: Work::Script("tests/powercut.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "flushcut",
        shows: "15 cuts of the log of writes lose nothing that was acknowledged",
        work: Work::Script("tests/flushcut.py", &["--quick"]),
        budget: Duration::from_secs(420),
        when: When::Always,
    },
    Part {
        name: "full",
        shows: "a full disk answers 452 and loses nothing",
        work: Work::Script("tests/full.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "four-cores",
        shows: "the parts that boot machines hold with four cores in each",
        work: Work::Again {
            parts: &[
                "boot",
                "hosted",
                "flood",
                "ipv6",
                "clients",
                "web",
                "tls",
                "webmail-privacy",
                "load",
                "powercut",
                "flushcut",
                "full",
            ],
            cores: 4,
        },
        budget: Duration::from_secs(3600),
        when: When::Named,
    },
    Part {
        name: "eight-cores",
        shows: "the engine keeps its promises on a machine with eight cores, as `unit` shows for one, two and four",
        work: Work::Cargo(&[
            "test",
            "--quiet",
            "--package",
            "simulated",
            "--test",
            "eight_cores",
            "--target-dir",
            "target",
        ]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "deny",
        shows: "no crate from outside has an advisory against it: cargo-deny and the RustSec database, for which it needs the network",
        work: Work::Advisories,
        budget: Duration::from_secs(300),
        when: When::Named,
    },
    Part {
        name: "load-long",
        shows: "the same as `load`, with 10,000 messages",
        work: Work::Script("tests/load.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Named,
    },
    Part {
        name: "powercut-long",
        shows: "the same as `powercut`, with 60 kills",
        work: Work::Script("tests/powercut.py", &[]),
        budget: Duration::from_secs(720),
        when: When::Named,
    },
    Part {
        name: "sim-long",
        shows: "the same as `sim`, with 10,000 rooms",
        work: Work::Rooms(&["--seeds", "10000"]),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "cuts-long",
        shows: "one million power cuts lose nothing that the store has acknowledged",
        work: Work::StoreAtLength("fifty_thousand_power_cuts"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "small-worlds",
        shows: "every sequence of up to three operations holds, cut at every write with every subset of eight unflushed sectors",
        work: Work::StoreAtLength("small_worlds_from"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "every-bit",
        shows: "each bit of a disk of 1 MiB, flipped alone, costs at most one message, which is named",
        work: Work::StoreAtLength("every_flipped_bit"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "long-world",
        shows: "a year of a million messages, a log of ten gigabytes and a power cut a month lose nothing",
        work: Work::StoreAtLength("a_year_of_a_million_messages"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "clients-long",
        shows: "the same as `clients`, with every size up to 50 MB",
        work: Work::Script("tests/clients.py", &[]),
        budget: Duration::from_secs(1200),
        when: When::Named,
    },
    Part {
        name: "conform-long",
        shows: "the same as `conform`, and testssl.sh",
        work: Work::Script("tests/conform.py", &[]),
        budget: Duration::from_secs(1800),
        when: When::Named,
    },
    Part {
        name: "browser",
        shows: "Chromium shows a page with all that belongs to it, and knows it the second time",
        work: Work::Script("tests/browser.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "webmail-long",
        shows: "the same as `webmail`, with scripts and without on each screen",
        work: Work::Script("tests/webmail.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "webmail-corpus",
        shows: "400 hostile letters and CPython's own run nothing, fetch nothing and break no page of the webmail in Chromium",
        work: Work::Script("tests/webmail_corpus.py", &[]),
        budget: Duration::from_secs(1800),
        when: When::Named,
    },
    Part {
        name: "webmail-access",
        shows: "axe finds no page of the webmail that somebody could not use, with scripts and without",
        work: Work::Script("tests/webmail_access.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "webmail-pictures",
        shows: "the pictures of the webmail in docs/figures are made anew",
        work: Work::Script("tests/webmail_pictures.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Named,
    },
    Part {
        name: "flushcut-long",
        shows: "the same as `flushcut`, with 80 cuts",
        work: Work::Script("tests/flushcut.py", &[]),
        budget: Duration::from_secs(1200),
        when: When::Named,
    },
    Part {
        name: "full-long",
        shows: "the same as `full`, round after round",
        work: Work::Script("tests/full.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
];

impl Part {
    /// Whether two such at a time would only take as long as both.
    pub(crate) fn takes_all_processors(&self) -> bool {
        matches!(self.work, Work::Cargo(_) | Work::StoreAtLength(_) | Work::Rooms(_) | Work::Fuzz)
    }

    /// Whether it boots machines that can have several cores.
    pub(crate) fn boots_machines(&self) -> bool {
        matches!(self.work, Work::Script(path, _) if path.starts_with("tests/"))
    }
}

/// The scripts of the parts with these names, and their arguments.
pub(crate) fn scripts_of(names: &[&str]) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    PARTS.iter().filter(|part| names.contains(&part.name)).filter_map(|part| match part.work {
        Work::Script(path, arguments) => Some((path, arguments)),
        _ => None,
    })
}

/// The names of all parts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|part| part.name)
}

/// The scripts that parts run.
pub(crate) fn scripts() -> impl Iterator<Item = &'static str> {
    PARTS.iter().filter_map(|part| match part.work {
        Work::Script(path, _) => Some(path),
        _ => None,
    })
}
