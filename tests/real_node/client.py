"""Runs inside a client's pod, with what is in its image, as that pod: one call, its answer as JSON on stdout.

`client.py api METHOD JSON` calls the control plane; `client.py http METHOD URL JSON-HEADERS` goes through the router;
`client.py connect HOST PORT` only tries whether the network lets it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

IDENTITY = Path("/run/ate/identity/credential-bundle.pem")
ROOTS = Path("/run/ate/trust/service-dns.pem")
_SECONDS = 60


def api(method: str, given: str) -> dict[str, Any]:
    """`method`: of ateapi.Control or of ateapi.EgressSupport; `given`: its request as JSON."""
    import grpc
    from atenet.proto import ateapi_pb2, ateapi_pb2_grpc, egresssupport_pb2, egresssupport_pb2_grpc
    from atenet.rpc.material import WatchedMaterial
    from google.protobuf import json_format

    material = WatchedMaterial(IDENTITY, ROOTS).current
    credentials = grpc.ssl_channel_credentials(material.roots, material.key, material.chain)
    with grpc.secure_channel("api.ate-system.svc:443", credentials) as channel:
        stub: Any = ateapi_pb2_grpc.ControlStub(channel)
        messages: Any = ateapi_pb2
        if not hasattr(stub, method):
            stub, messages = egresssupport_pb2_grpc.EgressSupportStub(channel), egresssupport_pb2
        request = json_format.Parse(given, getattr(messages, f"{method}Request")())
        try:
            answer = getattr(stub, method)(request, timeout=_SECONDS)
        except grpc.RpcError as error:
            return {"error": error.code().name, "details": error.details()}
    return dict(json_format.MessageToDict(answer))


def http(method: str, url: str, headers: str) -> dict[str, Any]:
    import ssl
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    trust = ssl.create_default_context(cafile=ROOTS)
    trust.load_cert_chain(IDENTITY)
    asked = Request(url, method=method, headers=json.loads(headers))
    try:
        with urlopen(asked, timeout=_SECONDS, context=trust) as answer:
            return {"status": answer.status, "body": answer.read().decode()}
    except HTTPError as error:
        return {
            "status": error.code,
            "body": error.read().decode(),
            "reason": error.headers.get("ate-reason"),
        }
    except (URLError, OSError) as error:
        return {"status": 0, "body": str(error)}


def connect(host: str, port: str) -> dict[str, Any]:
    import socket

    try:
        socket.create_connection((host, int(port)), timeout=3).close()
    except OSError as error:
        return {"connected": False, "why": str(error)}
    return {"connected": True}


if __name__ == "__main__":
    print(json.dumps({"api": api, "http": http, "connect": connect}[sys.argv[1]](*sys.argv[2:])))
