"""The promise: the pictures of the webmail in docs/figures are of the webmail as it is: this makes them anew.

At a desk in light colours, and on a phone in dark ones: the page to log in, a list, a message, and a letter that is answered. Each is under 100 KB.
"""

import barepost
import webmail_letters
from processes import ROOT
from webdriver import PHONE, Screen
from webmail_reader import Reader, row

FIGURES = ROOT / "docs" / "figures"
BYTES_MAX = 100_000
DESKTOP = Screen("desktop", 1060, 640, False)
SUBJECT = "The Engine, and what it could weave"


class Pictures(Reader):
    def take(self, name):
        for screen, is_dark in ((PHONE, True), (DESKTOP, False)):
            self.browser.resize(screen)
            self.browser.darken(is_dark)
            picture = self.browser.picture()
            self.assertLess(len(picture), BYTES_MAX, name)
            (FIGURES / f"webmail-{name}-{screen.name}.png").write_bytes(picture)

    def test_the_pictures_are_made(self):
        webmail_letters.deliver(self.machine)
        browser = self.browser
        browser.darken(False)
        browser.go(self.address("/mail/login"))
        self.take("login")
        self.log_in("ada")
        for _, subject, _, _ in webmail_letters.LETTERS[:5]:
            self.choose(subject)
        browser.follow("button[value=read]")
        browser.follow(row("Una domanda sulle note", "//button[@name='star']"))
        self.take("list")
        self.open(SUBJECT)
        self.take("message")
        browser.follow("//a[.='Reply']")
        browser.type("#text", "Dear Charles,\n\nThursday it is.")
        self.take("compose")


if __name__ == "__main__":
    barepost.main()
