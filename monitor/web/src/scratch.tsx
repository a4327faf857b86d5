// The panel shows writes (upwards) and reads (downwards) of each node's servers for striped volumes. It is
// visible while jobs have volumes.

import { Canvas, type Size } from './canvas';
import type { Theme } from './colours';
import { bytes, rate } from './format';
import { Panel, type Table } from './panel';
import type { Node, Snapshot, Volume } from './types';

const least = 1e6; // the least full height, bytes per second

interface Place {
  node: string;
  volume: Volume;
}

const volumesOf = (node: Node): Volume[] => node.scratch?.volumes ?? [];

const sum = (volumes: Volume[], of: (volume: Volume) => number): number => volumes.reduce((all, one) => all + of(one), 0);

const written = (volume: Volume): number => volume.written_bytes_per_s;

const read = (volume: Volume): number => volume.read_bytes_per_s;

function draw(nodes: Node[], most: number) {
  return (context: CanvasRenderingContext2D, size: Size, theme: Theme) => {
    const middle = size.h / 2;
    const w = size.w / Math.max(nodes.length, 1);
    context.fillStyle = theme.line;
    context.fillRect(0, middle, size.w, 1);
    nodes.forEach((node, index) => {
      const volumes = volumesOf(node);
      context.fillStyle = theme.skew;
      context.fillRect(index * w, middle, Math.max(w - 1, 1), (-sum(volumes, written) / most) * middle);
      context.fillStyle = theme.p95;
      context.fillRect(index * w, middle + 1, Math.max(w - 1, 1), (sum(volumes, read) / most) * middle);
    });
  };
}

function table(places: Place[]): Table {
  return {
    caption: 'Servers of striped volumes',
    head: ['node', 'job', 'used', 'capacity', 'written kB/s', 'read kB/s', 'requests /s', 'queue', 'restarts', 'TCP for PM', 'state'],
    rows: places.length,
    row: (index) => {
      const { node, volume } = places[index]!;
      return [
        node, String(volume.job), bytes(volume.used_bytes), bytes(volume.capacity_bytes), (written(volume) / 1e3).toFixed(1), (read(volume) / 1e3).toFixed(1),
        volume.requests_per_s.toFixed(0), String(volume.queue), String(volume.restarts), String(volume.fallbacks), volume.down ? 'down' : 'up',
      ];
    },
  };
}

export function ScratchPanel({ snapshot }: { snapshot: Snapshot }) {
  const places = snapshot.nodes.flatMap((node) => volumesOf(node).map((volume) => ({ node: node.name, volume })));
  if (places.length === 0) return null;
  const volumes = places.map((place) => place.volume);
  const perNode = snapshot.nodes.map((node) => Math.max(sum(volumesOf(node), written), sum(volumesOf(node), read)));
  const most = Math.max(least, ...perNode);
  const fallbacks = sum(volumes, (volume) => volume.fallbacks);
  const down = volumes.filter((volume) => volume.down).length;
  return (
    <Panel id="scratch" title="Scratch" table={() => table(places)}>
      <Canvas label="Striped volumes of each node: written up, read down; the table has the same" height={64} draw={draw(snapshot.nodes, most)} />
      <p class="hint">
        {`up: written, ${rate(sum(volumes, written), 'B/s')} in all; down: read, ${rate(sum(volumes, read), 'B/s')}; `}
        {`${bytes(sum(volumes, (volume) => volume.used_bytes))} used; ${sum(volumes, (volume) => volume.queue)} requests wait`}
        {fallbacks > 0 ? `; ${fallbacks} connections wanted PM and use TCP` : ''}
        {down > 0 ? `; ${down} servers do not answer` : ''}
      </p>
    </Panel>
  );
}
