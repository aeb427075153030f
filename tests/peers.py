"""Servers of other projects, on hosts in the test's own network: NSD, Unbound, Postfix, Exim, smtp-sink and rspamd.

They are unpacked below target/tools, and not installed. They need accounts, a resolver, and a folder that these accounts
may enter. A mount namespace provides these, and vanishes with the process that made it.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import smtplib
import socket
import subprocess
import textwrap

import network
from mail import DOMAIN
from processes import ROOT, Process, children, until

TOOLS = ROOT / "target" / "tools"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# The folder of the peers' files. The peers' accounts cannot enter the folders above a test's folder.
PLACE = pathlib.Path("/mnt")
READY_SECONDS = 30
# The largest message that a mail server takes.
SIZE_MAX = 60_000_000
# Mail servers refuse mail from this address with these words, when the whole message has arrived.
REFUSED, WORDS = f"grace@{DOMAIN}", "we want none of this"


def enter(resolver=None):
    """Moves this process into new namespaces of networks and mounts. `resolver`: the name server for programs in them."""
    network.enter()
    network.show()
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", PLACE)
    names = ("postfix", "Debian-exim", "postdrop", "bob", "opensmtpd", "opensmtpq")
    accounts = {"passwd": "".join(f"{name}:x:{number}:{number}::/:/bin/false\n" for number, name in enumerate(names, 801)),
                "group": "".join(f"{name}:x:{number}:\n" for number, name in enumerate(names, 801))}
    for name, lines in accounts.items():
        there = pathlib.Path("/etc", name).read_text().splitlines(keepends=True)
        own = {line.partition(":")[0] for line in lines.splitlines()}
        _put_over(pathlib.Path("/etc", name), "".join(line for line in there if line.partition(":")[0] not in own) + lines)
    if resolver:
        _put_over(pathlib.Path("/etc/resolv.conf"), f"nameserver {resolver}\n")
    (PLACE / "tools").mkdir()
    _mount("--bind", TOOLS, PLACE / "tools")
    # A program with the rights of a group would not read LD_LIBRARY_PATH.
    _mount("-o", "remount,bind,nosuid", PLACE / "tools")


def _put_over(path, text):
    """Replaces the content of a file of the host by `text`, only in this mount namespace."""
    copy = PLACE / path.name
    copy.write_text(text)
    _mount("--bind", copy, path.resolve())


def _mount(*arguments):
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise AssertionError(f"mount {arguments}: {done.stderr.strip()}")


def add_hosts(*addresses):
    """Adds hosts with these public addresses."""
    for address in addresses:
        network.ip(f"addr add {address} dev lo")


class Nsd(Process):
    """A name server for `zones`: {name: lines of a zone file}. `signed`: the names of the zones that are signed (DNSSEC), each
    with its own key."""

    def __init__(self, folder, address, zones, signed=()):
        self.folder = pathlib.Path(folder, f"zones-{address}")
        self.folder.mkdir()
        self.zones, self.keys = {name: address for name in zones}, []
        configuration = textwrap.dedent(f"""\
            server:
                ip-address: {address}
                username: ""
                chroot: ""
                zonesdir: "{self.folder}"
                database: ""
                pidfile: ""
                xfrdfile: "{self.folder}/xfrd"
                zonelistfile: "{self.folder}/list"
                xfrdir: "{self.folder}"
            remote-control:
                control-enable: no
            """)
        for name, lines in zones.items():
            start = f"$ORIGIN {name}.\n$TTL 300\n@ IN SOA ns.test. postmaster.test. 1 3600 600 86400 60\n@ IN NS ns.test.\n"
            (self.folder / name).write_text(start + "\n".join(lines) + "\n")
            file = self._sign(name) if name in signed else name
            configuration += f'zone:\n    name: "{name}"\n    zonefile: "{file}"\n'
        settings = self.folder / "nsd.conf"
        settings.write_text(configuration)
        programs = TOOLS / "nsd/usr/sbin"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(TOOLS / "nsd" / LIBRARIES)}
        checked = subprocess.run([programs / "nsd-checkconf", settings], capture_output=True, text=True, env=environment, timeout=20)
        if checked.stdout or checked.stderr:
            raise AssertionError(checked.stdout + checked.stderr)
        super().__init__([programs / "nsd", "-d", "-c", settings], self.folder / "nsd.log", environment)
        self.wait_for_line("nsd started", READY_SECONDS)

    def _sign(self, zone):
        """Signs a zone. Returns the name of the signed zone file."""
        made = _unbound("usr/bin/ldns-keygen", "-a", "ECDSAP256SHA256", "-k", zone, cwd=self.folder).strip()
        _unbound("usr/bin/ldns-signzone", zone, made, cwd=self.folder)
        self.keys.append(self.folder / f"{made}.key")
        return f"{zone}.signed"


def _unbound(program, *arguments, **how):
    """Runs a program that was unpacked with Unbound. Returns its output."""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(TOOLS / "unbound" / LIBRARIES)}
    return subprocess.run([TOOLS / "unbound" / program, *arguments], env=environment, check=True, capture_output=True, text=True, timeout=20, **how).stdout


class Unbound(Process):
    """A resolver that asks `nsd` about its zones, and checks the signatures of signed zones (DNSSEC)."""

    def __init__(self, folder, address, nsd):
        settings = pathlib.Path(folder, "unbound.conf")
        lines = ["server:", f'directory: "{folder}"', f"interface: {address}", f"outgoing-interface: {address}", "access-control: 0.0.0.0/0 allow", 'username: ""', 'chroot: ""', 'pidfile: ""', "use-syslog: no", "verbosity: 1",
                 "do-not-query-localhost: no", 'module-config: "validator iterator"', *(f'trust-anchor-file: "{key}"' for key in nsd.keys), 'local-zone: "test." nodefault',
                 "remote-control:", "control-enable: no"]
        for zone, server in nsd.zones.items():
            lines += ["stub-zone:", f'name: "{zone}."', f"stub-addr: {server}"]
        settings.write_text("\n".join(lines) + "\n")
        environment = {**os.environ, "LD_LIBRARY_PATH": str(TOOLS / "unbound" / LIBRARIES)}
        super().__init__([TOOLS / "unbound/usr/sbin/unbound", "-d", "-c", settings], pathlib.Path(folder, "unbound.log"), environment)
        self.wait_for_line("start of service", READY_SECONDS)


class MailServer:
    """A mail server with a Maildir that receives all mail for its domain, at an address."""

    def __init__(self, name, account, address):
        self.address = address
        self.folder = PLACE / name
        self.folder.mkdir()
        self.maildir = self.folder / "mail" / "box"
        self.maildir.parent.mkdir()
        shutil.chown(self.maildir.parent, account, account)

    def messages(self):
        """The received messages, with CRLF line ends."""
        files = sorted((self.maildir / "new").glob("*"), key=lambda file: file.stat().st_mtime_ns)
        return [file.read_bytes().replace(b"\n", b"\r\n") for file in files]

    def wait_for(self, count, seconds):
        """Waits until at least `count` messages have arrived. Returns the messages."""
        return until(lambda: len(found := self.messages()) >= count and found, seconds, f"{count} messages at {self.folder.name}")

    def send(self, sender, recipient, message):
        """Sends a message to the server from its own host, like a local user."""
        with smtplib.SMTP(self.address, 25, timeout=READY_SECONDS, source_address=(self.address, 0)) as session:
            session.sendmail(sender, [recipient], message)

    def kill(self):
        """Ends the server and all processes that it started, and deletes its files."""
        own = children(self.process.pid)
        self.process.kill()
        for pid in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder)


def await_port(address):
    """Waits until a server listens on port 25."""
    listening = f" {''.join(f'{int(part):02X}' for part in reversed(address.split('.')))}:0019 00000000:0000 0A "
    until(lambda: listening in pathlib.Path("/proc/net/tcp").read_text(), READY_SECONDS, f"a server at {address}")


class Postfix(MailServer):
    """
    Postfix at an address, for a domain. Its log is in the test's folder. It refuses mail to `nobody` at the domain. `users`:
    {name: password} of accounts that may log in over TLS at the submission port, only by SCRAM-SHA-256 (Cyrus SASL).
    `more`: additional settings.
    """

    def __init__(self, folder, address, host, domain, users=None, **more):
        super().__init__(domain, "postfix", address)
        tools = PLACE / "tools/postfix/usr"
        mechanisms = PLACE / "tools/sasl" / LIBRARIES / "sasl2"
        self.environment = {"LD_LIBRARY_PATH": str(tools / "lib/postfix"), "MAIL_CONFIG": str(self.folder), "PATH": os.environ["PATH"], "SASL_PATH": str(mechanisms)}
        queue = self.folder / "queue"
        for name in "active bounce corrupt defer deferred flush hold incoming private maildrop public saved trace pid".split():
            (queue / name).mkdir(parents=True)
            if name != "pid":
                shutil.chown(queue / name, "postfix", "postdrop" if name in ("maildrop", "public") else "root")
        (self.folder / "data").mkdir()
        shutil.chown(self.folder / "data", "postfix", "postfix")
        certificate = make_certificate(self.folder, host)
        settings = {
            "compatibility_level": "3.6",
            "queue_directory": queue,
            "data_directory": self.folder / "data",
            "command_directory": tools / "sbin",
            "daemon_directory": tools / "lib/postfix/sbin",
            "meta_directory": PLACE / "tools/postfix/etc/postfix",
            "shlib_directory": tools / "lib/postfix",
            "import_environment": "MAIL_CONFIG LD_LIBRARY_PATH PATH SASL_PATH",
            "maillog_file": self.folder / "log",
            "maillog_file_prefixes": PLACE,
            "mail_owner": "postfix",
            "setgid_group": "postdrop",
            "myhostname": host,
            "inet_interfaces": address,
            "mynetworks": f"{address}/32",
            "inet_protocols": "ipv4",
            "mydestination": "",
            "alias_maps": "",
            "virtual_mailbox_domains": domain,
            "virtual_mailbox_base": self.maildir.parent,
            "virtual_mailbox_maps": "static:box/",
            "virtual_uid_maps": "static:801",
            "virtual_gid_maps": "static:801",
            "message_size_limit": SIZE_MAX,
            "mailbox_size_limit": "0",
            "virtual_mailbox_limit": "0",
            "smtpd_recipient_restrictions": f"check_recipient_access inline:{{nobody@{domain}=REJECT}}, permit_mynetworks, reject_unauth_destination",
            "smtpd_end_of_data_restrictions": f"check_sender_access inline:{{{{{REFUSED} = REJECT {WORDS}}}}}",
            "smtp_bind_address": address,
            "smtpd_tls_security_level": "may",
            "smtpd_tls_chain_files": certificate,
            "smtp_tls_security_level": "may",
            "smtpd_tls_received_header": "yes",
            "smtpd_tls_auth_only": "yes",
            **more,
        }
        (self.folder / "main.cf").write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
        services = f"{address}:25 inet n - n - - smtpd\n"
        if users:
            self._let_log_in(users, host)
            services += f"{address}:587 inet n - n - - smtpd -o smtpd_sasl_auth_enable=yes\n"
        for line in ("pickup unix n - n 60 1", "cleanup unix n - n - 0", "qmgr unix n - n 300 1", "rewrite unix - - n - - trivial-rewrite", "bounce unix - - n - 0",
                     "defer unix - - n - 0 bounce", "trace unix - - n - 0 bounce", "smtp unix - - n - -", "error unix - - n - -", "virtual unix - n n - -",
                     "tlsmgr unix - - n 1000? 1", "anvil unix - - n - 1", "scache unix - - n - 1", "proxymap unix - - n - -", "flush unix n - n 1000? 0",
                     "showq unix n - n - -", "postlog unix-dgram n - n - 1 postlogd"):
            name, *rest = line.split()
            services += " ".join([name, *rest, *([name] if len(rest) == 6 else [])]) + "\n"
        (self.folder / "master.cf").write_text(services)
        self.process = Process([tools / "lib/postfix/sbin/master", "-d", "-c", self.folder], pathlib.Path(folder, f"{domain}.log"), self.environment)
        await_port(address)

    def _let_log_in(self, users, host):
        passwords = self.folder / "passwords"
        for user, password in users.items():
            program = PLACE / "tools/sasl/usr/sbin/saslpasswd2"
            subprocess.run([program, "-p", "-c", "-f", passwords, "-u", host, user], input=password.encode(), env=self.environment, check=True, capture_output=True, timeout=20)
        shutil.chown(passwords, "postfix", "postfix")
        # Debian's Postfix reads the settings of SASL from this folder.
        (self.folder / "sasl").mkdir()
        (self.folder / "sasl" / "smtpd.conf").write_text(f"pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {passwords}\nmech_list: SCRAM-SHA-256\n")

    def log(self):
        return (self.folder / "log").read_text()


class Exim(MailServer):
    """Exim at an address, for a domain. It refuses mail to `nobody` at the domain. `users`: {name: password} of accounts that
    may log in over TLS and send to any address. With users Exim also listens on the submission ports. All mail ends in its
    Maildir, but mail from its own host goes to any domain. `more`: additional settings."""

    def __init__(self, folder, address, host, domain, users=None, size_max=SIZE_MAX, more=""):
        super().__init__(domain, "Debian-exim", address)
        shutil.chown(self.folder, "Debian-exim", "Debian-exim")
        certificate = make_certificate(self.folder, host)
        shutil.chown(certificate, "Debian-exim", "Debian-exim")
        program = PLACE / "tools/exim/usr/sbin/exim4"
        settings = self.folder / "exim.conf"
        settings.write_text(textwrap.dedent(f"""\
            primary_hostname = {host}
            exim_path = {program}
            keep_environment = LD_LIBRARY_PATH
            spool_directory = {self.folder}/spool
            log_file_path = {self.folder}/%slog
            local_interfaces = {address}
            daemon_smtp_ports = {"25 : 465 : 587" if users else "25"}
            tls_on_connect_ports = 465
            auth_advertise_hosts = ${{if eq{{$tls_in_cipher}}{{}}{{}}{{*}}}}
            tls_advertise_hosts = *
            tls_certificate = {certificate}
            acl_smtp_rcpt = recipient
            acl_smtp_data = content
            message_size_limit = {size_max}
            {more}
            begin acl
            content:
              deny senders = {REFUSED}
                   message = {WORDS}
              accept
            recipient:
              deny local_parts = nobody
                   message = no such user
              accept authenticated = *
              accept hosts = {address}
              accept domains = {domain}
              deny message = relaying is not permitted
            begin routers
            out:
              driver = dnslookup
              condition = ${{if eq{{$sender_host_address}}{{{address}}}}}
              domains = ! {domain}
              transport = out
              no_more
            box:
              driver = accept
              transport = box
            begin transports
            out:
              driver = smtp
              interface = {address}
            box:
              driver = appendfile
              directory = {self.maildir}
              maildir_format
              create_directory
              user = Debian-exim
            begin authenticators
            plain:
              driver = plaintext
              public_name = PLAIN
              server_condition = {_is_one_of(users, "$auth2", "$auth3")}
              server_set_id = $auth2
            login:
              driver = plaintext
              public_name = LOGIN
              server_prompts = Username:: : Password::
              server_condition = {_is_one_of(users, "$auth1", "$auth2")}
              server_set_id = $auth1
            """))
        environment = {**os.environ, "LD_LIBRARY_PATH": str(PLACE / "tools/exim" / LIBRARIES)}
        self.process = Process([program, "-C", settings, "-bdf"], pathlib.Path(folder, f"{domain}.log"), environment)
        await_port(address)

    def log(self):
        return (self.folder / "mainlog").read_text()


def _is_one_of(users, name, password):
    """The condition of Exim's configuration that a name and a password belong to one of `users`."""
    return "${if or{" + "".join(f"{{and{{{{eq{{{name}}}{{{user}}}}}{{eq{{{password}}}{{{secret}}}}}}}}}" for user, secret in (users or {}).items()) + "{eq{0}{1}}}}"


