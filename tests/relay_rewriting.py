"""Postfix, Exim, Sendmail and OpenSMTPD get messages that are written anew for them, and what they refuse is reported."""

import collections
import email
import email.policy
import re

import peers
import signatures
from mail import DOMAIN
from peers import REFUSED, SIZE_MAX, WORDS
from processes import until
from relay_peers import OpenSmtpd, Sendmail
from relay_shared import ADA, EXIM, OPENSMTPD, POSTFIX, SENDMAIL, Relay

BOTH = [("rsa-sha256", True), ("ed25519-sha256", True)]
LINE_BYTES_MAX = 998
TEXT = (b".\r\nFrom the loom, " + "B\u00e4nder und Fäden, ".encode() * 300)[:5000] + b".\r\nThe end.=\r\n"


def message(subject, kind, body, more=""):
    """A message of Ada's, with a body of this kind."""
    return (
        f"Date: Mon, 23 Nov 2026 12:00:00 +0000\r\nMessage-ID: <{subject.replace(' ', '-')}@{DOMAIN}>\r\nFrom: Ada <{ADA}>\r\n"
        f"To: Bob <bob@client.test>\r\nSubject: {subject}\r\n{more}MIME-Version: 1.0\r\nContent-Type: {kind}\r\n\r\n"
    ).encode() + body


def parts(*those):
    """The body of a multipart message with these parts: (header, bytes)."""
    return b"".join(b"--part\r\n" + head.encode() + b"\r\n\r\n" + body + b"\r\n" for head, body in those) + b"--part--\r\n"


def leaves(raw):
    """The decoded content of a message: [(type, bytes)]."""
    read = email.message_from_bytes(raw)
    return [(part.get_content_type(), part.get_payload(decode=True)) for part in read.walk() if not part.is_multipart()]


def unwrapped(text):
    return " ".join(text.split())


class FourServers(Relay):
    def servers(self, size_max=SIZE_MAX):
        """The four servers: {domain: server}."""
        known = {"virtual_mailbox_maps": "inline:{bob@postfix.test=box/}", "message_size_limit": size_max}
        started = [
            peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test", **known),
            peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test", size_max=size_max),
            Sendmail(self.folder, SENDMAIL, "mx.sendmail.test", "sendmail.test", size_max),
            OpenSmtpd(self.folder, OPENSMTPD, "mx.opensmtpd.test", "opensmtpd.test", size_max),
        ]
        return {server.folder.name: self.watch(server) for server in started}

    def ascii_servers(self):
        """Servers that do not offer 8BITMIME: {domain: server}."""
        started = [
            peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test", smtpd_discard_ehlo_keywords="8bitmime"),
            peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test", more="accept_8bitmime = false"),
        ]
        return {server.folder.name: self.watch(server) for server in started}

    def assertRewritten(self, received, sent, keys):
        """Asserts that a received message has short lines in ASCII and good signatures, and reads as the sent one."""
        self.assertTrue(received.isascii(), received[:3000])
        self.assertLessEqual(max(map(len, received.split(b"\r\n"))), LINE_BYTES_MAX)
        self.assertEqual(leaves(received), leaves(sent))
        self.assertEqual(signatures.verdicts(received, keys), BOTH, received[:3000])

    def subjects(self, server, count):
        """The received messages by their subjects."""
        return {email.message_from_bytes(raw)["Subject"]: raw for raw in server.wait_for(count, 30)}

    def reports_of(self, machine, user, count):
        """The reports in a mailbox: {subject of the message: [words, without line ends]}."""
        found = until(lambda: len(there := machine.mailbox(user)) >= count and there, 30, f"{count} reports")
        told = collections.defaultdict(list)
        for received in found:
            read = email.message_from_bytes(received.raw, policy=email.policy.default)
            self.assertEqual((read.get_content_type(), read["Return-Path"]), ("multipart/report", "<>"))
            words, _, returned = read.iter_parts()
            self.assertEqual(returned.get_content_type(), "text/rfc822-headers")
            header = email.message_from_string(returned.get_content())
            subject, words = header["Subject"], unwrapped(words.get_content())
            self.assertEqual(header["Message-ID"], f"<{subject.replace(' ', '-')}@{DOMAIN}>")
            self.assertIn(f'Your message with the subject "{subject}" could not be delivered', words)
            told[subject].append(words)
        return told


