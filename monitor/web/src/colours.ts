// A colour a job: Okabe and Ito's palette, told apart by every common kind of colour vision; after its
// eight the same ones striped. Text on them is black or white, whichever is read better.

const palette = ['#e69f00', '#56b4e9', '#009e73', '#f0e442', '#0072b2', '#d55e00', '#cc79a7', '#999999'];
const whiteText = new Set(['#0072b2']);

export interface JobColour {
  fill: string;
  text: string;
  striped: boolean;
}

export function jobColour(job: number): JobColour {
  const fill = palette[job % palette.length]!;
  return {
    fill,
    text: whiteText.has(fill) ? '#ffffff' : '#000000',
    striped: Math.floor(job / palette.length) % 2 === 1,
  };
}

export interface Theme {
  ink: string;
  faint: string;
  line: string;
  ground: string;
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

// Asking for a style makes the browser bring all styles up to date first: once for each scheme is enough.
const schemes = window.matchMedia('(prefers-color-scheme: light)');
let kept: { light: boolean; theme: Theme } | null = null;

export function themeOf(element: Element): Theme {
  if (kept?.light !== schemes.matches) kept = { light: schemes.matches, theme: readTheme(element) };
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

// Of what belongs to other jobs than the one that is marked.
export const unmarkedAlpha = 0.2;

export function fillJob(
  context: CanvasRenderingContext2D,
  job: number,
  box: { x: number; y: number; w: number; h: number },
): void {
  const { x, y, w, h } = box;
  const colour = jobColour(job);
  context.fillStyle = colour.fill;
  context.fillRect(x, y, w, h);
  if (!colour.striped) return;
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = 'rgba(0, 0, 0, 0.35)';
  context.lineWidth = 2;
  context.beginPath();
  for (let at = x - h; at < x + w; at += 6) {
    context.moveTo(at, y + h);
    context.lineTo(at + h, y);
  }
  context.stroke();
  context.restore();
}