class Sink(Process):
    """smtp-sink at an address, which stores the messages it accepts. `how`: its options to be slow, refuse or disconnect."""

    def __init__(self, folder, address, *how):
        self.folder = PLACE / f"sink-{address}"
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        tools = PLACE / "tools/postfix/usr"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tools / "lib/postfix")}
        command = [tools / "sbin/smtp-sink", "-v", "-u", "root", *how, "-d", f"{self.folder}/%s.", f"{address}:25", "100"]
        super().__init__(command, pathlib.Path(folder, f"sink-{address}.log"), environment)
        await_port(address)

    def heard(self, command):
        """The number of times that it got this command."""
        return sum(command in line for line in self.lines())

    def messages(self):
        """The messages that it has received whole, with CRLF line ends. Fields at the top contain the envelope."""
        files = sorted(self.folder.iterdir())
        begun = set()
        for descriptor in pathlib.Path(f"/proc/{self.popen.pid}/fd").iterdir():
            # smtp-sink may have closed the file since it was listed.
            with contextlib.suppress(FileNotFoundError):
                begun.add(os.readlink(descriptor))
        return [file.read_bytes().replace(b"\n", b"\r\n") for file in files if str(file) not in begun]


def make_certificate(folder, host):
    """Makes a file with a key and a self-signed certificate. Returns its path."""
    path = pathlib.Path(folder, "certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True, timeout=60)
    path.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return path


def fingerprint(folder):
    """The SHA-256 of the public key in the certificate in `folder`, in hexadecimal."""
    key = subprocess.run(["openssl", "x509", "-in", folder / "cert.pem", "-pubkey", "-noout"], check=True, capture_output=True, timeout=20).stdout
    key = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "DER"], input=key, check=True, capture_output=True, timeout=20).stdout
    return hashlib.sha256(key).hexdigest()


