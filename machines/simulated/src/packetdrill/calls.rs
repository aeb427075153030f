//! Attempts at socket calls: the dispatch by function, and the calls that create and close sockets.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use net::Service;

use super::attempt::CallAttempt;
use super::flow::Flow;
use super::names::{self, O_NONBLOCK, value};
use super::player::Player;
use super::script::{Expression, SocketCall};
use super::sockets::{Kind, Socket, SocketLine};
use super::verdict::ScriptStop;

impl Player {
    /// Tries a call once.
    pub(super) fn attempt(
        &mut self,
        line: usize,
        call: &SocketCall,
    ) -> Result<CallAttempt, ScriptStop> {
        let arguments = &call.arguments;
        match call.name.as_str() {
            "socket" => self.socket(line, call),
            "bind" => self.bind(line, arguments),
            "listen" => self.listen(line, arguments),
            "accept" | "accept4" => self.accept(line, call),
            "connect" => self.connect(line, arguments),
            "close" => self.close(line, arguments),
            "shutdown" => self.shutdown(line, arguments),
            "open" => Ok(self.insert(call, Socket::new(Kind::File, false))),
            "read" | "readv" | "recv" | "recvfrom" | "recvmsg" => self.receive(line, call),
            "write" | "writev" | "send" | "sendto" | "sendmsg" | "sendfile" => {
                self.send(line, call)
            }
            "fcntl" => self.file_control(line, arguments),
            "ioctl" => self.device_control(line, arguments),
            "getsockopt" => self.get_option(line, arguments),
            "setsockopt" => self.set_option(line, arguments),
            "poll" => self.poll(line, call),
            "epoll_create" | "epoll_create1" => {
                Ok(self.insert(call, Socket::new(Kind::Watcher(BTreeMap::new()), false)))
            }
            "epoll_ctl" => self.epoll_ctl(line, arguments),
            "epoll_wait" | "epoll_pwait" => self.epoll_wait(line, call),
            other => Err(ScriptStop::not_applicable(
                line,
                format!("what {other} does is not offered to a service"),
            )),
        }
    }

    fn socket(&mut self, line: usize, call: &SocketCall) -> Result<CallAttempt, ScriptStop> {
        let kind = call.arguments.get(1);
        let names = kind.map(names::names).unwrap_or_default();
        if !names.contains(&"SOCK_STREAM") {
            return Err(ScriptStop::not_applicable(line, "sockets other than TCP's"));
        }
        if matches!(call.arguments.get(2), Some(Expression::Word(protocol)) if protocol != "IPPROTO_TCP" && protocol != "IPPROTO_IP")
        {
            return Err(ScriptStop::not_applicable(line, "protocols other than TCP"));
        }
        let nonblocking = names.contains(&"SOCK_NONBLOCK");
        Ok(self.insert(call, Socket::new(Kind::Fresh, nonblocking)))
    }

    /// Adds a socket under the number that the script expects.
    fn insert(&mut self, call: &SocketCall, socket: Socket) -> CallAttempt {
        let lowest = (3..).find(|number| !self.sockets.contains_key(number)).unwrap_or(3);
        let number = value(&call.result).filter(|number| *number >= 0).unwrap_or(lowest);
        self.sockets.insert(number, socket);
        CallAttempt::Value(number)
    }

    /// The socket number in the arguments of a call.
    pub(super) fn number(line: usize, arguments: &[Expression]) -> Result<i64, ScriptStop> {
        let number = arguments.first().and_then(value);
        number.ok_or_else(|| {
            ScriptStop::failed(line, "the number of a socket", format!("{:?}", arguments.first()))
        })
    }

    /// The index of a socket's line; `None` if the socket is not connected or connecting.
    pub(super) fn line_of(&self, number: i64) -> Option<usize> {
        match self.sockets.get(&number)?.kind {
            Kind::SocketLine(line) => Some(line),
            _ => None,
        }
    }

