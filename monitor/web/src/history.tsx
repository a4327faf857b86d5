// Load, switches and jobs over hours and days, as the head has kept them since it started. Range and zoom are
// in the address.

import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { setState as setAddress, useAddress } from './address';
import { enlargement, tall, useWidth } from './canvas';
import { themeOf } from './colours';
import { clockTime, inMicros, micros, percent } from './format';
import { Panel, type Table } from './panel';
import { columnsOf, moved, readPosition, spans, type History, type Position, type Range } from './range';

const period = 10_000; // ms
const nothing: History = { columns: [], rows: [] };

function useHistory(step: number): { history: History; fault: string } {
  const [known, setKnown] = useState({ history: nothing, fault: '' });
  useEffect(() => {
    let isOver = false;
    setKnown({ history: nothing, fault: '' });
    const read = async () => {
      try {
        const answer = await fetch(`api/v1/history?step=${step}`, { cache: 'no-store' });
        const document = (await answer.json()) as History & { error?: string };
        if (!isOver) setKnown((before) => (answer.ok ? { history: document, fault: '' } : { ...before, fault: document.error ?? '' }));
      } catch (error) {
        if (!isOver) setKnown((before) => ({ ...before, fault: `no answer: ${String(error)}` }));
      }
    };
    void read();
    const timer = setInterval(() => void read(), period);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [step]);
  return known;
}

interface Curve {
  name: string;
  column: string;
  colour: 'user' | 'system' | 'waited' | 'p50' | 'p95' | 'max' | 'skew';
  dash?: number[];
}

export interface Picture {
  id: string;
  title: string;
  curves: Curve[];
  format: (value: number) => string;
}

const pictures: Picture[] = [
  {
    id: 'history-load', title: 'Load: share of the cores', format: (value) => percent(value, 0),
    curves: [
      { name: 'user', column: 'user', colour: 'user' },
      { name: 'system', column: 'system', colour: 'system', dash: [6, 3] },
      { name: 'filling', column: 'filled', colour: 'waited', dash: [2, 2] },
    ],
  },
  {
    id: 'history-switches', title: 'Gang switches: mean time', format: micros,
    curves: [{ name: 'mean switch', column: 'mean_switch_s', colour: 'p50' }],
  },
  {
    id: 'history-overhead', title: 'Overhead of switching', format: (value) => percent(value, 3),
    curves: [{ name: 'overhead', column: 'overhead', colour: 'p95' }],
  },
  {
    id: 'history-jobs', title: 'Jobs and nodes', format: (value) => value.toFixed(0),
    curves: [
      { name: 'active jobs', column: 'jobs', colour: 'max' },
      { name: 'nodes up', column: 'nodes', colour: 'skew', dash: [10, 3, 2, 3] },
    ],
  },
];

interface PlotProps {
  picture: Picture;
  data: (number | null)[][];
  range: Range;
  onZoom: (range: Range) => void;
}

function Plot({ picture, data, range, onZoom }: PlotProps) {
  const [attach, width] = useWidth();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const zoom = useRef(onZoom);
  zoom.current = onZoom;
  const theme = themeOf(document.documentElement);
  useEffect(() => {
    if (!box.current || width === 0) return undefined;
    const larger = enlargement();
    const axis = { stroke: theme.ink, grid: { stroke: theme.line }, ticks: { stroke: theme.line, size: 4 }, font: `${10 * larger}px system-ui, sans-serif`, gap: 2 };
    const select = (made: uPlot) => {
      const { left, width: selected } = made.select;
      if (selected > 3) zoom.current({ from: Math.round(made.posToVal(left, 'x')), to: Math.round(made.posToVal(left + selected, 'x')) });
      made.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    };
    plot.current = new uPlot({
      width, height: tall(110) * larger, legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
      scales: { y: { range: (_, __, most) => [0, (most || 1) * 1.05] } },
      axes: [{ ...axis, size: 20 * larger, space: 70 * larger }, { ...axis, size: 50 * larger, values: (_, marks) => marks.map(picture.format) }],
      series: [{}, ...picture.curves.map(({ name, colour, dash }) => ({ label: name, stroke: theme[colour], width: 2, points: { show: false }, ...(dash && { dash }) }))],
      hooks: { setSelect: [select] },
    }, [[], ...picture.curves.map(() => [])] as uPlot.AlignedData, box.current);
    return () => plot.current?.destroy();
  }, [width, theme]);
  useEffect(() => {
    plot.current?.setData(data as uPlot.AlignedData, false);
    plot.current?.setScale('x', { min: range.from, max: range.to });
  }, [data, range.from, range.to, width, theme]);
  return <div ref={attach}><div ref={box} role="img" aria-label={`${picture.title}; the table has the same`} /></div>;
}

function tableOf(picture: Picture, data: (number | null)[][], range: Range): Table {
  const [times = []] = data;
  const shown = times.flatMap((time, index) => (time !== null && time >= range.from && time <= range.to ? [index] : []));
  const cell = (value: number | null) => (value === null ? '–' : picture.format === micros ? `${inMicros(value)} µs` : picture.format(value));
  return {
    caption: picture.title,
    head: ['time', ...picture.curves.map(({ name }) => name)],
    rows: shown.length,
    row: (row) => [clockTime(times[shown[row]!] ?? 0), ...data.slice(1).map((column) => cell(column[shown[row]!] ?? null))],
  };
}

export function PicturePanel({ picture, history, position, onZoom }: { picture: Picture; history: History; position: Position; onZoom: (range: Range) => void }) {
  const data = columnsOf(history, position.span.step, picture.curves.map(({ column }) => column));
  const legend = (
    <span class="legend">
      {picture.curves.map(({ name, colour }) => <span key={name}><i style={{ background: `var(--${colour})` }} /> {name}</span>)}
    </span>
  );
  return (
    <Panel id={picture.id} title={picture.title} tools={legend} table={() => tableOf(picture, data, position)}>
      <Plot picture={picture} data={data} range={position} onZoom={onZoom} />
    </Panel>
  );
}

// The same zoom for a mouse, which drags over a plot, and for the keyboard.
function Controls({ position, onZoom, onWhole }: { position: Position; onZoom: (range: Range) => void; onWhole: () => void }) {
  const step = (name: string, zoom: number, shift: number) => (
    <button type="button" onClick={() => onZoom(moved(position, zoom, shift))}>{name}</button>
  );
  return (
    <div id="history-tools" class="tools" role="group" aria-label="Range of the history">
      {spans.map(({ name }) => (
        <button key={name} type="button" aria-pressed={name === position.span.name} onClick={() => { onWhole(); setAddress('span', name); }}>{name}</button>
      ))}
      {step('Zoom in', 0.5, 0)}
      {step('Zoom out', 2, 0)}
      {step('Earlier', 1, -0.5)}
      {step('Later', 1, 0.5)}
      <button type="button" disabled={!position.isZoomed} onClick={onWhole}>Whole range</button>
      <a href={`api/v1/history?step=${position.span.step}&format=csv`} download={`history-${position.span.step}s.csv`}>CSV</a>
      <span class="hint">Drag over a plot to zoom. The head keeps this since it started.</span>
    </div>
  );
}

export function HistoryView() {
  const { query } = useAddress();
  const position = readPosition(query, Date.now() / 1000);
  const { history, fault } = useHistory(position.span.step);
  const zoom = ({ from, to }: Range) => {
    setAddress('from', String(from));
    setAddress('to', String(to));
  };
  const whole = () => {
    setAddress('from', '');
    setAddress('to', '');
  };
  return (
    <main class="own">
      <Controls position={position} onZoom={zoom} onWhole={whole} />
      {fault && <p role="alert" class="failed">{fault}</p>}
      {pictures.map((picture) => <PicturePanel key={`${picture.id} ${position.span.name}`} picture={picture} history={history} position={position} onZoom={zoom} />)}
    </main>
  );
}
