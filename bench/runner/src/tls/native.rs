//! TLS natively: the work of a server core in its busy time, beside the work of the libraries alone
//! on the same processor.

use std::time::Duration;

use fabric::{Alone, Flooded, LARGE_BYTES, Load, Measured};
use host::{Failure, Stop, remark};

use crate::report::Row;
use crate::workplace::refuse_if_stopped;

/// The duration of a count.
const SPAN: Duration = Duration::from_secs(1);
/// The number of counts. The best one is used, since other load on the host only reduces the
/// result.
const REPETITIONS: usize = 3;

const LIBRARIES: &str = "rustls and ring alone";
const RING: &str = "ring alone";
/// The required part of the libraries' own throughput.
const TARGET: f64 = 0.9;

/// The results.
pub(super) struct Native {
    full: f64,
    resumed: f64,
    pages: f64,
    bytes: f64,
    alone: Alone,
    flooded: Flooded,
}

/// Errors: [`Failure::refused`] with fewer than two processors.
pub(super) fn measure(stop: &Stop) -> Result<Native, Failure> {
    if fabric::cores_max() == 0 {
        return Err(Failure::refused(
            "this bench needs two processors: one for a core of the server, one for a client",
        ));
    }
    let alone = fabric::alone().map_err(Failure::broke)?;
    let native = Native {
        full: most(Load::Handshakes, stop)?,
        resumed: most(Load::ResumedHandshakes, stop)?,
        pages: most(Load::SecurePages, stop)?,
        bytes: most(Load::SecureLargePages, stop)? * LARGE_BYTES as f64,
        alone,
        flooded: fabric::flood().map_err(Failure::broke)?,
    };
    remark(format_args!(
        "{:.0} full handshakes/s, {:.0} resumed, {:.0} pages/s, {:.2} GB/s; alone {:.0}, {:.0} and {:.2} GB/s; p99 {:?}, {:?} while handshakes arrive",
        native.full,
        native.resumed,
        native.pages,
        native.bytes / 1e9,
        alone.full,
        alone.resumed,
        alone.sealed / 1e9,
        native.flooded.quiet,
        native.flooded.flooded
    ));
    Ok(native)
}

/// The work in a second of the core's busy time. Busy time is used because the core also waits for
/// the client, which has the same amount of work.
fn most(load: Load, stop: &Stop) -> Result<f64, Failure> {
    let mut most = 0.0_f64;
    for _ in 0..REPETITIONS {
        refuse_if_stopped(stop)?;
        let Measured { per_second, busiest, .. } =
            fabric::measure(1, load, SPAN).map_err(Failure::broke)?;
        most = most.max(per_second / busiest);
    }
    Ok(most)
}

impl Native {
    pub(super) fn rows(&self) -> Vec<Row> {
        let Native { full, resumed, pages, bytes, alone, flooded } = self;
        let row = |what: &str, unit, ours: f64| {
            Row::alone(format!("native, one core: {what}"), unit, ours)
        };
        let micros = |span: Duration| span.as_secs_f64() * 1e6;
        let step = micros(alone.step);
        let promised = micros(flooded.quiet) + 2.0 * step;
        vec![
            row("full handshakes, with their connections", "handshakes/s", *full).ahead_of(
                LIBRARIES,
                alone.full,
                Some(TARGET),
            ),
            row("the same beside their key exchange and signature", "handshakes/s", *full)
                .ahead_of(RING, alone.keys, None),
            row("resumed handshakes, with their connections", "handshakes/s", *resumed).ahead_of(
                LIBRARIES,
                alone.resumed,
                Some(TARGET),
            ),
            row("a page of 4 KB, kept connections", "requests/s", *pages),
            row("pages of 1 MB", "GB/s", bytes / 1e9).ahead_of(
                "ring alone, records of 4,000 bytes",
                alone.sealed / 1e9,
                Some(TARGET),
            ),
            row("the same beside long records", "GB/s", bytes / 1e9).ahead_of(
                "ring alone, records of 16 KB",
                alone.sealed_in_long_records / 1e9,
                None,
            ),
            row("longest step of a handshake, the libraries alone", "µs", step),
            row("a page of 4 KB, p99, nothing else happens", "µs", micros(flooded.quiet)),
            row(
                "handshakes answered during a flood of them",
                "handshakes/s",
                flooded.handshakes_per_second,
            ),
            row("a page of 4 KB, p99, during a flood of handshakes", "µs", micros(flooded.flooded))
                .beside("quiet p99 and two steps", promised, Some(promised)),
        ]
    }
}
