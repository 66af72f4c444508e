"""`<atespace>/<name>` on a command line."""

from __future__ import annotations

from typing import Any

import click

from atenet.proto import ateapi_pb2 as pb

__all__ = ["NAME", "REF"]


class _Ref(click.ParamType[pb.ObjectRef]):
    """Checked by the engine: the one place that says what a name may be."""

    name = "atespace/name"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> pb.ObjectRef:
        from atenet import _engine

        if isinstance(value, pb.ObjectRef):
            return value
        try:
            atespace, name = _engine.parse_actor_ref(value)
        except ValueError as error:
            self.fail(f"{value!r} is not <atespace>/<name>: {error}", param, ctx)
        return pb.ObjectRef(atespace=atespace, name=name)


class _Name(click.ParamType[str]):
    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from atenet import _engine

        try:
            _engine.check_name(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        return str(value)


REF = _Ref()
NAME = _Name()
