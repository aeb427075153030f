"""The promise: floods of SYNs, ACKs, RSTs and garbage, from many addresses and as fast as this host can send, keep nobody out for good
and take no memory.

The hosted machine at a tap interface; the flood goes straight into the interface, while 100 honest clients deliver and fetch,
who all finish. Its memory does not grow.

Takes half a minute; --quick leaves nothing out.
"""

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
from mail import DOMAIN, Letters
from processes import die_with_us, until

CLIENTS = 100
MESSAGES = 2
# What the index of 200 messages and the allocator may take.
GROWTH_KIB_MAX = 512
FRAMES = 20_000
# How long a client waits for an answer, and for all of its mail. Seconds.
PATIENCE = 60

# What a flood has sent before anybody honest comes.
FRAMES_BEFORE = 20_000

TCP, UDP, ICMP = 6, 17, 1
SYN, RST, ACK = 0x02, 0x04, 0x10
# Where the source port and the lower half of the acknowledgment number stand in a frame, and how far they are moved.
WORD, PORT_AT, NUMBER_AT, PORTS = struct.Struct(">H"), 34, 44, 20_000


class Flood:
    """A process that sends frames into an interface as fast as it can, until it is stopped.

    `frames` are sent again and again. Those that carry TCP are others each time: source port and acknowledgment number change
    so that the checksum stays the same.
    """

    def __init__(self, frames, interface):
        self._sent = mmap.mmap(-1, 8)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                die_with_us()
                self._send_for_ever([bytearray(frame) for frame in frames], interface)
            finally:
                os._exit(1)
        self.began = time.monotonic()

    def _send_for_ever(self, frames, interface):
        changing = [(frame, *(word[0] for word in (WORD.unpack_from(frame, PORT_AT), WORD.unpack_from(frame, NUMBER_AT))))
                    if frame[12:14] == b"\x08\x00" and frame[23] == TCP else (frame, None, None) for frame in frames]
        sent = 0
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as wire:
            wire.bind((interface, 0))
            for turn in itertools.cycle(range(PORTS)):
                for frame, port, number in changing:
                    if port is not None:
                        WORD.pack_into(frame, PORT_AT, port + turn)
                        WORD.pack_into(frame, NUMBER_AT, number - turn)
                    try:
                        wire.send(frame)
                        sent += 1
                    except OSError:
                        # The interface takes no more at this moment.
                        pass
                    if sent % 64 == 0:
                        self._sent[:8] = struct.pack("Q", sent)

    def sent(self):
        """How many frames it has sent so far."""
        return struct.unpack("Q", self._sent[:8])[0]

    def stop(self):
        """Ends it; returns how many frames it has sent, and how many a second."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return self.sent(), self.sent() / (time.monotonic() - self.began)


class Floods(hosted.HostedTest):
    configuration = hosted.CONFIGURATION.replace(
        f'address = "{hosted.MACHINE}/24"', f'address = "{hosted.MACHINE}/24"\ngateway = "{hosted.LINUX}"'
    )

    def test_a_flood_of_syns_keeps_nobody_out_and_takes_no_memory(self):
        self.survives(lambda dice: tcp(dice, dice.choice((25, 110)), SYN))

    def test_a_flood_of_acks_keeps_nobody_out_and_takes_no_memory(self):
        self.survives(lambda dice: tcp(dice, dice.choice((25, 110)), ACK, dice.randbytes(dice.randrange(100))))

    def test_a_flood_of_resets_keeps_nobody_out_and_takes_no_memory(self):
        # From the address of the honest clients too: a reset beside the window ends nothing.
        self.survives(lambda dice: tcp(dice, 25, RST, source=dice.choice((hosted.LINUX, None))))

    def test_a_flood_of_garbage_keeps_nobody_out_and_takes_no_memory(self):
        self.survives(garbage)

    def survives(self, make):
        machine = self.boot(self.data())
        letters = Letters(barepost.options.seed)
        card = bytes.fromhex(machine.process.wait_for_line(r"net: card ([0-9a-f:]+),", 1)[1].replace(":", ""))
        flood = Flood([card + make(self.dice) for _ in range(FRAMES)], hosted.TAP)
        try:
            until(lambda: flood.sent() >= FRAMES_BEFORE, 20, "a flood")
            # Linux gives a process memory when it is first written to: whatever is taken once is taken now.
            self.crowd(machine, letters, 10_000)
            before, began = resident_kib(machine.process.pid), time.monotonic()
            self.crowd(machine, letters, 20_000)
            seconds = time.monotonic() - began
        finally:
            sent, rate = flood.stop()
        grown = resident_kib(machine.process.pid) - before
        barepost.say(f"{sent:,} frames, {rate:,.0f}/s; {CLIENTS} clients done in {seconds:.1f} s; memory {grown:+} KiB")
        self.assertLess(grown, GROWTH_KIB_MAX)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def crowd(self, machine, letters, base):
        """`CLIENTS` clients at once: most deliver `MESSAGES` messages each, and for each mailbox one fetches them as they come."""
        failures = []
        senders = CLIENTS - len(barepost.USERS)

        def attempt(what, *arguments):
            try:
                what(*arguments)
            except Exception as error:
                failures.append(f"{what.__name__}{arguments}: {error!r}")

        def numbers(sender):
            return range(base + sender * MESSAGES, base + (sender + 1) * MESSAGES)

        def deliver(sender):
            user = barepost.USERS[sender % len(barepost.USERS)]
            with machine.smtp(timeout=PATIENCE) as session:
                session.ehlo()
                for number in numbers(sender):
                    reply = session.deliver("sender@client.test", f"{user}@{DOMAIN}", letters.make(number, 3000))
                    if reply.code != 250:
                        raise AssertionError(f"letter {number}: {reply}")
                session.quit()

        def fetch(at):
            awaited = sorted(number for sender in range(at, senders, len(barepost.USERS)) for number in numbers(sender))
            there, patience = [], time.monotonic() + PATIENCE
            while len(there) < len(awaited) and time.monotonic() < patience:
                with machine.pop3(barepost.USERS[at], timeout=PATIENCE) as session:
                    found = session.fetch()
                    there += [letters.recognize(each.content) for each in found]
                    session.delete(each.number for each in found)
                    session.quit()
                time.sleep(0.2)
            if sorted(there) != awaited:
                raise AssertionError(f"there are {sorted(there)}")

        clients = [threading.Thread(target=attempt, args=(deliver, sender)) for sender in range(senders)]
        clients += [threading.Thread(target=attempt, args=(fetch, at)) for at in range(len(barepost.USERS))]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        self.assertEqual(failures, [])


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1])


def tcp(dice, port, flags, payload=b"", source=None):
    """A sound segment from anywhere, behind the destination's hardware address."""
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
    """Frames that are nothing, or begin as something and go on as nothing."""
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
    # TCP, UDP, ICMP or what nobody knows, with nothing sound in it.
    packet = ipv4(dice, dice.choice((ICMP, TCP, UDP, dice.randrange(256))), source, to, noise)
    if kind == 3:
        # A fragment whose others never come.
        packet = packet[:6] + struct.pack(">H", 0x2000 | dice.randrange(100)) + packet[8:10] + b"\0\0" + packet[12:]
        packet = packet[:10] + checksum(packet[:20]) + packet[12:]
    return start + b"\x08\x00" + packet


if __name__ == "__main__":
    network.enter()
    barepost.main()
