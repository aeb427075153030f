//! The disk: sectors in memory. Each request completes immediately.

use std::collections::VecDeque;

use machine::{Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, SECTOR_BYTES};

/// A disk in memory: its contents end with the process.
pub(crate) struct MemoryDisk {
    bytes: Vec<u8>,
    completed: VecDeque<DiskCompletion>,
}

impl MemoryDisk {
    /// A blank disk of `bytes`, a multiple of a sector. The host allocates a page of memory when
    /// the page is first written.
    pub(crate) fn blank(bytes: usize) -> MemoryDisk {
        MemoryDisk { bytes: vec![0; bytes], completed: VecDeque::new() }
    }

    pub(crate) fn describe(&self) -> Disk {
        Disk { sectors: (self.bytes.len() / SECTOR_BYTES) as u64, durable: true }
    }

    pub(crate) fn request(&mut self, mut request: DiskRequest) {
        let result = self.carry_out(&mut request);
        let DiskRequest { token, operation, buffer, .. } = request;
        self.completed.push_back(DiskCompletion { token, operation, result, buffer });
    }

    pub(crate) fn completed(&mut self) -> Option<DiskCompletion> {
        self.completed.pop_front()
    }

    fn carry_out(&mut self, request: &mut DiskRequest) -> Result<(), DiskError> {
        if request.operation == DiskOperation::Flush {
            return Ok(());
        }
        let start = usize::try_from(request.sector.0)
            .ok()
            .and_then(|sector| sector.checked_mul(SECTOR_BYTES));
        let end = start.and_then(|start| start.checked_add(request.buffer.len()));
        let (Some(start), Some(end)) = (start, end) else { return Err(DiskError::OutOfRange) };
        let sectors = self.bytes.get_mut(start..end).ok_or(DiskError::OutOfRange)?;
        match request.operation {
            DiskOperation::Read => request.buffer.copy_from_slice(sectors),
            DiskOperation::Write | DiskOperation::Flush => sectors.copy_from_slice(&request.buffer),
        }
        Ok(())
    }
}
