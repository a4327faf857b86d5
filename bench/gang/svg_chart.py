"""Line charts as SVG, in plain Python, for hosts without matplotlib."""
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 460, 340  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 34, 52  # around its axes
COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00']  # Okabe and Ito: safe for colour-blind readers
TICKS = 5


def text(x, y, words, more=''):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(str(words))}</text>'


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def scale_of(panel):
    """The highest value of the axis: a round number not below any point."""
    highest = max([y for _, points in panel['lines'] for _, y in points], default=1) or 1
    step = 10.0 ** (len(str(int(highest))) - 1)
    while step * TICKS < highest:
        step *= 2
    while step * TICKS > 2 * highest:
        step /= 2
    return step * TICKS


def frame(panel, top):
    """Axes, their labels and grid."""
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    out = [text(LEFT + inner_width / 2, TOP - 14, panel['title'], 'text-anchor="middle" font-weight="bold"')]
    for i in range(TICKS + 1):
        y = TOP + inner_height * (1 - i / TICKS)
        out += [line(LEFT, y, WIDTH - RIGHT, y, '#ddd' if i else '#000'),
                text(LEFT - 6, y + 4, f'{top * i / TICKS:g}', 'text-anchor="end"')]
    for index, label in enumerate(panel['places']):
        out.append(text(x_of(panel, index), HEIGHT - BOTTOM + 16, label, 'text-anchor="middle"'))
    out += [text(LEFT + inner_width / 2, HEIGHT - 10, panel['x'], 'text-anchor="middle"'),
            text(0, 0, panel['y'], f'text-anchor="middle" transform="translate(14 {TOP + inner_height / 2}) rotate(-90)"')]
    return out


def x_of(panel, index):
    return LEFT + (WIDTH - LEFT - RIGHT) * (index + 0.5) / max(1, len(panel['places']))


def curves(panel, top):
    out = []
    for number, (name, points) in enumerate(panel['lines']):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x_of(panel, x), TOP + (HEIGHT - TOP - BOTTOM) * (1 - y / top)) for x, y in points]
        path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        out.append(text(LEFT + 8, TOP + 14 + 14 * number, name, f'fill="{colour}"'))
    return out


def draw(panels, path):
    """`panels` stand side by side; each has title, x, y, places (the labels along x) and lines: (name, [(place, value)])."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH * len(panels)}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>']
    for number, panel in enumerate(panels):
        top = scale_of(panel)
        out += [f'<g transform="translate({WIDTH * number} 0)">', *frame(panel, top), *curves(panel, top), '</g>']
    with open(path, 'w', encoding='utf-8') as file:
        file.write('\n'.join([*out, '</svg>\n']))
