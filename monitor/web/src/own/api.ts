// Requests of the API for programs, with the session of the page. They never throw.

import type { Session } from '../types';

export interface Fault {
  status: number; // 0: no answer
  message: string;
  field: string;
}

export type Answer<T> = { ok: true; value: T; etag: string } | { ok: false; fault: Fault };

interface Problem {
  message?: string;
  error?: string;
  field?: string;
}

export async function ask<T>(path: string, options: RequestInit = {}): Promise<Answer<T>> {
  try {
    const response = await fetch(`api/v1/${path}`, { cache: 'no-store', ...options });
    const document = (await response.json()) as T & Problem;
    if (response.ok) return { ok: true, value: document, etag: response.headers.get('ETag') ?? '' };
    const message = document.message ?? document.error ?? response.statusText;
    return { ok: false, fault: { status: response.status, message, field: document.field ?? '' } };
  } catch (error) {
    return { ok: false, fault: { status: 0, message: `no answer: ${String(error)}`, field: '' } };
  }
}

export interface Change {
  method: 'POST' | 'PATCH' | 'DELETE';
  path: string;
  body?: object;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export function change<T>(session: Session, { method, path, body, headers, signal }: Change): Promise<Answer<T>> {
  const all: Record<string, string> = { 'X-Scored-Csrf': session.csrf ?? '', ...headers };
  if (body) all['Content-Type'] = 'application/json';
  return ask<T>(path, { method, headers: all, signal, body: body ? JSON.stringify(body) : undefined });
}

export interface Usage {
  cpu_user_s: number;
  cpu_system_s: number;
  memory_peak_bytes: number;
  read_bytes: number;
  write_bytes: number;
}

// The fields of scout/JSON.md that the views show.
export interface OwnJob {
  job: number;
  array_job?: number;
  array_task?: number;
  array?: { waiting: string; waiting_count: number; running_count: number; completed_count: number; failed_count: number };
  user: string;
  name: string;
  command: string;
  directory: string;
  state: string;
  final: boolean;
  activity: string;
  restarts: number;
  reasons: string[];
  waits: string[];
  tasks: number;
  nodes: string[];
  nodes_wanted: number;
  slot?: number;
  share: number;
  share_reason?: string;
  slices: number;
  queue: string;
  partition?: string;
  scheduled_s: number;
  elapsed_s: number;
  scheduled_limit_s: number;
  wall_limit_s: number;
  cores: number;
  memory_per_node_bytes: number;
  usage?: Usage;
  expected_start_unix_s?: number;
  submitted_unix_s: number;
  started_unix_s: number;
  ended_unix_s: number;
  exit_code: number;
  signal: number;
}

export interface JobEvent {
  unix_s: number;
  text: string;
}

export interface JobDocument {
  job: OwnJob;
  events: JobEvent[];
}

export interface JobPage {
  jobs: OwnJob[];
  truncated: boolean;
  next?: number;
}

export interface Plan {
  starts: boolean;
  reasons: string[];
  tasks: number;
  nodes: string[];
  slot?: number;
  expected_start_unix_s?: number;
}

const mostPages = 10;

// Returns the jobs of this user, the newest first.
export async function listJobs(ended: boolean): Promise<Answer<OwnJob[]>> {
  const jobs: OwnJob[] = [];
  let after = 0;
  for (let page = 0; page < mostPages; ++page) {
    const answer = await ask<JobPage>(`jobs?limit=1000&ended=${ended ? 1 : 0}&after=${after}`);
    if (!answer.ok) return answer;
    jobs.push(...answer.value.jobs);
    if (!answer.value.truncated) break;
    after = answer.value.next ?? after;
  }
  return { ok: true, value: jobs.reverse(), etag: '' };
}
