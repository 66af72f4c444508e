"""What a router must not tell: to whom its pages speak, and what they and the log hold."""

import ipaddress
import secrets

import httpx
import psutil
import pytest

from tests.support.dead_worker import refusing_address
from tests.support.eventually import eventually
from tests.support.origins import answering, echo
from tests.support.raw_http1 import RawHttp1, request
from tests.support.router_process import status_of
from tests.support.stage import new_ref
from tests.unit.router.conftest import Start

pytestmark = pytest.mark.conformance("I-39")


def on_loopback(ip: str) -> bool:
    # gRPC binds IPv4 addresses on IPv6 sockets.
    return ipaddress.ip_address(ip.removeprefix("::ffff:")).is_loopback


async def page(address: str, accept: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://{address}/statusz", headers={"accept": accept})


async def test_the_status_page_holds_no_query_string(start: Start) -> None:
    stage = await start()
    actor, _ = await stage.actor(echo)
    await stage.get(actor, "/path?token=secret")
    address = stage.router.process.ready["status"]
    assert "secret" not in (await page(address, "text/html")).text
    answer = await page(address, "application/json")
    assert "secret" not in answer.text
    status = answer.json()
    assert (status["state"], status["requests"][0]["path"]) == ("serving", "/path")
    assert status["requests"][0]["outcome"] == "ok"
    assert status["flags"]["--parked-request-max"] == 1024


async def test_only_clients_and_probes_are_served_beyond_loopback(start: Start) -> None:
    stage = await start(listen_address="0.0.0.0", metrics_listen_addr="0.0.0.0:0")
    ready = stage.router.process.ready
    heard_everywhere = {
        connection.laddr.port
        for pid in (stage.router.process.pid, ready["envoy_pid"])
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and not on_loopback(connection.laddr.ip)
    }
    named = [*ready["listeners"]["ingress"], *ready["listeners"]["connect"], ready["stats"]]
    assert heard_everywhere == {int(address.rpartition(":")[2]) for address in named}
    # And they are there, on loopback.
    assert await status_of(ready["status"], "/statusz") == 200
    assert await status_of(ready["envoy_admin"], "/ready") == 200


async def test_no_secret_of_a_request_is_logged_at_any_level(start: Start) -> None:
    # B163
    stage = await start(log_level="debug")
    secret = secrets.token_hex(8)
    served, _ = await stage.actor(answering(200, secret.encode(), ("set-cookie", f"s={secret}")))
    carried = [
        ("authorization", f"Bearer {secret}"),
        ("cookie", f"c={secret}"),
        ("x-api-key", secret),
        ("referer", f"https://a/?{secret}"),
        ("user-agent", secret),
    ]
    targets = {
        served.ref: 200,
        new_ref(): 404,
        stage.actor_on(refusing_address()).ref: 503,
        f"Not/{secret}": 404,
    }
    for ref, status in targets.items():
        answer = await stage.request(ref, "POST", f"/?t={secret}", *carried, body=secret.encode())
        assert answer.status == status
    outer = await RawHttp1.open(stage.router.connect)
    stage.closing(outer.close)
    await outer.send(request("CONNECT", "x:80", ("host", "x:80"), served.header, *carried))
    assert (await outer.head()).status == 200
    await outer.ask(request("GET", f"/{secret}?{secret}", ("host", "a"), *carried))
    await outer.close()

    await eventually(
        lambda: stage.router.process.log.count('"message":"request"') >= len(targets) + 2
    )
    assert secret not in stage.router.process.log
    assert secret not in (await stage.router.metrics()).text
