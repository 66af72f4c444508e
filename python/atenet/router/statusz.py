"""/statusz: what this router is, what it was told, how it is and what it did last. JSON or HTML."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from atenet.pages import Page, Query

__all__ = ["render"]

_STYLE = (
    "body{font:14px system-ui;margin:2em}table{border-collapse:collapse;margin:.5em 0 1.5em}"
    "td,th{border:1px solid #ccc;padding:.2em .6em;text-align:left;font-variant-numeric:tabular-nums}"
)


def render(query: Query, status: Mapping[str, Any]) -> Page:
    """JSON for programs (`Accept: application/json` or `?format=json`), else HTML."""
    if "application/json" in query.accept or "format=json" in query.query.split("&"):
        return Page(json.dumps(status, indent=2) + "\n", content_type="application/json")
    return Page(_page(status), content_type="text/html; charset=utf-8")


def _page(status: Mapping[str, Any]) -> str:
    parts = [_section(name, value) for name, value in status.items()]
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>atenet router</title><style>{_STYLE}</style>"
        f"<h1>atenet router</h1>{''.join(parts)}</html>\n"
    )


def _section(name: str, value: Any) -> str:
    title = f"<h2>{html.escape(name)}</h2>"
    if isinstance(value, list):
        return title + _rows(value)
    if isinstance(value, Mapping):
        if value and all(isinstance(each, Mapping) for each in value.values()):
            return title + _rows([{"name": key, **each} for key, each in value.items()])
        return title + _pairs(value)
    return title + f"<p>{_text(value)}</p>"


def _pairs(values: Mapping[str, Any]) -> str:
    rows = (f"<tr><th>{html.escape(str(key))}<td>{_text(value)}" for key, value in values.items())
    return f"<table>{''.join(rows)}</table>"


def _rows(rows: list[Mapping[str, Any]]) -> str:
    if not rows:
        return "<p>none</p>"
    head = "".join(f"<th>{html.escape(str(key))}" for key in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(value)}" for value in row.values()) for row in rows
    )
    return f"<table><tr>{head}{body}</table>"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list | tuple):
        return html.escape(", ".join(map(str, value)))
    return "-" if value is None else html.escape(str(value))
