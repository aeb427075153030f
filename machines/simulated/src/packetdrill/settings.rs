//! The meaning of a script's shell commands, which are never executed. They set variables of the
//! kernel that the script was written for, or read its tables. A setting matches the engine's
//! behaviour, has no effect on a single connection, or makes the script not applicable.
//!
//! A variable that is not in [`VARIABLES`] makes a script not applicable, because its effect is
//! unknown.

use machine::Micros;

use super::compare::Offers;

/// The meaning of one command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum CommandMeaning {
    /// The command has no effect on a connection.
    Nothing,
    /// The script lets time pass.
    Wait(Micros),
    /// The script counts connections in a state, and expects this text in the count.
    Count { state: State, wanted: String },
}

/// The states that scripts count in kernel tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    SynReceived,
    TimeWait,
}

/// The values of a variable that match the engine's behaviour.
enum Wanted {
    /// Any value. The variable affects only windows, timers or memory.
    Any,
    /// One of these values. Another one makes the script not applicable for this reason.
    OneOf(&'static [&'static str], &'static str),
    /// Zero turns the feature off, any other value turns it on.
    Switch(Feature),
}

#[derive(Clone, Copy)]
enum Feature {
    WindowScale,
    Sack,
    Timestamps,
    Ecn,
}

/// The meanings of the simple commands in a command line, in order.
///
/// Errors: the reason why the script is not applicable.
pub(super) fn meaning(command: &str, offers: Offers) -> Result<Vec<CommandMeaning>, String> {
    let mut meanings = Vec::new();
    for simple in
        command.replace("\\\n", " ").replace("&&", ";").replace("||", ";").split([';', '\n'])
    {
        let words = words(simple);
        let Some(first) = words.first() else { continue };
        let program = first.rsplit('/').next().unwrap_or(first);
        meanings.push(match program {
            "sysctl" => assignments(words.get(1..).unwrap_or_default(), offers)?,
            "set_sysctls.py" => assignments(words.get(1..).unwrap_or_default(), offers)?,
            "sleep" | "usleep" => pause(program, words.get(1).map_or("", |span| span))?,
            "sockstat" | "netstat" => count(simple)?,
            // These commands clean up or restore kernel state that the engine does not have. The
            // table below handles their settings.
            "ip" if simple.contains("tcp_metrics") => CommandMeaning::Nothing,
            "tc" if simple.contains(" add ") && !simple.contains("limit") => {
                CommandMeaning::Nothing
            }
            "defaults.sh" | "true" | ":" | "echo" | "modprobe" | "nstat"
                if !simple.contains('|') =>
            {
                CommandMeaning::Nothing
            }
            _ if program.starts_with("sysctl_restore_") => CommandMeaning::Nothing,
            _ => {
                return Err(format!(
                    "`{program}` looks into a kernel, or changes one, that is not there"
                ));
            }
        });
    }
    Ok(meanings)
}

/// The words of a simple command, without quotes and redirections.
fn words(simple: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for c in simple.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            (_, c) => word.push(c),
        }
    }
    words.push(word);
    let is_redirection = |word: &String| {
        word.starts_with('>') || word.starts_with("2>") || word.starts_with("/dev/null")
    };
    words.retain(|word| !word.is_empty() && !is_redirection(word));
    words
}

fn assignments(words: &[String], offers: Offers) -> Result<CommandMeaning, String> {
    for word in words.iter().filter(|word| !word.starts_with('-')) {
        let Some((name, value)) = word.split_once('=') else { continue };
        let name = name.trim_start_matches("/proc/sys/").replace('/', ".");
        assignment(&name, value.trim(), offers)?;
    }
    Ok(CommandMeaning::Nothing)
}

fn assignment(name: &str, value: &str, offers: Offers) -> Result<(), String> {
    let Some((_, wanted)) = VARIABLES.iter().find(|(known, _)| *known == name) else {
        return Err(format!("what {name} changes is not known"));
    };
    match wanted {
        Wanted::Any => Ok(()),
        Wanted::OneOf(values, _) if values.contains(&value) => Ok(()),
        Wanted::OneOf(_, reason) => Err(format!("{name}={value}: {reason}")),
        Wanted::Switch(feature) => {
            let (is_offered, what) = match feature {
                Feature::WindowScale => (offers.window_scale, "window scaling"),
                Feature::Sack => (offers.sack, "selective acknowledgments"),
                Feature::Timestamps => (offers.timestamps, "timestamps"),
                Feature::Ecn => (offers.ecn, "ECN"),
            };
            let asks = value != "0";
            match (asks, is_offered) {
                (false, true) => Err(format!("{name}={value}: {what} cannot be turned off")),
                (true, false) | (true, true) | (false, false) => Ok(()),
            }
        }
    }
}

