//! Calls to the socket interface: those that make sockets and end them, and what all calls have in common.
//!
//! A call is attempted at its time. What would block is tried again whenever something has happened, until the time at which the
//! script says that it returns.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use machine::Instant;
use net::Service;

use super::Stop;
use super::flow::Flow;
use super::names::{self, O_NONBLOCK, value};
use super::player::{Player, seconds};
use super::script::{Call, Expression};
use super::sockets::{Kind, Line, Socket};

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    Value(i64),
    Error(&'static str),
    /// It waits.
    Blocks,
}

/// A call that has not returned.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pending {
    line: usize,
    call: Call,
    returns: Option<Instant>,
}

/// A call that the script's end, or its patience, found still waiting.
pub(super) fn never_returned(pending: Option<Pending>) -> Result<(), Stop> {
    match pending {
        Some(Pending { line, call, .. }) => {
            Err(Stop::failed(line, format!("{} to return", call.name), "it waits for ever"))
        }
        None => Ok(()),
    }
}

impl Player {
    /// Makes a call. `returns`: when it does, if it blocks.
    pub(super) fn call(&mut self, line: usize, call: &Call, returns: Option<Instant>) -> Result<(), Stop> {
        match self.attempt(line, call)? {
            Attempt::Blocks => {
                // In a script without threads nothing else can happen until it returns.
                self.pending = Some(Pending { line, call: call.clone(), returns });
                if returns.is_none() { self.finish_pending(self.host.now + super::player::PATIENCE) } else { Ok(()) }
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

    fn check_return(&mut self, line: usize, call: &Call, returns: Option<Instant>) -> Result<(), Stop> {
        let Some(returns) = returns else { return Ok(()) };
        let off = self.host.now.since(returns).max(returns.since(self.host.now));
        if off <= self.tolerance(returns) {
            return Ok(());
        }
        if is_write(&call.name) {
            let reason =
                "how much a socket's buffer takes before a write blocks is the kernel's; ours takes everything";
            return Err(Stop::not_applicable(line, reason));
        }
        if call.error.as_deref() == Some("ETIMEDOUT") {
            let reason = "when an unanswered connection is given up is ours (RFC 9293 section 3.8.3)";
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

    fn attempt(&mut self, line: usize, call: &Call) -> Result<Attempt, Stop> {
        let arguments = &call.arguments;
        match call.name.as_str() {
            "socket" => self.socket(line, call),
            "bind" => self.bind(line, arguments),
            "listen" => self.listen(line, arguments),
            "accept" | "accept4" => self.accept(line, call),
            "connect" => self.connect(line, arguments),
            "close" => self.close(line, arguments),
            "shutdown" => self.shutdown(line, arguments),
            "open" => Ok(self.insert(call, Socket::new(Kind::File, false, self.host.now))),
            "read" | "readv" | "recv" | "recvfrom" | "recvmsg" => self.receive(line, call),
            "write" | "writev" | "send" | "sendto" | "sendmsg" | "sendfile" => self.send(line, call),
            "fcntl" => self.file_control(line, arguments),
            "ioctl" => self.device_control(line, arguments),
            "getsockopt" => self.get_option(line, arguments),
            "setsockopt" => self.set_option(line, arguments),
            "poll" => self.poll(line, call),
            "epoll_create" | "epoll_create1" => {
                Ok(self.insert(call, Socket::new(Kind::Watcher(BTreeMap::new()), false, self.host.now)))
            }
            "epoll_ctl" => self.watch(line, arguments),
            "epoll_wait" | "epoll_pwait" => self.watched(line, call),
            other => Err(Stop::not_applicable(line, format!("what {other} does is not offered to a service"))),
        }
    }

    fn socket(&mut self, line: usize, call: &Call) -> Result<Attempt, Stop> {
        let kind = call.arguments.get(1);
        let names = kind.map(names::names).unwrap_or_default();
        if !names.contains(&"SOCK_STREAM") {
            return Err(Stop::not_applicable(line, "sockets other than TCP's"));
        }
        if matches!(call.arguments.get(2), Some(Expression::Word(protocol)) if protocol != "IPPROTO_TCP" && protocol != "IPPROTO_IP")
        {
            return Err(Stop::not_applicable(line, "protocols other than TCP"));
        }
        let nonblocking = names.contains(&"SOCK_NONBLOCK");
        Ok(self.insert(call, Socket::new(Kind::Fresh, nonblocking, self.host.now)))
    }

    /// A new socket has the number that the script says.
    fn insert(&mut self, call: &Call, socket: Socket) -> Attempt {
        let lowest = (3..).find(|number| !self.sockets.contains_key(number)).unwrap_or(3);
        let number = value(&call.result).filter(|number| *number >= 0).unwrap_or(lowest);
        self.sockets.insert(number, socket);
        Attempt::Value(number)
    }

    /// The number of the socket that a call is about.
    pub(super) fn number(line: usize, arguments: &[Expression]) -> Result<i64, Stop> {
        let number = arguments.first().and_then(value);
        number.ok_or_else(|| Stop::failed(line, "the number of a socket", format!("{:?}", arguments.first())))
    }

    /// The line of a socket, if it has one.
    pub(super) fn line_of(&self, number: i64) -> Option<usize> {
        match self.sockets.get(&number)?.kind {
            Kind::Line(line) => Some(line),
            _ => None,
        }
    }

    fn bind(&mut self, line: usize, arguments: &[Expression]) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let port = address_of(arguments.get(1)).map_or(self.config.bind_port, |address| address.port());
        let Some(socket) = self.sockets.get_mut(&number) else { return Ok(Attempt::Error("EBADF")) };
        if socket.port.is_some() {
            return Ok(Attempt::Error("EINVAL"));
        }
        socket.port = Some(port);
        Ok(Attempt::Value(0))
    }

    fn listen(&mut self, line: usize, arguments: &[Expression]) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let service = self.next_service;
        let Some(socket) = self.sockets.get_mut(&number) else { return Ok(Attempt::Error("EBADF")) };
        if matches!(socket.kind, Kind::Listens { .. }) {
            return Ok(Attempt::Value(0));
        }
        if socket.kind != Kind::Fresh {
            return Ok(Attempt::Error("EINVAL"));
        }
        let port = *socket.port.get_or_insert(self.config.bind_port);
        if !self.host.net.listen(port, Service(service)) {
            return Ok(Attempt::Error("EADDRINUSE"));
        }
        socket.kind = Kind::Listens { service, waiting: VecDeque::new() };
        self.next_service = service.wrapping_add(1);
        self.expects_caller = true;
        Ok(Attempt::Value(0))
    }

    /// The port of the listener that was made last.
    pub(super) fn listening_port(&self) -> Option<u16> {
        let listens = self.sockets.values().filter(|socket| matches!(socket.kind, Kind::Listens { .. }));
        listens.filter_map(|socket| socket.port).next_back()
    }

    fn accept(&mut self, line: usize, call: &Call) -> Result<Attempt, Stop> {
        let number = Self::number(line, &call.arguments)?;
        let flags = call.arguments.get(3).map(names::names).unwrap_or_default();
        let Some(socket) = self.sockets.get_mut(&number) else { return Ok(Attempt::Error("EBADF")) };
        let Kind::Listens { waiting, .. } = &mut socket.kind else { return Ok(Attempt::Error("EINVAL")) };
        let Some(accepted) = waiting.pop_front() else {
            return Ok(if socket.nonblocking { Attempt::Error("EAGAIN") } else { Attempt::Blocks });
        };
        self.under_test = self.lines.get(accepted).map(|line| line.flow);
        let nonblocking = flags.contains(&"SOCK_NONBLOCK");
        Ok(self.insert(call, Socket::new(Kind::Line(accepted), nonblocking, self.host.now)))
    }

    fn connect(&mut self, line: usize, arguments: &[Expression]) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let Some(socket) = self.sockets.get_mut(&number) else { return Ok(Attempt::Error("EBADF")) };
        if let Kind::Line(at) = socket.kind {
            let Some(found) = self.lines.get_mut(at) else { return Ok(Attempt::Error("EINVAL")) };
            if let Some(error) = found.error.take() {
                socket.connecting = false;
                return Ok(Attempt::Error(error));
            }
            if found.over.is_some() {
                return Ok(Attempt::Error("ECONNABORTED"));
            }
            if found.connected && socket.connecting {
                socket.connecting = false;
                return Ok(Attempt::Value(0));
            }
            return Ok(match (found.connected, socket.nonblocking) {
                (true, _) => Attempt::Error("EISCONN"),
                (false, true) => Attempt::Error("EALREADY"),
                (false, false) => Attempt::Blocks,
            });
        }
        if socket.kind != Kind::Fresh {
            return Ok(Attempt::Error("EOPNOTSUPP"));
        }
        self.open_line(number, address_of(arguments.get(1)))
    }

    fn open_line(&mut self, number: i64, to: Option<SocketAddr>) -> Result<Attempt, Stop> {
        let to = SocketAddr::new(self.config.peer, to.map_or(self.config.connect_port, |to| to.port()));
        // The flow is there before the SYN is.
        let flow = self.flows.len();
        self.flows.push(Flow::between(to.port(), 0, None));
        let Ok(connection) = self.host.connect(to) else { return Ok(Attempt::Error("ENETUNREACH")) };
        self.under_test = Some(flow);
        self.expects_caller = false;
        let line = self.lines.len();
        self.lines.push(Line::new(connection, flow, false));
        let Some(socket) = self.sockets.get_mut(&number) else { return Ok(Attempt::Error("EBADF")) };
        socket.kind = Kind::Line(line);
        socket.connecting = true;
        Ok(if socket.nonblocking { Attempt::Error("EINPROGRESS") } else { Attempt::Blocks })
    }

    fn close(&mut self, line: usize, arguments: &[Expression]) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let Some(socket) = self.sockets.remove(&number) else { return Ok(Attempt::Error("EBADF")) };
        match socket.kind {
            Kind::Listens { waiting, .. } => {
                self.host.net.stop_listening(socket.port.unwrap_or_default());
                for waiting in waiting {
                    if let Some(line) = self.lines.get_mut(waiting) {
                        line.abort(&mut self.host);
                    }
                }
            }
            Kind::Line(at) => {
                if let Some(line) = self.lines.get_mut(at) {
                    let unread = !line.readable(&self.host, 1).is_empty();
                    line.deaf = true;
                    line.shut = true;
                    if unread || socket.linger_zero || !line.connected {
                        line.abort(&mut self.host);
                    } else {
                        line.push(&mut self.host);
                    }
                }
            }
            Kind::Fresh | Kind::Watcher(_) | Kind::File => {}
        }
        Ok(Attempt::Value(0))
    }

    fn shutdown(&mut self, line: usize, arguments: &[Expression]) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let how = arguments.get(1).and_then(value);
        let found = self.line_of(number).and_then(|line| self.lines.get_mut(line));
        let Some(found) =
            found.filter(|line| line.connected && line.over.is_none_or(|over| over == net::tcp::CloseReason::Normal))
        else {
            return Ok(Attempt::Error("ENOTCONN"));
        };
        if matches!(how, Some(1 | 2)) {
            found.shut = true;
            found.push(&mut self.host);
        }
        if matches!(how, Some(0 | 2)) {
            found.news_in += 1;
            if let Some(socket) = self.sockets.get_mut(&number) {
                socket.options.insert("SHUT_RD".to_string(), 1);
            }
        }
        Ok(Attempt::Value(0))
    }

