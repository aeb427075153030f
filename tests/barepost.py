"""What the integration tests share: a machine under `./barepost run` or under QEMU itself, and clients that see every byte.

A test says what it wants in words of mail; how a machine is started, watched, killed and cleaned away is here.

- Everything is on loopback, on ports that were free when the machine was started.
- Every wait has an end. What is still running when a test ends is killed by its process id, and dies with the test
  itself even when that is killed.
- Disks, logs and consoles lie below target/tests and are removed when their test succeeded.
"""

import argparse
import contextlib
import ctypes
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
import threading
import time
import unittest

ROOT = pathlib.Path(os.path.abspath(__file__)).parent.parent
COMMAND = ROOT / "barepost"
SCRATCH = ROOT / "target" / "tests"

# The first start may have to build the image; later ones only boot it.
BUILD_SECONDS = 1200
READY_SECONDS = 60
# An answer under emulation on a busy host: a password hash, a flush, a 50 MB message.
ANSWER_SECONDS = 60
STOP_SECONDS = 30

SMTP, POP3 = 25, 110

DOMAIN = "barepost.test"
PASSWORD = "correct horse battery staple"
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

# How a client of QEMU's user-mode network is seen by the guest.
ACCESS = """
[access]
plaintext_auth_from = ["10.0.2.0/24"]
unthrottled_from    = ["10.0.2.0/24"]
"""
ACCESS_THROTTLED = """
[access]
plaintext_auth_from = ["10.0.2.0/24"]
"""


# What the command line of a test file said.
options = argparse.Namespace(quick=False, seed=0)


def main():
    """Runs the tests of the calling file: `FILE [--quick] [--seed N] [unittest's arguments]`."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--quick", action="store_true", help="the short form, for every change")
    parser.add_argument("--seed", type=int, help="repeats what a run chose at random")
    said, arguments = parser.parse_known_args()
    options.quick = said.quick
    options.seed = random.SystemRandom().randrange(1 << 32) if said.seed is None else said.seed
    print(f"{os.path.basename(sys.argv[0])}{' --quick' if options.quick else ''} --seed {options.seed}", flush=True)
    program = unittest.main("__main__", argv=[sys.argv[0], *arguments], exit=False, verbosity=2)
    sys.stdout.flush()
    sys.exit(not program.result.wasSuccessful())


def say(text):
    """A line in the middle of a test, for whoever watches."""
    print(f"  {text}", flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# Waiting


class Late(AssertionError):
    """Something did not happen in its time."""


def until(condition, seconds, what, pause=0.02):
    """Waits until `condition()` is true and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Late(f"{what}: not within {seconds} s")
        time.sleep(pause)


# ---------------------------------------------------------------------------------------------------------------------
# Processes


