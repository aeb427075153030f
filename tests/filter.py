"""The promise: the verdict of an unmodified rspamd decides about messages of external clients.

They are accepted, filed as junk or refused. If rspamd does not answer, the configuration decides.

The machine is a Linux process at a tap interface. Its gateway leads to an external client, a name server, and rspamd.
rspamd has its usual rules, and rules of the test.

It takes seconds. --quick runs the same tests.
"""

import smtplib
import threading

import barepost
import peers
from hosted import CONFIGURATION, LINUX, HostedTest
from mail import DOMAIN

FILTER, STRANGER, NAME_SERVER = (f"198.51.100.{number}" for number in range(1, 4))
PORT = 11333
ADA, GRACE = f"ada@{DOMAIN}", f"grace@{DOMAIN}"
SENDER = "eve@far.test"
GTUBE = "XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X"
ZONES = {"far.test": [f"@ IN TXT \"v=spf1 ip4:{STRANGER} -all\""], "filter.test": [f"@ IN A {FILTER}"]}


def message(subject, text="Hello."):
    return (f"From: {SENDER}\r\nTo: {ADA}\r\nSubject: {subject}\r\nDate: Mon, 23 Nov 2026 12:00:00 +0000\r\n"
            f"Message-ID: <{subject}@far.test>\r\n\r\n{text}\r\n")


class Filter(HostedTest):
    def configured(self, more="", host="filter.test"):
        network_lines = f'[network]\ngateway = "{LINUX}"\ndns = ["{NAME_SERVER}"]\n'
        return CONFIGURATION.replace("[network]\n", network_lines) + f'\n[filter]\nurl = "http://{host}:{PORT}"\n{more}'

    def setUp(self):
        super().setUp()
        self.watch(peers.Nsd(self.folder, NAME_SERVER, ZONES))

    def send(self, machine, message, recipients=(ADA,)):
        """Sends a message as an external client. Returns the code and the text of the reply."""
        with smtplib.SMTP(machine.host, 25, local_hostname="host.far.test", source_address=(STRANGER, 0), timeout=60) as session:
            session.ehlo()
            session.mail(SENDER)
            for recipient in recipients:
                self.assertEqual(session.rcpt(recipient)[0], 250)
            code, words = session.data(message)
            return code, words.decode()

    def test_rspamd_verdicts_refuse_mail_or_file_it_as_junk(self):
        rspamd = self.watch(peers.Rspamd(self.folder, FILTER, PORT))
        machine = self.boot(self.data(configuration=self.configured()))
        self.assertEqual(self.send(machine, message("plain"), (ADA, GRACE))[0], 250)
        self.assertEqual(self.send(machine, message("gtube", GTUBE)), (550, "5.7.1 Gtube pattern"))
        self.assertEqual(self.send(machine, message("suspicious"))[0], 250)
        self.assertEqual(self.send(machine, message("later")), (451, "4.7.1 Come again"))
        self.assertEqual(self.send(machine, message("large", "A line of some length.\r\n" * 20_000))[0], 250)
        # POP3 shows the inbox.
        found = [one.raw for one in machine.mailbox("ada")]
        self.assertEqual([b"Subject: plain" in found[0], b"Subject: large" in found[1], len(found)], [True, True, 2])
        self.assertEqual(len(machine.mailbox("grace")), 1)
        log = rspamd.log()
        # rspamd got the sender, the address of the client, and the recipients.
        self.assertRegex(log, rf"SAID\(0\.10\)\{{{STRANGER};host\.far\.test;{SENDER};{ADA};{GRACE};?\}}")
        self.assertRegex(log, r"loaded message; id: <large@far\.test>; .*size: 4[89]\d{4};")
        # A client of the local network is not checked.
        self.assertEqual(machine.deliver(SENDER, ADA, message("gtube", GTUBE).encode()).code, 250)

    def test_many_messages_are_checked_at_the_same_time(self):
        self.watch(peers.Rspamd(self.folder, FILTER, PORT))
        machine = self.boot(self.data(configuration=self.configured(host=FILTER)))
        codes = []

        def send(number):
            codes.extend(self.send(machine, message(f"{number}", GTUBE if number % 2 else "Hello."))[0] for _ in range(4))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(sorted(codes), [250] * 80 + [550] * 80)
        self.assertEqual(len(machine.mailbox("ada")), 80)

    def test_without_rspamd_the_configuration_decides(self):
        for policy, code in (("accept", 250), ("junk", 250), ("defer", 451)):
            rspamd = self.watch(peers.Rspamd(self.folder, FILTER, PORT))
            machine = self.boot(self.data(policy, self.configured(f'when_away = "{policy}"\n', FILTER)))
            self.assertEqual(self.send(machine, message("gtube", GTUBE))[0], 550)
            rspamd.kill()
            for _ in range(3):
                self.assertEqual(self.send(machine, message("gtube", GTUBE))[0], code)
            told = [line for line in machine.process.lines() if "filter: " in line]
            self.assertEqual(len(told), 1 if barepost.options.cores == 1 else len(told), told)
            self.assertIn(f"filter: {FILTER}:{PORT} does not answer", told[0])
            self.assertEqual(len(machine.mailbox("ada")), 3 if policy == "accept" else 0)
            self.assertEqual(machine.stop(), 0)


if __name__ == "__main__":
    peers.enter()
    peers.add_hosts(*(f"{address}/32" for address in (FILTER, STRANGER, NAME_SERVER)))
    barepost.main()
