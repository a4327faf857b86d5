// A table shows the data of each drawing as text, renewed once per second. It is hidden from sight unless
// requested, but never from screen readers.
//
// A thousand rows are too many for one frame. So they are written in idle time between frames, and only
// changed cells are written. The first rows follow the page's first paint.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Table {
  caption: string;
  head: string[];
  rows: number;
  row: (index: number) => (string | number)[];
}

const period = 1000; // ms
const mostAtOnce = 4; // ms of a frame's 16
const longestWait = 500; // ms on a page that is always busy
const least = 8; // rows at once, so that a busy page finishes too

type Step = (hasTime: () => boolean) => void;

// Calls `step` once, between two frames. Returns a function that cancels the call.
function whenIdle(step: Step): () => void {
  const until = (end: number) => () => performance.now() < end;
  if (!('requestIdleCallback' in window)) {
    const timer = setTimeout(() => step(until(performance.now() + mostAtOnce)), 20);
    return () => clearTimeout(timer);
  }
  const idle = requestIdleCallback(
    (deadline) => step(until(performance.now() + Math.min(deadline.timeRemaining(), mostAtOnce))),
    { timeout: longestWait },
  );
  return () => cancelIdleCallback(idle);
}

function writeRow(row: HTMLTableRowElement, cells: (string | number)[]): void {
  while (row.cells.length > cells.length) row.deleteCell(-1);
  cells.forEach((cell, column) => {
    const text = String(cell);
    const known = row.cells[column]?.firstChild as Text | null | undefined;
    if (!known) (row.cells[column] ?? row.insertCell()).append(text);
    else if (known.data !== text) known.data = text;
  });
}

// Fills the body's rows now and each second, as long as it lives.
class Filling {
  private table: Table | null = null;
  private next = 0;
  private cancel = () => {};

  constructor(
    private readonly body: HTMLTableSectionElement,
    private readonly make: () => Table,
    private readonly onTable: (table: Table) => void,
  ) {
    this.cancel = whenIdle(this.step);
  }

  stop(): void {
    this.cancel();
  }

  private readonly step: Step = (hasTime) => {
    if (!this.table) {
      this.table = this.make();
      this.next = 0;
      this.onTable(this.table);
    }
    const { rows, row } = this.table;
    for (let written = 0; this.next < rows && (written < least || hasTime()); ++written, ++this.next) {
      writeRow(this.body.rows[this.next] ?? this.body.insertRow(), row(this.next));
    }
    if (this.next < rows) {
      this.cancel = whenIdle(this.step);
      return;
    }
    while (this.body.rows.length > rows) this.body.deleteRow(-1);
    this.table = null;
    const timer = setTimeout(() => (this.cancel = whenIdle(this.step)), period);
    this.cancel = () => clearTimeout(timer);
  };
}

export function TableView({ id, make }: { id: string; make: () => Table }) {
  const latest = useRef(make);
  latest.current = make;
  const body = useRef<HTMLTableSectionElement>(null);
  const [{ caption, head }, setHead] = useState<{ caption: string; head: string[] }>({ caption: '', head: [] });
  useEffect(() => {
    let shown = '';
    const show = (table: Table) => {
      const text = JSON.stringify([table.caption, table.head]);
      if (text !== shown) setHead(table);
      shown = text;
    };
    const filling = new Filling(body.current!, () => latest.current(), show);
    return () => filling.stop();
  }, []);
  return (
    <table id={id}>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {head.map((text) => (
            <th key={text} scope="col">{text}</th>
          ))}
        </tr>
      </thead>
      <tbody ref={body} />
    </table>
  );
}

interface PanelProps {
  id: string;
  title: string;
  children: ComponentChildren;
  tools?: ComponentChildren;
  table?: () => Table;
  more?: { id: string; table: () => Table }; // for a further drawing
}

// A titled part of the page. If it has a table, a button shows the table instead of the drawing.
export function Panel({ id, title, children, tools, table, more }: PanelProps) {
  const [asTable, setAsTable] = useState(false);
  return (
    <section id={id} class={asTable ? 'panel as-table' : 'panel'} aria-labelledby={`${id}-title`}>
      <div class="panel-head">
        <h2 id={`${id}-title`}>{title}</h2>
        {tools}
        {table && (
          <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>
            Table
          </button>
        )}
      </div>
      {/* The box is focusable, so that the keyboard can scroll it. */}
      <div class="panel-body" tabIndex={0} role="group" aria-labelledby={`${id}-title`}>
        <div class="drawing">{children}</div>
        {table && (
          <div class="table-view">
            <TableView id={`${id}-table`} make={table} />
            {more && <TableView id={`${more.id}-table`} make={more.table} />}
          </div>
        )}
      </div>
    </section>
  );
}