def die_with_us():
    """In the child, before it becomes its program: SIGKILL when the test dies (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def alive(pid):
    """Whether a process runs (one that has ended and is not yet waited for does not)."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def children(pid):
    """The processes that `pid` and its descendants started."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{entry}/stat").read_text()
                parents.setdefault(int(status.rpartition(")")[2].split()[1]), []).append(int(entry))
    found, line = [], [pid]
    while line:
        for child in parents.get(line.pop(), []):
            found.append(child)
            line.append(child)
    return found


def cpu_seconds(pid):
    """The processor time that a process has used so far, with all its threads."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def program(name):
    """The path of a program. Errors: it is missing."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:{ROOT}/target/tools/bin")
    if not path:
        raise AssertionError(f"{name} is missing: `./barepost test NAME` gets what a test needs")
    return path


class Process:
    """A program whose output is collected."""

    def __init__(self, arguments, console, environment=None, stdin=subprocess.DEVNULL):
        self.arguments = [str(argument) for argument in arguments]
        self.console = pathlib.Path(console)
        self.began = time.monotonic()
        self._lines = []
        self._changed = threading.Condition()
        self.popen = subprocess.Popen(
            self.arguments,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            preexec_fn=die_with_us,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._collect, daemon=True)
        self._reader.start()

    def _collect(self):
        with open(self.console, "ab") as file, self.popen.stdout:
            for line in self.popen.stdout:
                file.write(line)
                file.flush()
                with self._changed:
                    self._lines.append(line.decode("utf-8", "replace").rstrip("\r\n"))
                    self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def pid(self):
        return self.popen.pid

    def lines(self):
        """What it has printed so far."""
        with self._changed:
            return list(self._lines)

    def wait_for_line(self, pattern, seconds, skip=0):
        """The match of the first line, after the first `skip`, in which `pattern` is found."""
        wanted = re.compile(pattern)
        deadline = time.monotonic() + seconds
        seen = skip
        with self._changed:
            while True:
                for line in self._lines[seen:]:
                    if match := wanted.search(line):
                        return match
                seen = max(seen, len(self._lines))
                left = deadline - time.monotonic()
                if not self._reader.is_alive() and self.popen.poll() is not None:
                    raise AssertionError(f"ended with status {self.popen.returncode} before {pattern!r}; {self.tail()}")
                if left <= 0:
                    raise Late(f"{pattern!r} not printed within {seconds} s; {self.tail()}")
                self._changed.wait(min(left, 0.2))

    def tail(self, lines=25):
        """The end of what it printed, for a failure's message."""
        return "it printed:\n    " + "\n    ".join(self._lines[-lines:])

    def wait(self, seconds):
        """Waits for its end and returns its exit status."""
        try:
            status = self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Late(f"{self.arguments[0]} still runs after {seconds} s; {self.tail()}") from None
        self._reader.join(5)
        if self.popen.stdin:
            with contextlib.suppress(OSError):
                self.popen.stdin.close()
        return status

    def kill(self):
        """Ends it at once, as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.kill()
        self.wait(STOP_SECONDS)


# ---------------------------------------------------------------------------------------------------------------------
# Machines


def free_ports():
    """A BASE for `--ports`: every service's port is free there, and none is one that Linux gives to clients."""
    dice = random.SystemRandom()
    for _ in range(200):
        base = dice.randrange(10000, 31000)
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in (25, 80, 110, 143, 443, 465, 587, 993, 995):
                listener = held.enter_context(socket.socket())
                listener.bind(("127.0.0.1", base + port))
            return base
    raise AssertionError("no free ports")


class Machine:
    """Something that answers on forwarded ports."""

    ports = 0

    def smtp(self, **how):
        """A new SMTP connection that has read the greeting."""
        return Smtp(self.ports + SMTP, **how)

    def pop3(self, user=None, **how):
        """A new POP3 connection that has read the greeting, and is logged in when a user is named."""
        session = Pop3(self.ports + POP3, **how)
        try:
            if user:
                session.log_in(user)
        except BaseException:
            session.close()
            raise
        return session

    def mailbox(self, user):
        """The messages of a user: a list of `Found`, in order, all fetched."""
        with self.pop3(user) as session:
            return session.fetch()

    def deliver(self, sender, recipients, message):
        """Sends one message in a session of its own; returns the reply to its end."""
        with self.smtp() as session:
            session.ehlo()
            return session.deliver(sender, recipients, message)


class Run(Machine):
    """The machine as users have it: `./barepost run`."""

    _has_built = False

    def __init__(self, data, *arguments, ports=None, accel="tcg", environment=None):
        self.data = pathlib.Path(data)
        self.ports = ports or free_ports()
        self.ready_ms = None
        self.process = Process(
            [COMMAND, "run", "--ports", self.ports, "--data", self.data, "--accel", accel, *arguments],
            self.data.with_suffix(".console"),
            environment,
        )

    def ready(self):
        """Waits until it serves."""
        seconds = READY_SECONDS if Run._has_built else BUILD_SECONDS
        self.ready_ms = int(self.process.wait_for_line(r"^barepost: ready in (\d+) ms$", seconds)[1])
        Run._has_built = True
        return self

    def qemu(self):
        """The process id of its QEMU."""
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
        """Ctrl-C."""
        self.process.popen.send_signal(signal.SIGINT)

    def stop(self):
        """Stops it cleanly and returns the exit status."""
        self.interrupt()
        return self.process.wait(STOP_SECONDS)

    def kill(self):
        """Kills `run`; QEMU has to die with it."""
        self.process.kill()


class Guest(Machine):
    """The machine under a QEMU of our own, for what `run` does not do to it: another disk, other block drivers, a monitor.

    `command` is the command line of the QEMU that a `Run` started; only what a test changes is changed in it.
    """

    # What the console reads as the wish to stop, and QEMU's exit status when the machine then stopped cleanly.
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
        """Waits until both services greet; returns itself."""
        deadline = time.monotonic() + seconds
        for port in (SMTP, POP3):
            # QEMU's network takes the connection before the machine does, so what counts is the greeting.
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
        """Stops the machine cleanly; returns whether that is how it ended."""
        with contextlib.suppress(OSError):
            self.process.popen.stdin.write(self.STOP_BYTE)
            self.process.popen.stdin.flush()
        return self.process.wait(STOP_SECONDS) == self.CLEAN_STOP

    def kill(self):
        """The power goes away."""
        self.process.kill()


