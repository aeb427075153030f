"""The promise: `./barepost run` boots a machine that serves, or gives a clear reason, and leaves no process behind.

The machine boots on QEMU's q35 and microvm and greets on both ports. A fault in the configuration, the ports, the disk
or the required programs is reported in one line, with exit status 2, and no file changes. Ctrl-C ends the machine:
connected clients get 421, and everything acknowledged is on the disk. SIGKILL also ends all its processes. An idle
machine uses no processor time, and a machine that panics serves again within seconds.

It takes 2 minutes under TCG, 4 on a busy host. --quick runs the same tests.
"""

import datetime
import hashlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import tomllib

import barepost
from barepost import CONFIGURATION, free_ports
from mail import DOMAIN, PASSWORD, MessageMaker, stuffed
from processes import STOP_SECONDS, alive, children, cpu_seconds, die_with_us, until

# The offset of the panic text on the disk, in bytes (docs/format.md, section 2).
CRASH_AREA = 4 * 4096

ADA = f"ada@{DOMAIN}"


class Booting(barepost.Test):
    def test_boots_and_greets_on_q35(self):
        self.boots_and_greets_on("q35")

    def test_boots_and_greets_on_microvm(self):
        self.boots_and_greets_on("microvm")

    def boots_and_greets_on(self, machine_type):
        machine = self.boot(None, "--machine", machine_type)
        self.assertIn(machine_type, " ".join(machine.qemu_command()))
        with machine.smtp() as session:
            self.assertEqual(session.greeting.code, 220)
            self.assertTrue(session.greeting.texts[0].startswith(f"mail.{DOMAIN} ESMTP"), session.greeting)
            self.assertEqual(session.command("EHLO client.test").texts[0].split()[0], f"mail.{DOMAIN}")
            self.assertEqual(session.quit().code, 221)
        message = MessageMaker(1).make(1, 2000)
        reply = machine.deliver("sender@client.test", ADA, message)
        self.assertEqual(reply.code, 250, reply)
        [found] = machine.mailbox("ada")
        self.assertSame(found.content, message)
        self.assertEqual(machine.stop(), 0)

    def test_the_first_run_makes_demo_users_who_get_mail(self):
        data = self.folder / "made"
        machine = self.boot(data)
        made = tomllib.loads((data / "barepost.toml").read_text())
        self.assertTrue(made["user"])
        said = "\n".join(machine.process.lines())
        self.assertIn(f"created a new, empty disk of 1 GiB: {data}/disk.img", said)
        for user in made["user"]:
            address, password = user["address"], user["password"]
            self.assertIn(address, said)
            self.assertIn(password, said)
            self.assertEqual(machine.deliver("", address, b"Subject: hello\r\n\r\nhello\r\n").code, 250)
            with machine.pop3() as session:
                session.log_in(address, password)
                self.assertEqual(session.stat()[0], 1)
        for service in ("SMTP", "POP3"):
            self.assertRegex(said, rf"{service} at 127\.0\.0\.1:\d+")
        # The folder contains mail and passwords, so other users must not read it.
        self.assertEqual((data / "barepost.toml").stat().st_mode & 0o077, 0)
        self.assertEqual((data / "disk.img").stat().st_mode & 0o077, 0)
        self.assert_lines_have_dates(machine.process.lines())
        # While the file is unchanged, each start prints the passwords. No other folder has the same ones.
        passwords = [user["password"] for user in made["user"]]
        self.assertEqual(machine.stop(), 0)
        again = "\n".join(self.boot(data).process.lines())
        self.assertTrue(all(password in again for password in passwords), again)
        self.assertNotIn("created a new, empty disk", again)
        other = "\n".join(self.boot(self.folder / "other").process.lines())
        self.assertIn("demo users", other)
        self.assertFalse(any(password in other for password in passwords), other)

    def assert_lines_have_dates(self, lines):
        """Asserts that each line of the machine begins with the date and time of this computer's clock."""
        stamps = [re.match(r"(\S+ \S+)Z \[ *\d+\.\d{6}\] ", line) for line in lines if "] " in line]
        self.assertGreater(len(stamps), 5, lines)
        for line, stamp in zip([line for line in lines if "] " in line], stamps, strict=True):
            self.assertIsNotNone(stamp, line)
            at = datetime.datetime.fromisoformat(stamp[1]).replace(tzinfo=datetime.UTC)
            self.assertLess(abs((datetime.datetime.now(datetime.UTC) - at).total_seconds()), 600, line)

    def test_an_edited_file_applies_at_the_next_start(self):
        def user(name, password, *aliases):
            names = ", ".join(f'"{alias}@{DOMAIN}"' for alias in aliases)
            return f'[[user]]\naddress = "{name}@{DOMAIN}"\npassword = "{password}"\naliases = [{names}]\n'

        head = f'hostname = "mail.{DOMAIN}"\ndomains = ["{DOMAIN}"]\n{barepost.ACCESS}'
        data = self.data(configuration=head + user("ada", PASSWORD, "info", "sales") + user("grace", PASSWORD))
        machine = self.boot(data)
        self.assertEqual([line for line in machine.process.lines() if "accounts:" in line], [])
        self.assertEqual(machine.stop(), 0)
        (data / "barepost.toml").write_text(head + user("ada", "another password", "info") + user("sales", PASSWORD))
        machine = self.boot(data)
        for words in (f"grace@{DOMAIN} is not in the configuration; the account and its mail stay",
                      f"sales@{DOMAIN} is not an alias of ada@{DOMAIN} any more",
                      f"the password of ada@{DOMAIN} was set from the configuration"):
            machine.process.wait_for_line(f"accounts: {re.escape(words)}", barepost.READY_SECONDS)
        message = MessageMaker(1).make(1, 2000)
        for address in ("info", "sales", "grace"):
            self.assertEqual(machine.deliver("sender@client.test", f"{address}@{DOMAIN}", message).code, 250)
        for name, password in (("ada", "another password"), ("sales", PASSWORD), ("grace", PASSWORD)):
            with machine.pop3() as session:
                session.log_in(f"{name}@{DOMAIN}", password)
                self.assertEqual(session.stat()[0], 1, name)

    def test_a_wide_range_of_friends_is_told_with_its_line(self):
        text = CONFIGURATION + "[access]\nunthrottled_from = [\"10.0.0.0/8\", \"10.0.2.0/24\"]\n"
        said = self.boot(self.data(configuration=text)).process.lines()
        line = text[:text.index("10.0.0.0/8")].count("\n") + 1
        self.assertEqual([told for told in said if "wider than a /16" in told],
                         [told for told in said if f"barepost.toml:{line}: unthrottled_from contains 10.0.0.0/8" in told])
        self.assertEqual(sum("wider than" in told for told in said), 1, said)

    def test_two_cores_run_in_the_least_memory_that_is_not_refused(self):
        refused = subprocess.run(
            [barepost.COMMAND, "run", "--data", self.data(), "--cores", "2", "--memory", "129M"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=barepost.BUILD_SECONDS,
            preexec_fn=die_with_us,
        )
        self.assertEqual((refused.returncode, refused.stdout), (2, ""), refused.stderr)
        least = re.fullmatch(r"barepost: --memory 129M: 2 cores need at least (\d+M)\n", refused.stderr)[1]
        machine = self.boot(None, "--cores", "2", "--memory", least)
        self.assertEqual(machine.deliver("sender@client.test", ADA, MessageMaker(1).make(1, 2000)).code, 250)

    def test_a_change_of_the_machine_type_finds_the_mail(self):
        data = self.data()
        message = MessageMaker(1).make(2, 5000)
        machine = self.boot(data)
        self.assertEqual(machine.deliver("sender@client.test", ADA, message).code, 250)
        self.assertEqual(machine.stop(), 0)
        [found] = self.boot(data, "--machine", "microvm").mailbox("ada")
        self.assertSame(found.content, message)


class Refusing(barepost.Test):
    """Faults are reported in one line and with status 2, before the machine boots."""

    @classmethod
    def setUpClass(cls):
        # The first start builds the command line and the image, with output that the tests below do not expect.
        barepost.SCRATCH.mkdir(parents=True, exist_ok=True)
        folder = barepost.SCRATCH / f"built-{os.getpid()}"
        machine = barepost.Run(folder)
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.addClassCleanup(machine.kill)
        machine.ready()
        machine.stop()

    def refused(self, *expected, data=None, arguments=(), environment=None, ports=None, said=r""):
        """Starts `run`, which must fail. Returns the one line with the reason.

        `said`: a pattern for its output before that.
        """
        data = data or self.data()
        done = subprocess.run(
            [barepost.COMMAND, "run", "--ports", str(ports or free_ports()), "--data", data, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=barepost.READY_SECONDS,
            env=environment, preexec_fn=die_with_us,
        )
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertRegex(done.stdout, rf"\A{said}\Z")
        for text in expected:
            self.assertIn(text, done.stderr)
        return done.stderr

    def test_a_lost_disk_is_replaced_only_when_that_is_asked_for(self):
        data = self.data()
        self.learn(data)
        disk, kept = data / "disk.img", self.folder / "kept.img"
        disk.rename(kept)
        (data / "certificates.pack").unlink()
        for lost in ("tls", "dkim"):
            self.refused(f"{disk}: the disk is missing", lost, "not mounted", "--data", "--new", data=data)
        self.assertEqual(sorted(path.name for path in data.iterdir()), ["barepost.toml", "dkim", "signing-keys.pack", "tls"])
        machine = self.boot(data, "--new")
        machine.process.wait_for_line(rf"created a new, empty disk of 1 GiB: {disk}$", 1)
        self.assertEqual(machine.mailbox("ada"), [])
        self.assertEqual(machine.stop(), 0)
        before = digest(disk)
        self.refused("disk.img", "--new never replaces", data=data, arguments=("--new",))
        self.assertEqual(digest(disk), before)

    def test_a_wrong_configuration_is_told_with_its_file_and_line(self):
        for number, (text, *expected) in enumerate((
            ("hostname = \"mail.a.test\"\ndomains = [\n", "barepost.toml:2:", "expected"),
            (CONFIGURATION.replace("hostname", "hostnam", 1), "barepost.toml:1:1", "hostnam", "expected `hostname`"),
            ("domains = [\"a.test\"]\n", "barepost.toml:", "`hostname` is missing"),
            (CONFIGURATION.replace("ada@", "ada[at]"), "barepost.toml:5:", "expected"),
            (CONFIGURATION + "[access]\nplaintext_auth_from = [\"10.0.2.0/33\"]\n", "barepost.toml:", "10.0.2.0/33"),
            (CONFIGURATION + barepost.ACCESS + "[network]\naddress = \"10.0.2.15/24\"\n", "barepost.toml:",
             "plaintext_auth_from contains 10.0.2.0/24", "[network]"),
            (CONFIGURATION.replace(PASSWORD, "hopper", 1), "barepost.toml:6:", "at least 8 characters"),
        )):
            with self.subTest(expected):
                data = self.data(f"wrong{number}", text)
                self.refused(*expected, data=data)
                self.assertFalse((data / "disk.img").exists(), "a disk was made all the same")

    def test_an_address_that_no_port_leads_to_is_told_at_once(self):
        data = self.data(configuration=CONFIGURATION + "[network]\naddress = \"10.0.0.2/24\"\n")
        self.refused("barepost.toml", "10.0.0.2", "--tap", data=data)

    def test_a_taken_port_is_named(self):
        with socket.socket() as taken:
            base = free_ports()
            taken.bind(("127.0.0.1", base + barepost.POP3))
            taken.listen()
            self.refused(str(base + barepost.POP3), "--ports", ports=base)

    def test_a_disk_of_an_unknown_format_is_refused_and_not_written(self):
        for name, first in (("letters", b"some other file system " * 200), ("ones", b"\xff" * 4096)):
            with self.subTest(name):
                data = self.data(name)
                self.disk_of(data, first)
                before = digest(data / "disk.img")
                self.refused("disk.img", data=data)
                self.assertEqual(digest(data / "disk.img"), before)

    def test_the_engine_does_not_write_a_disk_of_unknown_format(self):
        command = self.learn(self.data())
        other = self.data("other")
        self.disk_of(other, b"some other file system " * 200)
        before = digest(other / "disk.img")
        guest = self.watch(barepost.Guest(command, self.folder / "console", other / "disk.img"))
        with self.assertRaises(AssertionError):
            guest.answers(5)
        self.assertRegex("\n".join(guest.process.lines()), r"(?i)disk|format")
        guest.kill()
        self.assertEqual(digest(other / "disk.img"), before)

    def test_a_disk_of_a_newer_format_is_refused_and_not_written(self):
        data = self.data()
        self.learn(data)
        with open(data / "disk.img", "r+b") as disk:
            superblock = disk.read(4096)
            self.assertEqual(superblock[:8], b"BAREPOST")
            pages = int.from_bytes(superblock[72:80], "little")
            # The format version in each of the four slots (docs/format.md, section 3).
            for page in (0, 8, pages - 8, pages - 4):
                disk.seek(page * 4096 + 8)
                disk.write((7).to_bytes(4, "little"))
        before = digest(data / "disk.img")
        self.refused("disk.img", "7", data=data)
        self.assertEqual(digest(data / "disk.img"), before)

    def disk_of(self, data, first):
        """A disk that begins with the bytes `first` and is otherwise empty."""
        with open(data / "disk.img", "wb") as disk:
            disk.write(first)
            disk.truncate(64 << 20)

    def test_a_missing_qemu_is_named(self):
        programs = self.folder / "programs"
        programs.mkdir()
        for folder in os.environ["PATH"].split(os.pathsep):
            for program in pathlib.Path(folder).glob("*"):
                if not program.name.startswith(("qemu-", "apt")) and not (programs / program.name).exists():
                    (programs / program.name).symlink_to(program)
        self.refused("qemu-system-x86", "install", environment={**os.environ, "PATH": str(programs)},
                     said=r"barepost: created a new, empty disk of 1 GiB: [^\n]*/disk.img\n")

    def test_wrong_options_are_refused(self):
        for arguments in (["--memory", "1M"], ["--memory", "much"], ["--cores", "0"], ["--machine", "vax"],
                          ["--tap", "notap0"]):
            with self.subTest(arguments):
                done = subprocess.run(
                    [barepost.COMMAND, "run", "--data", self.data(), *arguments],
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=barepost.READY_SECONDS,
                    preexec_fn=die_with_us,
                )
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(arguments[0], done.stderr)

    def test_a_second_machine_on_the_same_data_is_refused(self):
        data = self.data()
        first = self.boot(data)
        self.refused("another barepost", data=data)
        self.assertEqual(first.deliver("", ADA, b"\r\nstill there\r\n").code, 250)


class Ending(barepost.Test):
    def test_ctrl_c_says_421_and_keeps_acknowledged_mail(self):
        data = self.data()
        machine = self.boot(data)
        qemu = machine.qemu()
        idle = self.enterContext(machine.smtp())
        idle.ehlo()
        amid = self.enterContext(machine.smtp())
        amid.ehlo()
        self.assertIsNone(amid.envelope("sender@client.test", ADA))
        self.assertEqual(amid.command("DATA").code, 354)
        amid.send(b"Subject: never whole\r\n\r\nthe first of two lines\r\n")
        reader = self.enterContext(machine.pop3("grace"))
        message = MessageMaker(1).make(1, 3000)
        self.assertEqual(machine.deliver("sender@client.test", ADA, message).code, 250)

        machine.interrupt()
        self.assertEqual(idle.reply().code, 421)
        self.assertEqual(amid.reply().code, 421)
        self.assertTrue(reader.is_closed_within(10))
        self.assertEqual(machine.process.wait(STOP_SECONDS), 0, machine.process.tail())
        self.assertFalse(alive(qemu))
        with self.assertRaises(OSError):
            socket.create_connection(("127.0.0.1", machine.ports + barepost.SMTP), 1).close()

        [found] = self.boot(data).mailbox("ada")
        self.assertSame(found.content, message)

    def test_ctrl_c_acknowledges_or_refuses_a_whole_message(self):
        maker = MessageMaker(barepost.options.seed)
        data = self.data()
        for number in range(1, 6):
            machine = self.boot(data)
            session = self.enterContext(machine.smtp())
            session.ehlo()
            session.envelope("sender@client.test", ADA)
            self.assertEqual(session.command("DATA").code, 354)
            session.send(stuffed(maker.make(number, 200_000)))
            machine.interrupt()
            reply = session.reply()
            self.assertEqual(machine.process.wait(STOP_SECONDS), 0, machine.process.tail())
            machine = self.boot(data)
            with machine.pop3("ada") as reader:
                there = [maker.recognize(found.content) for found in reader.fetch()]
                self.assertEqual(there, [number] if reply.code == 250 else [], reply)
                reader.delete(reader.sizes())
                reader.quit()
            self.assertEqual(machine.stop(), 0)

    def test_ctrl_c_during_the_boot_ends_it(self):
        data = self.data()
        self.learn(data)
        for wait in (0.0, 0.1, 0.3, 0.6):
            machine = self.start(data)
            time.sleep(wait)
            machine.interrupt()
            status = machine.process.wait(STOP_SECONDS)
            # If the shell is interrupted before it has replaced itself by `run`, the signal is its status (-2).
            self.assertIn(status, (0, 1) if machine.process.lines() else (0, 1, -2), machine.process.tail())
            self.assertEqual(children(machine.process.pid), [])
        self.boot(data)

    def test_killing_run_ends_the_machine_and_loses_no_mail(self):
        data = self.data()
        machine = self.boot(data)
        qemu = machine.qemu()
        message = MessageMaker(1).make(1, 3000)
        self.assertEqual(machine.deliver("sender@client.test", ADA, message).code, 250)
        machine.kill()
        until(lambda: not alive(qemu), 5, "QEMU ends with `run`")
        [found] = self.boot(data, ports=machine.ports).mailbox("ada")
        self.assertSame(found.content, message)

    def test_a_machine_that_is_gone_ends_run_with_status_1(self):
        machine = self.boot()
        os.kill(machine.qemu(), 9)
        self.assertEqual(machine.process.wait(STOP_SECONDS), 1)
        self.assertRegex(machine.process.lines()[-1], "^barepost: ")


class Living(barepost.Test):
    def test_an_idle_machine_sleeps(self):
        machine = self.boot()
        with machine.smtp(), machine.pop3("ada"):
            time.sleep(2)
            qemu, seconds = machine.qemu(), 10
            before = cpu_seconds(qemu)
            time.sleep(seconds)
            share = (cpu_seconds(qemu) - before) / seconds
            barepost.say(f"idle: {share:.2%} of a core")
            self.assertLess(share, 0.02)

    def test_after_a_panic_the_machine_reboots_and_serves_again(self):
        # A debugger causes the panic: it makes the processor continue at an address without code.
        socket_path, data = self.folder / "debugger", self.data()
        guest = self.watch(barepost.Guest(
            self.learn(data), self.folder / "console",
            more=("-chardev", f"socket,id=debugger,path={socket_path},server=on,wait=off", "-gdb", "chardev:debugger"),
        )).answers()
        maker = MessageMaker(1)
        for number in (1, 2):
            self.assertEqual(guest.deliver("sender@client.test", ADA, maker.make(number, 3000)).code, 250)
            self.enterContext(guest.smtp())
            seen = len(guest.process.lines())
            derail(socket_path)
            guest.process.wait_for_line("PANIC", 10, seen)
            guest.answers(10)
            self.assertEqual([maker.recognize(found.content) for found in guest.mailbox("ada")],
                             list(range(1, number + 1)))
            with open(data / "disk.img", "rb") as disk:
                disk.seek(CRASH_AREA)
                self.assertTrue(disk.read(512).startswith(b"barepost crash 1\n"))
        self.assertTrue(guest.stop(), guest.process.tail())


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def derail(path):
    """Makes the guest's processor continue at address 16, through QEMU's debugger port (GDB's remote protocol)."""
    with socket.socket(socket.AF_UNIX) as debugger:
        debugger.settimeout(10)
        debugger.connect(str(path))
        received = b""

        def ask(command):
            nonlocal received
            debugger.sendall(f"${command}#{sum(command.encode()) % 256:02x}".encode())
            while True:
                while not (packet := re.search(rb"\$([^#]*)#..", received)):
                    received += debugger.recv(1 << 16)
                received = received[packet.end():]
                debugger.sendall(b"+")
                # The debugger port also reports, without a request, that the guest has stopped.
                if not packet[1].startswith(b"T"):
                    return packet[1].decode()

        registers = ask("g")
        # RIP follows sixteen registers. Its bytes are in the order of memory, in hexadecimal digits.
        rip = 16 * 16
        answers = ask("G" + registers[:rip] + f"{16:02x}{'00' * 7}" + registers[rip + 16:]), ask("D")
        if answers != ("OK", "OK"):
            raise AssertionError(f"the debugger says {answers}")


if __name__ == "__main__":
    barepost.main()
