// The gang matrix has nodes across and slots down, one job per cell. The other mode has nodes down and the
// last seconds across, and shows the skew between nodes.

import { useRef, useState } from 'preact/hooks';
import { setState as setAddress, useAddress } from './address';
import { Canvas, tall, type Size } from './canvas';
import { fillJob, jobColour, unmarkedAlpha, type Theme } from './colours';
import { fillersOf, fillingAlpha, fillLane, type Box } from './filling';
import { absentText, columnX, labelled, leftMargin } from './places';
import { rowsOf } from './processes';
import { Panel, type Table } from './panel';
import type { Node, Run, Snapshot } from './types';

const topMargin = 16;

// Returns the time span of the mode with time: 5 s, or about a hundred short slices, because more could not
// be distinguished.
function timelineSeconds({ cluster }: Snapshot): number {
  return Math.min(Math.max(Math.round(100 * cluster.quantum_s), 1), 5);
}

interface Place {
  row: number;
  node: number;
}

type Context = CanvasRenderingContext2D;

function hatch(context: Context, x: number, y: number, w: number, h: number, colour: string) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - h; at < x + w; at += 5) {
    context.moveTo(at, y);
    context.lineTo(at + h, y + h);
  }
  context.stroke();
  context.restore();
}

// Returns the width of digits, which are all equally wide.
function widthOf(context: Context, digits: string): number {
  digitWidth ||= context.measureText('0').width;
  return digits.length * digitWidth;
}

let digitWidth = 0;

interface Cell {
  jobs: number[];
  fillers: Set<number>;
}

// The outline separates adjacent cells of one job.
function drawCell(context: Context, { jobs, fillers }: Cell, box: Box, marked: number | null, theme: Theme) {
  jobs.forEach((job, index) => {
    const alpha = marked === null || job === marked ? 1 : unmarkedAlpha;
    const h = box.h / jobs.length;
    const part = { x: box.x, y: box.y + index * h, w: box.w, h: h - 1 };
    context.globalAlpha = fillers.has(job) ? fillingAlpha * alpha : alpha;
    fillJob(context, job, part, theme);
    context.globalAlpha = alpha;
    if (part.w > 4 && part.h > 4) {
      context.strokeStyle = theme.faint;
      context.lineWidth = 1;
      context.strokeRect(part.x + 0.5, part.y + 0.5, part.w - 1, part.h - 1);
    }
    const text = String(job);
    if (h < 11 || widthOf(context, text) > part.w - 2) return;
    context.fillStyle = fillers.has(job) ? theme.ink : jobColour(job, theme).text;
    context.fillText(text, part.x + part.w / 2, part.y + h / 2);
  });
  context.globalAlpha = 1;
}

function drawSlots(snapshot: Snapshot, chosen: Place | null, marked: number | null) {
  return (context: Context, size: Size, theme: Theme) => {
    const { matrix, nodes } = snapshot;
    const fillers = fillersOf(snapshot);
    const rows = Math.max(matrix.rows.length, 1);
    const h = Math.min((size.h - topMargin) / rows, tall(64));
    context.textBaseline = 'middle';
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'left';
    context.fillStyle = theme.ink;
    const names = nodes.map(({ name }) => name);
    for (const node of labelled(names, size.w, (name) => context.measureText(name).width)) {
      context.fillText(names[node]!, columnX(node, size.w, nodes.length), 7);
    }
    matrix.rows.forEach((row, index) => {
      const y = topMargin + index * h;
      context.textAlign = 'left';
      context.fillStyle = theme.ink;
      context.fillText(`${row.active ? '▶' : ' '} ${row.slot}`, 2, y + h / 2);
      context.textAlign = 'center';
      nodes.forEach((node, column) => {
        const x = columnX(column, size.w, nodes.length);
        const w = Math.max((size.w - leftMargin) / nodes.length - 1.5, 1);
        const box = { x, y: y + 1, w, h: h - 3 };
        context.fillStyle = theme.cell;
        context.fillRect(box.x, box.y, box.w, box.h);
        drawCell(context, { jobs: row.cells[column] ?? [], fillers: fillers[column]! }, box, marked, theme);
        if (node.state !== 'up' || node.drained) hatch(context, x, box.y, w, box.h, theme.ink);
        if (chosen?.row === index && chosen.node === column) {
          context.strokeStyle = theme.ink;
          context.lineWidth = 2;
          context.strokeRect(box.x - 1, box.y - 1, box.w + 2, box.h + 2);
        }
      });
      if (!row.active) return;
      context.strokeStyle = theme.accent;
      context.lineWidth = 2;
      context.strokeRect(leftMargin - 2, y, size.w - leftMargin + 1, h - 1);
    });
  };
}

