"""Which sandbox class a local system's actors get: what was asked for, against what is here."""

from __future__ import annotations

import dataclasses

from atenet.errors import AteError
from atenet.gvisor import find_runsc
from atenet.local.settings import LocalSettings

__all__ = ["settle_sandbox"]


def settle_sandbox(settings: LocalSettings) -> LocalSettings:
    """With `auto` replaced by a class. Raises AteError when gvisor is asked for and cannot be had."""
    if settings.sandbox == "process":
        return settings
    found = find_runsc()
    if found is None and settings.sandbox == "gvisor":
        raise AteError(
            "--sandbox gvisor: there is no runsc that is recent enough",
            hint="`make runsc` builds it (needs Go); `ate doctor` says what is here",
        )
    return dataclasses.replace(settings, sandbox="process" if found is None else "gvisor")
