//! Socket options: those with a meaning here, those without an observable effect, and those that
//! the engine cannot provide.

use machine::Micros;
use net::tcp::USER_TIMEOUT;

use super::attempt::Attempt;
use super::names::{self, value};
use super::player::Player;
use super::script::Expression;
use super::sockets::Kind;
use super::verdict::Stop;

/// The meaning of an option here.
enum Known {
    /// Stored, and returned on request. It has no effect.
    Kept,
    /// The size of a kernel buffer. Any value is accepted.
    Buffer,
    /// Stored if the value is what the engine does anyway, or switches the option off.
    Is(&'static [i64], &'static str),
}

/// The known options, by name.
const OPTIONS: &[(&str, Known)] = &[
    ("SO_REUSEADDR", Known::Kept),
    ("SO_REUSEPORT", Known::Kept),
    ("SO_DEBUG", Known::Kept),
    ("SO_PRIORITY", Known::Kept),
    ("SO_MARK", Known::Kept),
    ("SO_BUSY_POLL", Known::Kept),
    ("SO_INCOMING_CPU", Known::Kept),
    ("IP_FREEBIND", Known::Kept),
    ("IP_BIND_ADDRESS_NO_PORT", Known::Kept),
    ("IPV6_V6ONLY", Known::Kept),
    ("SO_RCVBUF", Known::Buffer),
    ("SO_SNDBUF", Known::Buffer),
    ("SO_RCVBUFFORCE", Known::Buffer),
    ("SO_SNDBUFFORCE", Known::Buffer),
    ("SO_RCVLOWAT", Known::Is(&[0, 1], "every byte wakes its reader")),
    ("SO_KEEPALIVE", Known::Kept),
    ("SO_OOBINLINE", Known::Kept),
    (
        "TCP_NODELAY",
        Known::Is(&[1], "small segments are never held back (there is no Nagle algorithm)"),
    ),
    ("TCP_QUICKACK", Known::Kept),
    ("TCP_CORK", Known::Is(&[0], "nothing is held back for more to come (TCP_CORK)")),
    ("TCP_NOPUSH", Known::Is(&[0], "nothing is held back for more to come (TCP_NOPUSH)")),
    ("TCP_NOOPT", Known::Is(&[0], "options cannot be turned off for one connection")),
    ("TCP_FASTOPEN", Known::Is(&[0], "there is no TCP fast open here")),
    ("TCP_FASTOPEN_CONNECT", Known::Is(&[0], "there is no TCP fast open here")),
    ("TCP_FASTOPEN_NO_COOKIE", Known::Is(&[0], "there is no TCP fast open here")),
    ("SO_ZEROCOPY", Known::Is(&[0], "SO_ZEROCOPY tells of a kernel's pages")),
    (
        "TCP_NOTSENT_LOWAT",
        Known::Is(
            &[0, -1, 0xffff_ffff, 0x7fff_ffff],
            "how much waits unsent is not told (TCP_NOTSENT_LOWAT)",
        ),
    ),
    ("TCP_INQ", Known::Is(&[0], "control messages are not offered (TCP_INQ)")),
    ("TCP_DEFER_ACCEPT", Known::Is(&[0], "connections are announced at once (TCP_DEFER_ACCEPT)")),
    ("TCP_USER_TIMEOUT", Known::Kept),
    ("TCP_SYNCNT", Known::Is(&[], "how often a SYN is repeated cannot be set (TCP_SYNCNT)")),
    (
        "TCP_MAXSEG",
        Known::Is(&[], "the size of segments is the link's and the peer's (TCP_MAXSEG)"),
    ),
    ("TCP_WINDOW_CLAMP", Known::Is(&[], "windows are not a user's to set (TCP_WINDOW_CLAMP)")),
    ("TCP_KEEPIDLE", Known::Is(&[300], "when a silent peer is asked cannot be set")),
    ("TCP_KEEPINTVL", Known::Is(&[30], "when a silent peer is asked cannot be set")),
    ("TCP_KEEPCNT", Known::Is(&[4], "how often a silent peer is asked cannot be set")),
    ("TCP_KEEPINIT", Known::Is(&[187], "how long a connection may take to open cannot be set")),
    ("TCP_MD5SIG", Known::Is(&[], "segments are not signed (TCP_MD5SIG)")),
    ("TCP_REMOTE_UDP_ENCAPS_PORT", Known::Is(&[0], "there is no TCP over UDP here")),
    ("TCP_USE_DDP", Known::Kept),
    ("IP_TOS", Known::Is(&[0], "the TOS of a connection cannot be set")),
    ("IP_TTL", Known::Is(&[64], "the TTL of a connection cannot be set")),
    ("IPV6_TCLASS", Known::Is(&[0], "the traffic class of a connection cannot be set")),
    ("IPV6_UNICAST_HOPS", Known::Is(&[64], "the hop limit of a connection cannot be set")),
    ("IPV6_USE_MIN_MTU", Known::Is(&[0], "the path's MTU is what it is found to be")),
    ("IP_MTU_DISCOVER", Known::Is(&[1, 2], "the path's MTU is always found out")),
    ("SO_TIMESTAMPING", Known::Is(&[0], "when packets left is not told (SO_TIMESTAMPING)")),
    (
        "SO_MAX_PACING_RATE",
        Known::Is(&[-1, 0xffff_ffff], "connections are not paced by their users"),
    ),
    ("TCP_TX_DELAY", Known::Is(&[0], "segments are not delayed")),
    ("TCP_FUNCTION_BLK", Known::Is(&[], "there is one TCP stack (TCP_FUNCTION_BLK)")),
];

