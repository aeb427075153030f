"""The promise: Chromium reads, files, writes and sends mail in the webmail, with scripts and
without, on a desktop and on a phone.

A user logs in, reads messages, archives, moves, stars and deletes them, and undoes this. HTML is
shown in a separate frame. The user writes to other users, saves drafts, attaches files, downloads
them byte for byte, and exports a mailbox as one file. The user also chooses a name, a signature and
a theme. After a logout, the back button shows no earlier page.

Messages run nothing and fetch nothing (`webmail_hostile.py`), and every part of a message is
visible or listed (`webmail_parts.py`). Keys do what buttons do, and pages change in place
(`webmail_keys.py`). New mail appears at once (`webmail_updates.py`). Less frequent actions are in
`webmail_filing.py`, outgoing messages in `webmail_sending.py`, and the look of HTML messages in
`webmail_html.py`.

It takes ten minutes under TCG. --quick, with scripts only on the desktop and without them only on
the phone, takes seven.
"""

import mailbox
import random
import re

import barepost
from barepost import options
from mail import DOMAIN, PASSWORD
from processes import until
from webdriver import ANSWER_SECONDS, DESKTOP, PHONE

from webmail_filing import Filing
from webmail_reader import Reader, row

# Parts of this test in other files. An import makes unittest find and run their test cases.
from webmail_hostile import Hostile
from webmail_keys import Keys
from webmail_parts import Parts
from webmail_updates import Updates

FILE_BYTES = 300_000
# A file that fits into a message, and one that does not.
LARGE_FILE_BYTES, TOO_LARGE_FILE_BYTES = 20_000_000, 45_000_000
# A script that records the status text of the compose page while a message is sent.
WATCH = """
window.told = [];
new MutationObserver(() => told.push(document.querySelector(".kept")?.textContent ?? "")).observe(document.body, { childList: true, subtree: true });
"""


