"""Messages come back byte for byte, at every size and with any valid content."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import barepost
from barepost import options
from clients_shared import ADA, SENDER, Shared, numbered_lines
from mail import MessageMaker, stuffed
from processes import ROOT, die_with_us


def email_samples():
    """The messages that CPython's tests of its email package read."""
    if importlib.util.find_spec("test") and (module := importlib.util.find_spec("test.test_email")):
        return sorted((pathlib.Path(module.origin).parent / "data").glob("*.txt"))
    # On Debian they are in a separate package, which may not be installed.
    package = f"libpython3.{sys.version_info.minor}-testsuite"
    folder = ROOT / "target" / "tools" / package
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        script = f"apt-get -qq download {package} && dpkg -x {package}_*.deb {folder} && rm {package}_*.deb"
        subprocess.run(["sh", "-c", script], cwd=folder.parent, check=True, timeout=300, preexec_fn=die_with_us)
    return sorted(folder.glob("usr/lib/python3*/test/test_email/data/*.txt"))


def without_return_path(message):
    """The message as the server stores it: without the client's Return-Path."""
    header, empty_line, body = message.partition(b"\r\n\r\n")
    if not empty_line:
        return message
    header = re.sub(rb"(?im)^Return-Path:.*\r\n(?:[ \t].*\r\n)*", b"", header + b"\r\n")
    return header + b"\r\n" + body


