"""A file whose parts are well formed and do not fit together."""

from __future__ import annotations

from atenet.agentgateway.load import Problem

__all__ = ["Untranslatable"]


class Untranslatable(Exception):
    """`problem` names the key, without a line."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem
