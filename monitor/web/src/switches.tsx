// The panel shows the cost of switching: p50, p95 and maximum of one phase of a switch, for each second of
// the last minute. The skew and the time slice are shown for comparison, because the cost should be small
// against the slice. It also shows the overhead: the share of
// the time with a job that switching took, with its parts.

import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { enlargement, tall, useWidth } from './canvas';
import { themeOf, type Theme } from './colours';
import { clockTime, hundredths, inMicros, micros, percent } from './format';
import { Panel, type Table } from './panel';
import type { Moment } from './trace';
import type { Node, Percentiles, Snapshot } from './types';

const keptSeconds = 60;
const plotHeight = () => tall(150) * enlargement();
const leastShown = 1e-7; // s: the axis is logarithmic and has no 0

interface Second {
  time: number;
  quantum: number;
  phases: Record<string, Percentiles | null>;
  skew: Percentiles | null;
}

// Keeps one point per second, and nothing beyond the range of the plot.
class History {
  private head = '';
  seconds: Second[] = [];

  take(snapshot: Snapshot): void {
    const time = snapshot.time_unix_s;
    const passed = time - (this.newest ?? -Infinity);
    // If the head has changed, or its clock was set back, the rest of the old curve would hide the new one.
    if (snapshot.head !== this.head || passed < 0) this.seconds = [];
    else if (passed < 1) return;
    this.head = snapshot.head;
    if (passed > 3 && this.newest) this.add({ time: this.newest + 1, quantum: NaN, phases: {}, skew: null });
    this.add({ time, quantum: snapshot.cluster.quantum_s, phases: snapshot.switches.phases, skew: snapshot.switches.skew });
  }

  get newest(): number | undefined {
    return this.seconds[this.seconds.length - 1]?.time;
  }

  columns(phase: string): uPlot.AlignedData {
    const column = (get: (one: Second) => number | undefined) =>
      this.seconds.map((one) => {
        const value = get(one);
        return value === undefined || Number.isNaN(value) ? null : Math.max(value, leastShown);
      });
    return [
      this.seconds.map(({ time }) => time),
      column(({ phases }) => phases[phase]?.p50_s),
      column(({ phases }) => phases[phase]?.p95_s),
      column(({ phases }) => phases[phase]?.max_s),
      column(({ skew }) => skew?.p95_s),
      column(({ quantum }) => quantum),
    ];
  }

  private add(second: Second): void {
    this.seconds = [...this.seconds, second].filter(({ time }) => time > second.time - keptSeconds - 1);
  }
}

// Labels the topmost line at its newest point.
function nameSlice(plot: uPlot, theme: Theme): void {
  const slices = plot.data[5];
  const newest = slices?.[slices.length - 1];
  if (!newest) return;
  const { left, top, width } = plot.bbox;
  const scale = (window.devicePixelRatio || 1) * enlargement();
  const y = Math.max(plot.valToPos(newest, 'y', true), top + 13 * scale);
  plot.ctx.save();
  plot.ctx.fillStyle = theme.ink;
  plot.ctx.font = `${10 * scale}px system-ui, sans-serif`;
  plot.ctx.textAlign = 'right';
  plot.ctx.textBaseline = 'bottom';
  plot.ctx.fillText(`slice ${micros(newest)}`, left + width - 2 * scale, y - 2 * scale);
  plot.ctx.restore();
}

function decades(_: uPlot, least: number | null, most: number | null): [number, number] {
  const down = Math.floor(Math.log10(least ?? 1e-5));
  const up = Math.ceil(Math.log10((most ?? 0.1) * 1.2));
  return [10 ** down, 10 ** Math.max(up, down + 1)];
}

// Returns one line per decade.
function powersOfTen(_: uPlot, __: number, least: number, most: number): number[] {
  const first = Math.round(Math.log10(least));
  return Array.from({ length: Math.round(Math.log10(most)) - first + 1 }, (___, index) => 10 ** (first + index));
}

function optionsOf(theme: Theme, width: number): uPlot.Options {
  const larger = enlargement();
  const font = `${10 * larger}px system-ui, sans-serif`;
  const axis = { stroke: theme.ink, grid: { stroke: theme.line }, ticks: { stroke: theme.line, size: 4 }, font, gap: 2 };
  const points = { show: false };
  const { stepped } = uPlot.paths;
  return {
    width,
    height: plotHeight(),
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { range: (_, __, newest) => [newest - keptSeconds, newest] }, y: { distr: 3, range: decades } },
    axes: [
      { ...axis, size: 20 * larger, space: 60 * larger, values: (_, marks) => marks.map(clockTime) },
      { ...axis, size: 46 * larger, splits: powersOfTen, filter: (_, marks) => marks, values: (_, marks) => marks.map(micros) },
    ],
    series: [
      {},
      { label: 'p50', stroke: theme.p50, width: 2, points },
      { label: 'p95', stroke: theme.p95, width: 2, dash: [6, 3], points },
      { label: 'max', stroke: theme.max, width: 1, dash: [2, 2], points },
      { label: 'skew', stroke: theme.skew, width: 2, dash: [10, 3, 2, 3], points },
      { label: 'slice', stroke: theme.ink, width: 1, points, ...(stepped && { paths: stepped({ align: 1 }) }) },
    ],
    hooks: { draw: [(plot) => nameSlice(plot, theme)] },
  };
}

