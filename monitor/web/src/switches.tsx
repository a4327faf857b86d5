// What switching costs: percentiles of the last two minutes, the phases of a switch, the skew, and the
// share of scheduled time that was lost.

import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { useWidth } from './canvas';
import { themeOf } from './colours';
import { micros, percent } from './format';
import { Panel, type Table } from './twin';
import type { Node, Snapshot } from './types';

const keptSeconds = 120;
const plotHeight = 118;

class History {
  head = '';
  times: number[] = [];
  p50: (number | null)[] = [];
  p95: (number | null)[] = [];
  most: (number | null)[] = [];

  take(snapshot: Snapshot): void {
    if (snapshot.head !== this.head) {
      this.head = snapshot.head;
      for (const list of this.columns()) list.length = 0;
    }
    const last = this.times[this.times.length - 1];
    const passed = last === undefined ? 1 : snapshot.time_unix_s - last;
    if (Math.abs(passed) < 1) return;
    // The head's clock was set back: what is left of the curve would hide the new one until then.
    if (passed < 0) for (const list of this.columns()) list.length = 0;
    const total = snapshot.switches.phases['total'] ?? null;
    this.times.push(snapshot.time_unix_s);
    this.p50.push(total && total.p50_s * 1e6);
    this.p95.push(total && total.p95_s * 1e6);
    this.most.push(total && total.max_s * 1e6);
    if (this.times.length > keptSeconds) for (const list of this.columns()) list.shift();
  }

  columns(): (number | null)[][] {
    return [this.times, this.p50, this.p95, this.most];
  }
}

function clock(unix: number): string {
  return new Date(unix * 1000).toLocaleTimeString([], { hour12: false });
}

function optionsOf(element: HTMLElement, width: number): uPlot.Options {
  const theme = themeOf(element);
  const axis = { stroke: theme.ink, grid: { stroke: theme.line }, ticks: { stroke: theme.line } };
  const font = '10px system-ui, sans-serif';
  const points = { show: false };
  return {
    width,
    height: plotHeight,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { range: (_, __, newest) => [newest - keptSeconds, newest] } },
    axes: [{ ...axis, ticks: { ...axis.ticks, size: 4 }, gap: 2, font, size: 22, values: (_, marks) => marks.map(clock) }, { ...axis, font, size: 58, values: (_, marks) => marks.map((us) => `${us} µs`) }],
    series: [
      {},
      { label: 'p50', stroke: '#009e73', width: 2, points },
      { label: 'p95', stroke: '#e69f00', width: 2, dash: [6, 3], points },
      { label: 'max', stroke: '#cc79a7', width: 1, dash: [2, 2], points },
    ],
  };
}

function Plot({ snapshot }: { snapshot: Snapshot }) {
  const [attach, width] = useWidth();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const history = useRef(new History());
  history.current.take(snapshot);
  useEffect(() => {
    if (!box.current || width === 0) return;
    plot.current = new uPlot(optionsOf(box.current, width), [[], [], [], []], box.current);
    return () => plot.current?.destroy();
  }, [width]);
  const newest = history.current.times[history.current.times.length - 1];
  useEffect(() => {
    plot.current?.setData(history.current.columns() as uPlot.AlignedData);
  }, [newest, width]);
  return (
    <div ref={attach}>
      <div ref={box} role="img" aria-label="Switch time in the last two minutes: p50, p95, largest" />
    </div>
  );
}

function table(snapshot: Snapshot): Table {
  const { phases, skew } = snapshot.switches;
  const named = [...Object.entries(phases), ['skew', skew] as const];
  const nodes = snapshot.nodes.filter(({ overhead }) => overhead !== null);
  const rows = [
    ...named.map(([name, value]) =>
      value ? [name, micros(value.p50_s), micros(value.p95_s), micros(value.max_s)] : [name, '–', '–', '–'],
    ),
    ...nodes.map(({ name, overhead }) => [`lost on ${name}`, percent(overhead, 3), '', '']),
  ];
  return {
    caption: `Gang switches of the last ${snapshot.switches.window_s.toFixed(1)} s`,
    head: ['phase', 'p50', 'p95', 'max'],
    rows: rows.length,
    row: (index) => rows[index]!,
  };
}

function LateSwitch({ snapshot }: { snapshot: Snapshot }) {
  const late = snapshot.switches.last_late;
  if (!late) return <span>no late switch</span>;
  const node = snapshot.nodes[late.node]?.name ?? late.node;
  return (
    <a href={`api/v1/trace?late=${late.id}`}>
      last late switch: {node}, {micros(late.late_s)}
    </a>
  );
}

// The node that loses the most to switches.
function worst(snapshot: Snapshot): Node | null {
  let found: Node | null = null;
  for (const node of snapshot.nodes) {
    if (node.overhead !== null && (found?.overhead ?? -1) < node.overhead) found = node;
  }
  return found;
}

export function SwitchPanel({ snapshot }: { snapshot: Snapshot }) {
  const { switches, cluster } = snapshot;
  const most = worst(snapshot);
  return (
    <Panel id="switches" title="Gang switches" table={() => table(snapshot)}>
      <dl class="figures">
        <div>
          <dt>lost</dt>
          <dd id="overhead">{percent(cluster.overhead, 3)}</dd>
        </div>
        <div title={most ? `on ${most.name}` : ''}>
          <dt>worst node</dt>
          <dd id="overhead-worst">{percent(most?.overhead ?? null, 3)}</dd>
        </div>
        <div title="last node minus first, p95">
          <dt>skew</dt>
          <dd>{switches.skew ? micros(switches.skew.p95_s) : '–'}</dd>
        </div>
      </dl>
      <Plot snapshot={snapshot} />
      <p class="hint">
        <span class="series p50">p50</span> <span class="series p95">p95</span>{' '}
        <span class="series max">max</span> · <LateSwitch snapshot={snapshot} />
      </p>
    </Panel>
  );
}
