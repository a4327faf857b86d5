// Simulates a cluster for measuring the page: ?simulate=64x16 is 64 nodes with 16 processes each at 10 Hz.
// The page shows that it is simulated.

import type { Job, Peers, Run, Snapshot } from './types';

const period = 0.1;
const columns = [
  'node', 'job', 'rank', 'pid', 'state', 'user', 'system', 'pm', 'scheduled', 'memory_bytes',
  'switches_per_s', 'sent_messages_per_s', 'received_messages_per_s', 'sent_bytes_per_s',
  'received_bytes_per_s', 'processes', 'waited', 'filled',
];

const filler = 2; // this job fills in the other one's slices

function processRow(node: number, index: number, time: number): (number | string | null)[] {
  const job = 1 + (index % 2);
  const user = 0.6 + 0.3 * Math.sin(time + node / 7 + index);
  const active = Math.floor(time / period) % 2 === index % 2;
  const fills = job === filler;
  return [node, job, node * 8 + (index >> 1), 1000 + index, active ? 'running' : fills ? 'fill' : 'frozen',
    user, 0.05, 0.9 - user > 0 ? 0.9 - user : 0, 0.5, 50e6, 120, 900, 900, 4e6, 4e6, 1, 0.05, fills ? 0.1 : 0];
}

function jobs(nodes: number, ppn: number, time: number): Job[] {
  return [1, 2].map((job) => ({
    job, user: 'user', name: `simulated ${job}`, command: 'none', own: false, state: 'running',
    final: false, activity: 'busy', idle: false, nodes, tasks: (nodes * ppn) / 2, ppn: ppn / 2, node_list: `node[00-${nodes - 1}]`,
    slot: job - 1, share: 0.5, scheduled_s: time / 2, filled_s: job === filler ? time / 20 : 0, elapsed_s: time, scheduled_limit_s: 0,
    reasons: [], waits: [],
  }));
}

function runs(nodes: number, time: number): Run[] {
  const out: Run[] = [];
  const first = Math.floor(time / period);
  for (let slice = first - 5; slice <= first; ++slice) {
    for (let node = 0; node < nodes; ++node) {
      const late = 0.002 * Math.abs(Math.sin(node + slice));
      const end = slice === first ? null : (slice + 1) * period;
      out.push([node, 1 + (Math.abs(slice) % 2), slice * period + late, end]);
    }
  }
  return out;
}

// Returns the runs of the filler: it fills while the other job runs.
function fills(nodes: number, time: number): Run[] {
  return runs(nodes, time)
    .filter(([, job]) => job !== filler)
    .map(([node, , start, end]) => [node, filler, start, end]);
}

function document(nodes: number, ppn: number, seq: number): Snapshot {
  const time = seq * period;
  const all = Array.from({ length: nodes }, (_, node) => node);
  const parts = { wake: 0.0001, stop: 0.00005, network: 0, go: 0.00005 };
  const spread = { p50_s: 12e-6, p95_s: 40e-6, max_s: 90e-6 };
  return {
    schema: 'scored.stream/1', seq, head: 'simulated', time_unix_s: Date.now() / 1000, time_s: time,
    simulated: true,
    cluster: {
      name: 'simulated', version: '', virtual: true, quantum_s: period, slots: 2, settings: [], cycle_s: 2 * period,
      nodes_up: nodes, nodes_down: 0, nodes_known: nodes, nodes_drained: 0, jobs_active: 2,
      switches_per_s: 10, overhead: 0.0002, overhead_parts: parts, viewers: 1,
    },
    nodes: all.map((node) => ({
      name: `node${String(node).padStart(2, '0')}`, state: 'up', drained: false, reason: '', cores: ppn,
      jobs: [1, 2], user: 0.7, system: 0.05, filled: 0.05, late_switches: 0, overhead: 0.0002, overhead_parts: parts,
    })),
    matrix: {
      rows: [0, 1].map((slot) => ({
        slot, active: Math.floor(time / period) % 2 === slot, cells: all.map(() => [slot + 1]),
      })),
      order: [0, 1], start_s: 0,
    },
    slices: { from_s: time - 0.5, to_s: time, runs: runs(nodes, time), fills: fills(nodes, time) },
    jobs: jobs(nodes, ppn, time),
    processes: {
      columns,
      rows: all.flatMap((node) => Array.from({ length: ppn }, (_, i) => processRow(node, i, time))),
    },
    switches: {
      window_s: 1, count: nodes * 10,
      phases: { wake: spread, stop: spread, guard: null, save: null, restore: null, go: spread, total: spread },
      skew: { ...spread, count: 10 }, mean_overhead_s: 20e-6, late_total: 0, last_late: null,
    },
    traffic: all.map((node) => [4e6 * (1 + Math.sin(time + node)), 4e6, 900, 900]),
    events: [],
  };
}

// Each node sends to the next ones.
export function simulatePeers(nodes: number): Peers {
  const nodes_per_cell = Math.ceil(nodes / 64);
  const side = Math.ceil(nodes / nodes_per_cell);
  const cells: Peers['cells'] = [];
  for (let from = 0; from < side; ++from) {
    for (let to = 0; to < side; ++to) {
      const apart = (to - from + side) % side;
      if (apart > 0) cells.push([from, to, 1e4 / apart + 50 * Math.random()]);
    }
  }
  return { nodes_per_cell, cells };
}

export function simulate(size: string, take: (snapshot: Snapshot) => void): void {
  const [nodes, ppn] = size.split('x').map((text) => Math.min(Number(text) || 1, 4096));
  let seq = 100;
  setInterval(() => take(document(nodes ?? 64, ppn ?? 16, seq++)), period * 1000);
}
