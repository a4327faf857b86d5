// PM traffic of each node: sent upwards, received downwards.

import { Canvas, type Size } from './canvas';
import type { Theme } from './colours';
import { rate } from './format';
import { Panel, type Table } from './twin';
import type { Snapshot } from './types';

type Traffic = Snapshot['traffic'][number];

const none: Traffic = [0, 0, 0, 0];

function draw(snapshot: Snapshot, most: number) {
  return (context: CanvasRenderingContext2D, size: Size, theme: Theme) => {
    const middle = size.h / 2;
    const w = size.w / Math.max(snapshot.nodes.length, 1);
    context.fillStyle = theme.line;
    context.fillRect(0, middle, size.w, 1);
    snapshot.nodes.forEach((_, node) => {
      const [sent, received] = snapshot.traffic[node] ?? none!;
      context.fillStyle = '#56b4e9';
      context.fillRect(node * w, middle, Math.max(w - 1, 1), (-sent / most) * middle);
      context.fillStyle = '#e69f00';
      context.fillRect(node * w, middle + 1, Math.max(w - 1, 1), (received / most) * middle);
    });
  };
}

function table(snapshot: Snapshot): Table {
  return {
    caption: 'PM traffic of each node',
    head: ['node', 'sent', 'received', 'messages sent', 'messages received'],
    rows: snapshot.nodes.length,
    row: (index) => {
      const [sent, received, out, into] = snapshot.traffic[index] ?? none!;
      return [snapshot.nodes[index]!.name, rate(sent, 'B/s'), rate(received, 'B/s'), rate(out, '/s'), rate(into, '/s')];
    },
  };
}

export function TrafficPanel({ snapshot }: { snapshot: Snapshot }) {
  const values = snapshot.traffic.flatMap((one) => (one ? [one[0], one[1]] : []));
  const most = Math.max(1000, ...values);
  const total = snapshot.traffic.reduce((sum, one) => sum + (one ? one[0] : 0), 0);
  return (
    <Panel id="traffic" title="PM traffic" table={() => table(snapshot)}>
      <Canvas label="PM traffic of each node: sent up, received down" height={64} draw={draw(snapshot, most)} />
      <p class="hint">
        {values.length === 0 ? 'No job uses PM now.' : `sent ${rate(total, 'B/s')} in all; full height ${rate(most, 'B/s')}`}
      </p>
    </Panel>
  );
}
