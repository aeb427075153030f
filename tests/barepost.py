"""Common parts of the integration tests: a machine under `./barepost run` or under QEMU itself, and tests that own machines.

A test is written in terms of mail. This file starts, watches and kills machines, and removes their files.

- Everything is on loopback, on ports that were free when the machine was started.
- Every wait has a time limit. At the end of a test, processes that still run are killed by their process ids. They also
  die if the test itself is killed.
- Disks, logs and consoles are below target/tests. They are removed if their test has succeeded.
"""

import argparse
import contextlib
import fcntl
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from mail import DOMAIN, PASSWORD, Pop3, Smtp
from processes import ROOT, STOP_SECONDS, Late, Process, alive, children, die_with_us

COMMAND = ROOT / "barepost"
SCRATCH = ROOT / "target" / "tests"

# The first start may build the image. Later starts only boot it.
BUILD_SECONDS = 1200
READY_SECONDS = 60

# The services' ports in the machine.
SMTP, POP3 = 25, 110

USERS = ("ada", "grace", "barbara", "edsger")

CONFIGURATION = f"""\
hostname = "mail.{DOMAIN}"
domains  = ["{DOMAIN}"]
""" + "".join(
    f"""
[[user]]
address  = "{user}@{DOMAIN}"
password = "{PASSWORD}"
aliases  = [{f'"postmaster@{DOMAIN}"' if user == "ada" else ""}]
"""
    for user in USERS
)

# The addresses of clients of QEMU's user-mode network, as the guest sees them.
ACCESS = """
[access]
plaintext_auth_from = ["10.0.2.0/24"]
unthrottled_from    = ["10.0.2.0/24"]
"""
# The same for a machine with a section [network], which must not have the range of the demo.
ACCESS_FIXED = ACCESS.replace("10.0.2.0/24", "10.0.2.2/32")
ACCESS_THROTTLED = """
[access]
plaintext_auth_from = ["10.0.2.0/24"]
"""


# The options on the command line of a test file.
options = argparse.Namespace(quick=False, seed=0, cores=1)


