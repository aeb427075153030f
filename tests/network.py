"""The test's own network: a network namespace with tap interfaces, which vanishes with the process that made it.

A wire with chosen impairments can connect two interfaces (tests/wire).

The process moves into the namespace before it starts anything. The namespace is isolated from the host's network, and
needs no clean-up.
"""

import ctypes
import os
import pathlib
import subprocess
import sys

from processes import ROOT, die_with_us

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x2_0000, 0x1000_0000, 0x4000_0000


def enter():
    """Moves this process into a new network namespace. The process must not have started a thread before. Ends the process
    if this is not permitted."""
    user, group, libc = os.getuid(), os.getgid(), ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        # A user other than root may be root in a user namespace.
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            sys.exit(
                f"network namespaces are not permitted here ({os.strerror(ctypes.get_errno())}): "
                "this test needs root with CAP_SYS_ADMIN, or unprivileged user namespaces"
            )
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            pathlib.Path(f"/proc/self/{name}").write_text(text)
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        sys.exit("/dev/net/tun is not there or not permitted: this test needs tap interfaces")
    ip("link set lo up")


def show():
    """Makes /sys show the network that this process has entered, to the process and its children."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        sys.exit("mount namespaces are not permitted here: this test needs root with CAP_SYS_ADMIN")
    for arguments in (["--make-rprivate", "/"], ["-t", "sysfs", "sysfs", "/sys"]):
        subprocess.run(["mount", *arguments], check=True, timeout=20)


def ip(arguments):
    """Runs `ip` of iproute2."""
    done = subprocess.run(["ip", *arguments.split()], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise AssertionError(f"ip {arguments}: {done.stderr.strip()}")


def make_tap(name, address=None, owner=None, queues=""):
    """Makes a tap interface, with an address like `10.0.0.1/24` if one is given. `queues`: `multi_queue` allows one queue for
    each core at its other end."""
    ip(f"tuntap add dev {name} mode tap {queues}" + (f" user {owner}" if owner is not None else ""))
    if address:
        ip(f"addr add {address} dev {name}")
    ip(f"link set {name} up")


def join(bridge, *names):
    """Makes a bridge of interfaces, without an address. ARP is off: otherwise Linux would answer here for the addresses of
    other interfaces, and frames for them would bypass the wire."""
    ip(f"link add {bridge} type bridge")
    ip(f"link set {bridge} arp off up")
    for name in names:
        ip(f"link set {name} master {bridge}")


class Wire:
    """A wire between two tap interfaces. `there` and `back`: the impairments of each direction, in the syntax of tests/wire."""

    _program = None

    def __init__(self, one, other, there="", back="", seed=0, capture=None):
        if not Wire._program:
            built = subprocess.run(
                ["cargo", "build", "--quiet", "--release", "--offline", "-p", "wire", "--target-dir", "target"], cwd=ROOT,
                capture_output=True, text=True, preexec_fn=die_with_us,
            )
            if built.returncode != 0:
                raise AssertionError(f"building tests/wire: {built.stderr}")
            Wire._program = ROOT / "target/release/wire"
        arguments = ["--seed", str(seed), "--there", there, "--back", back]
        self._process = subprocess.Popen(
            [Wire._program, one, other, *arguments, *(["--capture", capture] if capture else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_us,
        )
        if self._process.stdout.readline() != "ready\n":
            raise AssertionError(f"wire: {self.cut()}")

    def cut(self):
        """Ends the wire. Returns its counters of frames as text for people."""
        said, complaints = self._process.communicate(timeout=20)
        return (said + complaints).strip()


def traffic(name, before=None):
    """(frames, bytes) in each direction through a tap interface, as Linux counts them. `before`: earlier counts to subtract."""
    numbers = _counted(name)
    # Linux receives the frames that the machine sends.
    counts = {"from the machine": (numbers[1], numbers[0]), "to the machine": (numbers[9], numbers[8])}
    return {way: tuple(now - then for now, then in zip(counts[way], (before or {}).get(way, (0, 0)))) for way in counts}


def lost(name):
    """The number of frames to the machine for which a tap interface had no room, as Linux counts them."""
    return _counted(name)[11]


def _counted(name):
    """The numbers of `/proc/net/dev` for an interface."""
    for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines():
        interface, _, numbers = line.partition(":")
        if interface.strip() == name:
            return [int(number) for number in numbers.split()]
    raise AssertionError(f"there is no interface {name}")


def without_rights_to_networks():
    """Runs in a child before exec. Drops CAP_NET_ADMIN (PR_CAPBSET_DROP), and lets the child die with the test."""
    die_with_us()
    cap_net_admin = 12
    ctypes.CDLL(None).prctl(24, cap_net_admin, 0, 0, 0)
