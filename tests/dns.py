"""The promise: `./barepost dns` prints all records that mail needs, and `--check` finds missing and wrong records.

NSD loads the printed records, and serves them in the test's network namespace. Then the records are changed.

It takes seconds. --quick runs the same tests.
"""

import subprocess

import barepost
import network
from peers import Nsd
from processes import die_with_us

SERVER = "127.0.0.1"
ADDRESSES = ("192.0.2.7", "2001:db8::7")
ZONES = ("a.test", "2.0.192.in-addr.arpa", "8.b.d.0.1.0.0.2.ip6.arpa")
CONFIGURATION = 'hostname = "mail.a.test"\ndomains = ["a.test"]\n'


class Dns(barepost.Test):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        network.enter()

    def setUp(self):
        super().setUp()
        self.data_folder = self.folder / "data"
        self.data_folder.mkdir()
        (self.data_folder / "barepost.toml").write_text(CONFIGURATION)

    def dns(self, *arguments):
        """The exit status of `./barepost dns`, and the lines of its output and its errors."""
        command = [barepost.COMMAND, "dns", "--data", self.data_folder, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=die_with_us)
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    def printed(self):
        status, lines, complaints = self.dns(*(word for address in ADDRESSES for word in ("--address", address)))
        self.assertEqual((status, complaints), (0, []))
        return lines

    def check(self, *arguments):
        return self.dns("--check", "--server", SERVER, *arguments)

    def serve(self, lines):
        """Starts NSD, with each of `lines` in the zone to which it belongs."""
        records = [line for line in lines if not line.startswith(";")]
        zones = {zone: [line for line in records if line.split()[0].endswith(f"{zone}.")] for zone in ZONES}
        self.assertEqual(sum(map(len, zones.values())), len(records), "lines of no zone")
        return self.watch(Nsd(self.folder, SERVER, zones))

    def test_what_is_printed_is_loaded_and_found_right(self):
        lines = self.printed()
        server = self.serve(lines)
        complaints = [line for line in server.lines() if "error" in line or "warning" in line]
        self.assertEqual(complaints, [])
        status, found, complaints = self.check()
        self.assertEqual((status, complaints), (0, []))
        records = [line for line in lines if not line.startswith(";")]
        self.assertGreater(len(records), 10)
        self.assertEqual(found, [f"right    {record}" for record in records])
        keys = sorted((self.data_folder / "dkim").iterdir())
        self.assertEqual([key.name for key in keys], ["barepost-ed25519.pem", "barepost-rsa.pem"])
        for key in keys:
            self.assertEqual(len([record for record in records if record.startswith(f"{key.stem}._domainkey.a.test. IN TXT")]), 1)

    def test_what_is_missing_or_wrong_is_found(self):
        lines = self.printed()
        changed = [line.replace("MX 10 mail.a.test.", "MX 10 old.a.test.").replace("k=ed25519; p=", "k=ed25519; p=AAAA")
                   for line in lines if not line.startswith("_dmarc.")]
        [key] = [line for line in lines if "k=ed25519" in line]
        [wrong] = [line.partition(" IN ")[2] for line in changed if "k=ed25519" in line]
        # The response has so many records that it needs TCP.
        changed += [f'a.test. IN TXT "site-verification={number:0200}"' for number in range(12)]
        self.serve(changed)
        status, found, complaints = self.check("--address", "192.0.2.7")
        self.assertEqual((status, complaints), (1, []))
        self.assertEqual(
            [line for line in found if not line.startswith("right ")],
            ["wrong    a.test. IN MX 10 mail.a.test.: found MX 10 old.a.test.",
             f"wrong    {key}: found {wrong}, with which our signatures fail: the domain's key record is not valid",
             *(f"missing  {line}" for line in lines if line.startswith("_dmarc."))],
        )
        self.assertIn('right    a.test. IN TXT "v=spf1 mx -all"', found)

    def test_servers_that_are_not_there_are_told_of_in_one_line(self):
        status, found, complaints = self.check()
        self.assertEqual(status, 1)
        self.assertEqual((found, complaints), ([], ["barepost: mail.a.test.: no name server answered"]))
        status, found, complaints = self.check("--address", "192.0.2.7")
        self.assertEqual((status, found), (1, []))
        self.assertEqual(complaints, ["barepost: unknown  mail.a.test. IN A 192.0.2.7: no name server answered"])

    def test_wrong_words_are_refused_in_one_line(self):
        (self.data_folder / "barepost.toml").write_text("hostname = 'a.test'\n")
        status, found, complaints = self.dns()
        self.assertEqual((status, found, len(complaints)), (2, [], 1))
        self.assertIn("barepost.toml:2:1: `domains` is missing", complaints[0])


if __name__ == "__main__":
    barepost.main()
