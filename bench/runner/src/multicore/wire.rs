//! Measures a load on the wire, as the paper does: captures frames at the tap interface, with their
//! times.
//!
//! `tcpdump` captures the frames. Each connection carries one request. A request lasts from its SYN
//! to its client's FIN.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use host::{Failure, hold};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::at_tap::INTERFACE;

/// The captured bytes of each frame: enough for the longest Ethernet, IPv4 and TCP headers.
const CAPTURED_BYTES: &str = "--snapshot-length=134";
/// The longest time that a captured frame waits in the kernel, which passes frames to `tcpdump` in
/// blocks.
const HANDOVER_DELAY: Duration = Duration::from_millis(1_200);
/// The first bytes of a file of `tcpdump`: nanosecond times, fields in this processor's byte order.
const MAGIC: [u8; 4] = 0xA1B2_3C4D_u32.to_le_bytes();
const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;

/// A running capture.
pub(super) struct FrameCapture {
    tcpdump: Child,
    printed: BufReader<std::process::ChildStderr>,
    file: PathBuf,
}

/// The results of a capture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Seen {
    pub(super) requests: usize,
    /// The seconds from the first SYN to the last frame.
    pub(super) seconds: f64,
    pub(super) requests_per_second: f64,
    /// The time from a SYN to the SYN-ACK.
    pub(super) connection: Span,
    /// The time from a request to the first byte of its response.
    pub(super) first_response: Span,
    /// The time from a request to the FIN of its client. The paper calls it the stay of a request
    /// in the list.
    pub(super) stay: Span,
    /// The highest number of simultaneous requests.
    pub(super) most_at_once: usize,
}

/// A duration in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Span {
    pub(super) mean_ms: f64,
    pub(super) most_ms: f64,
}

