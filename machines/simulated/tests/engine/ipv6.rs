//! Messages over IPv6, to a machine that has an IPv4 and an IPv6 address.

use super::room::{CONFIGURATION, Room, usual_sizes};
use machine::Micros;
use simulated::MemoryDisk;
use smoltcp::wire::{IpAddress, Ipv6Address};

const SERVER: IpAddress = IpAddress::Ipv6(Ipv6Address::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));

/// A room with a machine that has an IPv4 and an IPv6 address, after both are confirmed as unique.
fn room() -> Room {
    let configuration = CONFIGURATION
        .replace("address = \"10.0.0.2/24\"", "address = [\"10.0.0.2/24\", \"2001:db8::2/64\"]")
        .replace("[\"10.0.0.0/24\"]", "[\"2001:db8::/64\"]");
    let mut room = Room::configured(1, MemoryDisk::blank(32 << 20), usual_sizes(), &configuration);
    room.until("the engine serves", |room| room.console_says("serving"));
    room.until("the address is ours", |room| room.console_says("2001:db8::2/64"));
    room
}

#[test]
fn a_message_over_ipv6_has_the_address_in_its_trace() {
    let mut room = room();
    let mut talk = room.connect_to(SERVER, 0, 25);
    assert!(room.smtp_reply(&mut talk).starts_with("220"));
    assert!(room.smtp(&mut talk, "EHLO client.test").starts_with("250"));
    assert!(room.smtp(&mut talk, "MAIL FROM:<sender@client.test>").starts_with("250"));
    assert!(
        room.smtp(&mut talk, "RCPT TO:<postmaster@[IPv6:2001:db8::2]>").starts_with("250"),
        "the address literal of the machine is accepted"
    );
    assert!(room.smtp(&mut talk, "DATA").starts_with("354"));
    room.send(&talk, b"Subject: six\r\n\r\nby the longer way\r\n.\r\n");
    assert!(room.smtp_reply(&mut talk).starts_with("250"));

    let mut reader = room.connect_to(SERVER, 0, 110);
    assert!(room.line(&mut reader).starts_with("+OK"));
    assert!(
        room.pop3(&mut reader, "USER ada").starts_with("+OK"),
        "a client in an allowed IPv6 network may log in"
    );
    assert!(room.pop3(&mut reader, "PASS lovelace").starts_with("+OK"));
    assert!(room.pop3(&mut reader, "RETR 1").starts_with("+OK"));
    let message = String::from_utf8(room.pop3_lines(&mut reader)).expect("text");
    assert!(message.contains("from client.test ([IPv6:2001:db8::1])"), "{message}");
    assert!(message.ends_with("by the longer way\r\n"));
}

#[test]
fn the_machine_has_the_same_addresses_after_a_power_cut() {
    let addresses = |room: &Room| {
        let line = room.machine.console.iter().find(|line| line.starts_with("net: fe80:")).cloned();
        line.expect("an address for the link")
    };
    let mut first = room();
    let before = addresses(&first);
    first.pass(Micros::from_secs(1));
    let disk = first.machine.disk.power_cut(&mut chance::Dice::new(7));
    let configuration =
        CONFIGURATION.replace("address = \"10.0.0.2/24\"", "address = [\"2001:db8::2/64\"]");
    let mut second = Room::configured(99, disk, usual_sizes(), &configuration);
    second.until("the address is ours", |room| room.console_says("2001:db8::2/64"));
    assert_eq!(addresses(&second), before);
}