def main():
    """Runs the tests of the calling file: `FILE [--quick] [--seed N] [--cores N] [unittest's arguments]`."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--quick", action="store_true", help="the short form, for every change")
    parser.add_argument("--seed", type=int, help="repeats what a run chose at random")
    parser.add_argument("--cores", type=int, default=1, help="of every machine whose test does not say how many it has")
    said, arguments = parser.parse_known_args()
    options.quick, options.cores = said.quick, said.cores
    options.seed = random.SystemRandom().randrange(1 << 32) if said.seed is None else said.seed
    how = f"{' --quick' if options.quick else ''} --seed {options.seed} --cores {options.cores}"
    print(f"{os.path.basename(sys.argv[0])}{how}", flush=True)
    program = unittest.main("__main__", argv=[sys.argv[0], *arguments], exit=False, verbosity=2)
    sys.stdout.flush()
    sys.exit(not program.result.wasSuccessful())


def say(text):
    """Prints a progress line in the middle of a test."""
    print(f"  {text}", flush=True)


# The files that reserve ranges of ports. Each stays locked until this process ends.
_reserved = []


def reserved_range():
    """The first of 2,000 ports that this process reserves. Without the reservation another test could take a port after
    it was found free and before a machine opens it."""
    if not _reserved:
        starts = list(range(10000, 30000, 2000))
        random.SystemRandom().shuffle(starts)
        for start in starts:
            file = open(pathlib.Path(tempfile.gettempdir()) / f"barepost-ports-{start}", "w")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                continue
            _reserved.append((start, file))
            break
        else:
            raise AssertionError("all ranges of ports are reserved by other tests")
    return _reserved[0][0]


def free_ports():
    """A BASE for `--ports` with a free port for every service. None of these is a port that Linux gives to clients."""
    dice = random.SystemRandom()
    for _ in range(200):
        base = reserved_range() + dice.randrange(1000)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in (25, 80, 110, 143, 443, 465, 587, 993, 995):
                listener = held.enter_context(socket.socket())
                listener.bind(("127.0.0.1", base + port))
            return base
    raise AssertionError("no free ports")


class Machine:
    """A machine with services, on forwarded ports or at its own address."""

    host = "127.0.0.1"
    ports = 0

    def smtp(self, **how):
        """A new SMTP connection that has read the greeting."""
        return Smtp(self.ports + SMTP, host=self.host, **how)

    def pop3(self, user=None, **how):
        """A new POP3 connection that has read the greeting, and is logged in if a user is given."""
        session = Pop3(self.ports + POP3, host=self.host, **how)
        try:
            if user:
                session.log_in(user)
        except BaseException:
            session.close()
            raise
        return session

    def mailbox(self, user):
        """Fetches all messages of a user. Returns a list of `Found`, in order."""
        with self.pop3(user) as session:
            return session.fetch()

    def deliver(self, sender, recipients, message):
        """Sends one message in a new session. Returns the reply to its end."""
        with self.smtp() as session:
            session.ehlo()
            return session.deliver(sender, recipients, message)


class Run(Machine):
    """The machine as users start it: `./barepost run`."""

    _has_built = False

    def __init__(self, data, *arguments, ports=None, accel="tcg", environment=None):
        self.ports = ports or free_ports()
        self._run(data, ["--ports", self.ports, "--accel", accel, *arguments], environment)

    def _run(self, data, arguments, environment=None):
        self.data = pathlib.Path(data)
        self.ready_ms = None
        cores = [] if "--cores" in arguments else ["--cores", options.cores]
        command = [COMMAND, "run", "--data", self.data, *cores, *arguments]
        self.process = Process(command, self.data.with_suffix(".console"), environment)

    def ready(self):
        """Waits until the machine serves."""
        seconds = READY_SECONDS if Run._has_built else BUILD_SECONDS
        self.ready_ms = int(self.process.wait_for_line(r"^barepost: ready in (\d+) ms$", seconds)[1])
        Run._has_built = True
        return self

    def qemu(self):
        """The process id of QEMU."""
        for pid in children(self.process.pid):
            with contextlib.suppress(OSError):
                if os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("qemu-system"):
                    return pid
        raise AssertionError(f"no QEMU runs; {self.process.tail()}")

    def qemu_command(self):
        """QEMU's command line, as a list."""
        command = pathlib.Path(f"/proc/{self.qemu()}/cmdline").read_bytes()
        return [argument.decode() for argument in command.rstrip(b"\0").split(b"\0")]

    def interrupt(self):
        """Sends SIGINT, as Ctrl-C does."""
        self.process.popen.send_signal(signal.SIGINT)

    def stop(self):
        """Stops the machine cleanly. Returns the exit status."""
        self.interrupt()
        return self.process.wait(STOP_SECONDS)

    def kill(self):
        """Kills `run`. QEMU must die with it."""
        self.process.kill()


class Guest(Machine):
    """The machine in a QEMU that the test starts. So it can have another disk, other block drivers, or a monitor.

    `command` is the command line of the QEMU that a `Run` started. A test changes only single options of it.
    """

    # The byte on the console that requests a stop, and QEMU's exit status after a clean stop.
    STOP_BYTE = b"\x03"
    CLEAN_STOP = 33

    def __init__(self, command, console, disk=None, ports=None, more=()):
        command = list(command)
        network = command.index("-netdev") + 1
        if ports:
            command[network] = re.sub(
                r"hostfwd=tcp:127\.0\.0\.1:\d+-:(\d+)",
                lambda match: f"hostfwd=tcp:127.0.0.1:{ports + int(match[1])}-:{match[1]}",
                command[network],
            )
        self.ports = int(re.search(rf"127\.0\.0\.1:(\d+)-:{SMTP}(,|$)", command[network])[1]) - SMTP
        if disk:
            at = disk_option(command)
            command[at:at + 2] = disk_arguments(disk)
        self.process = Process([*command, *more], console, stdin=subprocess.PIPE)

    def answers(self, seconds=READY_SECONDS):
        """Waits until both services greet. Returns this guest."""
        deadline = time.monotonic() + seconds
        for port in (SMTP, POP3):
            # QEMU's network accepts a connection before the machine does, so only the greeting counts.
            patience = 0.15
            while True:
                try:
                    with socket.create_connection(("127.0.0.1", self.ports + port), 5) as attempt:
                        attempt.settimeout(patience)
                        if attempt.recv(1):
                            attempt.sendall(b"QUIT\r\n")
                            break
                except OSError:
                    pass
                if self.process.popen.poll() is not None:
                    raise AssertionError(f"QEMU ended with {self.process.popen.returncode}; {self.process.tail()}")
                if time.monotonic() > deadline:
                    raise Late(f"no greeting on port {port} within {seconds} s; {self.process.tail()}")
                patience = min(patience * 1.2, 5)
                time.sleep(0.01)
        return self

    def stop(self):
        """Requests a stop. Returns whether the machine has stopped cleanly."""
        with contextlib.suppress(OSError):
            self.process.popen.stdin.write(self.STOP_BYTE)
            self.process.popen.stdin.flush()
        return self.process.wait(STOP_SECONDS) == self.CLEAN_STOP

    def kill(self):
        """Kills QEMU, like a power cut."""
        self.process.kill()


