"""Common parts of the client tests: one machine with empty mailboxes, and mail programs with their own home directory."""

import os
import subprocess

import barepost
from mail import DOMAIN, empty
from processes import die_with_us, program

ADA, GRACE, BARBARA = f"ada@{DOMAIN}", f"grace@{DOMAIN}", f"barbara@{DOMAIN}"
SENDER = "sender@client.test"
PLAIN = b"From: sender@client.test\r\nSubject: plain\r\n\r\nOne line.\r\n"


def numbered_lines(size):
    """Text of exactly `size` bytes (at least 2) in which all lines differ and some start with a dot."""
    lines, length, number = [], 0, 0
    while length < size:
        line = b"%s%x the quick brown fox jumps over the lazy dog\r\n" % ((b"", b".", b"..", b"")[number % 4], number)
        lines.append(line)
        length += len(line)
        number += 1
    text = b"".join(lines)[:size - 2]
    return text[:-1] + b"x\r\n" if text.endswith(b"\r") else text + b"\r\n"


class Shared(barepost.SharedMachineTest):
    """Tests on one machine. Every test starts and ends with empty mailboxes."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.empty_all)

    def empty_all(self):
        for user in barepost.USERS:
            empty(self.machine, user)

    def program(self, *arguments, text=b"", statuses=(0,)):
        """Runs a mail program with its own home directory. Returns its output."""
        environment = {**os.environ, "HOME": str(self.folder), "FETCHMAILHOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [program(str(arguments[0])), *map(str, arguments[1:])], input=text, cwd=self.folder, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, preexec_fn=die_with_us,
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
