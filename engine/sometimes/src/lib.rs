//! Places in the engine that simulations must reach now and then: a simulation that never reaches them shows nothing of
//! them.
//!
//! `sometimes!(Place)` marks one. It costs nothing, and is nothing, unless the feature `counted` is on, which only the
//! simulator asks for; then a run of many rooms fails when a place was never reached. The counters are the one thing under
//! `engine/` that outlives an engine: nothing ever reads them there.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "counted")]
use core::sync::atomic::{AtomicU64, Ordering};

macro_rules! places {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// A place.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Place { $($(#[doc = $doc])* $name,)* }

        impl Place {
            /// All of them.
            pub const ALL: &[Place] = &[$(Place::$name,)*];
        }
    };
}

places! {
    /// A journal goes on in another segment.
    JournalLinked,
    /// A shard's journal is written anew, so that it becomes short.
    CheckpointBegun,
    /// Compaction moves a chunk that lives.
    ChunkMoved,
    /// Compaction is done with a segment.
    SegmentCleaned,
    /// A body finds no space.
    DiskFull,
    /// The disk has failed what others depend on.
    ReadOnly,
    /// A message of the last group was torn, and goes.
    TornMessageDropped,
    /// One copy of a block was damaged; a checkpoint is to leave it behind.
    CopyDamaged,
    /// A client leaves before its deletions are done.
    DeletionOrphaned,
    /// Somebody stands still while something runs short, and has to go.
    SessionSentAway,
    /// A caller finds the house full.
    CallerSentAway,
}

/// Marks a place that simulations must reach now and then.
#[macro_export]
macro_rules! sometimes {
    ($place:ident) => {
        $crate::reached($crate::Place::$place)
    };
}

#[cfg(feature = "counted")]
static COUNTS: [AtomicU64; Place::ALL.len()] = [const { AtomicU64::new(0) }; Place::ALL.len()];

/// The place is reached.
#[inline(always)]
pub fn reached(place: Place) {
    #[cfg(feature = "counted")]
    if let Some(count) = COUNTS.get(place as usize) {
        count.fetch_add(1, Ordering::Relaxed);
    }
    #[cfg(not(feature = "counted"))]
    let _ = place;
}

/// How often the place was reached in this process.
#[cfg(feature = "counted")]
pub fn count(place: Place) -> u64 {
    COUNTS.get(place as usize).map_or(0, |count| count.load(Ordering::Relaxed))
}
