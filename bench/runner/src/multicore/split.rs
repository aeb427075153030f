//! Splits the instructions of a core by the part of the machine that they belong to.
//!
//! A block of instructions belongs to its innermost source file that names a part. Code of
//! libraries and shared code of ours belongs to the part into which it was inlined. The rest
//! belongs to the turn itself, to sleep, and to code that was not inlined.

use std::ops::AddAssign;

use host::Failure;

use crate::counters::Sample;
use crate::profile::{Functions, owner_of};

/// The part of the machine that executes an instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Part {
    /// The card's receive queue.
    Receive,
    /// The choice of a core for each frame, and the rings through which cores pass frames.
    BetweenCores,
    /// From Ethernet to HTTP, in both directions.
    Protocol,
    /// The card's transmit queue.
    Send,
    /// The turn, the clock and sleep.
    Rest,
}

pub(super) const PARTS: [(Part, &str); 5] = [
    (Part::Receive, "receive"),
    (Part::BetweenCores, "rings"),
    (Part::Protocol, "protocol"),
    (Part::Send, "send"),
    (Part::Rest, "turn, sleep"),
];

/// Path prefixes and their parts. The first prefix that matches counts.
const PLACES: [(&str, Part); 10] = [
    ("machines/bare/src/virtio/net/receive", Part::Receive),
    ("machines/bare/src/virtio/net/transmit", Part::Send),
    ("engine/net/src/cores", Part::BetweenCores),
    ("engine/net/src/net/messages", Part::BetweenCores),
    ("engine/rings/", Part::BetweenCores),
    ("engine/server/src/engine/cores", Part::BetweenCores),
    ("engine/net/src/parcels", Part::BetweenCores),
    ("engine/net/", Part::Protocol),
    ("engine/http/", Part::Protocol),
    ("engine/web/", Part::Protocol),
];

/// The instructions of each of [`PARTS`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Split([f64; PARTS.len()]);

impl Split {
    /// Splits the instructions in `sample`, and divides them by the number of requests.
    pub(super) fn of(
        functions: &Functions,
        sample: &Sample,
        requests: usize,
    ) -> Result<Split, Failure> {
        let mut split = Split::default();
        for (places, (_, count)) in functions.places(sample)?.iter().zip(sample.by_address()) {
            split.add(part(places), count as f64 / requests.max(1) as f64);
        }
        Ok(split)
    }

    /// The counts in the order of [`PARTS`].
    pub(super) fn parts(self) -> impl Iterator<Item = (&'static str, f64)> {
        PARTS.iter().map(|(_, name)| *name).zip(self.0)
    }

    fn add(&mut self, part: Part, count: f64) {
        let of_part = PARTS.iter().zip(&mut self.0).find(|((one, _), _)| *one == part);
        if let Some((_, sum)) = of_part {
            sum.add_assign(count);
        }
    }
}

fn part(places: &[String]) -> Part {
    owner_of(places, &PLACES).unwrap_or(Part::Rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_belongs_to_the_innermost_known_file() {
        let of = |places: &[&str]| {
            part(&places.iter().map(|place| place.to_string()).collect::<Vec<_>>())
        };
        let queue = "/x/machines/bare/src/virtio/queue.rs:208";
        let engine = "/x/engine/server/src/engine.rs:120";
        assert_eq!(
            of(&[queue, "/x/machines/bare/src/virtio/net/receive.rs:9", engine]),
            Part::Receive
        );
        assert_eq!(
            of(&[queue, "/x/machines/bare/src/virtio/net/transmit.rs:9", engine]),
            Part::Send
        );
        assert_eq!(
            of(&["/rustc/core/mem.rs:1", "/x/engine/net/src/cores/post.rs:70", engine]),
            Part::BetweenCores
        );
        assert_eq!(
            of(&["/x/engine/net/src/tcp/tcb/arrival.rs:7", "/x/engine/net/src/cores.rs:300"]),
            Part::Protocol
        );
        assert_eq!(of(&["??:0"]), Part::Rest);
        assert_eq!(of(&[engine]), Part::Rest);
    }

    #[test]
    fn every_listed_path_is_in_the_repository() {
        for (place, _) in PLACES {
            assert!(crate::profile::tests::is_in_the_repository(place), "{place}");
        }
    }

    #[test]
    fn parts_add_up_in_their_order() {
        let mut split = Split::default();
        split.add(Part::Send, 2.0);
        split.add(Part::Receive, 1.0);
        split.add(Part::Send, 3.0);
        assert_eq!(
            split.parts().map(|(_, count)| count).collect::<Vec<_>>(),
            [1.0, 0.0, 0.0, 5.0, 0.0]
        );
    }
}