/// Congestion controls that a script may request. Ours grows like these before the first loss.
const CONGESTION_CONTROLS: [&str; 3] = ["cubic", "reno", "newreno"];

impl Player {
    pub(super) fn set_option(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let Some(name) = option_name(arguments) else { return Ok(Attempt::Error("ENOPROTOOPT")) };
        let given = arguments.get(3);
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(Attempt::Error("EBADF"));
        };
        if name == "SO_LINGER" {
            let part = |name| {
                given.and_then(|given| names::field(given, name)).and_then(value).unwrap_or(0)
            };
            socket.linger_zero = part("onoff") != 0 && part("linger") == 0;
            return Ok(Attempt::Value(0));
        }
        let Some(given) = given.and_then(value) else { return Ok(Attempt::Value(0)) };
        socket.options.insert(name.to_string(), given);
        if name == "TCP_USER_TIMEOUT" {
            self.set_user_timeout(number, given);
        }
        Ok(Attempt::Value(0))
    }

    /// Milliseconds; zero for the default.
    fn set_user_timeout(&mut self, number: i64, millis: i64) {
        let span = match u64::try_from(millis) {
            Ok(0) | Err(_) => USER_TIMEOUT,
            Ok(millis) => Micros::from_millis(millis),
        };
        let line = self.line_of(number).and_then(|line| self.lines.get(line));
        if let Some(connection) = line.map(|line| line.connection) {
            self.host.net.set_user_timeout(connection, span);
        }
    }

    pub(super) fn get_option(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let Some(name) = option_name(arguments) else { return Ok(Attempt::Error("ENOPROTOOPT")) };
        let expected = arguments.get(3);
        let Some(socket) = self.sockets.get(&number) else { return Ok(Attempt::Error("EBADF")) };
        if name == "SO_ERROR" {
            return self.check_error(line, number, expected);
        }
        let is_buffer =
            OPTIONS.iter().any(|(known, what)| *known == name && matches!(what, Known::Buffer));
        if is_buffer {
            self.liberty(line, "the size of a socket's buffer is the kernel's");
            return Ok(Attempt::Value(0));
        }
        if name == "TCP_MAXSEG" {
            return Err(Stop::not_applicable(
                line,
                "the size of segments is not told (TCP_MAXSEG)",
            ));
        }
        let is = match (name, socket.options.get(name)) {
            (_, Some(set)) => *set,
            ("TCP_NODELAY", None) => 1,
            ("TCP_KEEPIDLE", None) => 300,
            ("TCP_KEEPINTVL", None) => 30,
            ("TCP_KEEPCNT", None) => 4,
            (_, None) => 0,
        };
        match expected {
            Some(Expression::Any) | None => Ok(Attempt::Value(0)),
            Some(expected) if value(expected) == Some(is) => Ok(Attempt::Value(0)),
            Some(_)
                if matches!(
                    name,
                    "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" | "TCP_KEEPINIT"
                ) =>
            {
                Err(Stop::not_applicable(line, "when a silent peer is asked cannot be set"))
            }
            Some(expected) => Err(Stop::failed(line, format!("{name} = {expected:?}"), is)),
        }
    }

    /// The error of a connection is reported once.
    fn check_error(
        &mut self,
        line: usize,
        number: i64,
        expected: Option<&Expression>,
    ) -> Result<Attempt, Stop> {
        let found = self.line_of(number).and_then(|line| self.lines.get_mut(line));
        let error = found.and_then(|line| line.error.take());
        let wanted = match expected {
            Some(Expression::List(all)) => all.first(),
            other => other,
        };
        let is_right = match (wanted, error) {
            (Some(Expression::Any) | None, _) => true,
            (Some(Expression::Word(name)), Some(error)) => name == error,
            (Some(expression), None) => value(expression) == Some(0),
            _ => false,
        };
        if is_right {
            return Ok(Attempt::Value(0));
        }
        let seen = error.unwrap_or("no error");
        Err(Stop::failed(
            line,
            format!("the error {}", wanted.map_or("0".to_string(), shown)),
            seen,
        ))
    }

    /// `ioctl`: the number of readable bytes, and whether calls return at once.
    pub(super) fn device_control(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<Attempt, Stop> {
        let number = Self::number(line, arguments)?;
        let name = names::names(arguments.get(1).unwrap_or(&Expression::Any))
            .first()
            .copied()
            .unwrap_or_default();
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(Attempt::Error("EBADF"));
        };
        match name {
            "SIOCINQ" | "FIONREAD" => {
                let readable = match socket.kind {
                    Kind::Line(at) => self
                        .lines
                        .get(at)
                        .map_or(0, |line| line.readable(&self.host, 1 << 24).len()),
                    _ => 0,
                };
                let readable = i64::try_from(readable).unwrap_or(i64::MAX);
                match arguments.get(2).and_then(value) {
                    Some(wanted) if wanted != readable => {
                        Err(Stop::failed(line, format!("{wanted} bytes to read"), readable))
                    }
                    _ => Ok(Attempt::Value(0)),
                }
            }
            "FIONBIO" => {
                socket.nonblocking = arguments.get(2).and_then(value) != Some(0);
                Ok(Attempt::Value(0))
            }
            other => Err(Stop::not_applicable(
                line,
                format!("what ioctl {other} tells is not offered to a service"),
            )),
        }
    }
}

