//! The instructions of a request, by part of the program.

use std::collections::BTreeMap;

use host::Failure;

use crate::counters::Sample;
use crate::profile::{Functions, owner_of};

/// The parts in the order of a request's path. The last part is the rest.
const PARTS: [&str; 9] = [
    "frames from the card, and their buffers back to it",
    "Ethernet, IP, and the connection of a segment",
    "TCP, received segments",
    "events and sessions",
    "HTTP",
    "TCP, segments to be sent",
    "headers, and the queue to the card",
    "frames to the card",
    "turn, deadlines, sleep, copies",
];

/// Path prefixes of source files, and their parts as indexes into [`PARTS`]. The first prefix that
/// matches counts.
const PLACES: [(&str, usize); 26] = [
    ("machines/bare/src/virtio/net/receive", 0),
    ("machines/bare/src/virtio/net/transmit", 7),
    ("engine/net/src/tcp/send_queue", 5),
    ("engine/net/src/tcp/piece_queue", 5),
    ("engine/net/src/tcp/tcb/session", 5),
    ("engine/net/src/tcp/tcb/output", 5),
    ("engine/net/src/tcp/window", 5),
    ("engine/net/src/tcp/options", 1),
    ("engine/net/src/tcp/pools", 5),
    ("engine/net/src/tcp/blocks", 5),
    ("engine/net/src/tcp/nodes", 5),
    ("engine/net/src/tcp/", 2),
    ("engine/net/src/net.rs", 5),
    ("engine/net/src/connections.rs", 5),
    ("engine/net/src/connections/output", 6),
    ("engine/net/src/template", 6),
    ("engine/net/src/link", 6),
    ("engine/net/src/outbox", 6),
    ("engine/net/src/net/turn", 8),
    ("engine/net/", 1),
    ("engine/http/", 4),
    ("engine/web/", 4),
    ("engine/connections/", 3),
    ("engine/server/src/session", 3),
    ("engine/server/src/server", 3),
    ("engine/server/src/engine.rs", 8),
];

/// The instructions of each part, divided by the number of requests.
pub(super) fn parts(
    functions: &Functions,
    sample: &Sample,
    requests: f64,
) -> Result<Vec<(&'static str, f64)>, Failure> {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for (places, (_, count)) in functions.places(sample)?.iter().zip(sample.by_address()) {
        *sums.entry(owner_of(places, &PLACES).unwrap_or(PARTS.len() - 1)).or_default() +=
            count as f64 / requests;
    }
    Ok(PARTS
        .into_iter()
        .enumerate()
        .map(|(at, name)| (name, sums.get(&at).copied().unwrap_or(0.0)))
        .collect())
}

#[cfg(test)]
mod tests {
    use crate::profile::tests::is_in_the_repository;

    #[test]
    fn every_listed_path_is_in_the_repository() {
        for (place, _) in super::PLACES {
            assert!(is_in_the_repository(place), "{place}");
        }
    }
}
