"""The promise: the mail programs that people have can send to this machine and fetch from it, and get back what was sent.

swaks, msmtp, smtplib send; mpop, fetchmail, poplib fetch. Messages from CPython's own tests of its email package, and of
every size at which something may go wrong, up to 50 MB, come back exact below the two trace headers that the server adds.
What no program of good will sends is sent byte by byte: attempts to smuggle a message into another one, limits passed,
connections torn down. The rules of RFC 5321 and RFC 1939 that a user would notice are each shown here.

Takes 2 to 3 minutes under TCG; --quick, with sizes up to 1 MB and one of 50 MB, 1.5 to 2.5.
"""

import contextlib
import email.message
import email.policy
import email.utils
import importlib.util
import os
import pathlib
import poplib
import re
import smtplib
import subprocess
import sys
import threading
import time

import barepost
from barepost import ACCESS_THROTTLED, CONFIGURATION, DOMAIN, PASSWORD, Gone, Letters, Refused, options, program, until

ADA, GRACE, BARBARA = f"ada@{DOMAIN}", f"grace@{DOMAIN}", f"barbara@{DOMAIN}"
SENDER = "sender@client.test"
PLAIN = b"From: sender@client.test\r\nSubject: plain\r\n\r\nOne line.\r\n"


def numbered_lines(size):
    """Text of exactly `size` bytes (at least 2) in which every line is another, some starting with a dot."""
    lines, length, number = [], 0, 0
    while length < size:
        line = b"%s%x the quick brown fox jumps over the lazy dog\r\n" % ((b"", b".", b"..", b"")[number % 4], number)
        lines.append(line)
        length += len(line)
        number += 1
    text = b"".join(lines)[:size - 2]
    return text[:-1] + b"x\r\n" if text.endswith(b"\r") else text + b"\r\n"


def email_samples():
    """The messages that CPython's tests of its email package read."""
    if importlib.util.find_spec("test") and (module := importlib.util.find_spec("test.test_email")):
        return sorted((pathlib.Path(module.origin).parent / "data").glob("*.txt"))
    # Debian has them in a package of their own, which need not be installed.
    package = f"libpython3.{sys.version_info.minor}-testsuite"
    folder = barepost.ROOT / "target" / "tools" / package
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        script = f"apt-get -qq download {package} && dpkg -x {package}_*.deb {folder} && rm {package}_*.deb"
        subprocess.run(["sh", "-c", script], cwd=folder.parent, check=True, timeout=300, preexec_fn=barepost.die_with_us)
    return sorted(folder.glob("usr/lib/python3*/test/test_email/data/*.txt"))


