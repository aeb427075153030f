"""The promise: the screenshots in docs/figures show the current webmail. This test takes them.

They show the login page, a list, a message, a reply, and the queue, on a desktop in light colours and on a phone in dark
colours. Each is under 100 KB.
"""

import barepost
import webmail_messages
from forms import Forms
from processes import ROOT, until
from webdriver import PHONE, Screen
from webmail_queue import ADMINISTRATOR, QUEUE, WAY_SECONDS, WithHost, card, do
from webmail_reader import Reader, row

FIGURES = ROOT / "docs" / "figures"
BYTES_MAX = 100_000
DESKTOP = Screen("desktop", 1060, 640, False)
SUBJECT = "The Engine, and what it could weave"


class Pictures(WithHost, Reader):
    def take(self, name):
        for screen, is_dark in ((PHONE, True), (DESKTOP, False)):
            self.browser.resize(screen)
            self.browser.darken(is_dark)
            picture = self.browser.picture()
            self.assertLess(len(picture), BYTES_MAX, name)
            (FIGURES / f"webmail-{name}-{screen.name}.png").write_bytes(picture)

    def test_screenshots_are_taken(self):
        webmail_messages.deliver(self.machine)
        browser = self.browser
        browser.darken(False)
        browser.go(self.address("/mail/login"))
        self.take("login")
        self.log_in("ada")
        for _, subject, _, _ in webmail_messages.MESSAGES[:5]:
            self.choose(subject)
        browser.follow("button[value=read]")
        browser.follow(row("Una domanda sulle note", "//button[@name='star']"))
        self.take("list")
        self.open(SUBJECT)
        self.take("message")
        browser.follow("//a[.='Reply']")
        browser.type("#text", "Dear Charles,\n\nThursday it is.")
        self.take("compose")
        self.take_the_queue()

    def take_the_queue(self):
        """Takes the queue with messages that are retried, and with a held message."""
        browser, ada = self.browser, Forms(self.address(""), self.machine.data / "tls" / "certificate.pem", "ada")
        ada.hold(0)
        refused, held, unknown = "sofia@far.test, luigi@far.test", "editors@silent.test", "augustus@other.test"
        for recipients in (refused, held, unknown):
            self.assertIn("Message sent.", ada.post("/mail/compose", to=recipients, subject="Notes", text="It computes.", do="send"))
        self.log_in(ADMINISTRATOR)

        def is_shown(recipients, words):
            browser.go(self.address(QUEUE))
            return browser.is_there(card(recipients)) and words in browser.text(card(recipients))

        for recipients in (refused, unknown):
            until(lambda recipients=recipients: is_shown(recipients, "Last attempt"), WAY_SECONDS, f"{recipients} has been tried")
        browser.follow(do("hold", held))
        browser.go(self.address(QUEUE))
        self.take("queue")


if __name__ == "__main__":
    barepost.main()
