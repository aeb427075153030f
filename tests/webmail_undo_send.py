"""Undo send: the page counts down a held message, which becomes a draft again or is sent, with its files. A part of
`webmail_sending.py`."""

import random

from barepost import options
from mail import DOMAIN
from processes import until
from webdriver import ANSWER_SECONDS, PHONE
from webmail_reader import Reader, row

# The longest hold, with time for a slow host.
LEAVES_SECONDS = 90
FILE_BYTES = 300_000


class UndoSend:
    """Undo send in one kind of browser. Tests of held messages use Ada's account. It has the longest hold, since hosts may
    be slow."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Grace has the default hold of ten seconds.
        cls.hold("ada", 30)

    def send(self, name, writer, reader, files=()):
        """Sends a message. Returns its subject."""
        subject = self.unique(name)
        self.log_in(writer)
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#to", f"{reader}@{DOMAIN}")
        browser.type("#subject", subject)
        browser.type("#text", "All is well.")
        for file in files:
            browser.type("#files", str(file))
        browser.follow("button[value=send]")
        return subject

    def test_undo_send_restores_the_draft(self):
        subject = self.send("Back", "ada", "grace")
        browser = self.browser
        self.assertIn("Sending…", browser.text(".notice"))
        browser.follow(".notice button")
        self.assertIn("Sending undone.", browser.text(".notice"))
        self.assertEqual(browser.value("#to"), f"grace@{DOMAIN}")
        self.assertEqual(browser.value("#subject"), subject)
        self.assertEqual(browser.value("#text").strip(), "All is well.")
        browser.follow("button[value=send]")
        self.assertIn("Sending…", browser.text(".notice"))
        self.box("Drafts")
        self.assertIn("Sending…", browser.text(row(subject)))
        self.open(subject)
        self.assertEqual(browser.text("h1"), "Drafts", "a message that is being sent has no compose page")
        browser.follow(".notice button")
        self.assertEqual(browser.value("#subject"), subject)
        browser.follow("button[value=discard]")
        self.log_in("grace")
        self.assertFalse(browser.is_there(row(subject)))

    def leaves(self, subject):
        def has_left():
            self.browser.go(self.address("/mail/box/2"))
            return not self.browser.is_there(row(subject))
        until(has_left, LEAVES_SECONDS, "the message leaves")

    def test_undo_send_keeps_files_in_the_draft(self):
        content = random.Random(options.seed).randbytes(FILE_BYTES)
        file = self.folder / "held.bin"
        file.write_bytes(content)
        subject = self.send("Enclosed", "ada", "grace", [file])
        browser = self.browser
        browser.follow(".notice button")
        self.assertIn("Sending undone.", browser.text(".notice"))
        self.assertIn(file.name, browser.text("ul.attachments"))
        self.assertEqual(browser.value("#subject"), subject)
        # No page is checked while this message is held, so the hold can be short.
        self.hold("ada", 10)
        self.addCleanup(self.hold, "ada", 30)
        browser.follow("button[value=send]")
        self.leaves(subject)
        self.log_in("grace")
        self.open(subject)
        self.assertIn("All is well.", browser.text(".prose"))
        browser.click(".attachments a")
        self.assertSame(browser.downloaded(file.name), content, "the file")

    def test_a_held_message_leaves_when_its_time_is_over(self):
        subject = self.send("Leaves", "grace", "ada")
        browser = self.browser
        self.assertEqual(browser.attribute(".notice", "data-seconds"), "10")
        self.leaves(subject)
        self.box("Sent")
        self.assertTrue(browser.is_there(row(subject)))
        self.log_in("ada")
        self.open(subject)
        self.assertIn("All is well.", browser.text(".prose"))


class UndoSendWithScripts(UndoSend, Reader):
    def test_the_page_counts_down_until_a_message_is_sent(self):
        subject = self.send("Counted", "ada", "grace")
        browser = self.browser
        self.assertRegex(browser.text(".notice .left"), r"^([1-9]|[12]\d|30) s$")
        until(lambda: "Message sent." in browser.text(".notice"), LEAVES_SECONDS, "the page says so")
        self.assertFalse(browser.is_there(".notice button"), "it is too late")
        self.box("Sent")
        until(lambda: browser.is_there(row(subject)), ANSWER_SECONDS, "it is")


class UndoSendWithoutScripts(UndoSend, Reader):
    scripts, screen = False, PHONE
