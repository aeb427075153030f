//! The steering table alone: a SYN in transit to a core counts before the core has reported it.

use machine::CoreId;

use super::{Load, Steering};

#[test]
fn a_bucket_with_a_syn_in_transit_does_not_move() {
    let mut steering = Steering::new((0..3).map(CoreId), 1_000);
    let owner = steering.owner(1, true);
    assert_eq!(owner, CoreId(1));
    steering.given(1);
    // The core has ten connections of another bucket, and has not seen the SYN yet.
    let load = Load { core: owner, bucket: 4, of_bucket: 10, total: 10, syns_seen: 0 };
    steering.load_reported(&load);
    assert_eq!(steering.owner(1, true), owner, "the SYN is repeated");
    // Now the core has seen the SYN, but no connection was opened: the next SYN goes to another
    // core.
    steering.load_reported(&Load { bucket: 1, of_bucket: 0, syns_seen: 1, ..load });
    assert_ne!(steering.owner(1, true), owner);
    assert_eq!(steering.owner(4, true), owner, "a bucket with connections stays");
}