fn shown(expression: &Expression) -> String {
    match expression {
        Expression::Word(name) => name.clone(),
        Expression::Integer(value) => value.to_string(),
        other => format!("{other:?}"),
    }
}

fn option_name(arguments: &[Expression]) -> Option<&str> {
    match arguments.get(2) {
        Some(Expression::Word(name)) => Some(name),
        _ => None,
    }
}

/// Why setting an option makes a script not applicable.
pub(super) fn setting_beyond(arguments: &[Expression]) -> Option<String> {
    let name = option_name(arguments)?;
    if name == "SO_LINGER" {
        let linger = arguments
            .get(3)
            .and_then(|given| names::field(given, "linger"))
            .and_then(value)
            .unwrap_or(0);
        return (linger > 0).then(|| "`close` never waits (SO_LINGER with a time)".to_string());
    }
    let given = arguments.get(3);
    if name == "TCP_CONGESTION" {
        return match given {
            Some(Expression::Text(wanted)) if CONGESTION_CONTROLS.contains(&wanted.as_str()) => {
                None
            }
            _ => Some("there is one congestion control".to_string()),
        };
    }
    match OPTIONS.iter().find(|(known, _)| *known == name) {
        Some((_, Known::Kept | Known::Buffer)) => None,
        Some((_, Known::Is(values, _)))
            if given.and_then(value).is_some_and(|given| values.contains(&given)) =>
        {
            None
        }
        Some((_, Known::Is(_, reason))) => Some(reason.to_string()),
        None => Some(format!("what {name} does is not known")),
    }
}

/// Why reading an option makes a script not applicable.
pub(super) fn asking_beyond(arguments: &[Expression]) -> Option<String> {
    let name = option_name(arguments)?;
    match name {
        "SO_ERROR" => None,
        "TCP_INFO" | "TCP_CC_INFO" | "TCP_LOG_ID" => {
            Some(format!("a kernel's own books are not there ({name})"))
        }
        _ if OPTIONS.iter().any(|(known, _)| *known == name) => None,
        _ => Some(format!("what {name} tells is not known")),
    }
}
