//! Multicast listener reports, for switches that forward a group only to its listeners (MLD: RFC
//! 3810, and RFC 2710 for old queriers).
//!
//! For each of our addresses, we listen to the group of that address, and accept every source. So a
//! report is just a list of groups.

use core::net::Ipv6Addr;

use machine::{Instant, Micros};
use smoltcp::wire::{MldAddressRecord, MldRecordType};

/// All MLDv2-capable routers (RFC 3810 §5.2.14).
pub(super) const ALL_LISTENERS_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);
/// The Hop-by-Hop Options header before each MLD message: it has the router alert (RFC 2711). Its
/// next header is ICMPv6.
pub(super) const ROUTER_ALERT: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];
/// The protocol number of Hop-by-Hop Options.
pub(super) const PROTOCOL_OPTIONS: u8 = 0;
pub(super) const HOP_LIMIT: u8 = 1;

const QUERY_BYTES_VERSION_1: usize = 24;
const REPORT_VERSION_1: u8 = 131;
const REPORT: u8 = 143;
const REPORT_BYTES: usize = 8;
const RECORD_BYTES: usize = 20;

/// The MLD version of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MldVersion {
    One,
    Two,
}

/// Why a report is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReportReason {
    /// We have started to listen.
    Joined,
    /// A querier has asked.
    Queried,
}

pub(super) struct Listening {
    due: Instant,
    version: MldVersion,
}

impl Listening {
    pub(super) fn new() -> Listening {
        Listening { due: Instant::NEVER, version: MldVersion::Two }
    }

    /// Handles a query. `chance`: returns a random number below its argument. It determines the
    /// delay of our answer.
    pub(super) fn query_arrived(
        &mut self,
        now: Instant,
        query: &[u8],
        chance: impl FnOnce(u64) -> u64,
    ) {
        let Some(&[_, _, _, _, high, low, ..]) = query.first_chunk::<QUERY_BYTES_VERSION_1>()
        else {
            return;
        };
        let code = u16::from_be_bytes([high, low]);
        let version =
            if query.len() == QUERY_BYTES_VERSION_1 { MldVersion::One } else { MldVersion::Two };
        // From 32,768 on the code is a floating-point number (RFC 3810 §5.1.3).
        let span_ms = match version {
            MldVersion::Two if code >= 1 << 15 => {
                u64::from((code & 0xfff) | 0x1000) << ((code >> 12 & 7) + 3)
            }
            _ => u64::from(code),
        };
        self.version = version;
        self.due = self.due.min(now + Micros(chance(Micros::from_millis(span_ms).0)));
    }

    /// The version of the report that is due, if one is.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<MldVersion> {
        (self.due <= now).then(|| {
            self.due = Instant::NEVER;
            self.version
        })
    }

    pub(super) fn next_deadline(&self) -> Instant {
        self.due
    }
}

/// Bytes of an MLDv2 report of `groups` groups (RFC 3810 §5.2).
pub(super) fn report_bytes(groups: usize) -> usize {
    REPORT_BYTES + groups * RECORD_BYTES
}

/// Writes an MLDv2 report, without its checksum, into `bytes`, which is [`report_bytes`] long and
/// zeroed. The writer of the crate smoltcp needs a record that is already written, so it is not
/// used.
pub(super) fn write_report(groups: &[Ipv6Addr], why: ReportReason, bytes: &mut [u8]) {
    // We listen to every source, so the report excludes none.
    let kind = match why {
        ReportReason::Queried => MldRecordType::ModeIsExclude,
        ReportReason::Joined => MldRecordType::ChangeToExclude,
    };
    let Some((header, records)) = bytes.split_first_chunk_mut::<REPORT_BYTES>() else {
        unreachable!("the reserved buffer is too short")
    };
    *header = [REPORT, 0, 0, 0, 0, 0, 0, groups.len() as u8];
    let (records, _) = records.as_chunks_mut::<RECORD_BYTES>();
    for (record, group) in records.iter_mut().zip(groups) {
        let mut view = MldAddressRecord::new_unchecked(record.as_mut_slice());
        view.set_record_type(kind);
        view.set_mcast_addr(*group);
    }
}

/// A version 1 report (RFC 2710 §3) of one group.
pub(super) fn report_version_1(group: Ipv6Addr) -> [u8; QUERY_BYTES_VERSION_1] {
    let mut bytes = [0; QUERY_BYTES_VERSION_1];
    let Some(place) = bytes.last_chunk_mut() else {
        unreachable!("a report that has no room for a group")
    };
    *place = group.octets();
    let [kind, ..] = &mut bytes;
    *kind = REPORT_VERSION_1;
    bytes
}
