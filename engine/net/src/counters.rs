//! What happened so far, in plain numbers: one struct per core, readable at any time, never reset.
//!
//! Every frame that comes in is counted once in `frames_in`, by the core whose card it came by; one that is thrown away is
//! counted once more under the reason, by the core that did it. Numbers wrap only after centuries and order nothing.

use machine::Micros;

/// Counts since the network was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames handed over by the card.
    pub frames_in: u64,
    /// Bytes in them, headers included.
    pub bytes_in: u64,
    /// Frames queued at the card; one that the card cuts into many counts once.
    pub frames_out: u64,
    /// Bytes in them, headers included.
    pub bytes_out: u64,
    /// Turns in which the card's ring had no room for all that was to be sent.
    pub card_full: u64,
    /// Outgoing frames that the card refused as malformed, or that found no room in the queue of small frames.
    pub dropped_out: u64,

    /// Frames handed to the core that their connection belongs to, by the one that receives for it.
    pub steered: u64,
    /// Segments that this core knew no connection for, and that went round the others.
    pub strays: u64,
    /// Frames that other cores handed to this one.
    pub passed_in: u64,
    /// Microseconds that these were on their way, in all: from the turn in which one core looked at a frame to the turn in which the other did.
    pub passed_in_micros: u64,
    /// The most that one of them was.
    pub passed_in_micros_max: u64,
    /// Dropped: on the way to another core, where too many waited.
    pub dropped_between_cores: u64,

    /// Dropped: sent to another hardware address.
    pub dropped_not_ours: u64,
    /// Dropped: neither ARP nor IP of a version that is spoken.
    pub dropped_unknown_protocol: u64,
    /// Dropped: a header too short, too long, or with impossible fields.
    pub dropped_malformed: u64,
    /// Dropped: a source that nobody can have, or our own address.
    pub dropped_bad_source: u64,
    /// Dropped: a destination that is not ours.
    pub dropped_bad_destination: u64,
    /// Dropped: a wrong checksum, of whatever layer.
    pub dropped_checksum: u64,
    /// Dropped: a UDP datagram for a port that nobody bound.
    pub dropped_no_listener: u64,
    /// Dropped: an IP packet waiting for a neighbour that did not answer, or for which no room was left to wait.
    pub dropped_unresolved: u64,
    /// Dropped: no route to the destination.
    pub dropped_no_route: u64,

    /// ARP requests sent.
    pub arp_requests_out: u64,
    /// ARP replies sent.
    pub arp_replies_out: u64,
    /// ARP packets in which another machine used our address.
    pub arp_conflicts: u64,

    /// Neighbour solicitations sent, questions for doubles among them.
    pub neighbour_solicitations_out: u64,
    /// Neighbour advertisements sent.
    pub neighbour_advertisements_out: u64,
    /// Router solicitations sent.
    pub router_solicitations_out: u64,
    /// Reports sent of the groups that we listen to.
    pub listener_reports_out: u64,
    /// Messages in which another machine used an IPv6 address that was, or was to be, ours.
    pub duplicates: u64,
    /// Redirects received, which nobody follows.
    pub redirects_ignored: u64,

    /// Fragments received.
    pub fragments_in: u64,
    /// Datagrams put together from fragments.
    pub reassembled: u64,
    /// Datagrams given up: too late, too long, overlapping, or pushed out by newer ones.
    pub reassembly_failed: u64,

    /// ICMP echo requests answered.
    pub echoes_answered: u64,
    /// ICMP errors sent.
    pub icmp_errors_out: u64,
    /// ICMP errors received that name a connection of ours.
    pub icmp_errors_in: u64,
    /// ICMP messages not sent because of the rate limit.
    pub icmp_limited: u64,

    /// UDP datagrams received for a bound port.
    pub datagrams_in: u64,
    /// UDP datagrams sent.
    pub datagrams_out: u64,

    /// TCP segments received for us, intact.
    pub segments_in: u64,
    /// TCP segments sent; one that the card cuts into many counts once.
    pub segments_out: u64,
    /// Bytes of TCP payload sent again.
    pub bytes_sent_again: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections that we opened, whatever came of them.
    pub connects: u64,
    /// SYNs answered by a cookie, because there was no room to remember them.
    pub cookies_out: u64,
    /// Cookies that came back.
    pub cookies_in: u64,
    /// SYNs not answered because a table was full: whoever is real comes again.
    pub refused_full: u64,
    /// Segments to a port or connection that does not exist.
    pub refused_closed: u64,
    /// RSTs received that ended a connection.
    pub resets_in: u64,
    /// RSTs sent.
    pub resets_out: u64,
    /// Segments sent again, for whatever reason.
    pub retransmits: u64,
}

impl Counters {
    /// Another core has handed over a frame, `lay` after it had looked at it.
    pub(crate) fn frame_was_passed(&mut self, lay: Micros) {
        self.passed_in += 1;
        self.passed_in_micros += lay.0;
        self.passed_in_micros_max = self.passed_in_micros_max.max(lay.0);
    }
}
