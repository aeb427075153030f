//! The time that a server takes for each step of a message, as seen on the tap interface: from the
//! last octet of the client's command to the reply.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use host::{Failure, hold};

use super::SINK;
use crate::beside::Side;
use crate::beside::mailboxes::address;
use crate::client::{Client, message};
use crate::statistics::median;

/// The name of each element of [`Timing::milliseconds`], in the order of the steps.
pub(super) const STEPS: [&str; 9] = [
    "SYN to SYN-ACK",
    "connection to greeting",
    "EHLO to 250",
    "MAIL to 250",
    "RCPT to 250",
    "DATA to 354",
    "message to 250",
    "QUIT to 221",
    "SYN to the last FIN",
];

/// The time for which tshark captures, without the time for each message.
const CAPTURE: Duration = Duration::from_secs(10);
/// The additional time for each message of a client.
const CAPTURE_FOR_MESSAGE: Duration = Duration::from_millis(500);
/// The time that tshark needs before it captures.
const BEGIN: Duration = Duration::from_secs(4);

/// The steps of a message.
pub(super) struct Timing {
    pub(super) milliseconds: [f64; STEPS.len()],
}

/// The load: each client sends this many messages of this many bytes, one after the other, each in
/// its own connection.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    pub(super) clients: u32,
    pub(super) messages: u32,
    pub(super) bytes: usize,
}

impl Sending {
    /// Messages of all clients.
    pub(super) fn count(self) -> u32 {
        self.clients * self.messages
    }

    /// Sends all messages. Each command waits for its reply.
    pub(super) fn send(self, side: Side) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            let client = || (0..self.messages).try_for_each(|_| send_one(side, self.bytes));
            let clients: Vec<_> = (0..self.clients).map(|_| scope.spawn(client)).collect();
            let broke = |_| Err(Failure::broke("a client panicked"));
            clients.into_iter().try_for_each(|client| client.join().unwrap_or_else(broke))
        })
    }
}

/// The settings of a capture for [`measure`]: the program, its working folder and its interface.
pub(super) struct StepCapture<'a> {
    pub(super) tshark: &'a Path,
    pub(super) folder: &'a Path,
    /// The interface that a guest's packets go through.
    pub(super) interface: &'a str,
}

/// Captures the packets of `sending`, and returns the median of each step over all messages.
pub(super) fn measure(
    capture: &StepCapture<'_>,
    side: Side,
    sending: Sending,
) -> Result<Timing, Failure> {
    let doing = "watching the tap with tshark";
    let span = CAPTURE + CAPTURE_FOR_MESSAGE * sending.messages;
    let mut tshark = hold::command(capture.tshark);
    tshark.args(["-n", "-l", "-i", capture.interface, "-f", "tcp port 25", "-a"]);
    tshark.arg(format!("duration:{}", span.as_secs()));
    tshark.args(["-T", "fields", "-E", "separator= "]);
    for field in [
        "tcp.stream",
        "frame.time_epoch",
        "tcp.srcport",
        "tcp.flags.syn",
        "tcp.flags.fin",
        "tcp.len",
    ] {
        tshark.args(["-e", field]);
    }
    let capturing = tshark
        .current_dir(capture.folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::io(doing))?;
    std::thread::sleep(BEGIN);
    sending.send(side)?;
    let output = capturing.wait_with_output().map_err(Failure::io(doing))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut streams: BTreeMap<u32, Vec<Segment>> = BTreeMap::new();
    for (stream, segment) in printed.lines().filter_map(Segment::parse) {
        streams.entry(stream).or_default().push(segment);
    }
    let all: Vec<_> = streams.values().filter_map(|segments| steps(segments)).collect();
    if all.len() < (sending.count() / 2) as usize {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(Failure::broke(format_args!(
            "{doing}: {} whole messages were seen; the output was\n{why}",
            all.len()
        )));
    }
    let of =
        |step: usize| median(all.iter().filter_map(|steps| steps.get(step).copied()).collect());
    Ok(Timing { milliseconds: std::array::from_fn(of) })
}

