//! The chain of figure 4 of the CEFOS paper: from a sender's system call to its receiver, as
//! zero-wait threads.
//!
//! ```text
//! sender ─▶ gate ─▶ system call ─▶ semaphore ─▶ device ─▶ (the device) ─▶ handler ─▶ receiver
//!    └─ taken: queued, or             └─ busy:    a signal names the ─┘   └─ next request
//!       continues with itself            queued   frame that waits           of the queue
//! ```
//!
//! A call is a frame. Its `stage` is the thread that runs next. The gate and each device's
//! semaphore are gates of the engine. In the paper a synchronization counter starts a thread. The
//! counter of the receiver waits for two signals: the sender's end and the result.
//!
//! Invariants:
//! - A call is at one place: ready, queued at a gate, in a device, or done. So calls are conserved.
//! - A gate has one owner: the call between the gate's lock and its release, or between a device's
//!   lock and its handler.

use tasks::{
    Continuation, Countdown, EntryPoint, FrameId, FrameTable, GateId, Gates, Passage, ResumeQueue,
};

/// The way in which senders contend for the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contention {
    /// A call that finds the gate taken joins the gate's queue (section 4.2). The engine does this.
    SoftwareQueue,
    /// A call that finds the gate taken becomes ready again, and tries again when it runs next
    /// (sections 2.1.2 and 4.1).
    SelfContinuation,
}

/// The place where a device does its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DevicePlace {
    /// Outside the units, in parallel with them, as hardware does.
    Apart,
    /// In a unit, as a thread that loops: the paper's virtual_hw_thread (section 3.1).
    OnAUnit,
}

/// The thread that runs next for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Tries to lock the gate (1-1, 1-2, 1-3 in the figure).
    Sender,
    /// Names the system call (2-1, 2-2).
    Gate,
    /// The body of the system call (3-1, 3-2).
    SystemCall,
    /// Tries to lock the device (4-1, 4-2, 4-3).
    Semaphore,
    /// Issues the request (5-1, 5-2, 5-3).
    Device,
    /// The device's work, if the device works on a unit.
    VirtualHardware,
    /// Takes the result (6-1), continues to the receiver (6-2) and the device's next request (6-3).
    Handler,
    /// Receives the result.
    Receiver,
}

/// The result of one thread run. A chain has no clock: the caller counts the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Ran {
    /// The call proceeds to its next stage, or waits at a gate.
    Onwards,
    /// The call found the gate taken and is ready again.
    ContinuedWithItself,
    /// A device works. When it is done, the caller must call [`Chain::completed`].
    Requested(Continuation),
    /// The receiver has the result.
    Done,
}

/// Counters of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// The number of thread runs.
    pub runs: u64,
    /// The number of sender runs that found the gate taken and continued with themselves.
    pub self_continuations: u64,
    /// The number of calls that are done.
    pub done: u64,
}

struct Call {
    stage: Stage,
    device: GateId,
    receiver: Countdown,
}

const GATE: GateId = GateId(0);
/// The entry point of a call's continuation when its device is done.
const COMPLETED: EntryPoint = EntryPoint(1);

/// The calls in progress, and the gates that they pass.
pub struct Chain {
    calls: FrameTable<Call>,
    ready: ResumeQueue,
    gates: Gates,
    contention: Contention,
    place: DevicePlace,
    counts: Counts,
}

impl Chain {
    /// A chain with a gate and `devices` devices, for at most `calls` calls at a time.
    pub fn new(devices: u32, calls: usize, contention: Contention, place: DevicePlace) -> Chain {
        Chain {
            calls: FrameTable::with_capacity(calls),
            ready: ResumeQueue::with_capacity(calls),
            gates: Gates::new(devices as usize + 1, calls),
            contention,
            place,
            counts: Counts::default(),
        }
    }

    /// Makes a sender ready, for a call on `device`, counted from 0. Returns false if the chain has
    /// no room for another call.
    pub fn send(&mut self, device: u32) -> bool {
        let call =
            Call { stage: Stage::Sender, device: GateId(device + 1), receiver: Countdown::new(2) };
        match self.calls.insert(call) {
            Ok(frame) => self.ready.resume(frame),
            Err(_) => return false,
        }
        true
    }

