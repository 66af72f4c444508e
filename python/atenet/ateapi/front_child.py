"""The front's own process: `python -m atenet.ateapi.front_child`, started and told by ateapi.

It is one of its own because the engine reads the store with its own copy of SQLite: POSIX locks
belong to a process, and two copies of SQLite in one would undo each other's. One JSON object a
line each way; it ends with its standard input, so it never outlives who started it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from atenet import _engine

__all__ = ["main"]


def main() -> None:
    # A terminal's Ctrl-C reaches it as well; when it ends is for ateapi to say.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    given = json.loads(sys.stdin.readline())
    try:
        _engine.log_to_stderr("ateapi-front", given["log_level"])
        front = _engine.ApiFront(json.dumps(given["front"]))
        _say({"address": front.start()})
    except _engine.EngineError as e:
        _say({"error": str(e)})
        sys.exit(1)
    except (AttributeError, TypeError, ValueError) as e:
        # It has no front, or does not know what it is told: ateapi has checked what comes from people.
        _say({"error": f"the engine does not take what ateapi tells it: {e}", "other_engine": True})
        sys.exit(1)
    for line in sys.stdin:
        asked = json.loads(line)
        if "close_seconds" in asked:
            front.close(asked["close_seconds"])
            return
        _say({"answered": json.loads(front.answered())})
    os._exit(0)  # whoever started it is gone: what it carries has nowhere to go


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
