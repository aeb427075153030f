//! Markers for simulations, which compile to nothing in the image.
//!
//! `sometimes!(Place)` marks a place in the code that simulations must reach now and then. A
//! simulation proves nothing about a place that it never reaches. `buggify!(Mishap)` makes a rare
//! event common: a pool refuses, a budget is spent early, a wake-up is late. Each of these events
//! may also happen without simulation, and the code handles it.
//!
//! Both macros do nothing unless the feature `counted` is on, which only the simulator uses. With
//! the feature, a run of many machine rooms fails if a place was never reached, or a mishap never
//! happened. The seed that a room passes to `begin` decides which mishaps happen. Only one room in
//! a process may run between `begin` and `end` at a time. The counters are static variables. They
//! are the only state under `engine/` that outlives an engine.
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
            /// All values, in their order.
            pub const ALL: &[$kind] = &[$($kind::$name,)*];
        }
    };
}

names! {
    /// A place in the engine. A place marked "By the room" is not in the engine, but in the machine
    /// room of the simulator.
    Place:
    /// A journal continues in another segment.
    JournalLinked,
    /// The journal of a shard is rewritten to make it short.
    CheckpointBegun,
    /// Compaction moves a live chunk.
    ChunkMoved,
    /// Compaction has emptied a segment.
    SegmentCleaned,
    /// The disk has no space for a message body.
    DiskFull,
    /// The disk has failed, so the store becomes read-only.
    ReadOnly,
    /// A message of the last group was torn, and is dropped.
    TornMessageDropped,
    /// One copy of a block was damaged. A checkpoint must write the block anew, so that the damage
    /// is gone.
    CopyDamaged,
    /// A client disconnects before its deletions are complete.
    DeletionOrphaned,
    /// A session makes no progress while resources are short, and is evicted.
    SessionSentAway,
    /// A client is refused because the server is full.
    CallerSentAway,
    /// A greeting waits, because it has no buffer space.
    GreetingPutOff,
    /// A segment for an unknown connection is passed around the cores.
    StraySent,
    /// A segment that was passed around has reached the core that knows its connection.
    StrayKept,
    /// No core knows the connection of a segment that was passed around, and one core answers it.
    StrayUnknown,
    /// A core passes a received frame to the core that has its connection.
    FrameSteered,
    /// A ring between cores is full, and more messages wait.
    RingFull,
    /// A frame is sent through another core.
    ParcelSent,
    /// The card has no space for a frame that another core sends through this core.
    ParcelWaits,
    /// A message for an account of another core waits for a page of memory.
    NoPage,
    /// A request of another core arrives while the store is busy.
    ShardRequestWaits,
    /// Deliveries of other cores wait to begin.
    RemoteBeginWaits,
    /// A message is for accounts of several cores.
    MultiShardMessage,
    /// A message of another core is refused.
    RemoteDeliveryRefused,
    /// A message of another core is abandoned.
    RemoteDeliveryAborted,
    /// The maximum number of TLS handshakes is reached.
    HandshakesFull,
    /// A handshake fails.
    HandshakeFailed,
    /// A session is resumed with a ticket.
    TicketTaken,
    /// A record is rejected after the handshake.
    RecordRefused,
    /// By the room: the power is cut during a handshake.
    CutInHandshake,
    /// By the room: a message is acknowledged over TLS.
    AcknowledgedOverTls,
    /// By the room: the webmail acknowledges a message.
    SentAtWebmail,
    /// By the room: the webmail delays a message (undo send).
    HeldAtWebmail,
    /// By the room: the webmail undoes the sending of a delayed message.
    TakenBackAtWebmail,
    /// By the room: an undo arrives too late, after the message was sent.
    TooLateAtWebmail,
    /// By the room: a draft is acknowledged.
    DraftKept,
    /// By the room: messages were moved in the webmail.
    MovedAtWebmail,
    /// By the room: a client uses the ticket of a session that has ended.
    EndedTicketUsed,
    /// The head of an outbox entry arrives in several parts.
    EntryHeadInParts,
    /// By the room: another server has accepted a message.
    AcceptedByAnotherServer,
    /// By the room: a bounce is stored.
    ReportStored,
    /// By the room: a message for another server is in an outbox when it is inspected.
    WaitsInOutbox,
}

names! {
    /// A rare event that a simulation makes common.
    Mishap:
    /// A phase of a turn may process only one item.
    BudgetSpent,
    /// A turn begins later than requested.
    WakeUpLate,
    /// The disk accepts no more requests for now.
    DiskQueueFull,
    /// No queue or no block is free for the output of a connection.
    NoSendRoom,
    /// A segment after a gap has no buffer space.
    NoRoomForGap,
    /// A SYN is answered with a cookie although there is room for its handshake.
    CookieAlways,
    /// A client is refused as if the server were full.
    ServerFull,
    /// No transaction record is free.
    NoTransaction,
    /// The store accepts no more deliveries for now.
    NoDelivery,
    /// The store has too many readers already.
    NoRead,
    /// The journal of a shard is rewritten although it is short.
    CheckpointEarly,
    /// The journal of a shard continues in another segment although the current one has space.
    JournalSegmentEarly,
    /// Compaction empties a segment although the disk has space.
    CompactionEarly,
    /// A ring between cores is short.
    ShortRing,
    /// A frame to another core has no space.
    NoRoomBetweenCores,
    /// All parcels of a core are in flight.
    NoParcel,
    /// The maximum number of TLS handshakes counts as reached.
    NoHandshake,
    /// A read of a body returns fewer bytes than are contiguous on the disk.
    ShortRead,
}

/// Marks a place that simulations must reach now and then.
#[macro_export]
macro_rules! sometimes {
    ($place:ident) => {
        $crate::reached($crate::Place::$place)
    };
}

/// Whether the simulation makes this rare event happen now. Always false outside of simulations.
#[macro_export]
macro_rules! buggify {
    ($mishap:ident) => {
        $crate::happens($crate::Mishap::$mishap)
    };
}

/// Counts nothing.
#[cfg(not(feature = "counted"))]
#[inline(always)]
pub fn reached(_place: Place) {}

/// No mishap happens.
#[cfg(not(feature = "counted"))]
#[inline(always)]
pub const fn happens(_mishap: Mishap) -> bool {
    false
}
