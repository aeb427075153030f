//! Tests of the guest's command line, of its console, and of the accelerator's probe.

use std::path::PathBuf;

use super::*;

fn setup() -> Setup {
    Setup {
        qemu: "qemu-system-x86_64".into(),
        image: "image".into(),
        machine: MachineType::Q35,
        accelerator: Accelerator::Tcg,
        cores: 1,
        memory_mib: 256,
        network: Network::User { base: 20000 },
        files: GuestFiles {
            disk: "disk.img".into(),
            configuration: "barepost.toml".into(),
            site: Some("site.pack".into()),
            certificates: "certificates.pack".into(),
            signing_keys: "signing-keys.pack".into(),
            authorities: None,
        },
        plugin: None,
        linux: None,
    }
}

fn line(setup: &Setup) -> String {
    setup
        .arguments()
        .iter()
        .map(|argument| argument.to_str().unwrap())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn every_service_is_forwarded_to_the_loopback_only() {
    let line = line(&setup());
    assert!(line.contains("-netdev user,id=network,hostfwd=tcp:127.0.0.1:20025-:25,hostfwd=tcp:127.0.0.1:20110-:110,hostfwd=tcp:127.0.0.1:20080-:80"));
}

#[test]
fn each_machine_has_its_own_kind_of_devices() {
    let q35 = line(&setup());
    assert!(q35.contains("virtio-net-pci,netdev=network,disable-legacy=on"), "{q35}");
    let microvm = line(&Setup { machine: MachineType::Microvm, ..setup() });
    assert!(
        microvm.contains("virtio-blk-device,drive=disk") && !microvm.contains("-pci"),
        "{microvm}"
    );
    assert!(microvm.contains("virtio-mmio.force-legacy=false"), "{microvm}");
}

#[test]
fn each_core_has_a_tap_queue_and_its_interrupt_messages() {
    let tap = |queues| Network::Tap { interface: "tap0".into(), queues };
    let several = line(&Setup { cores: 4, network: tap(4), ..setup() });
    assert!(several.contains("-smp 4 "), "{several}");
    assert!(several.contains("ifname=tap0,script=no,downscript=no,queues=4 "), "{several}");
    assert!(several.contains("netdev=network,mq=on,vectors=10,"), "{several}");
    let one = line(&Setup { cores: 4, network: tap(1), ..setup() });
    assert!(one.contains("-smp 4 ") && !one.contains("queues=") && !one.contains("mq="), "{one}");
}

#[test]
fn a_flush_of_the_guest_reaches_the_disk_of_the_host() {
    let line = line(&setup());
    assert!(line.contains("cache=writeback"), "{line}");
    assert!(!line.contains("unsafe"), "{line}");
}

#[test]
fn every_error_of_the_disk_is_reported_to_the_guest() {
    for machine in [MachineType::Q35, MachineType::Microvm] {
        let line = line(&Setup { machine, ..setup() });
        assert!(line.contains("drive=disk,werror=report,rerror=report"), "{line}");
    }
}

#[test]
fn qemu_runs_in_its_sandbox_on_every_network() {
    for network in
        [Network::User { base: 20000 }, Network::Tap { interface: "tap0".into(), queues: 1 }]
    {
        let line = line(&Setup { network, ..setup() });
        assert!(line.contains("-sandbox on,"), "{line}");
        for denied in ["obsolete", "elevateprivileges", "spawn", "resourcecontrol"] {
            assert!(line.contains(&format!("{denied}=deny")), "{line}");
        }
    }
}

#[test]
fn comma_in_a_path_is_doubled() {
    let files = GuestFiles {
        disk: "a,b/disk.img".into(),
        configuration: PathBuf::from("c,,d.toml"),
        ..setup().files
    };
    let line = line(&Setup { files, ..setup() });
    assert!(line.contains("file=a,,b/disk.img "), "{line}");
    assert!(line.contains("file=c,,,,d.toml "), "{line}");
}

#[test]
fn control_characters_of_the_console_are_replaced() {
    assert_eq!(printable(b"plain \xe2\x82\xac\ttext\r\n"), "plain €\ttext");
    assert_eq!(printable(b"\x1b[2Jred\x07\x9b"), "\u{fffd}[2Jred\u{fffd}\u{fffd}");
}

#[test]
fn too_long_line_is_cut() {
    let (sender, events) = channel();
    for_each_line([b'a'; 10_000].as_slice(), &sender, Event::Line);
    drop(sender);
    let lengths: Vec<usize> = events
        .into_iter()
        .map(|event| match event {
            Event::Line(line) => line.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lengths, [4096, 4096, 1808]);
}

#[test]
fn the_probe_of_the_accelerator_is_a_multiboot_image() {
    let word = |index: usize| {
        u32::from_le_bytes(super::accelerator::PROBE[index..][..4].try_into().unwrap())
    };
    assert_eq!(word(0), 0x1bad_b002);
    assert_eq!(word(0).wrapping_add(word(4)).wrapping_add(word(8)), 0, "the header's checksum");
}
