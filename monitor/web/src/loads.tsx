// Each process has a bar under its node, as in SCore's monitor: the share of its scheduled time spent in user
// code, in the kernel, waiting for a processor that others had, and waiting in PM. Time that it used in the
// slices of other jobs is lighter. A gang that is frozen now is dimmed, not empty.

import { useState } from 'preact/hooks';
import { Canvas, tall, type Size } from './canvas';
import { unmarkedAlpha, type Theme } from './colours';
import { barAlpha, fillingAlpha, partsOf, type Part } from './filling';
import { bytes, hundredths, inMebibytes, percent } from './format';
import { rowsOf, type ProcessRow } from './processes';
import { Panel, type Table } from './panel';
import type { Snapshot } from './types';

const gapOfNodes = 2;
const labelHeight = 12;
const leastHeight = 10; // of a line of nodes
const mostBars = 32; // per node; more are drawn as their mean

function byNode(snapshot: Snapshot, rows: ProcessRow[]): ProcessRow[][] {
  const nodes: ProcessRow[][] = snapshot.nodes.map(() => []);
  for (const row of rows) nodes[row.node]?.push(row);
  for (const list of nodes) list.sort((a, b) => a.job - b.job || a.rank - b.rank);
  return nodes;
}

interface Bar {
  x: number;
  top: number;
  w: number;
  h: number;
}

function stripe(context: CanvasRenderingContext2D, bar: Bar, colour: string) {
  context.fillStyle = colour;
  for (let y = bar.top + 2; y < bar.top + bar.h; y += 6) context.fillRect(bar.x, y, bar.w, 1);
}

function drawBar(context: CanvasRenderingContext2D, row: ProcessRow, bar: Bar, theme: Theme, alpha: number) {
  let y = bar.top + bar.h;
  const draw = (part: Part) => {
    const h = Math.min(Math.min(Math.max(part.share, 0), 1) * bar.h, y - bar.top);
    y -= h;
    context.globalAlpha = barAlpha(row.state) * part.alpha * alpha;
    context.fillStyle = theme[part.colour];
    context.fillRect(bar.x, y, bar.w, h);
  };
  context.globalAlpha = alpha;
  context.fillStyle = theme.line;
  context.fillRect(bar.x, bar.top, bar.w, bar.h);
  partsOf(row).forEach(draw);
  context.globalAlpha = alpha;
  if (row.state === 'stopped') stripe(context, bar, theme.ink);
  context.globalAlpha = 1;
}

// Returns one row for many: their mean load.
function meanOf(rows: ProcessRow[]): ProcessRow {
  const mean = (get: (row: ProcessRow) => number) => rows.reduce((sum, row) => sum + get(row), 0) / rows.length;
  const awake = rows.find((row) => row.state !== 'frozen');
  return {
    ...(awake ?? rows[0]!),
    user: mean((row) => row.user), system: mean((row) => row.system),
    waited: mean((row) => row.waited), pm: mean((row) => row.pm), filled: mean((row) => row.filled),
  };
}

function barsOf(rows: ProcessRow[]): ProcessRow[] {
  if (rows.length <= mostBars) return rows;
  const jobs = [...new Set(rows.map((row) => row.job))];
  return jobs.map((job) => meanOf(rows.filter((row) => row.job === job)));
}

interface Placed {
  row: ProcessRow;
  bar: Bar;
}

// Returns the position of each node and its bars.
function layOut(snapshot: Snapshot, rows: ProcessRow[], size: Size) {
  const nodes = byNode(snapshot, rows);
  const mostLines = Math.max(Math.floor(size.h / leastHeight), 1);
  const usual = Math.max(size.w > 700 ? 32 : 16, Math.ceil(nodes.length / mostLines));
  const perLine = Math.min(Math.max(nodes.length, 1), usual);
  const lines = Math.max(Math.ceil(nodes.length / perLine), 1);
  const w = size.w / perLine;
  const h = size.h / lines;
  const label = h > 2 * labelHeight ? labelHeight : 0;
  const bars: Placed[] = [];
  const labels = nodes.map((list, index) => {
    const x = (index % perLine) * w;
    const y = Math.floor(index / perLine) * h;
    const shown = barsOf(list);
    const each = (w - gapOfNodes) / Math.max(shown.length, 1);
    shown.forEach((row, place) => {
      const bar = { x: x + place * each, top: y + label, w: Math.max(each - 0.5, 0.5), h: h - label - 2 };
      bars.push({ row, bar });
    });
    return { x, y, name: snapshot.nodes[index]!.name };
  });
  return { labels: label > 0 ? labels : [], bars, w };
}

