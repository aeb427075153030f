"""The promise: over IPv6 the machine serves Linux's own programs as it does over IPv4.

The machine is a Linux process at a tap interface, in the test's own network. Linux is its neighbour. When the test sends
router advertisements, Linux is also its router. `ping -6`, smtplib and poplib use only IPv6.

It takes 20 seconds. --quick runs the same tests.
"""

import poplib
import re
import smtplib
import socket
import struct
import subprocess
import threading

import barepost
import network
from mail import DOMAIN, PASSWORD, MessageMaker
from processes import die_with_us, program, until

TAP = "tap0"
LINUX, MACHINE = "fd00:9::1", "fd00:9::2"
PREFIX = "fd00:10::"
ADA = f"ada@{DOMAIN}"
ACCESS = """
[access]
plaintext_auth_from = ["fd00::/8", "fe80::/10"]
unthrottled_from    = ["fd00::/8", "fe80::/10"]
"""
FIXED = f"""
[network]
address = "{MACHINE}/64"
gateway = "{LINUX}"
"""


class Hosted(barepost.Run):
    """The machine as a Linux process."""

    host = MACHINE

    def __init__(self, data, *arguments):
        self._run(data, ["--hosted", "--tap", TAP, *arguments])


class Router:
    """Sends router advertisements twice a second, so that Linux acts as a router. Linux has no program for this."""

    def __init__(self, lifetime=1800):
        self.message = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, lifetime, 0, 0)
        self.message += struct.pack("!BBBBIII16s", 3, 4, 64, 0xC0, 86400, 14400, 0, socket.inet_pton(socket.AF_INET6, PREFIX))
        self.message += struct.pack("!BBHI", 5, 1, 0, 1400)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._speak, daemon=True)
        self.thread.start()

    def _speak(self):
        with socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6) as speaker:
            index = socket.if_nametoindex(TAP)
            speaker.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
            speaker.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
            # Otherwise Linux would receive its own advertisements, and form an address.
            speaker.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
            while not self.stopped.wait(0.5):
                speaker.sendto(self.message, ("ff02::1", 0, 0, index))

    def stop(self):
        self.stopped.set()
        self.thread.join(5)


class Ipv6Test(barepost.Test):
    def setUp(self):
        super().setUp()
        network.make_tap(TAP)
        network.ip(f"addr add {LINUX}/64 dev {TAP} nodad")
        network.ip(f"addr add {PREFIX}1/64 dev {TAP} nodad")
        self.addCleanup(network.ip, f"link delete {TAP}")

    def start(self, data, *arguments, **how):
        return self.watch(Hosted(data, *arguments, **how))

    def pings(self, address, *how):
        done = subprocess.run(
            [program("ping"), "-6", "-n", "-c", "3", "-i", "0.2", "-W", "5", *how, address],
            capture_output=True, text=True, timeout=60, preexec_fn=die_with_us,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("3 received", done.stdout)

    def exchange_mail(self, address):
        """Sends a message to `address` and fetches it from there. Returns it."""
        with smtplib.SMTP(address, 25, timeout=30) as sender:
            sender.sendmail("sender@client.test", [ADA], "Subject: six\r\n\r\nover IPv6\r\n")
        reader = poplib.POP3(address, 110, timeout=30)
        reader.user(ADA)
        reader.pass_(PASSWORD)
        number = reader.stat()[0]
        message = b"\n".join(reader.retr(number)[1]).decode()
        reader.quit()
        return message


class Fixed(Ipv6Test):
    configuration = barepost.CONFIGURATION + FIXED + ACCESS

    def test_linux_talks_to_it_over_ipv6(self):
        self.boot()
        self.pings(MACHINE)
        self.pings(MACHINE, "-s", "1452")
        message = self.exchange_mail(MACHINE)
        self.assertIn(f"([IPv6:{LINUX}])", message)
        self.assertTrue(message.endswith("over IPv6"), message)

    def test_large_messages_come_back_exact_over_ipv6(self):
        machine = self.boot()
        maker = MessageMaker(barepost.options.seed)
        sizes = (1, 1430, 1450, 65_535, 8_000_000)
        before = network.traffic(TAP)
        for number, size in enumerate(sizes):
            self.assertEqual(machine.deliver("sender@client.test", ADA, maker.make(number, size)).code, 250)
        for number, found in enumerate(machine.mailbox("ada")):
            self.assertSame(found.content, maker.make(number, sizes[number]))
        for way, (frames, octets) in network.traffic(TAP, before).items():
            barepost.say(f"{way}: {octets / frames:.0f} bytes a frame")
            self.assertGreater(octets / frames, 1514, f"{way}: the card is asked to cut")


class Advertised(Ipv6Test):
    configuration = barepost.CONFIGURATION + ACCESS

    def advertised_address(self, machine):
        # `run` does not know the address, so it cannot report when the machine is ready. While the machine creates
        # accounts, it may not answer a ping.
        machine.process.wait_for_line(r"\] serving ", barepost.READY_SECONDS)
        found = machine.process.wait_for_line(r"\] net: .*(fe80:[0-9a-f:]+)/64, (fd00:10:[0-9a-f:]+)/64", 30)
        return found[1], found[2]

    def test_a_router_gives_it_an_address_that_stays_the_same(self):
        router = Router()
        self.addCleanup(router.stop)
        data = self.data()
        addresses = set()
        for _ in range(2):
            machine = self.boot(data)
            near, far = self.advertised_address(machine)
            addresses.add((near, far))
            self.pings(far)
            self.pings(f"{near}%{TAP}")
            self.assertIn(f"([IPv6:{PREFIX}1])", self.exchange_mail(far))
            self.assertIn("([IPv6:fe80:", self.exchange_mail(f"{near}%{TAP}"))
            machine.stop()
        self.assertEqual(len(addresses), 1, "a name in the DNS must not change with every start")

    def test_linux_finds_nothing_wrong_with_its_neighbour(self):
        router = Router()
        self.addCleanup(router.stop)
        machine = self.boot()
        _, address = self.advertised_address(machine)
        self.pings(address)

        def state():
            shown = subprocess.run(["ip", "-6", "neigh", "show", "dev", TAP], capture_output=True, text=True, timeout=20)
            found = re.search(rf"^{address} .*?([A-Z]+)\s*$", shown.stdout, re.MULTILINE)
            return found and found[1]

        self.assertIn(state(), ("REACHABLE", "DELAY", "STALE", "PROBE"))
        # This makes Linux check whether its neighbour is reachable, as it does after a time without frames of it.
        network.ip(f"-6 neigh change {address} dev {TAP} nud probe")
        until(lambda: state() == "REACHABLE", 10, "an answer to Linux's question")


if __name__ == "__main__":
    network.enter()
    barepost.main()