def disk_option(command):
    """Where in QEMU's command line the disk is given: the place of `-drive`."""
    return next(i for i, word in enumerate(command) if word == "-drive" and "id=disk" in command[i + 1])


def disk_arguments(path):
    """The same for another file."""
    return ["-drive", f"if=none,id=disk,format=raw,cache=writeback,file={str(path).replace(',', ',,')}"]


class Test(unittest.TestCase):
    """A test with a folder of its own, and machines that end with it."""

    configuration = CONFIGURATION + ACCESS
    maxDiff = 2000

    def shortDescription(self):
        """A test's name says what it shows."""

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
        """Makes sure that a machine does not outlive the test."""
        self._machines.append(machine)
        return machine

    def assertSame(self, found, expected, what="the message"):
        """Two messages are equal, told by the place where they part."""
        if found == expected:
            return
        place = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
        self.fail(
            f"{what} came back otherwise: {len(found)} bytes instead of {len(expected)}, from byte {place} on "
            f"{found[place:place + 60]!r} instead of {expected[place:place + 60]!r}"
        )


class SharedMachineTest(Test):
    """Tests that share one machine, booted once; none of them may stop it."""

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
    """`./barepost fsck DISK`: (exit status, what it printed)."""
    done = subprocess.run(
        [COMMAND, "fsck", disk],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, preexec_fn=die_with_us,
    )
    return done.returncode, done.stdout + done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Lines over TCP


class Gone(OSError):
    """The other side closed the connection."""


class Lines:
    """A connection that speaks in CRLF lines; nothing is hidden or repaired."""

    def __init__(self, port, timeout=ANSWER_SECONDS, source=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout, source)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            self.socket.close()
            raise
        self._buffer = bytearray()
        self._start = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leaves without a word."""
        self.socket.close()

    def reset(self):
        """Tears the connection down with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def line(self):
        """The next line without its CRLF. Errors: `Gone` at the end of the connection."""
        end = self._buffer.find(b"\r\n", self._start)
        while end < 0:
            searched = max(len(self._buffer) - 1, self._start)
            self._more()
            searched -= self._dropped
            end = self._buffer.find(b"\r\n", max(searched, 0))
        line = bytes(self._buffer[self._start:end])
        self._start = end + 2
        return line

    def block(self):
        """The lines up to the one with a single dot, unstuffed, each with its CRLF."""
        while True:
            at = self._start
            if self._buffer.startswith(b".\r\n", at):
                end = at
                break
            found = self._buffer.find(b"\r\n.\r\n", at)
            if found >= 0:
                end = found + 2
                break
            self._scan_for_end(at)
        data = bytes(self._buffer[at:end])
        self._start = end + 3
        if data.startswith(b"."):
            data = data[1:]
        return data.replace(b"\r\n.", b"\r\n")

    def _scan_for_end(self, at):
        """Receives until an end of block may be there, without looking at any byte twice."""
        searched = len(self._buffer)
        while True:
            self._more()
            searched -= self._dropped
            if self._buffer.find(b".\r\n", max(searched - 4, self._start)) >= 0:
                return
            searched = len(self._buffer)

    def _more(self):
        """Receives something; forgets what was read. `_dropped` tells how far the buffer moved."""
        self._dropped = 0
        if self._start > 1 << 20 or self._start == len(self._buffer):
            self._dropped = self._start
            del self._buffer[:self._start]
            self._start = 0
        data = self.socket.recv(1 << 18)
        if not data:
            raise Gone("connection closed by the server")
        self._buffer += data

    def is_closed_within(self, seconds):
        """Whether the other side closes (what it still says is passed over)."""
        self.socket.settimeout(seconds)
        try:
            while True:
                self._more()
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            with contextlib.suppress(OSError):
                self.socket.settimeout(ANSWER_SECONDS)


# ---------------------------------------------------------------------------------------------------------------------
# SMTP


