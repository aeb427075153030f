//! Socket options: those with an effect, those without an observable effect, and those that the
//! engine cannot provide.

use machine::Micros;
use net::tcp::USER_TIMEOUT;

use super::attempt::CallAttempt;
use super::names::{self, value};
use super::player::Player;
use super::script::Expression;
use super::sockets::Kind;
use super::verdict::ScriptStop;

/// The handling of an option.
enum OptionMeaning {
    /// The value is stored, and returned on request. The option has no effect.
    Kept,
    /// The option is the size of a kernel buffer. Any value is accepted.
    Buffer,
    /// Only these values are accepted. They match the engine's behaviour, or switch the option off.
    /// Another value makes the script not applicable for this reason.
    Is(&'static [i64], &'static str),
}

/// The known options, by name.
const OPTIONS: &[(&str, OptionMeaning)] = &[
    ("SO_REUSEADDR", OptionMeaning::Kept),
    ("SO_REUSEPORT", OptionMeaning::Kept),
    ("SO_DEBUG", OptionMeaning::Kept),
    ("SO_PRIORITY", OptionMeaning::Kept),
    ("SO_MARK", OptionMeaning::Kept),
    ("SO_BUSY_POLL", OptionMeaning::Kept),
    ("SO_INCOMING_CPU", OptionMeaning::Kept),
    ("IP_FREEBIND", OptionMeaning::Kept),
    ("IP_BIND_ADDRESS_NO_PORT", OptionMeaning::Kept),
    ("IPV6_V6ONLY", OptionMeaning::Kept),
    ("SO_RCVBUF", OptionMeaning::Buffer),
    ("SO_SNDBUF", OptionMeaning::Buffer),
    ("SO_RCVBUFFORCE", OptionMeaning::Buffer),
    ("SO_SNDBUFFORCE", OptionMeaning::Buffer),
    ("SO_RCVLOWAT", OptionMeaning::Is(&[0, 1], "every byte wakes its reader")),
    ("SO_KEEPALIVE", OptionMeaning::Kept),
    ("SO_OOBINLINE", OptionMeaning::Kept),
    (
        "TCP_NODELAY",
        OptionMeaning::Is(&[1], "small segments are never held back (there is no Nagle algorithm)"),
    ),
    ("TCP_QUICKACK", OptionMeaning::Kept),
    ("TCP_CORK", OptionMeaning::Is(&[0], "nothing is held back for more to come (TCP_CORK)")),
    ("TCP_NOPUSH", OptionMeaning::Is(&[0], "nothing is held back for more to come (TCP_NOPUSH)")),
    ("TCP_NOOPT", OptionMeaning::Is(&[0], "options cannot be turned off for one connection")),
    ("TCP_FASTOPEN", OptionMeaning::Is(&[0], "there is no TCP fast open here")),
    ("TCP_FASTOPEN_CONNECT", OptionMeaning::Is(&[0], "there is no TCP fast open here")),
    ("TCP_FASTOPEN_NO_COOKIE", OptionMeaning::Is(&[0], "there is no TCP fast open here")),
    ("SO_ZEROCOPY", OptionMeaning::Is(&[0], "SO_ZEROCOPY tells of a kernel's pages")),
    (
        "TCP_NOTSENT_LOWAT",
        OptionMeaning::Is(
            &[0, -1, 0xffff_ffff, 0x7fff_ffff],
            "how much waits unsent is not told (TCP_NOTSENT_LOWAT)",
        ),
    ),
    ("TCP_INQ", OptionMeaning::Is(&[0], "control messages are not offered (TCP_INQ)")),
    (
        "TCP_DEFER_ACCEPT",
        OptionMeaning::Is(&[0], "connections are announced at once (TCP_DEFER_ACCEPT)"),
    ),
    ("TCP_USER_TIMEOUT", OptionMeaning::Kept),
    (
        "TCP_SYNCNT",
        OptionMeaning::Is(&[], "how often a SYN is repeated cannot be set (TCP_SYNCNT)"),
    ),
    (
        "TCP_MAXSEG",
        OptionMeaning::Is(&[], "the size of segments is the link's and the peer's (TCP_MAXSEG)"),
    ),
    (
        "TCP_WINDOW_CLAMP",
        OptionMeaning::Is(&[], "windows are not a user's to set (TCP_WINDOW_CLAMP)"),
    ),
    ("TCP_KEEPIDLE", OptionMeaning::Is(&[300], "when a silent peer is asked cannot be set")),
    ("TCP_KEEPINTVL", OptionMeaning::Is(&[30], "when a silent peer is asked cannot be set")),
    ("TCP_KEEPCNT", OptionMeaning::Is(&[4], "how often a silent peer is asked cannot be set")),
    (
        "TCP_KEEPINIT",
        OptionMeaning::Is(&[187], "how long a connection may take to open cannot be set"),
    ),
    ("TCP_MD5SIG", OptionMeaning::Is(&[], "segments are not signed (TCP_MD5SIG)")),
    ("TCP_REMOTE_UDP_ENCAPS_PORT", OptionMeaning::Is(&[0], "there is no TCP over UDP here")),
    ("TCP_USE_DDP", OptionMeaning::Kept),
    ("IP_TOS", OptionMeaning::Is(&[0], "the TOS of a connection cannot be set")),
    ("IP_TTL", OptionMeaning::Is(&[64], "the TTL of a connection cannot be set")),
    ("IPV6_TCLASS", OptionMeaning::Is(&[0], "the traffic class of a connection cannot be set")),
    ("IPV6_UNICAST_HOPS", OptionMeaning::Is(&[64], "the hop limit of a connection cannot be set")),
    ("IPV6_USE_MIN_MTU", OptionMeaning::Is(&[0], "the path's MTU is what it is found to be")),
    ("IP_MTU_DISCOVER", OptionMeaning::Is(&[1, 2], "the path's MTU is always found out")),
    ("SO_TIMESTAMPING", OptionMeaning::Is(&[0], "when packets left is not told (SO_TIMESTAMPING)")),
    (
        "SO_MAX_PACING_RATE",
        OptionMeaning::Is(&[-1, 0xffff_ffff], "connections are not paced by their users"),
    ),
    ("TCP_TX_DELAY", OptionMeaning::Is(&[0], "segments are not delayed")),
    ("TCP_FUNCTION_BLK", OptionMeaning::Is(&[], "there is one TCP stack (TCP_FUNCTION_BLK)")),
];

