// The traffic matrix is a map of nodes by nodes, requested only while it is open. It comes over a separate
// connection once per second, so that all viewers continue to share the page's documents.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Canvas, type Size } from './canvas';
import type { Theme } from './colours';
import { rate } from './format';
import { simulatePeers } from './simulated';
import { Panel, type Table } from './panel';
import type { Peers, Snapshot } from './types';

const period = 1000; // ms, of documents; also the pause before reconnecting

// Calls `take` with each map, until the returned function is called.
function follow(isSimulated: boolean, nodes: number, take: (peers: Peers) => void): () => void {
  if (isSimulated) {
    const timer = setInterval(() => take(simulatePeers(nodes)), period);
    return () => clearInterval(timer);
  }
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const connect = () => {
    const address = new URL('api/v1/ws?rate=1&parts=peers', location.href);
    address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
    socket = new WebSocket(address);
    socket.onmessage = (message) => {
      const { peers } = JSON.parse(String(message.data)) as { peers?: Peers };
      if (peers) take(peers);
    };
    socket.onclose = () => (timer = setTimeout(connect, period));
  };
  connect();
  return () => {
    clearTimeout(timer);
    if (!socket) return;
    socket.onmessage = socket.onclose = null;
    socket.close();
  };
}

interface Place {
  from: number;
  to: number;
}

const leftMargin = 58;
const topMargin = 18;
const mostHeight = 560;

// A group of nodes is named after its first and last node.
function nameOf(snapshot: Snapshot, peers: Peers, index: number): string {
  const first = index * peers.nodes_per_cell;
  const last = Math.min(first + peers.nodes_per_cell, snapshot.nodes.length) - 1;
  const name = (node: number) => snapshot.nodes[node]?.name ?? String(node);
  return last > first ? `${name(first)} … ${name(last)}` : name(first);
}

const sideOf = (snapshot: Snapshot, peers: Peers) => Math.max(Math.ceil(snapshot.nodes.length / peers.nodes_per_cell), 1);

const frames = (value: number) => rate(value, 'frames/s');

// Returns a value from the background's colour to the text's, on a logarithmic scale. It is readable without
// colours, in both schemes.
function strengthOf(value: number, most: number): number {
  return 0.15 + 0.85 * (Math.log10(1 + value) / Math.log10(1 + most));
}

interface Grid {
  step: number;
  side: number;
}

function gridOf(size: Size, side: number): Grid {
  return { side, step: Math.min((size.w - leftMargin) / side, (size.h - topMargin) / side) };
}

function drawAxes(context: CanvasRenderingContext2D, grid: Grid, theme: Theme, name: (index: number) => string) {
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.fillStyle = theme.ink;
  const every = Math.max(Math.ceil(14 / grid.step), grid.side > 16 ? 8 : 1);
  for (let index = 0; index < grid.side; index += every) {
    context.textAlign = 'left';
    context.fillText(name(index), 2, topMargin + (index + 0.5) * grid.step, leftMargin - 6);
    const room = every * grid.step - 4;
    const number = /\d+$/.exec(name(index))?.[0] ?? '';
    const text = context.measureText(name(index)).width <= room ? name(index) : number;
    context.fillText(text, leftMargin + index * grid.step, 8, room);
  }
}

function draw(snapshot: Snapshot, peers: Peers, chosen: Place | null) {
  return (context: CanvasRenderingContext2D, size: Size, theme: Theme) => {
    const grid = gridOf(size, sideOf(snapshot, peers));
    const { step, side } = grid;
    const gap = step > 4 ? 1 : 0;
    drawAxes(context, grid, theme, (index) => nameOf(snapshot, peers, index));
    context.fillStyle = theme.line;
    context.fillRect(leftMargin, topMargin, side * step, side * step);
    const most = Math.max(1, ...peers.cells.map(([, , value]) => value));
    context.fillStyle = theme.skew;
    for (const [from, to, value] of peers.cells) {
      context.globalAlpha = strengthOf(value, most);
      context.fillRect(leftMargin + to * step, topMargin + from * step, step - gap, step - gap);
    }
    context.globalAlpha = 1;
    context.strokeStyle = theme.faint;
    context.beginPath();
    for (let index = 0; index < side && peers.nodes_per_cell === 1; ++index) {
      context.moveTo(leftMargin + index * step, topMargin + index * step);
      context.lineTo(leftMargin + (index + 1) * step, topMargin + (index + 1) * step);
    }
    context.stroke();
    if (!chosen) return;
    context.strokeStyle = theme.ink;
    context.lineWidth = 2;
    context.strokeRect(leftMargin + chosen.to * step - 1, topMargin + chosen.from * step - 1, step + 1, step + 1);
  };
}

