// How the page shows what runs at idle priority, in the slices of other jobs: in a lighter shade.

import type { ProcessRow } from './processes';
import type { Snapshot } from './types';

// Of a job's colour where it fills, and of time that was used so.
export const fillingAlpha = 0.45;

// Of a load bar as a whole: full in its gang's turn.
export function barAlpha(state: string): number {
  if (state === 'fill') return 0.8;
  return state === 'frozen' ? 0.6 : 1;
}

export interface Part {
  share: number;
  colour: 'user' | 'system' | 'waited' | 'pm';
  alpha: number;
}

// From the bottom up. What does not fit into the bar is cut at its top.
export function partsOf(row: ProcessRow): Part[] {
  return [
    { share: row.user, colour: 'user', alpha: 1 },
    { share: row.system, colour: 'system', alpha: 1 },
    { share: row.filled, colour: 'user', alpha: fillingAlpha },
    { share: row.waited, colour: 'waited', alpha: 1 },
    { share: row.pm, colour: 'pm', alpha: 1 },
  ];
}

// [node]: the jobs that fill there now.
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

// Of a node's lane over time: fillers run below the gang in turn.
export function fillLane({ x, y, w, h }: Box): Box {
  return { x, y: y + (2 * h) / 3, w, h: h / 3 };
}
