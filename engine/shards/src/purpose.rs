//! Continuations of other cores, in the form in which the owner of an account stores them. Unused
//! bits of the entry contain the core and the kind of the request.

use machine::CoreId;
use tasks::{Continuation, EntryPoint};

/// The kind of a request from another core to the owner of an account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OwnerRequestKind {
    /// Deliver a message.
    Delivery,
    /// Read a part of a message.
    Read,
    /// Remove messages, or forget that a message has arrived.
    Removal,
}

impl OwnerRequestKind {
    const ALL: [OwnerRequestKind; 3] =
        [OwnerRequestKind::Delivery, OwnerRequestKind::Read, OwnerRequestKind::Removal];
}

/// Puts the core and the kind of the request into bits of the entry that the core's own
/// continuations do not use.
pub(crate) fn on_core(
    (core, purpose): (CoreId, OwnerRequestKind),
    continuation: Continuation,
) -> Continuation {
    let of_core = (u32::from(core.0) + 1) << CORE_SHIFT | (purpose as u32) << PURPOSE_SHIFT;
    Continuation { entry: EntryPoint(continuation.entry.0 | of_core), ..continuation }
}

/// The core and the kind of the request in a continuation of [`on_core`], and the original
/// continuation.
pub(crate) fn core_of(
    continuation: Continuation,
) -> (Option<(CoreId, OwnerRequestKind)>, Continuation) {
    let EntryPoint(bits) = continuation.entry;
    let core = (bits >> CORE_SHIFT & 0xff).checked_sub(1).map(|core| CoreId(core as u8));
    let purpose = OwnerRequestKind::ALL.get((bits >> PURPOSE_SHIFT) as usize).copied();
    (
        core.zip(purpose),
        Continuation { entry: EntryPoint(bits & ((1 << CORE_SHIFT) - 1)), ..continuation },
    )
}

const CORE_SHIFT: u32 = EntryPoint::BITS;
const PURPOSE_SHIFT: u32 = CORE_SHIFT + 8;

#[cfg(test)]
mod tests {
    use super::*;
    use tasks::{FrameId, Subsystem};

    #[test]
    fn continuation_of_another_core_survives_the_round_trip() {
        let continuation = Continuation {
            frame: FrameId::new(3, 4),
            entry: EntryPoint::new(Subsystem::Outbound as u8, 15),
        };
        assert_eq!(core_of(continuation), (None, continuation), "a continuation of this core");
        for core in [0, 1, 15].map(CoreId) {
            for purpose in OwnerRequestKind::ALL {
                let there = on_core((core, purpose), continuation);
                assert_eq!(core_of(there), (Some((core, purpose)), continuation));
            }
        }
    }
}