class Rspamd(Process):
    """rspamd at an address, with its built-in rules and three rules of the test. A subject with `suspicious` raises the score,
    and one with `later` is deferred. The log shows the envelope of each message."""

    RULES = """\
        rspamd_config.SUSPICIOUS = {
          callback = function(task) return (task:get_header('Subject') or ''):find('suspicious') ~= nil end,
          score = 7.5,
        }
        rspamd_config.LATER = {
          callback = function(task)
            if (task:get_header('Subject') or ''):find('later') then task:set_pre_result('soft reject', 'Come again') end
          end,
        }
        rspamd_config.SAID = {
          callback = function(task)
            local said = { tostring(task:get_from_ip()), task:get_helo(), task:get_from('smtp')[1].addr }
            for _, recipient in ipairs(task:get_recipients('smtp')) do table.insert(said, recipient.addr) end
            return true, 1.0, unpack(said)
          end,
          score = 0.1,
        }
        """

    def __init__(self, folder, address, port):
        own = pathlib.Path(folder, "rspamd")
        own.mkdir(exist_ok=True)
        (own / "rules.lua").write_text(textwrap.dedent(self.RULES))
        (own / "tld").write_text("test\n")
        (own / "rspamd.conf").write_text(textwrap.dedent(f"""\
            options {{
                pidfile = false; filters = ""; url_tld = "{own}/tld"; cache_file = "{own}/symbols"; tempdir = "{own}";
                control_socket = "{own}/control.sock"; hs_cache_dir = "{own}"; disable_hyperscan = true;
                dns {{ nameserver = ["{address}:53"]; timeout = 0.1; retransmits = 1; }}
            }}
            logging {{ type = "console"; level = "info"; color = false; }}
            actions {{ reject = 15; add_header = 6; greylist = 4; }}
            worker "normal" {{ bind_socket = "{address}:{port}"; count = 1; }}
            lua = "{own}/rules.lua"
            """))
        tools = PLACE / "tools/rspamd/usr"
        share, libraries = tools / "share/rspamd", tools / "lib/rspamd"
        places = {"SHAREDIR": share, "PLUGINSDIR": share / "plugins", "RULESDIR": share / "rules", "LUALIBDIR": share / "lualib", "LIBDIR": libraries,
                  "DBDIR": own, "RUNDIR": own, "CONFDIR": own, "LOCAL_CONFDIR": own, "LD_LIBRARY_PATH": f"{libraries}:{tools / 'lib/x86_64-linux-gnu'}"}
        environment = {**os.environ, **{name: str(place) for name, place in places.items()}}
        super().__init__([tools / "bin/rspamd", "-f", "-i", "-c", own / "rspamd.conf"], own / "log", environment)
        self.wait_for_line("starting normal process", READY_SECONDS)
        # The worker is another process. The line is printed when it begins, so its port may not be open yet.
        until(lambda: _answers(address, port), READY_SECONDS, f"rspamd at {address}")

    def log(self):
        return self.console.read_text()

    def kill(self):
        """Ends rspamd and its workers."""
        own = children(self.pid)
        super().kill()
        for pid in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _answers(address, port):
    with contextlib.suppress(OSError), socket.create_connection((address, port), timeout=5) as session:
        session.sendall(b"GET /ping HTTP/1.0\r\n\r\n")
        return b"pong" in session.recv(4096) + session.recv(4096)
    return False
