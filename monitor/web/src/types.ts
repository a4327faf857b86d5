// These are the documents of the stream; docs/reference/stream.md describes the fields.

export interface Percentiles {
  p50_s: number;
  p95_s: number;
  max_s: number;
}

// By name, in the order of a switch; they add up to the overhead.
export type OverheadParts = Record<string, number>;

export interface Cluster {
  name: string;
  version: string;
  virtual: boolean;
  quantum_s: number;
  slots: number;
  settings: { name: string; range: string; value: string; purpose: string }[];
  cycle_s: number;
  nodes_up: number;
  nodes_down: number;
  nodes_known: number;
  nodes_drained: number;
  jobs_active: number;
  switches_per_s: number;
  overhead: number | null;
  overhead_parts: OverheadParts | null;
  viewers: number;
}

// A server of a job's striped volume.
export interface Volume {
  job: number;
  capacity_bytes: number;
  used_bytes: number;
  read_bytes_per_s: number;
  written_bytes_per_s: number;
  requests_per_s: number;
  queue: number;
  restarts: number;
  fallbacks: number;
  down: boolean;
}

export interface Node {
  name: string;
  state: 'up' | 'suspect' | 'down' | 'unknown';
  drained: boolean;
  reason: string;
  cores: number;
  jobs: number[];
  user: number;
  system: number;
  filled: number;
  late_switches: number;
  overhead: number | null;
  overhead_parts: OverheadParts | null;
  scratch?: { capacity_bytes: number; reserved_bytes: number; volumes: Volume[] | null } | null; // missing: from an older head
}

export interface Row {
  slot: number;
  active: boolean;
  cells: number[][];
}

export interface Matrix {
  rows: Row[];
  order: number[];
  start_s: number;
}

export type Run = [node: number, job: number, start: number, end: number | null];

export interface Job {
  job: number;
  user: string | null;
  name: string | null;
  command: string | null;
  own: boolean;
  state: string;
  final: boolean;
  activity: string;
  idle: boolean;
  nodes: number;
  tasks: number;
  ppn: number;
  node_list: string;
  slot: number | null;
  share: number;
  scheduled_s: number;
  filled_s: number;
  elapsed_s: number;
  scheduled_limit_s: number;
  reasons: string[];
  waits: string[];
}

export interface Processes {
  columns: string[];
  rows: (number | string | null)[][];
}

export interface Switches {
  window_s: number;
  count: number;
  phases: Record<string, Percentiles | null>;
  skew: (Percentiles & { count: number }) | null;
  mean_overhead_s: number | null;
  late_total: number;
  last_late: { id: number; node: number; at_s: number; late_s: number; slice_s: number } | null;
}

export interface Peers {
  nodes_per_cell: number;
  cells: [from: number, to: number, framesPerSecond: number][];
}

export interface Event {
  id: number;
  time_unix_s: number;
  at_s: number; // cluster time
  kind: string;
  text: string;
  job: number | null;
  node: number | null;
}

export interface Snapshot {
  schema: string;
  seq: number;
  head: string;
  time_unix_s: number;
  time_s: number;
  cluster: Cluster;
  nodes: Node[];
  matrix: Matrix;
  slices: { from_s: number; to_s: number; runs: Run[]; fills: Run[] };
  jobs: Job[];
  processes: Processes;
  switches: Switches;
  traffic: ([number, number, number, number] | null)[];
  events: Event[];
  simulated?: boolean;
}

export interface Session {
  schema: string;
  role: 'viewer' | 'user' | 'operator';
  user: string | null;
  csrf: string | null;
  can: string[];
}
