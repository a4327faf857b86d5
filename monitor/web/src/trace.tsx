// The dialog shows the switches around a moment, as the nodes recorded them: one line per node, with the
// phases of its switch at one boundary. Buttons step from boundary to boundary. For more, load the file into
// a trace viewer.

import { useEffect, useRef, useState } from 'preact/hooks';
import { Canvas, type Size } from './canvas';
import type { Theme } from './colours';
import { inMicros, micros } from './format';
import { Panel, type Table } from './panel';

// The switch to show: a query of /api/v1/trace, and the cluster time in question.
export interface Moment {
  query: string;
  at_s: number;
  title: string;
}

// The format is scored.trace/1. Times of a record are of the node's clock, and relative to `due`.
interface SwitchRecord {
  due_ns: number;
  woke_ns: number;
  stopped_ns: number;
  guarded_ns: number;
  saved_ns: number;
  restored_ns: number;
  done_ns: number;
  left: number[];
  entered: number[];
}

interface Trace {
  nodes: { node: string; clock_offset_ns: number; switches: SwitchRecord[] }[];
  silent_nodes: string[];
}

const phases = [
  ['wake', '#999999'],
  ['stop', '#e69f00'],
  ['guard', '#f0e442'],
  ['save', '#cc79a7'],
  ['restore', '#56b4e9'],
  ['go', '#009e73'],
] as const;

interface Line {
  node: string;
  due_s: number; // cluster time
  ends_s: number[]; // [phase], after due; a phase without duration ends where it begins
  left: number[];
  entered: number[];
}

interface Boundary {
  at_s: number; // begin on its first node
  lines: Line[]; // by node
}

const sameBoundary = 1e-3; // s: clocks of nodes differ by less, boundaries by more
const jobOf = (attempt: number) => Math.floor(attempt / 256);

function lineOf(node: string, offset_ns: number, record: SwitchRecord): Line {
  const { woke_ns, stopped_ns, guarded_ns, saved_ns, restored_ns, done_ns } = record;
  const ends = [woke_ns, stopped_ns, guarded_ns, saved_ns, restored_ns, done_ns];
  let last = 0;
  const ends_s = ends.map((end) => (last = Math.max(last, end)) / 1e9); // a phase that did not occur is 0
  return {
    node, ends_s, due_s: (record.due_ns + offset_ns) / 1e9,
    left: record.left.map(jobOf), entered: record.entered.map(jobOf),
  };
}

function boundariesOf(trace: Trace): Boundary[] {
  const lines = trace.nodes.flatMap(({ node, clock_offset_ns, switches }) =>
    switches.filter(({ left, entered }) => left.length + entered.length > 0)
      .map((record) => lineOf(node, clock_offset_ns, record)));
  lines.sort((a, b) => a.due_s - b.due_s);
  const found: Boundary[] = [];
  for (const line of lines) {
    const last = found[found.length - 1];
    if (last && line.due_s - last.at_s < sameBoundary) last.lines.push(line);
    else found.push({ at_s: line.due_s, lines: [line] });
  }
  for (const { lines: one } of found) one.sort((a, b) => a.node.localeCompare(b.node));
  return found;
}

function nearest(boundaries: Boundary[], at_s: number): number {
  let found = 0;
  boundaries.forEach((one, index) => {
    if (Math.abs(one.at_s - at_s) < Math.abs(boundaries[found]!.at_s - at_s)) found = index;
  });
  return found;
}

// ---- the drawing --------------------------------------------------------------------------------

const leftMargin = 62;
const topMargin = 16;
const mostHeight = 420;

function heightOf(boundary: Boundary): number {
  return topMargin + Math.min(Math.max(boundary.lines.length * 18, 36), mostHeight);
}

function lengthOf(boundary: Boundary): number {
  return Math.max(...boundary.lines.map(({ due_s, ends_s }) => due_s - boundary.at_s + ends_s[ends_s.length - 1]!), 1e-6);
}

