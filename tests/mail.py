"""SMTP and POP3 clients that show every received byte and send exactly the given bytes, and messages that can be
recognized.
"""

import contextlib
import random
import re
import socket

DOMAIN = "barepost.test"
PASSWORD = "correct horse battery staple"
# The longest wait for an answer, under emulation on a busy host: a password hash, a flush, or a 50 MB message.
ANSWER_SECONDS = 60


class Gone(OSError):
    """The other side closed the connection."""


class Lines:
    """A connection of CRLF lines. Nothing is hidden or repaired."""

    def __init__(self, port, timeout=ANSWER_SECONDS, source=None, host="127.0.0.1", tls=None):
        """`tls`: the context of a connection that begins with TLS."""
        self.socket = socket.create_connection((host, port), timeout, source)
        try:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls:
                self.socket = tls.wrap_socket(self.socket, server_hostname=host)
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
        """Closes the connection without a command."""
        self.socket.close()

    def reset(self):
        """Ends the connection with a TCP reset."""
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
        """The lines up to a line with a single dot, without dot-stuffing, each with its CRLF."""
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
        """Receives bytes until an end of block may have arrived. Examines each byte once."""
        searched = len(self._buffer)
        while True:
            self._more()
            searched -= self._dropped
            if self._buffer.find(b".\r\n", max(searched - 4, self._start)) >= 0:
                return
            searched = len(self._buffer)

    def _more(self):
        """Receives bytes, and drops those that were read. `_dropped` is the number of dropped bytes."""
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
        """Whether the other side closes within `seconds`. Ignores bytes that arrive before."""
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
    """A message with dot-stuffing and the final dot, as it follows DATA."""
    data = message.replace(b"\r\n.", b"\r\n..")
    if data.startswith(b"."):
        data = b"." + data
    return data + b".\r\n"


class Smtp(Lines):
    """An SMTP client that sends exactly the given lines."""

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
        """Sends a line and returns the reply."""
        self.send((line if isinstance(line, bytes) else line.encode()) + b"\r\n")
        return self.reply()

    def ehlo(self, name="client.test"):
        """Returns the extensions as {keyword: parameters}."""
        reply = self.command(f"EHLO {name}")
        if reply.code != 250:
            raise AssertionError(f"EHLO: {reply}")
        return {text.partition(" ")[0].upper(): text.partition(" ")[2] for text in reply.texts[1:]}

    def envelope(self, sender, recipients, parameters=""):
        """Sends MAIL and RCPT, pipelined. Returns the first reply that refuses, or None."""
        recipients = [recipients] if isinstance(recipients, str) else recipients
        lines = [f"MAIL FROM:<{sender}>{parameters}"] + [f"RCPT TO:<{recipient}>" for recipient in recipients]
        self.send("".join(f"{line}\r\n" for line in lines).encode())
        replies = [self.reply() for _ in lines]
        return next((reply for reply in replies if not reply.is_positive), None)

    def deliver(self, sender, recipients, message, parameters=""):
        """Runs a whole transaction with DATA. Returns the last reply, or the first reply that refuses."""
        if refusal := self.envelope(sender, recipients, parameters):
            return refusal
        reply = self.command("DATA")
        if reply.code != 354:
            return reply
        self.send(stuffed(message))
        return self.reply()

    def deliver_in_chunks(self, sender, recipients, message, chunk, parameters=""):
        """Runs a whole transaction with BDAT (RFC 3030). All chunks but the last have `chunk` bytes."""
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


class Refused(AssertionError):
    """A POP3 server answered -ERR."""


class Found:
    """A message that was fetched over POP3."""

    def __init__(self, number, uidl, size, raw):
        self.number, self.uidl, self.size, self.raw = number, uidl, size, raw

    @property
    def content(self):
        """The message as it was sent: the part below the trace headers that the server added."""
        return without_trace(self.raw)


# The trace headers: one Return-Path, the signatures if the message was submitted, and one Received, which ends with its
# date. The client's message follows.
TRACE = re.compile(
    rb"Return-Path: <[^\r\n]*> *\r\n"
    rb"(?:DKIM-Signature: [^\r\n]*\r\n(?: [^\r\n]*\r\n)*)*"
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
        """Sends a line. Returns the text of the positive answer."""
        self.send(line.encode() + b"\r\n")
        return self.answer()

    def listing(self, line):
        """Sends a line. Returns the lines of the multi-line answer, as text."""
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
        """Yields (number, message) for each of `numbers`."""
        return self._blocks(numbers, "RETR {}")

    def heads(self, numbers):
        """Yields (number, header) for each of `numbers`."""
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
    """The numbers in a unique identifier. They grow from message to message of a mailbox."""
    return tuple(int(number, 16) for number in re.findall(r"[0-9a-fA-F]+", uidl))


class MessageMaker:
    """Messages made from a seed and a number. A message that comes back is recognized, and compared byte by byte."""

    NUMBER = re.compile(rb"^X-Test-Message: (\d+)/(\d+)/(\d+)\r\n", re.M)

    def __init__(self, seed):
        self.seed = seed

    def make(self, number, size):
        """A message of about `size` bytes: lines of random length, some of which start with dots."""
        dice = random.Random(f"{self.seed}/{number}")
        head = (
            f"From: sender@client.test\r\nTo: recipient@client.test\r\nSubject: message {number}\r\n"
            f"X-Test-Message: {self.seed}/{number}/{size}\r\n\r\n"
        ).encode()
        noise = dice.randbytes(max(size - len(head), 1) // 2).hex().encode()
        lines, at = [head], 0
        while at < len(noise):
            length = dice.choice((1, 20, 70, 76, 200, 990))
            lines.append(dice.choice((b"", b"", b"", b".", b"..")) + noise[at:at + length] + b"\r\n")
            at += length
        return b"".join(lines)

    def recognize(self, content):
        """The number of a fetched message. Errors: the message is not from this maker, or has changed."""
        match = self.NUMBER.search(content[:600])
        if not match or int(match[1]) != self.seed:
            raise AssertionError(f"not a message that was sent: {content[:200]!r}")
        number, size = int(match[2]), int(match[3])
        if content != self.make(number, size):
            raise AssertionError(f"message {number} of {size} bytes is damaged: {len(content)} bytes came back")
        return number
