"""Bars and lines as SVG, drawn with nothing but text.

Owns the drawing. Its colours can be read on light and on dark paper, and by those who do not tell red from green.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

COLOURS: Final = ("#0072b2", "#56b4e9", "#777777", "#aaaaaa", "#d55e00", "#cc79a7", "#e69f00", "#009e73")
PAPER: Final = "#ffffff"
INK: Final = "#333333"
WIDTH: Final = 760
_LEFT, _TOP, _ROW = 70, 56, 22


def bars(title: str, groups: Mapping[str, Mapping[str, float | None]], unit: str) -> str:
    """Groups of bars on a logarithmic scale, the value at the end of each bar. What is None is left out."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    values = [value for group in groups.values() for value in group.values() if value]
    low = 10 ** math.floor(math.log10(min(values, default=1)))
    low = low / 10 if min(values, default=1) == low else low
    high = max(values, default=10) * 1.05
    left, right, y = 290, WIDTH - 90, _TOP
    parts: list[str] = []
    for group, bar in groups.items():
        parts.append(_text(12, y + 14, group, weight="bold"))
        y += _ROW
        for name, value in bar.items():
            if not value:
                continue
            long = (right - left) * math.log10(value / low) / math.log10(high / low)
            parts.append(_text(left - 8, y + 14, name, anchor="end"))
            parts.append(
                f'<rect x="{left}" y="{y + 3}" width="{max(long, 1):.1f}" height="{_ROW - 6}" '
                f'fill="{COLOURS[names.index(name) % len(COLOURS)]}"/>'
            )
            parts.append(_text(left + max(long, 1) + 6, y + 14, _short(value)))
            y += _ROW
        y += 8
    parts.append(_text(left, y + 14, f"{unit}, logarithmic: each bar begins at {_short(low)}", size=11))
    return _page(title, y + 28, parts)


def lines(
    title: str, series: Mapping[str, Sequence[tuple[float, float]]], across: str, up: str, *, logarithmic: bool = False
) -> str:
    """Lines over a common axis that begins at zero, or is logarithmic."""
    height, right, top = 330, WIDTH - 20, _TOP + 24 * ((len(series) + 2) // 3)
    points = [point for line in series.values() for point in line]
    most_x, most_y = max(x for x, _ in points), max(y for _, y in points) * 1.1
    least_x = min(x for x, _ in points)
    bottom = top + height - 110

    def place(x: float, y: float) -> str:
        share = (
            math.log10(x / least_x) / math.log10(most_x / least_x) if logarithmic and most_x > least_x else x / most_x
        )
        return f"{_LEFT + (right - _LEFT - 30) * share:.1f},{bottom - (bottom - top) * y / most_y:.1f}"

    parts = [
        f'<path d="M{_LEFT},{top} V{bottom} H{right}" fill="none" stroke="{INK}"/>',
        _text(right, bottom + 34, across, anchor="end", size=11),
        _text(12, top - 8, up, size=11),
    ]
    for value in _steps(most_y):
        y = float(place(least_x, value).split(",")[1])
        parts.append(f'<path d="M{_LEFT},{y:.1f} H{right}" fill="none" stroke="#dddddd"/>')
        parts.append(_text(_LEFT - 6, y + 4, _short(value), anchor="end", size=11))
    for x in sorted({x for x, _ in points}) if logarithmic else _steps(most_x):
        parts.append(_text(float(place(x, 0).split(",")[0]), bottom + 16, _short(x), anchor="middle", size=11))
    for index, (name, line) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        parts.append(
            f'<polyline points="{" ".join(place(x, y) for x, y in line)}" fill="none" stroke="{colour}" '
            f'stroke-width="2"/>'
        )
        x, y = _LEFT + (index % 3) * 230, _TOP - 8 + 22 * (index // 3)
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(x + 18, y, name, size=12))
    return _page(title, bottom + 44, parts)


def _steps(most: float) -> list[float]:
    """Three to six round values up to `most`."""
    size: float = 10 ** math.floor(math.log10(most))
    step = next(part * size for part in (0.2, 0.25, 0.5, 1.0, 2.0) if most / (part * size) < 6)
    return [step * number for number in range(1, int(most / step) + 1)]


def _short(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value:,.0f}" if value >= 10 else f"{value:.3g}"


def _text(x: float, y: float, content: str, *, anchor: str = "start", size: int = 13, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" '
        f'fill="{INK}">{escape(content)}</text>'
    )


def _page(title: str, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" font-family="sans-serif" role="img" aria-label="{escape(title)}">'
    )
    paper = f'<rect width="100%" height="100%" fill="{PAPER}"/>'
    return "\n".join([head, paper, _text(12, 26, title, size=16, weight="bold"), *parts, "</svg>"]) + "\n"
