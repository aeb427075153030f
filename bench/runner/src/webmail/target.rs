//! A guest with a webmail, and its counters.
//!
//! A step is repeated several times. Then the bench waits until the guest is idle. The cost of a
//! step is the number of instructions that the guest executed during the step, minus those of an
//! idle guest. It does not depend on other load on the host. The count at the first byte of a
//! response is also recorded. It is slightly too high, because the guest continues while the
//! counters are read.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fabric::trusting::{self, Tickets};
use host::Failure;
use rustls::client::ClientConfig;

use super::browser::{Browser, Question};
use super::reader::Reader;
use crate::beside::Side;
use crate::counters::Counters;
use crate::profile::Profiler;
use crate::statistics::median;

/// The time after which the work of a step is certainly finished.
pub(super) const SETTLE: Duration = Duration::from_millis(300);
const IDLE: Duration = Duration::from_secs(2);

/// A guest that is measured.
pub(super) struct Target<'a> {
    pub(super) side: Side,
    /// The process of QEMU.
    pub(super) process: u32,
    pub(super) address: SocketAddr,
    pub(super) settings: Arc<ClientConfig>,
    pub(super) counters: &'a Counters,
    /// Instructions in a second in which nothing happens.
    pub(super) idle: f64,
}

/// The cost of one repetition of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) instructions: f64,
    /// The part of the instructions that TLS needs, if known.
    pub(super) for_tls: f64,
    /// The browser's time.
    pub(super) ms: f64,
    /// Instructions until the first byte of the response: the median.
    pub(super) to_first_byte: f64,
}

/// The arrival of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// Instructions until the first byte. None if the counters were not read, because reading them
    /// takes time.
    pub(super) to_first_byte: Option<f64>,
    pub(super) time: Duration,
}

impl<'a> Target<'a> {
    /// A guest that is at rest, with a webmail at `address`.
    pub(super) fn at(
        side: Side,
        address: SocketAddr,
        process: u32,
        counters: &'a Counters,
    ) -> Result<Target<'a>, Failure> {
        let settings =
            trusting::settings(&["http/1.1"], Tickets::Forgotten).map_err(Failure::broke)?;
        Ok(Target { side, process, address, settings, counters, idle: idle(counters)? })
    }

    pub(super) fn log_in(&self, name: &str) -> Result<Reader, Failure> {
        Reader::log_in(self.side, self.address, &self.settings, name)
    }

    /// Does the step once to fill caches, and then measures `times` repetitions.
    pub(super) fn same(
        &self,
        step: impl Debug,
        times: usize,
        browser: &mut Browser,
        questions: &[Question],
        profiler: &Profiler,
    ) -> Result<Taken, Failure> {
        browser.ask_all(questions)?;
        std::thread::sleep(SETTLE);
        self.repeat(step, browser, &vec![questions.to_vec(); times], profiler)
    }

    /// Does each of these steps once.
    pub(super) fn repeat(
        &self,
        step: impl Debug,
        browser: &mut Browser,
        all: &[Vec<Question>],
        profiler: &Profiler,
    ) -> Result<Taken, Failure> {
        self.count(step, all.len(), profiler, |index| {
            self.hear(browser, all.get(index).map_or(&[], Vec::as_slice), index)
        })
    }

    /// Sends the requests. If `index` is even, it reads the counters when the first byte of the
    /// responses arrives.
    pub(super) fn hear(
        &self,
        browser: &mut Browser,
        questions: &[Question],
        index: usize,
    ) -> Result<Heard, Failure> {
        if !index.is_multiple_of(2) {
            return Ok(Heard { to_first_byte: None, time: browser.ask_all(questions)? });
        }
        let before = self.counters.total_of(0)?;
        let (began, mut at_first_byte) = (Instant::now(), None);
        for question in questions {
            browser.ask_and_note(question, &mut || {
                at_first_byte.get_or_insert_with(|| self.counters.total_of(0));
            })?;
        }
        let time = began.elapsed();
        let then = at_first_byte.unwrap_or(Ok(before))?;
        Ok(Heard { to_first_byte: Some(then.saturating_sub(before) as f64), time })
    }

    /// Counts the cost of each call of `work`, which returns the arrival of its response.
    pub(super) fn count(
        &self,
        step: impl Debug,
        times: usize,
        profiler: &Profiler,
        mut work: impl FnMut(usize) -> Result<Heard, Failure>,
    ) -> Result<Taken, Failure> {
        let (began, before) = (Instant::now(), self.counters.sample()?);
        let heard = (0..times).map(&mut work).collect::<Result<Vec<_>, _>>()?;
        std::thread::sleep(SETTLE);
        let executed = self.counters.sample()?.since(&before);
        let own = executed.total() as f64 - self.idle * began.elapsed().as_secs_f64();
        let mut for_tls = f64::NAN;
        if self.side == Side::Ours {
            let step: String = format!("{step:?}")
                .chars()
                .filter(|character| character.is_alphanumeric())
                .collect();
            profiler.write(&step, &executed, times as u32)?;
            for_tls = profiler.functions.executed_in(&executed, is_of_tls) as f64 / times as f64;
        }
        // Reading the counters disturbs the time, so only the other repetitions are timed. A step
        // with a single repetition is both counted and timed.
        let undisturbed = heard.iter().filter(|one| times == 1 || one.to_first_byte.is_none());
        Ok(Taken {
            instructions: own / times as f64,
            for_tls,
            ms: median(undisturbed.map(|one| one.time.as_secs_f64() * 1000.0).collect()),
            to_first_byte: median(heard.iter().filter_map(|one| one.to_first_byte).collect()),
        })
    }
}

/// The instructions that a guest executes in a second in which nothing happens.
fn idle(counters: &Counters) -> Result<f64, Failure> {
    std::thread::sleep(SETTLE);
    let (before, started) = (counters.total_of(0)?, Instant::now());
    std::thread::sleep(IDLE);
    Ok((counters.total_of(0)? - before) as f64 / started.elapsed().as_secs_f64())
}

/// Whether a function of the image exists only for TLS: records, and their encryption and
/// decryption. Functions that copy plaintext are excluded.
fn is_of_tls(function: &str) -> bool {
    const PARTS: [&str; 9] = [
        "tls::",
        "rustls",
        "ring::",
        "ring_core",
        "aesni",
        "connections::tls_table",
        "connections::connections::Connections::open",
        "connections::connections::Connections::step_in_handshake",
        "server::session::records",
    ];
    PARTS.iter().any(|part| function.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::is_in_the_repository;

    #[test]
    fn record_encryption_counts_as_tls_and_page_making_does_not() {
        for function in [
            "_aesni_ctr32_ghash_6x",
            "tls::protection::Half::seal_record",
            "connections::tls_table::TlsTable::send",
            "connections::connections::Connections::open",
            "server::session::records::<impl server::session::Session>::records_arrived",
        ] {
            assert!(is_of_tls(function), "{function}");
        }
        for function in [
            "copy_forward",
            "webmail::prose::escaped",
            "store::digest::Digester::digest",
            "connections::connections::Connections::say",
        ] {
            assert!(!is_of_tls(function), "{function}");
        }
        for file in [
            "connections/src/tls_table.rs",
            "connections/src/connections.rs",
            "server/src/session/records.rs",
        ] {
            assert!(is_in_the_repository(&format!("engine/{file}")), "{file}");
        }
    }
}
