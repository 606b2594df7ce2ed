"""A bar chart as SVG, on a logarithmic scale: ours cold, ours resident, the real system, in J."""

import math
from dataclasses import dataclass
from html import escape

_ROW, _BAR, _LEFT, _WIDTH = 46, 11, 300, 900
_COLOURS = {"cold": "#4c78a8", "resident": "#59a14f", "real": "#e15759"}
_LABELS = {"cold": "Arbiter, state in the body", "resident": "Arbiter, state kept", "real": "the real system"}


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    values: dict[str, float]


def svg(title: str, rows: list[Row]) -> str:
    """One group of bars a row; missing values leave their place empty."""
    values = [v for row in rows for v in row.values.values() if v > 0]
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    height = 90 + _ROW * len(rows)

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 70) * (math.log10(value) - low) / max(1, high - low)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="22" font-size="15">{escape(title)}</text>',
    ]
    for i, (kind, label) in enumerate(_LABELS.items()):
        out.append(f'<rect x="{12 + 230 * i}" y="36" width="11" height="11" fill="{_COLOURS[kind]}"/>')
        out.append(f'<text x="{28 + 230 * i}" y="46">{escape(label)}</text>')
    for power in range(low, high + 1):
        at = x(10.0**power)
        out.append(f'<line x1="{at:.1f}" y1="60" x2="{at:.1f}" y2="{height - 22}" stroke="#ddd"/>')
        out.append(f'<text x="{at:.1f}" y="{height - 8}" text-anchor="middle">{10.0**power:g} J</text>')
    for i, row in enumerate(rows):
        top = 64 + _ROW * i
        out.append(f'<text x="12" y="{top + 22}">{escape(row.name)}</text>')
        for k, kind in enumerate(_LABELS):
            if (value := row.values.get(kind)) is not None and value > 0:
                y = top + k * (_BAR + 2)
                width = max(x(value) - _LEFT, 1)
                out.append(f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{_COLOURS[kind]}"/>')
                out.append(f'<text x="{x(value) + 4:.1f}" y="{y + 10}" font-size="10">{value:.3g}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"