class Exactness(Shared):
    """Messages come back byte for byte."""

    def round_trip(self, messages, what):
        """Delivers messages and compares the fetched ones, in order. `messages`: (name, bytes, chunk size or None for DATA)."""
        with self.session() as session:
            for name, message, chunk in messages:
                if chunk is None:
                    reply = session.deliver(SENDER, ADA, message)
                else:
                    reply = session.deliver_in_chunks(SENDER, ADA, message, chunk)
                self.assertEqual(reply.code, 250, f"{what} {name}: {reply}")
        with self.machine.pop3("ada") as reader:
            found = reader.fetch()
            self.assertEqual(len(found), len(messages))
            for one, (name, message, _) in zip(found, messages):
                # POP3 sends lines, so it cannot show that the last line has no CRLF.
                whole = message if message.endswith(b"\r\n") or not message else message + b"\r\n"
                kept = without_return_path(whole)
                self.assertSame(one.content, kept, f"{what} {name}")
                if kept == message:
                    self.assertEqual(one.size, len(one.raw), f"the size that LIST tells of {what} {name}")
            reader.delete(one.number for one in found)
            reader.quit()

    def test_the_samples_of_the_email_package_come_back_exact(self):
        samples = email_samples()
        self.assertGreater(len(samples), 40)
        messages = []
        for number, path in enumerate(samples):
            message = re.sub(rb"\r\n|\r|\n", b"\r\n", path.read_bytes())
            if not message.endswith(b"\r\n"):
                message += b"\r\n"
            messages.append((path.name, message, None if number % 2 else 1000))
        self.round_trip(messages, "sample")

    def test_sizes_at_powers_of_two_come_back_exact(self):
        highest = 20 if options.quick else 25
        sizes = sorted({size for power in range(1, highest + 1) for size in ((1 << power) - 1, 1 << power, (1 << power) + 1)})
        self.round_trip_of_sizes([0, 1, *sizes])

    def test_sizes_at_segment_edges_come_back_exact(self):
        sizes = {k * segment + d for k in (1, 2, 3, 4, 10, 44, 45, 46) for segment in (536, 1448, 1460) for d in (-1, 0, 1)}
        self.round_trip_of_sizes(sorted(sizes))

    def round_trip_of_sizes(self, sizes):
        chunks = (None, 1460, 70_000, 1 << 20)
        batch, length = [], 0
        for number, size in enumerate(sizes):
            message = numbered_lines(size) if size > 1 else b"x" * size
            # A single byte is not a line: only BDAT can send it.
            chunk = 1460 if size == 1 else chunks[number % len(chunks)]
            batch.append((f"{size} bytes in chunks of {chunk}", message, chunk))
            length += size
            if length > 20 << 20 or len(batch) == 60:
                self.round_trip(batch, "message of")
                batch, length = [], 0
        self.round_trip(batch, "message of")

    def test_50_megabytes_come_back_exact(self):
        message = numbered_lines(50_000_000)
        for chunk in (None,) if options.quick else (None, 1_000_000):
            self.round_trip([("50 MB", message, chunk)], "message of")

    def test_the_largest_size_that_is_announced_is_taken(self):
        largest = int(self.session().ehlo()["SIZE"])
        self.assertGreaterEqual(largest, 50_000_000)
        self.round_trip([("the announced size", numbered_lines(largest), None)], "message of")

    def test_dots_at_line_starts_come_back_exact(self):
        bodies = [b".\r\n".join([b"x\r\n"] * 3), b".a\r\n", b"..\r\n", b"...\r\n", b".\r\n"[:1] + b" \r\n", b"x\r\n..\r\n.\t\r\n",
                  b"\r\n\r\n", b"\r\n..\r\n", b"." * 70 + b"\r\n", b"x\r\n\r\n.x\r\n"]
        self.round_trip([(repr(body), body, chunk) for body in bodies for chunk in (None, 3)], "message")
        # With BDAT a line of one dot is normal content.
        self.round_trip([(repr(body), body, chunk) for body in (b".\r\n", b"x\r\n.\r\ny\r\n") for chunk in (1, 4, 99)], "message")

    def test_bytes_above_127_come_back_exact(self):
        every = bytes(byte for byte in range(1, 256) if byte not in b"\r\n")
        message = b"Subject: bytes\r\n\r\n" + b"\r\n".join([every, every[::-1], "Grüße 文字 🙂".encode()]) + b"\r\n"
        with self.session() as session:
            self.assertEqual(session.deliver(SENDER, ADA, message, " BODY=8BITMIME").code, 250)
        self.assertSame(self.only_message().content, message)

    def test_a_borderline_message_is_exact_or_refused(self):
        """RFC 5321 allows a server to refuse lines above 1000 bytes and NULs, but not to change them."""
        taken = []
        with self.session() as session:
            for length in (78, 998, 999, 1000, 1001, 2000, 8192, 65_537, 1_000_000):
                message = b"Subject: long\r\n\r\n" + b"x" * length + b"\r\n" + b".y" * length + b"\r\n"
                reply = session.deliver(SENDER, ADA, message)
                if length <= 998 // 2:
                    self.assertEqual(reply.code, 250)
                self.assertIn(reply.code // 100, (2, 5))
                taken += [message] if reply.code == 250 else []
            for message in (b"Subject: NUL\r\n\r\na\0b\r\n\0\r\n", b"\0\r\n"):
                reply = session.deliver(SENDER, ADA, message)
                self.assertIn(reply.code // 100, (2, 5))
                taken += [message] if reply.code == 250 else []
        barepost.say(f"taken: {len(taken)} of 11")
        found = self.machine.mailbox("ada")
        self.assertEqual(len(found), len(taken))
        for one, message in zip(found, taken):
            self.assertSame(one.content, message)

    def test_a_message_that_starts_with_trace_fields_is_exact(self):
        messages = [
            b"Return-Path: <forged@client.test>\r\nReceived: from x\r\n\tby y; Mon, 1 Jan 2024 00:00:00 +0000\r\n\r\ntext\r\n",
            b" a line that would continue the header before it\r\n\r\ntext\r\n",
            b"\r\nonly a body\r\n",
            b"no header at all\r\n",
        ]
        self.round_trip([(repr(message[:20]), message, None) for message in messages], "message")

    def test_bytes_that_arrive_one_by_one_make_the_same_message(self):
        message = MessageMaker(options.seed).make(1, 700)
        conversation = b"EHLO c.test\r\nMAIL FROM:<%s>\r\nRCPT TO:<%s>\r\nDATA\r\n" % (SENDER.encode(), ADA.encode())
        with self.machine.smtp() as session:
            for byte in conversation:
                session.send(bytes([byte]))
            self.assertEqual([session.reply().code for _ in range(4)], [250, 250, 250, 354])
            for byte in stuffed(message):
                session.send(bytes([byte]))
            self.assertEqual(session.reply().code, 250)
        self.assertSame(self.only_message().content, message)
