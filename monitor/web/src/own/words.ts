// Says in words what state a job is in and what can be done about it. It is pure.

import { hours, percent } from '../format';
import type { OwnJob, Plan } from './api';

export function dateTime(unixSeconds: number): string {
  if (unixSeconds <= 0) return '–';
  return new Date(unixSeconds * 1000).toLocaleString(undefined, { hour12: false });
}

// Returns "node00, node01 and 14 more".
export function some(names: string[], most = 4): string {
  if (names.length <= most) return names.join(', ');
  return `${names.slice(0, most).join(', ')} and ${names.length - most} more`;
}

function because(reasons: string[]): string {
  return reasons.length > 0 ? `: ${reasons.join('; ')}` : '';
}

function running(job: OwnJob): string {
  const share = job.share > 0 && job.share < 0.995 ? `, with ${percent(job.share, 0)} of the time there` : '';
  const where = job.nodes.length > 0 ? ` on ${some(job.nodes)}` : '';
  const activity = job.activity === 'idle' || job.activity === 'deadlocked' ? ` It is ${job.activity}.` : '';
  return `Running${where} since ${dateTime(job.started_unix_s)}${share}.${activity}`;
}

function ended(job: OwnJob): string {
  const after = job.started_unix_s > 0 ? ` after ${hours(job.ended_unix_s - job.started_unix_s)}` : ' before it started';
  const state = job.state.charAt(0).toUpperCase() + job.state.slice(1);
  const code = job.state === 'completed' || job.started_unix_s <= 0 ? '' : ` with exit code ${job.exit_code}`;
  return `${state}${after}${code}${because(job.reasons)}.`;
}

// Returns one or two sentences: the state, and why.
export function sentence(job: OwnJob): string {
  if (job.final) return ended(job);
  if (job.array && job.array_job === job.job) {
    const { waiting_count, running_count, completed_count, failed_count } = job.array;
    return `Array: ${running_count} tasks run, ${waiting_count} wait, ${completed_count} completed, ${failed_count} failed${because(job.reasons)}.`;
  }
  if (job.state === 'running') return running(job);
  if (job.state !== 'pending') return `${job.state.charAt(0).toUpperCase()}${job.state.slice(1)}${because(job.reasons)}.`;
  const start = job.expected_start_unix_s ? ` It is expected to start about ${dateTime(job.expected_start_unix_s)}.` : '';
  return `Waiting${because(job.reasons)}.${start}`;
}

export function planSentence(plan: Plan): string {
  const tasks = `${plan.tasks} task${plan.tasks === 1 ? '' : 's'}`;
  if (plan.starts) return `Starts now on ${some(plan.nodes)}: ${tasks}.`;
  const start = plan.expected_start_unix_s ? ` Expected to start about ${dateTime(plan.expected_start_unix_s)}.` : '';
  return `Waits${because(plan.reasons)}.${start}`;
}

export type Action = 'hold' | 'release' | 'suspend' | 'resume' | 'requeue' | 'cancel' | 'limit' | 'again';

const isHeld = (job: OwnJob) => job.reasons.some((reason) => /\bheld\b/.test(reason));

// Returns what can be done with the job in its state, in the order of the buttons.
export function actionsOf(job: OwnJob): Action[] {
  if (job.final) return ['again'];
  if (job.state === 'pending') return [isHeld(job) ? 'release' : 'hold', 'limit', 'cancel', 'again'];
  if (job.state === 'suspended') return ['resume', 'limit', 'requeue', 'cancel', 'again'];
  return ['suspend', 'limit', 'requeue', 'cancel', 'again'];
}

export interface Efficiency {
  processors: number | null; // processor time per core and scheduled time
  memory: number | null; // peak per requested memory
  time: number | null; // scheduled time per limit
}

export function efficiencyOf(job: OwnJob): Efficiency {
  const { usage, cores, scheduled_s: scheduled } = job;
  return {
    processors: usage && cores * scheduled > 0 ? (usage.cpu_user_s + usage.cpu_system_s) / (cores * scheduled) : null,
    memory: usage && job.memory_per_node_bytes > 0 ? usage.memory_peak_bytes / job.memory_per_node_bytes : null,
    time: job.scheduled_limit_s > 0 ? scheduled / job.scheduled_limit_s : null,
  };
}

// Returns the number as users write it: "12_3" for a task of an array.
export function jobId(job: OwnJob): string {
  const isTask = job.array_job !== undefined && job.array_job !== job.job;
  return isTask ? `${job.array_job}_${job.array_task}` : String(job.job);
}

export function isShown(job: OwnJob, state: string, text: string): boolean {
  const isState = state === '' || (state === 'active' ? !job.final : state === 'ended' ? job.final : job.state === state);
  const words = `${jobId(job)} ${job.name} ${job.state} ${job.command} ${job.reasons.join(' ')}`.toLowerCase();
  return isState && words.includes(text.toLowerCase());
}

// Returns the lines that have the words, and their number; all if there are no words.
export function searchLines(text: string, words: string): { text: string; count: number | null } {
  if (!words) return { text, count: null };
  const lines = text.split('\n').filter((line) => line.toLowerCase().includes(words.toLowerCase()));
  return { text: lines.join('\n'), count: lines.length };
}
