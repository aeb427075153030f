"""A certificate is replaced while the machine serves. curl uploads it, and OpenSSL sees it on every port, at once and after
a restart."""

import subprocess

import barepost
from mail import DOMAIN, PASSWORD
from processes import die_with_us, until

HTTPS, SUBMISSIONS, POP3S = 443, 465, 995
NAME = f"mail.{DOMAIN}"
ADA, GRACE = f"ada@{DOMAIN}:{PASSWORD}", f"grace@{DOMAIN}:{PASSWORD}"


def run(*command, **how):
    return subprocess.run(command, capture_output=True, timeout=120, preexec_fn=die_with_us, **how)


class Certificates(barepost.Test):
    # With this configuration no client may log in without TLS.
    configuration = barepost.CONFIGURATION.replace("aliases", "admin = true\naliases", 1) + '[access]\nunthrottled_from = ["10.0.2.0/24"]\n'

    def setUp(self):
        super().setUp()
        self.data_folder = self.data()
        self.machine = self.boot(self.data_folder)
        self.own = self.data_folder / "tls" / "certificate.pem"

    def made(self, name, *kind):
        """Makes a certificate for the machine and its key. Returns the paths of both, and of a file with both."""
        certificate, key, both = (self.folder / f"{name}.{end}" for end in ("crt", "key", "pem"))
        names = f"subjectAltName=DNS:{NAME},DNS:localhost,DNS:{DOMAIN}"
        made = ("openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", f"/CN={name}", "-addext", names)
        self.assertEqual(run(*made, "-newkey", *kind, "-keyout", str(key), "-out", str(certificate)).returncode, 0)
        both.write_bytes(certificate.read_bytes() + key.read_bytes())
        return certificate, key, both

    def curl(self, trusted, *arguments, scheme="https", port=HTTPS, **how):
        """Sends a request with curl. Returns the status and the text of the response."""
        done = run(
            "curl", "--silent", "--show-error", "--max-time", "60", "--cacert", str(trusted), "--write-out", "%{http_code}", *arguments,
            f"{scheme}://localhost:{self.machine.ports + port}/.barepost/certificate", **how,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode()
        return int(text[-3:]), text[:-3]

    def send(self, trusted, *arguments, **how):
        """Uploads a valid certificate. Retries until the machine's clock has reached the certificate's start. Returns the text
        of the response."""
        answers = []

        def is_taken():
            answers.append(self.curl(trusted, "--user", ADA, *arguments, **how))
            return "is not valid before" not in answers[-1][1]

        until(is_taken, 30, "the certificate is valid for the machine")
        status, text = answers[-1]
        self.assertEqual(status, 200, text)
        return text

    def shown(self, port, *arguments):
        """The fingerprint of the certificate that OpenSSL gets on a port."""
        connected = run("openssl", "s_client", "-connect", f"localhost:{self.machine.ports + port}", *arguments, input=b"")
        return self.fingerprint(connected.stdout)

    def fingerprint(self, pem):
        done = run("openssl", "x509", "-noout", "-fingerprint", "-sha256", input=pem)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode().strip().split("=")[1]

    def assert_all_show(self, certificate):
        expected = self.fingerprint(certificate.read_bytes())
        for port, arguments in ((HTTPS, ()), (SUBMISSIONS, ()), (POP3S, ()), (25, ("-starttls", "smtp")), (587, ("-starttls", "smtp")), (110, ("-starttls", "pop3"))):
            with self.subTest(port=port):
                self.assertEqual(self.shown(port, *arguments), expected)
        return expected

    def test_an_uploaded_certificate_is_served_on_every_port(self):
        certificate, _, both = self.made("first", "rsa:2048")
        first = certificate
        self.assert_all_show(self.own)
        text = self.send(self.own, "--upload-file", str(both))
        expected = self.assert_all_show(first)
        self.assertIn(f"SHA-256: {expected}\n", text)
        self.assertEqual(self.curl(first, "--user", ADA), (200, text))
        # Certificate and key are in two files, as certbot stores them.
        second, key, _ = self.made("second", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        pair = second.read_bytes() + key.read_bytes()
        for version in ("--http1.1", "--http2"):
            self.send(first, version, "--upload-file", str(both))
            self.assertIn(f"SHA-256: {expected}\n", self.curl(certificate, "--user", ADA, version)[1])
            self.send(certificate, version, "--upload-file", "-", input=pair)
            self.assert_all_show(second)
            first = second
        self.assertEqual(self.machine.stop(), 0, self.machine.process.tail())
        status, said = barepost.fsck(self.data_folder / "disk.img")
        self.assertEqual(status, 0, said)
        self.assertIn("certificates INBOX: 1 messages", said)
        self.machine = self.boot(self.data_folder)
        self.assert_all_show(second)

    def test_refused_certificate_uploads_change_nothing(self):
        certificate, key, both = self.made("first", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")
        other = self.made("other", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")[1]
        send = ("--upload-file", str(both))
        self.assertEqual(self.curl(self.own, *send)[0], 401)
        self.assertEqual(self.curl(self.own, "--user", f"ada@{DOMAIN}:guess", *send)[0], 401)
        self.assertEqual(self.curl(self.own, "--user", GRACE, *send)[0], 403)
        self.assertEqual(self.curl(self.own, "--user", ADA, *send, scheme="http", port=80)[0], 403)
        mismatched = certificate.read_bytes() + other.read_bytes()
        slow = self.made("slow", "rsa:4096")[2].read_bytes()
        for version in ("--http1.1", "--http2"):
            for pem, expected, reason in (
                (mismatched, 422, "the private key does not belong to the certificate\n"),
                (certificate.read_bytes(), 422, "the file contains no private key\n"),
                (b"garbage", 422, "the file contains no certificate\n"),
                (slow, 422, "the RSA key has more than 3072 bits"),
                (b"x" * 40_000, 413, "413 Content Too Large\n"),
            ):
                with self.subTest(version=version, reason=reason):
                    status, text = self.curl(self.own, "--user", ADA, version, "--upload-file", "-", input=pem)
                    self.assertEqual(status, expected, text)
                    self.assertTrue(text.startswith(reason), text)
        self.assert_all_show(self.own)
