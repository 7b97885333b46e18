"""``python -m bench [NAME ...]``: measure trainlib and others side by side, and print a table."""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict

from rich.console import Console
from rich.table import Table

from bench.measurements import MEASUREMENTS, Measurement, Side
from bench.running import Bench, SideFailedError, bench

Numbers = dict[str, list[float]]

_progress = Console(stderr=True, highlight=False)


def main() -> None:
    """Run the chosen measurements. A missed target is reported, but is not an error."""
    names = [measurement.name for measurement in MEASUREMENTS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which to run: {', '.join(names)}; all by default")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each side; the median counts")
    parser.add_argument("--list", action="store_true", help="list the measurements, and exit")
    arguments = parser.parse_args()
    if unknown := sorted(name for name in arguments.names if not any(_is_called(each, name) for each in names)):
        parser.error(f"there is no measurement {', '.join(unknown)}. Choose from {', '.join(names)}")
    if arguments.repeat < 1:
        parser.error(f"--repeat is {arguments.repeat}: it must be 1 or more")
    if arguments.list:
        for measurement in MEASUREMENTS:
            print(f"{measurement.name:<21} {measurement.what}, trainlib / {measurement.other.name}")
        return
    chosen = [m for m in MEASUREMENTS if not arguments.names or any(_is_called(m.name, n) for n in arguments.names)]
    with bench() as sides:
        numbers = measure(sides, chosen, arguments.repeat)
    Console().print(table(chosen, numbers))


def _is_called(name: str, asked: str) -> bool:
    """Whether a measurement has this name or prefix, e.g. `throughput`."""
    return name == asked or name.startswith(f"{asked}-")


def measure(bench: Bench, chosen: list[Measurement], repeat: int) -> dict[str, Numbers]:
    """Run both sides in turns. Returns the numbers of each script. Measurements that share scripts share the runs."""
    _say("warm-up: creating databases")
    bench.warm_up()
    numbers: dict[str, Numbers] = defaultdict(lambda: defaultdict(list))
    for sides in dict.fromkeys((m.trainlib.script, m.other.script) for m in chosen):
        pair = next((m.trainlib, m.other) for m in chosen if (m.trainlib.script, m.other.script) == sides)
        for turn in range(repeat):
            for side in pair:
                _run(bench, side, turn + 1, repeat, numbers[side.script])
    return numbers


def _run(bench: Bench, side: Side, turn: int, repeat: int, numbers: Numbers) -> None:
    started = time.monotonic()
    try:
        found = bench.run(side, turn)
    except SideFailedError as error:
        _say(f"{side.script} {turn}/{repeat}: {error}")
        return
    for key, value in found.items():
        numbers[key].append(value)
    shown = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
    _say(f"{side.script} {turn}/{repeat}: {shown}  ({time.monotonic() - started:.0f} s)")


def table(chosen: list[Measurement], numbers: dict[str, Numbers]) -> Table:
    """Medians, their ratio and the target."""
    result = Table("what", title="trainlib, side by side")
    for column in ("trainlib", "the other", "ratio", "target"):
        result.add_column(column, justify="right", no_wrap=True)
    result.add_column("ok?", justify="center")
    for m in chosen:
        ours, theirs = (numbers[side.script].get(m.key) for side in (m.trainlib, m.other))
        target = f"{'>=' if m.more_is_better else '<='} {m.target:g}"
        if not ours or not theirs:
            result.add_row(m.what, "-", f"{m.other.name}  -", "-", target, "failed")
            continue
        one, other = statistics.median(ours), statistics.median(theirs)
        compared = m.compared(one, other)
        verdict = "yes" if m.holds(compared) else "no"
        result.add_row(
            m.what,
            shown(one, m.unit),
            f"{m.other.name}  {shown(other, m.unit)}",
            f"{compared:.3f}",
            target,
            verdict,
        )
    return result


def shown(value: float, unit: str) -> str:
    """A number with its unit.

    Example:
        >>> shown(0.0051, "s"), shown(2.346, "s"), shown(15123.4, "/s")
        ('5.10 ms', '2.35 s', '15123/s')
    """
    if unit != "s":
        return f"{value:.0f}{unit}" if value >= 100 else f"{value:.2f}{unit}"
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.2f} ms"


def _say(text: str) -> None:
    _progress.print(text, markup=False)


if __name__ == "__main__":
    main()
