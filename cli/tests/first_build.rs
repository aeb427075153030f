//! The command announces the first build of the image, so that the user knows why it takes long.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A BASE with free ports for all services, below the ports that Linux gives to clients.
fn free_ports() -> Option<u16> {
    let start = std::process::id() as u16 % 200;
    let is_free = |base: &u16| {
        [25, 80, 110].iter().all(|port| TcpListener::bind(("127.0.0.1", base + port)).is_ok())
    };
    (0..200).map(|step| 10_000 + (start + step) % 200 * 100).find(is_free)
}

#[test]
fn first_image_build_is_announced_and_later_ones_are_not() {
    // A repository in which cargo and QEMU are programs that fail at once.
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    std::fs::create_dir_all(root.join("machines/bare")).unwrap();
    let programs = root.join("programs");
    std::fs::create_dir(&programs).unwrap();
    for name in ["cargo", "qemu-system-x86_64"] {
        std::fs::write(programs.join(name), "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(programs.join(name), std::fs::Permissions::from_mode(0o755))
            .unwrap();
    }
    let said_by_run = || {
        let output = Command::new(env!("CARGO_BIN_EXE_barepost"))
            .args([
                "run",
                "--accel",
                "tcg",
                "--ports",
                &free_ports().unwrap().to_string(),
                "--data",
            ])
            .arg(root.join("data"))
            .env("BAREPOST_ROOT", root)
            .env("PATH", &programs)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let first = said_by_run();
    assert!(first.starts_with("barepost: building the image, once"), "{first}");
    let built = root.join("target/image/x86_64-unknown-linux-gnu/image/barepost-image");
    std::fs::create_dir_all(built.parent().unwrap()).unwrap();
    std::fs::write(built, "").unwrap();
    assert_eq!(said_by_run(), "barepost: building the image: failed (exit status: 1)\n");
}