class Rewriting(FourServers):
    def test_long_lines_reach_four_servers_in_short_lines(self):
        servers = self.servers()
        machine = self.boot()
        keys = signatures.published(machine.data)
        references = " ".join(f"<{number}.of.a.long.thread@{DOMAIN}>" for number in range(60))
        encoded = b"TG9vbXMg" * 500
        sent = {
            "a text": message("a text", "text/plain; charset=utf-8", TEXT),
            "a letter": message("a letter", 'multipart/mixed; boundary="part"', parts(
                ("Content-Type: text/plain; charset=utf-8", TEXT),
                ("Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: 8bit", b"<p>" + TEXT * 4),
                ("Content-Type: application/octet-stream", bytes(byte for byte in range(1, 256) if byte not in b"\r\n") * 9),
                ("Content-Type: image/png\r\nContent-Transfer-Encoding: base64", encoded),
            ), f"References: {references}\r\n"),
        }
        for one in sent.values():
            self.submit(machine, [f"bob@{domain}" for domain in servers], one)
        for domain, server in servers.items():
            found = self.subjects(server, len(sent))
            for subject, one in sent.items():
                with self.subTest(domain, subject=subject):
                    self.assertRewritten(found[subject], one, keys)
            self.assertEqual(unwrapped(email.message_from_bytes(found["a letter"])["References"]), references)
            self.assertEqual(len(server.messages()), len(sent))
        self.assertEqual(machine.mailbox("ada"), [])

    def test_8_bit_mail_reaches_servers_that_take_only_ascii(self):
        servers = self.ascii_servers()
        machine = self.boot()
        keys = signatures.published(machine.data)
        words = "Bänder und Fäden.\r\n.\r\n".encode()
        sent = {
            "a text": message("a text", "text/plain; charset=utf-8", words),
            "a letter": message("a letter", 'multipart/alternative; boundary="part"', parts(
                ("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit", words),
                ("Content-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: 8bit", b"<p>F\xe4den"),
            ), "Content-Transfer-Encoding: 8bit\r\n"),
        }
        for one in sent.values():
            self.submit(machine, [f"bob@{domain}" for domain in servers], one, " BODY=8BITMIME")
        for domain, server in servers.items():
            found = self.subjects(server, len(sent))
            for subject, one in sent.items():
                with self.subTest(domain, subject=subject):
                    self.assertRewritten(found[subject], one, keys)
            self.assertEqual(len(server.messages()), len(sent))
        self.assertEqual(machine.mailbox("ada"), [])

    def test_signed_8_bit_parts_bounce_if_only_ascii_is_taken(self):
        servers = self.ascii_servers()
        machine = self.boot()
        body = parts(("Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit", "Fäden\r\n".encode()),
                     ("Content-Type: application/pgp-signature", b"-----BEGIN PGP SIGNATURE-----"))
        for domain in servers:
            one = message(f"to {domain}", 'multipart/signed; protocol="application/pgp-signature"; boundary="part"', body)
            self.submit(machine, [f"bob@{domain}"], one)
        told = self.reports_of(machine, "ada", len(servers))
        for domain, server in servers.items():
            [words] = told[f"to {domain}"]
            self.assertIn("The other server does not support 8BITMIME, which the message needs.", words)
            self.assertEqual(server.messages(), [])


class Bouncing(FourServers):
    def test_a_refused_message_causes_one_report_in_words(self):
        size_max = 30_000
        servers = self.servers(size_max)
        machine = self.boot()
        unknown = {
            "postfix.test": ("stranger", "550 5.1.1 <stranger@postfix.test>: Recipient address rejected: User unknown in virtual mailbox table"),
            "exim.test": ("nobody", "550 no such user"),
            "sendmail.test": ("stranger", "550 5.1.1 <stranger@sendmail.test>... User unknown"),
            "opensmtpd.test": ("stranger", "550 Invalid recipient: <stranger@opensmtpd.test>"),
        }
        for domain in servers:
            # This message is written anew before it is refused.
            self.submit(machine, [f"{unknown[domain][0]}@{domain}"], message(f"unknown at {domain}", "text/plain; charset=utf-8", TEXT))
            self.submit(machine, [f"bob@{domain}"], message(f"large at {domain}", "text/plain", b"A line.\r\n" * (size_max // 8)))
            refused = message(f"refused at {domain}", "text/plain", b"Well?\r\n").replace(ADA.encode(), REFUSED.encode())
            self.submit(machine, [f"bob@{domain}"], refused, sender=REFUSED)
        told = self.reports_of(machine, "ada", 2 * len(servers))
        told |= self.reports_of(machine, REFUSED.partition("@")[0], len(servers))
        self.assertEqual({len(words) for words in told.values()}, {1})
        self.assertEqual(len(told), 3 * len(servers))
        for domain, server in servers.items():
            said = {kind: told[f"{kind} at {domain}"][0] for kind in ("unknown", "large", "refused")}
            self.assertIn(f"The other server refused the recipient. mx.{domain} replied: {unknown[domain][1]}", said["unknown"])
            self.assertIn(f"The other server accepts messages of at most {size_max} bytes.", said["large"])
            self.assertRegex(said["refused"], rf"The other server refused the message\. mx\.{re.escape(domain)} replied: 55\d .*{WORDS}")
            self.assertEqual(server.messages(), [])

    def test_mail_of_four_servers_arrives_or_bounces_once(self):
        servers = self.servers()
        machine = self.boot()
        for domain, server in servers.items():
            for recipient in (ADA, f"stranger@{DOMAIN}"):
                server.send(f"bob@{domain}", recipient, f"From: bob@{domain}\r\nTo: {recipient}\r\nSubject: to {recipient}\r\n\r\nWell?\r\n")
        for domain, server in servers.items():
            bounce = server.wait_for(1, 30)[0].decode()
            self.assertRegex(bounce, rf"(?i)\nTo: <?bob@{re.escape(domain)}>?\r\n")
            self.assertIn(f"stranger@{DOMAIN}", bounce)
            self.assertIn("550 5.1.1", unwrapped(bounce))
        found = until(lambda: len(there := machine.mailbox("ada")) == len(servers) and there, 30, "a message of each server")
        senders = {received.raw.partition(b"\r\n")[0].decode() for received in found}
        self.assertEqual(senders, {f"Return-Path: <bob@{domain}>" for domain in servers})
        self.assertEqual([len(server.messages()) for server in servers.values()], [1] * len(servers))
