"""The promise: an HTML message contacts no host and looks up no name before the user requests remote content.

This holds in Chromium and in Firefox. The machine, the browsers and a name server are in the test's own network. So a
capture of its loopback interface shows every connection and every query. Each element of a message names a different
host below `tracker.test`. On a page of our own server the same HTML makes browsers look up names and connect, which
shows that the attempts are real.

It takes two minutes under TCG; --quick, with Chromium only, takes one.
"""

import http.server
import pathlib
import socket
import struct
import subprocess
import threading
import time

import barepost
import network
import webdriver
from mail import DOMAIN, PASSWORD
from marionette import Firefox
from processes import die_with_us, program, until
from webdriver import ANSWER_SECONDS
from webmail_reader import HTTPS, NEWEST, Reader

# The addresses of trackers, all on this host. Connections to them are captured and refused.
TRACKERS = "198.51.100."
# The time that a page has to contact a host. A page without a policy needs a few tenths of a second.
SETTLE_SECONDS = 2.5

# The attempts, by the means. HOST: a name that no other attempt has.
LINKS = {
    "preconnect": '<link rel="preconnect" href="https://HOST">',
    "crossorigin": '<link rel="preconnect" href="https://HOST" crossorigin>',
    "lookup": '<link rel="dns-prefetch" href="//HOST">',
    "capitals": "<LINK\n\tREL='PreConnect dns-prefetch' HREF=//HOST/>",
    "svg": '<svg><desc><link rel="preconnect" href="https://HOST"></desc></svg>',
    "noscript": '<noscript><link rel="preconnect" href="https://HOST"></noscript>',
    "template": '<div><template shadowrootmode="open"><link rel="preconnect" href="https://HOST"></template></div>',
    "sheet": '<link rel="stylesheet" href="https://HOST/a.css">',
    "preload": '<link rel="preload" as="image" href="https://HOST/a.png">',
    "prefetch": '<link rel="prefetch" href="https://HOST/a">',
    "prerender": '<link rel="prerender" href="https://HOST/a">',
    "icon": '<link rel="icon" href="https://HOST/a.ico">',
    "manifest": '<link rel="manifest" href="https://HOST/a">',
}
FRAMES = {
    "iframe": '<iframe src="https://HOST/a"></iframe>',
    "plain": '<iframe src="http://HOST/a"></iframe>',
    "inner": "<iframe srcdoc=\"<link rel='preconnect' href='https://HOST'>\"></iframe>",
    "object": '<object data="https://HOST/a"></object>',
    "embed": '<embed src="https://HOST/a">',
    "portal": '<portal src="https://HOST/a"></portal>',
    "fenced": '<fencedframe src="https://HOST/a"></fencedframe>',
}
# Other references to remote content, which the document's policy blocks.
KEPT = {
    "picture": '<img src="https://HOST/a.png" srcset="https://HOST/b.png 2x">',
    "background": '<table background="https://HOST/a.png"><tr><td style="background: url(https://HOST/b.png)">x</table>',
    "import": "<style>@import url(https://HOST/a.css);</style>",
    "font": "<style>@font-face { font-family: z; src: url(https://HOST/a) } p { font-family: z; cursor: url(https://HOST/b), auto }</style><p>z</p>",
    "film": '<video src="https://HOST/a" poster="https://HOST/b" autoplay></video><audio src="https://HOST/c" autoplay></audio>',
    "drawing": '<svg><image href="https://HOST/a"/><use href="https://HOST/b#c"/><feImage href="https://HOST/d"/></svg>',
    "script": '<script src="https://HOST/a"></script>',
    "rules": '<script type="speculationrules">{"prefetch": [{"source": "list", "urls": ["https://HOST/a"]}]}</script>',
    "anchor": '<a href="https://HOST/a" ping="https://HOST/b" rel="dns-prefetch preconnect">x</a>',
    "form": '<form action="https://HOST/a"><input name="a" autofocus><input type="image" src="https://HOST/b"></form>',
}
# Whole documents, and elements that change the rest of a document.
DOCUMENTS = {
    "refresh": '<meta http-equiv="refresh" content="0; url=https://HOST/a">',
    "control": '<meta http-equiv="x-dns-prefetch-control" content="on"><a href="https://HOST/a">x</a>',
    "base": '<base href="https://HOST/"><a href="a">x</a><link rel="preconnect" href="/">',
    "frameset": '<frameset><frame src="https://HOST/a"></frameset>',
}
# The attempts that contact a host in each browser if no policy prevents it. The control checks them.
REAL = {"chromium": ("preconnect", "lookup", "svg", "iframe", "frameset", "refresh", "picture"), "firefox": ("preconnect", "lookup", "svg", "iframe", "frameset", "refresh", "picture")}


