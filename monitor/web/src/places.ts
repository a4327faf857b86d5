// Where the matrix puts its columns and labels, and which jobs have no place in it. It is pure.

import type { Snapshot } from './types';

export const leftMargin = 34;
const gap = 3; // px after every eighth node
const labelGap = 6; // px between labels

// Returns the position of a node in pixels.
export function columnX(node: number, width: number, nodes: number): number {
  const gaps = Math.floor((nodes - 1) / 8) * gap;
  const step = (width - leftMargin - gaps) / Math.max(nodes, 1);
  return leftMargin + node * step + Math.floor(node / 8) * gap;
}

// Returns the nodes that get a label, so that none touches the next: each node if there is room, otherwise
// every second, fourth, eighth and so on.
export function labelled(names: string[], width: number, widthOf: (name: string) => number): number[] {
  const widest = Math.max(...names.map(widthOf), 0) + labelGap;
  const step = columnX(1, width, names.length) - columnX(0, width, names.length);
  let every = 1;
  while (every * step < widest && every < names.length) every *= 2;
  const places = names.map((_, node) => node).filter((node) => node % every === 0);
  return places.filter((node) => node === 0 || columnX(node, width, names.length) + widthOf(names[node]!) <= width + gap);
}

// Says which jobs that run are in no cell, and why: idle and deadlocked jobs have left the timetable.
export function absentText({ jobs, matrix }: Snapshot): string {
  const placed = new Set(matrix.rows.flatMap((row) => row.cells.flat()));
  const absent = (activity: string) => jobs.filter((job) => !job.final && job.activity === activity && !placed.has(job.job)).map(({ job }) => job);
  const parts = ['idle', 'deadlocked'].flatMap((activity) => {
    const numbers = absent(activity);
    return numbers.length > 0 ? [`${activity}: ${numbers.length > 1 ? 'jobs' : 'job'} ${numbers.join(', ')}`] : [];
  });
  return parts.length > 0 ? `Without slices, ${parts.join('; ')}.` : 'Every job that runs has slices.';
}
