//! Requests of another core, without a disk.

use super::*;
use store::{BodySpace, State};

/// Limits for this many messages at a time.
fn limits(deliveries: usize) -> Limits {
    let store = store::Limits {
        deliveries: 4,
        recipients: 8,
        reads: 4,
        buffer_bytes: 64 * 1024,
        resident_bytes: 1 << 20,
    };
    Limits { store, transactions: deliveries, remote_deliveries: 4 }
}

#[test]
fn slow_core_gets_only_the_latest_store_state() {
    let mut server = ShardServer::new(CoreId::FIRST, 2, &limits(4));
    for turn in 0..1000 {
        server.tell_status(StoreStatus {
            state: State::Serving,
            room: BodySpace::NONE,
            is_short_of_buffers: turn % 2 == 0,
        });
    }
    let news = server.next_news(CoreId(1));
    assert!(matches!(news, Some(News::Status(StoreStatus { is_short_of_buffers: false, .. }))));
    assert!(server.next_news(CoreId(1)).is_none() && !server.has_news());
}

#[test]
fn aborted_message_leaves_the_begin_queue() {
    let mut server = ShardServer::new(CoreId::FIRST, 2, &limits(0));
    let mut store = Store::client(limits(0).store, [0; 32]);
    for round in 0..1000 {
        let delivery = RemoteDeliveryId(tasks::FrameId::new(round % 4, round));
        let recipients = alloc::vec![store::Recipient::inbox(store::AccountId::from_bits(1))];
        let page = Box::new(MessagePage {
            delivery,
            recipients,
            length: 0,
            octets: [0; crate::messages::PAGE_OCTETS],
        });
        server.requested(CoreId(1), Request::Octets { page, end: None }, &mut store);
        assert!(!server.is_at_rest());
        server.requested(CoreId(1), Request::Abort(delivery), &mut store);
        assert!(
            matches!(server.next_news(CoreId(1)), Some(News::PageDone(_))),
            "its page is returned"
        );
    }
    assert!(server.is_at_rest() && server.beginning.is_empty());
}