class Names(threading.Thread):
    """A name server at 127.0.0.1 that has an address for every tracker, and for no other name."""

    def __init__(self):
        super().__init__(daemon=True)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 53))
        self.start()

    def run(self):
        while True:
            query, client = self._socket.recvfrom(4096)
            end = query.index(b"\0", 12) + 1
            (kind,) = struct.unpack("!H", query[end:end + 2])
            is_tracker = query[12:end].lower().endswith(b"\x07tracker\x04test\0")
            answer = b""
            if is_tracker and kind == 1:
                answer = struct.pack("!HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(f"{TRACKERS}7")
            head = query[:2] + (b"\x81\x80" if is_tracker else b"\x81\x83") + struct.pack("!HHHH", 1, bool(answer), 0, 0)
            self._socket.sendto(head + query[12:end + 4] + answer, client)


class Capture:
    """The traffic on loopback, as tshark sees it: names that are looked up, and addresses that are connected to."""
            
    def __init__(self):
        self._seen, self._marks = [], 0
        wanted = "dns.flags.response == 0 or tcp.flags.syn == 1 and tcp.flags.ack == 0 or udp.dstport == 443"
        command = [program("tshark"), "-i", "lo", "-l", "-n", "-Q", "-Y", wanted, "-T", "fields", "-E", "separator=/s", "-e", "ip.dst", "-e", "dns.qry.name"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=die_with_us)
        threading.Thread(target=self._read, daemon=True).start()
        # tshark takes a while before it captures.
        until(self._try_mark, 60, "tshark listens", 0.5)

    def _read(self):
        for line in self._process.stdout:
            self._seen.append(line.split())

    def _mark(self):
        """Sends a packet that is captured after all earlier ones."""
        self._marks += 1
        name = f"mark-{self._marks}.test"
        question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0\0\1\0\1"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0" + question, ("127.0.0.1", 53))
        return name

    def _try_mark(self):
        self._mark()
        return self._seen

    def contacts(self):
        """The trackers that were looked up, and their addresses that were connected to, since the last call."""
        name = self._mark()
        until(lambda: any(name in words for words in self._seen), ANSWER_SECONDS, "the capture", 0.05)
        seen, self._seen[:] = list(self._seen), []
        found = [word for words in seen for word in words]
        return sorted({word for word in found if word.lower().endswith("tracker.test") or word.startswith(TRACKERS)})

    def close(self):
        self._process.kill()
        self._process.wait()


class Pages:
    """A server of our own, whose pages have no policy."""

    def __init__(self):
        self.pages = {}
        pages = self.pages

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = pages.get(self.path, b"")
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def with_hosts(attempts, where):
    """HTML with attempts. Each names a different host."""
    return "\n".join(html.replace("HOST", f"{what}.{where}.tracker.test") for what, html in attempts.items())