// Returns a step of 1, 2 or 5 that divides the length into about five parts.
function stepOf(length: number): number {
  const decade = 10 ** Math.floor(Math.log10(length / 5));
  return [1, 2, 5, 10].map((one) => one * decade).find((step) => length / step <= 6)!;
}

function draw(boundary: Boundary, chosen: number) {
  return (context: CanvasRenderingContext2D, size: Size, theme: Theme) => {
    const length = lengthOf(boundary) * 1.03;
    const xOf = (after: number) => leftMargin + (after / length) * (size.w - leftMargin);
    const h = (size.h - topMargin) / boundary.lines.length;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const step = stepOf(length);
    for (let after = 0; after < length; after += step) {
      context.fillStyle = theme.line;
      context.fillRect(xOf(after), topMargin - 3, 1, size.h);
      context.fillStyle = theme.ink;
      context.textAlign = after === 0 ? 'left' : 'center';
      if (xOf(after) < size.w - 24) context.fillText(micros(after), xOf(after), 7);
    }
    context.textAlign = 'left';
    const named = Math.ceil(12 / h); // lines per visible name
    boundary.lines.forEach((line, index) => {
      const y = topMargin + index * h;
      context.fillStyle = theme.ink;
      if (index % named === 0) context.fillText(line.node, 2, y + h / 2, leftMargin - 6);
      let from = line.due_s - boundary.at_s;
      context.strokeStyle = theme.faint;
      context.lineWidth = 1;
      line.ends_s.forEach((end, phase) => {
        const to = line.due_s - boundary.at_s + end;
        context.fillStyle = phases[phase]![1];
        const w = Math.max(xOf(to) - xOf(from), 1);
        if (to > from) context.fillRect(xOf(from), y + 1, w, Math.max(h - 2, 1));
        if (to > from && w > 3 && h > 5) context.strokeRect(xOf(from) + 0.5, y + 1.5, w - 1, h - 3);
        from = to;
      });
      if (index !== chosen) return;
      context.strokeStyle = theme.ink;
      context.lineWidth = 2;
      context.strokeRect(leftMargin - 2, y, size.w - leftMargin + 1, h);
    });
  };
}

function partsOf(line: Line): number[] {
  return line.ends_s.map((end, phase) => end - (line.ends_s[phase - 1] ?? 0));
}

const ofJobs = (jobs: number[]) => jobs.join(' ') || '–';

function describe(boundary: Boundary, line: Line | undefined): string {
  if (!line) return 'Point at a node, or use the arrow keys; left and right go to other switches.';
  const parts = partsOf(line).flatMap((part, phase) => (part > 0 ? [`${phases[phase]![0]} ${micros(part)}`] : []));
  const jobs = `job ${ofJobs(line.left)} stopped, job ${ofJobs(line.entered)} goes on`;
  return `${line.node}: ${parts.join(', ')}; ${jobs}; clock ${micros(line.due_s - boundary.at_s)} behind the first`;
}

function tableOf(boundary: Boundary, at_s: number): Table {
  return {
    caption: `Switch ${offset(boundary, at_s)}, a line per node`,
    head: ['node', ...phases.map(([name]) => `${name} µs`), 'total µs', 'stopped', 'goes on'],
    rows: boundary.lines.length,
    row: (index) => {
      const line = boundary.lines[index]!;
      const total = line.ends_s[line.ends_s.length - 1]!;
      return [line.node, ...partsOf(line).map(inMicros), inMicros(total), ofJobs(line.left), ofJobs(line.entered)];
    },
  };
}

function offset(boundary: Boundary, at_s: number): string {
  const after = boundary.at_s - at_s;
  if (Math.abs(after) < sameBoundary) return 'at that moment';
  return `${micros(Math.abs(after))} ${after < 0 ? 'before' : 'after'}`;
}

