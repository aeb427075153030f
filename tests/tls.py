"""The promise: curl, OpenSSL, nghttp, h2load, msmtp, mpop, fetchmail and Python get pages and mail over TLS 1.3 and 1.2,
and invalid TLS does no harm.

Clients trust the machine's own certificate by its file, and the machine uses it at each start. A certificate that
barepost.toml names is used instead. A large file comes back exact. Session tickets save a signature. Stalled handshakes
do not block others, and time out. A certificate that an administrator uploads replaces the one before.

It takes three minutes under TCG.
"""

import contextlib
import poplib
import random
import re
import socket
import ssl
import subprocess

import barepost
from barepost import options
from mail import DOMAIN, PASSWORD
from processes import die_with_us, program, until

# Parts of this test in other files. An import makes unittest find and run their test cases.
from tls_certificates import Certificates
from tls_mail import Mail

HTTPS, POP3S = 443, 995
LARGE_BYTES = 4 << 20

# With this configuration no client may log in without TLS.
CONFIGURATION = barepost.CONFIGURATION + '[web]\nsite = "pages"\n[access]\nunthrottled_from = ["10.0.2.0/24"]\n'


def site(data):
    """Writes the files of a site into the data folder. Returns the bytes of the large file."""
    large = random.Random(options.seed).randbytes(LARGE_BYTES)
    (data / "pages").mkdir()
    (data / "pages" / "index.html").write_bytes(b"Index")
    (data / "pages" / "large.bin").write_bytes(large)
    return large


def run(*command, **how):
    return subprocess.run(command, capture_output=True, timeout=120, preexec_fn=die_with_us, **how)


