"""The promise: no client locks out others, by connections or by password guesses.

The tests run the image in QEMU, with 256 MiB, with one core and with four.

- One address opens more connections than the machine accepts, and sends NOOP on each every three
  seconds. Every service still greets other clients, and they log in.
- Guesses from the addresses of a whole IPv6 network (a /48) delay the logins of others by the time
  of a few password hashes at most.
- Other clients are served while HTTP/2 connections of one address hold as much memory as they get,
  and while as many connections as the machine accepts do not read their responses.

It takes some minutes. --quick runs the same tests.
"""

import concurrent.futures
import contextlib
import re
import select
import time

import barepost
import hoarding
import network
import external_clients
from mail import DOMAIN
from processes import allow_files
from external_clients import CROWD, CROWD_IPV6, HONEST_IPV6, MACHINE, NETWORKS_IPV6, PATIENCE

# The seconds between two NOOPs on a connection, and the seconds for which they are sent.
DRIP, DRIPPING = 3, 15
# The connections beyond the limit, and the files of this process in addition to connections.
MORE, FILES = 500, 500
CONNECTIONS_MAX = 18_000
# The number of concurrent guesses, and the duration of the attack in seconds.
GUESSES, GUESSING = 60, 25
# The longest time of a login, in hashes. It includes its own hash, the hash that waits longest, and
# an equal pause before each. The greeting, two commands, the job and the reply may each wait for a
# core that computes another hash. The rest is a margin for a busy host.
HASHES_AWAITED_MAX = 10
# The numbers of HTTP/2 connections that hold memory.
HOARDERS_MAX, HOARDERS_OF_ONE_ADDRESS = 14_000, 3_000


def log_in(user, number):
    """The seconds that a POP3 connection and login take."""
    began = time.monotonic()
    answer = external_clients.log_in(HONEST_IPV6.format(number), user)
    if not answer.startswith("+OK"):
        raise AssertionError(f"{user}: {answer}")
    return time.monotonic() - began


class Crowd(contextlib.AbstractContextManager):
    """Connections of one address to the submission port."""

    def __init__(self, source):
        self._source = source
        self._poll = select.epoll()
        self._connections = {}
        self.greeted = self.refused = 0

    def __exit__(self, *_):
        for connection in self._connections.values():
            connection.close()
        self._poll.close()

    def open(self, count):
        for number in range(count):
            connection = external_clients.unconnected(self._source)
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                connection.connect((MACHINE, 587))
            self._connections[connection.fileno()] = connection
            self._poll.register(connection, select.EPOLLIN)
            if number % 50 == 49:
                self.listen(0.02)

    def listen(self, seconds):
        for number, _ in self._poll.poll(seconds):
            try:
                heard = self._connections[number].recv(4096)
            except OSError:
                heard = b""
            self.greeted += heard.startswith(b"220")
            self.refused += heard.startswith(b"421")
            if not heard:
                self._poll.unregister(number)
                self._connections.pop(number).close()

    def drip(self):
        for connection in self._connections.values():
            with contextlib.suppress(OSError):
                connection.send(b"NOOP\r\n")
        self.listen(0)


class Crowding:
    """The tests on a machine of `cores` cores."""

    cores = None

    def setUp(self):
        super().setUp()
        self.machine = self.start_at_tap(self.cores)

    def places(self):
        """The number of connections that the machine accepts."""
        sizes = self.machine.process.wait_for_line(r"sizes: (?:(\d+) cores, each with )?(\d+) connections", 1)
        cores, connections = (int(number or 1) for number in sizes.groups())
        self.assertEqual(cores, self.cores)
        return cores * connections

    def test_connections_of_one_address_leave_places_to_others(self):
        self.assertServed()
        count = self.places() + MORE
        self.assertLess(count, CONNECTIONS_MAX)
        with Crowd(CROWD.format(1)) as crowd:
            crowd.open(count)
            end = time.monotonic() + DRIPPING
            while time.monotonic() < end:
                next_drip = time.monotonic() + DRIP
                crowd.drip()
                self.assertServed()
                while time.monotonic() < next_drip:
                    crowd.listen(0.1)
            barepost.say(f"{self.cores} cores: of {count} {crowd.greeted} greeted, {crowd.refused} refused")
            self.assertGreater(crowd.greeted, 100)
        self.assertServed()
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())

    def guess(self, number, end):
        """Guesses from one /64 after the other until `end`."""
        while time.monotonic() < end:
            number += GUESSES
            source = CROWD_IPV6.format(number % 0x10000)
            with contextlib.suppress(OSError), external_clients.connect(110, source, 12) as talk:
                external_clients.line(talk)
                external_clients.say(talk, f"USER ada@{DOMAIN}")
                external_clients.say(talk, f"PASS wrong{number}")

    def test_guesses_of_a_network_do_not_keep_others_waiting(self):
        # With several cores, the first core computes no hash. The other cores compute one hash each,
        # which takes longer on a host with fewer processors.
        first = ["ada", "barbara", "grace"][:max(self.cores - 1, 1)]
        with concurrent.futures.ThreadPoolExecutor(len(first)) as pool:
            hashed = max(pool.map(log_in, first, range(1, 4)))
        end = time.monotonic() + GUESSING
        with concurrent.futures.ThreadPoolExecutor(GUESSES) as pool:
            guesses = pool.map(lambda number: self.guess(number, end), range(GUESSES))
            time.sleep(5)
            during = [log_in("edsger", 4), log_in("barbara", 5), log_in("grace", 6)]
            self.assertEqual(list(guesses), [None] * GUESSES)
        times = ", ".join(f"{seconds:.2f}" for seconds in during)
        barepost.say(f"{self.cores} cores: a login takes {hashed:.2f} s, and during guesses {times} s")
        for seconds in during:
            self.assertLess(seconds, HASHES_AWAITED_MAX * hashed)
        # The machine is not stopped here: hashes of guesses still wait, and on a slow host each takes
        # seconds, which a stop cannot interrupt.
        self.assertNeverRestarted(self.machine)

    def hoard(self, text, sources):
        with hoarding.Hoard(text, sources) as hoard:
            barepost.say(f"{self.cores} cores: {hoard}")
            self.assertServed()
        self.assertServed()

    def test_http_2_connections_of_one_address_leave_memory(self):
        for text in (hoarding.uploads(), hoarding.pinned()):
            self.hoard(text, [CROWD.format(1)] * HOARDERS_OF_ONE_ADDRESS)
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())

    def test_answers_that_are_not_taken_leave_memory_to_others(self):
        # The connections leave some places for others.
        numbers = range(min(HOARDERS_MAX, self.places() * 9 // 10))
        self.hoard(hoarding.pinned(), [NETWORKS_IPV6.format(0x100 + number) for number in numbers])
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())


class OnOneCore(Crowding, external_clients.ExternalClientsTest):
    cores = 1


class OnFourCores(Crowding, external_clients.ExternalClientsTest):
    cores = 4


if __name__ == "__main__":
    network.enter()
    network.show()
    allow_files(CONNECTIONS_MAX + FILES)
    external_clients.settle()
    barepost.main()
