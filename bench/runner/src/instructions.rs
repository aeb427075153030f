//! Guest instructions for one transaction. They measure the machine's own work, independent of the
//! host's load.
//!
//! A transaction's count is the difference of two samples, with the guest at rest at both. The idle
//! rate of the guest is subtracted, and the rest is divided by the number of transactions. The
//! result is the median of several repetitions. The peer's figures are recorded here. They were
//! counted in the same way, with a similar plugin, in a Linux guest with one core under QEMU's
//! translator.

use std::time::{Duration, Instant};

use barepost::guest::MachineType;
use barepost::services::{POP3, Reached, SMTP};
use host::{Failure, Repository, Stop};

use super::beside::mailboxes::PASSWORD;
use super::client::{Client, message};
use super::counters::{Counters, Sample};
use super::profile::Profiler;
use super::report::{Report, Row};
use super::statistics::median;
use super::workplace::{ConfiguredPasswords, Serving, Workplace, refuse_if_stopped};

const PEER: &str = "Postfix 3.7 + Dovecot 2.3, Debian 12 guest, recorded";
const PEER_NEW_CONNECTION: f64 = 3_210_000.0;
const PEER_REUSED_SESSION: f64 = 2_420_000.0;
const PEER_POP3: f64 = 1_200_000.0;
const PEER_BOOT: f64 = 6_500_000_000.0;
const AIM_NEW_CONNECTION: f64 = 60_000.0;
const AIM_REUSED_SESSION: f64 = 30_000.0;

const MESSAGE_BYTES: usize = 1024;
const SESSIONS: u32 = 100;
const MESSAGES: u32 = 200;
const FETCHES: u32 = 40;
const LOGINS: u32 = 50;
const REPETITIONS: usize = 5;
/// The time after which a transaction has no more work in progress, such as delayed
/// acknowledgements and the last write.
const SETTLE: Duration = Duration::from_millis(400);
/// The longest time for which a serving machine still configures its addresses, and checks the
/// plain passwords of its configuration. It detects duplicate addresses and solicits routers.
const ARRIVAL: Duration = Duration::from_secs(15);
const IDLE: Duration = Duration::from_secs(10);

pub(super) fn run(repository: &Repository, stop: &Stop) -> Result<Report, Failure> {
    let with_checks = {
        let workplace = Workplace::new(repository, ConfiguredPasswords::Plain, stop)?;
        let counted = CountedStart::of(&workplace, repository, stop)?;
        counted.serving.stop()?;
        counted.at_rest
    };
    let workplace = Workplace::new(repository, ConfiguredPasswords::Hashed, stop)?;
    let CountedStart { counters, serving, ready, at_rest } =
        CountedStart::of(&workplace, repository, stop)?;
    let checks = with_checks.saturating_sub(at_rest);
    let profiler = Profiler::new(repository, "instructions")?;
    let mut measuring = Measuring { counters, serving, profiler, idle_per_second: 0.0 };
    measuring.measure_idle()?;

    let text = message(MESSAGE_BYTES);
    let mut rows = Vec::new();
    let new_connection = measuring
        .transactions("new-connection", SESSIONS, |base| send_in_new_sessions(base, &text))?;
    let case = "SMTP: 1 KB message, new connection";
    rows.push(Row::alone(case, "instructions", new_connection).beside(
        PEER,
        PEER_NEW_CONNECTION,
        Some(AIM_NEW_CONNECTION),
    ));
    let reused = measuring
        .transactions("reused-session", MESSAGES, |base| send_in_one_session(base, &text))?;
    let case = "SMTP: 1 KB message, reused session";
    rows.push(Row::alone(case, "instructions", reused).beside(
        PEER,
        PEER_REUSED_SESSION,
        Some(AIM_REUSED_SESSION),
    ));

    // Log in once before counting. Then the machine has cached the verified password.
    let mut session = None;
    let (first, _) = measuring.during(|serving| {
        session = Some(log_in(serving.base)?);
        serving.rest(SETTLE)
    })?;
    rows.push(Row::alone("POP3: first login (argon2id)", "instructions", first.total() as f64));
    let fetched =
        measuring.transactions("pop3", FETCHES, |_| session.as_mut().map_or(Ok(()), fetch))?;
    drop(session);
    rows.push(
        Row::alone("POP3: 1 KB message", "instructions", fetched).beside(PEER, PEER_POP3, None),
    );
    let login = measuring.transactions("pop3-login", LOGINS, |base| {
        (0..LOGINS).try_for_each(|_| leave(log_in(base)?))
    })?;
    rows.push(Row::alone("POP3: later login, with its connection", "instructions", login));
    rows.push(
        Row::alone("boot to ready", "instructions", ready as f64).beside(PEER, PEER_BOOT, None),
    );
    let case = "checks of two plain passwords, after a start";
    rows.push(Row::alone(case, "instructions", checks as f64));
    rows.push(Row::alone("idle, in a second", "instructions", measuring.idle_per_second));
    refuse_if_stopped(stop)?;
    measuring.serving.stop()?;
    Ok(Report {
        machine: format!(
            "{} TCG, q35, one core, 256 MiB, QEMU's user network",
            workplace.emulator()?
        ),
        rows,
        note: "Counted with bench/plugin/instructions.c, idle rate subtracted, median of 5 repetitions. The peer's \
               figures are recorded ones, counted the same way on a tap network. The functions that take our instructions: target/bench/instructions-*.profile.",
        figure: None,
    })
}

