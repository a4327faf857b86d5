// Which part of the history is shown: a span of time that ends now, or a part of it that one has zoomed into.
// It is pure.

export interface Span {
  name: string;
  step: number; // s
  seconds: number;
}

export const spans: Span[] = [
  { name: '2 hours', step: 10, seconds: 7200 },
  { name: 'day', step: 60, seconds: 86_400 },
  { name: 'week', step: 600, seconds: 604_800 },
];

export interface Range {
  from: number; // seconds since 1970
  to: number;
}

export interface Position extends Range {
  span: Span;
  isZoomed: boolean;
}

// Reads the position from the address; without one, or with a wrong one, it is the whole span.
export function readPosition(query: URLSearchParams, now: number): Position {
  const span = spans.find(({ name }) => name === query.get('span')) ?? spans[0]!;
  const whole = { from: now - span.seconds, to: now };
  const [from, to] = [Number(query.get('from')), Number(query.get('to'))];
  const isSound = from > 0 && to - from >= span.step && to - from <= span.seconds * 2;
  return isSound ? { span, from, to, isZoomed: true } : { span, ...whole, isZoomed: false };
}

// Returns the range after a step: zoom below 1 shows less, and shift moves by this part of its length.
export function moved({ from, to }: Range, zoom: number, shift: number): Range {
  const length = to - from;
  const middle = (from + to) / 2 + shift * length;
  return { from: Math.round(middle - (zoom * length) / 2), to: Math.round(middle + (zoom * length) / 2) };
}

export interface History {
  columns: string[];
  rows: (number | null)[][];
}

// Returns the columns as a plot takes them: the times, then each of the others. A pause of the head is a gap.
export function columnsOf({ columns, rows }: History, step: number, names: string[]): (number | null)[][] {
  const at = ['unix_s', ...names].map((name) => columns.indexOf(name));
  const out: (number | null)[][] = at.map(() => []);
  let last = 0;
  for (const row of rows) {
    const time = row[at[0]!] ?? 0;
    if (last > 0 && time - last > 1.5 * step) out.forEach((column, index) => column.push(index === 0 ? last + step : null));
    at.forEach((from, index) => out[index]!.push(row[from] ?? null));
    last = time;
  }
  return out;
}