class Reply:
    """A reply of an SMTP server: its code and the texts of its lines."""

    def __init__(self, code, texts):
        self.code, self.texts = code, texts

    def __repr__(self):
        return f"{self.code} {' / '.join(self.texts)}"

    @property
    def is_positive(self):
        return self.code < 400


def stuffed(message):
    """A message as DATA carries it, with its final dot."""
    data = message.replace(b"\r\n.", b"\r\n..")
    if data.startswith(b"."):
        data = b"." + data
    return data + b".\r\n"


class Smtp(Lines):
    """An SMTP client that says exactly what it is told to say."""

    def __init__(self, port, **how):
        super().__init__(port, **how)
        try:
            self.greeting = self.reply()
        except BaseException:
            self.close()
            raise

    def reply(self):
        texts = []
        while True:
            line = self.line().decode("utf-8", "replace")
            if not re.match(r"[2-5]\d\d([ -]|$)", line):
                raise AssertionError(f"not a reply: {line!r}")
            texts.append(line[4:])
            if line[3:4] != "-":
                return Reply(int(line[:3]), texts)

    def command(self, line):
        """Says a line and returns the reply."""
        self.send((line if isinstance(line, bytes) else line.encode()) + b"\r\n")
        return self.reply()

    def ehlo(self, name="client.test"):
        """Returns the extensions as {keyword: parameters}."""
        reply = self.command(f"EHLO {name}")
        if reply.code != 250:
            raise AssertionError(f"EHLO: {reply}")
        return {text.partition(" ")[0].upper(): text.partition(" ")[2] for text in reply.texts[1:]}

    def envelope(self, sender, recipients, parameters=""):
        """MAIL and RCPT, pipelined; returns the first reply that refuses, or None."""
        recipients = [recipients] if isinstance(recipients, str) else recipients
        lines = [f"MAIL FROM:<{sender}>{parameters}"] + [f"RCPT TO:<{recipient}>" for recipient in recipients]
        self.send("".join(f"{line}\r\n" for line in lines).encode())
        replies = [self.reply() for _ in lines]
        return next((reply for reply in replies if not reply.is_positive), None)

    def deliver(self, sender, recipients, message, parameters=""):
        """A whole transaction with DATA; returns the last reply, or the first that refuses."""
        if refusal := self.envelope(sender, recipients, parameters):
            return refusal
        reply = self.command("DATA")
        if reply.code != 354:
            return reply
        self.send(stuffed(message))
        return self.reply()

    def deliver_in_chunks(self, sender, recipients, message, chunk, parameters=""):
        """A whole transaction with BDAT, in chunks of so many bytes (RFC 3030), the last one marked LAST."""
        if refusal := self.envelope(sender, recipients, parameters):
            return refusal
        at = 0
        while True:
            piece = message[at:at + chunk]
            at += len(piece)
            last = at >= len(message)
            self.send(f"BDAT {len(piece)}{' LAST' if last else ''}\r\n".encode() + piece)
            reply = self.reply()
            if last or not reply.is_positive:
                return reply

    def quit(self):
        reply = self.command("QUIT")
        self.close()
        return reply


# ---------------------------------------------------------------------------------------------------------------------
# POP3


class Refused(AssertionError):
    """A POP3 server answered -ERR."""


class Found:
    """A message as POP3 gave it."""

    def __init__(self, number, uidl, size, raw):
        self.number, self.uidl, self.size, self.raw = number, uidl, size, raw

    @property
    def content(self):
        """What was sent: the message below the trace headers that the server added."""
        return without_trace(self.raw)


# One Return-Path and one Received, which ends with its date; what follows is the client's.
TRACE = re.compile(
    rb"Return-Path: <[^\r\n]*>\r\n"
    rb"Received: from [^\r\n]*\r\n"
    rb"(?:\t[^\r\n]*\r\n)*?"
    rb"\t(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d? [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}\r\n"
)


def without_trace(raw):
    """A retrieved message without the trace headers of this server."""
    match = TRACE.match(raw)
    if not match:
        raise AssertionError(f"no trace headers as expected: {raw[:400]!r}")
    return raw[match.end():]


