"""The messages that a machine must have after a power cut, by the replies that its clients got.

A `Ledger` records for each message and recipient the moments of its sending and of its acknowledgment. It records the
same for deletions. A moment is a number that only grows: the time, or the length of the log of all writes to the disk
(`clock`). If a disk is durable up to a moment, the ledger knows which messages must be in a mailbox, which may be there,
and which must not be. Any deviation is a broken promise.

    sent ─────── acknowledged ─────────────── deletion sent ─────── deletion acknowledged
    maybe there        must be there                    maybe there             must be gone
"""

import dataclasses
import random
import threading
import time

from mail import ANSWER_SECONDS, DOMAIN, Gone, uid_of, without_trace
from processes import Late

NEVER = float("inf")
# Later than every recorded moment, and before `NEVER`.
NOW = 1e300
# After this time every client without an answer has given up. If QEMU is killed before it accepts a connection that Linux
# has set up, the client is not told that the connection is gone.
GIVEN_UP_SECONDS = ANSWER_SECONDS + 20


@dataclasses.dataclass
class Entry:
    """One message in one mailbox."""

    sent: float = NEVER
    acknowledged: float = NEVER
    deletion_sent: float = NEVER
    deleted: float = NEVER
    # The unique identifier, once a client has seen the message.
    uidl: str | None = None

    def must_be_there(self, moment):
        return self.acknowledged <= moment and self.deletion_sent > moment

    def may_be_there(self, moment):
        return self.deleted > moment


class Ledger:
    """The messages that the machine must have for each user."""

    def __init__(self, maker, users, clock=time.monotonic):
        self.maker = maker
        self.clock = clock
        self.entries = {user: {} for user in users}
        self._lock = threading.Lock()
        self._next = 0

    def next_number(self):
        with self._lock:
            self._next += 1
            return self._next

    def acknowledged(self):
        """The number of acknowledged messages, counted once for each mailbox."""
        return sum(entry.acknowledged < NEVER for box in self.entries.values() for entry in box.values())

    def deleted(self):
        return sum(entry.deleted < NEVER for box in self.entries.values() for entry in box.values())

    def check(self, user, found, moment=NOW):
        """Checks the content of a mailbox on a disk that is durable up to `moment`. Returns a list of faults as sentences.

        `found`: {message number: UIDL, or None for a damaged message}. No request may be in progress.
        """
        wrong = []
        box = self.entries[user]
        for number, entry in box.items():
            if entry.must_be_there(moment) and number not in found:
                wrong.append(f"{user}: message {number} is missing, acknowledged at {entry.acknowledged} (now {moment})")
        for number, uidl in found.items():
            entry = box.get(number)
            if entry is None:
                wrong.append(f"{user}: message {number} was never sent to this mailbox")
            elif not entry.may_be_there(moment):
                wrong.append(f"{user}: message {number} is there again, deleted at {entry.deleted} (now {moment})")
            elif entry.uidl is not None and entry.acknowledged <= moment and entry.uidl != uidl:
                wrong.append(f"{user}: message {number} was {entry.uidl} and is {uidl}")
        return wrong

    def settle(self, user, found):
        """Updates the ledger after a cut: messages that were found count as acknowledged, and all others as deleted."""
        now = self.clock()
        for number, entry in self.entries[user].items():
            if number in found:
                entry.acknowledged = min(entry.acknowledged, now)
                entry.deletion_sent = NEVER
                entry.uidl = found[number]
            else:
                entry.deletion_sent, entry.deleted = min(entry.deletion_sent, now), min(entry.deleted, now)


def look(machine, ledger, user, sample=None):
    """Fetches a mailbox. Returns ({message number: UIDL}, faults in the mailbox itself).

    With `sample` it fetches only messages with a UIDL that is new to the ledger, and `sample` other messages.
    """
    known = {entry.uidl: number for number, entry in ledger.entries[user].items() if entry.uidl and entry.deleted == NEVER}
    found, wrong = {}, []
    with machine.pop3(user) as session:
        sizes, uidls = session.sizes(), session.uidls()
        if len(set(uidls.values())) != len(uidls):
            wrong.append(f"{user}: a unique identifier is there twice: {sorted(uidls.values())}")
        order = [uid_of(uidl) for uidl in uidls.values()]
        if order != sorted(order):
            wrong.append(f"{user}: unique identifiers do not grow: {list(uidls.values())}")
        numbers = list(sizes)
        if sample is not None:
            others = [number for number in numbers if uidls[number] in known]
            chosen = set(random.sample(others, min(sample, len(others))))
            numbers = [number for number in numbers if uidls[number] not in known or number in chosen]
            for number in others:
                if number not in chosen:
                    found[known[uidls[number]]] = uidls[number]
        for number, raw in session.retrieve(numbers):
            try:
                message = ledger.maker.recognize(without_trace(raw))
            except AssertionError as error:
                wrong.append(f"{user}: {uidls[number]}: {error}")
                continue
            if message in found:
                wrong.append(f"{user}: message {message} is there twice")
            if len(raw) != sizes[number]:
                wrong.append(f"{user}: message {message} has {len(raw)} bytes and LIST says {sizes[number]}")
            found[message] = uidls[number]
    return found, wrong


