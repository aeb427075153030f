//! The disk: a sequence of sectors, read, written and flushed by requests that carry their buffers.

use alloc::boxed::Box;

/// Bytes in one sector, the unit of addresses.
pub const SECTOR_BYTES: usize = 512;

/// The number of a sector, counted from the start of the disk, or from the start of the partition
/// with the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Sector(pub u64);

/// The properties of the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disk {
    /// The number of sectors.
    pub sectors: u64,
    /// Whether a completed flush makes all writes that completed before it survive a power cut.
    /// This is also true of a write-through device, on which every completed write survives. A
    /// device that is not durable must not store mail.
    pub durable: bool,
}

/// A value that the requester chooses, and that the completion returns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DiskToken(pub u64);

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskOperation {
    /// Fill the buffer from the disk.
    Read,
    /// Write the buffer to the disk. The data is durable only after a later flush.
    Write,
    /// Make every write that completed before this request was queued survive a power cut. The
    /// buffer is empty.
    Flush,
}

/// One request, with the buffer that it works on.
#[derive(Debug)]
pub struct DiskRequest {
    /// Identifies the request in its completion.
    pub token: DiskToken,
    /// The operation.
    pub operation: DiskOperation,
    /// The first sector; zero for a flush.
    pub sector: Sector,
    /// The data. Its length is a multiple of [`SECTOR_BYTES`]; empty for a flush.
    pub buffer: Box<[u8]>,
}

/// The end of one request.
#[derive(Debug)]
pub struct DiskCompletion {
    /// The request's token.
    pub token: DiskToken,
    /// The request's operation.
    pub operation: DiskOperation,
    /// The result. After an error the contents of the buffer, or of the sectors, are unknown.
    pub result: Result<(), DiskError>,
    /// The buffer of the request, returned.
    pub buffer: Box<[u8]>,
}

/// The reason why a request failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskError {
    /// The device reports an error for these sectors, or for the flush.
    Failed,
    /// The request is outside of the disk, or its length is not a multiple of a sector.
    OutOfRange,
    /// The device has stopped answering.
    Gone,
}