class Tls(barepost.Test):
    configuration = CONFIGURATION

    def setUp(self):
        super().setUp()
        data = self.data()
        self.large = site(data)
        self.machine = self.boot(data)
        self.https, self.pop3s = self.machine.ports + HTTPS, self.machine.ports + POP3S
        self.certificate = data / "tls" / "certificate.pem"

    def curl(self, path, *arguments):
        done = run(
            "curl", "--silent", "--show-error", "--max-time", "100", "--cacert", str(self.certificate), *arguments,
            f"https://localhost:{self.https}{path}",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def s_client(self, *arguments):
        """The output of OpenSSL about a connection without application data."""
        done = run(
            "openssl", "s_client", "-connect", f"localhost:{self.https}", "-CAfile", str(self.certificate), *arguments, input=b"",
        )
        return done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")

    def context(self):
        return ssl.create_default_context(cafile=self.certificate)

    def test_curl_fetches_a_large_file_over_both_versions(self):
        for version in ("1.2", "1.3"):
            with self.subTest(version=version):
                arguments = (f"--tlsv{version}", "--tls-max", version)
                self.assertEqual(self.curl("/", *arguments), b"Index")
                self.assertTrue(self.curl("/large.bin", *arguments) == self.large)

    def test_curl_fetches_a_large_file_over_http_2(self):
        version = ("--write-out", "%{http_version}")
        self.assertEqual(self.curl("/", "--http2", *version), b"Index2")
        self.assertEqual(self.curl("/", "--http1.1", *version), b"Index1.1")
        self.assertTrue(self.curl("/large.bin", "--http2") == self.large)
        self.assertEqual(self.curl("/large.bin", "--http2", "--range", "70000-140000"), self.large[70000:140001])
        self.assertEqual(self.curl("/", "--http2", "--data", "a=b", "--write-out", " %{http_code}"), b"405 Method Not Allowed\n 405")

    def test_nghttp_fetches_many_pages_on_one_connection(self):
        address = f"https://localhost:{self.https}"
        done = run(program("nghttp"), "--no-verify-peer", "--stat", "--null-out", "--multiply=30", f"{address}/", f"{address}/none", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        # Each line of the table ends with status, size and path.
        found = re.findall(r" (\d{3}) +\S+ /(none)?$", done.stdout, re.MULTILINE)
        self.assertEqual(sorted(found), [("200", "")] * 30 + [("404", "none")] * 30, done.stdout)

    def test_h2load_fetches_over_http_2_many_streams_at_once(self):
        arguments = ("--requests=2000", "--clients=4", "--max-concurrent-streams=50", f"https://localhost:{self.https}/")
        done = run(program("h2load"), *arguments, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Application protocol: h2", done.stdout)
        self.assertIn("2000 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout)

    def test_openssl_agrees_on_each_suite_and_weak_ones_fail(self):
        for suite in ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"):
            self.assertIn(f"Cipher is {suite}", self.s_client("-tls1_2", "-cipher", suite))
        for suite in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"):
            self.assertIn(f"Cipher is {suite}", self.s_client("-tls1_3", "-ciphersuites", suite))
        for weak in (("-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"), ("-tls1_1", "-cipher", "ALL:@SECLEVEL=0")):
            with self.subTest(weak=weak):
                self.assertIn("Cipher is (NONE)", self.s_client(*weak))
        self.assertIn("alert inappropriate fallback", self.s_client("-tls1_2", "-fallback_scsv"))
        self.assertIn("Cipher is TLS_AES", self.s_client("-fallback_scsv"))
        self.assertIn("no application protocol", self.s_client("-alpn", "h3"))

    def test_a_ticket_spares_a_signature(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version=version):
                context = self.context()
                context.maximum_version = context.minimum_version = version
                session = None
                for time in range(3):
                    with socket.create_connection(("localhost", self.https), 30) as plain:
                        with context.wrap_socket(plain, server_hostname="localhost", session=session) as talk:
                            talk.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                            while talk.recv(4096):
                                pass
                            self.assertEqual(talk.session_reused, time > 0)
                            session = talk.session

    def test_both_sides_close_as_they_should(self):
        with socket.create_connection(("localhost", self.https), 30) as plain:
            with self.context().wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as talk:
                talk.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                heard = b""
                while piece := talk.recv(4096):
                    heard += piece
                self.assertTrue(heard.endswith(b"Index"), heard)
                talk.unwrap()

    def test_h2load_fetches_over_kept_connections_and_new_ones(self):
        done = run(program("h2load"), "--h1", "--requests=400", "--clients=8", f"https://localhost:{self.https}/", text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("400 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout)

    def test_users_without_plaintext_auth_fetch_over_tls(self):
        message = b"Subject: Secret\r\n\r\n" + b"A line of mail.\r\n" * 2000
        self.assertEqual(self.machine.deliver("a@elsewhere.test", [f"ada@{DOMAIN}"], message).code, 250)
        with contextlib.closing(poplib.POP3("localhost", self.machine.ports + barepost.POP3, timeout=30)) as clear:
            self.assertRaises(poplib.error_proto, clear.user, f"ada@{DOMAIN}")
        session = poplib.POP3_SSL("localhost", self.pop3s, context=self.context(), timeout=30)
        session.user(f"ada@{DOMAIN}")
        session.pass_(PASSWORD)
        lines = session.retr(1)[1]
        session.quit()
        self.assertTrue((b"\r\n".join(lines) + b"\r\n").endswith(message))

    def test_stalled_handshakes_do_not_block_others(self):
        hello = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            self.context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
        hello = hello.read()
        kept = self.context().wrap_socket(socket.create_connection(("localhost", self.https), 30), server_hostname="localhost")
        with contextlib.ExitStack() as stack:
            stack.enter_context(kept)
            for number in range(300):
                talk = stack.enter_context(socket.create_connection(("localhost", self.https), 30))
                talk.sendall((hello, hello[:1], hello[:50], b"", b"GET / HTTP/1.1\r\n\r\n", random.Random(number).randbytes(300))[number % 6])
                if number % 20 == 0:
                    kept.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                    heard = b""
                    while not heard.endswith(b"\r\n\r\nIndex"):
                        piece = kept.recv(4096)
                        self.assertTrue(piece, "the kept connection has ended")
                        heard += piece
            self.assertEqual(self.curl("/"), b"Index")
        until(lambda: self.curl("/") == b"Index", 30, "a page after all that")


class Named(barepost.Test):
    def test_a_configured_certificate_is_served_or_refused(self):
        data = self.data(configuration=barepost.CONFIGURATION + '[[tls]]\ncertificate = "own.pem"\nkey = "own.key"\n')
        made = ("openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=named.test", "-addext", "subjectAltName=DNS:named.test")
        run(*made, "-newkey", "rsa:2048", "-keyout", str(data / "own.key"), "-out", str(data / "own.pem"), check=True)
        machine = self.boot(data)
        context = ssl.create_default_context(cafile=data / "own.pem")
        with socket.create_connection(("localhost", machine.ports + HTTPS), 30) as plain:
            with context.wrap_socket(plain, server_hostname="named.test") as talk:
                self.assertEqual(talk.getpeercert()["subjectAltName"], (("DNS", "named.test"),))
        self.assertEqual(machine.stop(), 0)
        self.assertFalse((data / "tls").exists())
        run(*made, "-newkey", "rsa:4096", "-keyout", str(data / "own.key"), "-out", str(data / "own.pem"), check=True)
        refused = self.start(data)
        self.assertEqual(refused.process.wait(barepost.READY_SECONDS), 2)
        self.assertRegex(refused.process.tail(), r"barepost\.toml:\d+:\d+: \[\[tls\]\] .*own\.key: the RSA key has more than 3072 bits")


if __name__ == "__main__":
    barepost.main()
