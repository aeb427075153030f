//! The disk: a file or a block device. Threads perform the requests, one thread for each kind of
//! request.
//!
//! The turn sends a request through a channel, and receives its completion from another channel. No
//! call here waits for the device. Flushes have their own thread, so that reads and writes continue
//! during a flush.
//!
//! Durability: a write has completed when Linux has it in its cache. A flush is an `fdatasync`,
//! which makes everything durable that is in the cache at its start. That includes every write that
//! completed before the flush was requested.
//!
//! Invariants:
//! - At most [`REQUESTS_MAX`] requests are outstanding, and every channel has capacity for all of
//!   them: no thread waits for capacity.
//! - Every request completes exactly once. When the disk is dropped, outstanding requests are
//!   performed first.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use machine::{Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, SECTOR_BYTES};

use crate::bell::Bell;

/// The maximum number of outstanding requests.
const REQUESTS_MAX: usize = 128;

/// The running disk.
pub(crate) struct FileDisk {
    disk: Disk,
    reads: DiskThread,
    writes: DiskThread,
    flushes: DiskThread,
    completed: Receiver<DiskCompletion>,
    /// Completions of requests that were not passed to a thread.
    finished: VecDeque<DiskCompletion>,
    under_way: usize,
}

impl FileDisk {
    /// Starts the disk in `file`, with the current size of the file. A thread rings `bell` at each
    /// completion.
    ///
    /// Errors: those of Linux, if the size of the file is unknown or no thread can be started.
    pub(crate) fn start(file: File, bell: &Bell) -> std::io::Result<FileDisk> {
        // The length in the metadata is 0 for a block device.
        let bytes = (&file).seek(SeekFrom::End(0))?;
        let file = Arc::new(file);
        let (sender, completed) = sync_channel(REQUESTS_MAX);
        let thread =
            |name: &str| DiskThread::start(name, Arc::clone(&file), sender.clone(), bell.clone());
        Ok(FileDisk {
            disk: Disk { sectors: bytes / SECTOR_BYTES as u64, durable: true },
            reads: thread("disk: reads")?,
            writes: thread("disk: writes")?,
            flushes: thread("disk: flushes")?,
            completed,
            finished: VecDeque::with_capacity(REQUESTS_MAX),
            under_way: 0,
        })
    }

    pub(crate) fn disk(&self) -> Disk {
        self.disk
    }

    /// Starts a request. Errors: the request itself, if too many requests are outstanding.
    pub(crate) fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        if self.under_way >= REQUESTS_MAX {
            return Err(request);
        }
        let handed_over = match request.operation {
            _ if !self.is_valid(&request) => Err((request, DiskError::OutOfRange)),
            DiskOperation::Read => self.reads.take(request),
            DiskOperation::Write => self.writes.take(request),
            DiskOperation::Flush => self.flushes.take(request),
        };
        self.under_way += 1;
        if let Err((request, error)) = handed_over {
            self.finished.push_back(completion(request, Err(error)));
        }
        Ok(())
    }

    /// The next completion.
    pub(crate) fn completed(&mut self) -> Option<DiskCompletion> {
        let completion = self.finished.pop_front().or_else(|| self.completed.try_recv().ok())?;
        self.under_way -= 1;
        Some(completion)
    }

    /// Whether a completion waits in `finished`. No thread has rung the bell for these completions.
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Whether a request is a flush, or for whole sectors within the disk.
    fn is_valid(&self, request: &DiskRequest) -> bool {
        let bytes = request.buffer.len();
        let end = request.sector.0.checked_add((bytes / SECTOR_BYTES) as u64);
        request.operation == DiskOperation::Flush
            || bytes != 0
                && bytes.is_multiple_of(SECTOR_BYTES)
                && end.is_some_and(|end| end <= self.disk.sectors)
    }
}

/// A thread that performs requests in order.
struct DiskThread {
    /// The channel to the thread. It is dropped to end the thread.
    requests: Option<SyncSender<DiskRequest>>,
    thread: Option<JoinHandle<()>>,
}

impl DiskThread {
    fn start(
        name: &str,
        file: Arc<File>,
        completed: SyncSender<DiskCompletion>,
        bell: Bell,
    ) -> std::io::Result<DiskThread> {
        let (sender, requests) = sync_channel::<DiskRequest>(REQUESTS_MAX);
        let work = move || {
            for mut request in requests {
                let result = carry_out(&file, &mut request).map_err(|_| DiskError::Failed);
                // The receiver is gone if the machine has ended.
                let _ = completed.send(completion(request, result));
                bell.ring();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(DiskThread { requests: Some(sender), thread: Some(thread) })
    }

    /// Passes a request to the thread. Errors: the request, if the thread has ended, which happens
    /// only after a panic.
    fn take(&self, request: DiskRequest) -> Result<(), (DiskRequest, DiskError)> {
        match &self.requests {
            Some(requests) => requests.try_send(request).map_err(|error| match error {
                TrySendError::Full(request) | TrySendError::Disconnected(request) => {
                    (request, DiskError::Gone)
                }
            }),
            None => Err((request, DiskError::Gone)),
        }
    }
}

impl Drop for DiskThread {
    fn drop(&mut self) {
        self.requests = None;
        // A panic of the thread has already been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn carry_out(file: &File, request: &mut DiskRequest) -> std::io::Result<()> {
    // A valid request is within the disk, and the byte size of the disk fits in a u64.
    let start = request.sector.0.saturating_mul(SECTOR_BYTES as u64);
    match request.operation {
        DiskOperation::Read => file.read_exact_at(&mut request.buffer, start),
        DiskOperation::Write => file.write_all_at(&request.buffer, start),
        DiskOperation::Flush => file.sync_data(),
    }
}

fn completion(request: DiskRequest, result: Result<(), DiskError>) -> DiskCompletion {
    let DiskRequest { token, operation, buffer, .. } = request;
    DiskCompletion { token, operation, result, buffer }
}

#[cfg(test)]
mod tests;
