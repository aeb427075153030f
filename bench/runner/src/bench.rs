//! `barepost bench`: measures the machine, and compares it with a peer where a fair peer exists.
//!
//! Each bench prints a Markdown table, writes `bench/results/NAME.json`, and names the peer of each
//! comparison.

use clap::Args;
use host::{Failure, Repository, Stop, say};

use crate::report::Report;
use crate::{
    boot, email, fabric, goodput, instructions, multicore, papers, relay, tls, web, webmail,
};

/// A bench that can be run by its name.
struct Bench {
    name: &'static str,
    /// The quantities that the bench measures, for `--help`.
    measures: &'static str,
    run: fn(&Repository, &Stop) -> Result<Report, Failure>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "instructions",
        measures: "guest instructions for a message sent, a message fetched, a boot; against Postfix and Dovecot",
        run: instructions::run,
    },
    Bench {
        name: "boot",
        measures: "time to readiness, size of the image, memory and processor time of an idle machine",
        run: boot::run,
    },
    Bench {
        name: "goodput",
        measures: "bytes a second over bad wires, in both directions; against Linux's TCP over the same wires",
        run: goodput::run,
    },
    Bench {
        name: "web",
        measures: "requests a second, latency, guest instructions and packets for a request; against nginx in a Linux guest",
        run: web::run,
    },
    Bench {
        name: "fabric",
        measures: "pages and messages a second without a kernel between server and clients, by core; instructions for each on 1 to 8 cores",
        run: fabric::run,
    },
    Bench {
        name: "tls",
        measures: "handshakes and bytes a second beside the libraries alone; guest instructions with and without TLS, against nginx with OpenSSL; the TLS webmail server's figures 5 to 13",
        run: tls::run,
    },
    Bench {
        name: "webmail",
        measures: "login, inbox, reading and writing in a browser, over TLS; against Roundcube in a Linux guest; the webmail studies' figures",
        run: webmail::run,
    },
    Bench {
        name: "email",
        measures: "messages a second, their instructions and steps; against Postfix and Dovecot in a Linux guest; the email server's figures 1 to 6 and 12",
        run: email::run,
    },
    Bench {
        name: "email-wan",
        measures: "messages over a wide network that delays and loses; against Postfix in a Linux guest; the email server's figures 7 to 11 and 13 to 15",
        run: email::wan::run,
    },
    Bench {
        name: "relay",
        measures: "messages through the queue to other servers; a slow destination beside a fast one; against Postfix in a Linux guest; and a queue of a million entries",
        run: relay::run,
    },
    Bench {
        name: "mailbox",
        measures: "a mailbox of 200,000 messages beside one of 50 and one of 20: listing, reading, searching, filing, start and memory",
        run: webmail::mailbox::run,
    },
    Bench {
        name: "cefos-scaling",
        measures: "system calls against devices and units; beside the CEFOS paper's figure 5",
        run: papers::scaling::run,
    },
    Bench {
        name: "cefos-livelock",
        measures: "useful work against offered load, past saturation; CEFOS, figure 6",
        run: papers::livelock::run,
    },
    Bench {
        name: "cefos-selfcontinuation",
        measures: "the cost of contention for a gate; CEFOS, figures 7 to 11",
        run: papers::self_continuation::run,
    },
    Bench {
        name: "queues",
        measures: "a polling queue against resume and delay queues; the email server's figures 16 and 17",
        run: papers::queues::run,
    },
    Bench {
        name: "multicore-web",
        measures: "what each of four cores does under a load of pages, with one queue of the card's and with a queue each; the multi-core web server's figures 11 to 16",
        run: multicore::run,
    },
];

#[derive(Args)]
#[command(after_help = help_on_benches())]
pub(crate) struct Options {
    /// Benchmarks to run; all by default
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Run only the cases of `goodput` or `relay` that contain this text, such as "hosted, 200
    /// Mbit/s, 20 ms, 5 %" or "a queue of 10,000"; for `web` and `webmail` only the cases of our
    /// own image, such as "16 at once" and "inbox"; no result is written then
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// Errors: [`Failure::refused`] if there is no bench of that name.
pub(crate) fn run(repository: &Repository, options: &Options, stop: &Stop) -> Result<(), Failure> {
    if let Some(only) = &options.only {
        return run_only(repository, options, only, stop);
    }
    for bench in chosen(&options.names)? {
        let report = (bench.run)(repository, stop)?;
        say(format_args!("\n## {}\n\n{}", bench.name, report.table()));
        report.write(repository, bench.name)?;
        report.figure.iter().try_for_each(|figure| figure.write(repository, bench.name))?;
    }
    Ok(())
}

/// Runs only the cases that contain `only`. The result is incomplete, so it is not written.
fn run_only(
    repository: &Repository,
    options: &Options,
    only: &str,
    stop: &Stop,
) -> Result<(), Failure> {
    let run_only = match options.names.as_slice() {
        [name] if name == "goodput" => goodput::run_only,
        [name] if name == "relay" => relay::run_only,
        [name] if name == "web" => web::run_only,
        [name] if name == "webmail" => webmail::run_only,
        _ => {
            return Err(Failure::refused(
                "--only is for `bench goodput`, `bench relay`, `bench web` and `bench webmail`",
            ));
        }
    };
    let report = run_only(repository, only, stop)?;
    if report.rows.is_empty() {
        return Err(Failure::refused(format_args!("no case contains `{only}`")));
    }
    say(format_args!("{}", report.table()));
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Bench>, Failure> {
    if names.is_empty() {
        return Ok(BENCHES.iter().collect());
    }
    let named = names.iter().map(|name| {
        BENCHES.iter().find(|bench| bench.name == name).ok_or_else(|| {
            let known = BENCHES.iter().map(|bench| bench.name).collect::<Vec<_>>().join(", ");
            Failure::refused(format_args!("there is no bench `{name}`; there are {known}"))
        })
    });
    named.collect()
}

fn help_on_benches() -> String {
    let lines = BENCHES.iter().map(|bench| format!("  {:<23} {}\n", bench.name, bench.measures));
    std::iter::once("Benches:\n".to_string()).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_that_is_not_known_is_refused() {
        assert_eq!(chosen(&["speed".into()]).err().unwrap().status(), 2);
        assert_eq!(chosen(&[]).unwrap().len(), BENCHES.len());
    }
}