fn send_one(side: Side, bytes: usize) -> Result<(), Failure> {
    let mut client = Client::connect(SocketAddr::from((side.guest(), 25)), "220")?;
    client.command(b"EHLO client.test\r\n", "250")?;
    client.command(b"MAIL FROM:<bench@client.test>\r\n", "250")?;
    client.command(format!("RCPT TO:<{}>\r\n", address(SINK)).as_bytes(), "250")?;
    client.command(b"DATA\r\n", "354")?;
    client.command(&message(bytes), "250")?;
    client.command(b"QUIT\r\n", "221")
}

/// A TCP segment.
struct Segment {
    seconds: f64,
    is_servers: bool,
    is_syn: bool,
    is_fin: bool,
    octets: u32,
}

impl Segment {
    /// Parses one line of tshark. Also returns the number of the connection.
    fn parse(line: &str) -> Option<(u32, Segment)> {
        let fields: Vec<&str> = line.split(' ').collect();
        let [stream, seconds, port, syn, fin, octets] = fields.try_into().ok()?;
        let is_set = |flag: &str| flag == "1" || flag == "True";
        let segment = Segment {
            seconds: seconds.parse().ok()?,
            is_servers: port == "25",
            is_syn: is_set(syn),
            is_fin: is_set(fin),
            octets: octets.parse().ok()?,
        };
        Some((stream.parse().ok()?, segment))
    }
}

/// The steps of one connection, in milliseconds. None: the capture is incomplete, or a segment was
/// retransmitted.
fn steps(segments: &[Segment]) -> Option<[f64; STEPS.len()]> {
    let mut found = Vec::new();
    // The time of the client's last data, or of its connection.
    let mut asked = segments.first().filter(|first| first.is_syn && !first.is_servers)?.seconds;
    let (began, mut is_asked) = (asked, true);
    for segment in segments {
        let says_something = segment.is_syn || segment.octets > 0;
        match (segment.is_servers, says_something) {
            (true, true) if is_asked => {
                found.push(segment.seconds - asked);
                // The server's greeting comes without a command.
                (asked, is_asked) = (segment.seconds, segment.is_syn);
            }
            (false, true) => (asked, is_asked) = (segment.seconds, true),
            _ => {}
        }
    }
    found.push(segments.iter().rfind(|segment| segment.is_fin)?.seconds - began);
    let found: [f64; STEPS.len()] = found.try_into().ok()?;
    Some(found.map(|seconds| seconds * 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_from_the_clients_last_octet_to_the_answer() {
        let line = |ms: u32, port: u16, syn: u8, fin: u8, octets: u32| {
            format!("3 10.{ms:03} {port} {syn} {fin} {octets}")
        };
        let mut lines = vec![
            line(0, 4000, 1, 0, 0),
            line(1, 25, 1, 0, 0),
            line(1, 4000, 0, 0, 0),
            line(3, 25, 0, 0, 50),
        ];
        for step in 0..4 {
            lines.push(line(10 + step * 10, 4000, 0, 0, 20));
            lines.push(line(14 + step * 10, 25, 0, 0, 9));
        }
        // The message comes in two segments.
        lines.extend([
            line(50, 4000, 0, 0, 900),
            line(51, 4000, 0, 0, 100),
            line(52, 25, 0, 0, 0),
            line(58, 25, 0, 0, 9),
        ]);
        lines.extend([
            line(60, 4000, 0, 0, 6),
            line(61, 25, 0, 0, 9),
            line(61, 25, 0, 1, 0),
            line(70, 4000, 0, 1, 0),
        ]);
        let segments: Vec<Segment> =
            lines.iter().filter_map(|line| Segment::parse(line)).map(|(_, one)| one).collect();
        let found = steps(&segments).unwrap().map(|ms| ms.round());
        assert_eq!(found, [1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 7.0, 1.0, 70.0]);
        assert!(steps(&segments[1..]).is_none() && steps(&segments[..6]).is_none());
    }
}
