//! What happened so far, in plain numbers: one list per core, readable at any time, never reset.
//!
//! Every frame that comes in is counted once in `FramesIn`, by the core that received it. One that
//! is dropped is counted once more under the reason, by the core that dropped it. Numbers wrap only
//! after centuries and order nothing.

use machine::Micros;

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counter {
    /// Frames handed over by the card.
    FramesIn,
    /// Bytes in them, headers included.
    BytesIn,
    /// Frames queued at the card; one that the card cuts into many counts once.
    FramesOut,
    /// Bytes in them, headers included.
    BytesOut,
    /// Turns in which the card's ring had no room for all that was to be sent.
    CardFull,
    /// Outgoing frames that the card refused as malformed, or that found no room in the queue of small frames.
    DroppedOut,

    /// Frames handed to the core that their connection belongs to, by the one that receives for it.
    Steered,
    /// Segments that this core knew no connection for, and that went round the others.
    Strays,
    /// Frames that other cores handed to this one.
    PassedIn,
    /// Microseconds that these were on their way, in all: from the turn in which one core looked at a frame to the turn in which the other did.
    PassedInMicros,
    /// The most that one of them was.
    PassedInMicrosMax,
    /// Dropped: on the way to another core, where too many waited.
    DroppedBetweenCores,

    /// Dropped: sent to another hardware address.
    DroppedNotOurs,
    /// Dropped: neither ARP nor IP of a version that is spoken.
    DroppedUnknownProtocol,
    /// Dropped: a header too short, too long, or with impossible fields.
    DroppedMalformed,
    /// Dropped: a source that nobody can have, or our own address.
    DroppedBadSource,
    /// Dropped: a destination that is not ours.
    DroppedBadDestination,
    /// Dropped: a wrong checksum, of whatever layer.
    DroppedChecksum,
    /// Dropped: a UDP datagram for a port that nobody bound.
    DroppedNoListener,
    /// Dropped: an IP packet waiting for a neighbour that did not answer, or for which no room was left to wait.
    DroppedUnresolved,
    /// Dropped: no route to the destination.
    DroppedNoRoute,

    /// ARP requests sent.
    ArpRequestsOut,
    /// ARP replies sent.
    ArpRepliesOut,
    /// ARP packets in which another machine used our address.
    ArpConflicts,

    /// Neighbour solicitations sent, questions for doubles among them.
    NeighbourSolicitationsOut,
    /// Neighbour advertisements sent.
    NeighbourAdvertisementsOut,
    /// Router solicitations sent.
    RouterSolicitationsOut,
    /// Reports sent of the groups that we listen to.
    ListenerReportsOut,
    /// Messages in which another machine used an IPv6 address that was, or was to be, ours.
    Duplicates,
    /// Redirects received, which nobody follows.
    RedirectsIgnored,

    /// Fragments received.
    FragmentsIn,
    /// Datagrams put together from fragments.
    Reassembled,
    /// Datagrams given up: too late, too long, overlapping, or pushed out by newer ones.
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
    /// TCP segments sent; one that the card cuts into many counts once.
    SegmentsOut,
    /// Bytes of TCP payload sent again.
    BytesSentAgain,
    /// Connections accepted.
    Accepted,
    /// Connections that we opened, whatever came of them.
    Connects,
    /// SYNs answered by a cookie, because there was no room to remember them.
    CookiesOut,
    /// Cookies that came back.
    CookiesIn,
    /// SYNs not answered because a table was full: whoever is real comes again.
    RefusedFull,
    /// Segments to a port or connection that does not exist.
    RefusedClosed,
    /// RSTs received that ended a connection.
    ResetsIn,
    /// RSTs sent.
    ResetsOut,
    /// Segments sent again, for whatever reason.
    Retransmits,
}

/// How many counters there are.
const COUNTERS: usize = Counter::Retransmits as usize + 1;

/// How often each of them happened since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counters([u64; COUNTERS]);

impl Counters {
    pub(crate) fn new() -> Counters {
        Counters([0; COUNTERS])
    }

    /// How often `counter` happened; or how many bytes or microseconds it came to.
    #[inline]
    pub fn of(&self, counter: Counter) -> u64 {
        let Some(count) = self.0.get(counter as usize) else {
            unreachable!("there is a number for each counter")
        };
        *count
    }

    /// It has happened once more.
    #[inline]
    pub(crate) fn count(&mut self, counter: Counter) {
        self.add(counter, 1);
    }

    /// It has happened so many times more.
    #[inline]
    pub(crate) fn add(&mut self, counter: Counter, times: u64) {
        *self.of_mut(counter) += times;
    }

    /// What was counted here since it stood at `before` was counted elsewhere.
    pub(crate) fn take_back(&mut self, counter: Counter, before: u64) {
        *self.of_mut(counter) = before;
    }

    /// Another core has handed over a frame, `lay` after it had looked at it.
    pub(crate) fn frame_was_passed(&mut self, lay: Micros) {
        self.count(Counter::PassedIn);
        self.add(Counter::PassedInMicros, lay.0);
        let max = self.of_mut(Counter::PassedInMicrosMax);
        *max = lay.0.max(*max);
    }

    #[inline]
    fn of_mut(&mut self, counter: Counter) -> &mut u64 {
        match self.0.get_mut(counter as usize) {
            Some(count) => count,
            None => unreachable!("there is a number for each counter"),
        }
    }
}