    fn bind(&mut self, line: usize, arguments: &[Expression]) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let port =
            address_of(arguments.get(1)).map_or(self.config.bind_port, |address| address.port());
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        if socket.port.is_some() {
            return Ok(CallAttempt::Error("EINVAL"));
        }
        socket.port = Some(port);
        Ok(CallAttempt::Value(0))
    }

    fn listen(&mut self, line: usize, arguments: &[Expression]) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let service = self.next_service;
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        if matches!(socket.kind, Kind::Listens { .. }) {
            return Ok(CallAttempt::Value(0));
        }
        if socket.kind != Kind::Fresh {
            return Ok(CallAttempt::Error("EINVAL"));
        }
        let port = *socket.port.get_or_insert(self.config.bind_port);
        if !self.host.net.listen(port, Service(service)) {
            return Ok(CallAttempt::Error("EADDRINUSE"));
        }
        socket.kind = Kind::Listens { service, waiting: VecDeque::new() };
        self.next_service = service.wrapping_add(1);
        self.expects_caller = true;
        Ok(CallAttempt::Value(0))
    }

    /// The port of the newest listener.
    pub(super) fn listening_port(&self) -> Option<u16> {
        let listens =
            self.sockets.values().filter(|socket| matches!(socket.kind, Kind::Listens { .. }));
        listens.filter_map(|socket| socket.port).next_back()
    }

    fn accept(&mut self, line: usize, call: &SocketCall) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, &call.arguments)?;
        let flags = call.arguments.get(3).map(names::names).unwrap_or_default();
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        let Kind::Listens { waiting, .. } = &mut socket.kind else {
            return Ok(CallAttempt::Error("EINVAL"));
        };
        let Some(accepted) = waiting.pop_front() else {
            return Ok(if socket.nonblocking {
                CallAttempt::Error("EAGAIN")
            } else {
                CallAttempt::Blocks
            });
        };
        self.under_test = self.lines.get(accepted).map(|line| line.flow);
        let nonblocking = flags.contains(&"SOCK_NONBLOCK");
        Ok(self.insert(call, Socket::new(Kind::SocketLine(accepted), nonblocking)))
    }

    fn connect(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        if let Kind::SocketLine(at) = socket.kind {
            let Some(found) = self.lines.get_mut(at) else {
                return Ok(CallAttempt::Error("EINVAL"));
            };
            if let Some(error) = found.error.take() {
                socket.connecting = false;
                return Ok(CallAttempt::Error(error));
            }
            if found.over.is_some() {
                return Ok(CallAttempt::Error("ECONNABORTED"));
            }
            if found.connected && socket.connecting {
                socket.connecting = false;
                return Ok(CallAttempt::Value(0));
            }
            return Ok(match (found.connected, socket.nonblocking) {
                (true, _) => CallAttempt::Error("EISCONN"),
                (false, true) => CallAttempt::Error("EALREADY"),
                (false, false) => CallAttempt::Blocks,
            });
        }
        if socket.kind != Kind::Fresh {
            return Ok(CallAttempt::Error("EOPNOTSUPP"));
        }
        self.open_line(number, address_of(arguments.get(1)))
    }

    fn open_line(
        &mut self,
        number: i64,
        to: Option<SocketAddr>,
    ) -> Result<CallAttempt, ScriptStop> {
        let to =
            SocketAddr::new(self.config.peer, to.map_or(self.config.connect_port, |to| to.port()));
        // The flow must exist before the SYN is sent.
        let flow = self.flows.len();
        self.flows.push(Flow::between(to.port(), 0, None));
        let Ok(connection) = self.host.connect(to) else {
            return Ok(CallAttempt::Error("ENETUNREACH"));
        };
        self.under_test = Some(flow);
        self.expects_caller = false;
        let line = self.lines.len();
        self.lines.push(SocketLine::new(connection, flow, false));
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        socket.kind = Kind::SocketLine(line);
        socket.connecting = true;
        Ok(if socket.nonblocking { CallAttempt::Error("EINPROGRESS") } else { CallAttempt::Blocks })
    }

    fn close(&mut self, line: usize, arguments: &[Expression]) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let Some(socket) = self.sockets.remove(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        match socket.kind {
            Kind::Listens { waiting, .. } => {
                self.host.net.stop_listening(socket.port.unwrap_or_default());
                for waiting in waiting {
                    if let Some(line) = self.lines.get_mut(waiting) {
                        line.abort(&mut self.host);
                    }
                }
            }
            Kind::SocketLine(at) => {
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
        Ok(CallAttempt::Value(0))
    }

    fn shutdown(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let how = arguments.get(1).and_then(value);
        let found = self.line_of(number).and_then(|line| self.lines.get_mut(line));
        let Some(found) = found.filter(|line| {
            line.connected && line.over.is_none_or(|over| over == net::tcp::CloseReason::Normal)
        }) else {
            return Ok(CallAttempt::Error("ENOTCONN"));
        };
        if matches!(how, Some(1 | 2)) {
            found.shut = true;
            found.push(&mut self.host);
        }
        if matches!(how, Some(0 | 2)) {
            found.events_in += 1;
            if let Some(socket) = self.sockets.get_mut(&number) {
                socket.options.insert("SHUT_RD".to_string(), 1);
            }
        }
        Ok(CallAttempt::Value(0))
    }

    /// `fcntl`: reads and sets the flag that makes calls return at once. No other flag exists.
    fn file_control(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        match arguments.get(1) {
            Some(Expression::Word(name)) if name == "F_GETFL" => {
                Ok(CallAttempt::Value(2 | if socket.nonblocking { O_NONBLOCK } else { 0 }))
            }
            Some(Expression::Word(name)) if name == "F_SETFL" => {
                socket.nonblocking = arguments
                    .get(2)
                    .and_then(value)
                    .is_some_and(|flags| flags & (O_NONBLOCK | 4) != 0);
                Ok(CallAttempt::Value(0))
            }
            other => Err(ScriptStop::not_applicable(line, format!("fcntl {other:?}"))),
        }
    }
}

/// The address in a record `{sa_family=…, sin_port=…, sin_addr=…}`.
fn address_of(expression: Option<&Expression>) -> Option<SocketAddr> {
    let expression = expression?;
    let port =
        names::field(expression, "sin_port").or_else(|| names::field(expression, "sin6_port"))?;
    let address =
        names::field(expression, "sin_addr").or_else(|| names::field(expression, "sin6_addr"));
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