function describe(snapshot: Snapshot, peers: Peers, place: Place | null): string {
  if (!place) return 'Point at a cell, or use the arrow keys. Rows send, columns receive.';
  const names = `${nameOf(snapshot, peers, place.from)} to ${nameOf(snapshot, peers, place.to)}`;
  if (place.from === place.to && peers.nodes_per_cell === 1) return `${names}: within a node, not counted`;
  const cell = peers.cells.find(([from, to]) => from === place.from && to === place.to);
  return `${names}: ${frames(cell?.[2] ?? 0)}`;
}

function tableOf(snapshot: Snapshot, peers: Peers): Table {
  const cells = [...peers.cells].sort((a, b) => b[2] - a[2] || a[0] - b[0] || a[1] - b[1]);
  return {
    caption: 'Traffic between nodes, largest first',
    head: ['from', 'to', 'sent frames/s'],
    rows: cells.length,
    row: (index) => {
      const [from, to, value] = cells[index]!;
      return [nameOf(snapshot, peers, from), nameOf(snapshot, peers, to), value.toFixed(1)];
    },
  };
}

const moves: { [key: string]: Place } = {
  ArrowUp: { from: -1, to: 0 }, ArrowDown: { from: 1, to: 0 },
  ArrowLeft: { from: 0, to: -1 }, ArrowRight: { from: 0, to: 1 },
};

function PeerMap({ snapshot, peers }: { snapshot: Snapshot; peers: Peers }) {
  const [place, setPlace] = useState<Place | null>(null);
  const side = sideOf(snapshot, peers);
  const clamp = (value: number) => Math.min(Math.max(value, 0), side - 1);
  const go = (from: number, to: number) => setPlace({ from: clamp(from), to: clamp(to) });
  const point = (x: number, y: number, size: Size) => {
    const { step } = gridOf(size, side);
    go(Math.floor((y - topMargin) / step), Math.floor((x - leftMargin) / step));
  };
  const key = (name: string) => {
    const move = moves[name];
    if (move) go((place?.from ?? 0) + move.from, (place?.to ?? 0) + move.to);
    return move !== undefined;
  };
  const label = `Traffic between nodes, ${side} by ${side}; the table has the same data`;
  const height = topMargin + Math.min(mostHeight, Math.max(side * 40, 80), window.innerHeight * 0.66);
  return (
    <Panel id="peers" title="Rows send, columns receive" table={() => tableOf(snapshot, peers)}>
      <Canvas label={label} height={height} draw={draw(snapshot, peers, place)} onPoint={point} onKey={key} />
      <p class="hint">{describe(snapshot, peers, place)}</p>
    </Panel>
  );
}

export function PeersDialog({ snapshot, onClose }: { snapshot: Snapshot; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [peers, setPeers] = useState<Peers | null>(null);
  useEffect(() => {
    dialog.current?.showModal();
    return follow(snapshot.simulated === true, snapshot.nodes.length, setPeers);
  }, []);
  // The map is drawn when it has changed, not with each of the page's documents.
  const map = useMemo(() => peers && <PeerMap snapshot={snapshot} peers={peers} />, [peers]);
  const most = Math.max(0, ...(peers?.cells ?? []).map(([, , value]) => value));
  return (
    <dialog id="peers-dialog" ref={dialog} aria-labelledby="peers-dialog-title" onClose={onClose}>
      <div class="panel-head">
        <h2 id="peers-dialog-title">Traffic between nodes</h2>
        <button type="button" onClick={() => dialog.current?.close()}>Close</button>
      </div>
      {map ?? <p role="status">Asking the nodes …</p>}
      <p>
        Frames of PM between nodes, measured while this is open; the darkest or brightest cell is {frames(most)}. Traffic within a node or over other networks is not included.
      </p>
    </dialog>
  );
}
