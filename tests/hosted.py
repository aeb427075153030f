"""The promise: the engine as a Linux process at a tap interface serves as the image in QEMU does.

`./barepost run --hosted --tap IF` prints the same lines, keeps the same mail in the same data folder, and ends in the
same way. If the tap interface is not available, it reports the reason in one line, with status 2. With several cores all
of them serve, with a queue of the interface for each core or with one queue for all, and they end together.

Over a bad wire all bytes arrive unchanged, and tshark finds no fault in any frame that the machine sends.

It takes two minutes. --quick runs the same tests.
"""

import os
import pathlib
import poplib
import resource
import smtplib
import socket
import subprocess
import threading
import time

import barepost
import network
from mail import DOMAIN, PASSWORD, MessageMaker
from processes import STOP_SECONDS, cpu_seconds, die_with_us, program

LINUX, MACHINE = "10.9.0.1", "10.9.0.2"
TAP = "tap0"
ADA = f"ada@{DOMAIN}"
# A core's thread has served a client if it ran for at least this time, in nanoseconds. A core without clients runs for a
# thousandth of the elapsed time, and messages of the store cost it less than a millisecond.
WORKED = 10_000_000
CONFIGURATION = (
    barepost.CONFIGURATION
    + f"""
[network]
address = "{MACHINE}/24"

[access]
plaintext_auth_from = ["10.9.0.0/24"]
unthrottled_from    = ["10.9.0.0/24"]
"""
)


class Hosted(barepost.Run):
    """The machine as a Linux process."""

    host = MACHINE

    def __init__(self, data, *arguments, tap=TAP):
        self._run(data, ["--hosted", "--tap", tap, *arguments])


class HostedTest(barepost.Test):
    configuration = CONFIGURATION
    # The number of cores of each machine. None: the number on the command line.
    cores = None

    def setUp(self):
        super().setUp()
        self.cores = self.cores or barepost.options.cores
        self.make_tap()
        self.addCleanup(network.ip, f"link delete {TAP}")

    def make_tap(self):
        network.make_tap(TAP, f"{LINUX}/24", queues="multi_queue" if self.cores > 1 else "")

    def start(self, data, *arguments, **how):
        return self.watch(Hosted(data, "--cores", self.cores, *arguments, **how))


# The date and time of a line on the console.
STAMP = r"20\d\d-[01]\d-[0-3]\d [0-2]\d:[0-5]\d:[0-5]\dZ"


