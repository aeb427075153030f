"""The promise: clients of a network that guess passwords from many addresses do not keep others waiting.

The machine in QEMU at a tap interface; the clients have addresses of networks far away, in a network namespace of the test's own.

Takes a minute; --quick leaves nothing out.
"""

import contextlib
import socket
import threading
import time

import barepost
import network
from mail import DOMAIN, PASSWORD

TAP = "tap0"
LINUX, MACHINE = "10.0.9.1", "10.0.9.2"
LINUX_IPV6, MACHINE_IPV6 = "fd00:9::1", "fd00:9::2"
HONEST_IPV6, GUESSERS = "2001:db8:3:{:x}::1", "2001:db8:2:{:x}::1"
CONFIGURATION = (
    barepost.CONFIGURATION
    + f"""
[network]
address = ["{MACHINE}/24", "{MACHINE_IPV6}/64"]
gateway = ["{LINUX}", "{LINUX_IPV6}"]

[access]
plaintext_auth_from = ["2001:db8::/32"]

[abuse]
greeting_delay = "0s"
"""
)
IPV6_FREEBIND = 78
# Guesses under way at once, and how long they go on. Seconds.
GUESSES, GUESSING = 60, 25
# How long a client waits at the most. Seconds.
PATIENCE = 60


class AtTap(barepost.Run):
    """The machine in QEMU at a tap interface."""

    host = MACHINE

    def __init__(self, data, *arguments):
        self._run(data, ["--tap", TAP, "--accel", "tcg", *arguments])


def connect(port, source, host=MACHINE):
    """A connection from an address that is the machine's own peer or lies far behind it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    talk = socket.socket(family, socket.SOCK_STREAM)
    talk.settimeout(PATIENCE)
    if family == socket.AF_INET6:
        talk.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    talk.bind((source, 0))
    talk.connect((host, port))
    return talk


def line(talk):
    """The next line; the machine says no more than one at a time here."""
    return talk.recv(1000).decode()


def say(talk, text):
    talk.sendall(f"{text}\r\n".encode())
    return line(talk)


def log_in(source, user, password, host):
    """What a login over POP3 is answered, and how long it takes with its connection."""
    began = time.monotonic()
    with connect(110, source, host) as talk:
        line(talk)
        say(talk, f"USER {user}@{DOMAIN}")
        answer = say(talk, f"PASS {password}")
    return answer, time.monotonic() - began


class CrowdingTest(barepost.Test):
    configuration = CONFIGURATION

    def start_at_tap(self, cores):
        network.make_tap(TAP, f"{LINUX}/24")
        self.addCleanup(network.ip, f"link delete {TAP}")
        network.ip(f"-6 addr add {LINUX_IPV6}/64 dev {TAP} nodad")
        network.ip("-6 route replace local 2001:db8::/32 dev lo")
        return self.watch(AtTap(self.data(), "--cores", cores)).ready()


class Guesses(CrowdingTest):
    def guess(self, number, end):
        """Guesses from one /64 after the other until `end`."""
        while time.monotonic() < end:
            number += GUESSES
            with contextlib.suppress(OSError), connect(110, GUESSERS.format(number % 0x10000), MACHINE_IPV6) as talk:
                talk.settimeout(12)
                line(talk)
                say(talk, f"USER ada@{DOMAIN}")
                say(talk, f"PASS wrong{number}")

    def honest(self, user, number):
        answer, seconds = log_in(HONEST_IPV6.format(number), user, PASSWORD, MACHINE_IPV6)
        self.assertTrue(answer.startswith("+OK"), answer)
        return seconds

    def test_guesses_of_a_network_do_not_keep_others_waiting(self):
        machine = self.start_at_tap(1)
        # The first login takes a hash, the second one none.
        hashed, remembered = self.honest("grace", 1), self.honest("grace", 1)
        end = time.monotonic() + GUESSING
        threads = [threading.Thread(target=self.guess, args=(number, end)) for number in range(GUESSES)]
        for thread in threads:
            thread.start()
        time.sleep(5)
        during = [self.honest("barbara", 2), self.honest("edsger", 3), self.honest("grace", 4)]
        for thread in threads:
            thread.join(PATIENCE)
        times = ", ".join(f"{seconds:.2f}" for seconds in (hashed, remembered, *during))
        barepost.say(f"seconds of a login with and without a hash, and of three during guesses: {times}")
        # A login waits for two hashes of others and the rest behind one at the most.
        for seconds in during:
            self.assertLess(seconds, 1 + 4 * hashed)
        self.assertEqual(machine.stop(), 0, machine.process.tail())


if __name__ == "__main__":
    network.enter()
    network.show()
    barepost.main()
