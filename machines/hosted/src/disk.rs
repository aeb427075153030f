//! The disk: a file or a block device, whose requests threads carry out, one thread for each kind of request.
//!
//! The turn hands a request over through a channel and finds its completion in another; no call here waits for the
//! device. A thread of its own for flushes lets reads and writes go on while one is under way.
//!
//! Durability: a write has completed when Linux has it in its cache; a flush is an `fdatasync`, which makes durable
//! whatever is in the cache when it begins, and with that every write that completed before the flush was requested.
//!
//! Invariants:
//! - At most [`REQUESTS_MAX`] requests are under way, and every channel has a place for each: no thread waits for room.
//! - Every request is completed once. When the disk is dropped, what was requested is carried out first.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use machine::{Disk, DiskCompletion, DiskError, DiskOperation, DiskRequest, SECTOR_BYTES};

use crate::bell::Bell;

/// Requests under way at a time.
const REQUESTS_MAX: usize = 128;

/// The disk at work.
pub(crate) struct FileDisk {
    disk: Disk,
    reads: Hand,
    writes: Hand,
    flushes: Hand,
    completed: Receiver<DiskCompletion>,
    /// Completions that the file had no part in.
    finished: VecDeque<DiskCompletion>,
    under_way: usize,
}

impl FileDisk {
    /// The disk that lies in `file`, as large as it is now. `bell` is rung at each completion.
    ///
    /// Errors: as Linux has them, when the file's size cannot be told or no thread be started.
    pub(crate) fn start(file: File, bell: &Bell) -> std::io::Result<FileDisk> {
        // Not the metadata's length, which is 0 for a block device.
        let bytes = (&file).seek(SeekFrom::End(0))?;
        let file = Arc::new(file);
        let (sender, completed) = sync_channel(REQUESTS_MAX);
        let hand = |name: &str| Hand::start(name, Arc::clone(&file), sender.clone(), bell.clone());
        Ok(FileDisk {
            disk: Disk { sectors: bytes / SECTOR_BYTES as u64, durable: true },
            reads: hand("disk: reads")?,
            writes: hand("disk: writes")?,
            flushes: hand("disk: flushes")?,
            completed,
            finished: VecDeque::with_capacity(REQUESTS_MAX),
            under_way: 0,
        })
    }

    pub(crate) fn disk(&self) -> Disk {
        self.disk
    }

    /// Errors: the request itself when too many are under way.
    pub(crate) fn request(&mut self, request: DiskRequest) -> Result<(), DiskRequest> {
        if self.under_way >= REQUESTS_MAX {
            return Err(request);
        }
        let handed_over = match request.operation {
            _ if !self.is_sound(&request) => Err((request, DiskError::OutOfRange)),
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

    /// The next request that completed.
    pub(crate) fn completed(&mut self) -> Option<DiskCompletion> {
        let completion = self.finished.pop_front().or_else(|| self.completed.try_recv().ok())?;
        self.under_way -= 1;
        Some(completion)
    }

    /// Whether a completion waits that no bell was rung for.
    pub(crate) fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    fn is_sound(&self, request: &DiskRequest) -> bool {
        let bytes = request.buffer.len();
        let end = request.sector.0.checked_add((bytes / SECTOR_BYTES) as u64);
        request.operation == DiskOperation::Flush
            || bytes != 0
                && bytes.is_multiple_of(SECTOR_BYTES)
                && end.is_some_and(|end| end <= self.disk.sectors)
    }
}

/// A thread that carries out requests in the order in which they come.
struct Hand {
    /// Dropped to end the thread.
    requests: Option<SyncSender<DiskRequest>>,
    thread: Option<JoinHandle<()>>,
}

impl Hand {
    fn start(
        name: &str,
        file: Arc<File>,
        completed: SyncSender<DiskCompletion>,
        bell: Bell,
    ) -> std::io::Result<Hand> {
        let (sender, requests) = sync_channel::<DiskRequest>(REQUESTS_MAX);
        let work = move || {
            for mut request in requests {
                let result = carry_out(&file, &mut request).map_err(|_| DiskError::Failed);
                // Nobody is there to be told any more when the machine is over.
                let _ = completed.send(completion(request, result));
                bell.ring();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Hand { requests: Some(sender), thread: Some(thread) })
    }

    /// Errors: the request when the thread is gone, which it is only after a panic.
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

impl Drop for Hand {
    fn drop(&mut self) {
        self.requests = None;
        // What it panicked of, if it did, has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn carry_out(file: &File, request: &mut DiskRequest) -> std::io::Result<()> {
    // A sound request lies inside of the disk, whose size in bytes is no more than a u64 holds.
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
