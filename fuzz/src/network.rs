//! What the targets for the network share: a card that checks what it is given, and packets.

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

/// Asserts that nothing is lent any more.
pub(crate) fn assert_whole(net: &Net, sizes: PoolSizes) {
    assert_eq!(net.connection_count(), 0, "every connection has its end");
    let pools = net.pools();
    let free = (pools.free_blocks(), pools.free_send_queues(), pools.free_receive_queues());
    assert_eq!(
        free,
        (sizes.blocks, sizes.send_queues, sizes.receive_queues),
        "lent buffers are given back"
    );
}