/// The congestion controls that a script may request. Before the first loss, the engine's window
/// grows like theirs.
const CONGESTION_CONTROLS: [&str; 3] = ["cubic", "reno", "newreno"];

impl Player {
    pub(super) fn set_option(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let Some(name) = option_name(arguments) else {
            return Ok(CallAttempt::Error("ENOPROTOOPT"));
        };
        let given = arguments.get(3);
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        if name == "SO_LINGER" {
            let part = |name| {
                given.and_then(|given| names::field(given, name)).and_then(value).unwrap_or(0)
            };
            socket.linger_zero = part("onoff") != 0 && part("linger") == 0;
            return Ok(CallAttempt::Value(0));
        }
        let Some(given) = given.and_then(value) else { return Ok(CallAttempt::Value(0)) };
        socket.options.insert(name.to_string(), given);
        if name == "TCP_USER_TIMEOUT" {
            self.set_user_timeout(number, given);
        }
        Ok(CallAttempt::Value(0))
    }

    /// Sets the user timeout of a connection, in milliseconds. Zero sets the default.
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
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let Some(name) = option_name(arguments) else {
            return Ok(CallAttempt::Error("ENOPROTOOPT"));
        };
        let expected = arguments.get(3);
        let Some(socket) = self.sockets.get(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        if name == "SO_ERROR" {
            return self.check_error(line, number, expected);
        }
        let is_buffer = OPTIONS
            .iter()
            .any(|(known, what)| *known == name && matches!(what, OptionMeaning::Buffer));
        if is_buffer {
            self.liberty(line, "the size of a socket's buffer is the kernel's");
            return Ok(CallAttempt::Value(0));
        }
        if name == "TCP_MAXSEG" {
            return Err(ScriptStop::not_applicable(
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
            Some(Expression::Any) | None => Ok(CallAttempt::Value(0)),
            Some(expected) if value(expected) == Some(is) => Ok(CallAttempt::Value(0)),
            Some(_)
                if matches!(
                    name,
                    "TCP_KEEPIDLE" | "TCP_KEEPINTVL" | "TCP_KEEPCNT" | "TCP_KEEPINIT"
                ) =>
            {
                Err(ScriptStop::not_applicable(line, "when a silent peer is asked cannot be set"))
            }
            Some(expected) => Err(ScriptStop::failed(line, format!("{name} = {expected:?}"), is)),
        }
    }

    /// Reads `SO_ERROR`, and compares it. The error of a connection is reported once.
    fn check_error(
        &mut self,
        line: usize,
        number: i64,
        expected: Option<&Expression>,
    ) -> Result<CallAttempt, ScriptStop> {
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
            return Ok(CallAttempt::Value(0));
        }
        let seen = error.unwrap_or("no error");
        Err(ScriptStop::failed(
            line,
            format!("the error {}", wanted.map_or("0".to_string(), shown)),
            seen,
        ))
    }

    /// `ioctl`: reads the number of readable bytes, or sets whether calls return at once.
    pub(super) fn device_control(
        &mut self,
        line: usize,
        arguments: &[Expression],
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, arguments)?;
        let name = names::names(arguments.get(1).unwrap_or(&Expression::Any))
            .first()
            .copied()
            .unwrap_or_default();
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        match name {
            "SIOCINQ" | "FIONREAD" => {
                let readable = match socket.kind {
                    Kind::SocketLine(at) => self
                        .lines
                        .get(at)
                        .map_or(0, |line| line.readable(&self.host, 1 << 24).len()),
                    _ => 0,
                };
                let readable = i64::try_from(readable).unwrap_or(i64::MAX);
                match arguments.get(2).and_then(value) {
                    Some(wanted) if wanted != readable => {
                        Err(ScriptStop::failed(line, format!("{wanted} bytes to read"), readable))
                    }
                    _ => Ok(CallAttempt::Value(0)),
                }
            }
            "FIONBIO" => {
                socket.nonblocking = arguments.get(2).and_then(value) != Some(0);
                Ok(CallAttempt::Value(0))
            }
            other => Err(ScriptStop::not_applicable(
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

/// The reason why setting an option makes a script not applicable; `None` if it does not.
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
        Some((_, OptionMeaning::Kept | OptionMeaning::Buffer)) => None,
        Some((_, OptionMeaning::Is(values, _)))
            if given.and_then(value).is_some_and(|given| values.contains(&given)) =>
        {
            None
        }
        Some((_, OptionMeaning::Is(_, reason))) => Some(reason.to_string()),
        None => Some(format!("what {name} does is not known")),
    }
}

/// The reason why reading an option makes a script not applicable; `None` if it does not.
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
