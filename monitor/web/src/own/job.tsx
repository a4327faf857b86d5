// The page of one job: what it does and why, where it runs, what it wrote, and what can be done about it.

import { useEffect, useState } from 'preact/hooks';
import { linkTo, setState, useAddress } from '../address';
import { bytes, clockTime, hours, percent } from '../format';
import { MatrixPanel } from '../matrix';
import { rowsOf } from '../processes';
import type { Session, Snapshot } from '../types';
import { ask, change, type Change, type Fault, type JobDocument, type JobEvent, type OwnJob } from './api';
import { Output, type StreamName } from './output';
import { Profile } from './profile';
import { actionsOf, dateTime, efficiencyOf, jobId, sentence, type Action } from './words';

interface Known {
  job: OwnJob | null;
  etag: string;
  events: JobEvent[];
  fault: Fault | null;
}

const pauseOfRead = 100; // ms
const period = 2000; // ms, without events
const nothing: Known = { job: null, etag: '', events: [], fault: null };

// Reads the job, and follows it until it ends. The document of an event has no tag, so that the job is read
// again before it is changed.
function useJob(number: number): [Known, () => Promise<void>] {
  const [known, setKnown] = useState<Known>(nothing);
  const read = async () => {
    const answer = await ask<JobDocument>(`jobs/${number}`);
    if (!answer.ok) return setKnown((before) => ({ ...before, fault: answer.fault }));
    setKnown({ job: answer.value.job, etag: answer.etag, events: answer.value.events, fault: null });
  };
  useEffect(() => {
    setKnown(nothing);
    void read();
    let timer = 0;
    let isOver = false;
    const readSoon = () => { // many events come at once
      clearTimeout(timer);
      timer = window.setTimeout(() => void read(), pauseOfRead);
    };
    const source = new EventSource(`api/v1/jobs/${number}/events`);
    source.addEventListener('job', readSoon);
    source.addEventListener('event', readSoon);
    source.addEventListener('end', () => {
      isOver = true;
      source.close();
      readSoon();
    });
    const poll = setInterval(() => { // an array has no events
      if (source.readyState === EventSource.CLOSED && !isOver && !document.hidden) void read();
    }, period);
    return () => {
      clearTimeout(timer);
      clearInterval(poll);
      source.close();
    };
  }, [number]);
  return [known, read];
}

const names: Record<Action, string> = {
  hold: 'Hold', release: 'Release', suspend: 'Suspend', resume: 'Resume', requeue: 'Requeue', cancel: 'Cancel',
  limit: 'Change limit', again: 'Submit again',
};
const needsQuestion = new Set<Action>(['requeue', 'cancel']);

interface ActionsProps {
  job: OwnJob;
  etag: string;
  session: Session;
  onDone: () => Promise<void>;
}

function LimitForm({ job, onSet }: { job: OwnJob; onSet: (limit: string) => void }) {
  const [text, setText] = useState('');
  const submit = (event: Event) => {
    event.preventDefault();
    onSet(text.trim());
  };
  return (
    <form id="limit" onSubmit={submit}>
      <label>
        Limit of scheduled time{' '}
        <input name="time" value={text} placeholder={job.scheduled_limit_s > 0 ? hours(job.scheduled_limit_s) : 'none'} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <button type="submit" disabled={!text.trim()}>Set</button>
      <span class="hint">for example 2h or 90m; none removes it</span>
    </form>
  );
}

function Actions({ job, etag, session, onDone }: ActionsProps) {
  const [result, setResult] = useState<{ ok: boolean; text: string } | null>(null);
  const [isLimitOpen, setLimitOpen] = useState(false);
  const send = async (what: Change, done: string) => {
    const headers: Record<string, string> = what.method === 'PATCH' && etag ? { 'If-Match': etag } : {};
    const answer = await change<{ text?: string }>(session, { ...what, headers });
    setResult(answer.ok ? { ok: true, text: answer.value.text || done } : { ok: false, text: answer.fault.message });
    await onDone();
  };
  const act = (action: Action) => {
    if (action === 'limit') return setLimitOpen(!isLimitOpen);
    if (needsQuestion.has(action) && !window.confirm(`${names[action]} job ${jobId(job)}?`)) return undefined;
    const what: Change = action === 'cancel' ? { method: 'DELETE', path: `jobs/${job.job}` } : { method: 'POST', path: `jobs/${job.job}/${action}` };
    return void send(what, `${names[action]}: done.`);
  };
  const setLimit = (time: string) => {
    setLimitOpen(false);
    void send({ method: 'PATCH', path: `jobs/${job.job}`, body: { time } }, 'The limit is changed.');
  };
  return (
    <div id="actions">
      {actionsOf(job).map((action) => (action === 'again' ? (
        <a key={action} class="button" href={linkTo('new', { like: String(job.job) })}>{names[action]}</a>
      ) : (
        <button key={action} type="button" aria-expanded={action === 'limit' ? isLimitOpen : undefined} onClick={() => act(action)}>{names[action]}</button>
      )))}
      {isLimitOpen && <LimitForm job={job} onSet={setLimit} />}
      <p role="status" class={result && !result.ok ? 'failed' : ''}>{result?.text ?? ''}</p>
    </div>
  );
}

