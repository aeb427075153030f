"""The promise: under load no message is refused, and each acknowledged message is stored exactly once.

Postfix's load generator, `smtp-source`, sends 10,000 messages of 1 KB over 1, 10 and 100 sessions at a time. It uses a
connection for each message, or connections for many messages. It also sends 100 messages of 2 MB. Each message has its
own Message-Id. After each run all messages are fetched by POP3, checked, and deleted.

It takes 3 minutes under TCG; --quick, with a tenth of the messages, takes 20 seconds.
"""

import asyncio
import contextlib
import re
import subprocess
import threading
import time

import barepost
from barepost import options
from mail import DOMAIN, without_trace
from processes import die_with_us, program

ADA = f"ada@{DOMAIN}"
MESSAGE_ID = re.compile(rb"^Message-Id: <([^>]+)>\r\n", re.M)


class Door:
    """A queue in front of a forwarded port, for many clients at once.

    In QEMU's user network only one connection can wait at a forwarded port, because its listen() has a backlog of 1. Linux
    retries the SYN of another client after a second, then three, then seven. So clients connect to this queue, which
    connects them to the machine one by one: the next one follows after the greeting of the one before. After its greeting a
    connection is not delayed.
    """

    def __init__(self, port):
        self._inner = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._call(self._open())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self):
        self._queue = asyncio.Lock()
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", 0, backlog=1000)
        return self._server.sockets[0].getsockname()[1]

    async def _close(self):
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _enter(self, outer_reader, outer_writer):
        with contextlib.closing(outer_writer):
            async with self._queue:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._inner)
                outer_writer.write(await reader.read(1 << 16))
            with contextlib.closing(writer), contextlib.suppress(OSError):
                await asyncio.gather(self._pump(outer_reader, writer), self._pump(reader, outer_writer))

    @staticmethod
    async def _pump(reader, writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


class Load(barepost.SharedMachineTest):
    def loaded(self, messages, payload, sessions, reuse=False):
        """Sends messages with `payload` bytes below the header, and checks the stored messages."""
        door = self.enterContext(Door(self.machine.ports + barepost.SMTP))
        arguments = [
            program("smtp-source"), "-m", messages, "-l", payload, "-s", sessions, "-f", "sender@client.test", "-t", ADA,
            "-M", "client.test", *(["-d"] if reuse else []), f"inet:127.0.0.1:{door.port}",
        ]
        began = time.monotonic()
        done = subprocess.run(
            [str(argument) for argument in arguments], capture_output=True, text=True, timeout=1200,
            preexec_fn=die_with_us,
        )
        sent = time.monotonic() - began
        # smtp-source ends with an error at the first refusal.
        self.assertEqual((done.returncode, done.stderr), (0, ""))

        began = time.monotonic()
        with self.machine.pop3("ada") as session:
            sizes, uidls = session.sizes(), session.uidls()
            self.assertEqual(len(sizes), messages)
            self.assertEqual(len(set(uidls.values())), messages, "a unique identifier is there twice")
            seen = set()
            for number, raw in session.retrieve(sizes):
                self.assertEqual(len(raw), sizes[number])
                seen.add(self.marker(without_trace(raw), payload))
            self.assertEqual(len(seen), messages, "a message is there twice, and another is missing")
            fetched = time.monotonic() - began
            session.delete(sizes)
            session.quit()
        with self.machine.pop3("ada") as session:
            self.assertEqual(session.stat(), (0, 0))
        barepost.say(f"{messages} messages of {payload} bytes, {sessions} sessions: "
                     f"{messages / sent:.0f} a second sent, {messages / fetched:.0f} fetched")

    def marker(self, content, payload):
        """The Message-Id of a message. Checks that the rest is as smtp-source makes it."""
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