class Serving(HostedTest):
    def test_hosted_it_serves_mail_and_prints_the_console(self):
        machine = self.boot()
        body = "\n".join(f"line {number}" for number in range(2000)) + "\n"
        done = subprocess.run(
            [program("swaks"), "--server", MACHINE, "--from", "sender@client.test", "--to", ADA, "--body", "-"],
            input=body, capture_output=True, text=True, timeout=60, preexec_fn=die_with_us,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with smtplib.SMTP(MACHINE, 25, timeout=30) as sender:
            sender.sendmail("sender@client.test", [ADA], "Subject: second\r\n\r\nby smtplib\r\n")
        reader = poplib.POP3(MACHINE, 110, timeout=30)
        reader.user(ADA)
        reader.pass_(PASSWORD)
        self.assertEqual(reader.stat()[0], 2)
        lines = reader.retr(1)[1]
        self.assertEqual([line for line in lines if line.startswith(b"line ")], body.encode().split(b"\n")[:-1])
        self.assertEqual(reader.retr(2)[1][-1], b"by smtplib")
        reader.quit()
        said = "\n".join(machine.process.lines())
        for line in (rf"^barepost: hosted on {TAP}, (\d cores, )?256 MiB, data in /", rf"^barepost: SMTP at {MACHINE}:25$",
                     rf"^barepost: POP3 at {MACHINE}:110$", rf"^{STAMP} \[ +0\.\d{{6}}\] sizes: (\d cores, each with )?\d+ connections",
                     rf"^{STAMP} \[ +\d+\.\d{{6}}\] serving {DOMAIN} as mail\.{DOMAIN}$", r"^barepost: ready in \d+ ms$"):
            self.assertRegex(said, f"(?m){line}")

    def test_hosted_messages_of_many_segments_come_back_exact(self):
        machine = self.boot()
        maker = MessageMaker(barepost.options.seed)
        sizes = (1, 1400, 1500, 65_535, 300_000, 8_000_000)
        before = network.traffic(TAP)
        for number, size in enumerate(sizes):
            self.assertEqual(machine.deliver("sender@client.test", ADA, maker.make(number, size)).code, 250)
        for number, found in enumerate(machine.mailbox("ada")):
            self.assertSame(found.content, maker.make(number, sizes[number]))
        # Linux neither cuts nor joins frames on a tap. So a frame longer than the MTU was passed on whole.
        for way, (frames, octets) in network.traffic(TAP, before).items():
            barepost.say(f"{way}: {octets / frames:.0f} bytes a frame")
            if way == "to the machine":
                self.assertGreater(octets / frames, 1514)

    def test_hosted_it_sleeps_when_idle(self):
        machine = self.boot()
        with machine.smtp(), machine.pop3("ada"):
            time.sleep(1)
            seconds = 5
            before = cpu_seconds(machine.process.pid)
            time.sleep(seconds)
            share = (cpu_seconds(machine.process.pid) - before) / seconds
            barepost.say(f"idle: {share:.2%} of a core")
            self.assertLess(share, 0.02)


class OverAWire(barepost.Test):
    """The machine at one end of a wire that loses, repeats, reorders, corrupts and delays frames. Linux is at the other end."""

    configuration = CONFIGURATION

    def setUp(self):
        super().setUp()
        network.make_tap(TAP)
        network.make_tap("near")
        network.make_tap("far", f"{LINUX}/24")
        network.join("bridge", TAP, "near")
        for name in (TAP, "near", "far", "bridge"):
            self.addCleanup(network.ip, f"link delete {name}")

    def start(self, data, *arguments, **how):
        return self.watch(Hosted(data, *arguments, **how))

    def test_hosted_mail_is_exact_over_a_lossy_wire(self):
        capture = self.folder / "frames.pcap"
        bad = "delay=2,loss=0.01,repeat=0.01,reorder=0.02,corrupt=0.005,rate=200"
        wire = network.Wire("near", "far", bad, bad, barepost.options.seed, capture)
        self.addCleanup(wire.cut)
        machine = self.boot()
        maker, sizes = MessageMaker(barepost.options.seed), (1, 1400, 65_535, 700_000, 2_000_000)
        for number, size in enumerate(sizes):
            self.assertEqual(machine.deliver("sender@client.test", ADA, maker.make(number, size)).code, 250)
        self.assertEqual([maker.recognize(found.content) for found in machine.mailbox("ada")], list(range(len(sizes))))
        self.assertEqual(machine.stop(), 0)
        barepost.say(wire.cut())
        self.assertGreater(capture.stat().st_size, 2 * sum(sizes), "not all went over the wire")

        card = machine.process.wait_for_line(r"net: card ([0-9a-f:]+),", 1)[1]
        self.assertEqual(unsound_frames(capture, card), [])
        frames = bytearray(capture.read_bytes())
        segment = frames.rindex(bytes.fromhex(card.replace(":", "")) + b"\x08\x00") + 8 + 20
        checksum, urgent = slice(segment + 16, segment + 18), slice(segment + 18, segment + 20)
        # With the old checksum as the urgent pointer, the new checksum is zero. Linux writes 0xFFFF for zero.
        frames[urgent], frames[checksum] = frames[checksum], b"\xff\xff"
        capture.write_bytes(frames)
        self.assertEqual(unsound_frames(capture, card), [])
        # Control: tshark reports a really wrong checksum.
        frames[segment + 6] ^= 1
        capture.write_bytes(frames)
        self.assertEqual(len(unsound_frames(capture, card)), 1)


def unsound_frames(capture, card):
    """
    The frames of a card that tshark finds malformed, or that have a wrong checksum. A checksum of 0xFFFF in place of zero
    is correct (RFC 1071: there are two zeros). Linux writes it when it fills in a checksum, and tshark reports it.
    """
    wrong = " or ".join(
        ["_ws.malformed", '_ws.expert.group == "Malformed"', '(_ws.expert.group == "Checksum" and not tcp.checksum.ffff)']
        + [f"{protocol}.checksum.status == 0" for protocol in ("ip", "udp", "icmp")]
        + ["(tcp.checksum.status == 0 and not tcp.checksum.ffff)"]
    )
    checked = [word for protocol in ("ip", "tcp", "udp") for word in ("-o", f"{protocol}.check_checksum:TRUE")]
    done = subprocess.run(
        [program("tshark"), "-n", "-r", capture, *checked, "-Y", f"eth.src == {card} and ({wrong})"],
        capture_output=True, text=True, timeout=120, preexec_fn=die_with_us,
    )
    if done.returncode != 0:
        raise AssertionError(f"tshark: {done.stderr}")
    return done.stdout.splitlines()


class Ending(HostedTest):
    def test_hosted_a_kill_loses_no_acknowledged_mail(self):
        data, maker = self.data(), MessageMaker(barepost.options.seed)
        identifiers = {}
        for number in range(5):
            machine = self.boot(data)
            with machine.pop3("ada") as reader:
                self.assertEqual(reader.uidls(), identifiers)
            message = maker.make(number, 50_000)
            self.assertEqual(machine.deliver("sender@client.test", ADA, message).code, 250)
            # The machine is killed while a message arrives.
            amid = self.enterContext(machine.smtp())
            amid.ehlo()
            amid.envelope("sender@client.test", ADA)
            amid.send(b"DATA\r\n" + b"x" * 3000)
            identifiers = {found.number: found.uidl for found in machine.mailbox("ada")}
            machine.kill()
        machine = self.boot(data)
        self.assertEqual([maker.recognize(found.content) for found in machine.mailbox("ada")], list(range(5)))

    def test_hosted_ctrl_c_says_421_and_keeps_what_was_acknowledged(self):
        data = self.data()
        for signal in ("interrupt", "terminate"):
            machine = self.boot(data)
            idle = self.enterContext(machine.smtp())
            idle.ehlo()
            amid = self.enterContext(machine.smtp())
            amid.ehlo()
            self.assertIsNone(amid.envelope("sender@client.test", ADA))
            self.assertEqual(amid.command("DATA").code, 354)
            amid.send(b"Subject: never whole\r\n\r\nthe first of two lines\r\n")
            reader = self.enterContext(machine.pop3("grace"))
            self.assertEqual(machine.deliver("sender@client.test", ADA, MessageMaker(1).make(1, 3000)).code, 250)
            machine.interrupt() if signal == "interrupt" else machine.process.popen.terminate()
            self.assertEqual(idle.reply().code, 421)
            self.assertEqual(amid.reply().code, 421)
            self.assertTrue(reader.is_closed_within(10))
            self.assertEqual(machine.process.wait(STOP_SECONDS), 0, machine.process.tail())
            self.assertRegex(machine.process.lines()[-1], r"\] stopped$")
        found = self.boot(data).mailbox("ada")
        self.assertEqual([MessageMaker(1).recognize(each.content) for each in found], [1, 1])

    def test_hosted_a_tap_that_is_taken_away_ends_it_with_status_1(self):
        data = self.data()
        machine = self.boot(data)
        self.assertEqual(machine.deliver("sender@client.test", ADA, MessageMaker(1).make(1, 3000)).code, 250)
        network.ip(f"link delete {TAP}")
        self.assertEqual(machine.process.wait(STOP_SECONDS), 1, machine.process.tail())
        self.assertIn("tap interface", machine.process.lines()[-1])
        self.make_tap()
        self.assertEqual(len(self.boot(data).mailbox("ada")), 1)

    def test_hosted_a_panic_ends_it_with_status_1_and_loses_no_mail(self):
        data = self.data()
        machine = self.boot(data)
        self.assertEqual(machine.deliver("sender@client.test", ADA, MessageMaker(1).make(1, 3000)).code, 250)
        # Linux lets no process poll more files than its limit. An engine that cannot sleep panics.
        resource.prlimit(machine.process.pid, resource.RLIMIT_NOFILE, (1, 1))
        # The connection wakes one of several cores. The other cores, which sleep, must also end.
        with socket.socket() as knocking:
            knocking.settimeout(1)
            knocking.connect_ex((MACHINE, 25))
        self.assertEqual(machine.process.wait(STOP_SECONDS), 1, machine.process.tail())
        said = "\n".join(machine.process.lines())
        self.assertRegex(said, r"panicked at .*\nsleeping: ")
        self.assertIn("panicked", machine.process.lines()[-1])
        self.assertEqual(len(self.boot(data).mailbox("ada")), 1)


class EndingWithFourCores(Ending):
    """The tests of `Ending` with four cores. Different cores may serve the clients."""

    cores = 4


class ManyCores(HostedTest):
    cores = 4

    def exchange(self, machine):
        """Many clients send at the same time, to one mailbox each. Then others fetch each mailbox exactly. This is repeated
        until every core has served clients, but not forever: chance selects the core of a client. Returns the run time of
        each core's thread, in nanoseconds."""
        before, maker, failures = core_times(machine), MessageMaker(barepost.options.seed), []
        sent = {user: [maker.make(number, 40_000 if number % 3 else 900) for number in range(at, 40, len(barepost.USERS))]
                for at, user in enumerate(barepost.USERS)}

        def send(user, message):
            try:
                self.assertEqual(machine.deliver("sender@client.test", f"{user}@{DOMAIN}", message).code, 250)
            except Exception as failure:
                failures.append(failure)

        senders = [threading.Thread(target=send, args=(user, message)) for user in sent for message in sent[user]]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(60)
        self.assertEqual(failures, [])
        for round_number in range(30):
            for user, made in sent.items():
                self.assertEqual(sorted(found.content for found in machine.mailbox(user)), sorted(made))
            worked = {core: now - before[core] for core, now in core_times(machine).items()}
            if round_number >= 2 and min(worked.values()) > WORKED:
                break
        return worked

    def test_hosted_each_core_serves_by_its_own_queue(self):
        machine = self.boot()
        worked = self.exchange(machine)
        barepost.say(", ".join(f"{core}: {time / 1e6:.0f} ms" for core, time in worked.items()))
        self.assertEqual(sorted(worked), [f"core {number}" for number in range(4)])
        self.assertGreater(min(worked.values()), WORKED)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def test_hosted_with_one_queue_the_first_core_receives_for_all(self):
        network.ip(f"link delete {TAP}")
        network.make_tap(TAP, f"{LINUX}/24")
        machine = self.boot()
        self.assertEqual(len(self.exchange(machine)), 4)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def test_hosted_with_sixteen_cores_it_serves(self):
        self.cores = 16
        machine = self.boot(None, "--memory", "1G")
        self.assertEqual(len(self.exchange(machine)), 16)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def test_hosted_four_cores_sleep_when_idle(self):
        machine = self.boot()
        self.exchange(machine)
        with machine.smtp(), machine.smtp(), machine.pop3("ada"):
            time.sleep(1)
            seconds, before = 5, cpu_seconds(machine.process.pid)
            time.sleep(seconds)
            share = (cpu_seconds(machine.process.pid) - before) / seconds
            barepost.say(f"idle, four cores: {share:.2%} of a core")
            self.assertLess(share, 0.02)

    def test_hosted_a_tap_of_several_queues_is_refused_for_one_core(self):
        done = subprocess.run(
            [barepost.COMMAND, "run", "--hosted", "--tap", TAP, "--data", self.data()],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, preexec_fn=die_with_us,
        )
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
        self.assertIn("multi_queue", done.stderr)
        self.assertIn("--cores", done.stderr)


def core_times(machine):
    """The run time of each core's thread in nanoseconds, by the name of the thread."""
    times = {}
    for thread in pathlib.Path(f"/proc/{machine.process.pid}/task").iterdir():
        name = (thread / "comm").read_text().strip()
        if name.startswith("core "):
            times[name] = int((thread / "schedstat").read_text().split()[0])
    return times


class Refusing(HostedTest):
    # Linux gives queues of a multi-queue interface to any process, so these tests use one queue.
    cores = 1

    def refused(self, tap, *expected, data=None, child=die_with_us):
        done = subprocess.run(
            [barepost.COMMAND, "run", "--hosted", "--tap", tap, "--data", data or self.data()],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=barepost.READY_SECONDS,
            preexec_fn=child,
        )
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual(done.stdout, "")
        for text in expected:
            self.assertIn(text, done.stderr)

    def test_hosted_an_unusable_tap_is_reported_in_one_line(self):
        self.refused("notap0", "--tap notap0", "ip tuntap add dev notap0 mode tap")
        self.refused("lo", "--tap lo", "not a tap interface")
        self.refused("a-name-longer-than-any", "the tap interface does not exist")
        self.boot(self.data("first"))
        self.refused(TAP, f"--tap {TAP}", "another program uses this tap interface", data=self.data("second"))

    def test_hosted_a_tap_of_another_user_is_reported_in_one_line(self):
        network.make_tap("tap1", owner=os.getuid() + 1)
        self.addCleanup(network.ip, "link delete tap1")
        self.refused("tap1", "--tap tap1", "CAP_NET_ADMIN", child=network.without_rights_to_networks)

    def test_hosted_what_suits_the_demo_alone_is_refused(self):
        network.make_tap("tap1")
        self.addCleanup(network.ip, "link delete tap1")
        data = self.data(configuration=CONFIGURATION.replace("10.9.0.0/24", "10.0.2.0/24"))
        self.refused("tap1", "barepost.toml:", "plaintext_auth_from contains 10.0.2.0/24", "tap interface", data=data)
        empty = self.folder / "empty"
        self.refused("tap1", f"{empty}/barepost.toml: there is no such file", "--data", data=empty)
        self.assertFalse(empty.exists() or (data / "disk.img").exists(), "something was made")

    def test_hosted_a_second_machine_on_the_same_data_is_refused(self):
        network.make_tap("tap1")
        self.addCleanup(network.ip, "link delete tap1")
        data = self.data()
        first = self.boot(data)
        self.refused("tap1", "another barepost", data=data)
        self.assertEqual(first.deliver("", ADA, b"\r\nstill there\r\n").code, 250)


if __name__ == "__main__":
    network.enter()
    barepost.main()
