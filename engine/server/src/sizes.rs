//! How much of everything, from how much memory the machine has. Decided once, printed, and never exceeded.

use core::fmt;

use machine::BLOCK_BYTES;
use net::tcp::PoolSizes;

/// The smallest memory that an engine runs in, in bytes.
pub const MEMORY_BYTES_MIN: u64 = 96 << 20;

/// Memory for each connection that there may be, one buffer in use counted in.
const BYTES_PER_CONNECTION: u64 = 16 << 10;
const CONNECTIONS_MAX: u64 = 65_536;

/// How much of everything one core has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Connections at once.
    pub connections: usize,
    /// SMTP transactions at once.
    pub transactions: usize,
    /// Blocks of 4 KiB lent to connections that send, or wait to be read.
    pub blocks: usize,
    /// Bytes for the index of the store.
    pub index_bytes: usize,
}

impl Sizes {
    /// The sizes for a core with `memory_bytes` to itself, at least [`MEMORY_BYTES_MIN`]. An eighth is for what
    /// connections send and receive, a quarter for the store's index; the rest is for buffers, tables and the image.
    pub fn for_memory(memory_bytes: u64) -> Sizes {
        assert!(memory_bytes >= MEMORY_BYTES_MIN, "the machine has too little memory to serve");
        let connections = (memory_bytes / BYTES_PER_CONNECTION).min(CONNECTIONS_MAX) as usize;
        Sizes {
            connections,
            transactions: connections / 16,
            blocks: (memory_bytes / 8) as usize / BLOCK_BYTES,
            index_bytes: (memory_bytes / 4) as usize,
        }
    }

    pub(crate) fn pools(&self) -> PoolSizes {
        PoolSizes { blocks: self.blocks, send_queues: self.connections / 2, receive_queues: self.connections / 8 }
    }

    pub(crate) fn store_limits(&self) -> store::Limits {
        store::Limits {
            deliveries: self.transactions,
            recipients: smtp::Settings::default().recipients_max.into(),
            reads: self.transactions,
            buffer_bytes: self.index_bytes / 4,
            resident_bytes: self.index_bytes as u64,
        }
    }
}

/// For people.
impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { connections, transactions, blocks, index_bytes } = self;
        let index_mib = index_bytes >> 20;
        write!(
            out,
            "{connections} connections, {transactions} SMTP transactions, {blocks} blocks of {BLOCK_BYTES} bytes, \
             {index_mib} MiB of index"
        )
    }
}
