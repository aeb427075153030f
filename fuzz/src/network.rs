//! Common parts of the targets for the network: a card that checks each frame, and packets.

pub(crate) mod card;
pub(crate) mod check;
pub(crate) mod packets;

use machine::Ethernet;
use net::tcp::PoolSizes;
use net::{Limits, Net};

/// The hardware address that ends in `last`.
pub(crate) const fn hardware(last: u8) -> Ethernet {
    Ethernet([0x02, 0, 0, 0, 0, last])
}

/// The sizes of a small network.
pub(crate) fn limits(pools: PoolSizes) -> Limits {
    Limits { connections: 8, half_open: 4, time_wait: 4, pools }
}

/// Asserts that no connection is left, and that all blocks and queues are back in their pools.
pub(crate) fn assert_whole(net: &Net, sizes: PoolSizes) {
    assert_eq!(net.connection_count(), 0, "every connection has ended");
    let pools = net.pools();
    let free = (pools.free_blocks(), pools.free_send_queues(), pools.free_receive_queues());
    assert_eq!(
        free,
        (sizes.blocks, sizes.send_queues, sizes.receive_queues),
        "lent buffers are given back"
    );
}
