"""Programs that tests start, watch and end, and waits with a time limit."""

import contextlib
import ctypes
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(os.path.abspath(__file__)).parent.parent
STOP_SECONDS = 30


class Late(AssertionError):
    """A condition did not become true in time."""


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


def die_with_us():
    """Runs in a child before exec. The child gets SIGKILL when the test dies (PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def alive(pid):
    """Whether a process runs. A zombie, which has ended, does not run."""
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def allow_files(wanted):
    """Raises the limit of open files to `wanted`. A limit above the hard limit needs root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < wanted:
        sys.exit(f"this test needs {wanted} open files, and {hard} are permitted (ulimit -n)")


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
    """The processor time that all threads of a process have used so far, in seconds."""
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
        """The lines that the program has printed so far."""
        with self._changed:
            return list(self._lines)

    def wait_for_line(self, pattern, seconds, skip=0):
        """Waits for a line with `pattern`, after the first `skip` lines. Returns the match."""
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
        """The end of the output, for the message of a failure."""
        return "it printed:\n    " + "\n    ".join(self._lines[-lines:])

    def wait(self, seconds):
        """Waits for the end of the program. Returns its exit status."""
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
        """Kills the program, like a power cut."""
        with contextlib.suppress(ProcessLookupError):
            self.popen.kill()
        self.wait(STOP_SECONDS)
