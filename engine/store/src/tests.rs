//! Tests of the store, each named for the promise that it checks. They run on a disk in memory that
//! loses, tears and corrupts unflushed data.

mod arrivals;
mod basics;
mod bits;
mod blank;
mod buffers;
mod capacity;
mod conversations;
mod conversion;
mod cuts;
mod damage;
mod disk;
mod exhaustive;
mod heads;
mod lies;
mod limits;
mod long_world;
mod mailboxes;
mod model;
mod notes;
mod outbox;
mod quotas;
mod retry;
mod rig;
mod sharing;
mod small_worlds;
mod soak;
mod space;
mod summaries;
mod superblocks;
mod unread;
