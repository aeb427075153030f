//! The requests of client cores to the disk owner, and its notices: see `disk_owner`.

use crate::capacity::CoreUse;
use crate::layout::{SegmentIndex, ShardId};
use crate::outcome::WhyReadOnly;
use crate::superblock::Root;
use alloc::vec::Vec;
use machine::{DiskCompletion, DiskRequest};

/// A request from a client core to the disk owner. Requests are delivered in the order in which
/// they were made.
#[derive(Debug)]
pub struct ClientRequest(pub(crate) DiskRequestKind);

/// A notice from the disk owner to a client core.
#[derive(Debug)]
pub struct OwnerNotice(pub(crate) NoticeKind);

#[derive(Debug)]
pub(crate) enum DiskRequestKind {
    Disk(DiskRequest),
    Root(ShardId, Root),
    /// The number of segments that the client wants.
    Segments(u32),
    /// The client returns a segment.
    Segment(SegmentIndex),
    /// The number of bytes of the index limit that the client wants.
    IndexBytes(u64),
    /// The client returns bytes of the index limit.
    IndexBytesBack(u64),
    /// The client has refused a message, because no core has space for it on the disk.
    MessageRefused,
    /// The client's use of the disk and the index.
    Use(CoreUse),
    Failed(WhyReadOnly),
}

#[derive(Debug)]
pub(crate) enum NoticeKind {
    Disk(DiskCompletion),
    /// Segments that belong to the client from now on, and the number of segments that the disk
    /// owner could still lend.
    Segments(Vec<SegmentIndex>, u32),
    /// Bytes of the index limit that belong to the client from now on. Zero: the client gets some
    /// as soon as another core returns them.
    IndexBytes(u64),
    /// Whether half of the disk is in use.
    HalfFull(bool),
    Failed(WhyReadOnly),
    /// The disk owner tries the disk again.
    Retry,
}

const _: () = assert!(
    size_of::<ClientRequest>() <= 64 && size_of::<OwnerNotice>() <= 64,
    "both must fit a message between cores"
);
