"""The promise: the machine serves exactly the files of a folder over HTTP/1.1, as browsers and curl request them.

curl, h2load and Python's http.client fetch files plain, compressed, in part, and with conditions. A large file comes back
exact, also with slow and fast readers at the same time. An ambiguous request is refused and ends the connection. The
access log shows requests if it is configured.

It takes half a minute under TCG.
"""

import gzip
import hashlib
import http.client
import random
import re
import socket
import subprocess
import threading

import barepost
from barepost import options
from processes import die_with_us, program

HTTP = 80
PAGE = "<!doctype html><title>Page</title>" + "<p>All work and no play makes Jack a dull boy.</p>\n" * 200
LARGE_BYTES = 8 << 20


def site(folder):
    """Writes files of several kinds into `folder`. Returns the bytes of the large file."""
    large = random.Random(options.seed).randbytes(LARGE_BYTES)
    for name, content in {
        "index.html": PAGE.encode(), "docs/index.html": b"docs", "404.html": b"<h1>Lost</h1>", "large.bin": large, "a b.txt": b"spaced",
        ".secret": b"secret", ".well-known/security.txt": b"Contact: mailto:a@b\n",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return large


class Web(barepost.Test):
    configuration = barepost.CONFIGURATION + barepost.ACCESS + '[web]\nsite = "pages"\naccess_log = true\n'

    def setUp(self):
        super().setUp()
        data = self.data()
        self.large = site(data / "pages")
        self.machine = self.boot(data)
        self.port = self.machine.ports + HTTP

    def get(self, path, method="GET", **fields):
        """Sends a request with Python's own client. Returns status, fields and body of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in fields.items()})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def curl(self, path, *arguments):
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--max-time", "60", *arguments, f"http://127.0.0.1:{self.port}{path}"],
            stdout=subprocess.PIPE, timeout=90, preexec_fn=die_with_us, check=True,
        )
        return done.stdout

    def say(self, text):
        """Sends raw bytes. Returns all bytes until the server closes, or sends nothing for a second."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(text)
            connection.settimeout(2)
            heard = b""
            try:
                while piece := connection.recv(65536):
                    heard += piece
            except TimeoutError:
                return heard, "open"
            return heard, "closed"

    def test_a_site_is_served_as_clients_ask_for_it(self):
        self.assertEqual(self.curl("/"), PAGE.encode())
        self.assertEqual(self.curl("/", "--compressed"), PAGE.encode())
        status, fields, packed = self.get("/", Accept_Encoding="gzip")
        self.assertEqual((status, fields["Content-Encoding"], gzip.decompress(packed)), (200, "gzip", PAGE.encode()))
        self.assertLess(len(packed), len(PAGE) // 10)
        self.assertEqual(self.get("/", Accept_Encoding="gzip, br")[1]["Content-Encoding"], "br")
        self.assertEqual(self.get("/", If_None_Match=fields["ETag"], Accept_Encoding="gzip")[0], 304)
        self.assertEqual(self.get("/", If_Modified_Since=fields["Last-Modified"])[0], 304)
        self.assertEqual(self.curl("/docs", "--location"), b"docs")
        self.assertEqual(self.curl("/a%20b.txt"), b"spaced")
        self.assertEqual(self.get("/none")[::2], (404, b"<h1>Lost</h1>"))
        self.assertEqual(self.get("/.secret")[0], 404)
        self.assertEqual(self.get("/.well-known/security.txt")[0], 200)
        self.assertEqual(self.get("/", "POST", Content_Length="0")[0], 405)
        self.assertEqual(self.get("*", "OPTIONS")[0], 204)
        self.assertEqual(self.get("/", "HEAD")[::2], (200, b""))

    def test_large_files_come_back_exact_whole_and_in_parts(self):
        digest = hashlib.sha256(self.large).digest()
        found = []
        def fetch(*arguments):
            found.append(hashlib.sha256(self.curl("/large.bin", *arguments)).digest())
        readers = [threading.Thread(target=fetch, args=arguments) for arguments in ((), (), ("--limit-rate", "2M"))]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.assertEqual(found, [digest] * 3)
        for first, last in ((0, 0), (1, 70000), (LARGE_BYTES - 1, LARGE_BYTES - 1), (12345, LARGE_BYTES - 1)):
            with self.subTest(first=first, last=last):
                self.assertEqual(self.curl("/large.bin", "--range", f"{first}-{last}"), self.large[first:last + 1])

    def test_h2load_fetches_over_kept_connections_in_parallel(self):
        done = subprocess.run(
            [program("h2load"), "--h1", "--requests=400", "--clients=8", "--max-concurrent-streams=4", f"http://127.0.0.1:{self.port}/"],
            capture_output=True, text=True, timeout=120, preexec_fn=die_with_us,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("400 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout)
        self.assertIn("status codes: 400 2xx, 0 3xx, 0 4xx, 0 5xx", done.stdout)

    def test_pipelined_requests_are_answered_in_order(self):
        requests = b"".join(b"GET /%s HTTP/1.1\r\nHost: a\r\n\r\n" % path for path in (b"docs/", b"none", b"docs/", b"large.bin", b"docs/"))
        heard, state = self.say(requests)
        self.assertEqual(state, "open")
        self.assertEqual(re.findall(rb"HTTP/1\.1 (\d+)", heard), [b"200", b"404", b"200", b"200", b"200"])
        self.assertIn(self.large, heard)

    def test_what_is_ambiguous_is_refused_and_ends_the_connection(self):
        follows = b"GET /docs/ HTTP/1.1\r\nHost: a\r\n\r\n"
        for request in (
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
            b"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n",
        ):
            with self.subTest(request=request):
                heard, state = self.say(request + follows)
                self.assertEqual((re.findall(rb"HTTP/1\.1 (\d+)", heard), state), ([b"400"], "closed"))

    def test_the_access_log_tells_of_requests(self):
        self.get("/docs/?question")
        self.machine.process.wait_for_line(r'web: 10\.0\.2\.2 "GET /docs/\?question" 200 4$', 10)


class Refusing(barepost.Test):
    def test_a_site_that_is_not_there_is_told_at_once(self):
        data = self.data(configuration=barepost.CONFIGURATION + '[web]\nsite = "pages"\n')
        machine = self.start(data)
        self.assertEqual(machine.process.wait(barepost.BUILD_SECONDS), 2)
        self.assertRegex(machine.process.tail(), r"barepost\.toml.*\[web\] site: .*pages.*No such file")


if __name__ == "__main__":
    barepost.main()
