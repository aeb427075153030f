"""What sslyze and OpenSSL 3.5 find out about each service: run by the Python that has them, `scan.py BASE`, and told as JSON.

Nothing in it depends on when, where or how fast it was found out. Of resumption sslyze says nothing of use: it holds only those tickets for good that never change.
"""

import json
import socket
import sys

import sslyze
from OpenSSL import SSL
from sslyze import ProtocolWithOpportunisticTlsEnum as Begun
from sslyze import ScanCommand, ServerNetworkConfiguration, ServerNetworkLocation, ServerScanRequest

BASE = int(sys.argv[1])

# Port in the machine, and how TLS is begun there.
SERVICES = {
    "smtp": (25, Begun.SMTP),
    "pop3": (110, Begun.POP3),
    "https": (443, None),
    "submissions": (465, None),
    "submission": (587, Begun.SMTP),
    "pop3s": (995, None),
}

VERSIONS = ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3")

# What each of these found, in one word.
VERDICTS = {
    ScanCommand.TLS_COMPRESSION: "supports_compression",
    ScanCommand.TLS_1_3_EARLY_DATA: "supports_early_data",
    ScanCommand.OPENSSL_CCS_INJECTION: "is_vulnerable_to_ccs_injection",
    ScanCommand.TLS_FALLBACK_SCSV: "supports_fallback_scsv",
    ScanCommand.HEARTBLEED: "is_vulnerable_to_heartbleed",
    ScanCommand.ROBOT: "robot_result",
    ScanCommand.SESSION_RENEGOTIATION: "supports_secure_renegotiation is_vulnerable_to_client_renegotiation_dos",
    ScanCommand.TLS_EXTENDED_MASTER_SECRET: "supports_ems_extension",
}
SUITES = [ScanCommand(f"{version}_cipher_suites") for version in VERSIONS]

# Long enough for any machine.
PATIENCE_SECONDS = 60


def request(port, begun):
    place = ServerNetworkLocation("localhost", BASE + port, ip_address="127.0.0.1")
    how = ServerNetworkConfiguration("localhost", tls_opportunistic_encryption=begun, network_timeout=PATIENCE_SECONDS)
    return ServerScanRequest(place, how, scan_commands={*SUITES, *VERDICTS, ScanCommand.ELLIPTIC_CURVES})


def found(result):
    """What was found out about one service."""

    def of(command):
        attempt = getattr(result.scan_result, command.value)
        if attempt.result is None:
            raise SystemExit(f"{command.value}: {attempt.error_reason} {attempt.error_trace}")
        return attempt.result

    if result.scan_result is None:
        raise SystemExit(f"{result.server_location.port}: {result.connectivity_error_trace}")
    suites = {command.value: sorted(suite.cipher_suite.name for suite in of(command).accepted_cipher_suites) for command in SUITES}
    verdicts = {word: getattr(of(command), word) for command, words in VERDICTS.items() for word in words.split()}
    curves = [curve.name for curve in of(ScanCommand.ELLIPTIC_CURVES).supported_curves]
    return {**suites, **verdicts, "curves": curves}


def group():
    """What OpenSSL 3.5, asked for nothing special, agrees on with port 443."""
    with socket.create_connection(("localhost", BASE + 443), PATIENCE_SECONDS) as plain:
        plain.settimeout(None)
        talk = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), plain)
        talk.set_connect_state()
        talk.do_handshake()
        return {"version": talk.get_protocol_version_name(), "group": talk.get_group_name()}


names = {BASE + port: name for name, (port, _) in SERVICES.items()}
# QEMU has room for one connection that waits to be taken: of two that come at once, one may wait for a minute.
scanner = sslyze.Scanner(per_server_concurrent_connections_limit=1)
scanner.queue_scans([request(*service) for service in SERVICES.values()])
results = {names[result.server_location.port]: found(result) for result in scanner.get_results()}
print(json.dumps({"openssl": group(), "sslyze": results}))
