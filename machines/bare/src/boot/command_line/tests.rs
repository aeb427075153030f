//! Tests with command lines as QEMU and Firecracker write them.

use super::*;

fn listed(text: &str) -> Vec<MemoryDevice> {
    devices(text.as_bytes()).into_iter().flatten().collect()
}

#[test]
fn each_device_named_is_found_in_order() {
    let text =
        "console=ttyS0 virtio_mmio.device=512@0xfeb00e00:12 virtio_mmio.device=4K@0xd0000000:5:1\n";
    let [one, two] = listed(text)[..] else { panic!("not two devices") };
    assert_eq!(one, MemoryDevice { base: 0xFEB0_0E00, bytes: 512, line: 12 });
    assert_eq!(two, MemoryDevice { base: 0xD000_0000, bytes: 4096, line: 5 });
}

#[test]
fn arguments_that_name_no_device_are_skipped() {
    for text in [
        "",
        "virtio_mmio.device=",
        "virtio_mmio.device=512@0xfeb00000",
        "virtio_mmio.device=1@2:3",
        "x=512@0x1000:5",
    ] {
        assert_eq!(listed(text), [], "{text}");
    }
    assert_eq!(
        listed(
            "virtio_mmio.device=512@0xffffffffffffffff:5 virtio_mmio.device=512@0x20000000000000000:5"
        ),
        []
    );
}
