//! Tests that every form of the script language is parsed correctly.

use machine::Micros;

use super::super::parser::parse;
use super::super::script::{
    Ecn, Event, Expression, Flags, PacketBody, Quoted, Script, ScriptAction, ScriptPacket,
    SocketCall, TcpOption, TcpPacket, When,
};
use super::{established, failure, reason};
use crate::packetdrill::{Verdict, play};

fn read(text: &str) -> Script {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

fn event(text: &str) -> Event {
    read(&format!("{text}\n")).events.remove(0)
}

fn packet(text: &str) -> ScriptPacket {
    match event(text).action {
        ScriptAction::Inbound(packet) | ScriptAction::Outbound(packet) => packet,
        other => panic!("{other:?}"),
    }
}

fn tcp(text: &str) -> TcpPacket {
    match packet(&format!("0 > {text}")).body {
        PacketBody::Tcp(tcp) => tcp,
        other => panic!("{other:?}"),
    }
}

fn call(text: &str) -> SocketCall {
    match event(&format!("0 {text}")).action {
        ScriptAction::SocketCall(call) => call,
        other => panic!("{other:?}"),
    }
}

#[test]
fn times_are_read_in_every_form() {
    let when = |text: &str| event(&format!("{text} > . 1:1(0) ack 1")).when;
    assert_eq!(when("0"), When::At(Micros(0)));
    assert_eq!(when("1.5"), When::At(Micros(1_500_000)));
    assert_eq!(when("+.1"), When::After(Micros(100_000)));
    assert_eq!(when("+0"), When::After(Micros(0)));
    assert_eq!(when("0.5~0.7"), When::Between(Micros(500_000), Micros(700_000)));
    assert_eq!(when("+0.5~+0.7"), When::AfterBetween(Micros(500_000), Micros(700_000)));
    assert_eq!(when("*"), When::Anytime);
    assert_eq!(when("+0.000001"), When::After(Micros(1)));
    let blocking = call("...0.200 read(4, ..., 10) = 10");
    assert_eq!(blocking.returns, Some(Micros(200_000)));
    let blocking = event("0.100...0.200 read(4, ..., 10) = 10");
    assert_eq!(blocking.when, When::At(Micros(100_000)));
    assert!(
        parse("+.5~+.3 > . 1:1(0) ack 1").is_err() && parse("* < . 1:1(0) ack 1 win 1").is_err()
    );
    assert!(
        parse("+.1~+.2 close(3) = 0").is_err(),
        "only packets of ours may have a range of times"
    );
}

#[test]
fn flags_are_read_in_every_form() {
    for (text, bits) in [
        ("S", Flags::SYN),
        ("S.", Flags::SYN | Flags::ACK),
        ("F.", Flags::FIN | Flags::ACK),
        ("FP.", Flags::FIN | Flags::PSH | Flags::ACK),
        ("PF.", Flags::FIN | Flags::PSH | Flags::ACK),
        (".", Flags::ACK),
        ("-", 0),
        ("R", Flags::RST),
        ("SEW", Flags::SYN | Flags::ECE | Flags::CWR),
        ("SE.", Flags::SYN | Flags::ECE | Flags::ACK),
        ("PE.", Flags::PSH | Flags::ECE | Flags::ACK),
        ("SWA", Flags::SYN | Flags::CWR | Flags::AE),
        ("SA.", Flags::SYN | Flags::AE | Flags::ACK),
        ("U.", Flags::URG | Flags::ACK),
        (".5", Flags::ACK | Flags::AE | Flags::ECE),
        ("P.2", Flags::PSH | Flags::ACK | Flags::CWR),
    ] {
        assert_eq!(tcp(&format!("{text} 1:1(0)")).flags.bits, bits, "{text}");
    }
}

#[test]
fn numbers_windows_and_ports_are_read() {
    let segment = tcp("P. 1:1001(1000) ack 77 win 512 urg 9");
    assert_eq!((segment.sequence, segment.payload), (Some(1), 1000));
    assert_eq!(
        (segment.acknowledgment, segment.window, segment.urgent),
        (Some(77), Some(512), Some(9))
    );
    assert_eq!(tcp(". 4294967295:4294967295(0)").sequence, Some(u32::MAX));
    assert_eq!(tcp(". ...(10) ack 1").sequence, None);
    assert!(tcp("R. 5:5(0)! ack 1").absolute);
    assert_eq!(packet("0 > 8080 > 40000 . 1:1(0) ack 1").ports, Some((8080, 40_000)));
    assert!(
        parse("0 > . 1:1002(1000) ack 1").is_err(),
        "the end must be the start plus the length"
    );
    assert!(parse("0 > . 1:1(0) ack 1 win 70000").is_err());
}

#[test]
fn options_are_read_in_every_form() {
    let options = |text: &str| tcp(&format!("S. 0:0(0) ack 1 <{text}>")).options;
    assert_eq!(options("..."), None);
    assert_eq!(tcp("S. 0:0(0) ack 1").options, Some(vec![]));
    assert_eq!(
        options("mss 1460,nop,wscale 7,sackOK,eol").unwrap(),
        [
            TcpOption::Mss(1460),
            TcpOption::Nop,
            TcpOption::WindowScale(7),
            TcpOption::SackPermitted,
            TcpOption::End
        ]
    );
    assert_eq!(
        options("nop,nop,sack 1:1001 2001:3001").unwrap()[2],
        TcpOption::Sack(vec![(1, 1001), (2001, 3001)])
    );
    assert_eq!(
        options("TS val 100 ecr 200").unwrap(),
        [TcpOption::Timestamp { value: Some(100), echo: 200, absolute: false }]
    );
    assert_eq!(
        options("TS val ... ecr 7!").unwrap(),
        [TcpOption::Timestamp { value: None, echo: 7, absolute: true }]
    );
    for (text, kind, data) in [
        ("FO", 34, vec![]),
        ("FO 0a0b", 34, vec![0x0a, 0x0b]),
        ("FO 0102030405060708091011", 34, vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x11]),
        ("FOEXP 11", 254, vec![0xf9, 0x89, 0x11]),
        ("exp-FO 11", 254, vec![0xf9, 0x89, 0x11]),
        ("gen-77 beef", 77, vec![0xbe, 0xef]),
        ("exp-2a 01ff", 254, vec![0, 0x2a, 0x01, 0xff]),
        ("ECN e0b 1 ceb 2", 172, vec![0, 0, 1, 0, 0, 2]),
        ("ECN e1b 3", 174, vec![0, 0, 3]),
    ] {
        let found = options(text).unwrap();
        assert!(
            matches!(&found[0], TcpOption::Other { kind: k, data: d, .. } if (*k, d) == (kind, &data)),
            "{found:?}"
        );
    }
    assert!(parse("0 > . 1:1(0) ack 1 <frob 7>").is_err());
}