impl FrameCapture {
    /// Starts the capture. Call this in the network namespace of the interface. `file`: the file
    /// for the captured frames.
    pub(super) fn begin(tcpdump: &Path, port: u16, file: PathBuf) -> Result<FrameCapture, Failure> {
        let doing = "running tcpdump";
        let mut command = hold::command(tcpdump);
        command.args([
            "-i",
            INTERFACE,
            CAPTURED_BYTES,
            "--time-stamp-precision=nano",
            "-B",
            "65536",
            "-Z",
            "root",
            "-w",
        ]);
        command.arg(&file).arg(format!("tcp port {port}"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut tcpdump = command.spawn().map_err(Failure::io(doing))?;
        let printed = tcpdump.stderr.take().ok_or_else(|| Failure::broke(doing))?;
        let mut capture = FrameCapture { tcpdump, printed: BufReader::new(printed), file };
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            if capture.printed.read_line(&mut line).map_err(Failure::io(doing))? == 0 {
                return Err(Failure::broke("tcpdump ended before it began"));
            }
        }
        Ok(capture)
    }

    /// Ends the capture. Errors: tcpdump missed frames, or the capture contains incomplete
    /// requests.
    pub(super) fn end(mut self) -> Result<Seen, Failure> {
        let doing = "ending tcpdump";
        std::thread::sleep(HANDOVER_DELAY);
        let id = i32::try_from(self.tcpdump.id()).map_err(Failure::broke)?;
        kill(Pid::from_raw(id), Signal::SIGINT)
            .map_err(|error| Failure::io(doing)(error.into()))?;
        let mut printed = String::new();
        self.printed.read_to_string(&mut printed).map_err(Failure::io(doing))?;
        self.tcpdump.wait().map_err(Failure::io(doing))?;
        if !printed.contains("\n0 packets dropped by kernel") {
            return Err(Failure::broke(format_args!(
                "frames were missed; tcpdump said\n{printed}"
            )));
        }
        let caught = std::fs::read(&self.file).map_err(Failure::io("reading what was caught"))?;
        std::fs::remove_file(&self.file).map_err(Failure::io("removing what was caught"))?;
        seen(&caught).ok_or_else(|| Failure::broke("what was caught are not whole requests"))
    }
}

impl Drop for FrameCapture {
    fn drop(&mut self) {
        hold::kill_group(&self.tcpdump);
        // The process was killed or has ended. `wait` removes the zombie.
        let _ = self.tcpdump.wait();
    }
}

/// The fields of a frame that show the state of its connection.
#[derive(Clone, Copy, Debug)]
struct Segment {
    at_ns: u64,
    /// The client's port.
    port: u16,
    from_client: bool,
    opens: bool,
    ends: bool,
    has_payload: bool,
}

/// The times of the first events of a connection, in nanoseconds.
#[derive(Clone, Copy, Default)]
struct Connection {
    syn: Option<u64>,
    answered: Option<u64>,
    request: Option<u64>,
    response: Option<u64>,
    end: Option<u64>,
}

/// None if a connection is incomplete, or if there is no connection.
fn seen(file: &[u8]) -> Option<Seen> {
    let segments = segments(file)?;
    let connections = connections(&segments);
    let (first, last) = (segments.first()?.at_ns, segments.last()?.at_ns);
    let span = |from: fn(&Connection) -> Option<u64>, to: fn(&Connection) -> Option<u64>| {
        let spans = connections.iter().map(|one| Some(to(one)?.saturating_sub(from(one)?)));
        Some(Span::of(&spans.collect::<Option<Vec<u64>>>()?))
    };
    let mut begun: Vec<u64> = connections.iter().filter_map(|one| one.request).collect();
    begun.sort_unstable();
    let asking_ns = begun.last()?.saturating_sub(*begun.first()?).max(1);
    Some(Seen {
        requests: connections.len(),
        seconds: (last - first) as f64 / 1e9,
        requests_per_second: (begun.len() - 1) as f64 * 1e9 / asking_ns as f64,
        connection: span(|one| one.syn, |one| one.answered)?,
        first_response: span(|one| one.request, |one| one.response)?,
        stay: span(|one| one.request, |one| one.end)?,
        most_at_once: most_at_once(&connections),
    })
}

impl Span {
    fn of(spans_ns: &[u64]) -> Span {
        let sum: u64 = spans_ns.iter().sum();
        let most = spans_ns.iter().max().copied().unwrap_or(0);
        Span {
            mean_ms: sum as f64 / spans_ns.len().max(1) as f64 / 1e6,
            most_ms: most as f64 / 1e6,
        }
    }
}

/// A reused port begins a new connection.
fn connections(segments: &[Segment]) -> Vec<Connection> {
    let mut at_port: BTreeMap<u16, Connection> = BTreeMap::new();
    let mut done = Vec::new();
    for segment in segments {
        let at = Some(segment.at_ns);
        if segment.from_client
            && segment.opens
            && at_port.get(&segment.port).is_some_and(|one| one.end.is_some())
        {
            done.extend(at_port.remove(&segment.port));
        }
        let one = at_port.entry(segment.port).or_default();
        match (segment.from_client, segment.opens) {
            (true, true) => one.syn = one.syn.or(at),
            (false, true) => one.answered = one.answered.or(at),
            (true, false) if segment.has_payload => one.request = one.request.or(at),
            (false, false) if segment.has_payload => one.response = one.response.or(at),
            _ => {}
        }
        if segment.from_client && segment.ends {
            one.end = one.end.or(at);
        }
    }
    done.extend(at_port.into_values());
    done
}

fn most_at_once(connections: &[Connection]) -> usize {
    let begun = connections.iter().filter_map(|one| one.request.map(|at| (at, 1)));
    let ended = connections.iter().filter_map(|one| one.end.map(|at| (at, -1)));
    let mut changes: Vec<(u64, i64)> = begun.chain(ended).collect();
    changes.sort_unstable();
    let counts = changes.iter().scan(0, |now, (_, change)| {
        *now += change;
        Some(*now)
    });
    usize::try_from(counts.max().unwrap_or(0)).unwrap_or(0)
}

/// None if the file is not a file of `tcpdump`, or ends within a frame.
fn segments(file: &[u8]) -> Option<Vec<Segment>> {
    let mut rest = file.strip_prefix(&MAGIC)?.get(FILE_HEADER_BYTES - MAGIC.len()..)?;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (header, frames) = rest.split_at_checked(RECORD_HEADER_BYTES)?;
        let field = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
        let at_ns = u64::from(field(0)?) * 1_000_000_000 + u64::from(field(4)?);
        let (frame, others) = frames.split_at_checked(field(8)? as usize)?;
        segments.extend(segment(at_ns, frame));
        rest = others;
    }
    Some(segments)
}