function Plot({ history, phase }: { history: History; phase: string }) {
  const [attach, width] = useWidth();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const theme = themeOf(document.documentElement);
  useEffect(() => {
    if (!box.current || width === 0) return;
    plot.current = new uPlot(optionsOf(theme, width), [[], [], [], [], [], []], box.current);
    return () => plot.current?.destroy();
  }, [width, theme]);
  useEffect(() => {
    if (history.newest !== undefined) plot.current?.setData(history.columns(phase));
  }, [history.newest, phase, width, theme]);
  return (
    <div ref={attach} style={{ height: `${plotHeight()}px` }}>
      <div ref={box} role="img" aria-label={`Switches of the last minute, ${phase}: p50, p95, largest; skew; time slice. The table has the same`} />
    </div>
  );
}

// They are shown before the first document has them, so that nothing moves when it comes.
const OVERHEAD_PARTS = ['wake', 'stop', 'network', 'go'] as const;

// Returns "0.024: wake 0.020, stop 0.001, network 0.000, go 0.003".
function overheadText({ overhead, overhead_parts }: Pick<Node, 'overhead' | 'overhead_parts'>): string {
  const parts = Object.entries(overhead_parts ?? {}).map(([name, share]) => `${name} ${hundredths(share, 3)}`);
  return parts.length > 0 ? `${hundredths(overhead, 3)}: ${parts.join(', ')}` : hundredths(overhead, 3);
}

function table(snapshot: Snapshot): Table {
  const { phases, skew } = snapshot.switches;
  const named = [...Object.entries(phases), ['skew', skew] as const];
  const nodes = snapshot.nodes.filter(({ overhead }) => overhead !== null);
  const rows = [
    ...named.map(([name, value]) =>
      value ? [name, inMicros(value.p50_s), inMicros(value.p95_s), inMicros(value.max_s)] : [name, '–', '–', '–'],
    ),
    ...[{ ...snapshot.cluster, name: 'all nodes' }, ...nodes].map((of) => [`overhead of ${of.name}, %`, overheadText(of), '', '']),
  ];
  return {
    caption: `Gang switches of the last ${snapshot.switches.window_s.toFixed(1)} s`,
    head: ['phase', 'p50 µs', 'p95 µs', 'max µs'],
    rows: rows.length,
    row: (index) => rows[index]!,
  };
}

// Returns the curves as a table, newest first.
function historyTable(history: History, phase: string): Table {
  const [times, ...curves] = history.columns(phase);
  const rows = times.length;
  return {
    caption: `The last minute, ${phase}`,
    head: ['time', 'p50 µs', 'p95 µs', 'max µs', 'skew (p95) µs', 'slice µs'],
    rows,
    row: (index) => {
      const at = rows - 1 - index;
      return [clockTime(times[at]!), ...curves.map((curve) => (typeof curve[at] === 'number' ? inMicros(curve[at]) : '–'))];
    },
  };
}

function LateSwitch({ snapshot, onTrace }: { snapshot: Snapshot; onTrace: (moment: Moment) => void }) {
  const late = snapshot.switches.last_late;
  if (!late) return <span>no late switch</span>;
  const node = snapshot.nodes[late.node]?.name ?? String(late.node);
  const text = `last late switch: ${node}, ${micros(late.late_s)}, ${percent(late.late_s / late.slice_s, 0)} of the slice`;
  const moment = { query: `late=${late.id}`, at_s: late.at_s, title: `Switch ${micros(late.late_s)} late on ${node}` };
  return (
    <button type="button" class="link" aria-haspopup="dialog" onClick={() => onTrace(moment)}>
      {text}
    </button>
  );
}

// Returns the node with the most overhead.
function worst(snapshot: Snapshot): Node | null {
  let found: Node | null = null;
  for (const node of snapshot.nodes) {
    if (node.overhead !== null && (found?.overhead ?? -1) < node.overhead) found = node;
  }
  return found;
}

function Figures({ snapshot }: { snapshot: Snapshot }) {
  const { switches, cluster } = snapshot;
  const most = worst(snapshot);
  return (
    <dl class="figures">
      <div title={`of the time with a job; ${overheadText(cluster)}`}>
        <dt>overhead</dt>
        <dd id="overhead">{percent(cluster.overhead, 3)}</dd>
      </div>
      {OVERHEAD_PARTS.map((name) => (
        <div key={name} title={`part of the overhead: ${name}`}>
          <dt>{name}</dt>
          <dd id={`overhead-${name}`}>{percent(cluster.overhead_parts?.[name] ?? null, 3)}</dd>
        </div>
      ))}
      <div title={most ? `on ${most.name}` : ''}>
        <dt>worst node</dt>
        <dd id="overhead-worst">{percent(most?.overhead ?? null, 3)}</dd>
      </div>
      <div title="last node minus first, p95">
        <dt>skew</dt>
        <dd>{switches.skew ? micros(switches.skew.p95_s) : '–'}</dd>
      </div>
    </dl>
  );
}

export function SwitchPanel({ snapshot, onTrace }: { snapshot: Snapshot; onTrace: (moment: Moment) => void }) {
  const [phase, setPhase] = useState('total');
  const history = useRef(new History()).current;
  history.take(snapshot);
  const names = Object.keys(snapshot.switches.phases).reverse(); // total first
  const tools = (
    <label class="filter">
      Phase{' '}
      <select value={phase} onChange={(event) => setPhase(event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name} value={name}>{name}</option>
        ))}
      </select>
    </label>
  );
  const tables = { table: () => table(snapshot), more: { id: 'switch-history', table: () => historyTable(history, phase) } };
  return (
    <Panel id="switches" title="Gang switches" tools={tools} {...tables}>
      <Figures snapshot={snapshot} />
      <Plot history={history} phase={phase} />
      <p class="hint">
        <span class="series p50">p50</span> <span class="series p95">p95</span> <span class="series max">max</span>{' '}
        <span class="series skew">skew p95</span> <span class="series slice">slice</span>
      </p>
      <p class="hint"><LateSwitch snapshot={snapshot} onTrace={onTrace} /></p>
    </Panel>
  );
}
