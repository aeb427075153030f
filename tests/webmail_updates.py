"""Live updates: open pages show changes of mail. A part of `webmail.py`."""

from processes import until
from webdriver import ANSWER_SECONDS
from webmail_reader import Reader, row

COUNT = "return Number(document.querySelector('nav.side a[href=\"/mail/box/1\"] .count')?.firstChild.data ?? 0)"


class Updates(Reader):
    def test_a_new_message_appears_on_open_pages(self):
        first = self.deliver("First")
        self.log_in("ada")
        browser = self.browser
        browser.run("window.mark = 1")
        unread = browser.run(COUNT)
        self.choose(first)
        second = self.deliver("Second")
        until(lambda: browser.is_there(row(second)), ANSWER_SECONDS, "the message appears")
        until(lambda: browser.run(COUNT) == unread + 1, ANSWER_SECONDS, "it is counted")
        until(lambda: browser.title.startswith(f"({unread + 1}) Inbox"), ANSWER_SECONDS, "the title counts it")
        said = "return document.querySelector('body > p[role=status]').textContent"
        until(lambda: second in browser.run(said), ANSWER_SECONDS, "screen readers announce it")
        self.assertTrue(browser.run("return document.querySelector('.row :checked') !== null"), "the selection stays")
        browser.follow("a.compose")
        browser.type("#text", "Undisturbed.")
        self.deliver("Third")
        until(lambda: browser.run(COUNT) == unread + 2, ANSWER_SECONDS, "other pages count it, too")
        self.assertEqual(browser.value("#text").strip(), "Undisturbed.")
        self.assertEqual(browser.run("return window.mark"), 1, "nothing was loaded")

    def test_an_unreachable_server_leaves_the_page_as_it_is(self):
        subject = self.deliver("Reached")
        self.log_in("ada")
        browser = self.browser
        browser.run("window.mark = 1")

        def emulate(is_offline):
            browser.devtools("Network.emulateNetworkConditions", offline=is_offline, latency=0, downloadThroughput=-1, uploadThroughput=-1)

        browser.devtools("Network.enable")
        emulate(True)
        try:
            browser.click(row(subject, "//a[@class='what']"))
            until(lambda: browser.is_there("p.unreachable"), ANSWER_SECONDS, "the page says so")
            self.choose(subject)
            browser.click("button[value=archive]")
            self.assertTrue(browser.is_there(row(subject)), "the page stays")
        finally:
            emulate(False)
        browser.follow("button[value=archive]")
        self.assertIn("Message moved to Archive.", browser.text(".notice"))
        self.assertFalse(browser.is_there("p.unreachable"))
        self.assertEqual(browser.run("return window.mark"), 1, "nothing was loaded")

    def test_a_change_in_one_window_appears_in_the_other(self):
        subject = self.deliver("Elsewhere")
        self.log_in("ada")
        browser = self.browser
        first = browser.command("GET", "window")
        second = browser.command("POST", "window/new", type="tab")["handle"]
        try:
            browser.command("POST", "window", handle=second)
            browser.go(self.address("/mail/box/1"))
            self.open(subject)
            browser.follow("button[value=archive]")
            self.assertIn("Message moved to Archive.", browser.text(".notice"))
            self.assertEqual(browser.address, self.address("/mail/box/1"))
            browser.command("POST", "window", handle=first)
            browser.wait_until_gone(row(subject))
            self.assertFalse(browser.is_there(".notice"), "no notice appears in the other window")
            browser.command("POST", "window", handle=second)
            browser.follow(".notice button")
            self.assertTrue(browser.is_there(row(subject)))
            browser.command("POST", "window", handle=first)
            until(lambda: browser.is_there(row(subject)), ANSWER_SECONDS, "it is back here, too")
        finally:
            browser.command("POST", "window", handle=second)
            browser.command("DELETE", "window")
            browser.command("POST", "window", handle=first)
