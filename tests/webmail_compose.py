"""The compose page: automatic saving, dropped files, and text that survives failures. A part of `webmail_sending.py`."""

import base64
import random

from barepost import options
from mail import DOMAIN
from processes import until
from webdriver import ANSWER_SECONDS
from webmail_reader import Reader, row

FILE_BYTES = 200_000
# A script that drops a file on the text, as a desktop does. Its arguments are the name and the bytes of the file.
DROP = """
const [name, base64] = arguments;
const carried = new DataTransfer();
carried.items.add(new File([Uint8Array.from(atob(base64), one => one.charCodeAt(0))], name));
for (const kind of ["dragover", "drop"]) {
  document.querySelector("#text").dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
}
"""
# A script after which no request of the page gets a response.
CUT = """
window.whole = XMLHttpRequest.prototype.send;
XMLHttpRequest.prototype.send = function () { setTimeout(() => this.dispatchEvent(new Event("error"))); };
"""
# A script that returns whether the browser would ask before it leaves the page.
ASKS = "const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event); return event.defaultPrevented"


class Compose(Reader):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hold("ada", 0)

    def begin(self, name):
        """Begins a message. Returns its subject."""
        subject = self.unique(name)
        self.log_in("ada")
        self.browser.follow("a.compose")
        self.browser.type("#to", f"grace@{DOMAIN}")
        self.browser.type("#subject", subject)
        return subject

    def assertTold(self, words):
        until(lambda: words in self.browser.text(".kept"), ANSWER_SECONDS, words)

    def drafts(self, subject):
        self.browser.go(self.address("/mail/box/2"))
        return len(self.browser.all(row(subject)))

    def test_a_message_is_saved_automatically_as_one_draft(self):
        subject = self.begin("Kept")
        browser = self.browser
        for word in ("First. ", "Second. "):
            browser.type("#text", word)
            self.assertTrue(browser.run(ASKS))
            self.assertTold("Draft saved at ")
            until(lambda: not browser.run(ASKS), ANSWER_SECONDS, "it is saved")
        self.assertRegex(browser.text(".kept"), r"^Draft saved at [0-2][0-9]:[0-5][0-9]\.$")
        self.assertEqual(self.drafts(subject), 1)
        self.open(subject)
        self.assertEqual(browser.value("#text").strip(), "First. Second.")
        browser.type("#text", "Third.")
        browser.follow("a.brand")
        self.open_draft(subject)
        self.assertIn("Third.", browser.value("#text"), "leaving the page loses no text")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.assertEqual(self.drafts(subject), 0)

    def open_draft(self, subject):
        self.box("Drafts")
        self.open(subject)

    def test_a_message_that_cannot_be_saved_stays_on_the_page(self):
        subject = self.begin("Stays")
        browser = self.browser
        browser.run(CUT)
        browser.type("#text", "It took an hour.")
        self.assertTold("The server is not responding.")
        browser.click("button[value=send]")
        self.assertTold("Request failed.")
        browser.run("XMLHttpRequest.prototype.send = window.whole")
        self.log_out_elsewhere()
        browser.type("#text", " Or two.")
        self.assertTold("Your session has ended.")
        self.assertEqual(browser.attribute(".kept a", "href"), "/mail/login")
        self.assertTrue(browser.run(ASKS))
        self.log_in_elsewhere("ada")
        browser.type("#text", " Or three.")
        self.assertTold("Draft saved at ")
        self.assertEqual(browser.value("#text").strip(), "It took an hour. Or two. Or three.")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.assertEqual(self.drafts(subject), 0)

    def test_a_dropped_file_is_attached_and_survives_a_refusal(self):
        content = random.Random(options.seed).randbytes(FILE_BYTES)
        subject = self.begin("Dropped")
        browser = self.browser
        for name in ("dropped.bin", "too much.bin"):
            browser.run(DROP, name, base64.b64encode(content).decode())
        self.assertIn("200 KB", browser.text("ul.chosen"))
        browser.click("//ul[@class='attachments chosen']/li[2]/button")
        self.assertNotIn("too much", browser.text("ul.chosen"))
        browser.write("#to", f"bob@{DOMAIN}")
        browser.follow("button[value=send]")
        self.assertIn(f"bob@{DOMAIN}", browser.text(".notice.error"))
        self.assertNotIn("Attach your files again", browser.text(".notice.error"))
        self.assertIn("dropped.bin", browser.text("ul.attachments"))
        self.assertFalse(browser.is_there("ul.chosen"), "it is saved with the draft")
        browser.write("#to", f"grace@{DOMAIN}")
        browser.follow("button[value=send]")
        self.assertIn("Message sent.", browser.text(".notice"))
        self.log_in("grace")
        self.open(subject)
        browser.click(".attachments a")
        self.assertSame(browser.downloaded("dropped.bin"), content, "the file")
