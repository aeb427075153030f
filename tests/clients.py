"""The promise: common mail programs send mail to this machine, and fetch it unchanged.

swaks, msmtp and smtplib send. mpop, fetchmail and poplib fetch. The messages are those of CPython's tests of its email
package, and messages of critical sizes up to 50 MB. They come back exact below the two trace headers that the server
adds. A raw client does what no honest program does: it tries to smuggle a message into another one, sends data beyond
limits, and aborts connections. There is a test for each rule of RFC 5321 and RFC 1939 that a user would notice.

It takes 2 to 3 minutes under TCG; --quick, with sizes up to 1 MB and one of 50 MB, takes 1.5 to 2.5.
"""

import email.message
import email.policy
import os
import poplib
import re
import smtplib
import subprocess

import barepost
from barepost import options
from clients_shared import ADA, GRACE, PLAIN, SENDER, Shared
from mail import DOMAIN, PASSWORD, MessageMaker, without_trace
from processes import die_with_us, program

# Parts of this test in other files. An import makes unittest find and run their test cases.
from clients_exact import Exactness
from clients_pop3 import Guessing, Pop3
from clients_smtp import Smtp


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

    def test_swaks_delivers_as_devices_do(self):
        for helo, sender, recipient in (
            ("my pc (M\N{LATIN SMALL LETTER U WITH DIAERESIS}ller)", "scanner", f"{ADA}."),
            ("[192.0.2.7]", f'"Scanner" <{SENDER}>', f"'{ADA}'"),
        ):
            self.program(
                "swaks", "--server", "127.0.0.1", "--port", self.smtp_port, "--helo", helo, "--from", sender, "--to", recipient,
                "--header", f"From: {SENDER}", "--header", "Subject: a scan",
            )
        first, second = self.machine.mailbox("ada")
        self.assertTrue(first.raw.startswith(f"Return-Path: <scanner@{DOMAIN}>\r\nReceived: from my?pc??M??ller? (".encode()))
        self.assertTrue(second.raw.startswith(f"Return-Path: <{SENDER}>\r\n".encode()))

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

    def test_smtplib_learns_which_recipients_were_refused(self):
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
        # An mbox file has a line `From …` before each message, and quotes such lines inside messages.
        texts = re.split(rb"^From .*\n", box.read_bytes(), flags=re.M)[1:]
        self.assertEqual(len(texts), len(self.MESSAGES))
        for text, message in zip(texts, self.MESSAGES):
            content = without_trace(text.replace(b"\n", b"\r\n"))
            self.assertSame(content.removesuffix(b"\r\n"), message)
        self.assertEqual(self.machine.mailbox("ada"), [])

    def test_mpop_fetches_what_it_keeps_only_once(self):
        for folder in ("new", "cur", "tmp"):
            (self.folder / "maildir" / folder).mkdir(parents=True)
        arguments = "--keep=on", "--only-new=on", f"--delivery=maildir,{self.folder}/maildir"
        self.mpop(*arguments)
        self.mpop(*arguments)
        files = list((self.folder / "maildir" / "new").iterdir())
        found = sorted(without_trace(file.read_bytes().replace(b"\n", b"\r\n")) for file in files)
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
            self.assertSame(without_trace(raw), message)
            self.assertEqual(client.uidl(number).split()[2], uidls[number - 1])
            head = b"".join(line + b"\r\n" for line in client.top(number, 1)[1])
            self.assertTrue(raw.startswith(head))
            self.assertEqual(head.partition(b"\r\n\r\n")[2].count(b"\r\n"), 1)
        client.dele(2)
        client.rset()
        client.dele(1)
        client.quit()
        self.assertEqual([found.content for found in self.machine.mailbox("ada")], self.MESSAGES[1:])


class Restarting(barepost.Test):
    """The state that POP3 reports survives a restart, clean or not."""

    def test_identifiers_and_deletions_outlive_restarts(self):
        maker, data = MessageMaker(options.seed), self.data()
        machine = self.boot(data)
        with machine.smtp() as session:
            session.ehlo()
            for number in range(1, 21):
                self.assertEqual(session.deliver(SENDER, [ADA, GRACE], maker.make(number, 500 * number)).code, 250)
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
                found = {one.uidl: maker.recognize(one.content) for one in machine.mailbox(user)}
                self.assertEqual(found, expected[user])

    def test_mail_left_on_the_server_is_fetched_once(self):
        maker, data = MessageMaker(options.seed), self.data()
        machine = self.boot(data)
        for number in range(1, 4):
            self.assertEqual(machine.deliver(SENDER, ADA, maker.make(number, 2000)).code, 250)
        box = self.folder / "box"
        command = [
            program("mpop"), "--host=127.0.0.1", f"--port={machine.ports + barepost.POP3}", "--tls=off", "--auth=user",
            f"--user={ADA}", f"--passwordeval=echo {PASSWORD}", f"--uidls-file={self.folder}/uidls", "--keep=on",
            "--only-new=on", f"--delivery=mbox,{box}",
        ]
        sizes = []
        for _ in range(2):
            subprocess.run(command, check=True, timeout=60, capture_output=True, env={**os.environ, "HOME": str(self.folder)},
                           preexec_fn=die_with_us)
            sizes.append(box.stat().st_size)
            self.assertEqual(machine.stop(), 0)
            machine = self.boot(data, ports=machine.ports)
        self.assertEqual(sizes[0], sizes[1])
        self.assertGreater(sizes[0], 3 * 2000)


if __name__ == "__main__":
    barepost.main()
