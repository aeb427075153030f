//! The hosts outside both servers: a name server (NSD), which both servers ask, and hosts that
//! receive mail (Postfix's smtp-sink).

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use host::unpacked::{NAME_SERVER, SMTP_SINK};
use host::{Failure, Repository, Stop, hold};

use crate::beside::Side;
use crate::beside::mailboxes::address;
use crate::network::ip;
use crate::workplace::refuse_if_stopped;

const BUDGET: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_micros(500);
/// The highest number of connections that wait for smtp-sink.
const BACKLOG: &str = "1024";
/// The TTL of each record. It is long, so that a measurement looks up no record twice.
const TTL: u32 = 86_400;

/// An external domain with the host that receives its mail. Each server has one of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Destination {
    Fast,
    /// A second destination, as fast as [`Destination::Fast`].
    Other,
    Slow,
    /// No host answers there until the bench starts a sink.
    Down,
}

impl Destination {
    pub(super) const ALL: [Destination; 4] =
        [Destination::Fast, Destination::Other, Destination::Slow, Destination::Down];

    fn name(self) -> String {
        format!("{self:?}").to_ascii_lowercase()
    }

    /// The address of an account that both servers have. Both servers forward its mail to this
    /// destination.
    pub(super) fn account(self) -> String {
        address(&self.name())
    }

    fn domain(self, side: Side) -> String {
        format!("{}.{side:?}.test", self.name()).to_ascii_lowercase()
    }

    fn host(self, side: Side) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, side as u8, 11 + self as u8)
    }

    /// A mail address in the domain of this destination.
    pub(super) fn address(self, side: Side) -> String {
        format!("somebody@{}", self.domain(side))
    }
}

/// The address at which the server of `side` reaches the name server.
pub(super) fn name_server_of(side: Side) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, side as u8, 3)
}

/// The paths of the programs.
pub(super) struct Outside {
    sink: PathBuf,
    name_server: PathBuf,
}

impl Outside {
    pub(super) fn fetch(repository: &Repository, stop: &Stop) -> Result<Outside, Failure> {
        Ok(Outside {
            sink: SMTP_SINK.fetch(repository, stop)?,
            name_server: NAME_SERVER.fetch(repository, stop)?,
        })
    }

    /// Makes the hosts in this thread's network namespace, and starts their name server. Its files
    /// are in `folder`.
    pub(super) fn begin(&self, folder: &Path) -> Result<Names, Failure> {
        for side in [Side::Ours, Side::Peer] {
            let hosts = Destination::ALL.map(|destination| destination.host(side));
            for address in hosts.into_iter().chain([name_server_of(side)]) {
                ip(&format!("addr add {address}/32 dev lo"))?;
            }
        }
        Names::start(&self.name_server, folder)
    }

    /// Starts a sink at this destination. The sink takes `seconds` seconds for a message.
    pub(super) fn open(
        &self,
        destination: Destination,
        side: Side,
        seconds: u32,
    ) -> Result<Sink, Failure> {
        Sink::start(&self.sink, destination.host(side), seconds)
    }
}

/// The name server. It ends when dropped.
pub(super) struct Names(Child);