    /// The call that has been ready for the longest time, and the stage that it runs next.
    pub fn next_ready(&mut self) -> Option<(FrameId, Stage)> {
        self.ready.begin_turn();
        let frame = self.ready.next_ready()?;
        Some((frame, self.calls.get(frame)?.stage))
    }

    /// Runs the next thread of `frame`, which [`Chain::next_ready`] has returned.
    pub fn run(&mut self, frame: FrameId) -> Ran {
        self.counts.runs += 1;
        let Some(call) = self.calls.get_mut(frame) else { return Ran::Onwards };
        match call.stage {
            Stage::Sender => return self.sender(frame),
            Stage::Gate => self.gate(frame),
            Stage::SystemCall => self.go_on(frame, Stage::Semaphore),
            Stage::Semaphore => self.semaphore(frame),
            Stage::Device => return self.device(frame),
            Stage::VirtualHardware => self.go_on(frame, Stage::Handler),
            Stage::Handler => self.handler(frame),
            Stage::Receiver => {
                self.calls.remove(frame);
                self.counts.done += 1;
                return Ran::Done;
            }
        }
        Ran::Onwards
    }

    /// Handles the completion of a device's request, so that the handler of its call becomes ready.
    /// `continuation`: the value in the [`Ran::Requested`] of that request.
    pub fn completed(&mut self, continuation: Continuation) {
        assert!(continuation.entry == COMPLETED, "the continuation that the request carried");
        self.go_on(continuation.frame, Stage::Handler);
    }

    /// The counters so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of calls in progress.
    pub fn underway(&self) -> usize {
        self.calls.len()
    }

    /// The number of ready threads.
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    fn sender(&mut self, frame: FrameId) -> Ran {
        if self.contention == Contention::SelfContinuation && self.gates.owner(GATE).is_some() {
            self.counts.self_continuations += 1;
            self.ready.resume(frame);
            return Ran::ContinuedWithItself;
        }
        // The sender ends here. The gate's thread runs when the call owns the gate.
        self.signal_receiver(frame);
        match self.gates.enter(GATE, frame) {
            Passage::Entered => self.go_on(frame, Stage::Gate),
            Passage::Queued => {}
        }
        Ran::Onwards
    }

    fn gate(&mut self, frame: FrameId) {
        self.go_on(frame, Stage::SystemCall);
        if let Some(next) = self.gates.leave(GATE, frame) {
            self.go_on(next, Stage::Gate);
        }
    }

    fn semaphore(&mut self, frame: FrameId) {
        let Some(device) = self.device_of(frame) else { return };
        match self.gates.enter(device, frame) {
            Passage::Entered => self.go_on(frame, Stage::Device),
            Passage::Queued => {}
        }
    }

    fn device(&mut self, frame: FrameId) -> Ran {
        match self.place {
            DevicePlace::Apart => Ran::Requested(Continuation { frame, entry: COMPLETED }),
            DevicePlace::OnAUnit => {
                self.go_on(frame, Stage::VirtualHardware);
                Ran::Onwards
            }
        }
    }

    fn handler(&mut self, frame: FrameId) {
        if self.signal_receiver(frame) {
            self.go_on(frame, Stage::Receiver);
        }
        let Some(device) = self.device_of(frame) else { return };
        if let Some(next) = self.gates.leave(device, frame) {
            self.go_on(next, Stage::Device);
        }
    }

    fn device_of(&self, frame: FrameId) -> Option<GateId> {
        self.calls.get(frame).map(|call| call.device)
    }

    /// Counts one of the two signals that the receiver waits for. Returns true for the second one.
    fn signal_receiver(&mut self, frame: FrameId) -> bool {
        self.calls.get_mut(frame).is_some_and(|call| call.receiver.arrived())
    }

    fn go_on(&mut self, frame: FrameId, stage: Stage) {
        if let Some(call) = self.calls.get_mut(frame) {
            call.stage = stage;
            self.ready.resume(frame);
        }
    }
}
