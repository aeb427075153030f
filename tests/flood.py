"""The promise: floods of SYNs, ACKs, RSTs and garbage from many addresses lock out no client for good and take no memory.

The machine is hosted at a tap interface. The flood is sent directly into the interface, while 100 honest clients deliver
and fetch mail.

- First the flood has 100,000 frames a second, or as many as the interface passes on. Clients notice only a small delay:
  all finish, and none has to retry. Frames that the interface loses do not reach the machine. So the flood slows down
  for a while when the interface loses frames, and is comparable on slow and on fast hosts.
- Then the flood is as fast as this host can send. If that is more than the interface passes on, frames of all clients
  get lost. Clients that retry, as mail programs do, finish at the latest after the flood.

The memory of the machine does not grow.

It takes a minute. --quick runs the same tests.
"""

import contextlib
import ctypes
import itertools
import mmap
import os
import re
import signal
import socket
import struct
import threading
import time

import barepost
import hosted
import network
from mail import DOMAIN, MessageMaker
from processes import die_with_us, until

CLIENTS = 100
MESSAGES = 2
# The most memory that the index of 300 messages and the allocator may take, in KiB.
GROWTH_KIB_MAX = 512
FRAMES = 20_000
# The longest wait of a client for a reply, and for all of its mail, in seconds.
PATIENCE = 60
# The longest wait for a reply of a client that retries, and its pause before a retry, in seconds.
SHORT_PATIENCE, PAUSE = 10, 1

# The rate of the flood in frames a second. In this test, real handshakes are admitted at a thousandth of this rate.
RATE = 100_000
# The interface's queue, in frames. It has room for the frames that arrive while a busy host runs other processes.
QUEUE = 30_000
# The frames that one call sends, and the number of calls after which a flood checks for lost frames.
BURST, LOOK = 64, 50
# A flood that is late sends faster to catch up, but only for at most this time, in seconds.
LATE = 0.01
# The number of frames that a flood sends before honest clients connect.
FRAMES_BEFORE = 20_000
# The time for which the flood is as fast as possible, in seconds.
STORM_SECONDS = 4

TCP, UDP, ICMP = 6, 17, 1
SYN, RST, ACK = 0x02, 0x04, 0x10
# The positions of the source port and of the lower half of the acknowledgment number in a frame, and the number of
# values that each gets.
WORD, PORT_AT, NUMBER_AT, PORTS = struct.Struct(">H"), 34, 44, 20_000