fn pause(program: &str, span: &str) -> Result<CommandMeaning, String> {
    let span: f64 = span.parse().map_err(|_| format!("{program} {span}: not a span of time"))?;
    let micros = if program == "sleep" { span * 1e6 } else { span };
    // The maximum is longer than any script.
    Ok(CommandMeaning::Wait(Micros(micros.clamp(0.0, 1e12) as u64)))
}

/// Whether a command requests a cookie in every handshake. By default the engine sends cookies only
/// when its table of handshakes is full.
pub(super) fn asks_for_cookies(command: &str) -> bool {
    ["tcp_syncookies=2", "syncookies_only=1"].iter().any(|assignment| command.contains(assignment))
}

/// The meaning of a command such as `sockstat … | grep -c STATE | grep N`.
fn count(simple: &str) -> Result<CommandMeaning, String> {
    let mut stages = simple.split('|').map(str::trim);
    let state = stages.find_map(|stage| stage.strip_prefix("grep -c "));
    let wanted = stages.find_map(|stage| stage.strip_prefix("grep "));
    let state = match state {
        Some("SYN_RCVD" | "SYN_RECV") => State::SynReceived,
        Some("TIME_WAIT") => State::TimeWait,
        _ => return Err("it looks into a kernel's tables for what is not counted here".to_string()),
    };
    Ok(CommandMeaning::Count { state, wanted: wanted.unwrap_or_default().to_string() })
}

