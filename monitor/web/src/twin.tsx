// The table beside a drawing: what it shows as text, renewed once a second. Hidden from sight unless
// asked for, never from screen readers.

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

export interface Table {
  caption: string;
  head: string[];
  rows: (string | number)[][];
}

// The newest value of `make`, at most once a second.
function useSlow<T>(make: () => T): T {
  const latest = useRef(make);
  latest.current = make;
  const [value, setValue] = useState(make);
  useEffect(() => {
    const timer = setInterval(() => setValue(() => latest.current()), 1000);
    return () => clearInterval(timer);
  }, []);
  return value;
}

export function Twin({ id, make }: { id: string; make: () => Table }) {
  const table = useSlow(make);
  return (
    <table id={id}>
      <caption>{table.caption}</caption>
      <thead>
        <tr>
          {table.head.map((text) => (
            <th key={text} scope="col">{text}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {table.rows.map((row, index) => (
          <tr key={index}>
            {row.map((cell, column) => (
              <td key={column}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface PanelProps {
  id: string;
  title: string;
  children: ComponentChildren;
  tools?: ComponentChildren;
  table?: () => Table;
}

// A titled part of the page; with a table, a button shows it in the drawing's place.
export function Panel({ id, title, children, tools, table }: PanelProps) {
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
      {/* Focusable, so that the keyboard can scroll it. */}
      <div class="panel-body" tabIndex={0} role="group" aria-labelledby={`${id}-title`}>
        <div class="drawing">{children}</div>
        {table && (
          <div class="twin">
            <Twin id={`${id}-table`} make={table} />
          </div>
        )}
      </div>
    </section>
  );
}
