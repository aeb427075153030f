"""The promise: our DKIM and dkimpy verify each other's signatures, and neither verifies a changed message.

The same holds for the chains of forwarders (ARC). A machine signs submitted messages with all keys that `./barepost dns`
publishes.

Messages have folded and repeated fields, empty bodies, and blank lines at the end. dkimpy or our crate `dkim` signs
them, and the other one verifies them, cut into pieces anywhere. Then both verify them with one changed byte, and with
more white space. Both seal chains in turn. smtplib submits messages, and dkimpy verifies them as POP3 returns them.

It takes some ten seconds. --quick runs the same tests.
"""

import base64
import collections
import logging
import random
import re
import smtplib
import subprocess
import time

import barepost
import signatures
from mail import DOMAIN as OURS, PASSWORD
from processes import ROOT, die_with_us
from signatures import dkim

MESSAGES = 300
CHAINS = 100
DOMAIN, SELECTOR = "example.test", "key"
FORMS = (b"simple", b"relaxed")
NAMES = ("From", "to", "CC", "Subject", "Date", "Message-ID", "X-Y", "Received", "References")
WORDS = ("dinner", " ", "  ", "\t", "\r\n ", "\r\n\t ", "a", ";", "b=", "\u00fc", "=20", ":")
LINES = ("", " ", "\t ", "Hi.", " Hi. ", "a  b\tc \t", ".", "From here", "\u00fc" * 9, "x" * 200)
KEYS = ROOT / "engine" / "dkim" / "src" / "tests"
# RFC 8463, appendix A.1.
ED25519 = b"nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
ED25519_RECORD = b"v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
ED25519_PKCS8 = bytes.fromhex("302e020100300506032b657004220420") + base64.b64decode(ED25519)