/// The variables of Linux and FreeBSD that scripts set.
const VARIABLES: &[(&str, Wanted)] = &[
    // Linux: TCP features.
    ("net.ipv4.tcp_sack", Wanted::Switch(Feature::Sack)),
    ("net.ipv4.tcp_dsack", Wanted::Any),
    ("net.ipv4.tcp_timestamps", Wanted::Switch(Feature::Timestamps)),
    ("net.ipv4.tcp_window_scaling", Wanted::Switch(Feature::WindowScale)),
    ("net.ipv4.tcp_ecn", Wanted::Switch(Feature::Ecn)),
    ("net.ipv4.tcp_ecn_option", Wanted::Any),
    ("net.ipv4.tcp_ecn_fallback", Wanted::Any),
    ("net.ipv4.tcp_syncookies", Wanted::Any),
    ("net.ipv4.tcp_fastopen", Wanted::Any),
    ("net.ipv4.tcp_fastopen_key", Wanted::Any),
    ("net.ipv4.tcp_fastopen_blackhole_timeout_sec", Wanted::Any),
    (
        "net.ipv4.tcp_congestion_control",
        Wanted::OneOf(&["cubic", "reno"], "there is one congestion control"),
    ),
    // Linux: memory, pacing and timers.
    ("net.ipv4.tcp_rmem", Wanted::Any),
    ("net.ipv4.tcp_wmem", Wanted::Any),
    ("net.ipv4.tcp_mem", Wanted::Any),
    ("net.core.rmem_max", Wanted::Any),
    ("net.core.wmem_max", Wanted::Any),
    ("net.core.rmem_default", Wanted::Any),
    ("net.core.wmem_default", Wanted::Any),
    ("net.core.somaxconn", Wanted::Any),
    ("net.core.default_qdisc", Wanted::Any),
    ("net.core.high_order_alloc_disable", Wanted::Any),
    ("net.ipv4.tcp_moderate_rcvbuf", Wanted::Any),
    (
        "net.ipv4.tcp_shrink_window",
        Wanted::OneOf(&["0"], "a window that was named is never taken back"),
    ),
    ("net.ipv4.tcp_adv_win_scale", Wanted::Any),
    ("net.ipv4.tcp_app_win", Wanted::Any),
    ("net.ipv4.tcp_notsent_lowat", Wanted::Any),
    ("net.ipv4.tcp_limit_output_bytes", Wanted::Any),
    ("net.ipv4.tcp_autocorking", Wanted::Any),
    ("net.ipv4.tcp_min_tso_segs", Wanted::Any),
    ("net.ipv4.tcp_tso_win_divisor", Wanted::Any),
    ("net.ipv4.tcp_tso_rtt_log", Wanted::Any),
    ("net.ipv4.tcp_pacing_ss_ratio", Wanted::Any),
    ("net.ipv4.tcp_pacing_ca_ratio", Wanted::Any),
    ("net.ipv4.tcp_no_metrics_save", Wanted::Any),
    ("net.ipv4.tcp_slow_start_after_idle", Wanted::Any),
    ("net.ipv4.tcp_reordering", Wanted::OneOf(&["3"], "three duplicates tell of a loss")),
    ("net.ipv4.tcp_max_reordering", Wanted::Any),
    ("net.ipv4.tcp_early_retrans", Wanted::Any),
    ("net.ipv4.tcp_recovery", Wanted::Any),
    ("net.ipv4.tcp_frto", Wanted::Any),
    ("net.ipv4.tcp_fack", Wanted::Any),
    (
        "net.ipv4.tcp_thin_linear_timeouts",
        Wanted::OneOf(&["0"], "thin streams are not treated otherwise"),
    ),
    ("net.ipv4.tcp_retries1", Wanted::Any),
    ("net.ipv4.tcp_retries2", Wanted::Any),
    ("net.ipv4.tcp_orphan_retries", Wanted::Any),
    ("net.ipv4.tcp_syn_retries", Wanted::Any),
    ("net.ipv4.tcp_syn_linear_timeouts", Wanted::Any),
    ("net.ipv4.tcp_synack_retries", Wanted::Any),
    ("net.ipv4.tcp_keepalive_time", Wanted::Any),
    ("net.ipv4.tcp_keepalive_intvl", Wanted::Any),
    ("net.ipv4.tcp_keepalive_probes", Wanted::Any),
    ("net.ipv4.tcp_fin_timeout", Wanted::Any),
    ("net.ipv4.tcp_tw_reuse", Wanted::Any),
    ("net.ipv4.tcp_rfc1337", Wanted::Any),
    ("net.ipv4.tcp_invalid_ratelimit", Wanted::Any),
    ("net.ipv4.tcp_challenge_ack_limit", Wanted::Any),
    ("net.ipv4.tcp_abort_on_overflow", Wanted::Any),
    ("net.ipv4.tcp_max_syn_backlog", Wanted::Any),
    ("net.ipv4.tcp_min_snd_mss", Wanted::Any),
    ("net.ipv4.tcp_base_mss", Wanted::Any),
    (
        "net.ipv4.tcp_mtu_probing",
        Wanted::OneOf(&["0"], "the path is not probed for larger segments"),
    ),
    ("net.ipv4.tcp_stdurg", Wanted::Any),
    (
        "net.ipv4.ip_no_pmtu_disc",
        Wanted::OneOf(&["0"], "what a router says of its link is always heeded"),
    ),
    ("net.ipv4.ip_local_port_range", Wanted::Any),
    ("net.ipv4.ip_nonlocal_bind", Wanted::Any),
    // FreeBSD: TCP features.
    ("net.inet.tcp.rfc1323", Wanted::Switch(Feature::WindowScale)),
    ("net.inet.tcp.sack.enable", Wanted::Switch(Feature::Sack)),
    ("net.inet.tcp.ecn.enable", Wanted::OneOf(&["0", "2"], "ECN is not asked for by us")),
    ("net.inet.tcp.ecn.maxretries", Wanted::Any),
    ("net.inet.tcp.ecn.generalized", Wanted::Any),
    ("net.inet.tcp.syncookies", Wanted::Any),
    ("net.inet.tcp.syncookies_only", Wanted::Any),
    (
        "net.inet.tcp.insecure_rst",
        Wanted::OneOf(&["0"], "a reset counts only at exactly the next number (RFC 5961)"),
    ),
    ("net.inet.tcp.insecure_syn", Wanted::OneOf(&["0"], "a SYN ends no connection (RFC 5961)")),
    (
        "net.inet.tcp.insecure_ack",
        Wanted::OneOf(&["0"], "an old acknowledgment is not taken (RFC 5961)"),
    ),
    ("net.inet.tcp.blackhole", Wanted::OneOf(&["0"], "closed ports answer")),
    ("net.inet.tcp.drop_synfin", Wanted::OneOf(&["1"], "a SYN with a FIN opens nothing")),
    (
        "net.inet.tcp.tolerate_missing_ts",
        Wanted::OneOf(&["0"], "timestamps that were agreed on must be there (RFC 7323)"),
    ),
    (
        "net.inet.tcp.icmp_may_rst",
        Wanted::OneOf(&["0"], "no message from the network ends a connection (RFC 5927)"),
    ),
    (
        "net.inet.tcp.path_mtu_discovery",
        Wanted::OneOf(&["1"], "what a router says of its link is always heeded"),
    ),
    (
        "net.inet.tcp.pmtud_blackhole_detection",
        Wanted::OneOf(&["0"], "black holes are not searched for"),
    ),
    ("net.inet.tcp.pmtud_blackhole_mss", Wanted::Any),
    ("net.inet.tcp.v6pmtud_blackhole_mss", Wanted::Any),
    ("net.inet.tcp.udp_tunneling_port", Wanted::OneOf(&["0"], "there is no TCP over UDP here")),
    ("net.inet.tcp.udp_tunneling_overhead", Wanted::Any),
    ("net.inet.tcp.fastopen.client_enable", Wanted::Any),
    ("net.inet.tcp.fastopen.server_enable", Wanted::Any),
    // FreeBSD: memory and timers.
    ("kern.ipc.maxsockbuf", Wanted::Any),
    ("net.inet.tcp.recvspace", Wanted::Any),
    ("net.inet.tcp.sendspace", Wanted::Any),
    ("net.inet.tcp.recvbuf_auto", Wanted::Any),
    ("net.inet.tcp.sendbuf_auto", Wanted::Any),
    ("net.inet.tcp.hostcache.purgenow", Wanted::Any),
    ("net.inet.tcp.hostcache.enable", Wanted::Any),
    ("net.inet.tcp.functions_default", Wanted::Any),
    (
        "net.inet.tcp.cc.algorithm",
        Wanted::OneOf(&["cubic", "newreno"], "there is one congestion control"),
    ),
    (
        "net.inet.tcp.initcwnd_segments",
        Wanted::OneOf(&["10"], "the initial window is ten segments (RFC 6928)"),
    ),
    ("net.inet.tcp.abc_l_var", Wanted::Any),
    (
        "net.inet.tcp.rexmit_initial",
        Wanted::OneOf(&["1000"], "the first timeout is a second (RFC 6298)"),
    ),
    ("net.inet.tcp.rexmit_min", Wanted::Any),
    ("net.inet.tcp.rexmit_slop", Wanted::Any),
    (
        "net.inet.tcp.rexmit_drop_options",
        Wanted::OneOf(&["0"], "a repeated SYN has all its options"),
    ),
    ("net.inet.tcp.delacktime", Wanted::Any),
    ("net.inet.tcp.delayed_ack", Wanted::Any),
    ("net.inet.tcp.msl", Wanted::Any),
    ("net.inet.tcp.finwait2_timeout", Wanted::Any),
    ("net.inet.tcp.fast_finwait2_recycle", Wanted::Any),
    ("net.inet.tcp.nolocaltimewait", Wanted::Any),
    (
        "net.inet.tcp.keepinit",
        Wanted::OneOf(&["75000"], "the time that a connection may take to open cannot be set"),
    ),
    (
        "net.inet.tcp.keepidle",
        Wanted::OneOf(&["7200000"], "when a silent peer is asked cannot be set"),
    ),
    (
        "net.inet.tcp.keepintvl",
        Wanted::OneOf(&["75000"], "when a silent peer is asked cannot be set"),
    ),
    ("net.inet.tcp.keepcnt", Wanted::OneOf(&["8"], "when a silent peer is asked cannot be set")),
    ("net.inet.tcp.always_keepalive", Wanted::Any),
    ("net.inet.tcp.ack_war_timewindow", Wanted::Any),
    ("net.inet.tcp.ack_war_cnt", Wanted::Any),
    ("net.inet.tcp.mssdflt", Wanted::OneOf(&["536"], "a peer without an MSS takes 536 bytes")),
    ("net.inet.tcp.v6mssdflt", Wanted::OneOf(&["1220"], "a peer without an MSS takes 1220 bytes")),
    ("net.inet.tcp.minmss", Wanted::Any),
];
