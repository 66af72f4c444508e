"""`ate doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

import json

import click

from atenet.local.doctor import examine

__all__ = ["doctor"]

_MARKS = {"ok": "ok     ", "missing": "missing", "optional": "without"}


@click.command()
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="Format.")
def doctor(output: str) -> None:
    """Say what this machine can do, and what is missing.

    Exit code 1 when a local system cannot run here; what is only missing for more is no failure.
    """
    findings = examine()
    if output == "json":
        click.echo(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"{_MARKS[finding.state]}  {finding.what:<12} {finding.found}")
            if finding.hint:
                click.echo(f"{'':9}hint: {finding.hint}")
    if any(finding.state == "missing" for finding in findings):
        raise SystemExit(1)