class Private:
    """The attempts in one browser."""

    in_short_form = True

    @classmethod
    def setUpClass(cls):
        if barepost.options.quick and not cls.in_short_form:
            return
        super().setUpClass()
        cls.capture = Capture()
        cls.addClassCleanup(cls.capture.close)
        cls.pages = Pages()
        cls.addClassCleanup(cls.pages.close)
        cls.browser = cls.begin_browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        if barepost.options.quick and not self.in_short_form:
            self.skipTest("the short form has Chromium alone")
        super().setUp()
        self.browser.leave()
        self.browser.go("about:blank")
        self.capture.contacts()

    def settled(self):
        """The hosts that the shown page has contacted."""
        time.sleep(SETTLE_SECONDS)
        return self.capture.contacts()

    def where(self, what):
        """A part of host names that no other page has, since browsers cache look-ups."""
        return f"{what}.{self.name}"

    def address(self, path):
        return f"https://localhost:{self.machine.ports + HTTPS}{path}"

    def log_in(self):
        """Shows the inbox, after a login if there is no session."""
        self.browser.go(self.address("/mail/login"))
        self.browser.run(
            "if (location.pathname !== '/mail/login') return; document.querySelector('#name').value = arguments[0]; document.querySelector('#password').value = arguments[1];"
            "document.querySelector('button[type=submit]').click()", f"ada@{DOMAIN}", PASSWORD,
        )
        until(lambda: self.browser.address.endswith("/mail/box/1"), ANSWER_SECONDS, "the inbox")

    def open(self, html):
        """Delivers the HTML to Ada and opens it. Returns the address of its frame's document."""
        message = (
            f"From: Charles Babbage <charles@elsewhere.test>\r\nTo: ada@{DOMAIN}\r\nSubject: {Reader.unique('Offer')}\r\nMIME-Version: 1.0\r\n"
            "Content-Type: text/html; charset=utf-8\r\n\r\n" + html.replace("\n", "\r\n") + "\r\n"
        )
        reply = self.machine.deliver("charles@elsewhere.test", [f"ada@{DOMAIN}"], message.encode())
        self.assertEqual(reply.code, 250, reply)
        self.log_in()
        self.browser.go(self.address(f"/mail/box/1/{self.browser.run(NEWEST)}"))
        return self.browser.run("return document.querySelector('iframe.sheet-of-mail').getAttribute('src')")

    def assertShown(self):
        """Asserts that the frame shows the message."""
        def is_there():
            self.browser.enter("iframe.sheet-of-mail")
            source = self.browser.source
            self.browser.leave()
            return "Harmless" in source

        until(is_there, ANSWER_SECONDS, "the message")

    def test_the_same_html_contacts_hosts_outside_the_webmail(self):
        """Control: otherwise the tests below would prove nothing."""
        for what in REAL[self.name]:
            with self.subTest(what=what):
                where = self.where("control")
                html = (LINKS | FRAMES | KEPT | DOCUMENTS)[what]
                self.pages.pages[f"/{what}"] = with_hosts({what: html}, where).encode()
                self.browser.go(f"{self.pages.address}/{what}")
                until(lambda: self.capture.contacts(), ANSWER_SECONDS, what)

    def test_an_opened_html_message_contacts_no_host(self):
        for what, attempts in {"links": LINKS, "frames": FRAMES, "kept": KEPT}.items():
            with self.subTest(what=what):
                self.open(f"<html><head>{with_hosts(attempts, self.where(what))}</head><body><p>Harmless</p></body></html>")
                self.assertShown()
                self.assertEqual(self.settled(), [], what)
        for what, html in DOCUMENTS.items():
            with self.subTest(what=what):
                self.open(f"<title>Harmless</title>{with_hosts({what: html}, self.where('document'))}")
                self.assertShown()
                self.assertEqual(self.settled(), [], what)

    def test_an_entire_long_message_contacts_no_host(self):
        # The document is sent in pieces. Each element begins at a different offset in its piece.
        parts = [f"<p>{'x' * (15_000 + 17 * number)}</p>{with_hosts({what: html}, self.where('long'))}" for number, (what, html) in enumerate((LINKS | FRAMES).items())]
        framed = self.open("<p>Harmless</p>" + "".join(parts))
        self.assertEqual(self.settled(), [], "the beginning")
        self.browser.go(self.address(framed.replace("/mail/html/", "/mail/whole/")))
        self.assertIn("Harmless", self.browser.source)
        self.assertEqual(self.settled(), [], "all of it")

    def test_a_link_of_a_message_opens_beside_it(self):
        where = self.where("link")
        link = '<a id="go" href="https://HOST/">Harmless</a>'
        for what, html in {"link": link, "base": f'<base target="_self" href="https://HOST/">{link}'}.items():
            with self.subTest(what=what):
                self.open(with_hosts({what: html}, where))
                self.assertShown()
                before = len(self.browser.windows())
                self.browser.enter("iframe.sheet-of-mail")
                self.browser.click("#go")
                self.browser.leave()
                until(lambda: len(self.browser.windows()) > before, ANSWER_SECONDS, "a window opens")
                found = until(self.capture.contacts, ANSWER_SECONDS, "the link is followed")
                self.assertIn(f"{what}.{where}.tracker.test", found)
                self.assertIn("/mail/", self.browser.address, "the page stays")

    def test_only_requested_remote_content_is_loaded(self):
        attempts = LINKS | FRAMES | {"picture": KEPT["picture"]}
        where = self.where("asked")
        self.open(f"<p>Harmless</p>{with_hosts(attempts, where)}")
        self.assertEqual(self.settled(), [])
        self.browser.run("document.querySelector('button[value=once]').click()")
        found = []
        until(lambda: found.extend(self.capture.contacts()) or found, ANSWER_SECONDS, "the picture")
        found.extend(self.settled())
        self.assertEqual({name for name in found if name.endswith("test")}, {f"picture.{where}.tracker.test"})


class InChromium(Private, barepost.SharedMachineTest):
    name = "chromium"

    @classmethod
    def begin_browser(cls):
        # On a busy host Chromium does not always finish loading a page with blocked content.
        return webdriver.Browser(cls.shared_folder / "chromium", cls.machine.data / "tls" / "certificate.pem", is_eager=True)


class InFirefox(Private, barepost.SharedMachineTest):
    name = "firefox"
    in_short_form = False

    @classmethod
    def begin_browser(cls):
        return Firefox(cls.shared_folder / "firefox")


def enter_network():
    """A network without a route out. All trackers are this host, and a name server is at 127.0.0.1."""
    network.enter()
    network.show()
    network.make_tap("outside", "203.0.113.2/24")
    network.ip("route add default via 203.0.113.1 dev outside")
    network.ip(f"route add local {TRACKERS}0/24 dev lo")
    barepost.SCRATCH.mkdir(parents=True, exist_ok=True)
    said = barepost.SCRATCH / "privacy.resolv"
    said.write_text("nameserver 127.0.0.1\n")
    subprocess.run(["mount", "--bind", said, pathlib.Path("/etc/resolv.conf").resolve()], check=True, timeout=20)
    Names()


if __name__ == "__main__":
    enter_network()
    barepost.main()
