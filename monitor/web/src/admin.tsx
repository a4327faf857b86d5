// The drawer is for logged-in users: it shows the effect of a new quantum before it is set, and it can drain
// and resume nodes, and suspend and cancel jobs. Each action asks for confirmation; the head checks the
// rights.

import { useState } from 'preact/hooks';
import { act, type ActionResult } from './feed';
import { clockTime, percent } from './format';
import type { Session, Snapshot } from './types';

interface DrawerProps {
  session: Session;
  snapshot: Snapshot;
}

// Returns "50ms", "0.1s" or a bare number of milliseconds in seconds.
export function parseQuantum(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(us|ms|s)?\s*$/.exec(text);
  if (!match) return null;
  const unit = { us: 1e-6, ms: 1e-3, s: 1 }[match[2] ?? 'ms'] ?? 1e-3;
  return Number(match[1]) * unit;
}

function preview(snapshot: Snapshot, quantum: number): string {
  const { cluster, switches } = snapshot;
  const before = 1 / cluster.quantum_s;
  const after = 1 / quantum;
  const overhead = switches.mean_overhead_s ?? 0;
  return `switches/s ${before.toFixed(1)} → ${after.toFixed(1)}, est. overhead ${percent(
    overhead / cluster.quantum_s, 3)} → ${percent(overhead / quantum, 3)}`;
}

function useActions(session: Session) {
  const [result, setResult] = useState<ActionResult | null>(null);
  const run = async (question: string, path: string, body: object) => {
    if (window.confirm(question)) setResult(await act(session, path, body));
  };
  return { result, run };
}

type Run = ReturnType<typeof useActions>['run'];

function Quantum({ snapshot, run }: { snapshot: Snapshot; run: Run }) {
  const [text, setText] = useState('');
  const seconds = parseQuantum(text);
  const submit = (event: Event) => {
    event.preventDefault();
    if (seconds) void run(`Set the quantum to ${text}?`, 'set', { name: 'quantum', value: /[a-z]/.test(text) ? text : `${text}ms` });
  };
  return (
    <form onSubmit={submit}>
      <label>
        Quantum{' '}
        <input
          name="quantum"
          value={text}
          placeholder={`${(snapshot.cluster.quantum_s * 1000).toFixed(0)}ms`}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={!seconds}>Set</button>
      <output>{seconds ? preview(snapshot, seconds) : 'e.g. 50ms'}</output>
    </form>
  );
}

function Slots({ snapshot, run }: { snapshot: Snapshot; run: Run }) {
  const [text, setText] = useState('');
  const used = snapshot.matrix.rows.length;
  const count = /^[1-9]\d{0,2}$/.test(text) ? Number(text) : null;
  const submit = (event: Event) => {
    event.preventDefault();
    if (count) void run(`Allow ${count} slots?`, 'set', { name: 'slots', value: text });
  };
  return (
    <form onSubmit={submit}>
      <label>
        Slots{' '}
        <input
          name="slots"
          value={text}
          inputMode="numeric"
          placeholder={String(snapshot.cluster.slots)}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={!count}>Set</button>
      <output>
        {count ? `each job gets 1/${count} of the time at least; ${used} in use now` : `${used} in use`}
      </output>
    </form>
  );
}

// Shows all other settings; the head checks the value.
function Settings({ snapshot, run }: { snapshot: Snapshot; run: Run }) {
  const others = snapshot.cluster.settings.filter(({ name }) => name !== 'quantum' && name !== 'slots');
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const chosen = others.find((one) => one.name === name);
  const submit = (event: Event) => {
    event.preventDefault();
    if (chosen && value) void run(`Set ${name} to ${value}?`, 'set', { name, value });
  };
  return (
    <form onSubmit={submit}>
      <label>
        Setting{' '}
        <select name="setting" value={name} onChange={(event) => setName(event.currentTarget.value)}>
          <option value="">–</option>
          {others.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
        </select>
      </label>
      <label>
        Value{' '}
        <input name="value" value={value} placeholder={chosen?.value ?? ''} onInput={(event) => setValue(event.currentTarget.value)} />
      </label>
      <button type="submit" disabled={!chosen || !value}>Set</button>
      <output>{chosen ? `${chosen.range}. ${chosen.purpose}` : ''}</output>
    </form>
  );
}

// Returns the names in "node[00-03,07],other"; the head rejects a malformed list.
function expand(list: string): string[] {
  const parts = list.match(/[^,[\]]+(\[[^\]]*\])?[^,[\]]*/g) ?? [];
  return parts.flatMap((part) => {
    const [, before, inside, after] = /^([^[]*)\[([^\]]*)\](.*)$/.exec(part) ?? [];
    if (inside === undefined) return [part.trim()];
    return inside.split(',').flatMap((range) => {
      const [first = '', last = first] = range.split('-');
      const count = Math.min(Math.max(Number(last) - Number(first) + 1, 0), mostNodes) || 0;
      const name = (index: number) => `${before}${String(Number(first) + index).padStart(first.length, '0')}${after}`;
      return Array.from({ length: count }, (_, index) => name(index));
    });
  });
}

