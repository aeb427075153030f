//! Compares a packet of ours with the packet that a script expects, and decides which differences
//! are allowed.
//!
//! Everything that an RFC requires is compared exactly. A difference that the RFC leaves to the
//! host is a *liberty*: the script continues, and the difference is noted. docs/packetdrill.md
//! lists the liberties with the reason for each. The same rules apply to all scripts.

use std::fmt;

use super::script::{Ecn, Flags, IpInfo, PacketBody, ScriptPacket, TcpOption, TcpPacket};
use super::wire::{IpPacket, Segment};

/// The facts about the script and the machine that the comparison needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ScriptTerms {
    /// The script has commands for another kernel, so its windows depend on that kernel's buffers.
    pub(super) foreign: bool,
    /// The features that the engine offers to a peer that offers everything.
    pub(super) offers: Offers,
    /// The offered features that the script agrees to ([`super::applicable::agreed`]).
    pub(super) agreed: Offers,
}

/// The features of TCP that the engine offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Offers {
    pub(super) window_scale: bool,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    pub(super) ecn: bool,
}

/// The reason why a packet is not the expected one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PacketMismatch {
    /// This field differs.
    Differs(&'static str),
    /// The script needs a feature that the engine does not implement.
    Beyond(String),
}

/// Compares a segment of ours, in the script's numbers, with the expected packet.
///
/// Returns the liberties that the engine took.
pub(super) fn segment(
    expected: &TcpPacket,
    seen: &Segment,
    wire_sequence: u32,
    terms: ScriptTerms,
) -> Result<Vec<String>, PacketMismatch> {
    let mut liberties = Vec::new();
    let sequence = if expected.absolute { wire_sequence } else { seen.sequence };
    let is = |same: bool, field| if same { Ok(()) } else { Err(PacketMismatch::Differs(field)) };
    flags(expected, seen, terms, &mut liberties)?;
    is(expected.sequence.is_none_or(|expected| expected == sequence), "sequence number")?;
    is(expected.payload as usize == seen.payload.len(), "length")?;
    is(
        !seen.flags.has(Flags::ACK) || expected.acknowledgment == Some(seen.acknowledgment),
        "acknowledgment",
    )?;
    window(expected, seen, terms, &mut liberties)?;
    is(expected.urgent.unwrap_or(0) == seen.urgent, "urgent pointer")?;
    if let Some(options) = &expected.options {
        compare_options(options, seen, terms, &mut liberties)?;
    }
    Ok(liberties)
}

fn flags(
    expected: &TcpPacket,
    seen: &Segment,
    terms: ScriptTerms,
    liberties: &mut Vec<String>,
) -> Result<(), PacketMismatch> {
    let different = expected.flags.bits ^ seen.flags.bits;
    if different == Flags::PSH && terms.foreign {
        liberties.push("PSH is the sender's to set (RFC 9293 section 3.9.1.2)".to_string());
        return Ok(());
    }
    let ecn = Flags::ECE | Flags::CWR;
    if different == ecn && seen.flags.bits == Flags::SYN | ecn {
        liberties.push(
            "a SYN that asks for ECN: whether one does is the host's (RFC 3168 section 6.1.1)"
                .to_string(),
        );
        return Ok(());
    }
    if different & !ecn == 0 && expected.flags.bits & ecn != 0 && !terms.offers.ecn {
        return Err(PacketMismatch::Beyond("the engine does not speak ECN".to_string()));
    }
    if different == 0 { Ok(()) } else { Err(PacketMismatch::Differs("flags")) }
}

fn window(
    expected: &TcpPacket,
    seen: &Segment,
    terms: ScriptTerms,
    liberties: &mut Vec<String>,
) -> Result<(), PacketMismatch> {
    let Some(window) = expected.window.filter(|window| *window != seen.window) else {
        return Ok(());
    };
    let both_open = (window == 0) == (seen.window == 0) || seen.flags.has(Flags::RST);
    if terms.foreign && both_open {
        liberties.push(format!(
            "a window of {} instead of {window}: its size is the receiver's (RFC 9293 section 3.8.6)",
            seen.window
        ));
        return Ok(());
    }
    Err(PacketMismatch::Differs("window"))
}

/// Compares options as a set: order and padding are ignored.
fn compare_options(
    expected: &[TcpOption],
    seen: &Segment,
    terms: ScriptTerms,
    liberties: &mut Vec<String>,
) -> Result<(), PacketMismatch> {
    let is_padding = |option: &&TcpOption| matches!(option, TcpOption::Nop | TcpOption::End);
    let find = |kind: u8| seen.options.iter().find(|option| kind_of(option) == kind);
    for option in expected.iter().filter(|option| !is_padding(option)) {
        match (option, find(kind_of(option))) {
            (_, None) => return Err(missing(option, terms.offers)),
            (TcpOption::WindowScale(theirs), Some(TcpOption::WindowScale(ours)))
                if theirs != ours =>
            {
                liberties.push(format!(
                    "windows shifted by {ours} instead of {theirs}: by how much is the host's (RFC 7323 section 2.2)"
                ));
            }
            (TcpOption::Timestamp { echo, .. }, Some(TcpOption::Timestamp { echo: ours, .. })) => {
                if echo != ours {
                    return Err(PacketMismatch::Differs("echoed timestamp"));
                }
            }
            (TcpOption::Sack(theirs), Some(TcpOption::Sack(ours))) => {
                if !same_blocks(theirs, ours) {
                    return Err(PacketMismatch::Differs("SACK blocks"));
                }
            }
            (option, Some(ours)) if option == ours => {}
            _ => return Err(PacketMismatch::Differs("value of an option")),
        }
    }
    let unexpected = seen.options.iter().filter(|option| !is_padding(option));
    for option in unexpected {
        if !expected.iter().any(|expected| kind_of(expected) == kind_of(option)) {
            return Err(PacketMismatch::Differs("options"));
        }
    }
    Ok(())
}

