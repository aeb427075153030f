"""The promise: mail is relayed to servers of other projects exactly once, senders get reports of failures, and mail of
those servers arrives.

The machine is a Linux process at a tap interface. Its gateway leads to other hosts in the test's own network. NSD serves
the domains, and Unbound authenticates some of them. Postfix, Exim, Sendmail and OpenSMTPD receive mail for a domain each.
For the others Postfix's smtp-sink is slow, refuses mail, or disconnects.

It takes a minute and a half. --quick runs the same tests.
"""

import base64
import email
import email.policy
import itertools
import re
import smtplib

import barepost
import network
import peers
import signatures
from forms import Forms
from hosted import LINUX, TAP
from mail import DOMAIN, PASSWORD
from processes import until
from relay_shared import (
    ADA, CLOSED, EXIM, GRACE, NAME_SERVER, OPENSMTPD, PLAIN, POSTFIX, RESOLVER, SENDMAIL, SIGNING, SINK, SLOW, SUBMISSION, Relay,
)

# Parts of this test in another file. An import makes unittest find and run their test cases.
from relay_rewriting import Bouncing, Rewriting


class Relaying(Relay):
    def test_messages_reach_postfix_and_exim_exactly(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        exim = self.watch(peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test"))
        machine = self.boot()
        sizes = (300, 2_000, 70_000, 5_000_000)
        for number, size in enumerate(sizes):
            self.submit(machine, ["bob@postfix.test", "eve@exim.test", GRACE], self.message(number, size))
        for peer in (postfix, exim):
            found = {re.search(rb"X-Test-Message: \d+/(\d+)/", received)[1]: received for received in peer.wait_for(len(sizes), 60)}
            self.assertEqual(len(found), len(sizes))
            for number, size in enumerate(sizes):
                self.assertWhole(found[str(number).encode()], self.message(number, size))
        self.assertEqual(len(machine.mailbox("grace")), len(sizes))
        self.assertEqual(machine.mailbox("ada"), [])

    def test_messages_reach_postfix_and_exim_over_tls(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        exim = self.watch(peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test"))
        machine = self.boot()
        self.submit(machine, ["bob@postfix.test", "eve@exim.test"], self.message(1, 200_000))
        for peer, words in ((postfix, r"using TLSv1\.3 with cipher TLS_\w+ .* with ESMTPS id"), (exim, r"with esmtps  ?\(TLS1\.3\) tls TLS_\w+")):
            received = peer.wait_for(1, 20)[0]
            self.assertWhole(received, self.message(1, 200_000))
            trace = " ".join(received.partition(b"Received: from client")[0].decode().split())
            self.assertRegex(trace, words)

    def test_a_host_with_broken_tls_gets_mail_in_the_clear(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test", smtpd_tls_protocols="TLSv1.1"))
        machine = self.boot()
        self.submit(machine, ["bob@postfix.test"], self.message(1))
        received = postfix.wait_for(1, 20)[0]
        self.assertWhole(received, self.message(1))
        self.assertIn("TLS library problem", postfix.log())
        self.assertIn(b"with ESMTP id", received)

    def test_a_smarthost_needs_a_valid_certificate(self):
        exim = self.watch(peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test", users={"barepost": "pencil"}))
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        direct = '[[relay.domain]]\ndomains = ["postfix.test"]\ndirect = true\n'
        login = 'user = "barepost"\npassword = "pencil"\nca = "smarthost.pem"\n'
        for number, (place, tls, words) in enumerate((
            ("mx.exim.test:587", "starttls", r"with esmtpsa  ?\(TLS1\.3\)"),
            ("mx.exim.test:465", "implicit", r"with esmtpsa  ?\(TLS1\.3\)"),
        )):
            data = self.data(configuration=f'{self.configuration}smarthost = "{place}"\ntls = "{tls}"\n{login}{direct}')
            (data / "smarthost.pem").write_bytes((exim.folder / "cert.pem").read_bytes())
            machine = self.boot(data)
            self.submit(machine, ["x@nowhere.test", "bob@postfix.test"], self.message(number, 100_000))
            received = exim.wait_for(number + 1, 30)[-1]
            self.assertWhole(received, self.message(number, 100_000))
            self.assertRegex(" ".join(received.partition(b"Received: from client")[0].decode().split()), words)
            self.assertWhole(postfix.wait_for(number + 1, 30)[-1], self.message(number, 100_000))
            self.assertEqual((machine.mailbox("ada"), machine.stop()), ([], 0))
        by_address = (f"{EXIM}:587", login, "TLS error on connection from")
        without_ca = ("mx.exim.test:587", login.replace('ca = "smarthost.pem"\n', ""), "TLS error on connection from")
        wrong = ("mx.exim.test:587", login.replace("pencil", "wrong"), "authenticator failed for")
        for place, more, complaint in (by_address, without_ca, wrong):
            before = exim.log().count(complaint)
            machine = self.boot(self.data(configuration=f'{self.configuration}smarthost = "{place}"\n{more}'))
            self.submit(machine, ["x@nowhere.test"], self.message(3))
            until(lambda before=before, complaint=complaint: exim.log().count(complaint) > before, 30, complaint)
            self.assertEqual((len(exim.messages()), machine.stop()), (2, 0))

    def test_a_smarthost_with_scram_gets_mail_after_the_login(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test", users={"barepost": "pencil"}))
        complaint = "SASL SCRAM-SHA-256 authentication failed"
        for password in ("pencil", "wrong"):
            data = self.data(configuration=f'{self.configuration}smarthost = "mx.postfix.test:587"\nuser = "barepost"\npassword = "{password}"\nca = "smarthost.pem"\n')
            (data / "smarthost.pem").write_bytes((postfix.folder / "cert.pem").read_bytes())
            machine = self.boot(data)
            self.submit(machine, ["bob@postfix.test"], self.message(1))
            until(lambda password=password: postfix.messages() if password == "pencil" else complaint in postfix.log(), 30, f"a login with {password}")
            self.assertEqual((postfix.log().count(complaint), machine.stop()), (int(password == "wrong"), 0))
        [received] = postfix.messages()
        self.assertWhole(received, self.message(1))
        self.assertIn("sasl_method=SCRAM-SHA-256, sasl_username=barepost\n", postfix.log())

    def test_a_host_that_fails_dane_gets_no_mail(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        exim = self.watch(peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test"))
        bare, other = (self.watch(peers.Sink(self.folder, address)) for address in (SLOW, SINK))
        own, wrong = peers.fingerprint(postfix.folder), "00" * 32
        zones = {
            "postfix.test": [f"@ IN MX 10 mx\nmx IN A {POSTFIX}\n_25._tcp.mx IN TLSA 3 1 1 {own}"],
            # A record for the certificate of another host, and a host without TLS.
            "exim.test": [f"@ IN MX 10 mx\nmx IN A {EXIM}\n_25._tcp.mx IN TLSA 3 1 1 {own}"],
            "slow.test": [f"@ IN MX 10 mx\nmx IN A {SLOW}\n_25._tcp.mx IN TLSA 3 1 1 {wrong}"],
            # A wrong record in a zone that is not signed.
            "sink.test": [f"@ IN MX 10 mx\nmx IN A {SINK}\n_25._tcp.mx IN TLSA 3 1 1 {wrong}"],
        }
        nsd = self.watch(peers.Nsd(self.folder, SIGNING, zones, signed=["postfix.test", "exim.test", "slow.test"]))
        self.watch(peers.Unbound(self.folder, RESOLVER, nsd))
        believing = self.configuration.replace(f'dns = ["{NAME_SERVER}"]', f'dns = ["{RESOLVER}"]\ndnssec = true')
        data = self.data(configuration=believing)
        machine = self.boot(data)
        for number, recipient in enumerate(("eve@exim.test", "bob@slow.test", "bob@postfix.test", "eve@sink.test")):
            self.submit(machine, [recipient], self.message(number))
        self.assertWhole(postfix.wait_for(1, 20)[0], self.message(2))
        self.assertWhole(until(other.messages, 20, "the message for the host in the unsigned zone")[0], self.message(3) + b"\r\n")
        until(lambda: bare.heard("disconnect"), 20, "an attempt at a host without TLS")
        self.assertEqual(machine.stop(), 0)
        self.assertEqual((exim.messages(), bare.messages()), ([], []))
        # Without DNSSEC the machine does not use the records.
        machine = self.boot(self.data(configuration=believing.replace("dnssec = true", "")))
        self.assertWhole(exim.wait_for(1, 20)[0], self.message(0))
        self.assertWhole(until(bare.messages, 20, "the message in the clear")[0], self.message(1) + b"\r\n")
        self.assertEqual(machine.mailbox("ada"), [])

    def test_relayed_mail_is_signed_and_verifies_with_dkimpy(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        data = self.data()
        machine = self.boot(data)
        sizes = (300, 100_000)
        for number, size in enumerate(sizes):
            self.submit(machine, ["bob@postfix.test"], self.message(number, size))
        # A message that Ada writes in the webmail is signed, too.
        ada = Forms(f"https://{machine.host}", data / "tls" / "certificate.pem", "ada")
        ada.hold(0)
        for text in ("Hello.\n", "A line of many.\n" * 10_000):
            page = ada.post("/mail/compose", to="Bob <bob@postfix.test>", bcc=GRACE, subject="looms \u00fc", text=text, do="send")
            self.assertIn("Message sent.", page)
        keys = signatures.published(data)
        for received in postfix.wait_for(4, 60):
            both = [("rsa-sha256", True), ("ed25519-sha256", True)]
            self.assertEqual(signatures.verdicts(received, keys), both, received[:3000])
            other = signatures.verdicts(received + b"more\r\n", keys)
            self.assertEqual(other, [(kind, False) for kind, _ in both])

    def test_mail_from_postfix_arrives_and_is_answered(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        machine = self.boot()
        postfix.send("bob@postfix.test", ADA, "From: bob@postfix.test\r\nTo: ada\r\nSubject: question\r\n\r\nWell?\r\n")
        found = until(lambda: machine.mailbox("ada"), 20, "Bob's message")[0].raw.decode()
        self.assertIn("spf=pass smtp.mailfrom=postfix.test; dmarc=none header.from=postfix.test", found.replace("\r\n\t", " "))
        self.submit(machine, ["bob@postfix.test"], self.message(1))
        self.assertWhole(postfix.wait_for(1, 20)[0], self.message(1))

    def test_forwarded_mail_has_a_rewritten_sender(self):
        """Alice's message to Grace is forwarded to Exim, and to an address at Postfix. Postfix passes the latter on to Exim,
        which refuses it."""
        gone = f"transport_maps=inline:{{gone@postfix.test=smtp:[{EXIM}]}}".split("=", 1)
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test", **dict([gone])))
        exim = self.watch(peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test"))
        address = f'address  = "{GRACE}"'
        self.assertIn(address, self.configuration)
        on = self.configuration.replace(address, f'{address}\nforward = ["bob@exim.test", "gone@postfix.test"]')
        machine = self.boot(self.data(configuration=on))
        postfix.send("alice@postfix.test", GRACE, "From: alice@postfix.test\r\nTo: grace\r\nSubject: on\r\n\r\nGo.\r\n")
        raw = exim.wait_for(1, 20)[0]
        received = raw.decode()
        # The sender's domain authorizes the host that sends the message (SPF).
        self.assertRegex(received, rf"(?m)^Return-path: <SRS0=\w{{6}}=\w\w=postfix\.test=alice@{DOMAIN}>|envelope-from <SRS0=\w{{6}}=\w\w=postfix\.test=alice@{DOMAIN}>")
        self.assertIn("[10.9.0.2]", received)
        self.assertRegex(received.replace("\r", ""), rf"\nDelivered-To: {GRACE}\nX-Loop: \w{{12}}\nARC-Seal: i=1; a=rsa-sha256; cv=none; ")
        keys = signatures.published(machine.data)
        self.assertTrue(signatures.chain_passes(raw, keys), received)
        self.assertFalse(signatures.chain_passes(raw.replace(b"Go.", b"No."), keys))
        bounce = postfix.wait_for(1, 40)[0].decode()
        self.assertRegex(bounce, r"(?m)^X-Original-To: alice@postfix\.test|for <alice@postfix\.test>")
        self.assertIn("gone@postfix.test", bounce)
        self.assertIn("Return-Path: <>", bounce)
        self.assertEqual(len(machine.mailbox("grace")), 1)
        self.assertEqual(machine.mailbox("ada"), [])

    def test_the_sender_gets_a_report_for_each_failed_recipient(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        exim = self.watch(peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test"))
        machine = self.boot()
        nobody = ["nobody@postfix.test", "nobody@exim.test", "x@nowhere.test", "x@unknown.exim.test"]
        self.submit(machine, [*nobody, "bob@postfix.test", "eve@exim.test"], self.message(1))
        expected = zip(nobody, ("5.7.1", "5.1.0", "5.1.10", "5.1.2"), strict=True)
        self.assertEqual(self.reports(machine, 1), sorted((who, "failed", status) for who, status in expected))
        for peer in (postfix, exim):
            self.assertWhole(peer.wait_for(1, 20)[0], self.message(1))

    def test_success_reports_come_from_the_last_host_that_can(self):
        postfix = self.watch(peers.Postfix(self.folder, POSTFIX, "mx.postfix.test", "postfix.test"))
        exim = self.watch(peers.Exim(self.folder, EXIM, "mx.exim.test", "exim.test"))
        machine = self.boot()
        # The message is sent by Python's unmodified SMTP client.
        with smtplib.SMTP(machine.host, SUBMISSION) as session:
            session.login(ADA, PASSWORD)
            self.assertTrue(session.has_extn("dsn"))
            everyone, options = ["bob@postfix.test", "eve@exim.test", GRACE], (["RET=HDRS", "ENVID=QQ+2B1"], ["NOTIFY=SUCCESS,FAILURE"])
            self.assertEqual(session.sendmail(ADA, everyone, self.message(1), *options), {})
        found = until(lambda: len(there := machine.mailbox("ada")) >= 3 and there, 20, "three reports")
        told = {}
        for received in found:
            message = email.message_from_bytes(received.raw, policy=email.policy.default)
            _, fields, header = message.iter_parts()
            of_all, of_one = fields.get_payload()
            self.assertEqual((message["Return-Path"], of_all["Original-Envelope-Id"]), ("<>", "QQ+1"))
            self.assertEqual(header.get_content_type(), "text/rfc822-headers")
            who = of_one["Final-Recipient"].partition(";")[2].strip()
            told[who] = (of_all["Reporting-MTA"].split()[-1], of_one["Action"], of_one["Status"][0])
        ours = f"mail.{DOMAIN}"
        self.assertEqual(told, {
            "bob@postfix.test": ("mx.postfix.test", "delivered", "2"),
            "eve@exim.test": (ours, "relayed", "2"),
            GRACE: (ours, "delivered", "2"),
        })
        self.assertEqual([len(there) for there in (postfix.messages(), exim.messages(), machine.mailbox("grace"))], [1, 1, 1])

    def test_a_deferred_message_leaves_once_after_a_power_cut(self):
        refusing = self.watch(peers.Sink(self.folder, SINK, "-r", "rcpt"))
        data = self.data()
        machine = self.boot(data)
        self.submit(machine, ["bob@sink.test"], self.message(1))
        until(lambda: refusing.heard("RCPT"), 30, "a first attempt")
        machine.kill()
        refusing.kill()
        sink = self.watch(peers.Sink(self.folder, SINK))
        machine = self.boot(data)
        self.assertWhole(until(sink.messages, 30, "the message")[0], self.message(1) + b"\r\n")
        self.assertEqual(machine.stop(), 0)
        self.boot(data)
        self.assertEqual((len(sink.messages()), machine.mailbox("ada")), (1, []))

    def test_hosts_with_few_extensions_get_mail(self):
        sinks = [self.watch(peers.Sink(self.folder, address, *how))
                 for address, how in zip(PLAIN.values(), (["-e"], ["-p"], ["-8"], ["-E"], ["-a"]), strict=False)]
        machine = self.boot()
        for domain, _ in zip(PLAIN, sinks, strict=False):
            self.submit(machine, [f"bob@{domain}"], self.message(1))
            # BODY=8BITMIME for a message without 8-bit bytes excludes no host.
            self.submit(machine, [f"bob@{domain}"], self.message(1), " BODY=8BITMIME")
        for sink in sinks:
            found = until(lambda sink=sink: len(there := sink.messages()) >= 2 and there, 30, f"two messages at {sink.folder.name}")
            for received in found:
                self.assertWhole(received, self.message(1) + b"\r\n")

    def test_hosts_that_disconnect_get_mail_once_they_recover(self):
        ailments = [[how, when] for how in ("-q", "-Q") for when in ("EHLO", "MAIL", "RCPT", "DATA")] + [["-r", "MAIL"], ["-r", "."]]
        ill = [self.watch(peers.Sink(self.folder, address, *how)) for address, how in zip(PLAIN.values(), ailments, strict=True)]
        data = self.data()
        machine = self.boot(data)
        for domain in PLAIN:
            self.submit(machine, [f"bob@{domain}"], self.message(1))
        for sink, (_, when) in zip(ill, ailments, strict=True):
            until(lambda sink=sink: sink.heard("disconnect"), 30, f"{when} at {sink.folder.name}")
            sink.kill()
        self.assertEqual(machine.stop(), 0)
        well = [self.watch(peers.Sink(self.folder, address)) for address in PLAIN.values()]
        machine = self.boot(data)
        for sink in well:
            self.assertWhole(until(sink.messages, 30, f"a message at {sink.folder.name}")[0], self.message(1) + b"\r\n")
        self.assertEqual([len(sink.messages()) for sink in well], [1] * len(well))
        self.assertEqual(machine.mailbox("ada"), [])

    def test_a_slow_host_does_not_delay_others(self):
        slow = self.watch(peers.Sink(self.folder, SLOW, "-p", "-W", "DATA:2"))
        fast = self.watch(peers.Sink(self.folder, SINK))
        machine = self.boot()
        count = 20
        for number in range(count):
            self.submit(machine, ["bob@slow.test"], self.message(number))
            self.submit(machine, ["eve@sink.test"], self.message(number))
        until(lambda: len(fast.messages()) == count, 30, "messages at the fast host")
        self.assertLess(len(slow.messages()), count)
        until(lambda: len(slow.messages()) == count, 60, "messages at the slow host")

    def test_external_clients_cannot_relay(self):
        sink = self.watch(peers.Sink(self.folder, SINK))
        # By default a client with many unknown recipients is disconnected. This must not be the reason for the refusals.
        patient = f"{self.configuration}\n[abuse]\nunknown_recipients_an_hour = 10_000\ngreeting_delay = \"0s\"\n"
        machine = self.boot(self.data(configuration=patient))
        unknown = [
            "bob@sink.test", "bob@SINK.TEST", "bob@sink.test.", f"bob@[{SINK}]", f"bob@[IPv6:::ffff:{SINK}]",
            # Source routes (RFC 5321 appendix C), which the server ignores.
            f"@{DOMAIN}:bob@sink.test", f"@mail.{DOMAIN},@{DOMAIN}:bob@sink.test", f"@[{machine.host}]:bob@sink.test",
            # The percent hack, bang paths, and two at signs, with all names of the machine.
            *(f"{local}@{host}" for host in (DOMAIN, f"mail.{DOMAIN}", f"[{machine.host}]", "localhost")
              for local in ("bob%sink.test", '"bob%sink.test"', "sink.test!bob", '"sink.test!bob"', '"bob@sink.test"', "bob@sink.test")),
            f"bob@{DOMAIN}@sink.test", f"bob%{DOMAIN}@sink.test", f"{DOMAIN}!bob@sink.test", f"ada%{DOMAIN}@sink.test", "bob%sink.test", "sink.test!bob", '"bob@sink.test"',
            "bob", "bob@", "@sink.test", f"ada@{DOMAIN} bob@sink.test", f"ada@{DOMAIN},bob@sink.test", f"ada@{DOMAIN}\0@sink.test", f"<ada@{DOMAIN}>,<bob@sink.test>",
        ]
        senders = ["", "bob@sink.test", ADA, f"postmaster@{DOMAIN}", f"ada@mail.{DOMAIN}", f"ada@[{machine.host}]", "ada@localhost", "root@[127.0.0.1]"]
        login = base64.b64encode(f"\0{ADA}\0wrong".encode()).decode()
        taken = []
        for port, source in ((25, SLOW), (25, LINUX), (SUBMISSION, LINUX)):
            for sender, first in itertools.product(senders, range(0, len(unknown), 5)):
                # Each session has a few recipients, since a client with many refusals is disconnected.
                with barepost.Smtp(port, host=machine.host, source=(source, 0)) as session:
                    session.ehlo(f"mail.{DOMAIN}")
                    session.command(f"AUTH PLAIN {login}")
                    for recipient in unknown[first:first + 5]:
                        session.command("RSET")
                        session.command(f"MAIL FROM:<{sender}>")
                        if session.command(f"RCPT TO:<{recipient}>").is_positive:
                            taken.append((port, source, sender, recipient))
                    is_taken = session.command(f"RCPT TO:<{ADA}>").is_positive
                    self.assertEqual(is_taken, port == 25, "else all of this shows nothing")
        self.assertEqual(taken, [])
        self.assertEqual(sink.heard("connect"), 0)


if __name__ == "__main__":
    peers.enter(NAME_SERVER)
    peers.add_hosts(*(f"{address}/32" for address in (NAME_SERVER, RESOLVER, SIGNING, POSTFIX, EXIM, SINK, CLOSED, SLOW, SENDMAIL, OPENSMTPD, *PLAIN.values())))
    barepost.main()
