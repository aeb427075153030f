#!/usr/bin/env python3
"""Boots the image's self tests in QEMU, on both machine types, and checks their output and exit status.

    machines/bare/selftest.py             build the self-test image, and run everything
    machines/bare/selftest.py NAME...     only these runs

Each run is one QEMU with a fresh disk. It fails if a line says FAILED, if the expected line is missing, if the exit
status is wrong, or if it takes longer than a minute.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import network
TARGET = os.path.join(ROOT, "target", "image")
IMAGE = os.path.join(TARGET, "x86_64-unknown-linux-gnu", "image", "selftest-image")
SECONDS_MAX = 60
# Exit statuses of QEMU: twice the value that the image writes to isa-debug-exit, plus one.
STOPPED, REFUSED = 33, 37
# The greatest part of one host core that an idle guest may use.
IDLE_SHARE_MAX = 0.02
DISK_BYTES = 64 << 20
# The beginning of a line on the console: date, time, and seconds since the start.
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \[ *\d+\.\d{6}\] "

MACHINES = {
    "q35": ["-machine", "q35"],
    "microvm": ["-machine", "microvm,acpi=off,rtc=on", "-global", "virtio-mmio.force-legacy=false"],
}
NO_PROCESSOR_ENTROPY = "max,-rdrand,-rdseed"


def device(machine, kind, backend):
    bus = "pci" if machine == "q35" else "device"
    modern = ",disable-legacy=on" if machine == "q35" else ""
    return ["-device", f"{kind}-{bus}{backend}{modern}"]


def command(machine, disk, mode, cpu="max", entropy_device=True, cores=1, accel="tcg", tap=None, extra=()):
    line = ["qemu-system-x86_64", "-nodefaults", *MACHINES[machine], "-accel", accel, "-cpu", cpu, "-m", "256"]
    line += ["-display", "none", "-serial", "stdio", "-device", "isa-debug-exit,iobase=0xf4,iosize=4", "-kernel", IMAGE]
    network = f"tap,id=n0,ifname={tap},script=no,downscript=no,queues={cores}" if tap else "user,id=n0"
    queues = f",mq=on,vectors={2 * cores + 2}" if tap else ""
    line += ["-netdev", network, "-drive", f"if=none,id=d0,file={disk},format=raw"]
    line += device(machine, "virtio-net", ",netdev=n0" + queues) + device(machine, "virtio-blk", ",drive=d0")
    if entropy_device:
        line += device(machine, "virtio-rng", "")
    line += ["-smp", str(cores), "-fw_cfg", f"name=opt/barepost/cores,string={cores}"]
    line += ["-fw_cfg", f"name=opt/barepost/queues,string={cores if tap else 1}"]
    return line + ["-fw_cfg", f"name=opt/barepost/selftest,string={mode}", *extra]


def run(machine, mode, status=STOPPED, expected="", **options):
    """Runs QEMU once. Returns the processor seconds that QEMU used, and the output of the guest."""
    with tempfile.NamedTemporaryFile() as disk:
        disk.truncate(DISK_BYTES)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(command(machine, disk.name, mode, **options), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_MAX)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = ended.stdout.decode(errors="replace")
    if ended.returncode != status or expected not in text or "FAILED" in text:
        raise AssertionError(f"exit status {ended.returncode}, expected {status} and {expected!r}:\n{text}")
    print("\n".join(f"    {line.strip()}" for line in text.splitlines() if "] ok " in line or "ticks for" in line))
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, text


def machine(kind):
    run(kind, "machine", expected=" 0 failed")


def costs():
    # With -icount a tick of the counter is one instruction, so the run checks the exact limits.
    run("q35", "machine", expected=" 0 failed", extra=["-icount", "shift=0"])


def cores(kind, count, **options):
    _, text = run(kind, "cores", expected=" 0 failed", cores=count, **options)
    lines = text.splitlines()
    for core in range(count):
        for number in range(20):
            whole = f"line {number} of core {core} is as whole as a line of one core alone would be"
            found = sum(re.fullmatch(STAMP + whole, line) is not None for line in lines)
            assert found == 1, f"{found} times on the console: {whole}"


def queues():
    # Each core has a pair of queues of the network card. The card is at a tap interface of a separate network.
    # Linux is the router that answers.
    network.enter()
    network.make_tap("selftest", "10.0.2.2/24", queues="multi_queue")
    cores("q35", 4, tap="selftest")
    cores("q35", 2, tap="selftest")


def endings(kind):
    _, text = run(kind, "endings", expected=" 0 failed", cores=4)
    # A core that fails stops the other cores before it prints anything.
    broken = text[text.index("PANIC on core 3"):]
    assert "core 1 lives" in text, "core 1 was to be busy when core 3 failed"
    assert "core 1 lives" not in broken, "core 1 lives on although core 3 failed"


def idle(kind):
    # Both runs include the start of QEMU and the boot, so the difference is the cost of ten idle seconds.
    # Three of the four cores have no work.
    seconds = run(kind, "idle", expected="slept", cores=4)[0] - run(kind, "nothing", expected="slept 0 times", cores=4)[0]
    share = seconds / 10
    print(f"    an idle guest takes {share:.2%} of a host core")
    assert share < IDLE_SHARE_MAX, f"more than {IDLE_SHARE_MAX:.0%}"


def key(kind):
    with tempfile.NamedTemporaryFile() as disk:
        disk.truncate(DISK_BYTES)
        with subprocess.Popen(command(kind, disk.name, "key"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as qemu:
            for line in qemu.stdout:
                if b"press q" in line:
                    time.sleep(0.5)
                    qemu.stdin.write(b"q")
                    qemu.stdin.flush()
            status = qemu.wait(SECONDS_MAX)
    assert status == STOPPED, f"exit status {status}: the key did not end the sleep"


def entropy():
    run("q35", "machine", status=REFUSED, expected="no source of randomness", cpu=NO_PROCESSOR_ENTROPY,
        entropy_device=False)
    run("q35", "machine", expected=" 0 failed", cpu=NO_PROCESSOR_ENTROPY)
    run("microvm", "machine", expected=" 0 failed", entropy_device=False)


RUNS = {
    "machine-q35": lambda: machine("q35"),
    "machine-microvm": lambda: machine("microvm"),
    **{f"cores-{kind}-{count}": lambda kind=kind, count=count: cores(kind, count)
       for kind in MACHINES for count in (1, 2, 4, 8)},
    # The guest's cores take turns on one thread of the host.
    "cores-in-turn": lambda: cores("q35", 4, accel="tcg,thread=single"),
    "costs": costs,
    "endings-q35": lambda: endings("q35"),
    "endings-microvm": lambda: endings("microvm"),
    "idle-q35": lambda: idle("q35"),
    "idle-microvm": lambda: idle("microvm"),
    "key-q35": lambda: key("q35"),
    "key-microvm": lambda: key("microvm"),
    "entropy": entropy,
    # This run is the last, since it leaves this process in the separate network.
    "queues": queues,
}


def build():
    environment = {name: value for name, value in os.environ.items() if not name.endswith("RUSTFLAGS")}
    subprocess.run(
        ["cargo", "--config", "machines/bare/image.toml", "build", "--quiet", "-p", "bare", "--bin", "selftest-image",
         "--features", "selftest", "--profile", "image", "--target", "x86_64-unknown-linux-gnu", "--target-dir", TARGET],
        cwd=ROOT, env=environment, check=True)


def main(names):
    unknown = [name for name in names if name not in RUNS]
    if unknown:
        sys.exit(f"no run is called {unknown[0]}; there are: {', '.join(RUNS)}")
    build()
    failed = 0
    for name in names or RUNS:
        try:
            print(name)
            RUNS[name]()
            print(f"ok {name}")
        except (AssertionError, subprocess.TimeoutExpired) as reason:
            failed += 1
            print(f"FAILED {name}: {reason}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
