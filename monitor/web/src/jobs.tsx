// The panel shows the jobs as scq does. A click marks a job, and the other parts of the page dim other jobs.

import { useState } from 'preact/hooks';
import { linkTo, setState as setAddress, useAddress } from './address';
import { jobColour, themeOf } from './colours';
import { hours, hundredths } from './format';
import { Panel } from './panel';
import type { Job, Snapshot } from './types';

// Returns the state as scq and sctop show it: the activity if the job is idle or deadlocked, otherwise its
// state.
function shownState(job: Job): string {
  return job.activity === 'idle' || job.activity === 'deadlocked' ? job.activity : job.state;
}

function matches(job: Job, filter: string): boolean {
  const text = `${job.job} ${job.user ?? ''} ${job.name ?? ''} ${job.state} ${job.activity}`.toLowerCase();
  return text.includes(filter.toLowerCase());
}

function limit(job: Job): string {
  return job.scheduled_limit_s > 0 ? hours(job.scheduled_limit_s) : '–';
}

interface JobRowProps {
  job: Job;
  marked: boolean;
  onMark: () => void;
}

function JobRow({ job, marked, onMark }: JobRowProps) {
  const colour = jobColour(job.job, themeOf(document.documentElement));
  const row = (
    <tr class={`${job.final ? 'final' : ''} ${marked ? 'marked' : ''}`} data-job={job.job} onClick={onMark}>
      <td>
        <button
          type="button"
          class="chip"
          aria-pressed={marked}
          title="Show this job alone in matrix and bars"
          style={{ background: colour.fill, color: colour.text }}
        >
          {job.job}
        </button>
      </td>
      <td class="wide">{job.user ?? 'private'}</td>
      <td class="name" title={`${job.name ?? ''}\n${job.command ?? ''}`}>
        {job.own ? <a href={linkTo(`jobs/${job.job}`)}>{job.name}</a> : (job.name ?? 'private')}
      </td>
      <td class="number wide">{job.nodes} × {job.ppn}</td>
      <td class="number wide">{job.slot ?? '–'}</td>
      <td>{shownState(job)}</td>
      <td class="number">{hundredths(job.share)}</td>
      <td class="number wide">{hours(job.scheduled_s)}</td>
      <td class="number wide">{hours(job.elapsed_s)}</td>
      <td class="number">{limit(job)}</td>
      <td class="number wide">{job.filled_s > 0 ? hours(job.filled_s) : '–'}</td>
      <td class="reason" title={job.reasons.join('\n')}>{job.reasons[0] ?? ''}</td>
    </tr>
  );
  return marked && job.waits.length > 0 ? <>{row}<WaitsRow job={job} /></> : row;
}

// Shows for each rank of an idle or deadlocked job what it waits for.
function WaitsRow({ job }: { job: Job }) {
  return (
    <tr class="waits" data-waits={job.job}>
      <td colSpan={columns.length}>
        <ul>{job.waits.map((wait) => <li key={wait}>{wait}</li>)}</ul>
      </td>
    </tr>
  );
}

// Head, unit, and the classes of the column; a wide one is left out on a phone until it is asked for.
const columns: [name: string, unit: string, classes: string][] = [
  ['job', '', ''],
  ['user', '', 'wide'],
  ['name', '', ''],
  ['nodes × ppn', '', 'number wide'],
  ['slot', '', 'number wide'],
  ['state', '', ''],
  ['share', '%', 'number'],
  ['scheduled', 'h:mm:ss', 'number wide'],
  ['elapsed', 'h:mm:ss', 'number wide'],
  ['limit', 'h:mm:ss', 'number'],
  ['filled', 'h:mm:ss', 'number wide'],
  ['reason', '', 'reason'],
];

interface JobsPanelProps {
  snapshot: Snapshot;
  marked: number | null;
  onMark: (job: number | null) => void;
}

export function JobsPanel({ snapshot, marked, onMark }: JobsPanelProps) {
  const filter = useAddress().query.get('filter') ?? '';
  const [isWide, setWide] = useState(false);
  const jobs = snapshot.jobs.filter((job) => matches(job, filter));
  const tools = (
    <span class="tools">
      <button type="button" class="narrow-only" aria-pressed={isWide} onClick={() => setWide(!isWide)}>All columns</button>
      <label class="filter">
        Filter{' '}
        <input type="search" value={filter} onInput={(event) => setAddress('filter', event.currentTarget.value)} />
      </label>
    </span>
  );
  return (
    <Panel id="jobs" title={`Jobs (${snapshot.cluster.jobs_active} active)`} tools={tools}>
      <table id="jobs-table" class={isWide ? 'list all-columns' : 'list'}>
        <thead>
          <tr>
            {columns.map(([name, unit, classes]) => (
              <th key={name} scope="col" class={classes}>
                {name}{unit && <small> {unit}</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <JobRow
              key={job.job}
              job={job}
              marked={job.job === marked}
              onMark={() => onMark(job.job === marked ? null : job.job)}
            />
          ))}
        </tbody>
      </table>
      {jobs.length === 0 && <p class="hint">No job{filter ? ' matches' : ''}.</p>}
    </Panel>
  );
}
