"""Every part of a message is visible on its page in a browser, or listed as an attachment.

Each leaf of a message has words that no other leaf has, or a file name. Words of an alternative that was not chosen must be
hidden, and pictures that the HTML draws must have a size and not be listed.
"""

import base64

from mail import DOMAIN
from processes import until
from webdriver import ANSWER_SECONDS
from webmail_hostile import PICTURE
from webmail_reader import Reader

FILE = base64.b64encode(PICTURE).decode()


def multipart(kind, boundary, *parts):
    return f"Content-Type: multipart/{kind}; boundary={boundary}\r\n\r\n" + "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"


def text(words, kind="text/plain; charset=utf-8"):
    return f"Content-Type: {kind}\r\n\r\n{words}\r\n"


def html(words):
    return text(f"<p>{words}</p>", "text/html; charset=utf-8")


def picture(fields):
    return f"Content-Type: {fields}\r\nContent-Transfer-Encoding: base64\r\n\r\n{FILE}\r\n"


UNSEEN = picture("image/png; name=unseen.png\r\nContent-ID: <unseen@x>")
ATTACHED = "Content-Type: message/rfc822\r\n\r\nSubject: Inner\r\n\r\ninner words\r\n"
REPORT = "Reporting-MTA: dns; mx.test\r\n\r\nFinal-Recipient: rfc822; bob@far.test\r\nStatus: 5.1.10"

# The name of a message, the message, its visible words, its hidden words, its attachments and the number of drawn pictures.
MESSAGES = (
    ("two HTML parts", multipart("mixed", "m", html("first page"), picture("image/png; name=a.png"), html("second page")), ("first page", "second page"), (), ("a.png",), 0),
    ("a footer", multipart("mixed", "m", html("first page"), text("the footer")), ("first page", "the footer"), (), (), 0),
    ("alternatives", multipart("alternative", "a", text("plain words"), html("page words")), ("page words",), ("plain words",), (), 0),
    ("empty HTML", multipart("alternative", "a", text("plain words"), html(" ")), ("plain words",), (), (), 0),
    ("a calendar", multipart("alternative", "a", text("plain words"), html("page words"), text("BEGIN:VCALENDAR", "text/calendar; method=REQUEST")), ("page words",), ("VCALENDAR",), ("invite.ics",), 0),
    ("an unseen picture", multipart("related", "r", html("page words"), UNSEEN), ("page words",), (), ("unseen.png",), 0),
    ("drawn pictures", multipart("related", "r", html('see <img src="cid:my%20logo"><img src=cid:b@x>'), picture("image/x-png\r\nContent-ID: <my logo>"), picture("image/png; name=b.png\r\nContent-ID: < b@x >")), ("see",), (), (), 2),
    ("other texts", multipart("mixed", "m", text("plain words"), text("+a line", "text/x-patch"), text("a;b;c", "text/csv")), ("plain words", "+a line", "a;b;c"), (), (), 0),
    ("a report", multipart("report", "r", text("plain words"), text(REPORT, "message/delivery-status"), text("Subject: the failed one", "text/rfc822-headers")), ("plain words", "Status: 5.1.10", "the failed one"), (), (), 0),
    ("a digest", multipart("mixed", "m", text("plain words"), ATTACHED, ATTACHED), ("plain words",), ("inner words",), ("message.eml", "message (2).eml"), 0),
    ("a named body", text("<p>order 4711</p>", "text/html; name=order.htm\r\nContent-Disposition: inline"), ("order 4711",), (), ("order.htm",), 0),
    ("no boundary", "Content-Type: multipart/mixed\r\n\r\n--b\r\n\r\nstill readable\r\n", ("still readable", "damaged"), (), ("multipart.mixed",), 0),
    ("a charset of HTML", text('<meta charset="iso-8859-5"><p>\xbf\xe0\xd8</p>', "text/html"), ("При",), (), (), 0),
)


class Parts(Reader):
    def test_every_part_of_a_message_is_visible_or_listed(self):
        self.log_in("ada")
        for name, message, words, hidden, files, drawn in MESSAGES:
            with self.subTest(message=name):
                subject = self.unique(name)
                head = f"From: Charles <charles@elsewhere.test>\r\nTo: ada@{DOMAIN}\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
                self.deliver_as_it_is((head + message).encode("latin-1"))
                self.browser.go(self.address("/mail/box/1"))
                self.open(subject)
                visible, images = self.visible()
                for word in words:
                    self.assertIn(word, visible)
                for word in hidden:
                    self.assertNotIn(word, visible)
                names = self.browser.run("return [...document.querySelectorAll('.attachments [dir]')].map((name) => name.textContent)")
                self.assertEqual(tuple(names), files)
                self.assertEqual(images, drawn)

    def visible(self):
        """The text of the page and of its frames, and the number of pictures that the frames draw."""
        browser = self.browser
        visible, images = browser.text(), 0
        for number in range(len(browser.all("iframe.sheet-of-mail"))):
            # A frame is loaded when it is seen.
            browser.run("document.querySelectorAll('iframe.sheet-of-mail')[arguments[0]].scrollIntoView()", number)
            browser.enter(f"iframe.sheet-of-mail:nth-of-type({number + 1})")
            visible += until(browser.text, ANSWER_SECONDS, "the frame has a text")
            images += browser.run("return [...document.images].filter((image) => image.naturalWidth > 0).length")
            browser.leave()
        return visible, images
