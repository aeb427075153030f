"""Keyboard shortcuts and pages that change in place, which the webmail's script adds. A part of `webmail.py`."""

from mail import DOMAIN
from processes import until
from webdriver import ANSWER_SECONDS
from webmail_reader import Reader, row

FOCUSED = "const at = document.activeElement; return at.closest('li.row')?.querySelector('.subject').textContent ?? at.id ?? ''"


class Keys(Reader):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hold("ada", 0)

    def log_in(self, user):
        super().log_in(user)
        # A page that is loaded anew does not have this mark.
        self.browser.run("window.mark = 1")

    def is_same_page(self):
        return self.browser.run("return window.mark") == 1

    def assertSaid(self, words):
        """Asserts that the live region for screen readers has this text."""
        said = "return document.querySelector('body > p[role=status]').textContent"
        until(lambda: words in self.browser.run(said), ANSWER_SECONDS, words)

    def at(self):
        return self.browser.run(FOCUSED)

    def test_keys_go_through_a_list_open_a_message_and_lead_back(self):
        subjects = [self.deliver(name) for name in ("Third", "Second", "First")][::-1]
        self.log_in("ada")
        browser = self.browser
        browser.press("j", "j")
        self.assertEqual(self.at(), subjects[1])
        browser.press("k", "x")
        self.assertEqual(self.at(), subjects[0])
        self.assertEqual(browser.run("return [...document.querySelectorAll('.row :checked')].length"), 1)
        browser.press("x")
        self.assertFalse(browser.is_there(".row :checked"))
        browser.follow_keys("o")
        self.assertEqual(browser.text("h1.subject"), subjects[0])
        browser.follow_keys("j")
        self.assertEqual(browser.text("h1.subject"), subjects[1])
        browser.follow_keys("k")
        self.assertEqual(browser.text("h1.subject"), subjects[0])
        browser.follow_keys("u")
        self.assertEqual(browser.text("h1"), "Inbox")
        self.assertEqual(self.at(), subjects[0])
        browser.follow_keys("j", "j", "Enter")
        self.assertEqual(browser.text("h1.subject"), subjects[2])
        self.assertTrue(self.is_same_page())

    def test_keys_do_with_messages_what_buttons_do(self):
        subjects = [self.deliver(name) for name in ("Kept", "Archived", "Deleted", "Junk")][::-1]
        self.log_in("ada")
        browser = self.browser
        browser.press("j")
        for key, subject, words in zip("!#e", subjects, ("Junk", "Trash", "Archive")):
            browser.follow_keys(key)
            self.assertIn(f"Message moved to {words}.", browser.text(".notice"))
            self.assertSaid(f"moved to {words}.")
            self.assertFalse(browser.is_there(row(subject)))
        self.assertEqual(self.at(), subjects[3], "the next one has taken its place")
        browser.follow_keys("z")
        self.assertTrue(browser.is_there(row(subjects[2])))
        kept = row(subjects[3])
        browser.run("document.querySelector('main').focus()")
        browser.follow_keys("s")
        self.assertSaid("Starred.")
        self.assertEqual(browser.attribute(row(subjects[3], "//button[@name='star']"), "aria-pressed"), "true")
        browser.follow_keys("I")
        self.assertSaid("Marked as read.")
        self.assertNotIn("unread", browser.attribute(kept, "class"))
        browser.follow_keys("U")
        self.assertIn("unread", browser.attribute(kept, "class"))
        browser.follow_keys("o")
        browser.follow_keys("s")
        self.assertEqual(browser.attribute("main button[name=star]", "aria-pressed"), "false")
        browser.follow_keys("e")
        self.assertFalse(browser.is_there(kept))
        self.assertTrue(self.is_same_page())

    def test_keys_reply_compose_send_and_search_outside_fields(self):
        subject = self.deliver("Question")
        self.log_in("ada")
        browser = self.browser
        self.open(subject)
        for key, begins in (("f", "Fwd: "), ("a", "Re: "), ("r", "Re: ")):
            browser.follow_keys(key)
            self.assertEqual(browser.value("#subject"), begins + subject)
            browser.back()
            until(lambda: browser.is_there("h1.subject"), ANSWER_SECONDS, "back")
        browser.follow_keys("c")
        self.assertEqual(self.at(), "to", "writing begins at once")
        browser.press(*f"grace@{DOMAIN}")
        browser.type("#subject", subject)
        browser.type("#text", "cjk?#e!")
        self.assertEqual(browser.value("#text").strip(), "cjk?#e!")
        browser.follow_keys("Control+Enter")
        self.assertIn("Message sent.", browser.text(".notice"))
        browser.run("document.querySelector('main').focus()")
        browser.press("/", *subject)
        browser.follow_keys("Enter")
        self.assertEqual(browser.text("h1"), "Search results")
        self.assertTrue(browser.is_there(row(subject)))
        browser.press("/", "Escape")
        self.assertNotEqual(self.at(), "search")

    def test_g_and_another_key_open_mailboxes(self):
        self.log_in("ada")
        for key, heading, address in (
            ("t", "Sent", "/mail/box/3"), ("d", "Drafts", "/mail/box/2"), ("s", "Search results", "/mail/search?q=is%3Astarred"),
            ("a", "Search results", "/mail/search?q="), ("i", "Inbox", "/mail/box/1"),
        ):
            self.browser.follow_keys("g", key)
            self.assertEqual(self.browser.text("h1"), heading)
            self.assertEqual(self.browser.address, self.address(address))
        self.assertTrue(self.is_same_page())

    def test_the_keys_are_listed_and_can_be_turned_off(self):
        subject = self.deliver("Still")
        self.log_in("ada")
        browser = self.browser
        browser.press("j")
        self.assertEqual(self.at(), subject)
        browser.press("?")
        self.assertIn("Archive", browser.text("dialog[open]"))
        self.assertTrue(browser.run("return document.activeElement.matches('dialog button')"))
        browser.press("e", "Escape")
        browser.wait_until_gone("dialog")
        self.assertEqual(self.at(), subject, "the focus and the message are where they were")
        browser.press("?")
        browser.click("dialog input[type=checkbox]")
        browser.click("//dialog//button[.='Close']")
        browser.wait_until_gone("dialog")
        browser.press("e", "#", "?")
        self.assertFalse(browser.is_there("dialog"))
        browser.click(".account summary")
        browser.click("//button[.='Keyboard shortcuts']")
        browser.click("dialog input[type=checkbox]")
        browser.press("Escape")
        browser.wait_until_gone("dialog")
        self.assertTrue(browser.is_there(row(subject)))
        browser.press("?")
        self.assertTrue(browser.is_there("dialog[open]"))

    def test_pages_change_in_place_and_keep_the_position(self):
        subjects = [self.deliver(f"Line {number}") for number in range(25)][::-1]
        self.log_in("ada")
        browser = self.browser
        unread = browser.run("return document.title.match(/^[(]([0-9]+)[)] Inbox/)[1]")
        self.assertGreaterEqual(int(unread), len(subjects))
        self.assertEqual(browser.run("return document.querySelector('nav .count').firstChild.data"), unread)
        chosen = subjects[20]
        browser.click(row(chosen, "//input[@type='checkbox']"))
        scrolled = browser.run("return scrollY")
        self.assertGreater(scrolled, 0)
        browser.follow_keys("s")
        self.assertEqual([browser.run("return scrollY"), self.at()], [scrolled, chosen])
        browser.follow_keys("o")
        self.assertEqual(browser.run("return scrollY"), 0)
        self.assertEqual(browser.title.split(" · ")[0], f"({int(unread) - 1}) {chosen}")
        self.assertEqual(browser.run("return document.querySelector('nav .count').firstChild.data"), str(int(unread) - 1))
        here = browser.address
        browser.leave_by(browser.back, "back")
        self.assertEqual([browser.run("return scrollY"), self.at()], [scrolled, chosen])
        browser.leave_by(lambda: browser.command("POST", "forward"), "forward")
        self.assertEqual((browser.address, browser.text("h1.subject")), (here, chosen))
        self.assertTrue(self.is_same_page())
        self.log_out_elsewhere()
        browser.follow_keys("e")
        until(lambda: browser.is_there("#password"), ANSWER_SECONDS, "the browser loads a page that the script cannot show")