class Piece(ctypes.Structure):
    """`struct iovec`."""

    _fields_ = [("start", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Message(ctypes.Structure):
    """`struct mmsghdr`: the pieces of a message (`struct msghdr`), and the number of bytes that were sent."""

    _fields_ = [
        ("name", ctypes.c_void_p), ("name_bytes", ctypes.c_uint), ("pieces", ctypes.POINTER(Piece)), ("piece_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p), ("control_bytes", ctypes.c_size_t), ("flags", ctypes.c_size_t), ("sent", ctypes.c_size_t),
    ]


class Frames:
    """Frames that are sent into an interface again and again. Frames of TCP differ each time: the source port and the
    acknowledgment number change so that the checksum stays the same."""

    def __init__(self, frames, interface):
        self._memory = bytearray(b"".join(frames))
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._messages, self._pieces = (Message * len(frames))(), (Piece * len(frames))()
        self._changing, at = [], 0
        for frame, message, piece in zip(frames, self._messages, self._pieces):
            piece.start, piece.bytes = start + at, len(frame)
            message.pieces, message.piece_count = ctypes.pointer(piece), 1
            is_tcp = frame[12:14] == b"\x08\x00" and frame[23] == TCP
            words = [(at + place, WORD.unpack_from(frame, place)[0]) for place in (PORT_AT, NUMBER_AT)] if is_tcp else None
            self._changing.append(words)
            at += len(frame)
        self._wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self._wire.bind((interface, 0))
        self._libc = ctypes.CDLL(None)
        self._turn, self._next = 0, 0

    def send(self, count):
        """Sends the next frames, at most `count`. Returns the number that the interface accepted, including those it lost."""
        end = min(self._next + count, len(self._messages))
        for words in self._changing[self._next:end]:
            if words:
                (port_at, port), (number_at, number) = words
                WORD.pack_into(self._memory, port_at, port + self._turn)
                WORD.pack_into(self._memory, number_at, number - self._turn)
        sent = self._libc.sendmmsg(self._wire.fileno(), ctypes.byref(self._messages[self._next]), end - self._next, 0)
        self._next = end % len(self._messages)
        if self._next == 0:
            self._turn = (self._turn + 1) % PORTS
        return max(sent, 0)


class Flood:
    """A process that sends `frames` into an interface until it is stopped. It sends `rate` frames a second, evenly, and
    fewer while the interface loses frames. Without a rate it sends as fast as it can."""

    def __init__(self, frames, interface, rate=None):
        self._sent = mmap.mmap(-1, 8)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                die_with_us()
                self._send_for_ever(Frames(frames, interface), interface, rate)
            finally:
                os._exit(1)

    def _send_for_ever(self, frames, interface, rate):
        sent, pace, lost, due = 0, rate, network.lost(interface), time.monotonic()
        for call in itertools.count(1):
            sent += frames.send(BURST)
            self._sent[:8] = struct.pack("Q", sent)
            if rate is None:
                continue
            due = max(due + BURST / pace, time.monotonic() - LATE)
            time.sleep(max(due - time.monotonic(), 0))
            if call % LOOK == 0:
                before, lost = lost, network.lost(interface)
                pace = min(pace * 1.1, rate) if lost == before else max(pace / 2, rate / 100)

    def sent(self):
        """The number of frames sent so far."""
        return struct.unpack("Q", self._sent[:8])[0]

    def stop(self):
        """Ends the flood. Returns the number of frames sent."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return self.sent()


class Crowd:
    """`CLIENTS` clients at a time. Most deliver `MESSAGES` messages each. For each mailbox one client fetches them as they
    arrive."""

    patience = PATIENCE

    def __init__(self, machine, maker, base):
        self._machine, self._maker, self._base = machine, maker, base
        self._failures = []
        users = range(len(barepost.USERS))
        letters_of = [set(range(base + at, base + at + MESSAGES)) for at in range(0, (CLIENTS - len(users)) * MESSAGES, MESSAGES)]
        clients = [(self._deliver, user, left) for left, user in zip(letters_of, itertools.cycle(users))]
        clients += [(self._fetch, user, set().union(*letters_of[user::len(users)])) for user in users]
        self._threads = [threading.Thread(target=self._attempt, args=client) for client in clients]
        for thread in self._threads:
            thread.start()

    def failures(self):
        """Waits for all clients. Returns a list of failures."""
        for thread in self._threads:
            thread.join()
        return self._failures

    def _attempt(self, what, user, left):
        try:
            what(barepost.USERS[user], left)
        except Exception as error:
            self._failures.append(f"{what.__name__}: {error!r}; {sorted(left)} are left")

    def _deliver(self, user, left):
        with self._machine.smtp(timeout=self.patience) as session:
            session.ehlo()
            for number in sorted(left):
                reply = session.deliver("sender@client.test", f"{user}@{DOMAIN}", self._maker.make(number, 3000))
                if reply.code != 250:
                    raise AssertionError(f"message {number}: {reply}")
                left.remove(number)
            session.quit()

    def _fetch(self, user, left):
        over = time.monotonic() + self.patience
        while left:
            with self._machine.pop3(user, timeout=self.patience) as session:
                found = session.fetch()
                self._take({self._maker.recognize(each.content) for each in found}, left)
                session.delete(each.number for each in found)
                session.quit()
            if left and time.monotonic() > over:
                raise AssertionError("the others do not come")
            time.sleep(0.2)

    def _take(self, numbers, left):
        if not numbers <= left:
            raise AssertionError(f"{sorted(numbers - left)} came twice")
        left -= numbers


class TirelessCrowd(Crowd):
    """A crowd of clients that retry after a failure, as mail programs do. So a message may arrive twice."""

    patience = SHORT_PATIENCE
    _over = float("inf")

    def failures(self):
        """Waits for all clients while they retry. Returns a list of failures."""
        self._over = time.monotonic() + PATIENCE
        return super().failures()

    def _attempt(self, what, user, left):
        while True:
            try:
                return what(barepost.USERS[user], left)
            except Exception as error:
                if time.monotonic() > self._over:
                    self._failures.append(f"{what.__name__}: {error!r}; {sorted(left)} are left")
                    return
            time.sleep(PAUSE)

    def _take(self, numbers, left):
        left -= numbers


class Floods(hosted.HostedTest):
    configuration = hosted.CONFIGURATION.replace(
        f'address = "{hosted.MACHINE}/24"', f'address = "{hosted.MACHINE}/24"\ngateway = "{hosted.LINUX}"'
    )

    def setUp(self):
        super().setUp()
        network.ip(f"link set {hosted.TAP} txqueuelen {QUEUE}")

    def test_a_syn_flood_takes_no_memory_and_delays_no_client(self):
        self.survives(lambda dice: tcp(dice, dice.choice((25, 110)), SYN))

    def test_an_ack_flood_takes_no_memory_and_delays_no_client(self):
        self.survives(lambda dice: tcp(dice, dice.choice((25, 110)), ACK, dice.randbytes(dice.randrange(100))))

    def test_a_reset_flood_takes_no_memory_and_delays_no_client(self):
        # Some resets have the address of the honest clients. A reset outside the window ends no connection.
        self.survives(lambda dice: tcp(dice, 25, RST, source=dice.choice((hosted.LINUX, None))))

    def test_a_garbage_flood_takes_no_memory(self):
        self.survives(garbage)

    def survives(self, make):
        machine = self.boot(self.data())
        maker = MessageMaker(barepost.options.seed)
        card = bytes.fromhex(machine.process.wait_for_line(r"net: card ([0-9a-f:]+),", 1)[1].replace(":", ""))
        frames = [card + make(self.dice) for _ in range(FRAMES)]
        with self.flood(frames, RATE):
            # Linux allocates memory when a process first writes to it. So the first crowd makes the machine take the memory
            # that it needs only once.
            self.assertEqual(Crowd(machine, maker, 10_000).failures(), [])
            before = resident_kib(machine.process.pid)
            self.assertEqual(Crowd(machine, maker, 20_000).failures(), [])
        with self.flood(frames):
            crowd = TirelessCrowd(machine, maker, 30_000)
            time.sleep(STORM_SECONDS)
        self.assertEqual(crowd.failures(), [])
        grown = resident_kib(machine.process.pid) - before
        barepost.say(f"all done; memory {grown:+} KiB")
        self.assertLess(grown, GROWTH_KIB_MAX)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    @contextlib.contextmanager
    def flood(self, frames, rate=None):
        """A flood that has begun. It ends with the context."""
        lost, began = network.lost(hosted.TAP), time.monotonic()
        flood = Flood(frames, hosted.TAP, rate)
        try:
            until(lambda: flood.sent() >= FRAMES_BEFORE, 20, "a flood")
            yield
        finally:
            sent = flood.stop()
        lost, seconds = network.lost(hosted.TAP) - lost, time.monotonic() - began
        barepost.say(f"{sent:,} frames, {sent / seconds:,.0f}/s, of which the interface lost {lost / sent:.1%}; {seconds:.1f} s")


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])


def tcp(dice, port, flags, payload=b"", source=None):
    """A well-formed segment from a random address, in a frame without the destination's hardware address."""
    source = socket.inet_aton(source) if source else bytes((10, 9, dice.choice((0, 7)), dice.randrange(3, 255)))
    to = socket.inet_aton(hosted.MACHINE)
    header = struct.pack(
        ">HHIHHBBHHH",
        dice.randrange(1024, 1 << 15), port, dice.getrandbits(32), dice.getrandbits(16), dice.randrange(1 << 15, 1 << 16),
        5 << 4, flags, 65535, 0, 0,
    )
    pseudo = source + to + struct.pack(">BBH", 0, TCP, len(header) + len(payload))
    summed = checksum(pseudo + header + payload)
    segment = header[:16] + summed + header[18:] + payload
    return bytes((2, 1, 1, 1, 1, 1)) + b"\x08\x00" + ipv4(dice, TCP, source, to, segment)


def ipv4(dice, protocol, source, to, payload):
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), dice.getrandbits(16), 0, 64, protocol, 0, source, to)
    return header[:10] + checksum(header) + header[12:] + payload


def checksum(data):
    """RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">H", ~total & 0xFFFF)


def garbage(dice):
    """A frame of random bytes, possibly after valid headers."""
    start = bytes((2, 1, 1, 1, 1, 1))
    noise = dice.randbytes(dice.randrange(46, 1400))
    source, to = bytes((10, 9, 0, dice.randrange(3, 255))), socket.inet_aton(hosted.MACHINE)
    kind = dice.randrange(5)
    if kind == 0:
        return start + noise
    if kind == 1:
        return start + b"\x08\x00" + noise
    if kind == 2:
        return start + b"\x08\x06" + noise
    # TCP, UDP, ICMP or an unknown protocol, with invalid contents.
    packet = ipv4(dice, dice.choice((ICMP, TCP, UDP, dice.randrange(256))), source, to, noise)
    if kind == 3:
        # A fragment without the other fragments.
        packet = packet[:6] + struct.pack(">H", 0x2000 | dice.randrange(100)) + packet[8:10] + b"\0\0" + packet[12:]
        packet = packet[:10] + checksum(packet[:20]) + packet[12:]
    return start + b"\x08\x00" + packet


if __name__ == "__main__":
    network.enter()
    barepost.main()
