"""Draws line charts as SVG, in plain Python, for hosts without matplotlib."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 460, 340  # size of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 34, 52  # around its axes
COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00']  # Okabe and Ito: safe for colour-blind readers
TICKS = 5
COLUMNS = 3  # columns of panels, if there are more than ROW
ROW = 6
CAPTION = 24  # height of the caption


def text(x, y, words, more=''):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


class Linear:
    """An axis from 0 to a round number not below any point. `ticks`: (value, share of the axis)."""

    def __init__(self, values):
        highest = max(values, default=1) or 1
        step = 10.0 ** (len(str(int(highest))) - 1)
        while step * TICKS < highest:
            step *= 2
        while step * TICKS > 2 * highest:
            step /= 2
        self.top = step * TICKS
        self.ticks = [(self.top * i / TICKS, i / TICKS) for i in range(TICKS + 1)]

    def share(self, value):
        return value / self.top


class Logarithmic:
    """An axis between powers of ten around the points, which must be above 0."""

    def __init__(self, values):
        self.low = math.floor(math.log10(min(values, default=1)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values, default=10))))
        self.ticks = [(10.0 ** power, (power - self.low) / (self.high - self.low)) for power in range(self.low, self.high + 1)]

    def share(self, value):
        return (math.log10(value) - self.low) / (self.high - self.low)


def scale_of(panel):
    return (Logarithmic if panel.get('log') else Linear)([y for _, points in panel['lines'] for _, y in points])


def frame(panel, scale):
    """Draws the axes, their labels and grid."""
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    out = [text(LEFT + inner_width / 2, TOP - 14, panel['title'], 'text-anchor="middle" font-weight="bold"')]
    for value, share in scale.ticks:
        y = TOP + inner_height * (1 - share)
        out += [line(LEFT, y, WIDTH - RIGHT, y, '#ddd' if share else '#000'),
                text(LEFT - 6, y + 4, f'{value:g}', 'text-anchor="end"')]
    for index, label in enumerate(panel['places']):
        out.append(text(x_of(panel, index), HEIGHT - BOTTOM + 16, label, 'text-anchor="middle"'))
    out += [text(LEFT + inner_width / 2, HEIGHT - 10, panel['x'], 'text-anchor="middle"'),
            text(0, 0, panel['y'], f'text-anchor="middle" transform="translate(14 {TOP + inner_height / 2}) rotate(-90)"')]
    return out


def x_of(panel, index):
    return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / max(1, len(panel['places']))


def curves(panel, scale):
    out = []
    for number, (name, points) in enumerate(panel['lines']):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x_of(panel, x), TOP + (HEIGHT - TOP - BOTTOM) * (1 - scale.share(y))) for x, y in points]
        path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        out.append(text(LEFT + 8, TOP + 14 + 14 * number, name, f'fill="{colour}"'))
    return out


def draw(panels, path, caption=''):
    """Draws `panels` side by side, many in lines of COLUMNS, above the caption. Each has title, x, y, places (the labels along x) and lines: (name,
    [(place, value)]); and perhaps log: a logarithmic y axis."""
    columns = len(panels) if len(panels) <= ROW else COLUMNS
    height = HEIGHT * -(-len(panels) // columns)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * columns}" height="{height + (CAPTION if caption else 0)}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>']
    for number, panel in enumerate(panels):
        scale = scale_of(panel)
        out += [f'<g transform="translate({WIDTH * (number % columns)} {HEIGHT * (number // columns)})">', *frame(panel, scale),
                *curves(panel, scale), '</g>']
    if caption:
        out.append(text(LEFT, height + CAPTION - 8, caption))
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join([*out, '</svg>\n']))
