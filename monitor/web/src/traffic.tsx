// The panel shows the PM traffic of each node, in bytes or messages: sent upwards, received downwards. The
// traffic matrix is a map that opens on request.

import { useState } from 'preact/hooks';
import { Canvas, tall, type Size } from './canvas';
import type { Theme } from './colours';
import { rate } from './format';
import { Panel, type Table } from './panel';
import type { Snapshot } from './types';

type Traffic = NonNullable<Snapshot['traffic'][number]>;

const none: Traffic = [0, 0, 0, 0];

// Columns of the two in a row of the stream, and the least full height.
const kinds = {
  Bytes: { sent: 0, received: 1, unit: 'B/s', least: 1000 },
  Messages: { sent: 2, received: 3, unit: 'msg/s', least: 10 },
} as const;

type Kind = keyof typeof kinds;

function draw(snapshot: Snapshot, kind: Kind, most: number) {
  return (context: CanvasRenderingContext2D, size: Size, theme: Theme) => {
    const { sent, received } = kinds[kind];
    const middle = size.h / 2;
    const w = size.w / Math.max(snapshot.nodes.length, 1);
    context.fillStyle = theme.line;
    context.fillRect(0, middle, size.w, 1);
    snapshot.nodes.forEach((_, node) => {
      const row = snapshot.traffic[node] ?? none;
      context.fillStyle = theme.skew;
      context.fillRect(node * w, middle, Math.max(w - 1, 1), (-row[sent] / most) * middle);
      context.fillStyle = theme.p95;
      context.fillRect(node * w, middle + 1, Math.max(w - 1, 1), (row[received] / most) * middle);
    });
  };
}

function table(snapshot: Snapshot): Table {
  return {
    caption: 'PM traffic of each node',
    head: ['node', 'sent kB/s', 'received kB/s', 'messages sent /s', 'messages received /s'],
    rows: snapshot.nodes.length,
    row: (index) => {
      const [sent, received, out, into] = snapshot.traffic[index] ?? none;
      return [snapshot.nodes[index]!.name, (sent / 1e3).toFixed(1), (received / 1e3).toFixed(1), out.toFixed(0), into.toFixed(0)];
    },
  };
}

export function TrafficPanel({ snapshot, onPeers }: { snapshot: Snapshot; onPeers: () => void }) {
  const [kind, setKind] = useState<Kind>('Bytes');
  const { sent, received, unit, least } = kinds[kind];
  const known = snapshot.traffic.flatMap((row) => (row ? [row] : []));
  const most = Math.max(least, ...known.map((row) => Math.max(row[sent], row[received])));
  const total = known.reduce((sum, row) => sum + row[sent], 0);
  const tools = (
    <span class="tools">
      <button type="button" aria-pressed={kind === 'Messages'} onClick={() => setKind(kind === 'Messages' ? 'Bytes' : 'Messages')}>
        Messages
      </button>
      <button type="button" aria-haspopup="dialog" onClick={onPeers}>Traffic matrix</button>
    </span>
  );
  const label = `PM traffic of each node, ${kind.toLowerCase()}: sent up, received down; the table has the same`;
  return (
    <Panel id="traffic" title="PM traffic" tools={tools} table={() => table(snapshot)}>
      <Canvas label={label} height={tall(64)} draw={draw(snapshot, kind, most)} />
      <p class="hint">
        {known.length === 0 ? 'No job uses PM now.' : `up: sent, ${rate(total, unit)} in all; full height ${rate(most, unit)}`}
      </p>
    </Panel>
  );
}