// Returns only the number if the name does not fit: "node07" is "07".
function shortened(name: string, w: number): string {
  return w > 40 ? name : (/\d+$/.exec(name)?.[0] ?? name);
}

function draw(snapshot: Snapshot, rows: ProcessRow[], marked: number | null, chosen: ProcessRow | null) {
  return (context: CanvasRenderingContext2D, size: Size, theme: Theme) => {
    const { labels, bars, w } = layOut(snapshot, rows, size);
    context.font = '10px system-ui, sans-serif';
    context.textBaseline = 'top';
    context.fillStyle = theme.faint;
    for (const { x, y, name } of labels) {
      if (w > 14) context.fillText(shortened(name, w), x, y, w - gapOfNodes);
    }
    for (const { row, bar } of bars) {
      drawBar(context, row, bar, theme, marked === null || row.job === marked ? 1 : unmarkedAlpha);
      if (!chosen || !isSame(row, chosen)) continue;
      context.strokeStyle = theme.ink;
      context.lineWidth = 2;
      context.strokeRect(bar.x - 1, bar.top - 1, bar.w + 2, bar.h + 2);
    }
  };
}

function isSame(a: ProcessRow, b: ProcessRow): boolean {
  return a.node === b.node && a.job === b.job && a.rank === b.rank;
}

function describe(snapshot: Snapshot, row: ProcessRow | null): string {
  if (!row) return 'Point at a bar, or use the arrow keys.';
  const shares = `user ${percent(row.user, 0)}, system ${percent(row.system, 0)}, waiting for a processor ${percent(row.waited, 0)}, in PM ${percent(row.pm, 0)}, filling ${percent(row.filled, 0)}`;
  const node = snapshot.nodes[row.node]?.name ?? '';
  return `${node}, job ${row.job} rank ${row.rank}, ${row.state}: ${shares} of its time; scheduled ${percent(row.scheduled, 0)}, ${bytes(row.memory)}`;
}

function table(snapshot: Snapshot): Table {
  const rows = rowsOf(snapshot.processes);
  return {
    caption: 'Load of each process, of the time it was scheduled',
    head: ['node', 'job', 'rank', 'state', 'user %', 'system %', 'waiting for a processor %', 'in PM %', 'scheduled %', 'memory MiB', 'filling %'],
    rows: rows.length,
    row: (index) => {
      const row = rows[index]!;
      return [
        snapshot.nodes[row.node]?.name ?? String(row.node), row.job, row.rank, row.state,
        ...[row.user, row.system, row.waited, row.pm, row.scheduled].map((share) => hundredths(share)), inMebibytes(row.memory),
        hundredths(row.filled),
      ];
    },
  };
}

const legend = [
  ['user', 'var(--user)'],
  ['system', 'var(--system)'],
  ['waiting for a processor', 'var(--waited)'],
  ['waiting in PM', 'var(--pm)'],
] as const;

export function LoadPanel({ snapshot, marked }: { snapshot: Snapshot; marked: number | null }) {
  const [chosen, setChosen] = useState<ProcessRow | null>(null);
  const rows = rowsOf(snapshot.processes);
  const now = (chosen && rows.find((row) => isSame(row, chosen))) ?? null;
  const point = (x: number, y: number, size: Size) => {
    const hit = layOut(snapshot, rows, size).bars.find(
      ({ bar }) => x >= bar.x && x < bar.x + bar.w + 1 && y >= bar.top - labelHeight && y < bar.top + bar.h,
    );
    if (hit) setChosen(hit.row);
  };
  const key = (name: string) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[name];
    if (step === undefined || rows.length === 0) return false;
    const ordered = byNode(snapshot, rows).flat();
    const at = now ? ordered.findIndex((row) => isSame(row, now)) + step : 0;
    setChosen(ordered[Math.min(Math.max(at, 0), ordered.length - 1)] ?? null);
    return true;
  };
  const tools = (
    <span class="legend">
      {legend.map(([name, colour]) => (
        <span key={name}>
          <i style={{ background: colour }} /> {name}
        </span>
      ))}
      <span>
        <i style={{ background: 'var(--user)', opacity: fillingAlpha }} /> filling
      </span>
      <span>dim: frozen now</span>
      <span>striped: stopped</span>
    </span>
  );
  return (
    <Panel id="loads" title={`Load of ${rows.length} processes`} tools={tools} table={() => table(snapshot)}>
      <Canvas
        label={`Load bars of ${rows.length} processes; the table has the same`}
        height={tall(150)}
        draw={draw(snapshot, rows, marked, now)}
        onPoint={point}
        onKey={key}
      />
      <p class="hint">{describe(snapshot, now)}</p>
    </Panel>
  );
}