/// Compares SACK blocks. The first one must be the block that triggered the acknowledgment (RFC
/// 2018 section 4). The order of the others is free.
fn same_blocks(theirs: &[(u32, u32)], ours: &[(u32, u32)]) -> bool {
    theirs.first() == ours.first()
        && theirs.len() == ours.len()
        && theirs.iter().all(|block| ours.contains(block))
}

fn missing(option: &TcpOption, offers: Offers) -> PacketMismatch {
    let (what, is_offered) = match option {
        TcpOption::WindowScale(_) => ("window scaling", offers.window_scale),
        TcpOption::SackPermitted | TcpOption::Sack(_) => ("selective acknowledgments", offers.sack),
        TcpOption::Timestamp { .. } => ("timestamps", offers.timestamps),
        _ => ("", true),
    };
    if is_offered {
        PacketMismatch::Differs("options")
    } else {
        PacketMismatch::Beyond(format!("the engine does not speak {what}"))
    }
}

fn kind_of(option: &TcpOption) -> u8 {
    match option {
        TcpOption::End => 0,
        TcpOption::Nop => 1,
        TcpOption::Mss(_) => 2,
        TcpOption::WindowScale(_) => 3,
        TcpOption::SackPermitted => 4,
        TcpOption::Sack(_) => 5,
        TcpOption::Timestamp { .. } => 8,
        TcpOption::Other { kind, .. } => *kind,
    }
}

/// Compares the IP header.
pub(super) fn ip(
    expected: IpInfo,
    seen: &IpPacket,
    terms: ScriptTerms,
) -> Result<(), PacketMismatch> {
    let ecn = seen.tos & 3;
    let is_ecn = match expected.ecn {
        Some(Ecn::Is(wanted)) => wanted == ecn,
        Some(Ecn::Capable) => ecn == 1 || ecn == 2,
        None => true,
    };
    if !is_ecn {
        return Err(match terms.offers.ecn {
            true => PacketMismatch::Differs("ECN of the IP header"),
            false => PacketMismatch::Beyond("the engine does not speak ECN".to_string()),
        });
    }
    if expected.tos.is_some_and(|wanted| wanted != seen.tos) {
        return Err(PacketMismatch::Differs("TOS of the IP header"));
    }
    if expected.ttl.is_some_and(|wanted| wanted != seen.ttl) {
        return Err(PacketMismatch::Differs("TTL of the IP header"));
    }
    Ok(())
}

impl fmt::Display for TcpPacket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ", self.flags)?;
        match self.sequence {
            Some(start) => {
                write!(out, "{start}:{}({})", start.wrapping_add(self.payload), self.payload)?
            }
            None => write!(out, "...({})", self.payload)?,
        }
        if let Some(acknowledgment) = self.acknowledgment {
            write!(out, " ack {acknowledgment}")?;
        }
        if let Some(window) = self.window {
            write!(out, " win {window}")?;
        }
        if let Some(urgent) = self.urgent {
            write!(out, " urg {urgent}")?;
        }
        match &self.options {
            Some(options) => write_options(out, options),
            None => out.write_str(" <...>"),
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        write!(
            out,
            "{} {}:{}({length})",
            self.flags,
            self.sequence,
            self.sequence.wrapping_add(length)
        )?;
        if self.flags.has(Flags::ACK) {
            write!(out, " ack {}", self.acknowledgment)?;
        }
        write!(out, " win {}", self.window)?;
        if self.urgent != 0 {
            write!(out, " urg {}", self.urgent)?;
        }
        write_options(out, &self.options)
    }
}

fn write_options(out: &mut fmt::Formatter<'_>, options: &[TcpOption]) -> fmt::Result {
    let all: Vec<String> = options.iter().map(ToString::to_string).collect();
    if all.is_empty() { Ok(()) } else { write!(out, " <{}>", all.join(",")) }
}

impl fmt::Display for ScriptPacket {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip.ecn {
            Some(Ecn::Is(0)) => out.write_str("[noecn] ")?,
            Some(Ecn::Is(1)) => out.write_str("[ect1] ")?,
            Some(Ecn::Is(2)) => out.write_str("[ect0] ")?,
            Some(Ecn::Is(_)) => out.write_str("[ce] ")?,
            Some(Ecn::Capable) => out.write_str("[ect01] ")?,
            None => {}
        }
        match &self.body {
            PacketBody::Tcp(tcp) => tcp.fmt(out),
            PacketBody::Udp(bytes) => write!(out, "udp ({bytes})"),
            PacketBody::Icmp(icmp) => {
                write!(out, "icmp {} {}", icmp.kind, icmp.code.as_deref().unwrap_or_default())
            }
            PacketBody::Foreign(protocol) => out.write_str(protocol),
        }
    }
}
