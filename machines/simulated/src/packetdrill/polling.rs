//! `poll` and `epoll`: the operations that sockets allow without waiting.
//!
//! A connected socket is always writable, because its connection
//! ([`super::sockets::SocketLine`]) keeps written bytes until TCP takes them. The parameter `line`
//! is the line number of the call in the script.

use std::collections::BTreeMap;

use machine::{Instant, Micros};

use super::attempt::CallAttempt;
use super::names::{
    self, EPOLLET, EPOLLONESHOT, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, value,
};
use super::player::Player;
use super::script::{Expression, SocketCall};
use super::sockets::{Kind, Watched};
use super::verdict::ScriptStop;

impl Player {
    /// The current readiness of a socket, and the counters of its events in each direction.
    fn readiness(&self, number: i64) -> (i64, (u64, u64)) {
        let Some(socket) = self.sockets.get(&number) else { return (0x20, (0, 0)) };
        let found = match &socket.kind {
            Kind::Fresh => return (POLLOUT | POLLHUP, (0, 0)),
            Kind::Listens { waiting, .. } => {
                let ready = if waiting.is_empty() { 0 } else { POLLIN };
                return (ready, (u64::try_from(waiting.len()).unwrap_or(0), 0));
            }
            Kind::SocketLine(at) => match self.lines.get(*at) {
                Some(found) => found,
                None => return (0, (0, 0)),
            },
            Kind::Watcher(_) | Kind::File => return (POLLIN | POLLOUT, (0, 0)),
        };
        let no_more =
            found.peer_closed || found.over.is_some() || socket.options.contains_key("SHUT_RD");
        let mut ready = 0;
        if no_more || !found.readable(&self.host, 1).is_empty() {
            ready |= POLLIN;
        }
        if no_more {
            ready |= POLLRDHUP;
        }
        if (no_more && found.shut) || found.over.is_some() {
            ready |= POLLHUP;
        }
        if found.connected || found.over.is_some() {
            ready |= POLLOUT;
        }
        if found.error.is_some() {
            ready |= POLLERR;
        }
        (ready, (found.events_in, found.events_out))
    }

    /// `poll`: counts the sockets that are ready, and compares their events with the script.
    pub(super) fn poll(
        &mut self,
        line: usize,
        call: &SocketCall,
    ) -> Result<CallAttempt, ScriptStop> {
        let Some(Expression::List(entries)) = call.arguments.first() else {
            return Ok(CallAttempt::Error("EINVAL"));
        };
        let mut count = 0;
        let mut results = Vec::new();
        for entry in entries {
            let number = names::field(entry, "fd").and_then(value).unwrap_or(-1);
            let events = names::field(entry, "events").and_then(value).unwrap_or(0);
            let (ready, _) = self.readiness(number);
            let returned = ready & (events | POLLERR | POLLHUP | 0x20);
            count += i64::from(returned != 0);
            let wanted = names::field(entry, "revents").map_or(Some(0), value);
            results.push((number, returned, wanted));
        }
        if count == 0 && !self.has_timed_out(&call.arguments, 2) {
            return Ok(CallAttempt::Blocks);
        }
        self.polled = None;
        for (number, returned, wanted) in results {
            if wanted.is_some_and(|wanted| wanted != returned) {
                let expected = format!("revents {:#x} for {number}", wanted.unwrap_or(0));
                return Err(ScriptStop::failed(line, expected, format!("{returned:#x}")));
            }
        }
        Ok(CallAttempt::Value(count))
    }

    /// Whether the timeout in argument `at` (milliseconds, negative for none) has passed. The
    /// timeout begins with the call's first attempt.
    fn has_timed_out(&mut self, arguments: &[Expression], at: usize) -> bool {
        let span = arguments.get(at).and_then(value).unwrap_or(0);
        let Ok(span) = u64::try_from(span) else { return false };
        let began = *self.polled.get_or_insert(self.host.now);
        let ends = began + Micros::from_millis(span);
        self.wake_at = Some(ends);
        self.host.now >= ends
    }

