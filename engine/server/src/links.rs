//! The messages between cores.

use alloc::boxed::Box;
use alloc::sync::Arc;

use certificates::{CertificateUpload, ListVersion, Replaced, Shown};
use compute::JobMessage;
use mail::{FailedLogin, RemoteActions};
use net::{NetMessage, Parcel};
use outbound::{QueueQuery, QueueReply};
use resolver::NameMessage;
use tasks::FrameId;
use webmail::{Request, handler_reply::AddressedReply};

/// A message from one core to another.
pub(crate) enum Message {
    /// Between stores.
    Shards(shards::ShardMessage),
    /// Between networks.
    Net(NetMessage),
    /// A frame to send, from a core without a queue of the card.
    Parcel(Box<Parcel>),
    /// The frame of a parcel, which was sent. The parcel returns to its core.
    ParcelSent(Box<Parcel>),
    /// From the session of this frame to the webmail's request handlers.
    WebmailAsked(FrameId, Box<Request>),
    /// The reply to a webmail request, or more of the reply.
    WebmailReplied(Box<AddressedReply>),
    /// The webmail request of this frame asks about queue entries that the receiving core owns.
    QueueAsked(FrameId, Box<QueueQuery>),
    /// The reply to a question about queue entries.
    QueueTold(FrameId, Box<QueueReply>),
    /// An upload, to the core that owns the certificates.
    Upload(Box<CertificateUpload>),
    /// From the owner of the certificates: show these certificates from now on.
    Certificates(Arc<Shown>),
    /// To the owner of the certificates: the list of this version is shown.
    CertificatesShown(ListVersion),
    /// From the owner of the certificates: the result of this session's upload.
    Uploaded(FrameId, Box<Replaced>),
    /// A DNS query to the first core, or its answer.
    Name(NameMessage),
    /// A login has failed: every throttle knows the failures on all cores.
    LoginFailed(Arc<FailedLogin>),
    /// Actions of external clients, which count on all cores.
    ClientActions(RemoteActions),
    /// A password hash or a signature: a request, a result, or the end of a request.
    Job(JobMessage),
    /// The sending core has stopped receiving.
    Over,
}

const _: () = assert!(size_of::<Message>() <= 80, "each ring has 256 places for messages");