/// None if the frame is not TCP over IPv4.
fn segment(at_ns: u64, frame: &[u8]) -> Option<Segment> {
    let ip = frame.get(14..)?;
    let ip_header = usize::from(ip.first()? & 0x0F) * 4;
    let total = usize::from(u16::from_be_bytes(*ip.get(2..)?.first_chunk()?));
    let tcp = ip.get(ip_header..)?;
    let &[a, b, c, d, _, _, _, _, _, _, _, _, offset, flags] = tcp.first_chunk()?;
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    // Services have low ports, and clients have high ports.
    let from_client = from > to;
    Some(Segment {
        at_ns,
        port: from.max(to),
        from_client,
        opens: flags & 0x02 != 0,
        ends: flags & 0x01 != 0,
        has_payload: total > ip_header + usize::from(offset >> 4) * 4,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: u8 = 0x02;
    const FIN: u8 = 0x11;
    const ACK: u8 = 0x10;

    /// A frame at this time in milliseconds.
    fn record(at_ms: u32, ports: (u16, u16), flags: u8, payload: u16) -> Vec<u8> {
        let mut frame = vec![0; 14];
        frame.extend([0x45, 0]);
        frame.extend((20 + 32 + payload).to_be_bytes());
        frame.extend([0; 16]);
        frame.extend(ports.0.to_be_bytes());
        frame.extend(ports.1.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x80, flags]);
        frame.extend([0; 18]);
        let mut record: Vec<u8> =
            [7, at_ms * 1_000_000, frame.len() as u32, 9_999].map(u32::to_le_bytes).concat();
        record.extend(frame);
        record
    }

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([0; FILE_HEADER_BYTES - 4]);
        file.extend(records.concat());
        file
    }

    /// A request that begins at this time in milliseconds, and lasts for `stay`.
    fn request(port: u16, at: u32, stay: u32) -> Vec<Vec<u8>> {
        let (there, back) = ((port, 80), (80, port));
        vec![
            record(at, there, SYN, 0),
            record(at + 1, back, SYN | ACK, 0),
            record(at + 1, there, ACK, 0),
            record(at + 2, there, ACK, 100),
            record(at + 5, back, ACK, 4_000),
            record(at + 2 + stay, there, FIN, 0),
            record(at + 3 + stay, back, FIN, 0),
            record(at + 3 + stay, there, ACK, 0),
        ]
    }

    #[test]
    fn request_times_are_read_from_captured_frames() {
        let mut records =
            [request(5_000, 0, 10), request(5_001, 4, 20), request(5_002, 100, 4)].concat();
        records.sort_by_key(|record| u32::from_le_bytes(*record[4..].first_chunk().unwrap()));
        let seen = seen(&file(&records)).unwrap();
        assert_eq!((seen.requests, seen.most_at_once), (3, 2));
        assert_eq!(
            (seen.connection, seen.first_response),
            (Span::of(&[1_000_000]), Span::of(&[3_000_000]))
        );
        assert_eq!((seen.stay.mean_ms, seen.stay.most_ms), (34.0 / 3.0, 20.0));
        assert_eq!((seen.seconds, seen.requests_per_second), (0.107, 20.0));
    }

    #[test]
    fn reused_port_is_a_new_request_and_repeated_syn_is_not() {
        let again = record(1, (5_000, 80), SYN, 0);
        let records =
            [vec![again.clone(), again], request(5_000, 3, 5), request(5_000, 50, 5)].concat();
        let seen = seen(&file(&records)).unwrap();
        assert_eq!((seen.requests, seen.connection.most_ms), (2, 3.0));
    }

    #[test]
    fn half_a_request_is_not_measured() {
        assert!(seen(&file(&request(5_000, 0, 5)[..4])).is_none());
        assert!(seen(&file(&[])).is_none());
        assert!(seen(b"no such file").is_none());
    }
}