#[test]
fn ip_header_fields_are_read() {
    for (text, ecn) in [("[ect0]", 2), ("[ect1]", 1), ("[ce]", 3), ("(noecn)", 0)] {
        assert_eq!(
            packet(&format!("0 > {text} . 1:1(0) ack 1")).ip.ecn,
            Some(Ecn::Is(ecn)),
            "{text}"
        );
    }
    assert_eq!(packet("0 > [ect01] . 1:1(0) ack 1").ip.ecn, Some(Ecn::Capable));
    assert_eq!(packet("0 > [tos 0x20] . 1:1(0) ack 1").ip.tos, Some(0x20));
    assert_eq!(packet("0 > (ttl 5) . 1:1(0) ack 1").ip.ttl, Some(5));
    assert_eq!(packet("0 > [ect0, flowlabel 0x3] . 1:1(0) ack 1").ip.flow_label, Some(3));
    assert_eq!(packet("0 < gre: . 1:1(0) ack 1 win 1").wrapping, Some("GRE"));
    assert_eq!(
        packet("0 < ipv4 1.2.3.4 > 5.6.7.8: . 1:1(0) ack 1 win 1").wrapping,
        Some("IPv4 in IP")
    );
    assert_eq!(packet("0 < ipv6 fd::1 > fd::2: . 1:1(0) ack 1 win 1").wrapping, Some("IPv6 in IP"));
    assert_eq!(
        packet("0 < mpls (label 0, tc 0, [S], ttl 0): . 1:1(0) ack 1 win 1").wrapping,
        Some("MPLS")
    );
    assert_eq!(packet("0 > . 1:1(0) ack 1/udp(9899 > 9899)").wrapping, Some("UDP"));
}