class Pop3(Lines):
    """A POP3 client that pipelines."""

    BATCH = 64

    def __init__(self, port, **how):
        super().__init__(port, **how)
        try:
            self.greeting = self.answer()
        except BaseException:
            self.close()
            raise

    def answer(self):
        """The text of a positive answer. Errors: `Refused`."""
        line = self.line().decode("utf-8", "replace")
        if line.startswith("-ERR"):
            raise Refused(line)
        if not line.startswith("+OK"):
            raise AssertionError(f"not an answer: {line!r}")
        return line[4:]

    def command(self, line):
        """Says a line and returns the text of its positive answer."""
        self.send(line.encode() + b"\r\n")
        return self.answer()

    def listing(self, line):
        """Says a line and returns the lines of its multi-line answer, as text."""
        self.command(line)
        return self.block().decode("utf-8", "replace").split("\r\n")[:-1]

    def log_in(self, user, password=PASSWORD):
        self.command(f"USER {user if '@' in user else f'{user}@{DOMAIN}'}")
        return self.command(f"PASS {password}")

    def stat(self):
        """(messages, bytes)"""
        count, size = self.command("STAT").split()[:2]
        return int(count), int(size)

    def sizes(self):
        """{number: bytes}"""
        return {int(n): int(size) for n, size in (line.split() for line in self.listing("LIST"))}

    def uidls(self):
        """{number: unique identifier}"""
        return dict((int(n), uidl) for n, uidl in (line.split() for line in self.listing("UIDL")))

    def retrieve(self, numbers):
        """Yields (number, message) for each."""
        return self._blocks(numbers, "RETR {}")

    def heads(self, numbers):
        """Yields (number, header) for each."""
        return self._blocks(numbers, "TOP {} 0")

    def _blocks(self, numbers, command):
        """Yields each multi-line answer, pipelined in batches."""
        numbers = list(numbers)
        for at in range(0, len(numbers), self.BATCH):
            batch = numbers[at:at + self.BATCH]
            self.send("".join(command.format(number) + "\r\n" for number in batch).encode())
            for number in batch:
                self.answer()
                yield number, self.block()

    def fetch(self):
        """All messages, in order, as a list of `Found`."""
        sizes, uidls = self.sizes(), self.uidls()
        if list(sizes) != list(uidls):
            raise AssertionError("LIST and UIDL name other messages")
        return [Found(number, uidls[number], sizes[number], raw) for number, raw in self.retrieve(sizes)]

    def delete(self, numbers):
        """Marks messages as deleted, pipelined in batches."""
        numbers = list(numbers)
        for at in range(0, len(numbers), self.BATCH):
            batch = numbers[at:at + self.BATCH]
            self.send("".join(f"DELE {number}\r\n" for number in batch).encode())
            for _ in batch:
                self.answer()

    def quit(self):
        text = self.command("QUIT")
        self.close()
        return text


def empty(machine, user):
    """Deletes all mail of a user."""
    with machine.pop3(user) as session:
        session.delete(session.sizes())
        session.quit()


def uid_of(uidl):
    """The numbers in a unique identifier, which grow from message to message of one mailbox."""
    return tuple(int(number, 16) for number in re.findall(r"[0-9a-fA-F]+", uidl))


# ---------------------------------------------------------------------------------------------------------------------
# Letters that know themselves


class Letters:
    """Messages made from a seed and a number: what comes back tells which it is, and is compared byte by byte."""

    NUMBER = re.compile(rb"^X-Letter: (\d+)/(\d+)/(\d+)\r\n", re.M)

    def __init__(self, seed):
        self.seed = seed

    def make(self, number, size):
        """A message of about `size` bytes: lines of random length, some of which start with dots."""
        dice = random.Random(f"{self.seed}/{number}")
        head = (
            f"From: sender@client.test\r\nTo: whom@it.may.concern.test\r\nSubject: letter {number}\r\n"
            f"X-Letter: {self.seed}/{number}/{size}\r\n\r\n"
        ).encode()
        noise = dice.randbytes(max(size - len(head), 1) // 2).hex().encode()
        lines, at = [head], 0
        while at < len(noise):
            length = dice.choice((1, 20, 70, 76, 200, 990))
            lines.append(dice.choice((b"", b"", b"", b".", b"..")) + noise[at:at + length] + b"\r\n")
            at += length
        return b"".join(lines)

    def recognize(self, content):
        """The number of a message that came back. Errors: it is not ours, or not as it was sent."""
        match = self.NUMBER.search(content[:600])
        if not match or int(match[1]) != self.seed:
            raise AssertionError(f"not a message that was sent: {content[:200]!r}")
        number, size = int(match[2]), int(match[3])
        if content != self.make(number, size):
            raise AssertionError(f"letter {number} of {size} bytes is damaged: {len(content)} bytes came back")
        return number