def disk_option(command):
    """The position of the disk's option `-drive` in QEMU's command line."""
    return next(i for i, word in enumerate(command) if word == "-drive" and "id=disk" in command[i + 1])


def disk_arguments(path):
    """The option `-drive` for another file."""
    return ["-drive", f"if=none,id=disk,format=raw,cache=writeback,file={str(path).replace(',', ',,')}"]


class Test(unittest.TestCase):
    """A test with its own folder, and with machines that end with the test."""

    configuration = CONFIGURATION + ACCESS
    maxDiff = 2000

    def shortDescription(self):
        """No description: the name of a test is enough."""

    def setUp(self):
        SCRATCH.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{self._testMethodName}-", dir=SCRATCH))
        self.dice = random.Random(f"{options.seed} {self._testMethodName}")
        self.addCleanup(self._clean_up)
        self._machines = []

    def _clean_up(self):
        for machine in self._machines:
            machine.kill()
        outcome = self._outcome.result
        broken = [test for test, _ in outcome.errors + outcome.failures if test is self]
        if broken:
            say(f"what is left of it lies in {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def data(self, name="data", configuration=None):
        """A data folder with the tests' configuration."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "barepost.toml").write_text(configuration or self.configuration)
        return folder

    def start(self, data, *arguments, **how):
        """Starts `./barepost run` without waiting for it."""
        machine = Run(data, *arguments, **how)
        self._machines.append(machine)
        return machine

    def boot(self, data=None, *arguments, **how):
        """Starts `./barepost run` and waits until it serves."""
        return self.start(data or self.data(), *arguments, **how).ready()

    def learn(self, data, *arguments):
        """Boots `./barepost run` on a data folder, stops it cleanly, and returns the command line of its QEMU."""
        machine = self.boot(data, *arguments)
        command = machine.qemu_command()
        self.assertEqual(machine.stop(), 0, machine.process.tail())
        return command

    def watch(self, machine):
        """Kills a machine at the end of the test, if it still runs. Returns the machine."""
        self._machines.append(machine)
        return machine

    def assertSame(self, found, expected, what="the message"):
        """Asserts that two messages are equal. The failure shows the first difference."""
        if found == expected:
            return
        place = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
        self.fail(
            f"{what} came back otherwise: {len(found)} bytes instead of {len(expected)}, from byte {place} on "
            f"{found[place:place + 60]!r} instead of {expected[place:place + 60]!r}"
        )


class SharedMachineTest(Test):
    """Tests that share one machine, which is booted once. No test may stop it."""

    @classmethod
    def setUpClass(cls):
        SCRATCH.mkdir(parents=True, exist_ok=True)
        cls.shared_folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{cls.__name__}-", dir=SCRATCH))
        cls.addClassCleanup(shutil.rmtree, cls.shared_folder, ignore_errors=True)
        data = cls.shared_folder / "data"
        data.mkdir()
        (data / "barepost.toml").write_text(cls.configuration)
        cls.machine = Run(data)
        cls.addClassCleanup(cls.machine.kill)
        cls.machine.ready()

    def setUp(self):
        super().setUp()
        if not alive(self.machine.qemu()):
            self.fail(f"the machine is gone; {self.machine.process.tail()}")


def fsck(disk):
    """Runs `./barepost fsck DISK`. Returns (exit status, output)."""
    done = subprocess.run(
        [COMMAND, "fsck", disk],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, preexec_fn=die_with_us,
    )
    return done.returncode, done.stdout + done.stderr
