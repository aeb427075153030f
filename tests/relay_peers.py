"""Sendmail and OpenSMTPD as Debian has them, on hosts in the test's own network. peers.py describes how they run."""

import os
import pathlib
import subprocess
import textwrap

from peers import LIBRARIES, PLACE, REFUSED, SIZE_MAX, WORDS, MailServer, await_port, make_certificate
from processes import Process

# The only account of these servers' domains.
ACCOUNT = "bob"


class Sendmail(MailServer):
    """Sendmail at an address, for a domain. `size_max`: the largest message that it takes."""

    def __init__(self, folder, address, host, domain, size_max=SIZE_MAX):
        super().__init__(domain, ACCOUNT, address)
        tools = PLACE / "tools/sendmail"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tools / LIBRARIES)}
        (self.folder / "queue").mkdir(mode=0o700)
        make_certificate(self.folder, host)
        for name in ("tmp", "new"):
            (self.maildir / name).mkdir(parents=True)
        deliver = self.folder / "deliver"
        deliver.write_text(f"#!/bin/sh\ncd {self.maildir} && cat > tmp/$$ && mv tmp/$$ new/\n")
        deliver.chmod(0o755)
        # Flag 9 would decode messages when they are delivered.
        (self.folder / "sendmail.mc").write_text(textwrap.dedent(f"""\
            OSTYPE(`linux')dnl
            define(`confDOMAIN_NAME', `{host}')dnl
            define(`QUEUE_DIR', `{self.folder}/queue')dnl
            define(`STATUS_FILE', `{self.folder}/statistics')dnl
            define(`confPID_FILE', `{self.folder}/pid')dnl
            define(`confCR_FILE', `-o {self.folder}/relay-domains')dnl
            define(`confMAX_MESSAGE_SIZE', `{size_max}')dnl
            define(`confSERVER_CERT', `{self.folder}/cert.pem')dnl
            define(`confSERVER_KEY', `{self.folder}/key.pem')dnl
            define(`confCACERT', `{self.folder}/cert.pem')dnl
            define(`confCACERT_PATH', `{self.folder}')dnl
            define(`confDONT_PROBE_INTERFACES', `True')dnl
            define(`confTO_IDENT', `0')dnl
            undefine(`ALIAS_FILE')dnl
            FEATURE(`no_default_msa')dnl
            FEATURE(`nocanonify')dnl
            DAEMON_OPTIONS(`Addr={address}, Port=25, Name=MTA')dnl
            CLIENT_OPTIONS(`Family=inet, Address={address}')dnl
            define(`LOCAL_MAILER_PATH', `{deliver}')dnl
            define(`LOCAL_MAILER_ARGS', `deliver $u')dnl
            MODIFY_MAILER_FLAGS(`LOCAL', `-9')dnl
            MAILER(`local')dnl
            MAILER(`smtp')dnl
            LOCAL_CONFIG
            Cw{domain}
            CR{address}
            LOCAL_RULESETS
            Scheck_eom
            R$*\t$: $&f
            R$* {REFUSED} $*\t$#error $@ 5.7.1 $: "554 {WORDS}"
            """))
        macros = f"{tools}/usr/share/sendmail/cf/"
        settings = self.folder / "sendmail.cf"
        with open(settings, "w") as file:
            subprocess.run([tools / "usr/bin/m4", f"-D_CF_DIR_={macros}", f"{macros}m4/cf.m4", self.folder / "sendmail.mc"],
                           stdout=file, env=environment, check=True, timeout=20)
        program = f"{tools}/usr/libexec/sendmail/sendmail -bD -q5s -C {settings} -X {self.folder}/log"
        # If its host had a name without a dot, Sendmail would wait for a better one. It starts processes that it does not
        # keep as its children, and they end with their process namespace.
        command = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", f"hostname {host} && exec {program}"]
        self.process = Process(command, pathlib.Path(folder, f"{domain}.log"), environment)
        await_port(address)

    def log(self):
        """What was said in all of its sessions."""
        return (self.folder / "log").read_text(errors="replace")


class OpenSmtpd(MailServer):
    """OpenSMTPD at an address, for a domain, without TLS: Debian's does not complete a handshake with any client. Its folders
    are fixed, so it gets them in its own mount namespace. `size_max`: the largest message that it takes."""

    def __init__(self, folder, address, host, domain, size_max=SIZE_MAX):
        super().__init__(domain, ACCOUNT, address)
        tools = PLACE / "tools/opensmtpd"
        settings = self.folder / "smtpd.conf"
        settings.write_text(textwrap.dedent(f"""\
            smtp max-message-size {size_max}
            filter "refuse" phase commit match mail-from "{REFUSED}" reject "554 5.7.1 {WORDS}"
            listen on {address} hostname "{host}" filter "refuse"
            action "box" maildir "{self.maildir}"
            action "out" relay src {address} helo "{host}"
            match from any for domain "{domain}" action "box"
            match from src {address} for any action "out"
            """))
        for name in ("run", "spool/smtpd", "lib/opensmtpd/empty"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "spool/smtpd").chmod(0o711)
        own = {"/run": self.folder / "run", "/var/spool": self.folder / "spool", "/var/lib": self.folder / "lib", "/usr/libexec": tools / "usr/libexec"}
        mounts = "".join(f"mount --bind {source} {place} && " for place, source in own.items())
        environment = {**os.environ, "LD_LIBRARY_PATH": str(tools / LIBRARIES)}
        command = ["unshare", "--mount", "sh", "-c", f"{mounts} exec {tools}/usr/sbin/smtpd -d -f {settings}"]
        self.process = Process(command, pathlib.Path(folder, f"{domain}.log"), environment)
        await_port(address)

    def log(self):
        return "\n".join(self.process.lines())
