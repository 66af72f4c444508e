"""The real runsc, of which single calls fail when they are told to."""

from pathlib import Path

from tests.support.gvisor_box import runsc

_TEXT = """#!/bin/sh
for word; do
  if mv "{place}/fail-$word" "{place}/failed-$word" 2>/dev/null; then
    echo "$word: as ordered" >&2
    exit 1
  fi
  if mv "{place}/hang-$word" "{place}/hung-$word" 2>/dev/null; then
    exec sleep 60
  fi
done
exec {real} "$@"
"""


class FailingRunsc:
    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.place = place
        self.program = place / "runsc"
        self.program.write_text(_TEXT.format(place=place, real=runsc()))
        self.program.chmod(0o755)

    def fail_once(self, word: str) -> None:
        (self.place / f"fail-{word}").touch()

    def hang_once(self, word: str) -> None:
        (self.place / f"hang-{word}").touch()

    def failed(self, word: str) -> bool:
        return (self.place / f"failed-{word}").exists()
