"""The promise: no message is forged or lost on its way out, and no client exhausts memory.

The tests run the image in QEMU, with 256 MiB, with one core and with four.

- External clients send messages in the name of a domain that wants such mail refused (DMARC,
  p=reject), with headers that are hard to parse. Meanwhile other clients hold many messages that
  they never finish. No such message gets into an Inbox.
- An account submits messages in the names of others. All that arrive name only this account.
- Messages of sizes around the edges of the store's chunks are relayed, and arrive whole.
- Clients of three thousand networks open HTTP/2 connections that hold as much memory as they get.
  Other clients are still served, and the machine does not restart.

It takes two minutes; --quick, with one core only, takes one.
"""

import base64
import email
import email.utils
import itertools
import smtplib
import string

import barepost
import hoarding
import peers
import external_clients
from mail import DOMAIN, PASSWORD
from processes import allow_files, until
from external_clients import CROWD, CROWD_ELSEWHERE, HONEST, MACHINE, MX_HOST, NAME_SERVER, NETWORKS_IPV6, PATIENCE

ADA, GRACE, BOSS = f"ada@{DOMAIN}", f"grace@{DOMAIN}", "ceo@bank.test"
ZONES = {
    # DMARC also queries this name.
    "test": [],
    "bank.test": ['_dmarc IN TXT "v=DMARC1; p=reject"'],
    "stranger.test": [f'@ IN TXT "v=spf1 ip4:{HONEST} ip4:{CROWD.format(0)}/24 -all"'],
    "elsewhere.test": [f"@ IN MX 10 mx\nmx IN A {MX_HOST}"],
    DOMAIN: [f"@ IN MX 10 mail\nmail IN A {MACHINE}"],
}
OUTSIDER = "eve@stranger.test"


