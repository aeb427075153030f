//! Time and calls: what is due happens at its own time, and a call that blocks is tried again whenever something has happened,
//! until the time at which the script says that it returns.

use machine::{Instant, Micros};

use super::attempt::{Attempt, Pending};
use super::names::value;
use super::player::{Player, seconds};
use super::script::{Call, Expression};
use super::verdict::Stop;

/// How long a call that blocks may go on behind the last event of a script.
pub(super) const PATIENCE: Micros = Micros::from_secs(600);

impl Player {
    /// Lets time pass up to `at`; whatever is due on the way happens at its own time.
    pub(super) fn wait_until(&mut self, at: Instant) -> Result<(), Stop> {
        while self.step(at)? {}
        self.host.now = self.host.now.max(at);
        Ok(())
    }

    /// Lets time pass up to the next thing that is due, but not beyond `limit`. False when nothing is due by then.
    pub(super) fn step(&mut self, limit: Instant) -> Result<bool, Stop> {
        let next =
            Instant::or_never(self.host.next_deadline()).min(Instant::or_never(self.next_wake()));
        if next > limit || next == Instant::NEVER {
            return Ok(false);
        }
        let deadline = next;
        self.host.now = deadline;
        self.host.expire();
        self.settle()?;
        Ok(true)
    }

    /// Lets everybody know what happened, and ends the call that waited for it.
    pub(super) fn settle(&mut self) -> Result<(), Stop> {
        loop {
            self.learn_flows();
            let Some(happened) = self.host.happened.pop_front() else { break };
            self.learn(&happened);
        }
        self.retry_pending()
    }

    /// Waits for the call that blocks, if one does.
    pub(super) fn finish_pending(&mut self, limit: Instant) -> Result<(), Stop> {
        self.retry_pending()?;
        while self.pending.is_some() {
            if !self.step(limit)? {
                return never_returned(self.pending.take());
            }
        }
        Ok(())
    }

    /// Makes a call. `returns`: when it does, if it blocks.
    pub(super) fn call(
        &mut self,
        line: usize,
        call: &Call,
        returns: Option<Instant>,
    ) -> Result<(), Stop> {
        match self.attempt(line, call)? {
            Attempt::Blocks => {
                // In a script without threads nothing else can happen until it returns.
                self.pending = Some(Pending { line, call: call.clone(), returns });
                if returns.is_none() {
                    self.finish_pending(self.host.now + PATIENCE)
                } else {
                    Ok(())
                }
            }
            done => {
                self.check_return(line, call, returns)?;
                self.check_result(line, call, done)
            }
        }
    }

    /// Tries the call again that waits.
    pub(super) fn retry_pending(&mut self) -> Result<(), Stop> {
        let Some(Pending { line, call, returns }) = self.pending.take() else { return Ok(()) };
        match self.attempt(line, &call)? {
            Attempt::Blocks => self.pending = Some(Pending { line, call, returns }),
            done => {
                self.check_return(line, &call, returns)?;
                self.check_result(line, &call, done)?;
            }
        }
        Ok(())
    }

    fn check_return(
        &mut self,
        line: usize,
        call: &Call,
        returns: Option<Instant>,
    ) -> Result<(), Stop> {
        let Some(returns) = returns else { return Ok(()) };
        let off = self.host.now.since(returns).max(returns.since(self.host.now));
        if off <= self.tolerance(returns) {
            return Ok(());
        }
        if is_write(&call.name) {
            let reason = "how much a socket's buffer takes before a write blocks is the kernel's; ours takes everything";
            return Err(Stop::not_applicable(line, reason));
        }
        if call.error.as_deref() == Some("ETIMEDOUT") {
            let reason =
                "when an unanswered connection is given up is ours (RFC 9293 section 3.8.3)";
            return Err(Stop::not_applicable(line, reason));
        }
        let expected = format!("{} to return at {}", call.name, seconds(returns));
        Err(Stop::failed(line, expected, format!("its return at {}", seconds(self.host.now))))
    }

    fn check_result(&mut self, line: usize, call: &Call, done: Attempt) -> Result<(), Stop> {
        let expected = (value(&call.result), call.error.as_deref());
        let is_right = match (expected, done) {
            _ if call.result == Expression::Any => true,
            ((Some(-1), Some(wanted)), Attempt::Error(error)) => same_error(wanted, error),
            ((Some(-1), None), Attempt::Error(_)) => true,
            ((Some(wanted), None), Attempt::Value(result)) => wanted == result,
            // FreeBSD numbers this flag otherwise.
            _ => false,
        };
        if is_right || self.config.calls_may_fail {
            return Ok(());
        }
        if is_write(&call.name) && matches!((expected.0, done), (Some(-1..), Attempt::Value(_))) {
            let reason = "how much a socket's buffer takes is the kernel's; ours takes everything";
            return Err(Stop::not_applicable(line, reason));
        }
        let expected = match expected {
            (Some(value), Some(error)) => format!("{value} {error}"),
            (Some(value), None) => value.to_string(),
            (None, _) => format!("{:?}", call.result),
        };
        let seen = match done {
            Attempt::Value(value) => value.to_string(),
            Attempt::Error(error) => format!("-1 {error}"),
            Attempt::Blocks => "that it waits".to_string(),
        };
        Err(Stop::failed(line, format!("{} = {expected}", call.name), seen))
    }
}

/// A call that the script's end, or its patience, found still waiting.
fn never_returned(pending: Option<Pending>) -> Result<(), Stop> {
    match pending {
        Some(Pending { line, call, .. }) => {
            Err(Stop::failed(line, format!("{} to return", call.name), "it waits for ever"))
        }
        None => Ok(()),
    }
}

fn is_write(name: &str) -> bool {
    matches!(name, "write" | "writev" | "send" | "sendto" | "sendmsg" | "sendfile" | "splice")
}

/// Systems have two names for these.
fn same_error(wanted: &str, error: &str) -> bool {
    let one =
        |name: &str| if name == "EWOULDBLOCK" { "EAGAIN".to_string() } else { name.to_string() };
    one(wanted) == one(error)
}
