"""The promise: acknowledged mail survives a power cut, whole, once, under the same unique identifier.

A machine is under load: several clients send messages of all sizes to several mailboxes, and one client deletes. At a
random moment QEMU is killed, and started again on the same disk. Sometimes it is killed while the machine boots and
recovers from the cut before. Then every mailbox must have every acknowledged message byte for byte, once, and under its
old identifier. It must have no deleted message and no part of a message. New identifiers are larger than all earlier
ones. The same disk is used for all cuts.

The host's cache survives the end of QEMU, so this test cannot detect a missing flush. flushcut.py does.

60 cuts take 4 to 5 minutes under TCG; --quick, with 12 cuts, takes 40 seconds. --seed repeats a run, except for its timing.
"""

import time

import barepost
import ledger
from barepost import options
from mail import MessageMaker, uid_of

USERS = ("ada", "grace", "barbara")


class PowerCuts(barepost.Test):
    def test_acknowledged_mail_survives_power_cuts_under_load(self):
        cuts = 12 if options.quick else 60
        data = self.data()
        command = self.learn(data)
        book = ledger.Ledger(MessageMaker(options.seed), USERS)
        highest = dict.fromkeys(USERS, ())
        boots = []

        for cut in range(1, cuts + 1):
            if self.dice.random() < 0.15:
                # The power fails again while the machine boots.
                guest = self.guest(command)
                time.sleep(self.dice.uniform(0, 1))
                guest.kill()
            began = time.monotonic()
            guest = self.guest(command).answers()
            boots.append(time.monotonic() - began)
            self.check(guest, book, highest, cut, None if cut % 10 == 0 else 10)

            load = ledger.Load(guest, book, f"{options.seed} {cut}")
            time.sleep(self.dice.choice((0.05, 0.3, 1, 2.5)) * self.dice.random())
            guest.kill()
            load.stop()
            if cut % 10 == 0:
                barepost.say(f"{cut} cuts, {book.acknowledged()} acknowledged, {book.deleted()} deleted")
                self.assertEqual(self.fsck(data)[0], 0)

        guest = self.guest(command).answers()
        self.check(guest, book, highest, cuts, None)
        self.assertTrue(guest.stop(), guest.process.tail())
        status, said = self.fsck(data)
        self.assertEqual(status, 0, said)
        self.assertGreater(book.acknowledged(), 5 * cuts, "the load was too small to show anything")
        barepost.say(f"{cuts} cuts, {book.acknowledged()} acknowledged, {book.deleted()} deleted; "
                     f"the longest boot {max(boots):.1f} s")

    def guest(self, command):
        return self.watch(barepost.Guest(command, self.folder / "console"))

    def fsck(self, data):
        return barepost.fsck(data / "disk.img")

    def check(self, guest, book, highest, cut, sample):
        """Compares every mailbox with the ledger."""
        for user in USERS:
            found, wrong = ledger.look(guest, book, user, sample)
            wrong += book.check(user, found)
            known = {entry.uidl for entry in book.entries[user].values()}
            for number, uidl in found.items():
                if uidl not in known and uid_of(uidl) <= highest[user]:
                    wrong.append(f"{user}: message {number} is new and got {uidl}, not above {highest[user]}")
            self.assertEqual(wrong, [], f"after cut {cut}, seed {options.seed}; {guest.process.tail()}")
            highest[user] = max([highest[user], *map(uid_of, found.values())])
            book.settle(user, found)


if __name__ == "__main__":
    barepost.main()
