//! Lets time pass, and makes calls. Each deadline is handled at its own time. A blocking call is
//! tried again after every event until it returns, and then the time is compared with the script's.

use machine::{Instant, Micros};

use super::attempt::{CallAttempt, PendingCall};
use super::names::value;
use super::player::{Player, seconds};
use super::script::{Expression, SocketCall};
use super::verdict::ScriptStop;

/// The longest time that the player waits for a blocking call before the next call, or after the
/// last event.
pub(super) const PATIENCE: Micros = Micros::from_secs(600);

impl Player {
    /// Lets time pass up to `at`. Deadlines before that are handled at their own time.
    pub(super) fn wait_until(&mut self, at: Instant) -> Result<(), ScriptStop> {
        while self.step(at)? {}
        self.host.now = self.host.now.max(at);
        Ok(())
    }

    /// Lets time pass up to the next deadline, but not beyond `limit`. Returns false if no deadline
    /// is due by then.
    pub(super) fn step(&mut self, limit: Instant) -> Result<bool, ScriptStop> {
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

    /// Handles all events that have happened, and retries the call that waits for them.
    pub(super) fn settle(&mut self) -> Result<(), ScriptStop> {
        loop {
            self.learn_flows();
            let Some(happened) = self.host.happened.pop_front() else { break };
            self.learn(&happened);
        }
        self.retry_pending()
    }

    /// Waits until the pending call returns, if any.
    pub(super) fn finish_pending(&mut self, limit: Instant) -> Result<(), ScriptStop> {
        self.retry_pending()?;
        while self.pending.is_some() {
            if !self.step(limit)? {
                return never_returned(self.pending.take());
            }
        }
        Ok(())
    }

    /// Makes a call. `returns`: the time at which a blocking call returns, according to the script.
    pub(super) fn call(
        &mut self,
        line: usize,
        call: &SocketCall,
        returns: Option<Instant>,
    ) -> Result<(), ScriptStop> {
        match self.attempt(line, call)? {
            CallAttempt::Blocks => {
                // The script has no threads, so no other call is made until this one returns.
                self.pending = Some(PendingCall { line, call: call.clone(), returns });
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

    /// Retries the pending call, if any.
    pub(super) fn retry_pending(&mut self) -> Result<(), ScriptStop> {
        let Some(PendingCall { line, call, returns }) = self.pending.take() else { return Ok(()) };
        match self.attempt(line, &call)? {
            CallAttempt::Blocks => self.pending = Some(PendingCall { line, call, returns }),
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
        call: &SocketCall,
        returns: Option<Instant>,
    ) -> Result<(), ScriptStop> {
        let Some(returns) = returns else { return Ok(()) };
        let off = self.host.now.since(returns).max(returns.since(self.host.now));
        if off <= self.tolerance(returns) {
            return Ok(());
        }
        if is_write(&call.name) {
            let reason = "how much a socket's buffer takes before a write blocks is the kernel's; ours takes everything";
            return Err(ScriptStop::not_applicable(line, reason));
        }
        if call.error.as_deref() == Some("ETIMEDOUT") {
            let reason =
                "when an unanswered connection is given up is ours (RFC 9293 section 3.8.3)";
            return Err(ScriptStop::not_applicable(line, reason));
        }
        let expected = format!("{} to return at {}", call.name, seconds(returns));
        Err(ScriptStop::failed(line, expected, format!("its return at {}", seconds(self.host.now))))
    }

    fn check_result(
        &mut self,
        line: usize,
        call: &SocketCall,
        done: CallAttempt,
    ) -> Result<(), ScriptStop> {
        let expected = (value(&call.result), call.error.as_deref());
        let is_right = match (expected, done) {
            _ if call.result == Expression::Any => true,
            ((Some(-1), Some(wanted)), CallAttempt::Error(error)) => same_error(wanted, error),
            ((Some(-1), None), CallAttempt::Error(_)) => true,
            ((Some(wanted), None), CallAttempt::Value(result)) => wanted == result,
            _ => false,
        };
        if is_right || self.config.calls_may_fail {
            return Ok(());
        }
        if is_write(&call.name) && matches!((expected.0, done), (Some(-1..), CallAttempt::Value(_)))
        {
            let reason = "how much a socket's buffer takes is the kernel's; ours takes everything";
            return Err(ScriptStop::not_applicable(line, reason));
        }
        let expected = match expected {
            (Some(value), Some(error)) => format!("{value} {error}"),
            (Some(value), None) => value.to_string(),
            (None, _) => format!("{:?}", call.result),
        };
        let seen = match done {
            CallAttempt::Value(value) => value.to_string(),
            CallAttempt::Error(error) => format!("-1 {error}"),
            CallAttempt::Blocks => "that it waits".to_string(),
        };
        Err(ScriptStop::failed(line, format!("{} = {expected}", call.name), seen))
    }
}

/// The failure of a call that has not returned within the time limit.
fn never_returned(pending: Option<PendingCall>) -> Result<(), ScriptStop> {
    match pending {
        Some(PendingCall { line, call, .. }) => {
            Err(ScriptStop::failed(line, format!("{} to return", call.name), "it waits for ever"))
        }
        None => Ok(()),
    }
}

fn is_write(name: &str) -> bool {
    matches!(name, "write" | "writev" | "send" | "sendto" | "sendmsg" | "sendfile" | "splice")
}

/// Compares the names of errors. EWOULDBLOCK is another name of EAGAIN.
fn same_error(wanted: &str, error: &str) -> bool {
    let one =
        |name: &str| if name == "EWOULDBLOCK" { "EAGAIN".to_string() } else { name.to_string() };
    one(wanted) == one(error)
}
