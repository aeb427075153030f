"""RFC 5321 and its extensions, as valid and invalid clients see them."""

import base64
import contextlib
import email.utils
import re
import ssl
import time

import barepost
from barepost import options
from clients_shared import ADA, GRACE, PLAIN, SENDER, Shared, numbered_lines
from mail import DOMAIN, PASSWORD, Gone, MessageMaker, stuffed


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
        # The reply to the client contains the id of the trace header.
        self.assertIn(head.split(" id ")[1].split()[0].rstrip(";"), repr(reply))
        date = email.utils.parsedate_to_datetime(head.rpartition(";")[2].strip())
        self.assertLess(abs(date.timestamp() - time.time()), 120)

    def test_recipients_do_not_learn_of_each_other(self):
        self.assertEqual(self.session().deliver(SENDER, [ADA, GRACE], PLAIN).code, 250)
        self.assertNotIn(b"grace", self.only_message("ada").raw)
        self.assertNotIn(b"ada", self.only_message("grace").raw)

    def test_commands_may_be_pipelined_over_many_messages(self):
        maker = MessageMaker(options.seed)
        envelope = f"MAIL FROM:<{SENDER}>\r\nRCPT TO:<{ADA}>\r\nRCPT TO:<nobody@{DOMAIN}>\r\nRCPT TO:<{GRACE}>\r\nDATA\r\n".encode()
        session = self.session()
        session.send(envelope)
        for number in range(1, 21):
            self.assertEqual([session.reply().code for _ in range(5)], [250, 250, 550, 250, 354])
            session.send(stuffed(maker.make(number, 3000)) + (envelope if number < 20 else b"QUIT\r\n"))
            self.assertEqual(session.reply().code, 250)
        self.assertEqual(session.reply().code, 221)
        for user in ("ada", "grace"):
            self.assertEqual([maker.recognize(found.content) for found in self.machine.mailbox(user)], list(range(1, 21)))

    def test_chunks_may_be_pipelined(self):
        message = MessageMaker(options.seed).make(1, 30_000)
        session = self.session()
        pieces = [message[:1], message[1:1], message[1:10_000], message[10_000:]]
        said = f"MAIL FROM:<{SENDER}>\r\nRCPT TO:<{ADA}>\r\n".encode()
        for number, piece in enumerate(pieces):
            said += b"BDAT %d%s\r\n" % (len(piece), b" LAST" if number == 3 else b"") + piece
        session.send(said + b"NOOP\r\n")
        self.assertEqual([session.reply().code for _ in range(7)], [250] * 7)
        self.assertSame(self.only_message().content, message)

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

    def test_an_announced_oversize_message_is_refused_at_once(self):
        session = self.session()
        largest = int(session.ehlo()["SIZE"])
        self.assertEqual(session.command(f"MAIL FROM:<{SENDER}> SIZE={largest + 1}").code, 552)
        self.assertEqual(session.command(f"MAIL FROM:<{SENDER}> SIZE={largest}").code, 250)

    def test_an_oversize_message_does_not_end_the_session(self):
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

    def test_addresses_with_plaintext_auth_cannot_relay(self):
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
        # Outlook sends an extra space, and old clients send a source route.
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
                        # Each byte in its own segment, as a relay might forward it.
                        for byte in body:
                            session.send(bytes([byte]))
                            time.sleep(0.002 if bytes([byte]) in b"\r\n." else 0)
                        session.send(smuggled)
                    else:
                        session.send(body + smuggled)
                    self.assertEqual(session.reply().code // 100, 5)
                    # One message has one reply. So the next reply belongs to the next command.
                    self.assertEqual(session.command("VRFY ada").code, 252)
        self.assertEqual(self.machine.mailbox("ada"), [])
        self.assertEqual(self.machine.mailbox("grace"), [])

    def test_bare_lf_in_chunks_becomes_crlf_and_bare_cr_is_refused(self):
        for body in (b"a\rb\r\n", b"a\r", b"\r\r\n"):
            for size in (1, 100):
                with self.subTest(body=body, size=size), self.session() as session:
                    self.assertEqual(session.deliver_in_chunks(SENDER, ADA, body, size).code // 100, 5)
        self.assertEqual(self.machine.mailbox("ada"), [])
        body = b"Subject: x\n\na\r\nb\n.\n\r\n"
        for size in (1, 100):
            self.assertEqual(self.session().deliver_in_chunks(SENDER, ADA, body, size).code, 250)
        for found in self.machine.mailbox("ada"):
            self.assertSame(found.content, b"Subject: x\r\n\r\na\r\nb\r\n.\r\n\r\n")

    def test_devices_deliver_in_their_own_spelling(self):
        """Devices and scripts play these dialogues at all three ports. At the submission ports they log in as Ada."""
        tls = ssl.create_default_context(cafile=self.machine.data / "tls" / "certificate.pem")
        login = base64.b64encode(f"\0{ADA} \0{PASSWORD}".encode()).decode()
        for port, local, sender in ((25, "scanner", SENDER), (587, "ada", ADA), (465, "ada", ADA)):
            dialogues = [
                (b"EHLO M\xfcller (PC)", f"MAIL FROM:{sender}", f"RCPT TO:{ADA}"),
                (b"HELO my pc" if port == 25 else b"EHLO my pc", f"MAIL FROM:\t<{sender}.>", f'RCPT TO:"Ada" <{ADA}>'),
                (b"EHLO a", f"MAIL FROM:<'{sender}'>SIZE=9", f"RCPT TO: <<{ADA}.>>"),
                (b"EHLO a", f'MAIL FROM: "Bob" <{sender}>', f"RCPT TO:\t{ADA}."),
                (b"EHLO a", f"MAIL FROM:<{local}>", "RCPT TO:<ada>"),
            ]
            for commands in dialogues:
                with self.subTest(commands, port=port), barepost.Smtp(self.machine.ports + port, host="localhost", tls=tls if port == 465 else None) as session:
                    ehlo, *envelope = commands
                    self.assertEqual(session.command(ehlo).code, 250)
                    if port != 25:
                        self.assertEqual(session.command(f"AUTH PLAIN {login} ").code, 235)
                    self.assertEqual([session.command(command).code for command in envelope], [250, 250])
                    self.assertEqual(session.command("DATA").code, 354)
                    session.send(stuffed(PLAIN.replace(SENDER.encode(), sender.encode())))
                    self.assertEqual(session.reply().code, 250)
            paths = [found.raw.partition(b"\r\n")[0].decode() for found in self.machine.mailbox("ada")]
            self.assertEqual(paths, [f"Return-Path: <{sender}>"] * 4 + [f"Return-Path: <{local}@{DOMAIN}>"])
            self.empty_all()

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
        # RFC 5321 requires 512 bytes with the CRLF, and more for the parameters of extensions.
        self.assertEqual(session.command(b"NOOP " + b"x" * (512 - 7)).code, 250)
        for length in (3000, 100_000):
            self.assertEqual(session.command(b"NOOP " + b"x" * length).code // 100, 5)
        self.assertEqual(session.deliver(SENDER, ADA, PLAIN).code, 250)

    def test_recipients_beyond_100_are_refused_for_now(self):
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

    def test_a_client_with_only_errors_is_disconnected(self):
        session = self.session()
        with self.assertRaises(Gone):
            for _ in range(200):
                if session.command("VERB").code == 421:
                    session.line()
        self.assertEqual(self.session().command("NOOP").code, 250)

    def test_a_client_that_guesses_recipients_is_disconnected(self):
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
                               ("EXPN ada", (502, 550)), ("HELP", 214), ("STARTTLS now", 501), ("AUTH PLAIN", (500, 502, 503)),
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
