"""`python -m atenet.local.demo`"""

from __future__ import annotations

import sys

from atenet.cli.demo import demo
from atenet.cli.failure import run

if __name__ == "__main__":
    sys.exit(run(demo))
