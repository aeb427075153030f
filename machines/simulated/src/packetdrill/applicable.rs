//! Checks, before a script begins, whether the script needs a feature that the engine lacks.
//!
//! The check reads only the events of the script, and knows nothing of the subject that the script
//! tests.

use super::compare::{Offers, ScriptTerms};
use super::script::{
    Ecn, Event, Flags, PacketBody, Script, ScriptAction, ScriptPacket, SocketCall, TcpOption,
};
use super::verdict::ScriptStop;
use super::{socket_options, transfers};

/// Checks the events of a script, in order.
pub(super) fn check(script: &Script, terms: ScriptTerms) -> Result<(), ScriptStop> {
    for event in &script.events {
        if let Some(reason) = reason_of(event, terms) {
            return Err(ScriptStop::not_applicable(event.line, reason));
        }
    }
    Ok(())
}

/// The features that the engine offers and the script agrees to. A script agrees to a feature if
/// one of its SYNs offers the feature, and to all features if it lets us send the SYN.
pub(super) fn agreed(script: &Script, offers: Offers) -> Offers {
    let mut agreed = Offers::default();
    for event in &script.events {
        match &event.action {
            ScriptAction::SocketCall(call) if call.name == "connect" => return offers,
            ScriptAction::Inbound(ScriptPacket { body: PacketBody::Tcp(tcp), .. })
                if tcp.flags.has(Flags::SYN) =>
            {
                let has = |is: fn(&TcpOption) -> bool| tcp.options.iter().flatten().any(is);
                agreed.window_scale |= offers.window_scale
                    && has(|option| matches!(option, TcpOption::WindowScale(_)));
                agreed.sack |=
                    offers.sack && has(|option| matches!(option, TcpOption::SackPermitted));
                agreed.timestamps |= offers.timestamps
                    && has(|option| matches!(option, TcpOption::Timestamp { .. }));
                agreed.ecn |= offers.ecn && tcp.flags.has(Flags::ECE | Flags::CWR);
            }
            _ => {}
        }
    }
    agreed
}

fn reason_of(event: &Event, terms: ScriptTerms) -> Option<String> {
    match &event.action {
        ScriptAction::Inbound(packet) | ScriptAction::Outbound(packet) => {
            packet_beyond(packet, terms.offers)
        }
        ScriptAction::SocketCall(call) => call_beyond(call),
        ScriptAction::Command(command) => super::settings::meaning(command, terms.agreed).err(),
        ScriptAction::Code(code) => super::code::beyond(code),
    }
}

fn packet_beyond(packet: &ScriptPacket, offers: Offers) -> Option<String> {
    if let Some(wrapping) = packet.wrapping {
        return Some(format!("there is no {wrapping} here"));
    }
    let tcp = match &packet.body {
        PacketBody::Tcp(tcp) => tcp,
        PacketBody::Foreign(protocol) => return Some(format!("there is no {protocol} here")),
        _ => return None,
    };
    if tcp.flags.has(Flags::URG) || tcp.urgent.is_some_and(|pointer| pointer > 0) {
        return Some("there is no urgent data here".to_string());
    }
    if tcp.flags.has(Flags::AE) {
        return Some("there is no accurate ECN here".to_string());
    }
    if packet.ip.flow_label.is_some_and(|label| label > 0) {
        return Some("flow labels are not chosen".to_string());
    }
    if !offers.ecn && matches!(packet.ip.ecn, Some(Ecn::Capable | Ecn::Is(1..))) {
        return Some("the engine does not speak ECN".to_string());
    }
    tcp.options.iter().flatten().find_map(|option| match option {
        TcpOption::Other { name, .. } if name.contains("FO") => {
            Some("there is no TCP fast open here".to_string())
        }
        TcpOption::Other { name, .. } if name.contains("ECN") => {
            Some("there is no accurate ECN here".to_string())
        }
        TcpOption::Other { name, .. } if name == "md5" => {
            Some("segments are not signed (MD5)".to_string())
        }
        _ => None,
    })
}

fn call_beyond(call: &SocketCall) -> Option<String> {
    match call.name.as_str() {
        "setsockopt" => socket_options::setting_beyond(&call.arguments),
        "getsockopt" => socket_options::asking_beyond(&call.arguments),
        _ => transfers::flags_beyond(call),
    }
}