class Load:
    """Clients that send and delete messages until they are stopped, and record this in the ledger.

    `may_be_full`: a reply of 452 is not a failure.
    """

    def __init__(self, machine, ledger, seed, senders=4, may_be_full=False, sizes=(200, 1000, 3000, 20_000, 150_000)):
        self.machine, self.ledger, self.sizes, self._may_be_full = machine, ledger, sizes, may_be_full
        self._stop = threading.Event()
        self.failures = []
        users = list(ledger.entries)
        jobs = [(self._send, random.Random(f"{seed} sender {n}")) for n in range(senders)]
        jobs.append((self._delete, random.Random(f"{seed} deleter")))
        self._threads = [threading.Thread(target=self._guard, args=(job, users, dice), daemon=True) for job, dice in jobs]
        for thread in self._threads:
            thread.start()

    def stop(self, seconds=GIVEN_UP_SECONDS):
        """Stops the clients. Errors: a client got a wrong answer, or still waits for one."""
        self._stop.set()
        for thread in self._threads:
            thread.join(seconds)
            if thread.is_alive():
                raise Late("a client still waits for an answer")
        if self.failures:
            raise self.failures[0]

    def _guard(self, job, users, dice):
        while not self._stop.is_set():
            try:
                job(users, dice)
            except (Gone, OSError):
                # The machine does not run at the moment.
                self._stop.wait(0.05)
            except Exception as error:
                self.failures.append(error)
                return

    def _send(self, users, dice):
        """One session of a few messages."""
        ledger = self.ledger
        with self.machine.smtp(timeout=ANSWER_SECONDS) as session:
            session.ehlo()
            for _ in range(dice.randrange(1, 30)):
                if self._stop.is_set():
                    return
                to = dice.sample(users, 1 if dice.random() < 0.7 else 2)
                number, size = ledger.next_number(), dice.choice(self.sizes)
                message = ledger.maker.make(number, size)
                entries = [ledger.entries[user].setdefault(number, Entry(sent=ledger.clock())) for user in to]
                addresses = [f"{user}@{DOMAIN}" for user in to]
                if dice.random() < 0.7:
                    reply = session.deliver("sender@client.test", addresses, message)
                else:
                    reply = session.deliver_in_chunks("sender@client.test", addresses, message, dice.choice((1460, 50_000)))
                if reply.code == 250:
                    now = ledger.clock()
                    for entry in entries:
                        entry.acknowledged = min(entry.acknowledged, now)
                elif reply.code == 452 and self._may_be_full:
                    # The refusal of a recipient leaves the transaction open.
                    session.command("RSET")
                    self._stop.wait(0.2)
                elif reply.code != 421:
                    raise AssertionError(f"message {number} of {size} bytes was refused: {reply}")

    def _delete(self, users, dice):
        """One session that identifies new messages, and deletes some of all messages."""
        user = dice.choice(users)
        with self.machine.pop3(user) as session:
            there = self._recognize(user, session)
            doomed = dice.sample(list(there), int(len(there) * dice.choice((0, 0.2, 0.6))))
            session.delete(doomed)
            entries = [there[number] for number in doomed]
            now = self.ledger.clock()
            for entry in entries:
                entry.deletion_sent = min(entry.deletion_sent, now)
            session.quit()
            now = self.ledger.clock()
            for entry in entries:
                entry.deleted = now
        self._stop.wait(0.05)

    def _recognize(self, user, session):
        """The entries of the messages in a session, by their numbers. Messages that a session shows are already durable."""
        box = self.ledger.entries[user]
        known = {entry.uidl: entry for entry in list(box.values()) if entry.uidl}
        uidls = session.uidls()
        now = self.ledger.clock()
        new = [number for number, uidl in uidls.items() if uidl not in known]
        for number, head in session.heads(new):
            match = self.ledger.maker.NUMBER.search(head)
            if not match or int(match[2]) not in box:
                raise AssertionError(f"{user}: {uidls[number]} was never sent: {head!r}")
            entry = box[int(match[2])]
            entry.uidl = uidls[number]
            entry.acknowledged = min(entry.acknowledged, now)
            known[entry.uidl] = entry
        return {number: known[uidl] for number, uidl in uidls.items()}
