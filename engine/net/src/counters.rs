//! Event counters: one set per core, readable at any time, never reset.
//!
//! Each received frame is counted once in `FramesIn`, by the core that received it. A dropped frame
//! is also counted under its reason, by the core that dropped it. The counters wrap only after
//! centuries, and no decision depends on them.

use machine::Micros;

/// The name of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Frames received from the card.
    FramesIn,
    /// Bytes in received frames, headers included.
    BytesIn,
    /// Frames queued at the card. A frame that the card segments counts once.
    FramesOut,
    /// Bytes in queued frames, headers included.
    BytesOut,
    /// Turns in which the card's ring had no room for all output.
    CardFull,
    /// Outgoing frames that the card refused as malformed, or that did not fit in the outbox.
    DroppedOut,

    /// Frames that this core passed on to the core of their connection.
    Steered,
    /// Segments that this core was the first to send round the other cores, because it does not
    /// know their connection.
    Strays,
    /// Frames that other cores passed to this core.
    PassedIn,
    /// The total delay of the frames counted in `PassedIn`, in microseconds. The delay of a frame
    /// runs from the turn in which the other core handled it to the turn in which this core
    /// received it.
    PassedInMicros,
    /// The longest delay of one passed frame, in microseconds.
    PassedInMicrosMax,
    /// Dropped: too many frames waited for another core.
    DroppedBetweenCores,

    /// Dropped: sent to another hardware address.
    DroppedNotOurs,
    /// Dropped: neither ARP nor an IP version that is enabled.
    DroppedUnknownProtocol,
    /// Dropped: a header that is too short, too long, or has impossible fields.
    DroppedMalformed,
    /// Dropped: the source address is invalid, or is our own.
    DroppedBadSource,
    /// Dropped: the destination address is not ours.
    DroppedBadDestination,
    /// Dropped: a wrong checksum at any layer.
    DroppedChecksum,
    /// Dropped: a UDP datagram for an unbound port.
    DroppedNoListener,
    /// Dropped: an IP packet for a neighbour that did not answer, or an IP packet that found no
    /// room to wait for its neighbour.
    DroppedUnresolved,
    /// Dropped: no route to the destination.
    DroppedNoRoute,

    /// ARP requests sent.
    ArpRequestsOut,
    /// ARP replies sent.
    ArpRepliesOut,
    /// ARP packets in which another machine used our address.
    ArpConflicts,

    /// Neighbour solicitations sent, including those of duplicate address detection.
    NeighbourSolicitationsOut,
    /// Neighbour advertisements sent.
    NeighbourAdvertisementsOut,
    /// Router solicitations sent.
    RouterSolicitationsOut,
    /// Reports sent about the multicast groups that we listen to.
    ListenerReportsOut,
    /// Messages that show that another machine uses an IPv6 address of ours, or one that we were
    /// about to use.
    Duplicates,
    /// Redirects received; all are ignored.
    RedirectsIgnored,

    /// Fragments received.
    FragmentsIn,
    /// Datagrams reassembled from fragments.
    Reassembled,
    /// Datagrams that failed reassembly: their fragments came too late, were too long, overlapped,
    /// or were evicted by newer ones.
    ReassemblyFailed,

    /// ICMP echo requests answered.
    EchoesAnswered,
    /// ICMP errors sent.
    IcmpErrorsOut,
    /// ICMP errors received that name a connection of ours.
    IcmpErrorsIn,
    /// ICMP messages not sent because of the rate limit.
    IcmpLimited,

    /// UDP datagrams received for a bound port.
    DatagramsIn,
    /// UDP datagrams sent.
    DatagramsOut,

    /// TCP segments received for us, intact.
    SegmentsIn,
    /// TCP segments sent. A segment that the card segments counts once.
    SegmentsOut,
    /// Bytes of TCP payload retransmitted.
    BytesSentAgain,
    /// Connections accepted.
    Accepted,
    /// Connections that we opened, with any outcome.
    Connects,
    /// SYNs answered with a cookie because there was no room to store them.
    CookiesOut,
    /// Valid cookies that peers returned.
    CookiesIn,
    /// SYNs not answered because a table was full. A real client sends its SYN again.
    RefusedFull,
    /// Segments to a port or connection that does not exist.
    RefusedClosed,
    /// RSTs received that ended a connection.
    ResetsIn,
    /// RSTs sent.
    ResetsOut,
    /// Segments retransmitted for any reason.
    Retransmits,
}

/// The number of counters.
const COUNTERS: usize = Counter::Retransmits as usize + 1;

/// The value of each counter since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters([u64; COUNTERS]);

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters([0; COUNTERS])
    }

    /// The value of `counter`: events, bytes or microseconds.
    #[inline]
    pub fn of(&self, counter: Counter) -> u64 {
        let Some(count) = self.0.get(counter as usize) else {
            unreachable!("there is a number for each counter")
        };
        *count
    }

    /// Adds one.
    #[inline]
    pub(crate) fn count(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Adds `times`.
    #[inline]
    pub(crate) fn add(&mut self, counter: Counter, times: u64) {
        *self.of_mut(counter) += times;
    }

    /// Resets the counter to `before`: another core has counted the same event.
    pub(crate) fn take_back(&mut self, counter: Counter, before: u64) {
        *self.of_mut(counter) = before;
    }

    /// Counts a frame that another core has passed on, with its `delay`.
    pub(crate) fn frame_was_passed(&mut self, delay: Micros) {
        self.count(Counter::PassedIn);
        self.add(Counter::PassedInMicros, delay.0);
        let max = self.of_mut(Counter::PassedInMicrosMax);
        *max = delay.0.max(*max);
    }

    #[inline]
    fn of_mut(&mut self, counter: Counter) -> &mut u64 {
        match self.0.get_mut(counter as usize) {
            Some(count) => count,
            None => unreachable!("each counter has a number"),
        }
    }
}