const mostNodes = 16_384;

function previewDrain({ nodes, matrix }: Snapshot, list: string): string {
  const names = new Set(expand(list));
  const chosen = nodes.flatMap(({ name }, index) => (names.has(name) ? [index] : []));
  const jobs = new Set(matrix.rows.flatMap((row) => chosen.flatMap((index) => row.cells[index] ?? [])));
  return `${chosen.length} of ${nodes.length} nodes take no new jobs; ${jobs.size} jobs there go on`;
}

function Nodes({ run, snapshot }: { run: Run; snapshot: Snapshot }) {
  const [nodes, setNodes] = useState('');
  const [reason, setReason] = useState('');
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      <label>
        Nodes <input name="nodes" value={nodes} placeholder="node[00-03]" onInput={(event) => setNodes(event.currentTarget.value)} />
      </label>
      <label>
        Reason <input name="reason" value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
      <button type="button" disabled={!nodes} onClick={() => run(`Drain ${nodes}?`, 'drain', { nodes, reason })}>
        Drain
      </button>
      <button type="button" disabled={!nodes} onClick={() => run(`Resume ${nodes}?`, 'resume', { nodes })}>
        Resume
      </button>
      <output>{nodes ? previewDrain(snapshot, nodes) : ''}</output>
    </form>
  );
}

function previewJob({ jobs }: Snapshot, number: number): string {
  const job = jobs.find((one) => one.job === number);
  if (!job) return '';
  const share = job.share > 0 ? `, ${percent(job.share, 0)} of the time there` : '';
  return `${job.tasks} tasks on ${job.nodes} nodes${share}: suspended it keeps its memory, cancelled its tasks end`;
}

function Jobs({ run, snapshot }: { run: Run; snapshot: Snapshot }) {
  const [job, setJob] = useState('');
  const number = Number(job);
  const action = (name: string, path: string) => (
    <button type="button" disabled={!number} onClick={() => run(`${name} job ${job}?`, path, { job: number })}>
      {name}
    </button>
  );
  return (
    <form onSubmit={(event) => event.preventDefault()}>
      <label>
        Job{' '}
        <select name="job" value={job} onChange={(event) => setJob(event.currentTarget.value)}>
          <option value="">–</option>
          {snapshot.jobs.filter((one) => !one.final).map((one) => (
            <option key={one.job} value={one.job}>{one.job} {one.name ?? ''}</option>
          ))}
        </select>
      </label>
      {action('Suspend', 'suspend')}
      {action('Continue', 'continue')}
      {action('Cancel', 'cancel')}
      <output>{number ? previewJob(snapshot, number) : ''}</output>
    </form>
  );
}

// Shows the last action and its user, as in the events and in the head's journal.
function Audit({ snapshot }: { snapshot: Snapshot }) {
  const last = snapshot.events.filter(({ kind }) => kind === 'admin').at(-1);
  return <p id="audit">{last ? `Last: ${clockTime(last.time_unix_s)} ${last.text}` : ''}</p>;
}

export function Drawer({ session, snapshot }: DrawerProps) {
  const { result, run } = useActions(session);
  if (session.role === 'viewer') {
    return (
      <aside id="admin" aria-label="Administration">
        <p>Read only. <code>scadm web-login</code> prints an address that lets you in.</p>
      </aside>
    );
  }
  return (
    <aside id="admin" aria-label="Administration">
      {session.role === 'operator' && <Quantum snapshot={snapshot} run={run} />}
      {session.role === 'operator' && <Slots snapshot={snapshot} run={run} />}
      {session.role === 'operator' && <Settings snapshot={snapshot} run={run} />}
      {session.role === 'operator' && <Nodes run={run} snapshot={snapshot} />}
      <Jobs run={run} snapshot={snapshot} />
      <Audit snapshot={snapshot} />
      <p role="status" class={result && !result.ok ? 'failed' : ''}>{result?.text ?? ''}</p>
    </aside>
  );
}