#[test]
fn other_protocols_are_read_or_skipped() {
    assert_eq!(packet("0 > udp (100)").body, PacketBody::Udp(100));
    let PacketBody::Icmp(icmp) =
        packet("0 < icmp unreachable frag_needed mtu 1200 [1:1461(1460)]").body
    else {
        panic!()
    };
    assert_eq!((icmp.kind.as_str(), icmp.code.as_deref()), ("unreachable", Some("frag_needed")));
    assert_eq!((icmp.mtu, icmp.quoted), (Some(1200), Some(Quoted::Tcp(1, 1460))));
    let PacketBody::Icmp(icmp) = packet("0 < icmp packet_too_big mtu 1280 [udp (8)]").body else {
        panic!()
    };
    assert_eq!(icmp.quoted, Some(Quoted::Other("UDP")));
    let PacketBody::Icmp(icmp) = packet("0 > icmp echo_reply id 7").body else { panic!() };
    assert_eq!(icmp.identifier, Some(7));
    let script = read("0 < sctp: INIT[flgs=0, tag=1,\n  is=2];\n+0 close(3) = 0\n");
    assert_eq!(script.events.len(), 2);
}

#[test]
fn calls_and_their_arguments_are_read() {
    let send = call(
        "sendto(4, ..., 1000, MSG_NOSIGNAL|MSG_DONTWAIT, ..., ...) = -1 EAGAIN (Resource temporarily unavailable)",
    );
    assert_eq!((send.arguments.len(), send.error.as_deref()), (6, Some("EAGAIN")));
    assert_eq!(send.result, Expression::Integer(-1));
    assert_eq!(call("fcntl(3, F_GETFL) = 0x02 (flags O_RDWR)").result, Expression::Integer(2));
    let poll = call("poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, 0) = 1");
    let Expression::List(list) = &poll.arguments[0] else { panic!() };
    assert!(matches!(&list[0], Expression::Record(fields) if fields.len() == 3));
    call(
        "bind(3, {sa_family = AF_INET, sin_port = htons(8080), sin_addr = inet_addr(\"192.168.0.1\")}, ...) = 0",
    );
    call(
        "recvmsg(4, {msg_name(...)=..., msg_iov(2)=[{..., 10}, {..., 20}], msg_flags=MSG_EOR, msg_control=[]}, 0) = 30",
    );
    call("setsockopt(3, SOL_SOCKET, SO_LINGER, {onoff=1, linger=0}, 8) = 0");
    call("setsockopt(3, SOL_TCP, TCP_CONGESTION, \"cubic\", 5) = 0");
    call("write(4, \"GET \"  \"/\"..., 5) = 5");
    call("splice(4, NULL, 6, NULL, 99999, 0) = 10");
    call("epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN, ptr=4}) = 0");
    call(
        "connect(3, {sa_family=AF_INET6, sin6_port=htons(80), sin6_addr=inet_pton(\"::1\")}, 28) = 0",
    );
    assert!(parse("0 close(3)").is_err(), "a call without a result");
}

#[test]
fn comments_headers_defines_and_commands_are_read() {
    let script = read(
        "// a comment\n--tolerance_usecs=7000\n--ip_version=ipv4\n--local_ip=192.168.0.5\n--define=COUNT=10\n--strict_segments\n\
         /* one\n more */ `../common/defaults.sh`\n# a remark\n0 write(4, ..., COUNT) = COUNT\n+0 %{ print(tcpi_rtt) }%\n",
    );
    let names: Vec<&str> = script.options.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["tolerance_usecs", "ip_version", "local_ip", "define", "strict_segments"]);
    assert_eq!(script.options[2].line, 4);
    assert!(
        matches!(&script.events[0].action, ScriptAction::Command(command) if command == "../common/defaults.sh")
    );
    assert!(
        matches!(&script.events[1].action, ScriptAction::SocketCall(call) if call.result == Expression::Integer(10))
    );
}

