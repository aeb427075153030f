//! Console lines about the network.

use alloc::string::String;
use core::fmt::Write;

use machine::{ConsoleLines, CoreId};
use net::{Counter, Ipv4Interface, Net};

/// Prints the new IPv4 address of the machine, or that it has none.
pub fn announce_address(address: Option<Ipv4Interface>, console: &mut ConsoleLines) {
    match address {
        Some(own) => console.print(format_args!("net: {}/{}", own.address, own.prefix_bits)),
        None => console.print(format_args!("net: no IPv4 address")),
    }
}

/// Prints the IPv6 addresses of the machine, after a change.
pub fn announce_ipv6_addresses(net: &Net, console: &mut ConsoleLines) {
    let mut text = String::new();
    for own in net.ipv6_addresses() {
        let separator = if text.is_empty() { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{}/{}", own.address, own.prefix_bits);
    }
    if text.is_empty() {
        text.push_str("no IPv6 address");
    }
    console.print(format_args!("net: {text}"));
}

/// Prints the core's part of the load, and how long frames from other cores waited.
pub fn announce_share(core: CoreId, net: &Net, console: &mut ConsoleLines) {
    let counters = net.counters();
    let (accepted, passed) = (counters.of(Counter::Accepted), counters.of(Counter::PassedIn));
    let each = counters.of(Counter::PassedInMicros) / passed.max(1);
    let most = counters.of(Counter::PassedInMicrosMax);
    let share = format_args!(
        "{accepted} connections, {passed} frames from other cores, on the way {each} us, {most} us at most"
    );
    console.print(format_args!("{core}: {share}"));
}
