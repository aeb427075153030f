"""Common parts of the relay tests: the domains and hosts, and a machine whose users send to them."""

import base64
import email
import email.policy

import barepost
import peers
from hosted import CONFIGURATION, LINUX, HostedTest
from mail import DOMAIN, PASSWORD, MessageMaker
from processes import until

NAME_SERVER, RESOLVER, SIGNING = (f"198.51.100.{number}" for number in range(1, 4))
POSTFIX, EXIM, SINK, CLOSED, SLOW, SENDMAIL, OPENSMTPD = (f"198.51.100.{number}" for number in range(11, 18))
# Domains without MX, each at a different host: {name: address}.
PLAIN = {f"host{number}.test": f"198.51.100.{100 + number}" for number in range(10)}
ADA, GRACE = f"ada@{DOMAIN}", f"grace@{DOMAIN}"
SUBMISSION = 587
# The zones by which hosts find each other.
ZONES = {
    "postfix.test": [f"@ IN MX 10 mx\n@ IN TXT \"v=spf1 ip4:{POSTFIX} -all\"\nmx IN A {POSTFIX}"],
    "exim.test": [f"@ IN MX 5 closed\n@ IN MX 10 mx\nclosed IN A {CLOSED}\nmx IN A {EXIM}"],
    "sendmail.test": [f"@ IN MX 10 mx\nmx IN A {SENDMAIL}"],
    "opensmtpd.test": [f"@ IN MX 10 mx\nmx IN A {OPENSMTPD}"],
    # The response has so many hosts that it needs TCP.
    "sink.test": [f"@ IN MX 1 mx\nmx IN A {SINK}", *(f"@ IN MX 9 one-of-the-hosts-that-are-not-there-{number}" for number in range(99))],
    "slow.test": [f"@ IN A {SLOW}"],
    **{name: [f"@ IN A {address}"] for name, address in PLAIN.items()},
    "nowhere.test": ["@ IN MX 0 ."],
    "test": [],
    DOMAIN: ["@ IN MX 10 mail\nmail IN A 10.9.0.2"],
}


class Relay(HostedTest):
    configuration = CONFIGURATION.replace("[network]\n", f'[network]\ngateway = "{LINUX}"\ndns = ["{NAME_SERVER}"]\n')
    # The section is last, so that tests can append settings to it. The hosts have addresses that are reserved for
    # documentation.
    configuration += '\n[relay]\nprivate_networks = ["198.51.100.0/24"]\n'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.maker = MessageMaker(barepost.options.seed)

    def setUp(self):
        super().setUp()
        self.watch(peers.Nsd(self.folder, NAME_SERVER, ZONES))

    def message(self, number, size=2000):
        """A message with all required fields."""
        head = f"Date: Mon, 23 Nov 2026 12:00:00 +0000\r\nMessage-ID: <{number}.{barepost.options.seed}@{DOMAIN}>\r\n".encode()
        return head + self.maker.make(number, size).replace(b"sender@client.test", ADA.encode())

    def submit(self, machine, recipients, message, parameters="", sender=ADA):
        """Submits a message as Ada's mail program does, or that of another sender."""
        with barepost.Smtp(SUBMISSION, host=machine.host) as session:
            session.ehlo()
            login = base64.b64encode(f"\0{sender}\0{PASSWORD}".encode()).decode()
            self.assertEqual(session.command(f"AUTH PLAIN {login}").code, 235)
            reply = session.deliver(sender, recipients, message, parameters)
        self.assertEqual(reply.code, 250, reply)

    def assertWhole(self, found, sent):
        """Asserts that the received message is the sent one, below the fields that hosts have added."""
        self.assertIn(sent[:100], found)
        self.assertSame(found[found.index(sent[:100]):], sent)

    def reports(self, machine, count, seconds=20):
        """The reports in Ada's inbox: (recipient, action, status), by recipient."""
        found = until(lambda: len(there := machine.mailbox("ada")) >= count and there, seconds, f"{count} reports")
        heard = []
        for received in found:
            message = email.message_from_bytes(received.raw, policy=email.policy.default)
            self.assertEqual(message.get_content_type(), "multipart/report")
            self.assertEqual(message["Return-Path"], "<>")
            words, fields, _ = message.iter_parts()
            of_all, *of_each = fields.get_payload()
            self.assertEqual(of_all["Reporting-MTA"], f"dns; mail.{DOMAIN}")
            for one in of_each:
                recipient = one["Final-Recipient"].partition(";")[2].strip()
                self.assertIn(recipient, words.get_content())
                heard.append((recipient, one["Action"], one["Status"]))
        return sorted(heard)
