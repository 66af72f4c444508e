"""One picture a measure: its runs, their median, and the goal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.goals import GOALS
from benchmarks.result import RESULTS

__all__ = ["plot"]


def plot(result: dict[str, Any]) -> Path:
    """Draws results/<id>.svg and returns its path."""
    import matplotlib as mpl  # only `make bench` installs it

    mpl.use("svg")
    # The same picture from the same numbers: no date, no random ids.
    mpl.rcParams["svg.hashsalt"] = result["id"]
    from matplotlib import pyplot as plt

    goal = GOALS[result["id"]]
    figure, axes = plt.subplots(figsize=(6, 2.2), layout="constrained")
    values = [run["value"] for run in result["runs"]]
    axes.plot(values, [0.0] * len(values), "o", alpha=0.5, label="runs")
    axes.axvline(result["value"], color="tab:blue", label=f"median {result['value']:.3g}")
    axes.axvline(goal.bound, color="tab:red", linestyle="--", label=f"goal {goal.text}")
    axes.set_xlim(left=0)
    axes.set_yticks([])
    axes.set_xlabel(result["unit"])
    axes.set_title(f"{result['id']}: {goal.what}", fontsize=9)
    axes.legend(fontsize=8)
    path = RESULTS / f"{result['id']}.svg"
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
