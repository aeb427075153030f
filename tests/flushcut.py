"""The promise: acknowledged mail is durable on the disk itself, not only in a cache that a power cut would empty.

QEMU logs every write and flush of a machine under load (block driver `blklogwrites`), from the first write to a blank
disk. At each 250 and each QUIT the client notes the length of the log. Then the test makes disks as they might be after
a power cut at a random position of the log. Such a disk has all writes up to the last flush before the cut. Of the later
writes it has any subset, and some of them may be torn at sectors or contain garbage.

On such a disk `barepost fsck` must find only traces of the cut. Then the machine boots on it. It must have every message
that was acknowledged before the cut, whole, once, and under its identifier. It must have no part of a message, and no
message that was deleted before the cut. New mail gets new identifiers.

The disk is small, so that segments are cleaned and used again within the run.

80 cuts take 8 minutes under TCG; --quick, with 15 cuts, takes 1 to 2. --seed repeats a run, except for its timing.
"""

import shutil
import subprocess
import time

import barepost
import ledger
import writelog
from barepost import options
from mail import DOMAIN, MessageMaker, uid_of

USERS = ("ada", "grace", "barbara")
DISK_BYTES = 96 << 20
# Findings of fsck that any end of a machine may cause. With only these, fsck reports no fault.
USUAL = ("was interrupted before it was acknowledged", "of a journal's last block is missing; nothing is lost")
# All findings that are only traces of a cut.
EXPLAINED = (*USUAL, "nothing is lost")


class FlushCuts(barepost.Test):
    def test_acknowledged_mail_is_durable_wherever_the_power_is_cut(self):
        cuts, seconds = (15, 6) if options.quick else (80, 20)
        command = self.learn(self.data())
        disk, log_path = self.blank(self.folder / "logged.img"), self.folder / "log"
        log_path.touch()
        position = writelog.Position(log_path)
        book = ledger.Ledger(MessageMaker(options.seed), USERS, position)

        guest = self.watch(barepost.Guest(writelog.logged(command, disk, log_path), self.folder / "console")).answers(90)
        load = ledger.Load(guest, book, options.seed, may_be_full=True)
        time.sleep(seconds)
        load.stop()
        for user in USERS:
            found, wrong = ledger.look(guest, book, user)
            self.assertEqual(wrong + book.check(user, found), [])
            for number, uidl in found.items():
                book.entries[user][number].uidl = uidl
        self.assertTrue(guest.stop(), guest.process.tail())
        position.close()

        log = writelog.WriteLog(log_path)
        self.addCleanup(log.close)
        flushes = sum(entry[2] & writelog.FLUSH for entry in log.entries)
        barepost.say(f"{len(log.entries)} writes and flushes, of them {flushes} flushes; "
                     f"{book.acknowledged()} acknowledged, {book.deleted()} deleted")
        self.assertGreater(book.acknowledged(), 50, "the load was too small to show anything")
        self.assertGreater(book.deleted(), 5, "the load was too small to show anything")

        durable = self.blank(self.folder / "durable.img")
        applied = 0
        for number, cut in enumerate(self.places(log, cuts)):
            flushed = log.last_flush(cut)
            with open(durable, "r+b") as file:
                log.apply(file.fileno(), applied, flushed)
            applied = flushed
            disk = self.folder / "cut.img"
            subprocess.run(["cp", "--sparse=always", durable, disk], check=True, timeout=60)
            with open(disk, "r+b") as file:
                manner = log.apply_some(file.fileno(), flushed, cut, self.dice)
            case = f"cut at {cut} of {len(log.entries)}, flushed {flushed}, then {manner}, seed {options.seed}"
            self.check(command, disk, book, cut, case, twice=number % 3 == 0)

    def blank(self, path):
        with open(path, "wb") as file:
            file.truncate(DISK_BYTES)
        return path

    def places(self, log, count):
        """The positions of the cuts, ascending. Half of them are anywhere, and half are just before or after a flush."""
        end = len(log.entries)
        flushes = [i for i in range(end) if log.entries[i][2] & writelog.FLUSH]
        places = {self.dice.randrange(1, end + 1) for _ in range(count // 2)}
        while len(places) < count:
            places.add(min(max(self.dice.choice(flushes) + self.dice.choice((-1, 0, 1, 2)), 1), end))
        return sorted(places)

    def check(self, command, disk, book, cut, case, twice):
        """Boots on a disk after a cut and compares every mailbox with the ledger. `twice`: again after another cut."""
        try:
            self.compare(command, disk, book, cut, twice)
        except AssertionError as error:
            kept = self.folder / f"cut-{cut}.img"
            shutil.copy(disk, kept)
            raise AssertionError(f"{case}: {error}") from None

    def compare(self, command, disk, book, cut, twice):
        self.assertEqual(self.unexpected(disk, cut), [], "what fsck says")
        guest = self.watch(barepost.Guest(command, self.folder / "console", disk)).answers()
        before = {}
        for user in USERS:
            before[user], wrong = ledger.look(guest, book, user)
            wrong += book.check(user, before[user], cut)
            self.assertEqual(wrong, [], guest.process.tail())
        if twice:
            guest.kill()
            guest = self.watch(barepost.Guest(command, self.folder / "console", disk)).answers()
            for user in USERS:
                found, wrong = ledger.look(guest, book, user)
                self.assertEqual((found, wrong), (before[user], []), "opening the disk once more found other mail")
        reply = guest.deliver("sender@client.test", [f"{user}@{DOMAIN}" for user in USERS], b"Subject: after\r\n\r\n")
        if reply.code == 250:
            for user in USERS:
                with guest.pop3(user) as session:
                    new = list(session.uidls().values())[-1]
                seen = [uid_of(uidl) for uidl in self.identifiers(book, user, cut) | set(before[user].values())]
                self.assertGreater(uid_of(new), max(seen, default=()))
        else:
            self.assertEqual(reply.code, 452, reply)
        guest.kill()

    def unexpected(self, disk, cut):
        """The findings of `barepost fsck` that no power cut explains."""
        status, said = barepost.fsck(disk)
        lines = said.splitlines()
        if status == 2:
            # Before the end of formatting, fsck cannot check the disk. No mailbox can have mail then.
            return [] if cut < 20 else lines
        findings = [line for line in lines if line.startswith("sector ")]
        if status != any(not line.endswith(USUAL) for line in findings):
            return [f"exit status {status}", *lines]
        return [line for line in findings if not line.endswith(EXPLAINED)]

    def identifiers(self, book, user, cut):
        """The identifiers that clients knew before the cut."""
        return {entry.uidl for entry in book.entries[user].values() if entry.uidl and entry.acknowledged <= cut}


if __name__ == "__main__":
    barepost.main()
