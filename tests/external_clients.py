"""A machine in QEMU at a tap interface, and clients with addresses in other networks.

The machine and the clients are in the test's own network namespace. This file has the machine's configuration.
"""

import socket
import ssl

import barepost
import network
from mail import DOMAIN, PASSWORD

TAP = "tap0"
LINUX, MACHINE = "10.0.9.1", "10.0.9.2"
LINUX_IPV6, MACHINE_IPV6 = "fd00:9::1", "fd00:9::2"
NAME_SERVER, HONEST, MX_HOST = (f"198.51.100.{number}" for number in range(1, 4))
# Addresses of two IPv4 networks, of one IPv6 network (a /48), and of many IPv6 networks.
CROWD, CROWD_ELSEWHERE = "203.0.113.{}", "192.0.2.{}"
HONEST_IPV6, CROWD_IPV6 = "2001:db8:3:{:x}::1", "2001:db8:2:{:x}::1"
NETWORKS_IPV6 = "2001:db8:{:x}::1"
# The configuration. `run` gives the machine 256 MiB by default.
CONFIGURATION = (
    barepost.CONFIGURATION
    + f"""
[network]
address = ["{MACHINE}/24", "{MACHINE_IPV6}/64"]
gateway = ["{LINUX}", "{LINUX_IPV6}"]
dns     = ["{NAME_SERVER}"]

[relay]
private_networks = ["{MX_HOST}/32"]

[access]
plaintext_auth_from = ["2001:db8::/32", "{HONEST}/32", "{LINUX}/32"]

[abuse]
greeting_delay = "0s"
"""
)
IPV6_FREEBIND = 78
# The longest wait of a client, in seconds.
PATIENCE = 60


def settle():
    """Gives this network namespace the addresses of all clients."""
    for address in (NAME_SERVER, HONEST, MX_HOST):
        network.ip(f"addr add {address}/32 dev lo")
    for addresses in (CROWD, CROWD_ELSEWHERE):
        network.ip(f"route add local {addresses.format(0)}/24 dev lo")
    network.ip("-6 route add local 2001:db8::/32 dev lo")


def unconnected(source):
    """A socket that is bound to the address `source`, of the local network or of another network."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    talk = socket.socket(family, socket.SOCK_STREAM)
    if family == socket.AF_INET6:
        talk.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)
    talk.bind((source, 0))
    return talk


def connect(port, source, patience=PATIENCE, context=None):
    """A connection from the address `source`, over TLS if there is a context."""
    talk = unconnected(source)
    if context:
        talk = context.wrap_socket(talk)
    talk.settimeout(patience)
    try:
        talk.connect((MACHINE_IPV6 if ":" in source else MACHINE, port))
    except BaseException:
        talk.close()
        raise
    return talk


def any_certificate(*protocols):
    """A TLS context that accepts any certificate and offers these protocols."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def line(talk):
    """Receives the next line. It takes no more, because the machine sends one line at a time here."""
    return talk.recv(1000).decode()


def say(talk, text):
    talk.sendall(f"{text}\r\n".encode())
    return line(talk)


def log_in(source, user, password=PASSWORD):
    """The answer to a login over POP3."""
    with connect(110, source) as talk:
        line(talk)
        say(talk, f"USER {user}@{DOMAIN}")
        answer = say(talk, f"PASS {password}")
        # QUIT frees the maildrop before this function returns.
        say(talk, "QUIT")
        return answer


class AtTap(barepost.Run):
    """The machine in QEMU at a tap interface."""

    host = MACHINE

    def __init__(self, data, *arguments):
        self._run(data, ["--tap", TAP, "--accel", "tcg", *arguments])


class ExternalClientsTest(barepost.Test):
    configuration = CONFIGURATION

    def start_at_tap(self, cores):
        network.make_tap(TAP, f"{LINUX}/24", queues="multi_queue" if cores > 1 else "")
        self.addCleanup(network.ip, f"link delete {TAP}")
        network.ip(f"-6 addr add {LINUX_IPV6}/64 dev {TAP} nodad")
        return self.watch(AtTap(self.data(), "--cores", cores)).ready()

    def assertServed(self):
        """Asserts that each service greets a client of another network, and that it gets a page and logs in."""
        for port, greeting in ((25, "220 "), (587, "220 "), (110, "+OK")):
            with connect(port, HONEST) as talk:
                heard = line(talk)
                self.assertTrue(heard.startswith(greeting), f"port {port}: {heard}")
        with connect(443, HONEST, context=any_certificate()) as talk:
            talk.sendall(f"GET /mail/login HTTP/1.1\r\nHost: {MACHINE}\r\nConnection: close\r\n\r\n".encode())
            heard = talk.recv(100).decode()
            self.assertTrue(heard.startswith("HTTP/1.1 200 "), heard)
        answer = log_in(HONEST, "grace")
        self.assertTrue(answer.startswith("+OK"), answer)

    def assertNeverRestarted(self, machine):
        """Asserts that the machine's console shows one start and no panic."""
        printed = machine.process.lines()
        self.assertEqual([text for text in printed if "PANIC" in text], [])
        self.assertEqual(len([text for text in printed if "serving " in text]), 1, machine.process.tail(200))
