// Each job has one of the eight colours of the scheme (style.css), which are distinct for every common kind
// of colour vision. After these eight the same colours are striped. Text on them is black or white, whichever
// is easier to read.

import { isLight } from './theme';

const jobColours = 8;

export interface JobColour {
  fill: string;
  text: string;
}

// Returns WCAG's relative luminance of #rrggbb.
function luminance(colour: string): number {
  const part = (at: number) => {
    const share = parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

// Above 0.179 black is easier to read, below it white; the contrast is always 4.5:1 or better.
function withText(fill: string): JobColour {
  return { fill, text: luminance(fill) > 0.179 ? '#000000' : '#ffffff' };
}

export function jobColour(job: number, theme: Theme): JobColour {
  return theme.jobs[job % jobColours]!;
}

export interface Theme {
  ink: string;
  faint: string;
  line: string;
  ground: string;
  cell: string; // a cell without a job
  jobs: JobColour[];
  accent: string;
  // Curves.
  p50: string;
  p95: string;
  max: string;
  skew: string;
  // Load bars: parts of a process's scheduled time.
  user: string;
  system: string;
  waited: string;
  pm: string;
}

// Reading a style makes the browser recompute all styles first, so it is read once per scheme.
let kept: { light: boolean; theme: Theme } | null = null;

export function themeOf(element: Element): Theme {
  const light = isLight();
  if (kept?.light !== light) kept = { light, theme: readTheme(element) };
  return kept.theme;
}

function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: get('--ink'),
    faint: get('--faint'),
    line: get('--line'),
    ground: get('--panel'),
    cell: get('--cell'),
    jobs: Array.from({ length: jobColours }, (_, index) => withText(get(`--job${index}`))),
    accent: get('--accent'),
    p50: get('--p50'),
    p95: get('--p95'),
    max: get('--max'),
    skew: get('--skew'),
    user: get('--user'),
    system: get('--system'),
    waited: get('--waited'),
    pm: get('--pm'),
  };
}

// Opacity of jobs other than the marked one.
export const unmarkedAlpha = 0.2;

export function fillJob(
  context: CanvasRenderingContext2D,
  job: number,
  box: { x: number; y: number; w: number; h: number },
  theme: Theme,
): void {
  const { x, y, w, h } = box;
  const colour = jobColour(job, theme);
  context.fillStyle = colour.fill;
  context.fillRect(x, y, w, h);
  if (Math.floor(job / jobColours) % 2 === 0) return;
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = `${colour.text}59`; // a third of it
  context.lineWidth = 2;
  context.beginPath();
  for (let at = x - h; at < x + w; at += 6) {
    context.moveTo(at, y + h);
    context.lineTo(at + h, y);
  }
  context.stroke();
  context.restore();
}
