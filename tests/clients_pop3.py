"""RFC 1939 and its extensions as a client sees them, and the cost of password guesses."""

import contextlib
import threading
import time

import barepost
from barepost import ACCESS_THROTTLED, CONFIGURATION, options
from clients_shared import ADA, SENDER, Shared
from mail import ANSWER_SECONDS, PASSWORD, MessageMaker, Refused, uid_of, without_trace
from processes import until


class Pop3(Shared):
    """RFC 1939 and its extensions, as a client sees them."""

    def setUp(self):
        super().setUp()
        self.maker = MessageMaker(options.seed)
        with self.session() as session:
            for number in range(1, 6):
                self.assertEqual(session.deliver(SENDER, ADA, self.maker.make(number, number * 900)).code, 250)

    def numbers(self, user="ada"):
        return [self.maker.recognize(found.content) for found in self.machine.mailbox(user)]

    def reader(self, user="ada"):
        return self.enterContext(self.machine.pop3(user))

    def test_a_user_has_a_name_and_a_password(self):
        for user, password in (("ada", "wrong"), ("nobody", PASSWORD), (ADA, ""), (ADA, PASSWORD + " ")):
            with self.subTest(user=user), self.machine.pop3() as reader:
                with self.assertRaises(Refused):
                    reader.log_in(user, password)
                with self.assertRaises(Refused):
                    reader.command("STAT")
        for command in ("STAT", "LIST", "RETR 1", "DELE 1", "UIDL", "PASS x", "TOP 1 1", "RSET"):
            with self.machine.pop3() as reader, self.assertRaises(Refused, msg=command):
                reader.command(command)
        self.assertEqual(self.numbers(), [1, 2, 3, 4, 5])

    def test_mailboxes_are_apart(self):
        self.assertEqual(self.numbers("grace"), [])

    def test_top_gives_the_header_and_so_many_lines(self):
        reader = self.reader()
        raw = reader.fetch()[4].raw
        head, body = raw.split(b"\r\n\r\n", 1)
        lines = body.split(b"\r\n")
        for count in (0, 1, 3, len(lines), 1_000_000):
            reader.command(f"TOP 5 {count}")
            expected = head + b"\r\n\r\n" + b"".join(line + b"\r\n" for line in lines[:-1][:count])
            self.assertSame(reader.block(), expected, f"TOP 5 {count}")

    def test_a_unique_identifier_is_one_word_of_printable_ascii(self):
        uidls = list(self.reader().uidls().values())
        self.assertEqual(len(set(uidls)), 5)
        for uidl in uidls:
            self.assertRegex(uidl, r"^[!-~]{1,70}$")

    def test_reset_takes_deletions_back(self):
        reader = self.reader()
        reader.delete([1, 2, 5])
        self.assertEqual(list(reader.sizes()), [3, 4])
        for command in ("RETR 1", "DELE 1", "LIST 1", "UIDL 1", "TOP 1 0"):
            with self.assertRaises(Refused, msg=command):
                reader.command(command)
        reader.command("RSET")
        self.assertEqual(list(reader.sizes()), [1, 2, 3, 4, 5])
        reader.quit()
        self.assertEqual(self.numbers(), [1, 2, 3, 4, 5])

    def test_quit_deletes_and_no_number_or_identifier_is_used_again(self):
        reader = self.reader()
        before = reader.uidls()
        reader.delete([1, 3, 5])
        reader.quit()
        self.assertEqual(self.numbers(), [2, 4])
        self.session().deliver(SENDER, ADA, self.maker.make(6, 2000))
        after = self.reader().uidls()
        self.assertEqual(after[1], before[2])
        self.assertEqual(after[2], before[4])
        self.assertNotIn(after[3], before.values())
        self.assertGreater(uid_of(after[3]), max(map(uid_of, before.values())))

    def test_a_dropped_connection_deletes_nothing(self):
        for leave in ("close", "reset"):
            reader = self.reader()
            reader.delete([1, 2])
            getattr(reader, leave)()
            self.reader_in_time().close()
        self.assertEqual(self.numbers_in_time(), [1, 2, 3, 4, 5])

    def test_a_mailbox_is_open_once_at_a_time(self):
        first = self.reader()
        with self.machine.pop3() as second, self.assertRaisesRegex(Refused, r"\[IN-USE\]"):
            second.log_in("ada")
        self.assertEqual(first.stat()[0], 5)
        first.quit()
        self.assertEqual(self.reader().stat()[0], 5)

    def test_a_connection_that_is_gone_frees_its_mailbox(self):
        for leave in ("close", "reset"):
            getattr(self.reader(), leave)()
            self.reader_in_time().quit()

    def reader_in_time(self):
        """Logs in as soon as the server has noticed that the last client has left."""
        def attempt():
            with contextlib.suppress(Refused):
                return self.reader()
        return until(attempt, 10, "the mailbox is free again")

    def numbers_in_time(self):
        self.reader_in_time().quit()
        return self.numbers()

    def test_mail_that_arrives_during_a_session_is_seen_by_the_next(self):
        reader = self.reader()
        self.assertEqual(self.session().deliver(SENDER, ADA, self.maker.make(6, 1000)).code, 250)
        self.assertEqual(reader.stat()[0], 5)
        self.assertEqual(list(reader.uidls()), [1, 2, 3, 4, 5])
        reader.delete([1])
        reader.quit()
        self.assertEqual(self.numbers(), [2, 3, 4, 5, 6])

    def test_a_whole_session_may_be_pipelined(self):
        with self.machine.pop3() as reader:
            reader.send(
                f"CAPA\r\nUSER {ADA}\r\nPASS {PASSWORD}\r\nSTAT\r\nLIST\r\n"
                "RETR 2\r\nDELE 2\r\nRETR 2\r\nNOOP\r\nUIDL 3\r\nQUIT\r\n".encode()
            )
            reader.answer()
            self.assertIn(b"PIPELINING\r\n", reader.block())
            reader.answer()
            reader.answer()
            self.assertEqual(reader.answer().split()[0], "5")
            reader.answer()
            self.assertEqual(reader.block().count(b"\r\n"), 5)
            reader.answer()
            self.assertEqual(self.maker.recognize(without_trace(reader.block())), 2)
            reader.answer()
            with self.assertRaises(Refused):
                reader.answer()
            reader.answer()
            self.assertEqual(reader.answer().split()[0], "3")
            reader.answer()
        self.assertEqual(self.numbers(), [1, 3, 4, 5])

    def test_wrong_commands_are_refused_and_the_session_goes_on(self):
        reader = self.reader()
        for command in ("RETR", "RETR 0", "RETR 6", "RETR x", "RETR 99999999999999999999", "RETR -1", "DELE 6", "TOP 1",
                        "TOP 1 x", "LIST 0", "UIDL 9", "FOO", "USER ada", ""):
            with self.assertRaises(Refused, msg=command):
                reader.command(command)
        self.assertEqual(reader.stat()[0], 5)


