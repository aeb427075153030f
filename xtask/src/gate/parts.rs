//! The table of everything that `./barepost test` runs.

use std::time::Duration;

use super::part::{Part, When, Work};

/// All parts, in the order of their start. Cheap parts that find most faults come first. Among the
/// parts that boot machines, the longest come first, so that no part runs alone at the end.
///
/// A budget ends a part that hangs. It does not measure speed: a busy machine takes twice as long
/// as an idle one. A budget is at least three times the part's time on two idle processors.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "tidy",
        claim: "the repository keeps the rules that no compiler checks",
        work: Work::Tidy,
        budget: Duration::from_secs(60),
        when: When::Always,
    },
    Part {
        name: "fmt",
        claim: "the sources are formatted",
        work: Work::Cargo("fmt --all --check"),
        budget: Duration::from_secs(60),
        when: When::Always,
    },
    Part {
        name: "clippy",
        claim: "clippy reports nothing",
        work: Work::Cargo("clippy --quiet --all-targets -- -D warnings"),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "doc",
        claim: "each link in the comments has a target",
        work: Work::Cargo("doc --quiet --no-deps --document-private-items"),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "script",
        claim: "TypeScript finds no type error in the webmail's script",
        work: Work::Types,
        budget: Duration::from_secs(120),
        when: When::Always,
    },
    Part {
        name: "unit",
        claim: "the tests of every crate pass",
        work: Work::Cargo("test --quiet"),
        budget: Duration::from_secs(1800),
        when: When::Always,
    },
    Part {
        name: "loom",
        claim: "the rings between cores hold in every order of steps that the memory model allows",
        work: Work::Cargo(
            "test --quiet --release --package rings --test loom --target-dir target/loom \
             --config build.rustflags=[\"--cfg\",\"loom\"]",
        ),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "sim",
        claim: "500 machine rooms full of faults and power cuts break no promise",
        work: Work::Rooms(&["--seeds", "500"]),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "fuzz",
        claim: "each fuzz target finds nothing in a few seconds, and nothing in the inputs that once failed",
        work: Work::Fuzz,
        budget: Duration::from_secs(1200),
        when: When::Always,
    },
    Part {
        name: "pkt",
        claim: "TCP answers on the wire as the scripts in tests/pkt say",
        work: Work::Scripts("tests/pkt"),
        budget: Duration::from_secs(60),
        when: When::Always,
    },
    Part {
        name: "image",
        claim: "the image builds without libc or any other library of the host",
        work: Work::Image,
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "hosted",
        claim: "the engine as a Linux process at a tap interface serves, keeps mail and ends as the image does",
        work: Work::Script("tests/hosted.py", &[]),
        budget: Duration::from_secs(1200),
        when: When::Always,
    },
    Part {
        name: "webmail",
        claim: "Chromium reads, files and writes mail at the webmail, with scripts and without, and hostile messages do no harm",
        work: Work::Script("tests/webmail.py", &["--quick"]),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "webmail-sending",
        claim: "Chromium saves, sends and takes back messages in the webmail, and sees them in the queue",
        work: Work::Script("tests/webmail_sending.py", &["--quick"]),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "webmail-html",
        claim: "Chromium shows and prints HTML messages whole, and nothing in them uses the origin of the webmail",
        work: Work::Script("tests/webmail_html.py", &["InChromium"]),
        budget: Duration::from_secs(420),
        when: When::Always,
    },
    Part {
        name: "boot",
        claim: "`run` boots, serves, reports a wrong setup in one line, and leaves no process behind",
        work: Work::Script("tests/boot.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "selftest",
        claim: "the bare machine below the engine passes its self tests, and fails cleanly",
        work: Work::Script("machines/bare/selftest.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "spf",
        claim: "SPF policies are evaluated as the test suite of RFC 7208 says",
        work: Work::Script("tests/spf.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "dkim",
        claim: "DKIM signatures are made and verified as dkimpy does, and submitted messages have them",
        work: Work::Script("tests/dkim.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "dns",
        claim: "NSD loads the records that `dns` prints, and `dns --check` finds missing and wrong ones",
        work: Work::Script("tests/dns.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "relay",
        claim: "mail goes to and comes from Postfix, Exim, Sendmail and OpenSMTPD, and hosts that are slow, refuse or disconnect get it once",
        work: Work::Script("tests/relay.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "filter",
        claim: "rspamd is asked about messages of external clients, and its verdicts and outages take effect",
        work: Work::Script("tests/filter.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "flood",
        claim: "floods of SYNs, ACKs, RSTs and garbage lock no client out and take no memory",
        work: Work::Script("tests/flood.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "attacks",
        claim: "nothing is forged, nothing is lost on its way out, and no client exhausts memory, with one core",
        work: Work::Script("tests/attacks.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "crowding",
        claim: "connections of one address and guesses of a whole network lock no other client out, with one core and four",
        work: Work::Script("tests/crowding.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Named,
    },
    Part {
        name: "cores",
        claim: "a machine with four cores serves like one with one core, with a queue for each core and with one for all",
        work: Work::Script("tests/cores.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "ipv6",
        claim: "over IPv6 the machine serves Linux's own programs, with fixed addresses and with a router's",
        work: Work::Script("tests/ipv6.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "clients",
        claim: "common mail programs send and fetch mail, and it comes back unchanged",
        work: Work::Script("tests/clients.py", &["--quick"]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "web",
        claim: "a site is served to browsers and curl, and ambiguous requests are refused",
        work: Work::Script("tests/web.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "tls",
        claim: "curl, OpenSSL, h2load and Python get pages and mail over TLS, and floods of handshakes lock no client out",
        work: Work::Script("tests/tls.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Always,
    },
    Part {
        name: "webmail-privacy",
        claim: "in Chromium an HTML message connects to no host and looks up no name before its reader allows it",
        work: Work::Script("tests/webmail_privacy.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "conform",
        claim: "h2spec, sslyze and OpenSSL 3.5 find the intended features, and no weakness",
        work: Work::Script("tests/conform.py", &["--quick"]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "crowd",
        claim: "10,000 idle and 1,000 busy HTTP connections fit in 256 MiB, and an idle one owns no buffer",
        work: Work::Script("tests/crowd.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Always,
    },
    Part {
        name: "load",
        claim: "1,000 messages over 1, 10 and 100 sessions are stored, none twice",
        work: Work::Script("tests/load.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "powercut",
        claim: "12 kills under load lose nothing that was acknowledged",
        work: Work::Script("tests/powercut.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "flushcut",
        claim: "15 cuts of the log of writes lose nothing that was acknowledged",
        work: Work::Script("tests/flushcut.py", &["--quick"]),
        budget: Duration::from_secs(420),
        when: When::Always,
    },
    Part {
        name: "full",
        claim: "a full disk answers 452 and loses nothing",
        work: Work::Script("tests/full.py", &["--quick"]),
        budget: Duration::from_secs(300),
        when: When::Always,
    },
    Part {
        name: "four-cores",
        claim: "the parts that boot machines pass with four cores in each",
        work: Work::Again {
            parts: &[
                "boot",
                "hosted",
                "flood",
                "ipv6",
                "clients",
                "web",
                "tls",
                "webmail-privacy-long",
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
        claim: "the engine keeps its promises on a machine with eight cores, as `unit` shows for one, two and four",
        work: Work::Cargo("test --quiet --package simulated --test eight_cores"),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "attacks-long",
        claim: "the same as `attacks`, with one core and four",
        work: Work::Script("tests/attacks.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "webmail-privacy-long",
        claim: "the same as `webmail-privacy`, in Chromium and Firefox",
        work: Work::Script("tests/webmail_privacy.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "deny",
        claim: "cargo-deny finds no advisory about a third-party crate in the RustSec database; needs the network",
        work: Work::Advisories,
        budget: Duration::from_secs(300),
        when: When::Named,
    },
    Part {
        name: "load-long",
        claim: "the same as `load`, with 10,000 messages",
        work: Work::Script("tests/load.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Named,
    },
    Part {
        name: "powercut-long",
        claim: "the same as `powercut`, with 60 kills",
        work: Work::Script("tests/powercut.py", &[]),
        budget: Duration::from_secs(720),
        when: When::Named,
    },
    Part {
        name: "sim-long",
        claim: "the same as `sim`, with 10,000 rooms",
        work: Work::Rooms(&["--seeds", "10000"]),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "cuts-long",
        claim: "one million power cuts lose nothing that the store has acknowledged",
        work: Work::StoreAtLength("fifty_thousand_power_cuts"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "small-worlds",
        claim: "every sequence of up to three operations holds, cut at every write with every subset of eight unflushed sectors",
        work: Work::StoreAtLength("small_worlds_from"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "every-bit",
        claim: "each flipped bit on a disk of 1.25 MiB costs at most one message, which the store names",
        work: Work::StoreAtLength("every_flipped_bit"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "long-world",
        claim: "a year of a million messages, a log of ten gigabytes and a power cut a month lose nothing",
        work: Work::StoreAtLength("a_year_of_a_million_messages"),
        budget: Duration::from_secs(4 * 3600),
        when: When::Named,
    },
    Part {
        name: "clients-long",
        claim: "the same as `clients`, with every size up to 50 MB",
        work: Work::Script("tests/clients.py", &[]),
        budget: Duration::from_secs(1200),
        when: When::Named,
    },
    Part {
        name: "conform-long",
        claim: "the same as `conform`, and testssl.sh",
        work: Work::Script("tests/conform.py", &[]),
        budget: Duration::from_secs(1800),
        when: When::Named,
    },
    Part {
        name: "browser",
        claim: "Chromium shows a page with all its resources, and uses its cache the second time",
        work: Work::Script("tests/browser.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "webmail-html-long",
        claim: "the same as `webmail-html`, in Chromium and in Firefox",
        work: Work::Script("tests/webmail_html.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "webmail-long",
        claim: "the same as `webmail`, with scripts and without on each screen",
        work: Work::Script("tests/webmail.py", &[]),
        budget: Duration::from_secs(1200),
        when: When::Named,
    },
    Part {
        name: "webmail-sending-long",
        claim: "the same as `webmail-sending`, with scripts and without on each screen",
        work: Work::Script("tests/webmail_sending.py", &[]),
        budget: Duration::from_secs(900),
        when: When::Named,
    },
    Part {
        name: "webmail-corpus",
        claim: "400 hostile messages and those of CPython's tests run nothing, fetch nothing and break no page of the webmail in Chromium",
        work: Work::Script("tests/webmail_corpus.py", &[]),
        budget: Duration::from_secs(1800),
        when: When::Named,
    },
    Part {
        name: "webmail-access",
        claim: "axe-core finds no accessibility fault on a page of the webmail, with scripts and without",
        work: Work::Script("tests/webmail_access.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
    Part {
        name: "webmail-pictures",
        claim: "the screenshots of the webmail in docs/figures are made anew",
        work: Work::Script("tests/webmail_pictures.py", &[]),
        budget: Duration::from_secs(300),
        when: When::Named,
    },
    Part {
        name: "flushcut-long",
        claim: "the same as `flushcut`, with 80 cuts",
        work: Work::Script("tests/flushcut.py", &[]),
        budget: Duration::from_secs(1200),
        when: When::Named,
    },
    Part {
        name: "full-long",
        claim: "the same as `full`, round after round",
        work: Work::Script("tests/full.py", &[]),
        budget: Duration::from_secs(600),
        when: When::Named,
    },
];

/// The scripts of the parts with these names, and their arguments.
pub(crate) fn scripts_of(
    names: &[&str],
) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
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
