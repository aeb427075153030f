//! Asks name servers over this host's sockets, one question after the other. The machine uses the
//! same resolver (crate `dns`).

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant as HostInstant};

use dns::{Answer, Limits, Question, Resolver, ResolverAction, StreamId, Unanswered};
use machine::Instant;

const LIMITS: Limits = Limits { questions: 1, of_clients: 1, askers: 1, cache_bytes: 1 << 20 };
/// The longest wait of one read from a socket.
const GLANCE: Duration = Duration::from_millis(50);
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);
/// The largest datagram.
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// A resolver, and its open sockets to name servers.
pub(super) struct Servers {
    resolver: Resolver<()>,
    sockets: BTreeMap<u16, UdpSocket>,
    streams: BTreeMap<StreamId, TcpStream>,
    started: HostInstant,
}

impl Servers {
    pub(super) fn new(servers: &[IpAddr]) -> Servers {
        // Each new hasher has random state, which comes from the system.
        let [high, low] = [(); 2].map(|()| RandomState::new().hash_one(()).to_le_bytes());
        let mut key = [0; 16];
        key.iter_mut().zip(high.into_iter().chain(low)).for_each(|(place, byte)| *place = byte);
        let mut resolver = Resolver::new(LIMITS, key);
        resolver.set_servers(servers.iter().copied(), Instant::START);
        Servers {
            resolver,
            sockets: BTreeMap::new(),
            streams: BTreeMap::new(),
            started: HostInstant::now(),
        }
    }

    /// Asks a question, and waits at most [`dns::QUESTION_SPAN_MAX`] for the answer.
    pub(super) fn ask(&mut self, question: Question) -> Result<Answer, Unanswered> {
        let mut answer = self.resolver.ask(question, (), self.now());
        loop {
            while let Some(action) = self.resolver.next_action() {
                answer = self.act(action).or(answer);
            }
            match answer {
                Some(answer) => return answer,
                None => self.listen(),
            }
        }
    }

    fn now(&self) -> Instant {
        Instant(self.started.elapsed().as_micros().try_into().unwrap_or(u64::MAX))
    }

    /// Carries out an action of the resolver. A failed send counts as a lost packet.
    fn act(&mut self, action: ResolverAction<()>) -> Option<Result<Answer, Unanswered>> {
        match action {
            ResolverAction::Send { port, to, bytes } => {
                if let Ok(socket) = open(port, to)
                    && socket.send_to(&bytes, to).is_ok()
                {
                    self.sockets.insert(port, socket);
                }
            }
            ResolverAction::Release { port } => drop(self.sockets.remove(&port)),
            ResolverAction::Connect { stream, to } => {
                match TcpStream::connect_timeout(&to, CONNECT_PATIENCE) {
                    Ok(connection) if connection.set_read_timeout(Some(GLANCE)).is_ok() => {
                        self.streams.insert(stream, connection);
                        self.resolver.stream_opened(stream);
                    }
                    _ => self.resolver.stream_closed(stream, self.now()),
                }
            }
            ResolverAction::Write { stream, bytes } => {
                let written =
                    self.streams.get_mut(&stream).map(|connection| connection.write_all(&bytes));
                if !matches!(written, Some(Ok(()))) {
                    self.resolver.stream_closed(stream, self.now());
                }
            }
            ResolverAction::HangUp { stream } => drop(self.streams.remove(&stream)),
            ResolverAction::Tell { answer, .. } => return Some(answer),
        }
        None
    }

    /// Gives the resolver the answers that have arrived, and the time.
    fn listen(&mut self) {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        let mut has_waited = false;
        for (port, socket) in &self.sockets {
            has_waited = true;
            if let Ok((count, from)) = socket.recv_from(&mut buffer) {
                let now = self.now();
                self.resolver.datagram_arrived(
                    *port,
                    from,
                    buffer.get(..count).unwrap_or_default(),
                    now,
                );
                return;
            }
        }
        let now = self.now();
        for (stream, connection) in &mut self.streams {
            has_waited = true;
            match connection.read(&mut buffer) {
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Ok(0) | Err(_) => self.resolver.stream_closed(*stream, now),
                Ok(count) => self.resolver.stream_arrived(
                    *stream,
                    buffer.get(..count).unwrap_or_default(),
                    now,
                ),
            }
        }
        if !has_waited {
            std::thread::sleep(GLANCE);
        }
        self.resolver.time_passed(self.now());
    }
}

fn open(port: u16, to: SocketAddr) -> std::io::Result<UdpSocket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // If another process uses the resolver's port, the system chooses a port.
    let socket = UdpSocket::bind((any, port)).or_else(|_| UdpSocket::bind((any, 0)))?;
    socket.set_read_timeout(Some(GLANCE))?;
    Ok(socket)
}

/// The addresses of the name servers in this host's `resolv.conf`. Link-local addresses with an
/// interface are left out.
pub(super) fn of_host(resolv_conf: &str) -> Vec<IpAddr> {
    let named = resolv_conf.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    named
        .filter_map(|rest| rest.split_whitespace().next()?.parse().ok())
        .take(dns::SERVERS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_name_servers_are_those_with_an_address() {
        let text = "# nameserver 192.0.2.1\nsearch a.test\nnameserver 192.0.2.2\n nameserver\t2001:db8::1 # one\nnameserver fe80::1%eth0\n";
        let expected: Vec<IpAddr> =
            vec!["192.0.2.2".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        assert_eq!(of_host(text), expected);
    }
}