function Timeline({ trace, moment }: { trace: Trace; moment: Moment }) {
  const boundaries = useRef(boundariesOf(trace)).current;
  const [at, setAt] = useState(() => nearest(boundaries, moment.at_s));
  const [chosen, setChosen] = useState(-1);
  const boundary = boundaries[at];
  if (!boundary) return <p role="status">The nodes remember no switch of that time any more.</p>;
  const move = (by: number) => setAt(Math.min(Math.max(at + by, 0), boundaries.length - 1));
  const choose = (index: number) => setChosen(Math.min(Math.max(index, 0), boundary.lines.length - 1));
  const keys: { [name: string]: () => void } = {
    ArrowLeft: () => move(-1), ArrowRight: () => move(1),
    ArrowUp: () => choose(chosen - 1), ArrowDown: () => choose(chosen + 1),
  };
  const key = (name: string) => {
    keys[name]?.();
    return name in keys;
  };
  const point = (_: number, y: number, size: Size) =>
    choose(Math.floor(((y - topMargin) / (size.h - topMargin)) * boundary.lines.length));
  const tools = (
    <span class="tools" role="group" aria-label="Switch shown">
      <button type="button" disabled={at === 0} onClick={() => move(-1)}>Earlier</button>
      <output>{`${at + 1} of ${boundaries.length}: ${offset(boundary, moment.at_s)}`}</output>
      <button type="button" disabled={at === boundaries.length - 1} onClick={() => move(1)}>Later</button>
    </span>
  );
  const label = `Phases of a switch on ${boundary.lines.length} nodes; the table has the same`;
  return (
    <Panel id="trace" title="One switch" tools={tools} table={() => tableOf(boundary, moment.at_s)}>
      <Canvas label={label} height={heightOf(boundary)} draw={draw(boundary, chosen)} onPoint={point} onKey={key} />
      <p class="legend">
        {phases.map(([name, colour]) => (
          <span key={name}><i style={{ background: colour }} /> {name}</span>
        ))}
      </p>
      <p class="hint">{describe(boundary, boundary.lines[chosen])}</p>
    </Panel>
  );
}

function Downloads({ query }: { query: string }) {
  const address = (format: string) => `api/v1/trace?${query}&format=${format}`;
  return (
    <ul class="downloads">
      <li><a href={address('pftrace')} download>switches.pftrace</a> for ui.perfetto.dev: “Open trace file”</li>
      <li><a href={address('chrome')} download>switches.json</a> for chrome://tracing, or ui.perfetto.dev</li>
    </ul>
  );
}

// ---- the dialog ---------------------------------------------------------------------------------

type Found = { trace: Trace } | { error: string } | null;

async function ask(query: string): Promise<Found> {
  try {
    const answer = await fetch(`api/v1/trace?${query}`);
    const body = (await answer.json()) as Trace & { error?: string };
    return answer.ok ? { trace: body } : { error: body.error ?? `status ${answer.status}` };
  } catch (error) {
    return { error: `no answer: ${String(error)}` };
  }
}

export function TraceDialog({ moment, onClose }: { moment: Moment; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [found, setFound] = useState<Found>(null);
  useEffect(() => {
    dialog.current?.showModal();
    let isHere = true;
    void ask(moment.query).then((answer) => isHere && setFound(answer));
    return () => {
      isHere = false;
    };
  }, []);
  const silent = found && 'trace' in found ? found.trace.silent_nodes : [];
  return (
    <dialog id="trace-dialog" ref={dialog} aria-labelledby="trace-dialog-title" onClose={onClose}>
      <div class="panel-head">
        <h2 id="trace-dialog-title">{moment.title}</h2>
        <button type="button" onClick={() => dialog.current?.close()}>Close</button>
      </div>
      {!found && <p role="status">Asking the nodes …</p>}
      {found && 'error' in found && <p role="status" class="failed">{found.error}</p>}
      {found && 'trace' in found && <Timeline trace={found.trace} moment={moment} />}
      {silent.length > 0 && <p>No answer from {silent.join(', ')}.</p>}
      <Downloads query={moment.query} />
    </dialog>
  );
}
