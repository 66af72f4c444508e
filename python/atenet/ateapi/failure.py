"""What a caller is told: a gRPC code and one line without internals."""

from __future__ import annotations

import grpc

__all__ = ["CallError", "aborted", "already_exists", "invalid", "not_found", "precondition"]


class CallError(Exception):
    """Ends a call with `code` and `message`. The message is the caller's: no internals."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid(field: str, why: str) -> CallError:
    """InvalidArgument that names the field by its path in the request."""
    return CallError(grpc.StatusCode.INVALID_ARGUMENT, f"{field}: {why}")


def not_found(what: str) -> CallError:
    return CallError(grpc.StatusCode.NOT_FOUND, f"{what} does not exist")


def already_exists(what: str) -> CallError:
    return CallError(grpc.StatusCode.ALREADY_EXISTS, f"{what} already exists")


def precondition(message: str) -> CallError:
    return CallError(grpc.StatusCode.FAILED_PRECONDITION, message)


def aborted(message: str) -> CallError:
    return CallError(grpc.StatusCode.ABORTED, message)
