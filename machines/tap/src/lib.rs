//! The user-space end of a Linux tap interface. Linux receives the frames that are written to it,
//! and frames that Linux sends are read from it.
//!
//! Only `ioctl` can attach a file to an interface and set the format of its frames
//! (`linux/if_tun.h`, `netdevice(7)`). This needs `unsafe`, so the code is in a separate crate.
//! Every request here takes a number, or reads or writes one record of at most [`RECORD_BYTES`]
//! bytes. The record is ours and initialized, and Linux does not access it after the call.

use std::fmt;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{self, Errno};
use rustix::ioctl::{IntegerSetter, Opcode, Updater, ioctl};
use rustix::net::{AddressFamily, SocketType, netdevice};

const TUNSETIFF: Opcode = 0x4004_54CA;
const TUNSETOFFLOAD: Opcode = 0x4004_54D0;
const TUNSETVNETHDRSZ: Opcode = 0x4004_54D8;
const SIOCGIFMTU: Opcode = 0x8921;
const SIOCGIFHWADDR: Opcode = 0x8927;

const IFF_TAP: u16 = 0x0002;
const IFF_MULTI_QUEUE: u16 = 0x0100;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;

/// The offloads that we accept: received frames may lack checksums, and TCP over IPv4 and IPv6 may
/// arrive in long frames.
const TUN_F_CSUM: usize = 0x01;
const TUN_F_TSO4: usize = 0x02;
const TUN_F_TSO6: usize = 0x04;

/// The size of `struct ifreq`: a name, and a value to set or get.
const RECORD_BYTES: usize = 40;
const NAME_BYTES: usize = 16;

type Record = [u8; RECORD_BYTES];

/// A tap interface that this process is attached to.
#[derive(Debug)]
pub struct Interface {
    /// The interface, or its first queue. One system call reads or writes one frame, and does not
    /// block.
    pub device: OwnedFd,
    /// The other queues of the interface. Linux distributes connections over all queues. It sends
    /// frames of a connection to the queue that frames of the connection arrived from.
    pub others: Vec<OwnedFd>,
    /// The hardware address of Linux's end of the interface.
    pub address: [u8; 6],
    /// The largest IP packet of the interface, in bytes.
    pub mtu: u16,
}

/// The format of frames at our end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frames {
    /// Frames have the same bytes as on a wire.
    Plain,
    /// In both directions, each frame follows a header of virtio 1.2, section 5.1.6. The header has
    /// 12 bytes, in the host's byte order. It names the work that the sender left to the receiver:
    /// checksums, and the segmentation of TCP.
    Offloaded,
}

/// The size of the header before each frame of [`Frames::Offloaded`].
pub const HEADER_BYTES: usize = 12;

/// The reason why a tap interface cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachError {
    /// No interface has this name.
    Missing,
    /// The interface is of another kind, or a tap with several queues.
    NoTap,
    /// Another program is attached to the interface.
    Busy,
    /// This process has no permission for the interface.
    Forbidden,
    /// Another error of Linux.
    Other(Errno),
}

impl fmt::Display for AttachError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttachError::Missing => out.write_str("the tap interface does not exist"),
            AttachError::NoTap => {
                out.write_str("this is not a tap interface, or it has several queues")
            }
            AttachError::Busy => out.write_str("another program uses this tap interface"),
            AttachError::Forbidden => out.write_str(
                "no permission for this tap interface: run as its owner or as root (CAP_NET_ADMIN)",
            ),
            AttachError::Other(error) => write!(out, "{error}"),
        }
    }
}

/// Attaches to the existing tap interface called `name`.
///
/// `queues`: the wanted number of queues. An interface that was created with several queues
/// (`multi_queue`) gets this number. Every other interface has one queue.
///
/// Errors: the reason why the interface cannot be used. If the interface was created with several
/// queues and `queues` is 1, the error is [`AttachError::NoTap`].
pub fn attach(name: &str, frames: Frames, queues: u8) -> Result<Interface, AttachError> {
    let named = record(name).ok_or(AttachError::Missing)?;
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)
        .map_err(AttachError::Other)?;
    netdevice::name_to_index(&socket, name).map_err(|_| AttachError::Missing)?;
    let (device, others) = match open_all(named, frames, queues) {
        Err(AttachError::NoTap) if queues > 1 => (open(named, frames, 0)?, Vec::new()),
        opened => opened?,
    };
    let mut asked = named;
    exchange::<SIOCGIFHWADDR>(&socket, &mut asked).map_err(AttachError::Other)?;
    // The value is a `struct sockaddr`: two bytes of its family, then the address.
    let address = take(&asked, NAME_BYTES + 2);
    let mut asked = named;
    exchange::<SIOCGIFMTU>(&socket, &mut asked).map_err(AttachError::Other)?;
    let mtu = u32::from_ne_bytes(take(&asked, NAME_BYTES));
    Ok(Interface { device, others, address, mtu: u16::try_from(mtu).unwrap_or(u16::MAX) })
}

/// Opens `queues` queues of the interface. Returns the first queue, and the others.
fn open_all(
    named: Record,
    frames: Frames,
    queues: u8,
) -> Result<(OwnedFd, Vec<OwnedFd>), AttachError> {
    let more = if queues > 1 { IFF_MULTI_QUEUE } else { 0 };
    let first = open(named, frames, more)?;
    let others = (1..queues).map(|_| open(named, frames, more)).collect::<Result<_, _>>()?;
    Ok((first, others))
}

/// Opens one queue of the interface. `more`: further flags.
fn open(named: Record, frames: Frames, more: u16) -> Result<OwnedFd, AttachError> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let device = rustix::fs::open("/dev/net/tun", flags, Mode::empty()).map_err(AttachError::of)?;
    let mut wanted = named;
    // An interface keeps the settings of its last user, so all of them are set again.
    let (flags, offloads) = match frames {
        Frames::Plain => (IFF_TAP | IFF_NO_PI, 0),
        Frames::Offloaded => {
            (IFF_TAP | IFF_NO_PI | IFF_VNET_HDR, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6)
        }
    };
    put(&mut wanted, NAME_BYTES, &(flags | more).to_ne_bytes());
    exchange::<TUNSETIFF>(&device, &mut wanted).map_err(AttachError::of)?;
    let mut header = [0; RECORD_BYTES];
    put(&mut header, 0, &(HEADER_BYTES as i32).to_ne_bytes());
    exchange::<TUNSETVNETHDRSZ>(&device, &mut header).map_err(AttachError::Other)?;
    set::<TUNSETOFFLOAD>(&device, offloads).map_err(AttachError::Other)?;
    Ok(device)
}

impl AttachError {
    fn of(error: Errno) -> AttachError {
        match error {
            Errno::INVAL => AttachError::NoTap,
            Errno::BUSY => AttachError::Busy,
            Errno::PERM | Errno::ACCESS => AttachError::Forbidden,
            other => AttachError::Other(other),
        }
    }
}

/// A record for the interface `name`. `None` if no interface can have that name.
fn record(name: &str) -> Option<Record> {
    let mut record = [0; RECORD_BYTES];
    let is_name = !name.is_empty() && name.len() < NAME_BYTES && !name.contains('\0');
    is_name.then(|| {
        put(&mut record, 0, name.as_bytes());
        record
    })
}

fn put(record: &mut Record, start: usize, bytes: &[u8]) {
    record.iter_mut().skip(start).zip(bytes).for_each(|(place, byte)| *place = *byte);
}

fn take<const BYTES: usize>(record: &Record, start: usize) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes.iter_mut().zip(record.iter().skip(start)).for_each(|(place, byte)| *place = *byte);
    bytes
}

/// Passes a record to Linux, which may write its answer into it.
fn exchange<const OPCODE: Opcode>(file: impl AsFd, record: &mut Record) -> io::Result<()> {
    // SAFETY: 1. the opcodes that callers pass here exchange at most a `struct ifreq`, and a record
    // has its size; 2. the record is initialized and borrowed for the call, and any bytes are a
    // valid record.
    unsafe { ioctl(file, Updater::<OPCODE, Record>::new(record)) }
}

/// Passes a number to Linux.
fn set<const OPCODE: Opcode>(file: impl AsFd, number: usize) -> io::Result<()> {
    // SAFETY: the opcode that callers pass here takes a number, and no address.
    unsafe { ioctl(file, IntegerSetter::<OPCODE>::new_usize(number)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interface_is_reported_and_not_created() {
        for name in ["", "no-such-tap0", "a-name-that-is-too-long", "nul\0"] {
            assert_eq!(attach(name, Frames::Plain, 1).unwrap_err(), AttachError::Missing, "{name}");
        }
    }

    #[test]
    fn a_record_holds_the_name_and_what_follows() {
        let mut record = record("tap0").unwrap();
        put(&mut record, NAME_BYTES, &7_u32.to_ne_bytes());
        assert_eq!(&record[..6], b"tap0\0\0");
        assert_eq!(u32::from_ne_bytes(take(&record, NAME_BYTES)), 7);
        assert_eq!(take::<4>(&record, RECORD_BYTES - 2), [0; 4]);
    }
}