class Guessing(barepost.Test):
    """The reply to a wrong password is delayed, longer each time. The right password is never delayed."""

    configuration = CONFIGURATION + ACCESS_THROTTLED

    def seconds_of_login(self, reader, password):
        """(whether the login succeeded, the seconds until the reply or the end of the wait)"""
        began = time.monotonic()
        with reader:
            try:
                reader.log_in("ada", password)
                accepted = True
            except (Refused, TimeoutError):
                accepted = False
        return accepted, time.monotonic() - began

    def test_wrong_passwords_are_delayed_and_the_owner_is_not(self):
        machine = self.boot()
        delays = []
        for guess in ("first", "second", "third"):
            accepted, seconds = self.seconds_of_login(machine.pop3(), guess)
            self.assertFalse(accepted)
            delays.append(seconds)
        barepost.say("delays: " + ", ".join(f"{seconds:.1f} s" for seconds in delays))
        self.assertGreater(delays[0], 1)
        self.assertGreater(delays[1], 2 * 1)
        self.assertGreater(delays[2], 4 * 1)
        self.assertEqual(sorted(delays), delays)
        accepted, seconds = self.seconds_of_login(machine.pop3(), PASSWORD)
        self.assertTrue(accepted)
        self.assertLess(seconds, delays[2])

    def test_guessing_in_parallel_gains_nothing(self):
        machine = self.boot()
        outcomes = []
        # QEMU's user network accepts connections one by one, so all connections are opened before the guesses.
        readers = [self.enterContext(machine.pop3(timeout=10)) for _ in range(12)]

        def guess(number, reader):
            outcomes.append(self.seconds_of_login(reader, f"guess {number}"))

        guesses = [threading.Thread(target=guess, args=each) for each in enumerate(readers)]
        for thread in guesses:
            thread.start()
        for thread in guesses:
            thread.join(ANSWER_SECONDS)
        self.assertEqual(len(outcomes), len(guesses))
        self.assertFalse(any(accepted for accepted, _ in outcomes))
        # Guesses that the server has checked are delayed. Others may be refused at once, while a guess is pending.
        delayed = sorted(seconds for _, seconds in outcomes if seconds > 2)
        barepost.say(f"{len(delayed)} of 12 guesses were kept waiting")
        self.assertGreater(len(delayed), 2)
        until(lambda: self.seconds_of_login(machine.pop3(), PASSWORD)[0], 10, "the owner gets in")
