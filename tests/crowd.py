"""The promise: 10,000 idle and 1,000 busy HTTP connections fit in 256 MiB, and an idle connection owns no buffer.

The clients are at a tap interface, of the image in QEMU and of the hosted machine. Half of the idle clients have sent
nothing. The other half got one page each. There are fewer buffers than idle connections, so not each of them could own
one. The busy clients fetch page after page, and each page is exact. Meanwhile no connection is closed, and new clients
are served.

If the host is slow, a client requests a page before it has been silent for too long. The test prints the cost of a
connection, as the engine states it and by the growth of the process.

It takes half a minute. --quick runs the same tests.
"""

import collections
import contextlib
import errno
import re
import select
import socket
import time

import barepost
import network
from processes import allow_files

TAP = "tap0"
LINUX, MACHINE = "10.0.9.1", "10.0.9.2"
# The source addresses of connections, used in turn.
SOURCES = [f"10.0.9.{host}" for host in range(11, 19)]
HTTP = 80
IDLE, BUSY = 10_000, 1_000
PAGES_EACH = 20
# The files of this process in addition to the connections.
FILES = 200
# The most connection attempts at a time. The interface's queue has room for more.
UNDER_WAY = 200
# The machine ends connections after a minute of silence. No client is silent for more than twice this time, in seconds.
RENEWED_AFTER = 10
# The time limit of a whole test. A quiet host needs ten seconds.
SECONDS = 400
PAGE = "".join(f"<p>Line {number} of the page that all clients read.\n" for number in range(88)).encode()
REQUEST = f"GET / HTTP/1.1\r\nHost: {MACHINE}\r\n\r\n".encode()

CONFIGURATION = (
    barepost.CONFIGURATION
    + f"""
[network]
address = "{MACHINE}/24"

[web]
site = "pages"

# The crowd has a few addresses, each with more connections than a stranger may have.
[access]
unthrottled_from = ["10.0.9.0/24"]
"""
)


class Client:
    """One connection."""

    def __init__(self, number):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.bind((SOURCES[number % len(SOURCES)], 0))
        self.is_open = False
        self.to_ask = 0
        self.is_asking = False
        self.answered = 0
        self.heard = bytearray()


class Crowd(contextlib.AbstractContextManager):
    """Many connections, in one thread."""

    def __init__(self):
        self.poll = select.epoll()
        self.clients = {}
        self.to_renew = collections.deque()
        self.deadline = time.monotonic() + SECONDS
        # The number of clients that wait for a page.
        self.asking = 0
        self.renewed = 0

    def __exit__(self, *_):
        for client in self.clients.values():
            client.socket.close()
        self.poll.close()

    def grow(self, more):
        """Opens `more` connections. Returns them when all of them are open."""
        opened, under_way = [], set()
        while len(opened) < more or under_way:
            while len(under_way) < UNDER_WAY and len(opened) < more:
                client = Client(len(self.clients))
                if (error := client.socket.connect_ex((MACHINE, HTTP))) not in (0, errno.EINPROGRESS):
                    raise OSError(error, errno.errorcode[error])
                self.clients[client.socket.fileno()] = client
                self.poll.register(client.socket, select.EPOLLOUT)
                opened.append(client)
                under_way.add(client)
            self.turn()
            under_way = {client for client in under_way if not client.is_open}
        return opened

    def ask(self, clients, pages):
        """Each client requests `pages` pages, one after the other. Returns when all clients have their pages."""
        for client in clients:
            client.to_ask += pages
            self.go_on(client)
        while self.asking:
            self.turn()

    def go_on(self, client):
        if client.to_ask and not client.is_asking:
            client.to_ask -= 1
            client.is_asking = True
            self.asking += 1
            client.socket.send(REQUEST)

    def turn(self):
        now = time.monotonic()
        if now > self.deadline:
            raise AssertionError(f"not done within {SECONDS} s: {len(self.clients)} connections")
        for number, event in self.poll.poll(0.2, 1000):
            client = self.clients[number]
            if not client.is_open:
                if error := client.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    raise OSError(error, errno.errorcode[error])
                client.is_open = True
                self.poll.modify(number, select.EPOLLIN)
                self.to_renew.append((now, client, client.answered))
            elif event:
                self.hear(client)
        while self.to_renew and now - self.to_renew[0][0] > RENEWED_AFTER:
            _, client, answered = self.to_renew.popleft()
            if client.answered == answered and not client.is_asking:
                self.renewed += 1
                client.to_ask += 1
                self.go_on(client)
            self.to_renew.append((now, client, client.answered))

    def hear(self, client):
        heard = client.socket.recv(1 << 16)
        if not heard:
            raise AssertionError(f"a connection was ended after {client.answered} pages")
        client.heard += heard
        head, found, body = client.heard.partition(b"\r\n\r\n")
        if not found or len(body) < len(PAGE):
            return
        if not head.startswith(b"HTTP/1.1 200 ") or body != PAGE:
            raise AssertionError(f"not the page: {bytes(client.heard[:200])!r}, {len(body)} bytes")
        client.heard.clear()
        client.is_asking = False
        self.asking -= 1
        client.answered += 1
        self.go_on(client)


