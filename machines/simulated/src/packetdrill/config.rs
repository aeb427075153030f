//! The header lines of a script: those with settings, those without effect, and those that make the
//! script not applicable.

use std::net::{IpAddr, Ipv4Addr};

use machine::Micros;

use super::script::{HeaderLine, Script};
use super::verdict::{ScriptStop, Verdict};

/// The settings of the header lines, with packetdrill's defaults.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Config {
    pub(super) own: IpAddr,
    pub(super) peer: IpAddr,
    /// The MTU in bytes.
    pub(super) mtu: u16,
    /// The port of a `bind` without an address, and the port of a `connect` without an address.
    pub(super) bind_port: u16,
    pub(super) connect_port: u16,
    pub(super) tolerance: Micros,
    /// A second tolerance, in hundredths of a percent of the time since the previous event. The
    /// larger one of this and `tolerance` counts.
    pub(super) tolerance_share: u64,
    /// A wrong result of a call does not end the script.
    pub(super) calls_may_fail: bool,
    /// A packet that differs does not end the script.
    pub(super) packets_may_differ: bool,
    /// Each segment of the script must be one segment of ours, not several joined ones.
    pub(super) strict_segments: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            own: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
            peer: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            mtu: 1500,
            bind_port: 8080,
            connect_port: 8080,
            tolerance: Micros(4_000),
            tolerance_share: 1_250,
            calls_may_fail: false,
            packets_may_differ: false,
            strict_segments: false,
        }
    }
}

/// Header lines that control how packetdrill works on a real kernel. They have no effect.
const WITHOUT_MEANING: [&str; 24] = [
    "verbose",
    "debug",
    "dry_run",
    "define",
    "netmask_ip",
    "gateway_ip",
    "local_ipv4_ip",
    "speed",
    "mss",
    "tcp_ts_tick_usecs",
    "tcp_ts_ecr_scaled",
    "no_cleanup",
    "persistent_tun_dev",
    "tun_dev",
    "init_scripts",
    "code_command",
    "code_format",
    "code_sockopt",
    "send_omit_free",
    "psp_udp_port",
    "so_flags",
    "prefix",
    "local_linklocal_ip",
    "tcp_md5_secret",
];

impl Config {
    /// Parses the header lines of a script.
    pub(super) fn of(script: &Script) -> Result<Config, ScriptStop> {
        let mut config = Config::default();
        let ipv6 = script.options.iter().find(|line| line.value.as_deref() == Some("ipv6"));
        if ipv6.is_some_and(|line| line.name == "ip_version") {
            config.own = IpAddr::V6([0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1].into());
            config.peer = IpAddr::V6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into());
        }
        for line in &script.options {
            config.learn(line)?;
        }
        Ok(config)
    }

    fn learn(&mut self, line: &HeaderLine) -> Result<(), ScriptStop> {
        let value = line.value.as_deref().unwrap_or_default();
        match line.name.as_str() {
            "ip_version" => self.learn_version(line, value)?,
            "local_ip" => self.own = address(line, value)?,
            "remote_ip" => self.peer = address(line, value)?,
            "mtu" => self.mtu = number(line, value)?,
            "bind_port" => self.bind_port = number(line, value)?,
            "connect_port" => self.connect_port = number(line, value)?,
            "tolerance_usecs" => self.tolerance = Micros(number(line, value)?),
            "tolerance_percent" => {
                let percent: f64 = number(line, value)?;
                // The percentage is between 0 and 100, so the hundredths fit.
                self.tolerance_share = (percent.clamp(0.0, 100.0) * 100.0) as u64;
            }
            "non_fatal" => {
                self.calls_may_fail |= value.contains("syscall");
                self.packets_may_differ |= value.contains("packet");
            }
            "strict_segments" => self.strict_segments = true,
            "udp_encapsulation" => {
                return Err(ScriptStop::not_applicable(line.line, "there is no TCP over UDP here"));
            }
            name if name.starts_with("wire_") || name.starts_with("so_") => {
                return Err(ScriptStop::not_applicable(
                    line.line,
                    format!("--{name} is about packetdrill on two machines"),
                ));
            }
            name if WITHOUT_MEANING.contains(&name) => {}
            name => {
                return Err(ScriptStop(Verdict::failed(
                    line.line,
                    "an option that packetdrill has",
                    format!("--{name}"),
                )));
            }
        }
        Ok(())
    }

    fn learn_version(&mut self, line: &HeaderLine, value: &str) -> Result<(), ScriptStop> {
        match value {
            // With mapped addresses the packets are IPv4.
            "ipv4" | "ipv4-mapped-ipv6" | "ipv4_mapped_ipv6" | "ipv6" => Ok(()),
            _ => {
                Err(ScriptStop(Verdict::failed(line.line, "ipv4, ipv6 or ipv4-mapped-ipv6", value)))
            }
        }
    }
}

fn number<T: std::str::FromStr>(line: &HeaderLine, value: &str) -> Result<T, ScriptStop> {
    value.parse().map_err(|_| {
        ScriptStop(Verdict::failed(line.line, format!("a number for --{}", line.name), value))
    })
}

fn address(line: &HeaderLine, value: &str) -> Result<IpAddr, ScriptStop> {
    value
        .trim_matches('"')
        .parse()
        .map_err(|_| ScriptStop(Verdict::failed(line.line, "an IP address", value)))
}
