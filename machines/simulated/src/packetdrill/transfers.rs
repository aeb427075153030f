//! Calls that read or write bytes. Each byte that is read is compared with the pattern in the
//! script's packets.

use super::attempt::CallAttempt;
use super::names::{self, MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC, MSG_WAITALL, value};
use super::player::Player;
use super::script::{Expression, SocketCall};
use super::sockets::{Kind, pattern};
use super::verdict::ScriptStop;

/// Flags of `send` that have no effect.
const SEND_FLAGS_WITHOUT_MEANING: [&str; 2] = ["MSG_NOSIGNAL", "MSG_DONTWAIT"];

impl Player {
    pub(super) fn receive(
        &mut self,
        line: usize,
        call: &SocketCall,
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, &call.arguments)?;
        let (most, flags) = wanted(call);
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        let blocks = !socket.nonblocking && flags & MSG_DONTWAIT == 0;
        let no_more = socket.options.contains_key("SHUT_RD");
        let Kind::SocketLine(at) = socket.kind else { return Ok(CallAttempt::Error("ENOTCONN")) };
        let Some(found) = self.lines.get_mut(at) else { return Ok(CallAttempt::Error("ENOTCONN")) };
        let bytes = found.readable(&self.host, most);
        let ended = found.peer_closed || found.over.is_some() || no_more;
        if !bytes.is_empty()
            && (bytes.len() == most || flags & MSG_WAITALL == 0 || ended || !blocks)
        {
            self.check_read(line, at, &bytes)?;
            if flags & MSG_PEEK == 0
                && let Some(found) = self.lines.get_mut(at)
            {
                found.take(&mut self.host, bytes.len());
            }
            return Ok(CallAttempt::Value(i64::try_from(bytes.len()).unwrap_or(i64::MAX)));
        }
        let Some(found) = self.lines.get_mut(at) else { return Ok(CallAttempt::Error("ENOTCONN")) };
        if let Some(error) = found.error.take() {
            return Ok(CallAttempt::Error(error));
        }
        Ok(match (ended || most == 0, blocks) {
            (true, _) => CallAttempt::Value(0),
            (false, _) if !found.connected && !blocks => CallAttempt::Error("EAGAIN"),
            (false, true) => CallAttempt::Blocks,
            (false, false) => CallAttempt::Error("EAGAIN"),
        })
    }

    fn check_read(&self, line: usize, at: usize, bytes: &[u8]) -> Result<(), ScriptStop> {
        let Some(found) = self.lines.get(at) else { return Ok(()) };
        let first = found.taken;
        match (0..).zip(bytes).position(|(step, byte)| *byte != pattern(first.wrapping_add(step))) {
            Some(wrong) => {
                let seen = format!(
                    "another byte at {}",
                    first.wrapping_add(u32::try_from(wrong).unwrap_or(0)).wrapping_add(1)
                );
                Err(ScriptStop::failed(line, "the bytes that were sent", seen))
            }
            None => Ok(()),
        }
    }

    pub(super) fn send(
        &mut self,
        line: usize,
        call: &SocketCall,
    ) -> Result<CallAttempt, ScriptStop> {
        let number = Self::number(line, &call.arguments)?;
        let (count, _) = wanted(call);
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(CallAttempt::Error("EBADF"));
        };
        let Kind::SocketLine(at) = socket.kind else {
            return Ok(CallAttempt::Error(if socket.kind == Kind::Fresh {
                "EPIPE"
            } else {
                "ENOTCONN"
            }));
        };
        let nonblocking = socket.nonblocking;
        let Some(found) = self.lines.get_mut(at) else { return Ok(CallAttempt::Error("ENOTCONN")) };
        if let Some(error) = found.error.take() {
            return Ok(CallAttempt::Error(error));
        }
        if found.over.is_some() || found.shut {
            return Ok(CallAttempt::Error("EPIPE"));
        }
        if !found.connected {
            return Ok(if nonblocking {
                CallAttempt::Error("EAGAIN")
            } else {
                CallAttempt::Blocks
            });
        }
        let Ok(more) = u32::try_from(count) else { return Ok(CallAttempt::Error("EINVAL")) };
        found.written = found.written.wrapping_add(more);
        found.push(&mut self.host);
        Ok(CallAttempt::Value(i64::from(more)))
    }
}

/// The number of bytes that a call requests, and its flags.
fn wanted(call: &SocketCall) -> (usize, i64) {
    let argument = |at: usize| call.arguments.get(at);
    let number = |at: usize| {
        argument(at).and_then(value).and_then(|value| usize::try_from(value).ok()).unwrap_or(0)
    };
    let flags = |at: usize| argument(at).and_then(value).unwrap_or(0);
    match call.name.as_str() {
        "readv" | "writev" => (argument(1).map_or(0, vectors), 0),
        "recvmsg" | "sendmsg" => {
            let vector = argument(1).and_then(|message| names::field(message, "msg_iov"));
            (vector.map_or(0, vectors), flags(2))
        }
        "sendfile" => (number(3), 0),
        "recv" | "recvfrom" | "send" | "sendto" => (number(2), flags(3)),
        _ => (number(2), 0),
    }
}

/// The sum of the lengths in a list of `{..., length}`.
fn vectors(expression: &Expression) -> usize {
    let Expression::List(all) = expression else { return 0 };
    let lengths = all.iter().map(|one| match one {
        Expression::Record(fields) => {
            fields.last().and_then(value).and_then(|bytes| usize::try_from(bytes).ok())
        }
        _ => None,
    });
    lengths.flatten().sum()
}

/// The reason why the flags of a call that sends or receives make a script not applicable; `None`
/// if they do not.
pub(super) fn flags_beyond(call: &SocketCall) -> Option<String> {
    let flags = match call.name.as_str() {
        "recv" | "recvfrom" | "send" | "sendto" => call.arguments.get(3),
        "recvmsg" | "sendmsg" => call.arguments.get(2),
        _ => None,
    }?;
    let sends = call.name.starts_with("send");
    names::names(flags)
        .into_iter()
        .find_map(|name| match name {
            "MSG_FASTOPEN" => Some("there is no TCP fast open here".to_string()),
            "MSG_ZEROCOPY" => Some("nothing is sent without a copy (MSG_ZEROCOPY)".to_string()),
            "MSG_OOB" => Some("there is no urgent data here".to_string()),
            "MSG_MORE" => Some("nothing is held back for more to come (MSG_MORE)".to_string()),
            "MSG_ERRQUEUE" => Some("there is no queue of errors".to_string()),
            "MSG_EOR" if sends => Some("records are not marked in a stream (MSG_EOR)".to_string()),
            name if sends && SEND_FLAGS_WITHOUT_MEANING.contains(&name) => None,
            name => {
                names::constant(name).is_none().then(|| format!("what {name} does is not known"))
            }
        })
        .or_else(|| {
            let known = MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC | MSG_WAITALL | 0x80 | 0x4000;
            value(flags)
                .filter(|bits| bits & !known != 0)
                .map(|bits| format!("what the flags {bits:#x} do is not known"))
        })
}
