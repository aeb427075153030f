//! The list of what cores tell each other.

use alloc::boxed::Box;
use alloc::sync::Arc;

use certificates::{ListVersion, Replaced, Shown, Upload};
use compute::JobMessage;
use mail::{Deeds, FailedLogin};
use net::{NetMessage, Parcel};
use outbound::{QueueAsked, QueueTold};
use resolver::NameMessage;
use tasks::FrameId;
use webmail::Request;
use webmail::told::Replied;

/// What one core tells another.
pub(crate) enum Message {
    /// From stores to stores.
    Shards(shards::Message),
    /// From network to network.
    Net(NetMessage),
    /// A frame to be sent, from a core that has no queue of the card's.
    Parcel(Box<Parcel>),
    /// It was sent, and comes home.
    ParcelSent(Box<Parcel>),
    /// From the session of this frame to the webmail's request handlers.
    ClerksAsked(FrameId, Box<Request>),
    /// From them.
    ClerksReplied(Box<Replied>),
    /// A request handler of this frame asks about entries of the queue that the core owns.
    QueueAsked(FrameId, Box<QueueAsked>),
    /// The reply to it.
    QueueTold(FrameId, Box<QueueTold>),
    /// A certificate, to the core that keeps them.
    Upload(Box<Upload>),
    /// From the core that keeps them: these certificates are shown from now on.
    Certificates(Arc<Shown>),
    /// To the core that keeps them: the list of this version is shown.
    CertificatesShown(ListVersion),
    /// From the core that keeps certificates: the result for one that this session has sent.
    Uploaded(FrameId, Box<Replaced>),
    /// A question to name servers, to the first core, or what came of it.
    Name(NameMessage),
    /// A login has failed: the throttle of each core knows of the failures on all.
    LoginFailed(Arc<FailedLogin>),
    /// What strangers have done counts on all cores.
    Deeds(Deeds),
    /// A password hash or a signature is to be computed, was computed, or is not needed any more.
    Job(JobMessage),
    /// The core receives nothing any more.
    Over,
}

const _: () = assert!(size_of::<Message>() <= 80, "there are a quarter of a thousand places for them in each ring");
