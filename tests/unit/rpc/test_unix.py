import os
import socket
import stat
from pathlib import Path

import grpc
import grpc.aio
import pytest
from atenet.errors import AteError
from atenet.proto import ateworker_pb2 as pb
from atenet.proto import ateworker_pb2_grpc as pb_grpc
from atenet.rpc.unix import serve_unix


class Echo(pb_grpc.WorkerServicer):
    async def ListWorkloads(self, request, context):  # type: ignore[no-untyped-def]
        return pb.ListWorkloadsResponse(workloads=[pb.Workload(state="echoed")])


def add(server: grpc.aio.Server) -> None:
    pb_grpc.add_WorkerServicer_to_server(Echo(), server)


async def ask(path: Path) -> str:
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        stub = pb_grpc.WorkerStub(channel)
        return (await stub.ListWorkloads(pb.ListWorkloadsRequest(), timeout=10)).workloads[0].state


async def test_it_serves_and_the_socket_is_the_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    os.umask(before)
    path = tmp_path / "run" / "x.sock"
    async with serve_unix(path, add):
        assert await ask(path) == "echoed"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not path.exists()
    assert os.umask(before) == before


async def test_what_an_interrupted_run_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    async with serve_unix(path, add):
        assert await ask(path) == "echoed"


async def test_a_path_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 120)
    with pytest.raises(AteError, match="cannot listen on Unix socket"):
        async with serve_unix(path, add):
            pytest.fail("served")
