"""The promise: under load nothing is refused, everything acknowledged is stored, and nothing is stored twice.

Postfix's own load generator, `smtp-source`, sends 10,000 messages of 1 KB over 1, 10 and 100 sessions at once, with a
connection for each message and with connections that are used again, and 100 messages of 2 MB. Each message has a
Message-Id of its own. After each run all of it is fetched by POP3, looked at, and deleted.

Takes about 5 minutes under TCG; --quick, with a tenth of the messages, under 1.
"""

import re
import subprocess
import time

import barepost
from barepost import DOMAIN, options, program

ADA = f"ada@{DOMAIN}"
MESSAGE_ID = re.compile(rb"^Message-Id: <([^>]+)>\r\n", re.M)


class Load(barepost.SharedMachineTest):
    def loaded(self, messages, payload, sessions, reuse=False):
        """Sends messages with `payload` bytes below the header, and checks what was stored."""
        arguments = [
            program("smtp-source"), "-m", messages, "-l", payload, "-s", sessions, "-f", "sender@client.test", "-t", ADA,
            "-M", "client.test", *(["-d"] if reuse else []), f"inet:127.0.0.1:{self.machine.ports + barepost.SMTP}",
        ]
        began = time.monotonic()
        done = subprocess.run(
            [str(argument) for argument in arguments], capture_output=True, text=True, timeout=1200,
            preexec_fn=barepost.die_with_us,
        )
        sent = time.monotonic() - began
        # It ends with an error at the first refusal.
        self.assertEqual((done.returncode, done.stderr), (0, ""))

        began = time.monotonic()
        with self.machine.pop3("ada") as session:
            sizes, uidls = session.sizes(), session.uidls()
            self.assertEqual(len(sizes), messages)
            self.assertEqual(len(set(uidls.values())), messages, "a unique identifier is there twice")
            seen = set()
            for number, raw in session.retrieve(sizes):
                self.assertEqual(len(raw), sizes[number])
                seen.add(self.marker(barepost.without_trace(raw), payload))
            self.assertEqual(len(seen), messages, "a message is there twice, and another is missing")
            fetched = time.monotonic() - began
            session.delete(sizes)
            session.quit()
        with self.machine.pop3("ada") as session:
            self.assertEqual(session.stat(), (0, 0))
        barepost.say(f"{messages} messages of {payload} bytes, {sessions} sessions: "
                     f"{messages / sent:.0f} a second sent, {messages / fetched:.0f} fetched")

    def marker(self, content, payload):
        """The Message-Id of a message that is otherwise as smtp-source makes them."""
        head, body = content.split(b"\r\n\r\n", 1)
        if len(body) - payload not in (0, 2) or body.translate(None, b"0123456789X\r\n"):
            self.fail(f"not as it was sent: {len(body)} bytes instead of {payload}: {body[:100]!r}")
        return MESSAGE_ID.search(head + b"\r\n")[1]

    def small(self, sessions, **how):
        self.loaded(1000 if options.quick else 10_000, 1024, sessions, **how)

    def test_1_kb_in_one_session_after_another(self):
        self.small(1)

    def test_1_kb_in_one_session_that_is_used_again(self):
        self.small(1, reuse=True)

    def test_1_kb_in_10_sessions(self):
        self.small(10)

    def test_1_kb_in_100_sessions(self):
        self.small(100)

    def test_1_kb_in_100_sessions_that_are_used_again(self):
        self.small(100, reuse=True)

    def test_2_mb(self):
        self.loaded(10 if options.quick else 100, 2_000_000, 4)


if __name__ == "__main__":
    barepost.main()