function share(value: number | null): string {
  return value === null ? '–' : percent(value, 0);
}

// Returns what the processes of the job do now.
function loadNow(snapshot: Snapshot | null, job: number): string {
  const rows = snapshot ? rowsOf(snapshot.processes).filter((row) => row.job === job) : [];
  if (rows.length === 0) return '–';
  const mean = (get: (row: (typeof rows)[number]) => number) => rows.reduce((sum, row) => sum + get(row), 0) / rows.length;
  const memory = rows.reduce((sum, row) => sum + row.memory, 0);
  return `user ${percent(mean((row) => row.user), 0)}, system ${percent(mean((row) => row.system), 0)}, waiting ${percent(mean((row) => row.waited + row.pm), 0)}; ${bytes(memory)}`;
}

function Figures({ job, snapshot }: { job: OwnJob; snapshot: Snapshot | null }) {
  const live = snapshot?.jobs.find((one) => one.job === job.job);
  const { processors, memory, time } = efficiencyOf(job);
  const peak = job.usage ? ` (${bytes(job.usage.memory_peak_bytes)} at most on a node)` : '';
  const rows: [string, string][] = [
    ['Nodes', job.nodes.length > 0 ? job.nodes.join(' ') : '–'],
    ['Tasks', `${job.tasks}, ${job.cores} cores`],
    ['Scheduled', `${hours(live?.scheduled_s ?? job.scheduled_s)} in ${job.slices} slices, limit ${job.scheduled_limit_s > 0 ? hours(job.scheduled_limit_s) : 'none'}`],
    ['Elapsed', `${hours(live?.elapsed_s ?? job.elapsed_s)}, limit ${job.wall_limit_s > 0 ? hours(job.wall_limit_s) : 'none'}`],
    ['Share', job.share_reason ?? share(job.share)],
    ['Efficiency', `processors ${share(processors)}, memory ${share(memory)}${peak}, time ${share(time)}`],
    ['Load now', job.final ? '–' : loadNow(snapshot, job.job)],
    ['Queue', `${job.queue}${job.partition ? `, partition ${job.partition}` : ''}`],
    ['Submitted', dateTime(job.submitted_unix_s)],
    ['Started', dateTime(job.started_unix_s)],
    ['Ended', dateTime(job.ended_unix_s)],
  ];
  return (
    <dl id="job-figures">
      {rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}

function Events({ events }: { events: JobEvent[] }) {
  return (
    <section id="job-events" class="panel" aria-labelledby="job-events-title">
      <div class="panel-head"><h2 id="job-events-title">Events</h2></div>
      <ol class="events">
        {events.map((event) => <li key={`${event.unix_s} ${event.text}`}><time>{clockTime(event.unix_s)}</time> {event.text}</li>)}
      </ol>
    </section>
  );
}

interface JobViewProps {
  number: number;
  session: Session;
  snapshot: Snapshot | null;
}

export function JobView({ number, session, snapshot }: JobViewProps) {
  const [{ job, etag, events, fault }, read] = useJob(number);
  const { query } = useAddress();
  const word = query.get('stream');
  const stream: StreamName = word === 'stdout' || word === 'stderr' ? word : '';
  if (!job) return <p class="hint" role="status">{fault?.message ?? `Reading job ${number} …`}</p>;
  if (job.user !== session.user && session.role !== 'operator') {
    return <p class="hint" role="status">Job {number} belongs to another user.</p>;
  }
  return (
    <>
      <section id="job" class="panel" aria-labelledby="job-title">
        <div class="panel-head">
          <h2 id="job-title">Job {jobId(job)}: {job.name}</h2>
          <a href={linkTo('jobs')}>My jobs</a>
        </div>
        <p id="sentence" role="status">{sentence(job)}</p>
        {fault && <p class="failed" role="alert">{fault.message}</p>}
        <Actions job={job} etag={etag} session={session} onDone={read} />
        <Figures job={job} snapshot={snapshot} />
        {job.waits.length > 0 && <ul class="waits">{job.waits.map((wait) => <li key={wait}>{wait}</li>)}</ul>}
        <h3>Command</h3>
        <pre id="command" tabIndex={0}>{`cd ${job.directory}\n${job.command}`}</pre>
      </section>
      <Profile job={number} isOver={job.final} />
      {snapshot && !job.final && <MatrixPanel snapshot={snapshot} marked={number} />}
      <Output job={number} stream={stream} onStream={(one) => setState('stream', one)} />
      <Events events={events} />
    </>
  );
}
