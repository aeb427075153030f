"""The promise: a machine with several cores serves like one with one core, with one queue or several.

If the tap interface has a queue for each core, each core serves its own queue. With one queue, and in QEMU's own network,
the first core receives for all cores. Many clients connect at the same time, so that every core serves some of them.

It takes half a minute. --quick runs the same tests.
"""

import threading

import barepost
import network
from mail import DOMAIN, MessageMaker

TAP = "tap0"
LINUX, MACHINE = "10.0.9.1", "10.0.9.2"
ADA = f"ada@{DOMAIN}"
NETWORK = f"""
[network]
address = "{MACHINE}/24"
gateway = "{LINUX}"
"""
ACCESS = f"""
[access]
plaintext_auth_from = ["{LINUX}/32"]
unthrottled_from    = ["{LINUX}/32"]
"""
CORES = 4
CLIENTS = 24


class AtTap(barepost.Run):
    """The machine in QEMU at a tap interface."""

    host = MACHINE

    def __init__(self, data, *arguments):
        self._run(data, ["--tap", TAP, "--accel", "tcg", *arguments])


class CoresTest(barepost.Test):
    def exchange(self, machine, sizes=(1000, 40_000)):
        """Many clients send messages at the same time. Then many clients fetch the messages, and each comes back exact."""
        maker = MessageMaker(barepost.options.seed)
        made = [maker.make(number, sizes[number % len(sizes)]) for number in range(CLIENTS)]
        failures = []

        def attempt(work):
            try:
                work()
            except Exception as failure:
                failures.append(failure)

        def send(message):
            self.assertEqual(machine.deliver("sender@client.test", ADA, message).code, 250)

        def all_at_once(works):
            threads = [threading.Thread(target=attempt, args=(work,)) for work in works]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            self.assertEqual(failures, [])

        all_at_once([lambda message=message: send(message) for message in made])
        # Clients wait for each other, because only one at a time may open the mailbox.
        found = [message.content for message in machine.mailbox("ada")]
        self.assertEqual(sorted(found), sorted(made))
        all_at_once([lambda user=user: machine.mailbox(user) for user in barepost.USERS])

    def at_tap(self, queues, *arguments):
        network.make_tap(TAP, f"{LINUX}/24", queues=queues)
        self.addCleanup(network.ip, f"link delete {TAP}")
        data = self.data(configuration=barepost.CONFIGURATION + NETWORK + ACCESS)
        return self.watch(AtTap(data, "--cores", CORES, *arguments)).ready()

    def test_each_core_serves_by_a_queue_of_its_own(self):
        machine = self.at_tap("multi_queue")
        machine.process.wait_for_line(rf"{CORES} pairs of queues", 1)
        self.exchange(machine)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def test_with_one_queue_the_first_core_receives_for_all(self):
        machine = self.at_tap("")
        self.exchange(machine)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def test_several_cores_serve_on_microvm(self):
        machine = self.at_tap("", "--machine", "microvm")
        self.exchange(machine)
        self.assertEqual(machine.stop(), 0, machine.process.tail())

    def test_several_cores_keep_what_they_acknowledged_when_killed(self):
        machine = self.at_tap("multi_queue")
        maker = MessageMaker(barepost.options.seed)
        made = [maker.make(number, 3000) for number in range(8)]
        for message in made:
            self.assertEqual(machine.deliver("sender@client.test", ADA, message).code, 250)
        machine.kill()
        again = self.watch(AtTap(machine.data, "--cores", 2)).ready()
        self.assertEqual(sorted(found.content for found in again.mailbox("ada")), sorted(made))
        self.assertEqual(again.stop(), 0, again.process.tail())

    def test_an_interface_of_several_queues_is_refused_for_one_core(self):
        network.make_tap(TAP, queues="multi_queue")
        self.addCleanup(network.ip, f"link delete {TAP}")
        refused = AtTap(self.data(configuration=barepost.CONFIGURATION + NETWORK + ACCESS))
        self.assertEqual(self.watch(refused).process.wait(30), 2)
        refused.process.wait_for_line(rf"--tap {TAP}: .*multi_queue", 1)



if __name__ == "__main__":
    network.enter()
    network.show()
    barepost.main()