interface History {
  runs: Run[];
  fills: Run[];
}

function drawTimeline(snapshot: Snapshot, { runs, fills }: History, marked: number | null) {
  return (context: Context, size: Size, theme: Theme) => {
    const to = snapshot.slices.to_s;
    const seconds = timelineSeconds(snapshot);
    const from = to - seconds;
    const age = snapshot.time_s - to; // samples that arrive together are shown later
    const newest = age < 0.05 ? 'now' : `${age.toFixed(1)} s ago`;
    const h = (size.h - topMargin) / Math.max(snapshot.nodes.length, 1);
    const xOf = (time: number) =>
      leftMargin + (Math.max(0, time - from) / seconds) * (size.w - leftMargin);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillStyle = theme.ink;
    for (let back = seconds; back > -0.01; back -= seconds / 5) {
      context.textAlign = back < 0.01 ? 'right' : 'center';
      context.fillText(back < 0.01 ? newest : `−${back.toFixed(seconds < 5 ? 1 : 0)} s`, xOf(to - back), 7);
    }
    context.textAlign = 'left';
    for (let node = 0; node < snapshot.nodes.length; node += Math.max(8, Math.ceil(11 / h))) {
      const name = snapshot.nodes[node]!.name;
      context.fillText(/\d+$/.exec(name)?.[0] ?? name, 2, topMargin + node * h + 6, leftMargin - 4);
    }
    const laneOf = ([node, , start, end]: Run) => {
      const x = xOf(start);
      return { x, y: topMargin + node * h, w: Math.max(xOf(end ?? to) - x, 0), h: h - 0.3 };
    };
    const alphaOf = (job: number) => (marked === null || job === marked ? 1 : unmarkedAlpha);
    for (const run of runs) {
      context.globalAlpha = alphaOf(run[1]);
      fillJob(context, run[1], laneOf(run), theme);
    }
    for (const run of fills) {
      const box = fillLane(laneOf(run));
      context.globalAlpha = 1;
      context.fillStyle = theme.ground;
      context.fillRect(box.x, box.y, box.w, box.h);
      context.globalAlpha = fillingAlpha * alphaOf(run[1]);
      fillJob(context, run[1], box, theme);
    }
    context.globalAlpha = 1;
  };
}

// Collects the runs, or fills, of the last seconds from documents, each of which has the newest ones.
function useRuns(snapshot: Snapshot, newest: Run[]): Run[] {
  const kept = useRef({ head: '', runs: new Map<string, Run>() });
  if (kept.current.head !== snapshot.head) kept.current = { head: snapshot.head, runs: new Map() };
  const { runs } = kept.current;
  for (const run of newest) runs.set(`${run[0]} ${run[1]} ${run[2]}`, run);
  const oldest = snapshot.slices.to_s - timelineSeconds(snapshot);
  for (const [key, run] of runs) {
    if ((run[3] ?? snapshot.slices.to_s) < oldest) runs.delete(key);
  }
  return [...runs.values()];
}

function nodeState(node: Node): string {
  if (node.state !== 'up') return node.state;
  return node.drained ? 'drained' : 'up';
}

function matrixTable(snapshot: Snapshot): Table {
  return {
    caption: 'Jobs of each node in each slot',
    head: ['node', 'state', ...snapshot.matrix.rows.map((row) => `slot ${row.slot}`)],
    rows: snapshot.nodes.length,
    row: (index) => [
      snapshot.nodes[index]!.name,
      nodeState(snapshot.nodes[index]!),
      ...snapshot.matrix.rows.map((row) => (row.cells[index] ?? []).join(' ') || '–'),
    ],
  };
}