class Shared(barepost.SharedMachineTest):
    """One machine; every test starts and ends with empty mailboxes."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.empty_all)

    def empty_all(self):
        for user in barepost.USERS:
            barepost.empty(self.machine, user)

    def program(self, *arguments, text=b"", statuses=(0,)):
        """Runs a mail program with a home of its own; returns what it printed."""
        environment = {**os.environ, "HOME": str(self.folder), "FETCHMAILHOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [program(str(arguments[0])), *map(str, arguments[1:])], input=text, cwd=self.folder, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, preexec_fn=barepost.die_with_us,
        )
        self.assertIn(done.returncode, statuses, f"{arguments[0]}: {done.stdout.decode('utf-8', 'replace')}")
        return done.stdout.decode("utf-8", "replace")

    @property
    def smtp_port(self):
        return self.machine.ports + barepost.SMTP

    @property
    def pop3_port(self):
        return self.machine.ports + barepost.POP3

    def only_message(self, user="ada"):
        found = self.machine.mailbox(user)
        self.assertEqual(len(found), 1)
        return found[0]

    def session(self):
        session = self.enterContext(self.machine.smtp())
        session.ehlo()
        return session


class Senders(Shared):
    def test_swaks_delivers(self):
        for number, protocol in enumerate(("SMTP", "ESMTP"), 1):
            said = self.program(
                "swaks", "--server", "127.0.0.1", "--port", self.smtp_port, "--protocol", protocol, "--helo", "client.test",
                "--from", SENDER, "--to", f"{ADA},{GRACE}", "--header", "Subject: from swaks", "--body", ".dot\n..dots",
            )
            self.assertEqual(len(re.findall(r"^<-  250 2\.1\.5", said, re.M)), 2, said)
            for user in ("ada", "grace"):
                found = self.machine.mailbox(user)
                self.assertEqual(len(found), number)
                self.assertIn(b"Subject: from swaks\r\n", found[-1].content)
                self.assertIn(b"\r\n\r\n.dot\r\n..dots\r\n", found[-1].content)
                self.assertIn(f"with {protocol} ".encode(), found[-1].raw)

    def test_swaks_pipelines(self):
        said = self.program(
            "swaks", "--server", "127.0.0.1", "--port", self.smtp_port, "--helo", "client.test", "--pipeline",
            "--from", SENDER, "--to", ADA,
        )
        self.assertIn("PIPELINING", said)
        self.only_message()

    def test_swaks_sees_unknown_users_and_relaying_refused(self):
        for address, status in ((f"nobody@{DOMAIN}", "550 5.1.1"), ("someone@elsewhere.test", "550 5.7.1")):
            said = self.program(
                "swaks", "--server", "127.0.0.1", "--port", self.smtp_port, "--helo", "client.test",
                "--from", SENDER, "--to", address, statuses=(24,),
            )
            self.assertIn(status, said)

    def test_msmtp_delivers_exactly(self):
        message = b"From: %s\nTo: ada\nDate: Thu, 01 Jan 2026 00:00:00 +0000\nSubject: from msmtp\n\n.dot\n..dots\n\ntext\n"
        message %= SENDER.encode()
        self.program(
            "msmtp", "--host=127.0.0.1", f"--port={self.smtp_port}", "--domain=client.test", "--auth=off", "--tls=off",
            "--set-msgid-header=off", f"--from={SENDER}", ADA, GRACE, text=message,
        )
        for user in ("ada", "grace"):
            self.assertSame(self.only_message(user).content, message.replace(b"\n", b"\r\n"))

    def test_msmtp_sees_what_the_server_offers(self):
        said = self.program("msmtp", "--serverinfo", "--host=127.0.0.1", f"--port={self.smtp_port}", "--tls=off",
                            "--domain=client.test")
        self.assertRegex(said, r"SIZE \d+")
        self.assertIn("PIPELINING", said)

    def test_smtplib_delivers_to_several_and_learns_who_was_refused(self):
        with smtplib.SMTP("127.0.0.1", self.smtp_port, "client.test", timeout=60) as client:
            refused = client.sendmail(SENDER, [ADA, f"nobody@{DOMAIN}", "x@elsewhere.test", GRACE], PLAIN)
            self.assertEqual({address: reply[0] for address, reply in refused.items()},
                             {f"nobody@{DOMAIN}": 550, "x@elsewhere.test": 550})
            self.assertEqual(client.noop()[0], 250)
            self.assertEqual(client.vrfy(ADA)[0], 252)
            self.assertEqual(client.rset()[0], 250)
        for user in ("ada", "grace"):
            self.assertSame(self.only_message(user).content, PLAIN)

    def test_smtplib_sends_international_mail(self):
        message = email.message.EmailMessage(email.policy.SMTPUTF8)
        message["From"], message["To"] = "jürgen@client.test", ADA
        message["Subject"] = "Grüße aus Zürich 文字"
        message.set_content("Wörter 文字\n", cte="8bit")
        with smtplib.SMTP("127.0.0.1", self.smtp_port, "client.test", timeout=60) as client:
            self.assertEqual(client.send_message(message), {})
        found = self.only_message()
        self.assertIn("Subject: Grüße aus Zürich 文字\r\n".encode(), found.content)
        self.assertTrue(found.raw.startswith("Return-Path: <jürgen@client.test>\r\n".encode()), found.raw[:100])
        self.assertIn(b"with UTF8SMTP ", found.raw)


class Fetchers(Shared):
    MESSAGES = [
        b"From: a@client.test\r\nSubject: first\r\n\r\n.dot\r\n..dots\r\nlast\r\n",
        b"From: b@client.test\r\nSubject: second\r\n\r\n" + b"a line of text\r\n" * 500,
        b"From: c@client.test\r\nSubject: third\r\n\r\n\r\n\r\nempty lines before and after\r\n\r\n",
    ]

    def setUp(self):
        super().setUp()
        with self.session() as session:
            for message in self.MESSAGES:
                self.assertEqual(session.deliver(SENDER, ADA, message).code, 250)

    def mpop(self, *arguments):
        return self.program(
            "mpop", "--host=127.0.0.1", f"--port={self.pop3_port}", "--tls=off", "--auth=user", f"--user={ADA}",
            f"--passwordeval=echo {PASSWORD}", f"--uidls-file={self.folder}/uidls", "--received-header=off", *arguments,
        )

    def test_mpop_fetches_exactly_and_deletes(self):
        box = self.folder / "box"
        self.mpop("--keep=off", f"--delivery=mbox,{box}")
        # An mbox starts each message with a line of its own and quotes such lines inside.
        texts = re.split(rb"^From .*\n", box.read_bytes(), flags=re.M)[1:]
        self.assertEqual(len(texts), len(self.MESSAGES))
        for text, message in zip(texts, self.MESSAGES):
            content = barepost.without_trace(text.replace(b"\n", b"\r\n"))
            self.assertSame(content.removesuffix(b"\r\n"), message)
        self.assertEqual(self.machine.mailbox("ada"), [])

    def test_mpop_fetches_what_it_keeps_only_once(self):
        for folder in ("new", "cur", "tmp"):
            (self.folder / "maildir" / folder).mkdir(parents=True)
        arguments = "--keep=on", "--only-new=on", f"--delivery=maildir,{self.folder}/maildir"
        self.mpop(*arguments)
        self.mpop(*arguments)
        files = list((self.folder / "maildir" / "new").iterdir())
        found = sorted(barepost.without_trace(file.read_bytes().replace(b"\n", b"\r\n")) for file in files)
        self.assertEqual(found, sorted(self.MESSAGES))
        self.assertEqual(len(self.machine.mailbox("ada")), len(self.MESSAGES))

    def fetchmail(self, *arguments, statuses=(0,)):
        settings = self.folder / "fetchmailrc"
        settings.write_text(
            f'poll 127.0.0.1 protocol POP3 port {self.pop3_port} timeout 60:\n'
            f'    user "{ADA}" password "{PASSWORD}" sslproto "" no rewrite mda "cat >> {self.folder}/fetched"\n'
        )
        settings.chmod(0o600)
        return self.program("fetchmail", "-f", settings, "--invisible", "--nosyslog", *arguments, statuses=statuses)

    def test_fetchmail_fetches_and_deletes(self):
        self.fetchmail("--fetchall", "--nokeep")
        fetched = (self.folder / "fetched").read_bytes()
        at = 0
        for message in self.MESSAGES:
            body = message.partition(b"\r\n\r\n")[2].replace(b"\r\n", b"\n").strip(b"\n")
            at = fetched.find(body, at)
            self.assertGreaterEqual(at, 0, "missing or out of order")
        self.assertEqual(self.machine.mailbox("ada"), [])

    def test_fetchmail_fetches_what_it_keeps_only_once(self):
        self.fetchmail("--keep", "--uidl")
        self.fetchmail("--keep", "--uidl", statuses=(1,))
        fetched = (self.folder / "fetched").read_bytes()
        for subject in (b"first", b"second", b"third"):
            self.assertEqual(fetched.count(b"Subject: " + subject), 1)

    def test_poplib_reads_lists_and_deletes(self):
        client = poplib.POP3("127.0.0.1", self.pop3_port, timeout=60)
        capabilities = client.capa()
        for capability in ("USER", "TOP", "UIDL", "RESP-CODES", "PIPELINING", "UTF8"):
            self.assertIn(capability, capabilities)
        client.utf8()
        client.user(ADA)
        client.pass_(PASSWORD)
        count, size = client.stat()
        self.assertEqual(count, len(self.MESSAGES))
        sizes = [int(line.split()[1]) for line in client.list()[1]]
        self.assertEqual(sum(sizes), size)
        uidls = [line.split()[1] for line in client.uidl()[1]]
        self.assertEqual(len(set(uidls)), count)
        for number, message in enumerate(self.MESSAGES, 1):
            raw = b"".join(line + b"\r\n" for line in client.retr(number)[1])
            self.assertEqual(len(raw), sizes[number - 1])
            self.assertSame(barepost.without_trace(raw), message)
            self.assertEqual(client.uidl(number).split()[2], uidls[number - 1])
            head = b"".join(line + b"\r\n" for line in client.top(number, 1)[1])
            self.assertTrue(raw.startswith(head))
            self.assertEqual(head.partition(b"\r\n\r\n")[2].count(b"\r\n"), 1)
        client.dele(2)
        client.rset()
        client.dele(1)
        client.quit()
        self.assertEqual([found.content for found in self.machine.mailbox("ada")], self.MESSAGES[1:])


class Exactness(Shared):
    """What goes in comes out, byte for byte."""

    def round_trip(self, messages, what):
        """Delivers messages of (name, bytes, chunk or None for DATA) and compares what comes back, in order."""
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
                # A message whose last line has no end can't be told from one that has: POP3 sends lines.
                whole = message if message.endswith(b"\r\n") or not message else message + b"\r\n"
                self.assertSame(one.content, whole, f"{what} {name}")
                if whole == message:
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
            # A lone byte is no line: only BDAT can send it.
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
        # With BDAT a line of one dot is content as any other.
        self.round_trip([(repr(body), body, chunk) for body in (b".\r\n", b"x\r\n.\r\ny\r\n") for chunk in (1, 4, 99)], "message")

    def test_bytes_above_127_come_back_exact(self):
        every = bytes(byte for byte in range(1, 256) if byte not in b"\r\n")
        message = b"Subject: bytes\r\n\r\n" + b"\r\n".join([every, every[::-1], "Grüße 文字 🙂".encode()]) + b"\r\n"
        with self.session() as session:
            self.assertEqual(session.deliver(SENDER, ADA, message, " BODY=8BITMIME").code, 250)
        self.assertSame(self.only_message().content, message)

    def test_a_message_at_the_edge_of_the_rules_is_exact_or_refused_but_never_changed(self):
        """RFC 5321 lets a server refuse lines above 1000 bytes and NULs; it does not let it repair them."""
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

    def test_a_message_that_starts_like_its_trace_headers_is_not_confused_with_them(self):
        messages = [
            b"Return-Path: <forged@client.test>\r\nReceived: from x\r\n\tby y; Mon, 1 Jan 2024 00:00:00 +0000\r\n\r\ntext\r\n",
            b" a line that would continue the header before it\r\n\r\ntext\r\n",
            b"\r\nonly a body\r\n",
            b"no header at all\r\n",
        ]
        self.round_trip([(repr(message[:20]), message, None) for message in messages], "message")

    def test_bytes_that_arrive_one_by_one_make_the_same_message(self):
        letter = Letters(options.seed).make(1, 700)
        conversation = b"EHLO c.test\r\nMAIL FROM:<%s>\r\nRCPT TO:<%s>\r\nDATA\r\n" % (SENDER.encode(), ADA.encode())
        with self.machine.smtp() as session:
            for byte in conversation:
                session.send(bytes([byte]))
            self.assertEqual([session.reply().code for _ in range(4)], [250, 250, 250, 354])
            for byte in barepost.stuffed(letter):
                session.send(bytes([byte]))
            self.assertEqual(session.reply().code, 250)
        self.assertSame(self.only_message().content, letter)


class Smtp(Shared):
    """RFC 5321 and its extensions, as a client sees them."""

    def test_the_extensions_are_announced(self):
        extensions = self.session().ehlo()
        for keyword in ("PIPELINING", "SIZE", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES", "CHUNKING", "LIMITS"):
            self.assertIn(keyword, extensions)
        self.assertRegex(extensions["LIMITS"], r"RCPTMAX=\d+")

    def test_the_trace_headers_tell_where_the_message_came_from(self):
        session = self.session()
        reply = session.deliver(SENDER, ADA, PLAIN)
        raw = self.only_message().raw.decode()
        head = raw[:raw.index("From: ")]
        self.assertEqual(head.count("Return-Path:"), 1)
        self.assertEqual(head.count("Received:"), 1)
        self.assertTrue(head.startswith(f"Return-Path: <{SENDER}>\r\nReceived: from client.test ("), head)
        self.assertIn(f"by mail.{DOMAIN} with ESMTP id ", head)
        self.assertIn(f"for <{ADA}>", head)
        # The name under which it was stored, as it was told to the client.
        self.assertIn(head.split(" id ")[1].split()[0].rstrip(";"), repr(reply))
        date = email.utils.parsedate_to_datetime(head.rpartition(";")[2].strip())
        self.assertLess(abs(date.timestamp() - time.time()), 120)

    def test_nobody_learns_of_the_other_recipients(self):
        self.assertEqual(self.session().deliver(SENDER, [ADA, GRACE], PLAIN).code, 250)
        self.assertNotIn(b"grace", self.only_message("ada").raw)
        self.assertNotIn(b"ada", self.only_message("grace").raw)

    def test_commands_may_be_pipelined_over_many_messages(self):
        letters = Letters(options.seed)
        envelope = f"MAIL FROM:<{SENDER}>\r\nRCPT TO:<{ADA}>\r\nRCPT TO:<nobody@{DOMAIN}>\r\nRCPT TO:<{GRACE}>\r\nDATA\r\n".encode()
        session = self.session()
        session.send(envelope)
        for number in range(1, 21):
            self.assertEqual([session.reply().code for _ in range(5)], [250, 250, 550, 250, 354])
            session.send(barepost.stuffed(letters.make(number, 3000)) + (envelope if number < 20 else b"QUIT\r\n"))
            self.assertEqual(session.reply().code, 250)
        self.assertEqual(session.reply().code, 221)
        for user in ("ada", "grace"):
            self.assertEqual([letters.recognize(found.content) for found in self.machine.mailbox(user)], list(range(1, 21)))

    def test_chunks_may_be_pipelined(self):
        letter = Letters(options.seed).make(1, 30_000)
        session = self.session()
        pieces = [letter[:1], letter[1:1], letter[1:10_000], letter[10_000:]]
        said = f"MAIL FROM:<{SENDER}>\r\nRCPT TO:<{ADA}>\r\n".encode()
        for number, piece in enumerate(pieces):
            said += b"BDAT %d%s\r\n" % (len(piece), b" LAST" if number == 3 else b"") + piece
        session.send(said + b"NOOP\r\n")
        self.assertEqual([session.reply().code for _ in range(7)], [250] * 7)
        self.assertSame(self.only_message().content, letter)

    def test_chunks_without_a_transaction_are_refused_and_skipped(self):
        session = self.session()
        session.send(b"BDAT 14 LAST\r\nNOOP\r\nRSET\r\n\r\nNOOP\r\n")
        self.assertEqual(session.reply().code // 100, 5)
        self.assertEqual(session.reply().code, 250)
        session.envelope(SENDER, f"nobody@{DOMAIN}")
        session.send(b"BDAT 6\r\nNOOP\r\nBDAT 6 LAST\r\nNOOP\r\nNOOP\r\n")
        self.assertEqual([session.reply().code // 100 for _ in range(3)], [5, 5, 2])

    def test_a_reset_between_chunks_drops_the_message(self):
        session = self.session()
        session.envelope(SENDER, ADA)
        session.send(b"BDAT 5\r\nabc\r\nRSET\r\n")
        self.assertEqual([session.reply().code for _ in range(2)], [250, 250])
        self.assertEqual(session.deliver(SENDER, ADA, PLAIN).code, 250)
        self.assertSame(self.only_message().content, PLAIN)

    def test_international_addresses_need_their_extension(self):
        session = self.session()
        self.assertEqual(session.envelope("jürgen@client.test", ADA, " SMTPUTF8"), None)
        session.command("RSET")
        self.assertEqual(session.command("MAIL FROM:<jürgen@client.test>").code // 100, 5)
        self.assertEqual(session.command("NOOP").code, 250)

    def test_a_message_that_is_announced_too_big_is_refused_at_once(self):
        session = self.session()
        largest = int(session.ehlo()["SIZE"])
        self.assertEqual(session.command(f"MAIL FROM:<{SENDER}> SIZE={largest + 1}").code, 552)
        self.assertEqual(session.command(f"MAIL FROM:<{SENDER}> SIZE={largest}").code, 250)

    def test_a_message_that_is_too_big_is_refused_and_the_session_goes_on(self):
        session = self.session()
        largest = int(session.ehlo()["SIZE"])
        self.assertEqual(session.deliver(SENDER, ADA, numbered_lines(largest + 1)).code, 552)
        self.assertEqual(session.deliver(SENDER, ADA, PLAIN).code, 250)
        self.assertSame(self.only_message().content, PLAIN)

    def test_unknown_users_and_other_domains_are_refused_with_550(self):
        session = self.session()
        session.command(f"MAIL FROM:<{SENDER}>")
        for address in (f"nobody@{DOMAIN}", f"ada.@{DOMAIN}", "x@elsewhere.test", f"ada%elsewhere.test@{DOMAIN}",
                        f"ada@sub.{DOMAIN}", "ada@[127.0.0.1]"):
            self.assertIn(session.command(f"RCPT TO:<{address}>").code, (501, 550, 553), address)
        self.assertEqual(session.command("DATA").code // 100, 5)
        self.assertEqual(session.command("NOOP").code, 250)

    def test_who_may_log_in_may_not_relay_either(self):
        session = self.session()
        session.command(f"MAIL FROM:<{ADA}>")
        self.assertEqual(session.command("RCPT TO:<x@elsewhere.test>").code, 550)

    def test_the_postmaster_is_reached_in_every_spelling(self):
        session = self.session()
        recipients = ["postmaster", "PostMaster", f"postmaster@{DOMAIN}", f"POSTMASTER@{DOMAIN.upper()}"]
        for recipient in recipients:
            self.assertEqual(session.deliver("", recipient, PLAIN).code, 250, recipient)
        found = self.machine.mailbox("ada")
        self.assertEqual(len(found), len(recipients))
        self.assertTrue(all(one.raw.startswith(b"Return-Path: <>\r\n") for one in found))

    def test_addresses_are_known_in_every_spelling(self):
        session = self.session()
        for recipient in (f"ADA@{DOMAIN}", f"ada@{DOMAIN.upper()}", f'"ada"@{DOMAIN}'):
            self.assertEqual(session.deliver(SENDER, recipient, PLAIN).code, 250, recipient)
        # Outlook says a space too many; old clients name a route.
        self.assertEqual(session.command(f"MAIL FROM: <{SENDER}>").code, 250)
        self.assertEqual(session.command(f"RCPT TO:<@relay.test:{ADA}>").code, 250)

    def test_one_address_named_twice_gets_one_message(self):
        self.assertEqual(self.session().deliver(SENDER, [ADA, ADA, f"postmaster@{DOMAIN}"], PLAIN).code, 250)
        self.only_message()

    def test_smuggled_commands_in_a_message_are_never_obeyed(self):
        ends = [b"\n.\n", b"\n.\r\n", b"\r.\r", b"\r.\r\n", b"\r\n.\n", b"\r\n.\r", b"\n.\r", b"\r.\n", b"\n\n.\n\n",
                b"\n.\n\r\n", b"\r\r.\r\r", b"\0\n.\n", b"\n..\r\n", b"\r\n.\0\n"]
        smuggled = f"MAIL FROM:<evil@client.test>\r\nRCPT TO:<{ADA}>\r\nDATA\r\nSubject: evil\r\n\r\nevil\r\n.\r\n".encode()
        for end in ends:
            for cut in (False, True):
                with self.subTest(end=end, cut=cut), self.session() as session:
                    session.envelope(SENDER, GRACE)
                    self.assertEqual(session.command("DATA").code, 354)
                    body = b"Subject: outer\r\n\r\nouter" + end
                    if cut:
                        # The end in segments of its own, as a relay might forward it.
                        for byte in body:
                            session.send(bytes([byte]))
                            time.sleep(0.002 if bytes([byte]) in b"\r\n." else 0)
                        session.send(smuggled)
                    else:
                        session.send(body + smuggled)
                    self.assertEqual(session.reply().code // 100, 5)
                    # One reply for one message: what comes next answers what is said next.
                    self.assertEqual(session.command("VRFY ada").code, 252)
        self.assertEqual(self.machine.mailbox("ada"), [])
        self.assertEqual(self.machine.mailbox("grace"), [])

    def test_bare_line_ends_in_chunks_are_refused(self):
        for body in (b"a\nb\r\n", b"a\rb\r\n", b"a\r\n\n", b"\n", b"a\r"):
            for size in (1, 100):
                with self.subTest(body=body, size=size), self.session() as session:
                    self.assertEqual(session.deliver_in_chunks(SENDER, ADA, body, size).code // 100, 5)
        self.assertEqual(self.machine.mailbox("ada"), [])

    def test_bare_line_ends_in_commands_are_refused(self):
        for said in (b"NOOP\nMAIL FROM:<a@b.test>\r\n", b"NOOP\rNOOP\r\n", b"NOOP\n\r\n",
                     b"MAIL FROM:<a@b.test>\nRCPT TO:<ada@barepost.test>\nDATA\r\n"):
            with self.subTest(said), self.session() as session:
                session.send(said)
                self.assertEqual(session.reply().code // 100, 5)
                with contextlib.suppress(Gone):
                    session.send(b"NOOP\r\n")
                    self.assertIn(session.reply().code, (250, 421))

    def test_a_long_line_is_refused_and_the_session_goes_on(self):
        session = self.session()
        # RFC 5321 asks for 512 bytes with the line's end, more where extensions have parameters.
        self.assertEqual(session.command(b"NOOP " + b"x" * (512 - 7)).code, 250)
        for length in (3000, 100_000):
            self.assertEqual(session.command(b"NOOP " + b"x" * length).code // 100, 5)
        self.assertEqual(session.deliver(SENDER, ADA, PLAIN).code, 250)

    def test_100_recipients_are_taken_and_one_too_many_is_refused_for_now(self):
        session = self.session()
        limit = int(re.search(r"RCPTMAX=(\d+)", session.ehlo()["LIMITS"])[1])
        self.assertGreaterEqual(limit, 100)
        session.command(f"MAIL FROM:<{SENDER}>")
        batch = f"RCPT TO:<{ADA}>\r\n".encode() * 50
        codes = []
        while len(codes) <= limit:
            session.send(batch)
            codes += [session.reply().code for _ in range(50)]
        self.assertEqual(set(codes[:100]), {250})
        self.assertLessEqual(set(codes), {250, 452})

    def test_who_only_makes_errors_is_sent_away(self):
        session = self.session()
        with self.assertRaises(Gone):
            for _ in range(200):
                if session.command("VERB").code == 421:
                    session.line()
        self.assertEqual(self.session().command("NOOP").code, 250)

    def test_who_guesses_recipients_is_sent_away(self):
        session = self.session()
        session.command(f"MAIL FROM:<{SENDER}>")
        with self.assertRaises(Gone):
            for number in range(2000):
                if session.command(f"RCPT TO:<guess{number}@{DOMAIN}>").code == 421:
                    session.line()

    def test_commands_out_of_order_are_refused(self):
        with self.machine.smtp() as session:
            for line, code in (("MAIL FROM:<a@b.test>", 503), ("EHLO c.test", 250), (f"RCPT TO:<{ADA}>", 503), ("DATA", 503),
                               ("MAIL FROM:<a@b.test>", 250), ("MAIL FROM:<a@b.test>", 503), ("RSET", 250),
                               ("DATA", 503), ("HELO c.test", 250), ("MAIL FROM:<a@b.test> SIZE=9", (250, 555)),
                               ("EXPN ada", (502, 550)), ("HELP", 214), ("STARTTLS", (500, 502)), ("AUTH PLAIN", (500, 502, 503)),
                               ("QUIT", 221)):
                self.assertIn(session.command(line).code, code if isinstance(code, tuple) else (code,), line)

    def test_a_message_that_is_cut_off_is_not_delivered(self):
        for leave in ("close", "reset"):
            for said in (b"DATA\r\nSubject: half\r\n\r\nhalf a mess", b"DATA\r\nSubject: half\r\n\r\nwhole but for its end\r\n",
                         b"DATA\r\nSubject: half\r\n\r\nwhole but for its end\r\n.\r", b"BDAT 100 LAST\r\nhalf a chunk",
                         b"BDAT 5\r\nabc\r\n"):
                session = self.session()
                session.envelope(SENDER, ADA)
                session.send(said)
                time.sleep(0.05)
                getattr(session, leave)()
        self.assertEqual(self.session().deliver(SENDER, GRACE, PLAIN).code, 250)
        self.only_message("grace")
        self.assertEqual(self.machine.mailbox("ada"), [])

    def test_many_sessions_at_once_each_get_their_answers(self):
        sessions = [self.machine.smtp() for _ in range(100)]
        try:
            for session in sessions:
                session.send(b"EHLO c.test\r\n")
            self.assertEqual({session.reply().code for session in sessions}, {250})
            self.assertEqual({session.deliver(SENDER, ADA, PLAIN).code for session in sessions}, {250})
        finally:
            for session in sessions:
                session.close()
        self.assertEqual(len(self.machine.mailbox("ada")), 100)


class Pop3(Shared):
    """RFC 1939 and its extensions, as a client sees them."""

    def setUp(self):
        super().setUp()
        self.letters = Letters(options.seed)
        with self.session() as session:
            for number in range(1, 6):
                self.assertEqual(session.deliver(SENDER, ADA, self.letters.make(number, number * 900)).code, 250)

    def numbers(self, user="ada"):
        return [self.letters.recognize(found.content) for found in self.machine.mailbox(user)]

    def reader(self, user="ada"):
        return self.enterContext(self.machine.pop3(user))

    def test_a_user_has_a_name_and_a_password(self):
        for user, password in (("ada", "wrong"), ("nobody", PASSWORD), (ADA, ""), (ADA, PASSWORD + " ")):
            with self.subTest(user=user), self.machine.pop3() as reader:
                with self.assertRaises(Refused):
                    reader.log_in(user, password)
                with self.assertRaises(Refused):
                    reader.command("STAT")
        for command in ("STAT", "LIST", "RETR 1", "DELE 1", "UIDL", "PASS x", "TOP 1 1", "RSET"):
            with self.machine.pop3() as reader, self.assertRaises(Refused, msg=command):
                reader.command(command)
        self.assertEqual(self.numbers(), [1, 2, 3, 4, 5])

    def test_mailboxes_are_apart(self):
        self.assertEqual(self.numbers("grace"), [])

    def test_top_gives_the_header_and_so_many_lines(self):
        reader = self.reader()
        raw = reader.fetch()[4].raw
        head, body = raw.split(b"\r\n\r\n", 1)
        lines = body.split(b"\r\n")
        for count in (0, 1, 3, len(lines), 1_000_000):
            reader.command(f"TOP 5 {count}")
            expected = head + b"\r\n\r\n" + b"".join(line + b"\r\n" for line in lines[:-1][:count])
            self.assertSame(reader.block(), expected, f"TOP 5 {count}")

    def test_a_unique_identifier_is_one_word_of_printable_ascii(self):
        uidls = list(self.reader().uidls().values())
        self.assertEqual(len(set(uidls)), 5)
        for uidl in uidls:
            self.assertRegex(uidl, r"^[!-~]{1,70}$")

    def test_reset_takes_deletions_back(self):
        reader = self.reader()
        reader.delete([1, 2, 5])
        self.assertEqual(list(reader.sizes()), [3, 4])
        for command in ("RETR 1", "DELE 1", "LIST 1", "UIDL 1", "TOP 1 0"):
            with self.assertRaises(Refused, msg=command):
                reader.command(command)
        reader.command("RSET")
        self.assertEqual(list(reader.sizes()), [1, 2, 3, 4, 5])
        reader.quit()
        self.assertEqual(self.numbers(), [1, 2, 3, 4, 5])

    def test_quit_deletes_and_no_number_or_identifier_is_used_again(self):
        reader = self.reader()
        before = reader.uidls()
        reader.delete([1, 3, 5])
        reader.quit()
        self.assertEqual(self.numbers(), [2, 4])
        self.session().deliver(SENDER, ADA, self.letters.make(6, 2000))
        after = self.reader().uidls()
        self.assertEqual(after[1], before[2])
        self.assertEqual(after[2], before[4])
        self.assertNotIn(after[3], before.values())
        self.assertGreater(barepost.uid_of(after[3]), max(map(barepost.uid_of, before.values())))

    def test_a_dropped_connection_deletes_nothing(self):
        for leave in ("close", "reset"):
            reader = self.reader()
            reader.delete([1, 2])
            getattr(reader, leave)()
            self.reader_in_time().close()
        self.assertEqual(self.numbers_in_time(), [1, 2, 3, 4, 5])

    def test_a_mailbox_is_open_once_at_a_time(self):
        first = self.reader()
        with self.machine.pop3() as second, self.assertRaisesRegex(Refused, r"\[IN-USE\]"):
            second.log_in("ada")
        self.assertEqual(first.stat()[0], 5)
        first.quit()
        self.assertEqual(self.reader().stat()[0], 5)

    def test_a_connection_that_is_gone_frees_its_mailbox(self):
        for leave in ("close", "reset"):
            getattr(self.reader(), leave)()
            self.reader_in_time().quit()

    def reader_in_time(self):
        """Logs in as soon as the server has seen that the last reader is gone."""
        def attempt():
            with contextlib.suppress(Refused):
                return self.reader()
        return until(attempt, 10, "the mailbox is free again")

    def numbers_in_time(self):
        self.reader_in_time().quit()
        return self.numbers()

    def test_mail_that_arrives_during_a_session_is_seen_by_the_next(self):
        reader = self.reader()
        self.assertEqual(self.session().deliver(SENDER, ADA, self.letters.make(6, 1000)).code, 250)
        self.assertEqual(reader.stat()[0], 5)
        self.assertEqual(list(reader.uidls()), [1, 2, 3, 4, 5])
        reader.delete([1])
        reader.quit()
        self.assertEqual(self.numbers(), [2, 3, 4, 5, 6])

    def test_a_whole_session_may_be_pipelined(self):
        with self.machine.pop3() as reader:
            reader.send(
                f"CAPA\r\nUSER {ADA}\r\nPASS {PASSWORD}\r\nSTAT\r\nLIST\r\nRETR 2\r\nDELE 2\r\nRETR 2\r\nNOOP\r\nUIDL 3\r\nQUIT\r\n".encode()
            )
            reader.answer()
            self.assertIn(b"PIPELINING\r\n", reader.block())
            reader.answer()
            reader.answer()
            self.assertEqual(reader.answer().split()[0], "5")
            reader.answer()
            self.assertEqual(reader.block().count(b"\r\n"), 5)
            reader.answer()
            self.assertEqual(self.letters.recognize(barepost.without_trace(reader.block())), 2)
            reader.answer()
            with self.assertRaises(Refused):
                reader.answer()
            reader.answer()
            self.assertEqual(reader.answer().split()[0], "3")
            reader.answer()
        self.assertEqual(self.numbers(), [1, 3, 4, 5])

    def test_wrong_commands_are_refused_and_the_session_goes_on(self):
        reader = self.reader()
        for command in ("RETR", "RETR 0", "RETR 6", "RETR x", "RETR 99999999999999999999", "RETR -1", "DELE 6", "TOP 1",
                        "TOP 1 x", "LIST 0", "UIDL 9", "FOO", "USER ada", ""):
            with self.assertRaises(Refused, msg=command):
                reader.command(command)
        self.assertEqual(reader.stat()[0], 5)


class Restarting(barepost.Test):
    """What POP3 says stays true over a restart, clean or not."""

    def test_identifiers_and_deletions_outlive_restarts(self):
        letters, data = Letters(options.seed), self.data()
        machine = self.boot(data)
        with machine.smtp() as session:
            session.ehlo()
            for number in range(1, 21):
                self.assertEqual(session.deliver(SENDER, [ADA, GRACE], letters.make(number, 500 * number)).code, 250)
        expected = {}
        for user in ("ada", "grace"):
            with machine.pop3(user) as reader:
                expected[user] = {uidl: number for number, uidl in reader.uidls().items()}
                self.assertEqual(list(expected[user].values()), list(range(1, 21)))
        ports = machine.ports
        for end in ("stop", "kill", "stop", "kill"):
            with machine.pop3("ada") as reader:
                doomed = self.dice.sample(list(reader.uidls().items()), 3)
                reader.delete(number for number, _ in doomed)
                reader.quit()
                for _, uidl in doomed:
                    del expected["ada"][uidl]
            getattr(machine, end)()
            machine = self.boot(data, ports=ports)
            for user in ("ada", "grace"):
                found = {one.uidl: letters.recognize(one.content) for one in machine.mailbox(user)}
                self.assertEqual(found, expected[user])

    def test_programs_that_keep_mail_fetch_none_of_it_again_after_a_restart(self):
        letters, data = Letters(options.seed), self.data()
        machine = self.boot(data)
        for number in range(1, 4):
            self.assertEqual(machine.deliver(SENDER, ADA, letters.make(number, 2000)).code, 250)
        box = self.folder / "box"
        command = [
            program("mpop"), "--host=127.0.0.1", f"--port={machine.ports + barepost.POP3}", "--tls=off", "--auth=user",
            f"--user={ADA}", f"--passwordeval=echo {PASSWORD}", f"--uidls-file={self.folder}/uidls", "--keep=on",
            "--only-new=on", f"--delivery=mbox,{box}",
        ]
        sizes = []
        for _ in range(2):
            subprocess.run(command, check=True, timeout=60, capture_output=True, env={**os.environ, "HOME": str(self.folder)},
                           preexec_fn=barepost.die_with_us)
            sizes.append(box.stat().st_size)
            self.assertEqual(machine.stop(), 0)
            machine = self.boot(data, ports=machine.ports)
        self.assertEqual(sizes[0], sizes[1])
        self.assertGreater(sizes[0], 3 * 2000)


class Guessing(barepost.Test):
    """A wrong password costs time, and more each time; the right one is never kept waiting."""

    configuration = CONFIGURATION + ACCESS_THROTTLED

    def seconds_of_login(self, reader, password):
        """(whether the answer was yes, after how many seconds it came or was no longer waited for)"""
        began = time.monotonic()
        with reader:
            try:
                reader.log_in("ada", password)
                accepted = True
            except (Refused, TimeoutError):
                accepted = False
        return accepted, time.monotonic() - began

    def test_a_wrong_password_is_delayed_longer_each_time_and_the_owner_is_not(self):
        machine = self.boot()
        delays = []
        for guess in ("first", "second", "third"):
            accepted, seconds = self.seconds_of_login(machine.pop3(), guess)
            self.assertFalse(accepted)
            delays.append(seconds)
        barepost.say("delays: " + ", ".join(f"{seconds:.1f} s" for seconds in delays))
        self.assertGreater(delays[0], 1)
        self.assertGreater(delays[1], 2 * 1)
        self.assertGreater(delays[2], 4 * 1)
        self.assertEqual(sorted(delays), delays)
        accepted, seconds = self.seconds_of_login(machine.pop3(), PASSWORD)
        self.assertTrue(accepted)
        self.assertLess(seconds, delays[2])

    def test_guessing_in_parallel_gains_nothing(self):
        machine = self.boot()
        outcomes = []
        # QEMU's user network greets a crowd one by one, so the connections are there before the guesses.
        readers = [self.enterContext(machine.pop3(timeout=10)) for _ in range(12)]

        def guess(number, reader):
            outcomes.append(self.seconds_of_login(reader, f"guess {number}"))

        guesses = [threading.Thread(target=guess, args=each) for each in enumerate(readers)]
        for thread in guesses:
            thread.start()
        for thread in guesses:
            thread.join(barepost.ANSWER_SECONDS)
        self.assertEqual(len(outcomes), len(guesses))
        self.assertFalse(any(accepted for accepted, _ in outcomes))
        # What was looked at came at its price; what comes while others are pending may be refused unlooked at.
        delayed = sorted(seconds for _, seconds in outcomes if seconds > 2)
        barepost.say(f"{len(delayed)} of 12 guesses were kept waiting")
        self.assertGreater(len(delayed), 2)
        until(lambda: self.seconds_of_login(machine.pop3(), PASSWORD)[0], 10, "the owner gets in")


if __name__ == "__main__":
    barepost.main()
