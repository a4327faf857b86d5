// The page shows jobs at idle priority, in the slices of other jobs, in a lighter shade.

import type { ProcessRow } from './processes';
import type { Snapshot } from './types';

// Opacity of a job's colour where it fills, and of the time that it used so.
export const fillingAlpha = 0.45;

// Returns the opacity of a whole load bar: full in its gang's turn.
export function barAlpha(state: string): number {
  if (state === 'fill') return 0.8;
  return state === 'frozen' ? 0.6 : 1;
}

export interface Part {
  share: number;
  colour: 'user' | 'system' | 'waited' | 'pm';
  alpha: number;
}

// Returns the parts from the bottom up. A part that does not fit into the bar is cut at the top.
export function partsOf(row: ProcessRow): Part[] {
  return [
    { share: row.user, colour: 'user', alpha: 1 },
    { share: row.system, colour: 'system', alpha: 1 },
    { share: row.filled, colour: 'user', alpha: fillingAlpha },
    { share: row.waited, colour: 'waited', alpha: 1 },
    { share: row.pm, colour: 'pm', alpha: 1 },
  ];
}

// Returns for each node the jobs that fill there now.
export function fillersOf(snapshot: Snapshot): Set<number>[] {
  const nodes = snapshot.nodes.map(() => new Set<number>());
  for (const [node, job, , end] of snapshot.slices.fills) {
    if (end === null) nodes[node]?.add(job);
  }
  return nodes;
}

export interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

// Returns the part of a node's lane for fillers, which run below the gang in turn.
export function fillLane({ x, y, w, h }: Box): Box {
  return { x, y: y + (2 * h) / 3, w, h: h / 3 };
}