    /// `epoll_ctl`: adds, removes or changes a socket that an epoll instance watches.
    pub(super) fn epoll_ctl(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<CallAttempt, ScriptStop> {
        let watcher = Self::number(line, arguments)?;
        let operation = arguments.get(1).and_then(value).unwrap_or(0);
        let number = arguments.get(2).and_then(value).unwrap_or(-1);
        let events = arguments
            .get(3)
            .and_then(|event| names::field(event, "events"))
            .and_then(value)
            .unwrap_or(0);
        let data = arguments.get(3).and_then(data_of).unwrap_or(0);
        if !self.sockets.contains_key(&number) {
            return Ok(CallAttempt::Error("EBADF"));
        }
        let Some(watched) = self.watched_sockets(watcher) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        let is_there = watched.contains_key(&number);
        let new = Watched { events, data, reported: (u64::MAX, u64::MAX) };
        match (operation, is_there) {
            (1, false) | (3, true) => watched.insert(number, new),
            (2, true) => watched.remove(&number),
            (1, true) => return Ok(CallAttempt::Error("EEXIST")),
            _ => return Ok(CallAttempt::Error("ENOENT")),
        };
        Ok(CallAttempt::Value(0))
    }

    /// The sockets that an epoll instance watches, by number.
    fn watched_sockets(&mut self, watcher: i64) -> Option<&mut BTreeMap<i64, Watched>> {
        match &mut self.sockets.get_mut(&watcher)?.kind {
            Kind::Watcher(watched) => Some(watched),
            _ => None,
        }
    }

    /// `epoll_wait`: counts the sockets that are ready, and compares the first of them with the
    /// script.
    pub(super) fn epoll_wait(
        &mut self,
        line: usize,
        call: &SocketCall,
    ) -> Result<CallAttempt, ScriptStop> {
        let watcher = Self::number(line, &call.arguments)?;
        let Some(all) = self.watched_sockets(watcher).cloned() else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        let mut ready_sockets = Vec::new();
        for (number, watched) in &all {
            let (ready, counters) = self.readiness(*number);
            let returned = ready & (watched.events | POLLERR | POLLHUP);
            let is_new = watched.events & EPOLLET == 0 || watched.reported != counters;
            if returned != 0 && is_new {
                ready_sockets.push((*number, returned, watched.data, counters));
            }
        }
        if ready_sockets.is_empty() && !self.has_timed_out(&call.arguments, 3) {
            return Ok(CallAttempt::Blocks);
        }
        self.polled = None;
        for (number, _, _, counters) in &ready_sockets {
            if let Some(watched) = self.watched_sockets(watcher).and_then(|all| all.get_mut(number))
            {
                watched.reported = *counters;
                if watched.events & EPOLLONESHOT != 0 {
                    watched.events &= EPOLLET | EPOLLONESHOT;
                }
            }
        }
        if let (Some(expected), Some((_, returned, data, _))) =
            (call.arguments.get(1), ready_sockets.first())
        {
            let events = names::field(expected, "events").and_then(value);
            let wrong_data = data_of(expected).is_some_and(|wanted| wanted != *data);
            if events.is_some_and(|events| events != *returned) || wrong_data {
                let expected =
                    format!("events {:#x} with {:?}", events.unwrap_or(0), data_of(expected));
                return Err(ScriptStop::failed(
                    line,
                    expected,
                    format!("{returned:#x} with {data}"),
                ));
            }
        }
        Ok(CallAttempt::Value(i64::try_from(ready_sockets.len()).unwrap_or(0)))
    }

    /// The time at which the pending call is tried again even without an event.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.pending.as_ref().and(self.wake_at).filter(|at| *at > self.host.now)
    }
}

/// The data that `epoll_wait` returns with an event, from the member of the union `epoll_data` that
/// the script uses.
fn data_of(event: &Expression) -> Option<i64> {
    ["fd", "ptr", "u32", "u64"]
        .into_iter()
        .find_map(|name| names::field(event, name))
        .and_then(value)
}