def padding(octets):
    """Header fields with this many octets."""
    return "".join(f"X-Padding-{number}: {'y' * 980}\r\n" for number in range(-(-octets // 1000)))


def many_fields(count):
    """The shortest possible header fields, each with a different name."""
    names = itertools.product(string.ascii_lowercase + string.digits, repeat=3)
    return "".join(f"{''.join(name)}:\r\n" for name in itertools.islice(names, count))


# The start of the header that an external client sends in the name of bank.test, and the code of
# the reply. None: the message may be accepted, but must not get into the Inbox.
FORGED = {
    "plain": (f"From: Boss <{BOSS}>\r\n", 550),
    "short fields": (f"From: Boss <{BOSS}>\r\n{many_fields(20_500)}", 550),
    "subdomain": ("From: ceo@office.bank.test\r\n", 550),
    "group": (f"From: Board: {BOSS};\r\n", None),
    "capitals and a dot": ("From: ceo@BANK.test.\r\n", None),
    "long header": (f"From: Boss <{BOSS}>\r\n{padding(160_000)}", None),
    "behind a long header": (f"{padding(160_000)}From: Boss <{BOSS}>\r\n", None),
    "two fields": (f"From: {OUTSIDER}\r\nFrom: {BOSS}\r\n", None),
    "two addresses": (f"From: {OUTSIDER}, {BOSS}\r\n", None),
    "two angles": (f"From: <{OUTSIDER}> <{BOSS}>\r\n", None),
    "open quotation": (f'From: "Boss\\" <{BOSS}>\r\n', None),
    "literal": ("From: Boss <ceo@[bank.test]>\r\n", None),
    "at in words": ("From: ceo at bank.test\r\n", None),
    "empty label": ("From: ceo@bank..test\r\n", None),
    "encoded word": ("From: <=?utf-8?Q?ceo=40bank.test?=>\r\n", None),
    "no author": ("", None),
}

# The start of the header that an account sends, and the code of the reply.
AUTHORS = {
    "own": (f"From: {ADA}\r\n", 250),
    "none": ("", 250),
    "own with a name": (f'From: "{BOSS}" <{ADA}>\r\n', 250),
    "replies to another": (f"From: {ADA}\r\nReply-To: {BOSS}\r\n", 250),
    "wide at in the name": (f"From: ceo\uff20bank.test <{ADA}>\r\n", 250),
    # The header ends before the second line. The server then adds an author.
    "behind no field": (f"Subject: behind no field\r\nthis is no field\r\nFrom: {BOSS}\r\n", 250),
    "colleague": (f"From: {GRACE}\r\n", 550),
    "continued line first": (f" From: {BOSS}\r\n", 550),
    "stranger": (f"From: {BOSS}\r\n", 550),
    "two fields": (f"From: {ADA}\r\nFrom: {BOSS}\r\n", 550),
    "two addresses": (f"From: {ADA}, {BOSS}\r\n", 550),
    "semicolon": (f"From: {ADA}; {BOSS}\r\n", 550),
    "space before colon": (f"From : {BOSS}\r\n", 550),
    "tab before colon": (f"From\t: {BOSS}\r\n", 550),
    "open angle": (f"From: Boss <{BOSS}\r\n", 550),
    "two angles": (f"From: <{ADA}> <{BOSS}>\r\n", 550),
    "nested angles": (f"From: <<{BOSS}>>\r\n", 550),
    "comment": (f"From: {BOSS} ({ADA})\r\n", 550),
    "route": (f"From: <@a.test:{BOSS}>\r\n", 550),
    "encoded word": (f"From: =?utf-8?B?{base64.b64encode(BOSS.encode()).decode()}?=\r\n", 550),
    "encoded word in angles": ("From: <=?utf-8?Q?ceo=40bank.test?=>\r\n", 550),
    "no domain": ("From: ceo\r\n", 550),
    "group": (f"From: Board: {BOSS};\r\n", 550),
    "empty group": (f"From: {BOSS}:;\r\n", 550),
    "folded": (f"From:\r\n {BOSS}\r\n", 550),
    "NUL": (f"From: {BOSS}\0<{ADA}>\r\n", 554),
    "name of many octets": (f"From: {'a' * 900}\r\n {'b' * 900} <{BOSS}>\r\n", 550),
    "non-ASCII domain": ("From: ceo@b\u00e4nk.test\r\n", 550),
    "spaces": ("From: ceo @ bank.test\r\n", 550),
    "dot at the end": (f"From: {BOSS}.\r\n", 550),
    "open quotation": (f'From: "x\\" <{BOSS}>\r\n', 550),
    "quotation in two": (f'From: "a\\" <{ADA}>, \\" <{BOSS}>\r\n', 550),
    "behind 32 KiB": (f"{padding(32_768)}From: {BOSS}\r\n", 550),
    "behind 70 KiB": (f"{padding(71_680)}From: {BOSS}\r\n", 550),
    "behind 300 KiB": (f"{padding(307_200)}From: {BOSS}\r\n", 550),
    "own and behind 300 KiB another": (f"From: {ADA}\r\n{padding(307_200)}From: {BOSS}\r\n", 550),
}

# Unfinished messages per core: pairs of the number that one address holds, and the octets of each.
# Chance selects the core of each. Each of four cores has 102 records of transactions, so 64
# messages leave some records free on all cores.
HELD = ((24, 118_000), (20, 6_000), (12, 700), (8, 60))
# The octets of an outbox entry in one chunk of the store.
CHUNK = 32_256
# Sizes of messages. Their outbox entries are some hundred octets longer, and end before and after
# the end of a chunk.
SIZES = [number * CHUNK - before for number in (1, 2, 20, 35) for before in range(-200, 2_600, 80)]
# The number of HTTP/2 connections that hold memory.
HOARDERS = 3_000
FILES = 200


def message(header, subject, text="Hello.\r\n"):
    return f"{header}Subject: {subject}\r\n\r\n{text}".encode()


def message_of(size):
    """A message of exactly `size` octets."""
    date = "Mon, 23 Nov 2026 12:00:00 +0000"
    head = f"From: {ADA}\r\nDate: {date}\r\nMessage-ID: <{size}@{DOMAIN}>\r\nSubject: {size}\r\n\r\n"
    lines, rest = divmod(size - len(head), 72)
    return (head + ("y" * 70 + "\r\n") * (lines - 1) + "y" * (70 + rest) + "\r\n").encode()


def subjects(found):
    """The subjects of the messages that POP3 returned."""
    return [email.message_from_bytes(one.raw)["Subject"] for one in found]


class Attacks:
    """The attacks on a machine of `cores` cores."""

    cores = None

    def setUp(self):
        if barepost.options.quick and self.cores > 1:
            self.skipTest("the short form has machines of one core")
        super().setUp()
        self.watch(peers.Nsd(self.folder, NAME_SERVER, ZONES))
        self.machine = self.start_at_tap(self.cores)

    def bring(self, source, header, subject):
        """Sends a message as an external client. Returns the reply."""
        with smtplib.SMTP(MACHINE, 25, "host.stranger.test", PATIENCE, (source, 0)) as session:
            session.ehlo()
            code, words = session.mail(OUTSIDER)
            if code == 250:
                code, words = session.rcpt(GRACE)
            if code == 250:
                code, words = session.data(message(header, subject))
            return code, words.decode()

    def hold(self, source, octets):
        """Begins a message, and sends this many octets of its header."""
        session = barepost.Smtp(barepost.SMTP, host=MACHINE, source=(source, 0))
        self.addCleanup(session.close)
        session.ehlo("slow.stranger.test")
        self.assertIsNone(session.envelope(OUTSIDER, GRACE))
        self.assertEqual(session.command("DATA").code, 354)
        session.send(padding(octets).encode()[:octets])

    def test_a_domain_that_wants_no_forged_mail_is_not_forged(self):
        self.assertEqual(self.bring(HONEST, f"From: {OUTSIDER}\r\n", "honest")[0], 250)
        for what, (header, expected) in FORGED.items():
            with self.subTest(what=what):
                code, words = self.bring(HONEST, header, what)
                if expected:
                    self.assertEqual(code, expected, words)
        self.assertEqual(subjects(self.machine.mailbox("grace")), ["honest"])
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())

    def test_messages_that_others_hold_let_no_forged_one_in(self):
        both = (CROWD, CROWD_ELSEWHERE)
        addresses = (addresses.format(number) for number in range(1, 200) for addresses in both)
        for count, octets in HELD * self.cores:
            source = next(addresses)
            for _ in range(count):
                self.hold(source, octets)
        # So many connections that each core gets some.
        numbers = range(4 * self.cores)
        for number in numbers:
            code, words = self.bring(HONEST, f"From: Boss <{BOSS}>\r\n{padding(900)}", f"forged {number}")
            self.assertIn(code, (550, 451), words)
            code, words = self.bring(HONEST, f"From: {OUTSIDER}\r\n{padding(900)}", f"honest {number}")
            self.assertEqual(code, 250, words)
        self.assertEqual(subjects(self.machine.mailbox("grace")), [f"honest {number}" for number in numbers])
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())

    def submissions(self):
        """For each submission port, a function that begins a session there."""
        context = external_clients.any_certificate()
        return {
            587: lambda: smtplib.SMTP(MACHINE, 587, timeout=PATIENCE),
            465: lambda: smtplib.SMTP_SSL(MACHINE, 465, timeout=PATIENCE, context=context),
        }

    def test_an_account_sends_in_no_other_name(self):
        for port, begin in self.submissions().items():
            for what, (header, expected) in AUTHORS.items():
                with self.subTest(port=port, what=what), begin() as session:
                    session.login(ADA, PASSWORD)
                    session.mail(ADA)
                    session.rcpt(GRACE)
                    code, words = session.data(message(header, what))
                    self.assertEqual(code, expected, words)
        found = self.machine.mailbox("grace")
        taken = [what for what, (_, code) in AUTHORS.items() if code == 250]
        self.assertEqual(subjects(found), 2 * taken)
        for one in found:
            authors = email.message_from_bytes(one.raw).get_all("From")
            self.assertEqual(len(authors), 1)
            self.assertEqual([address for _, address in email.utils.getaddresses(authors)], [ADA])
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())

    def test_messages_of_sizes_around_chunks_leave_whole(self):
        sink = self.watch(peers.Sink(self.folder, MX_HOST))
        sent = {str(size): message_of(size) for size in SIZES}
        with self.submissions()[465]() as session:
            session.login(ADA, PASSWORD)
            for size, one in sent.items():
                self.assertEqual(len(one), int(size))
                self.assertEqual(session.sendmail(ADA, ["eve@elsewhere.test"], one), {})
        until(lambda: len(sink.messages()) >= len(SIZES), 60, f"{len(SIZES)} messages at the other server")
        found = {email.message_from_bytes(one)["Subject"]: one for one in sink.messages()}
        self.assertEqual(sorted(found), sorted(sent))
        for size, one in sent.items():
            # The sink adds an empty line.
            self.assertTrue(found[size].endswith(one + b"\r\n"), f"{size} octets came otherwise")
        self.assertEqual(self.machine.mailbox("ada"), [])
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())

    def test_http_2_connections_leave_memory_to_others(self):
        sources = [NETWORKS_IPV6.format(0x100 + number) for number in range(HOARDERS)]
        with hoarding.Hoard(hoarding.uploads(), sources) as hoard:
            barepost.say(f"{self.cores} cores: {hoard}")
            self.assertServed()
        self.assertServed()
        self.assertNeverRestarted(self.machine)
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())


class OnOneCore(Attacks, external_clients.ExternalClientsTest):
    cores = 1


class OnFourCores(Attacks, external_clients.ExternalClientsTest):
    cores = 4


if __name__ == "__main__":
    peers.enter(NAME_SERVER)
    allow_files(HOARDERS + FILES)
    external_clients.settle()
    barepost.main()