def resident_bytes(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) << 10


class AtTap(barepost.Run):
    host = MACHINE

    def __init__(self, data, *arguments):
        self._run(data, ["--tap", TAP, *arguments])


class Crowds(barepost.Test):
    configuration = CONFIGURATION

    def setUp(self):
        super().setUp()
        network.make_tap(TAP, f"{LINUX}/24", queues="multi_queue" if barepost.options.cores > 1 else "")
        self.addCleanup(network.ip, f"link delete {TAP}")
        for source in SOURCES:
            network.ip(f"addr add {source}/24 dev {TAP}")

    def start(self, data, *arguments, **how):
        (data / "pages").mkdir()
        (data / "pages/index.html").write_bytes(PAGE)
        return self.watch(AtTap(data, *arguments, **how))

    def serves(self, machine, pid):
        sizes = machine.process.wait_for_line(
            r"sizes: (?:(\d+) cores, each with )?(\d+) connections \((\d+) bytes for each idle one\), .* (\d+) blocks of", 1)
        cores, connections, idle_bytes, blocks = (int(number or 1) for number in sizes.groups())
        self.assertGreater(cores * connections, IDLE + BUSY)
        self.assertLess(cores * blocks, IDLE // 2, "so many idle connections could have a buffer each")
        with Crowd() as crowd:
            # The machine takes memory that it needs only once before the measurement.
            crowd.ask(crowd.grow(100), 1)
            before, began = resident_bytes(pid), time.monotonic()
            idle = crowd.grow(IDLE)
            opened = time.monotonic() - began
            crowd.ask(idle[: IDLE // 2], 1)
            grown = resident_bytes(pid) - before
            busy, began = crowd.grow(BUSY), time.monotonic()
            crowd.ask(busy, PAGES_EACH)
            rate = BUSY * PAGES_EACH / (time.monotonic() - began)
            self.assertEqual(len(crowd.clients), 100 + IDLE + BUSY)
            crowd.ask(crowd.grow(50), 2)
            with machine.smtp() as newcomer:
                newcomer.ehlo()
                self.assertEqual(newcomer.command("NOOP").code, 250)
            # No idle connection was closed.
            crowd.ask(idle, 1)
            barepost.say(
                f"{IDLE} idle connections in {opened:.1f} s, {idle_bytes} bytes each as the engine says, the process grew by "
                f"{grown / IDLE:.0f}; {BUSY} busy ones {rate:,.0f} pages a second; {crowd.renewed} renewed"
            )
        # The engine's memory for a connection, and pages that the process had not touched before.
        self.assertLess(grown / IDLE, idle_bytes + 1024)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def test_hosted_10_000_idle_and_1_000_busy_connections_fit(self):
        machine = self.boot(None, "--hosted")
        self.serves(machine, machine.process.pid)

    def test_10_000_idle_and_1_000_busy_connections_fit_in_256_mib(self):
        machine = self.boot(None, "--accel", "tcg")
        self.serves(machine, machine.qemu())


if __name__ == "__main__":
    allow_files(IDLE + BUSY + FILES)
    network.enter()
    network.show()
    barepost.main()