impl Names {
    fn start(program: &Path, folder: &Path) -> Result<Names, Failure> {
        let doing = "starting NSD";
        let mut settings = format!(
            "server:\n username: \"\"\n chroot: \"\"\n zonesdir: \"{0}\"\n database: \"\"\n pidfile: \"\"\n xfrdfile: \"{0}/xfrd\"\n zonelistfile: \"{0}/list\"\n xfrdir: \"{0}\"\n",
            folder.display()
        );
        let mut zone = format!(
            "$ORIGIN test.\n$TTL {TTL}\n@ IN SOA ns postmaster 1 3600 600 86400 {TTL}\n@ IN NS ns\nclient IN MX 10 client\n"
        );
        for side in [Side::Ours, Side::Peer] {
            settings.push_str(&format!(" ip-address: {}\n", name_server_of(side)));
            for destination in Destination::ALL {
                let (domain, host) = (destination.domain(side), destination.host(side));
                zone.push_str(&format!(
                    "{domain}. IN MX 10 mx.{domain}.\nmx.{domain}. IN A {host}\n"
                ));
            }
        }
        settings.push_str(
            "remote-control:\n control-enable: no\nzone:\n name: \"test\"\n zonefile: \"zone\"\n",
        );
        let [settings_path, zone_path, log_path] =
            ["nsd.conf", "zone", "nsd.log"].map(|name| folder.join(name));
        std::fs::write(&settings_path, settings).map_err(Failure::io(doing))?;
        std::fs::write(zone_path, zone).map_err(Failure::io(doing))?;
        let log = std::fs::File::create(&log_path).map_err(Failure::io(doing))?;
        let mut command = hold::command(program);
        command
            .arg("-d")
            .arg("-c")
            .arg(settings_path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let names = Names(command.spawn().map_err(Failure::io(doing))?);
        let (began, mut printed) = (Instant::now(), String::new());
        while began.elapsed() < BUDGET {
            printed = std::fs::read_to_string(&log_path).map_err(Failure::io(doing))?;
            if printed.contains("nsd started") {
                return Ok(names);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(Failure::broke(format_args!("{doing}: it said\n{printed}")))
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        hold::end(&mut self.0);
    }
}

/// A sink that takes mail. It ends when dropped.
pub(super) struct Sink {
    process: Child,
    taken: Arc<AtomicU32>,
}

impl Sink {
    fn start(program: &Path, host: Ipv4Addr, seconds: u32) -> Result<Sink, Failure> {
        let doing = "starting smtp-sink";
        let mut command = hold::command(program);
        command.args(["-c", "-u", "root"]);
        if seconds > 0 {
            command.args(["-w", &seconds.to_string()]);
        }
        command.arg(format!("{host}:25")).arg(BACKLOG);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut sink =
            Sink { process: command.spawn().map_err(Failure::io(doing))?, taken: Arc::default() };
        let output = sink.process.stdout.take().ok_or_else(|| Failure::broke(doing))?;
        let taken = Arc::clone(&sink.taken);
        // The thread ends with the process.
        std::thread::spawn(move || {
            for count in BufReader::new(output)
                .split(b'\r')
                .map_while(Result::ok)
                .filter_map(|printed| messages(&printed))
            {
                taken.store(count, Ordering::Relaxed);
            }
        });
        let began = Instant::now();
        while began.elapsed() < BUDGET {
            if TcpStream::connect(SocketAddr::from((host, 25))).is_ok() {
                return Ok(sink);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(Failure::broke(format_args!("{doing}: no host answers at {host}")))
    }

    /// The number of messages that the sink has received.
    pub(super) fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Waits until the sink has received this many messages.
    pub(super) fn wait_for(
        &self,
        messages: u32,
        budget: Duration,
        stop: &Stop,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        while self.taken() < messages {
            refuse_if_stopped(stop)?;
            if began.elapsed() > budget {
                let taken = self.taken();
                return Err(Failure::broke(format_args!(
                    "only {taken} of {messages} messages arrived in {} s",
                    budget.as_secs()
                )));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        hold::end(&mut self.process);
    }
}

/// Parses the number of messages that smtp-sink reports, as in `sess=1 quit=0 mesg=1`.
fn messages(printed: &[u8]) -> Option<u32> {
    let (_, count) = std::str::from_utf8(printed).ok()?.rsplit_once("mesg=")?;
    count.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_count_of_a_sink_is_parsed() {
        assert_eq!(messages(b"sess=12 quit=3 mesg=4711"), Some(4711));
        assert_eq!(messages(b""), None);
    }

    #[test]
    fn each_destination_has_its_own_host() {
        let hosts = Destination::ALL.map(|destination| destination.host(Side::Peer).octets());
        assert_eq!(hosts.map(|host| host[3]), [11, 12, 13, 14]);
        assert_eq!(Destination::Slow.address(Side::Ours), "somebody@slow.ours.test");
    }
}