class Reading:
    """The most frequent actions of a user, in one kind of browser."""

    scripts, screen = True, DESKTOP

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for user in ("ada", "grace"):
            cls.hold(user, 0)

    def setUp(self):
        if options.quick and self.scripts != (self.screen is DESKTOP):
            self.skipTest("the short form has scripts at the desk, and none on the phone")
        super().setUp()

    def test_a_wrong_password_is_refused_and_the_right_one_logs_in(self):
        browser = self.browser
        browser.go(self.address("/mail/box/1"))
        self.assertEqual(browser.address, self.address("/mail/login?next=%2Fmail%2Fbox%2F1"))
        for user, password in (("ada", "guess"), ("nobody", PASSWORD)):
            self.submit_login(user, password)
            self.assertIn("Wrong email address or password.", browser.text("main"))
            self.assertEqual(browser.value("#name"), f"{user}@{DOMAIN}")
        self.submit_login("ada", PASSWORD)
        self.assertEqual(browser.address, self.address("/mail/box/1"))
        self.assertEqual(browser.text("h1"), "Inbox")

    def test_unread_messages_are_marked_until_they_are_opened(self):
        subject = self.deliver("Unread")
        self.log_in("ada")
        browser = self.browser
        self.assertIn("unread", browser.attribute(row(subject), "class"))
        self.assertIn("It computes.", browser.text(row(subject)))
        self.open(subject)
        self.assertEqual(browser.text("h1.subject"), subject)
        self.assertIn("It computes.", browser.text(".prose"))
        self.assertIn("Charles Babbage", browser.text(".message"))
        browser.follow("a.back")
        self.assertEqual(browser.attribute(row(subject), "class"), "row")
        self.open(subject)
        browser.follow("button[value=unread]")
        self.assertIn("unread", browser.attribute(row(subject), "class"))
        self.choose(subject)
        browser.follow("button[value=read]")
        self.assertEqual(browser.attribute(row(subject), "class"), "row")

    def test_html_of_a_message_stays_within_its_frame(self):
        subject = self.deliver("Markup", '<style>body, p { color: rgb(1, 2, 3) }</style><p>It <b>weaves</b>.</p><img src="https://nowhere.test/x">', "text/html")
        self.log_in("ada")
        self.open(subject)
        browser = self.browser
        self.assertIn("Remote images are blocked", browser.text(".message"))
        browser.enter("iframe.sheet-of-mail")
        self.assertEqual(browser.text("p"), "It weaves.")
        self.assertEqual(browser.run("return getComputedStyle(document.querySelector('p')).color"), "rgb(1, 2, 3)")
        self.assertEqual(browser.run("return frameElement.sandbox.value"), "allow-same-origin allow-popups allow-popups-to-escape-sandbox")
        browser.leave()
        self.assertNotEqual(browser.run("return getComputedStyle(document.body).color"), "rgb(1, 2, 3)")
        browser.follow("button[value=once]")
        self.assertNotIn("Remote images are blocked", browser.text(".message"))

    def test_archiving_a_message_can_be_undone(self):
        subject = self.deliver("Archived")
        self.log_in("ada")
        browser = self.browser
        self.open(subject)
        browser.follow("button[value=archive]")
        self.assertIn("Message moved to Archive.", browser.text(".notice"))
        self.assertFalse(browser.is_there(row(subject)))
        browser.follow(".notice button")
        self.assertEqual(browser.text("h1"), "Inbox")
        self.assertTrue(browser.is_there(row(subject)))

    def test_selected_messages_are_starred_junked_and_moved(self):
        subjects = [self.deliver(name) for name in ("First", "Second")]
        self.log_in("ada")
        browser = self.browser
        star = row(subjects[0], "//button[@name='star']")
        for pressed in ("true", "false"):
            browser.follow(star)
            self.assertEqual(browser.attribute(star, "aria-pressed"), pressed)
        for subject in subjects:
            self.choose(subject)
        browser.follow("button[value=junk]")
        self.assertIn("2 messages moved to Junk.", browser.text(".notice"))
        self.box("Junk")
        for subject in subjects:
            self.choose(subject)
        browser.click("//select[@id='move']/option[.='Archive']")
        browser.follow("button[value=move]")
        self.assertIn("2 messages moved to Archive.", browser.text(".notice"))
        self.box("Archive")
        for subject in subjects:
            self.assertTrue(browser.is_there(row(subject)))

    def test_a_local_recipient_gets_a_message_and_replies(self):
        subject = self.unique("Näws")
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#to", f"bob@{DOMAIN}")
        browser.type("#subject", subject)
        browser.type("#text", "All is well.\n<b>Quite.</b>")
        browser.follow("button[value=send]")
        self.assertIn(f"bob@{DOMAIN}", browser.text(".notice.error"))
        browser.write("#to", f"Grace <grace@{DOMAIN}>")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.box("Sent")
        self.assertTrue(browser.is_there(row(subject)))

        self.log_in("grace")
        self.open(subject)
        self.assertIn("All is well.\n<b>Quite.</b>", browser.text(".prose"))
        browser.follow("//a[.='Reply']")
        self.assertEqual(browser.value("#to"), f"ada@{DOMAIN}")
        self.assertEqual(browser.value("#subject"), f"Re: {subject}")
        self.assertIn("> All is well.", browser.value("#text"))
        browser.type("#text", "Good to hear.\n")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))

        self.log_in("ada")
        self.assertIn("2", browser.text(row(f"Re: {subject}", "//*[@class='number']")), "one row, and its messages are counted")
        self.open(f"Re: {subject}")
        self.assertIn("Good to hear.", browser.text("#opened .prose"))
        own = "//article[not(@id)]"
        self.assertEqual(browser.text(f"{own}//*[@class='prose']"), "", "what Ada has written herself is folded")
        browser.click(f"{own}//summary[@class='head']")
        self.assertIn("All is well.\n<b>Quite.</b>", browser.text(f"{own}//*[@class='prose']"))
        browser.follow("//*[@id='opened']//a[.='Forward']")
        self.assertEqual(browser.value("#subject"), f"Fwd: Re: {subject}")

    def test_a_draft_is_saved_continued_and_sent(self):
        subject = self.unique("Draft")
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#subject", subject)
        browser.type("#text", "First.")
        browser.follow("button[value=save]")
        self.assertIn("Draft saved.", browser.text(".notice"))
        self.box("Drafts")
        self.open(subject)
        self.assertEqual(browser.value("#subject"), subject)
        self.assertEqual(browser.value("#text").strip(), "First.")
        browser.type("#to", f"grace@{DOMAIN}")
        browser.write("#text", "Second.")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.box("Drafts")
        self.assertFalse(browser.is_there(row(subject)))
        self.log_in("grace")
        self.open(subject)
        self.assertIn("Second.", browser.text(".prose"))
        self.assertNotIn("First.", browser.text(".prose"))

    def test_files_stay_with_a_draft_until_sent_or_removed(self):
        contents = {name: random.Random(f"{options.seed} {name}").randbytes(FILE_BYTES) for name in ("kept.bin", "taken away.bin")}
        subject = self.unique("Kept files")
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#to", f"grace@{DOMAIN}")
        browser.type("#subject", subject)
        for name, content in contents.items():
            (self.folder / name).write_bytes(content)
            browser.type("#files", str(self.folder / name))
            browser.follow("button[value=save]")
            self.assertIn(name, browser.text("ul.attachments"))
        self.box("Drafts")
        self.open(subject)
        browser.follow("//ul[@class='attachments']/li[contains(., 'taken away.bin')]/button")
        self.assertNotIn("taken away.bin", browser.text("ul.attachments"))
        browser.type("#text", "What is attached was kept.")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.log_in("grace")
        self.open(subject)
        self.assertNotIn("taken away.bin", browser.text(".attachments"))
        browser.click(".attachments a")
        self.assertSame(browser.downloaded("kept.bin"), contents["kept.bin"], "the file")

    def test_an_attached_file_is_downloaded_byte_for_byte(self):
        content = random.Random(options.seed).randbytes(FILE_BYTES)
        file = self.folder / "Zeichnung Nr 7.bin"
        file.write_bytes(content)
        subject = self.unique("Files")
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#to", f"grace@{DOMAIN}")
        browser.type("#subject", subject)
        browser.type("#text", "See what is attached.")
        browser.type("#files", str(file))
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.log_in("grace")
        self.assertTrue(browser.is_there(row(subject, "//*[@class='clip']")))
        self.open(subject)
        self.assertIn(file.name, browser.text(".attachments"))
        browser.click(".attachments a")
        self.assertSame(browser.downloaded(file.name), content, "the file")

    def test_a_file_of_20_mb_is_sent_and_a_larger_one_is_refused(self):
        if self.screen is PHONE:
            self.skipTest("how large the screen is makes no difference")
        content = random.Random(f"{options.seed} large").randbytes(LARGE_FILE_BYTES)
        file, more = self.folder / "large.bin", self.folder / "too large.bin"
        file.write_bytes(content)
        more.write_bytes(bytes(TOO_LARGE_FILE_BYTES))
        subject = self.unique("Large")
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#to", f"grace@{DOMAIN}")
        browser.type("#subject", subject)
        browser.type("#files", str(file))
        if self.scripts:
            browser.run(WATCH)
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        if self.scripts:
            parts = {int(part) for told in browser.run("return told") for part in re.findall(r"Uploading: ([0-9]+)%", told)}
            self.assertGreater(len(parts - {0, 100}), 3, parts)
        browser.follow("a.compose")
        browser.type("#files", str(more))
        browser.click("button[value=save]")
        refused = "with attachments it can have at most 38 MB"
        until(lambda: refused in browser.text(), ANSWER_SECONDS, refused)
        self.log_in("grace")
        self.open(subject)
        browser.click(".attachments a")
        self.assertSame(browser.downloaded(file.name), content, "the file")

    def test_deleted_messages_stay_in_trash_until_deleted_forever(self):
        subject = self.deliver("Thrown")
        self.log_in("ada")
        browser = self.browser
        self.choose(subject)
        browser.follow("button[value=trash]")
        self.assertIn("Message moved to Trash.", browser.text(".notice"))
        self.box("Trash")
        self.choose(subject)
        browser.click(".erase summary")
        browser.follow("button[value=erase]")
        self.assertIn("Message deleted forever.", browser.text(".notice"))
        self.box("Trash")
        self.assertFalse(browser.is_there(row(subject)))
        subjects = [self.deliver("Emptied") for _ in range(2)]
        self.box("Inbox")
        for subject in subjects:
            self.choose(subject)
        browser.follow("button[value=trash]")
        self.box("Trash")
        browser.click(".erase summary")
        browser.follow("button[value=empty-trash]")
        self.assertIn("messages deleted forever.", browser.text(".notice"))
        self.assertIn("No messages.", browser.text("main"))

    def test_a_message_source_is_shown_and_downloaded(self):
        subject = self.deliver("Source")
        self.log_in("ada")
        self.open(subject)
        browser = self.browser
        here = browser.address
        browser.click(".more summary")
        browser.follow("//a[.='View source']")
        self.assertIn(f"Subject: {subject}", browser.text())
        browser.go(here)
        browser.click(".more summary")
        browser.click("//a[.='Download']")
        name = f"message-{browser.attribute('form.bar input[name=key]', 'value')}.eml"
        self.assertIn(f"Subject: {subject}".encode(), browser.downloaded(name))

    def test_an_exported_mailbox_is_read_by_python(self):
        lines = "From here on\r\n>From there\r\n\r\nFrom\r\n"
        subjects = [self.deliver("Taken along", lines * count, to="grace") for count in (1, 100, 20_000)]
        self.log_in("grace")
        browser = self.browser
        keys = [browser.attribute(row(subject, "//input[@name='key']"), "value") for subject in subjects]
        browser.go(self.address("/mail/boxes"))
        browser.click("//section//a[.='Inbox']")
        file = self.folder / "Inbox.mbox"
        file.write_bytes(browser.downloaded("Inbox.mbox"))
        box = mailbox.mbox(file)
        found = {message["Subject"]: key for key, message in box.items()}
        for subject, key in zip(subjects, keys):
            stored = self.fetch(f"/mail/download/{key}", browser.cookies())[1]
            taken = re.sub(rb"(?m)^>(>*From )", rb"\1", box.get_bytes(found[subject])).replace(b"\n", b"\r\n")
            self.assertSame(taken, stored, "the message")

    def test_a_composed_message_survives_the_end_of_its_session(self):
        subject = self.unique("Kept")
        self.log_in("ada")
        browser = self.browser
        browser.follow("a.compose")
        browser.type("#to", f"ada@{DOMAIN}")
        browser.type("#subject", subject)
        browser.type("#text", "It took an hour to write.")
        self.log_out_elsewhere()
        browser.follow("button[value=send]")
        self.assertIn("Your message is kept", browser.text("main"))
        self.submit_login("ada")
        self.assertEqual(browser.value("#subject"), subject)
        self.assertIn("It took an hour to write.", browser.value("#text"))
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))

    def test_a_search_finds_a_message_by_its_subject(self):
        subject, other = self.deliver("Wanted"), self.deliver("Unwanted")
        self.log_in("ada")
        browser = self.browser
        browser.type("#search", f'subject:"{subject}"')
        browser.follow("form.search button")
        self.assertTrue(browser.is_there(row(subject)))
        self.assertFalse(browser.is_there(row(other)))
        self.open(subject)
        self.assertEqual(browser.text("h1.subject"), subject)

    def test_the_back_button_shows_no_page_after_the_logout(self):
        subjects = [self.deliver(name) for name in ("Private", "Secret")]
        self.log_in("ada")
        browser = self.browser
        for subject in subjects:
            self.open(subject)
            browser.follow("a.back")
        browser.click(".account summary")
        browser.follow("//button[.='Sign out']")
        self.assertEqual(browser.address, self.address("/mail/login"))
        for _ in range(5):
            browser.back()
            for subject in subjects:
                self.assertNotIn(subject, browser.source)
                self.assertNotIn(subject, browser.title)
        browser.go(self.address("/mail/box/1"))
        self.assertTrue(browser.is_there("#password"))

    def test_settings_apply_at_once_and_to_new_messages(self):
        self.log_in("grace")
        browser = self.browser
        browser.click(".account summary")
        browser.follow("//a[.='Settings']")
        self.assertIn("this device", browser.text("ul.lines"))
        browser.write("#name", "Grace Höpper")
        browser.write("#signature", "Grace\nAdmiral")
        self.assertEqual(browser.value("#hold"), "0")
        browser.click("//select[@id='theme']/option[.='Dark']")
        browser.follow("button[value=save]")
        self.assertIn("Settings saved.", browser.text(".notice"))
        self.assertEqual(browser.attribute("html", "data-theme"), "dark")
        self.assertEqual(browser.value("#name"), "Grace Höpper")
        subject = self.unique("Signed")
        browser.follow("a.compose")
        self.assertIn("-- \nGrace\nAdmiral", browser.value("#text"))
        browser.type("#to", f"ada@{DOMAIN}")
        browser.type("#subject", subject)
        browser.follow("button[value=send]")
        self.log_in("ada")
        self.assertIn("Grace Höpper", browser.text(row(subject)))
        self.assertEqual(browser.attribute("html", "data-theme"), "auto")

    def test_all_other_sessions_can_be_ended(self):
        self.log_in("ada")
        browser = self.browser
        elsewhere = browser.cookies()
        self.log_in("ada")
        browser.go(self.address("/mail/settings"))
        browser.follow("button[value=end-others]")
        self.assertIn("All other sessions were signed out.", browser.text(".notice"))
        self.assertFalse(browser.is_there("ul.lines button"))
        self.assertIn('name="password"', self.ask("/mail/box/1", elsewhere))


class DeskWithScripts(Reading, Filing, Reader):
    pass


class DeskWithoutScripts(Reading, Filing, Reader):
    scripts = False


class PhoneWithScripts(Reading, Filing, Reader):
    screen = PHONE


class PhoneWithoutScripts(Reading, Filing, Reader):
    scripts, screen = False, PHONE


if __name__ == "__main__":
    barepost.main()