#[test]
fn sections_of_undefined_symbols_are_skipped() {
    let script = read(
        "--define=A=1\n#ifdef A\n0 close(3) = 0\n#else\n0 close(4) = 0\n#endif\n#ifdef B\nwhat ever ( is\n#endif\n#define C 7\n+0 close(C) = 0\n+0 close(${C}) = 0\n",
    );
    let closed: Vec<&Expression> = script
        .events
        .iter()
        .map(|event| match &event.action {
            ScriptAction::SocketCall(call) => &call.arguments[0],
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(closed, [&Expression::Integer(3), &Expression::Integer(7), &Expression::Integer(7)]);
    assert!(
        parse("#ifdef A\n0 close(3) = 0\n").is_err() && parse("0 close(3) = 0\n#endif\n").is_err()
    );
}

#[test]
fn syntax_errors_fail_at_their_line() {
    let (line, seen) = failure(&play("0 close(3) = 0\n+0 > . 1:1(0 ack 1\n"));
    assert_eq!((line, seen.as_str()), (2, "`ack`"));
    assert_eq!(failure(&play("0 `never closed\n")).0, 1);
    assert_eq!(failure(&play("--no_such_option=1\n0 close(3) = 0\n")).0, 1);
    assert!(matches!(play("").verdict, Verdict::Passed), "a script without events passes");
}

#[test]
fn malformed_scripts_fail_without_a_panic() {
    let whole = format!(
        "{}+0 < . 1:101(100) ack 1 win 7 <nop,nop,TS val 1 ecr 2>\n+0 %{{ x }}%\n",
        super::ESTABLISHED
    );
    for end in 0..whole.len() {
        play(&whole[..end]);
        play(&format!("{}\u{1}{}", &whole[..end], &whole[end..]));
    }
}

#[test]
fn unsupported_features_make_a_script_not_applicable() {
    for (line, what) in [
        ("+0 sendto(4, ..., 10, MSG_OOB, ..., ...) = 10", "urgent"),
        ("+0 sendto(4, ..., 10, MSG_FASTOPEN, ..., ...) = 10", "fast open"),
        ("+0 sendto(4, ..., 10, MSG_ZEROCOPY, ..., ...) = 10", "MSG_ZEROCOPY"),
        ("+0 sendto(4, ..., 10, MSG_MORE, ..., ...) = 10", "MSG_MORE"),
        ("+0 setsockopt(4, SOL_TCP, TCP_CORK, [1], 4) = 0", "TCP_CORK"),
        ("+0 setsockopt(4, SOL_TCP, TCP_NODELAY, [0], 4) = 0", "Nagle"),
        ("+0 setsockopt(4, SOL_TCP, TCP_MD5SIG, [0], 4) = 0", "TCP_MD5SIG"),
        ("+0 setsockopt(4, SOL_TCP, TCP_NO_SUCH_THING, [0], 4) = 0", "TCP_NO_SUCH_THING"),
        ("+0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 5", "other than TCP"),
        ("+0 `sysctl -w net.inet.tcp.insecure_rst=1`", "RFC 5961"),
        ("+0 `sysctl -w net.no.such.thing=1`", "net.no.such.thing"),
        ("+0 `rm -rf /`", "rm"),
        ("+0 %{ assert tcpi_snd_cwnd == 10 }%", "tcpi_snd_cwnd"),
        ("+0 < U. 1:11(10) ack 1 win 100 urg 5", "urgent"),
        ("+0 < gre: . 1:1(0) ack 1 win 1", "GRE"),
        ("+0 < S 0:0(0) win 1 <FO 1122>", "fast open"),
        ("+0 splice(4, NULL, 6, NULL, 99999, 0) = 10", "splice"),
    ] {
        let reason = reason(&established(line));
        assert!(reason.contains(what), "{line}: {reason}");
    }
    assert!(reason(&play("--udp_encapsulation=tcp\n0 close(3) = 0\n")).contains("UDP"));
    assert!(reason(&play("0 > S 0:0(0) <mss MSS>\n")).contains("MSS is not defined"));
}
