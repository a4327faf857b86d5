// The user's jobs, the newest first. The filters are in the address.

import { useEffect, useRef, useState } from 'preact/hooks';
import { linkTo, setState, useAddress } from '../address';
import { hours } from '../format';
import { Panel } from '../panel';
import { ask, listJobs, type Fault, type JobPage, type OwnJob } from './api';
import { dateTime, isShown, jobId } from './words';

const period = 2000; // ms
const firstRows = 200;

// Asks for the active jobs each period, and for all jobs when one of them has come or gone.
function useJobs(): { jobs: OwnJob[] | null; fault: Fault | null } {
  const [jobs, setJobs] = useState<OwnJob[] | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  const active = useRef('unknown');
  useEffect(() => {
    let isOver = false;
    const renew = async () => {
      const answer = await ask<JobPage>('jobs?limit=1000&ended=0');
      if (isOver) return;
      setFault(answer.ok ? null : answer.fault);
      if (!answer.ok) return;
      const numbers = answer.value.jobs.map(({ job }) => job).join();
      if (numbers !== active.current) {
        const all = await listJobs(true);
        if (!all.ok || isOver) return;
        active.current = numbers;
        return setJobs(all.value);
      }
      const newer = new Map(answer.value.jobs.map((job) => [job.job, job]));
      setJobs((known) => known?.map((job) => newer.get(job.job) ?? job) ?? null);
    };
    const step = () => void (document.hidden ? Promise.resolve() : renew()).then(() => {
      if (!isOver) timer = setTimeout(step, period);
    });
    let timer = setTimeout(step, 0);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);
  return { jobs, fault };
}

const states = ['active', 'ended', 'pending', 'running', 'suspended', 'completed', 'failed', 'cancelled', 'timed-out'];

function Filters({ state, text }: { state: string; text: string }) {
  return (
    <span class="tools">
      <label>
        State{' '}
        <select name="state" value={state} onChange={(event) => setState('state', event.currentTarget.value)}>
          <option value="">all</option>
          {states.map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
      </label>
      <label class="filter">
        Filter <input type="search" value={text} onInput={(event) => setState('text', event.currentTarget.value)} />
      </label>
    </span>
  );
}

function limit(job: OwnJob): string {
  const shortest = [job.scheduled_limit_s, job.wall_limit_s].filter((one) => one > 0);
  return shortest.length > 0 ? hours(Math.min(...shortest)) : '–';
}

function Row({ job }: { job: OwnJob }) {
  return (
    <tr class={job.final ? 'final' : ''} data-job={job.job}>
      <td><a href={linkTo(`jobs/${job.job}`)}>{jobId(job)}</a></td>
      <td class="name" title={job.name}>{job.name}</td>
      <td>{job.activity === 'idle' || job.activity === 'deadlocked' ? job.activity : job.state}</td>
      <td class="reason" title={job.reasons.join('\n')}>{job.reasons[0] ?? ''}</td>
      <td class="number wide">{job.tasks}</td>
      <td class="number">{hours(job.elapsed_s)}</td>
      <td class="number">{limit(job)}</td>
      <td class="number wide">{job.final ? job.exit_code : ''}</td>
      <td class="wide">{dateTime(job.submitted_unix_s)}</td>
    </tr>
  );
}

export function JobList() {
  const { jobs, fault } = useJobs();
  const { query } = useAddress();
  const [isWhole, setWhole] = useState(false);
  const [state, text] = [query.get('state') ?? '', query.get('text') ?? ''];
  const found = jobs?.filter((job) => isShown(job, state, text)) ?? [];
  const shown = isWhole ? found : found.slice(0, firstRows);
  return (
    <Panel id="own-jobs" title="My jobs" tools={<Filters state={state} text={text} />}>
      {fault && <p role="alert" class="failed">{fault.message}</p>}
      <table id="own-jobs-table">
        <thead>
          <tr>
            <th scope="col">job</th>
            <th scope="col">name</th>
            <th scope="col">state</th>
            <th scope="col">reason</th>
            <th scope="col" class="number wide">tasks</th>
            <th scope="col" class="number">elapsed</th>
            <th scope="col" class="number">limit</th>
            <th scope="col" class="number wide">exit</th>
            <th scope="col" class="wide">submitted</th>
          </tr>
        </thead>
        <tbody>{shown.map((job) => <Row key={job.job} job={job} />)}</tbody>
      </table>
      {jobs && found.length === 0 && <p class="hint">{jobs.length > 0 ? 'No job matches.' : 'You have no jobs. “New job” submits one.'}</p>}
      {found.length > shown.length && (
        <button type="button" onClick={() => setWhole(true)}>Show all {found.length}</button>
      )}
    </Panel>
  );
}
