// Formats numbers for people. These have units:

const scales: [number, string][] = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

export function rate(value: number, unit: string): string {
  for (const [factor, prefix] of scales) {
    if (value >= factor) return `${(value / factor).toFixed(1)} ${prefix}${unit}`;
  }
  return `${value.toFixed(value < 10 && value > 0 ? 1 : 0)} ${unit}`;
}

export function micros(seconds: number): string {
  const us = seconds * 1e6;
  if (us >= 1e6) return `${seconds.toFixed(1)} s`;
  if (us >= 1e4) return `${(us / 1e3).toFixed(0)} ms`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(1)} ms`;
  return `${us.toFixed(0)} µs`;
}

// These are for columns whose heads have the unit: %, µs, h:mm:ss, MiB.

export function hundredths(ratio: number | null, digits = 0): string {
  return ratio === null ? '–' : (ratio * 100).toFixed(digits);
}

export function inMicros(seconds: number): string {
  return (seconds * 1e6).toFixed(0);
}

export function inMebibytes(count: number): string {
  return (count / 2 ** 20).toFixed(1);
}

export function hours(seconds: number): string {
  const s = Math.floor(seconds);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

export function percent(ratio: number | null, digits = 1): string {
  return ratio === null ? '–' : `${(ratio * 100).toFixed(digits)} %`;
}

export function bytes(count: number): string {
  if (count >= 2 ** 30) return `${(count / 2 ** 30).toFixed(1)} GiB`;
  if (count >= 2 ** 20) return `${(count / 2 ** 20).toFixed(0)} MiB`;
  return `${(count / 1024).toFixed(0)} KiB`;
}

export function clockTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toLocaleTimeString(undefined, { hour12: false });
}
