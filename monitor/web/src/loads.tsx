// A bar a process under its node, as SCore's monitor had: the share of its scheduled time spent in user
// code, in the kernel, and waiting in PM. A gang that is frozen right now is dimmed, not empty.

import { Canvas, type Size } from './canvas';
import { loadColours, type Theme } from './colours';
import { bytes, percent } from './format';
import { Panel, type Table } from './twin';
import type { Processes, Snapshot } from './types';

export interface ProcessRow {
  node: number;
  job: number;
  rank: number;
  state: string;
  user: number;
  system: number;
  pm: number;
  scheduled: number;
  memory: number;
}

export function rowsOf(processes: Processes): ProcessRow[] {
  const at = (name: string) => processes.columns.indexOf(name);
  const column = {
    node: at('node'), job: at('job'), rank: at('rank'), state: at('state'), user: at('user'),
    system: at('system'), pm: at('pm'), scheduled: at('scheduled'), memory: at('memory_bytes'),
  };
  return processes.rows.map((row) => ({
    node: Number(row[column.node]),
    job: Number(row[column.job]),
    rank: Number(row[column.rank]),
    state: String(row[column.state]),
    user: Number(row[column.user] ?? 0),
    system: Number(row[column.system] ?? 0),
    pm: Number(row[column.pm] ?? 0),
    scheduled: Number(row[column.scheduled] ?? 0),
    memory: Number(row[column.memory] ?? 0),
  }));
}

const gapOfNodes = 2;
const labelHeight = 12;

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

function drawBar(context: CanvasRenderingContext2D, row: ProcessRow, bar: Bar, theme: Theme) {
  let y = bar.top + bar.h;
  const part = (share: number, colour: string) => {
    const h = Math.min(Math.max(share, 0), 1) * bar.h;
    y = Math.max(y - h, bar.top);
    context.fillStyle = colour;
    context.fillRect(bar.x, y, bar.w, Math.min(h, bar.top + bar.h - y));
  };
  context.fillStyle = theme.line;
  context.fillRect(bar.x, bar.top, bar.w, bar.h);
  context.globalAlpha = row.state === 'frozen' ? 0.6 : 1;
  part(row.user, loadColours.user);
  part(row.system, loadColours.system);
  part(row.pm, loadColours.pm);
  context.globalAlpha = 1;
}

function draw(snapshot: Snapshot, rows: ProcessRow[]) {
  return (context: CanvasRenderingContext2D, size: Size, theme: Theme) => {
    const nodes = byNode(snapshot, rows);
    const perLine = Math.min(Math.max(nodes.length, 1), size.w > 700 ? 32 : 16);
    const lines = Math.ceil(nodes.length / perLine);
    const w = size.w / perLine;
    const h = size.h / Math.max(lines, 1);
    context.font = '9px system-ui, sans-serif';
    context.textBaseline = 'top';
    nodes.forEach((list, index) => {
      const x = (index % perLine) * w;
      const y = Math.floor(index / perLine) * h;
      context.fillStyle = theme.faint;
      if (w > 26) context.fillText(snapshot.nodes[index]!.name, x, y, w - gapOfNodes);
      const each = (w - gapOfNodes) / Math.max(list.length, 1);
      list.forEach((row, place) => {
        const bar = { x: x + place * each, top: y + labelHeight, w: Math.max(each - 0.5, 0.5), h: h - labelHeight - 2 };
        drawBar(context, row, bar, theme);
      });
    });
  };
}

function table(snapshot: Snapshot): Table {
  return {
    caption: 'Load of each process, of the time it was scheduled',
    head: ['node', 'job', 'rank', 'state', 'user', 'system', 'in PM', 'scheduled', 'memory'],
    rows: rowsOf(snapshot.processes).map((row) => [
      snapshot.nodes[row.node]?.name ?? String(row.node), row.job, row.rank, row.state,
      percent(row.user, 0), percent(row.system, 0), percent(row.pm, 0), percent(row.scheduled, 0),
      bytes(row.memory),
    ]),
  };
}

const legend = [
  ['user', loadColours.user],
  ['system', loadColours.system],
  ['waiting in PM', loadColours.pm],
] as const;

export function LoadPanel({ snapshot }: { snapshot: Snapshot }) {
  const rows = rowsOf(snapshot.processes);
  const tools = (
    <span class="legend">
      {legend.map(([name, colour]) => (
        <span key={name}>
          <i style={{ background: colour }} /> {name}
        </span>
      ))}
      <span>dim: frozen now</span>
    </span>
  );
  return (
    <Panel id="loads" title={`Load of ${rows.length} processes`} tools={tools} table={() => table(snapshot)}>
      <Canvas
        label={`Load bars of ${rows.length} processes; the table has the same`}
        height={150}
        draw={draw(snapshot, rows)}
      />
    </Panel>
  );
}
