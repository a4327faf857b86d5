// Returns rows of processes by the names of their columns.

import type { Processes } from './types';

export interface ProcessRow {
  node: number;
  job: number;
  rank: number;
  state: string;
  user: number;
  system: number;
  pm: number;
  waited: number;
  filled: number;
  scheduled: number;
  memory: number;
}

export function rowsOf(processes: Processes): ProcessRow[] {
  const at = (name: string) => processes.columns.indexOf(name);
  const column = {
    node: at('node'), job: at('job'), rank: at('rank'), state: at('state'), user: at('user'),
    system: at('system'), pm: at('pm'), waited: at('waited'), filled: at('filled'), scheduled: at('scheduled'), memory: at('memory_bytes'),
  };
  return processes.rows.map((row) => ({
    node: Number(row[column.node]),
    job: Number(row[column.job]),
    rank: Number(row[column.rank]),
    state: String(row[column.state]),
    user: Number(row[column.user] ?? 0),
    system: Number(row[column.system] ?? 0),
    pm: Number(row[column.pm] ?? 0),
    waited: Number(row[column.waited] ?? 0),
    filled: Number(row[column.filled] ?? 0),
    scheduled: Number(row[column.scheduled] ?? 0),
    memory: Number(row[column.memory] ?? 0),
  }));
}
