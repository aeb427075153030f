//! What the engine has for simulations alone, and what is nothing at all in the image.
//!
//! `sometimes!(Place)` marks a place that simulations must reach now and then: one that they never reach they show nothing of.
//! `buggify!(Mishap)` makes a rare thing common: a pool that refuses, a budget that is spent early, a wake-up that is late. It
//! is always something that may happen anyway, and that whoever asks copes with.
//!
//! Both are nothing unless the feature `counted` is on, which only the simulator asks for. Then a run of many rooms fails
//! when a place was never reached, or a mishap never happened; and mishaps happen as the seed says that a room gives to
//! [`begin`], to one room in a process at a time. These are the only things under `engine/` that outlive an engine.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "counted")]
mod counted;

#[cfg(feature = "counted")]
pub use counted::{begin, count, end, happened, happens, pause, reached, resume};

macro_rules! names {
    ($(#[doc = $about:literal])* $kind:ident: $($(#[doc = $doc:literal])* $name:ident,)*) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $kind { $($(#[doc = $doc])* $name,)* }

        impl $kind {
            /// All of them.
            pub const ALL: &[$kind] = &[$($kind::$name,)*];
        }
    };
}

names! {
    /// A place of the engine, or of a room that it lives in.
    Place:
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
    /// There is no room for a greeting: it waits.
    GreetingPutOff,
    /// A segment goes round the cores, since nobody knows it where it came.
    StraySent,
    /// A stray has found its core.
    StrayKept,
    /// No core knows a stray: one answers it.
    StrayUnknown,
    /// A frame goes from the core that receives to the one that it is for.
    FrameSteered,
    /// A ring between cores takes no more, and there is more to tell.
    RingFull,
    /// A frame is sent through another core.
    ParcelSent,
    /// The card has no room for a frame that another core sends through this one.
    ParcelWaits,
    /// A letter for an account of another core waits for a page.
    NoPage,
    /// The store is busy with what another core asks for.
    DeskWaits,
    /// Letters of other cores wait to be begun.
    DeskPutsOff,
    /// A letter is for accounts of several cores.
    LetterSpread,
    /// A letter of another core is refused.
    DeskRefuses,
    /// A letter of another core is given up.
    DeskForgets,
    /// There is no room for another handshake of TLS.
    HandshakesFull,
    /// A handshake comes to nothing.
    HandshakeFailed,
    /// A client is known by its ticket.
    TicketTaken,
    /// A record is refused once the handshake is done.
    RecordRefused,
    /// A room's own: the power is cut in the middle of a handshake.
    CutInHandshake,
    /// A room's own: a letter is acknowledged over TLS.
    AcknowledgedOverTls,
    /// A room's own: a letter is acknowledged by the webmail.
    SentAtWebmail,
    /// A room's own: a letter is held by it.
    HeldAtWebmail,
    /// A room's own: such a letter is taken back.
    TakenBackAtWebmail,
    /// A room's own: somebody wants it back when it has left.
    TooLateAtWebmail,
    /// A room's own: a draft is acknowledged.
    DraftKept,
    /// A room's own: messages were moved at the webmail.
    MovedAtWebmail,
    /// A room's own: somebody comes with the ticket of a session that is over.
    StrangerComes,
    /// The head of an entry of an outbox comes in several parts.
    EntryHeadInParts,
    /// A room's own: another server has taken a message.
    TakenElsewhere,
    /// A room's own: a report on a message that was not delivered is stored.
    ReportStored,
    /// A room's own: a message for another server lies in an outbox when that is looked at.
    WaitsInOutbox,
}

names! {
    /// A rare thing that a simulation makes common.
    Mishap:
    /// A phase of a turn may do one thing only.
    BudgetSpent,
    /// A turn comes later than it was asked for.
    WakeUpLate,
    /// The disk takes no more requests for now.
    DiskQueueFull,
    /// There is no queue, or no block, for what a connection wants to send.
    NoSendRoom,
    /// There is no place for a segment beyond a gap.
    NoRoomForGap,
    /// A SYN is answered by a cookie.
    CookieAlways,
    /// A caller finds the house full.
    HouseFull,
    /// There is no record for a transaction.
    NoTransaction,
    /// The store takes no more deliveries for now.
    NoDelivery,
    /// The store reads for too many already.
    NoRead,
    /// A shard's journal is written anew although it is short.
    CheckpointEarly,
    /// A shard's journal goes on in another segment although there is space.
    JournalSegmentEarly,
    /// A segment is emptied although there is space.
    CompactionEarly,
    /// A ring between cores has few places.
    ShortRing,
    /// There is no room for a frame on its way to another core.
    NoRoomBetweenCores,
    /// All parcels of a core are on their way.
    NoParcel,
    /// There is no room for another handshake of TLS.
    NoHandshake,
    /// A read of a body gives less than what lies together on the disk.
    ShortRead,
}

/// Marks a place that simulations must reach now and then.
#[macro_export]
macro_rules! sometimes {
    ($place:ident) => {
        $crate::reached($crate::Place::$place)
    };
}

/// Whether this rare thing is to happen now, though nothing asks for it. Never outside of simulations.
#[macro_export]
macro_rules! buggify {
    ($mishap:ident) => {
        $crate::happens($crate::Mishap::$mishap)
    };
}

/// The place is reached.
#[cfg(not(feature = "counted"))]
#[inline(always)]
pub fn reached(_place: Place) {}

/// No mishap happens by itself.
#[cfg(not(feature = "counted"))]
#[inline(always)]
pub const fn happens(_mishap: Mishap) -> bool {
    false
}