    /// `fcntl`: whether calls return at once is the only flag.
    fn file_control(&mut self, line: usize, arguments: &[Expression]) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let Some(socket) = self.sockets.get_mut(&number) else { return Ok(Attempt::Error("EBADF")) };
        match arguments.get(1) {
            Some(Expression::Word(name)) if name == "F_GETFL" => {
                Ok(Attempt::Value(2 | if socket.nonblocking { O_NONBLOCK } else { 0 }))
            }
            Some(Expression::Word(name)) if name == "F_SETFL" => {
                socket.nonblocking =
                    arguments.get(2).and_then(value).is_some_and(|flags| flags & (O_NONBLOCK | 4) != 0);
                Ok(Attempt::Value(0))
            }
            other => Err(Stop::not_applicable(line, format!("fcntl {other:?}"))),
        }
    }
}

fn is_write(name: &str) -> bool {
    matches!(name, "write" | "writev" | "send" | "sendto" | "sendmsg" | "sendfile" | "splice")
}

/// Systems have two names for these.
fn same_error(wanted: &str, error: &str) -> bool {
    let one = |name: &str| if name == "EWOULDBLOCK" { "EAGAIN".to_string() } else { name.to_string() };
    one(wanted) == one(error)
}

/// The address in a `{sa_family=…, sin_port=…, sin_addr=…}`.
fn address_of(expression: Option<&Expression>) -> Option<SocketAddr> {
    let expression = expression?;
    let port = names::field(expression, "sin_port").or_else(|| names::field(expression, "sin6_port"))?;
    let address = names::field(expression, "sin_addr").or_else(|| names::field(expression, "sin6_addr"));
    let text = match address {
        Some(Expression::Applied(_, arguments)) => match arguments.last() {
            Some(Expression::Text(text)) => text.as_str(),
            _ => "",
        },
        _ => "",
    };
    let address = text.parse().unwrap_or(IpAddr::V4([0, 0, 0, 0].into()));
    Some(SocketAddr::new(address, u16::try_from(value(port)?).ok()?))
}
