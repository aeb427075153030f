"""Mail over STARTTLS and STLS with curl, OpenSSL, swaks, msmtp, mpop, fetchmail and Python."""

import contextlib
import os
import poplib
import smtplib
import socket
import ssl
import subprocess

import barepost
from mail import DOMAIN, PASSWORD
from processes import die_with_us, program

ADA = f"ada@{DOMAIN}"
MESSAGE = b"From: a@elsewhere.test\r\nDate: Fri, 13 Feb 2009 23:31:30 +0000\r\nMessage-ID: <1@elsewhere.test>\r\nSubject: Secret\r\n\r\n" + b"A line of mail.\r\n" * 2000


class Mail(barepost.SharedMachineTest):
    # With this configuration no client may log in without TLS.
    configuration = barepost.CONFIGURATION + '[access]\nunthrottled_from = ["10.0.2.0/24"]\n'

    def setUp(self):
        super().setUp()
        self.certificate = self.machine.data / "tls" / "certificate.pem"
        self.smtp_port, self.pop3_port = self.machine.ports + barepost.SMTP, self.machine.ports + barepost.POP3
        self.fetch()

    def context(self):
        return ssl.create_default_context(cafile=self.certificate)

    def program(self, *arguments, text=b"", statuses=(0,)):
        environment = {**os.environ, "HOME": str(self.folder), "FETCHMAILHOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [program(str(arguments[0])), *map(str, arguments[1:])], input=text, cwd=self.folder, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, preexec_fn=die_with_us,
        )
        self.assertIn(done.returncode, statuses, f"{arguments[0]}: {done.stdout.decode('utf-8', 'replace')}")
        return done.stdout

    def pop3(self):
        """A POP3 session that has begun TLS with STLS."""
        session = poplib.POP3("localhost", self.pop3_port, timeout=60)
        self.addCleanup(session.close)
        self.assertIn("STLS", session.capa())
        self.assertRaises(poplib.error_proto, session.user, ADA)
        session.stls(self.context())
        self.assertNotIn("STLS", session.capa())
        return session

    def fetch(self):
        """Fetches and deletes all messages of Ada. Returns them."""
        session = self.pop3()
        session.user(ADA)
        session.pass_(PASSWORD)
        numbers = range(1, session.stat()[0] + 1)
        fetched = [b"\r\n".join(session.retr(number)[1]) + b"\r\n" for number in numbers]
        for number in numbers:
            session.dele(number)
        session.quit()
        return fetched

    def deliver(self):
        with smtplib.SMTP("localhost", self.smtp_port, "client.test", timeout=60) as session:
            session.starttls(context=self.context())
            self.assertEqual(session.sendmail("a@elsewhere.test", [ADA], MESSAGE), {})

    def test_python_sends_and_fetches_over_both_versions(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with self.subTest(version=version), smtplib.SMTP("localhost", self.smtp_port, "client.test", timeout=60) as session:
                context = self.context()
                context.maximum_version = context.minimum_version = version
                session.ehlo()
                self.assertTrue(session.has_extn("starttls"))
                self.assertEqual(session.starttls(context=context)[0], 220)
                session.ehlo()
                self.assertFalse(session.has_extn("starttls"))
                self.assertEqual(session.docmd("STARTTLS")[0], 503)
                self.assertEqual(session.sendmail("a@elsewhere.test", [ADA], MESSAGE), {})
                (found,) = self.fetch()
                self.assertTrue(found.endswith(MESSAGE))
                self.assertIn(b" with ESMTPS id ", found)

    def swaks(self, message, port, *arguments):
        """Sends Ada a message with swaks. Returns its output."""
        file = self.folder / "for-swaks"
        # swaks adds a line end after the message.
        file.write_bytes(message.removesuffix(b"\r\n"))
        return self.program(
            "swaks", "--server", "localhost", "--port", port, "--helo", "client.test", "--tls-verify", "--tls-ca-path", self.certificate,
            "--to", ADA, "--data", file, *arguments,
        )

    def test_common_programs_send(self):
        message = MESSAGE.replace(b"\r\n", b"\n")
        (self.folder / "message").write_bytes(MESSAGE)
        self.program(
            "msmtp", "--host=localhost", f"--port={self.smtp_port}", "--domain=client.test", "--auth=off", "--tls=on", "--tls-starttls=on",
            f"--tls-trust-file={self.certificate}", "--set-msgid-header=off", "--set-date-header=off", "--from=a@elsewhere.test", ADA, text=message,
        )
        self.program(
            "curl", "--silent", "--show-error", "--ssl-reqd", "--cacert", self.certificate, f"smtp://localhost:{self.smtp_port}/client.test",
            "--mail-from", "a@elsewhere.test", "--mail-rcpt", ADA, "--upload-file", self.folder / "message",
        )
        said = self.swaks(MESSAGE, self.smtp_port, "--tls", "--from", "a@elsewhere.test")
        self.assertIn(b"=== TLS started with cipher TLSv1.3", said)
        fetched = self.fetch()
        self.assertEqual(len(fetched), 3)
        for found in fetched:
            self.assertTrue(found.endswith(MESSAGE), found[-200:])
            self.assertIn(b" with ESMTPS id ", found)

    def test_common_programs_fetch(self):
        self.deliver()
        fetched = self.program(
            "curl", "--silent", "--show-error", "--ssl-reqd", "--cacert", self.certificate, "--user", f"{ADA}:{PASSWORD}",
            f"pop3://localhost:{self.pop3_port}/1",
        )
        self.assertTrue(fetched.endswith(MESSAGE))
        self.program(
            "mpop", "--host=localhost", f"--port={self.pop3_port}", "--tls=on", "--tls-starttls=on", f"--tls-trust-file={self.certificate}",
            "--auth=plain", f"--user={ADA}", f"--passwordeval=echo {PASSWORD}", f"--uidls-file={self.folder}/uidls", "--keep=on",
            "--received-header=off", f"--delivery=mbox,{self.folder}/box",
        )
        self.assertEqual((self.folder / "box").read_bytes().count(b"A line of mail.\n"), 2000)
        settings = self.folder / "fetchmailrc"
        settings.write_text(
            f'poll localhost protocol POP3 port {self.pop3_port} timeout 60:\n    user "{ADA}" password "{PASSWORD}" sslproto "auto" sslcertck '
            f'sslcertfile "{self.certificate}" no rewrite mda "cat >> {self.folder}/fetched"\n'
        )
        settings.chmod(0o600)
        self.program("fetchmail", "-f", settings, "--invisible", "--nosyslog", "--fetchall", "--nokeep")
        self.assertEqual((self.folder / "fetched").read_bytes().count(b"A line of mail.\n"), 2000)
        self.assertEqual(self.fetch(), [])

    def test_common_programs_send_after_a_login(self):
        submission, submissions = self.machine.ports + 587, self.machine.ports + 465
        message = MESSAGE.replace(b"a@elsewhere.test", ADA.encode())
        (self.folder / "message").write_bytes(message)
        for url in (f"smtps://localhost:{submissions}/client.test", f"smtp://localhost:{submission}/client.test"):
            for mechanism in ("PLAIN", "LOGIN"):
                self.program(
                    "curl", "--silent", "--show-error", "--ssl-reqd", "--cacert", self.certificate, "--user", f"{ADA}:{PASSWORD}",
                    "--login-options", f"AUTH={mechanism}", url, "--mail-from", ADA, "--mail-rcpt", ADA, "--upload-file", self.folder / "message",
                )
        for port, starttls in ((submissions, "off"), (submission, "on")):
            for mechanism in ("plain", "login"):
                self.program(
                    "msmtp", "--host=localhost", f"--port={port}", "--domain=client.test", f"--auth={mechanism}", f"--user={ADA}",
                    f"--passwordeval=echo {PASSWORD}", "--tls=on", f"--tls-starttls={starttls}", f"--tls-trust-file={self.certificate}",
                    "--set-msgid-header=off", "--set-date-header=off", f"--from={ADA}", ADA, text=message.replace(b"\r\n", b"\n"),
                )
        for port, tls in ((submissions, "--tls-on-connect"), (submission, "--tls")):
            for mechanism in ("PLAIN", "LOGIN"):
                # Phone keyboards add a space after a name that they complete.
                self.swaks(message, port, tls, "--from", ADA, "--auth", mechanism, "--auth-user", f"{ADA} ", "--auth-password", PASSWORD)
        with smtplib.SMTP_SSL("localhost", submissions, "client.test", timeout=60, context=self.context()) as session:
            session.ehlo()
            self.assertEqual(session.mail(ADA)[0], 530)
            self.assertRaises(smtplib.SMTPAuthenticationError, session.login, ADA, "guess")
            session.login(ADA, PASSWORD)
            self.assertEqual(session.mail(f"grace@{DOMAIN}")[0], 553)
            self.assertEqual(session.sendmail(ADA, [ADA], message), {})
            self.assertRaises(smtplib.SMTPRecipientsRefused, session.sendmail, ADA, [f"nobody@{DOMAIN}"], message)
        with smtplib.SMTP("localhost", submission, "client.test", timeout=60) as session:
            session.ehlo()
            self.assertFalse(session.has_extn("auth"))
            self.assertEqual(session.docmd("AUTH", "PLAIN AGFkYQBhZGE=")[0], 538)
        fetched = self.fetch()
        self.assertEqual(len(fetched), 13)
        for found in fetched:
            self.assertTrue(found.endswith(message), found[-200:])
            self.assertIn(b" with ESMTPSA id ", found)

    def test_scram_logins_send_and_fetch(self):
        self.fetch()
        message = MESSAGE.replace(b"a@elsewhere.test", ADA.encode())
        common = ("--auth=scram-sha-256", f"--tls-trust-file={self.certificate}", "--tls=on")

        def send(port, starttls, password, statuses=(0,)):
            return self.program(
                "msmtp", "--host=localhost", f"--port={self.machine.ports + port}", "--domain=client.test", *common, f"--user={ADA}",
                f"--passwordeval=echo {password}", f"--tls-starttls={starttls}", "--set-msgid-header=off", "--set-date-header=off",
                f"--from={ADA}", ADA, text=message.replace(b"\r\n", b"\n"), statuses=statuses,
            )

        send(465, "off", PASSWORD)
        send(587, "on", PASSWORD)
        self.assertIn(b"535 5.7.8", send(587, "on", "guess", statuses=(77,)))
        for number, (port, starttls) in enumerate(((995, "off"), (110, "on"))):
            self.program(
                "mpop", "--host=localhost", f"--port={self.machine.ports + port}", *common, f"--tls-starttls={starttls}", f"--user={ADA}",
                f"--passwordeval=echo {PASSWORD}", f"--uidls-file={self.folder}/uidls-{number}", "--keep=on", "--received-header=off",
                f"--delivery=mbox,{self.folder}/box-{number}",
            )
            self.assertEqual((self.folder / f"box-{number}").read_bytes().count(b"A line of mail.\n"), 4000)
        fetched = self.fetch()
        self.assertEqual(len(fetched), 2)
        for found in fetched:
            self.assertTrue(found.endswith(message), found[-200:])
            self.assertIn(b" with ESMTPSA id ", found)

    def test_openssl_finds_tls_behind_the_command(self):
        for protocol, port in (("smtp", self.smtp_port), ("pop3", self.pop3_port)):
            for version in ("-tls1_2", "-tls1_3"):
                with self.subTest(protocol=protocol, version=version):
                    said = self.program(
                        "openssl", "s_client", "-starttls", protocol, "-connect", f"localhost:{port}", "-CAfile", self.certificate, version,
                    )
                    self.assertIn(b"Verify return code: 0 (ok)", said)

    def test_what_was_typed_before_the_handshake_is_never_obeyed(self):
        injected = (b"", b"NOOP\r\nNOOP\r\n", b"EHLO thief.test\r\nMAIL FROM:<thief@elsewhere.test>\r\n", b"USER ada\r\nQUIT\r\n")
        for command, port in ((b"STARTTLS", self.smtp_port), (b"STLS", self.pop3_port)):
            for words in injected:
                with self.subTest(command=command, words=words), contextlib.ExitStack() as stack:
                    plain = stack.enter_context(socket.create_connection(("localhost", port), 30))
                    while not plain.recv(4096).endswith(b"\r\n"):
                        pass
                    plain.sendall(command + b"\r\n" + words)
                    self.assertIn(plain.recv(4096), (b"220 2.0.0 Ready to start TLS\r\n", b"+OK Begin TLS negotiation\r\n"))
                    talk = stack.enter_context(self.context().wrap_socket(plain, server_hostname="localhost"))
                    talk.sendall(b"NOOP\r\nQUIT\r\n")
                    heard = b""
                    while piece := talk.recv(4096):
                        heard += piece
                    expected = b"250 2.0.0 OK\r\n221 2.0.0 Bye\r\n" if port == self.smtp_port else b"-ERR Log in first\r\n+OK Bye\r\n"
                    self.assertEqual(heard, expected)