// Returns the state of each rank of the job on that node, such as ": rank 3 running, rank 4 blocked".
function ranksThere(snapshot: Snapshot, node: number, job: number): string {
  const rows = rowsOf(snapshot.processes).filter((row) => row.node === node && row.job === job);
  const listed = rows.slice(0, 8).map((row) => `rank ${row.rank} ${row.state}`);
  if (rows.length > listed.length) listed.push(`${rows.length - listed.length} more`);
  return listed.length > 0 ? `: ${listed.join(', ')}` : '';
}

function describe(snapshot: Snapshot, place: Place | null): string {
  const row = place && snapshot.matrix.rows[place.row];
  const node = place && snapshot.nodes[place.node];
  if (!node) return 'Point at a cell, or use the arrow keys.';
  if (!row) return `${node.name}, ${nodeState(node)}: no slot is in use`;
  const jobs = (row.cells[place.node] ?? []).map((id) => {
    const job = snapshot.jobs.find((one) => one.job === id);
    const here = `job ${id}${ranksThere(snapshot, place.node, id)}`;
    return job ? `${here} (${job.name ?? 'private'}, ${job.tasks} ranks in all, ${job.state})` : here;
  });
  return `${node.name}, ${nodeState(node)}, slot ${row.slot}: ${jobs.join(', ') || 'idle'}`;
}

const moves: Record<string, [row: number, node: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

export function MatrixPanel({ snapshot, marked }: { snapshot: Snapshot; marked: number | null }) {
  const mode = useAddress().query.get('axes') === 'time' ? 'time' : 'slots';
  const setMode = (axes: string) => setAddress('axes', axes === 'time' ? axes : '');
  const [place, setPlace] = useState<Place | null>(null);
  const { slices } = snapshot;
  const history = { runs: useRuns(snapshot, slices.runs), fills: useRuns(snapshot, slices.fills) };
  const rows = Math.max(snapshot.matrix.rows.length, 1);
  const nodes = snapshot.nodes.length;
  const clamp = (value: number, count: number) => Math.min(Math.max(value, 0), count - 1);

  const point = (x: number, y: number, size: Size) => {
    const h = Math.min((size.h - topMargin) / rows, tall(64));
    let node = 0;
    while (node + 1 < nodes && columnX(node + 1, size.w, nodes) <= x) ++node;
    setPlace({ row: clamp(Math.floor((y - topMargin) / h), rows), node });
  };
  const key = (name: string) => {
    const move = moves[name];
    if (!move) return false;
    const from = place ?? { row: 0, node: 0 };
    setPlace({ row: clamp(from.row + move[0], rows), node: clamp(from.node + move[1], nodes) });
    return true;
  };
  const tools = (
    <span class="tools" role="group" aria-label="Axes of the matrix">
      <span class="legend">
        <span><i class="hatched" /> node down or drained</span>
        <span>light: fills, at idle priority</span>
      </span>
      <button type="button" aria-pressed={mode === 'slots'} onClick={() => setMode('slots')}>
        Nodes × slots
      </button>
      <button type="button" aria-pressed={mode === 'time'} onClick={() => setMode('time')}>
        Nodes × time
      </button>
    </span>
  );
  return (
    <Panel id="matrix" title="Gang matrix" tools={tools} table={() => matrixTable(snapshot)}>
      {mode === 'slots' ? (
        <>
          <Canvas
            label={`Gang matrix: ${nodes} nodes, ${snapshot.matrix.rows.length} slots; the table has the same`}
            height={tall(190)}
            draw={drawSlots(snapshot, place, marked)}
            onPoint={point}
            onKey={key}
          />
          <p class="hint">{describe(snapshot, place)}</p>
          <p class="hint" id="absent">{absentText(snapshot)}</p>
        </>
      ) : (
        <Canvas
          label={`What each of ${nodes} nodes ran in the last ${timelineSeconds(snapshot)} s`}
          height={tall(190) + 39}
          draw={drawTimeline(snapshot, history, marked)}
        />
      )}
    </Panel>
  );
}