/// A guest that has started with a disk and accounts, and the instructions of its start.
struct CountedStart {
    counters: Counters,
    serving: Serving,
    /// The instructions until every service had sent its greeting.
    ready: u64,
    /// The instructions until the guest was at rest.
    at_rest: u64,
}

impl CountedStart {
    fn of(workplace: &Workplace, repository: &Repository, stop: &Stop) -> Result<Self, Failure> {
        // The first boot makes the disk and the accounts. A later boot shows the cost of a boot.
        workplace.boot(MachineType::Q35, None)?.stop()?;
        let counters = Counters::new(repository, stop)?;
        let mut serving = workplace.boot(MachineType::Q35, Some(counters.plugin()))?;
        let ready = counters.sample()?.total();
        serving.rest(ARRIVAL)?;
        let at_rest = counters.sample()?.total();
        Ok(CountedStart { counters, serving, ready, at_rest })
    }
}

struct Measuring {
    counters: Counters,
    serving: Serving,
    profiler: Profiler,
    idle_per_second: f64,
}

impl Measuring {
    fn measure_idle(&mut self) -> Result<(), Failure> {
        let (idle, took) = self.during(|serving| serving.rest(IDLE))?;
        self.idle_per_second = idle.total() as f64 / took.as_secs_f64();
        Ok(())
    }

    /// Instructions for each of the `count` transactions of `work`. `work` gets the base of the
    /// ports.
    fn transactions(
        &mut self,
        name: &str,
        count: u32,
        mut work: impl FnMut(u16) -> Result<(), Failure>,
    ) -> Result<f64, Failure> {
        // Run once without counting, because the first run fills caches.
        work(self.serving.base)?;
        self.serving.rest(SETTLE)?;
        let mut each = Vec::new();
        let mut last = Sample::default();
        for _ in 0..REPETITIONS {
            let (executed, took) = self.during(|serving| {
                work(serving.base)?;
                serving.rest(SETTLE)
            })?;
            let idle = self.idle_per_second * took.as_secs_f64();
            each.push((executed.total() as f64 - idle) / f64::from(count));
            last = executed;
        }
        self.profiler.write(name, &last, count)?;
        Ok(median(each))
    }

    fn during(
        &mut self,
        work: impl FnOnce(&mut Serving) -> Result<(), Failure>,
    ) -> Result<(Sample, Duration), Failure> {
        let started = Instant::now();
        let before = self.counters.sample()?;
        work(&mut self.serving)?;
        Ok((self.counters.sample()?.since(&before), started.elapsed()))
    }
}

fn send_in_new_sessions(base: u16, text: &[u8]) -> Result<(), Failure> {
    (0..SESSIONS).try_for_each(|_| {
        let mut session = greet(base)?;
        send(&mut session, text)?;
        session.command(b"QUIT\r\n", "221")
    })
}

fn send_in_one_session(base: u16, text: &[u8]) -> Result<(), Failure> {
    let mut session = greet(base)?;
    (0..MESSAGES).try_for_each(|_| send(&mut session, text))?;
    session.command(b"QUIT\r\n", "221")
}

fn greet(base: u16) -> Result<Client, Failure> {
    let mut session = Client::connect(SMTP.forwarded(base), "220")?;
    session.command(b"EHLO client.test\r\n", "250")?;
    Ok(session)
}

fn send(session: &mut Client, text: &[u8]) -> Result<(), Failure> {
    session.command(b"MAIL FROM:<bench@client.test>\r\n", "250")?;
    session.command(b"RCPT TO:<ada@barepost.test>\r\n", "250")?;
    session.command(b"DATA\r\n", "354")?;
    session.command(text, "250")
}

fn log_in(base: u16) -> Result<Client, Failure> {
    let mut session = Client::connect(POP3.forwarded(base), "+OK")?;
    session.command(b"USER ada@barepost.test\r\n", "+OK")?;
    session.command(format!("PASS {PASSWORD}\r\n").as_bytes(), "+OK")?;
    Ok(session)
}

fn fetch(session: &mut Client) -> Result<(), Failure> {
    for number in 1..=FETCHES {
        let bytes = session.fetch(format!("RETR {number}\r\n").as_bytes())?;
        if bytes < MESSAGE_BYTES {
            return Err(Failure::broke(format_args!(
                "message {number} came back with only {bytes} bytes"
            )));
        }
    }
    Ok(())
}

fn leave(mut session: Client) -> Result<(), Failure> {
    session.command(b"QUIT\r\n", "+OK")
}