def public(name):
    """The DKIM record for an RSA key. OpenSSL extracts the public key."""
    command = ["openssl", "pkey", "-in", KEYS / name, "-pubout", "-outform", "DER"]
    return b"v=DKIM1; p=" + base64.b64encode(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def message(chances):
    """An unusual but valid message."""
    fields = ["From: Ada <ada@example.test>\r\n"]
    for _ in range(chances.randrange(12)):
        value = "".join(chances.choices(WORDS, k=chances.randrange(8)))
        fields.insert(chances.randrange(len(fields) + 1), f"{chances.choice(NAMES)}:{value}\r\n")
    lines = chances.choices(LINES, k=chances.choice((0, 0, 1, 3, 12))) + [""] * chances.choice((0, 0, 1, 4))
    return ("".join(fields) + "\r\n" + "".join(line + "\r\n" for line in lines)).encode()


def authors(data):
    """The number of `From` fields."""
    return sum(line.startswith(b"From:") for line in data.partition(b"\r\n\r\n")[0].split(b"\r\n"))


def pieces(data, chances):
    cuts = sorted(chances.choices(range(len(data) + 1), k=chances.randrange(9)))
    return [data[start:end].hex() for start, end in zip([0, *cuts], [*cuts, len(data)])]


def with_other_byte(data, chances):
    """The message with one changed byte. CRs and LFs do not change."""
    place = chances.choice([place for place, byte in enumerate(data) if byte not in b"\r\n"])
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def with_more_space(data, chances):
    """The message with more white space."""
    place = chances.choice([place for place, byte in enumerate(data) if byte != ord("\n")])
    return data[:place] + chances.choice((b" ", b"\t", b"  ", b"\r\n ")) + data[place:]


def as_dkimpy_says(data, record):
    """Whether the signature passes with dkimpy. `None` if dkimpy can't read the message, or confuses a field that has a
    space after its name with the first line of a mailbox file."""
    if re.search(rb"^From[ \t]", data.partition(b"\r\n\r\n")[0], re.MULTILINE):
        return None
    try:
        return dkim.verify(data, dnsfunc=lambda name, timeout=5: record, logger=logging.getLogger("silent"))
    except dkim.MessageFormatError:
        return None


def chain_as_dkimpy_says(data, record):
    """Whether the ARC chain passes with dkimpy. `None` if dkimpy can't read the message."""
    if re.search(rb"^From[ \t]", data.partition(b"\r\n\r\n")[0], re.MULTILINE):
        return None
    try:
        found, _, _ = dkim.ARC(data, logger=logging.getLogger("silent")).verify(dnsfunc=lambda name, timeout=5: record)
        return found == dkim.CV_Pass
    except dkim.MessageFormatError:
        return None
    except dkim.DKIMException:
        return False


class Signatures(barepost.Test):
    def setUp(self):
        super().setUp()
        logging.getLogger("silent").addHandler(logging.NullHandler())
        logging.getLogger("silent").propagate = False
        self.compared = collections.Counter()
        command = ["cargo", "run", "--quiet", "--offline", "-p", "dkim", "--example", "check", "--target-dir", "target"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.checker = self.enterContext(subprocess.Popen(command, cwd=ROOT, preexec_fn=die_with_us, **pipes))

    def ask(self, *fields):
        self.checker.stdin.write(("\t".join(fields) + "\n").encode())
        self.checker.stdin.flush()
        return self.checker.stdout.readline().decode().rstrip("\n").split("\t")

    def verdict(self, data, record, chances, what="verify"):
        said, *fields = self.ask(what, str(int(time.time())), *pieces(data, chances))
        while said == "ask":
            # A changed byte may change the name of the key. The answer is the same record for any name.
            self.assertIn("._domainkey.", fields[0])
            said, *fields = self.ask("records", record.hex())
        self.assertEqual((said, len(fields)), ("verdicts", 1))
        return fields[0].split(" ")[0]

    def judge(self, field, data, record, chances):
        """Compares both verifiers. The signed message passes with both. With a changed signature field it must not pass.
        With a change in the message, both must agree."""
        self.assertEqual(self.verdict(field + data, record, chances), "dkim=pass", field + data)
        self.assertIs(as_dkimpy_says(field + data, record), True, field + data)
        other = with_other_byte(field, chances) + data
        self.assertNotEqual(self.verdict(other, record, chances), "dkim=pass", other)
        for change in (with_other_byte, with_more_space):
            other = field + change(data, chances)
            passes = self.verdict(other, record, chances) == "dkim=pass"
            if (expected := as_dkimpy_says(other, record)) is not None:
                # Text after the part that `l=` covers is accepted by dkimpy, and refused by our verifier.
                compare = self.assertLessEqual if b" l=" in field else self.assertEqual
                compare(passes, expected, other)
                self.compared[change, passes] += 1

    def test_dkim_signatures_of_dkimpy_verify(self):
        keys = [(b"ed25519-sha256", ED25519, ED25519_RECORD)]
        for name in ("rsa_1024.pem", "rsa_2048.pem"):
            keys.append((b"rsa-sha256", (KEYS / name).read_bytes(), public(name)))
        for seed in range(MESSAGES):
            chances = random.Random(seed)
            data, (algorithm, key, record) = message(chances), chances.choice(keys)
            # Both require that every field `From` is signed. dkimpy does not sign `Received`.
            names = [b"from"] * authors(data)
            names += [name.encode() for name in chances.choices(NAMES, k=chances.randrange(9)) if name != "Received"]
            forms, length = (chances.choice(FORMS), chances.choice(FORMS)), chances.random() < 0.2
            with self.subTest(seed, forms=forms, algorithm=algorithm, names=names):
                field = dkim.DKIM(data).sign(
                    SELECTOR.encode(), DOMAIN.encode(), key, algorithm, canonicalize=forms, include_headers=names, length=length
                )
                self.judge(field, data, record, chances)
        self.assertEqual(len(self.compared), 4, "changes of both kinds do harm, and do none")

    def test_dkim_signatures_verify_with_dkimpy(self):
        rsa = base64.b64decode("".join((KEYS / "rsa_2048.pem").read_text().splitlines()[1:-1]))
        for seed in range(MESSAGES):
            chances = random.Random(seed)
            data, key = message(chances), chances.choice((ED25519_PKCS8, rsa))
            with self.subTest(seed):
                now = str(int(time.time()))
                said, record, field = self.ask("sign", now, key.hex(), DOMAIN, SELECTOR, *pieces(data, chances))
                self.assertEqual(said, "signed")
                self.judge(bytes.fromhex(field), data, record.encode(), chances)
        self.assertEqual(len(self.compared), 4, "changes of both kinds do harm, and do none")

    def sealed_by_dkimpy(self, data, found, chances):
        """The message with an ARC set by dkimpy above it."""
        results = b"Authentication-Results: mx.test; arc=" + found + b"; dmarc=pass header.from=example.test\r\n"
        # Our verifier requires that every field `From` is signed.
        names = [b"from"] * authors(data) + [name.encode() for name in chances.sample(("To", "Subject", "Date", "Message-ID"), k=2)]
        fields = dkim.arc_sign(
            results + data, SELECTOR.encode(), DOMAIN.encode(), self.rsa, b"mx.test", include_headers=names, timestamp=1_700_000_000
        )
        return b"".join(fields) + data

    def sealed_here(self, data, found, chances):
        results = f"mx.test;\r\n\tarc={found.decode()};\r\n\tdmarc=pass header.from=example.test".encode()
        key = base64.b64decode(b"".join(self.rsa.splitlines()[1:-1])).hex()
        asked = ("seal", "1700000000", key, DOMAIN, SELECTOR, found.decode(), results.hex(), *pieces(data, chances))
        said, _, fields = self.ask(*asked)
        self.assertEqual(said, "signed")
        return bytes.fromhex(fields) + data

    def chain(self, chances):
        """A message that was forwarded one to three times."""
        data = message(chances)
        for found in (b"none", b"pass", b"pass")[: chances.choice((1, 2, 3))]:
            data = chances.choice((self.sealed_by_dkimpy, self.sealed_here))(data, found, chances)
            data = b"Received: by mx.test\r\n" + data
        return data

    def test_arc_chains_verify_alike_here_and_with_dkimpy(self):
        self.rsa, record = (KEYS / "rsa_2048.pem").read_bytes(), public("rsa_2048.pem")
        for seed in range(CHAINS):
            chances = random.Random(seed)
            with self.subTest(seed):
                data = self.chain(chances)
                self.assertEqual(self.verdict(data, record, chances, "chain"), "arc=pass", data)
                self.assertIs(chain_as_dkimpy_says(data, record), True, data)
                for change in (with_other_byte, with_more_space):
                    other = change(data, chances)
                    passes = self.verdict(other, record, chances, "chain") == "arc=pass"
                    if (expected := chain_as_dkimpy_says(other, record)) is not None:
                        self.assertEqual(passes, expected, other)
                        self.compared[change, passes] += 1
        self.assertEqual(len(self.compared), 4, "changes of both kinds do harm, and do none")

    def test_incomplete_arc_chains_fail_here_and_with_dkimpy(self):
        self.rsa, record, chances = (KEYS / "rsa_2048.pem").read_bytes(), public("rsa_2048.pem"), random.Random(7)
        data = b"From: Ada <ada@example.test>\r\nSubject: dinner\r\n\r\nHi.\r\n"
        for found in (b"none", b"pass", b"pass"):
            data = self.sealed_here(data, found, chances)
        fields = re.findall(rb"^(?:ARC-[^\r]*\r\n(?:[ \t][^\r]*\r\n)*)", data, re.MULTILINE)
        self.assertEqual(len(fields), 9)
        broken = [data.replace(field, b"") for field in fields] + [data.replace(field, field * 2) for field in fields]
        broken += [data.replace(b"".join(fields[at : at + 3]), b"") for at in (3, 6)]
        broken += [data.replace(b"cv=pass", b"cv=" + said, 1) for said in (b"none", b"fail")]
        broken += [data.replace(b"Hi.", b"Ho."), data.replace(b"dinner", b"sinner"), data.replace(b"ARC-Seal: i=1", b"ARC-Seal: i=9")]
        for other in broken:
            self.assertNotEqual(data, other)
            self.assertEqual(self.verdict(other, record, chances, "chain").split(" ")[0], "arc=fail", other)
            self.assertIsNot(chain_as_dkimpy_says(other, record), True, other)

    def tearDown(self):
        self.checker.stdin.close()
        self.assertEqual(self.checker.wait(60), 0)
        super().tearDown()


class Submitted(barepost.SharedMachineTest):
    def submit(self, message):
        """Sends a message from ada to grace. Returns it as grace receives it."""
        with smtplib.SMTP("127.0.0.1", self.machine.ports + 587, "client.test", timeout=60) as client:
            client.login(f"ada@{OURS}", PASSWORD)
            client.sendmail(f"ada@{OURS}", [f"grace@{OURS}"], message)
        return self.machine.mailbox("grace")[-1]

    def test_submitted_mail_is_signed_with_each_published_key(self):
        keys = signatures.published(self.machine.data)
        self.assertLessEqual(max(len(string) for text in keys.values() for string in text), 255)
        self.assertEqual(sorted(keys), [f"barepost-{kind}._domainkey.{OURS}.".encode() for kind in ("ed25519", "rsa")])
        header = f"From: Ada <ada@{OURS}>\r\nTo: grace@{OURS}\r\nSubject:  looms \r\n"
        for body in ("", "Hello.\r\n", ".\r\n. \r\n a \t b \r\n\r\n\r\n", "A line of many. \r\n" * 60_000):
            with self.subTest(len(body)):
                found = self.submit(f"{header}\r\n{body}")
                self.assertTrue(found.content.startswith(header.encode()), found.content[:400])
                self.assertEqual(signatures.verdicts(found.raw, keys), [("rsa-sha256", True), ("ed25519-sha256", True)])
                other = signatures.verdicts(found.raw.replace(b"looms", b"rooms"), keys)
                self.assertEqual(other, [("rsa-sha256", False), ("ed25519-sha256", False)])


if __name__ == "__main__":
    barepost.main()
