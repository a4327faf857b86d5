// The form of a new job. While one types, the head says what the job would do now, as --dry-run does.

import { useEffect, useRef, useState } from 'preact/hooks';
import { linkTo, useAddress } from '../address';
import type { Session, Snapshot } from '../types';
import { ask, change, type Fault, type JobDocument, type Plan } from './api';
import { formOf, lastForm, ownTemplates, rememberForm, removeTemplate, saveTemplate } from './memory';
import { commandLine, documentOf, emptyForm, formLike, scriptOf, templates, type Form, type Template } from './submission';
import { planSentence } from './words';

const pauseOfCheck = 300; // ms after the last key
const fields: [name: keyof Form, label: string, hint: string][] = [
  ['name', 'Name', 'solve'],
  ['directory', 'Directory', '/home/you/run'],
  ['nodes', 'Nodes', '2, or 2-4'],
  ['tasks', 'Tasks', '8'],
  ['cpus_per_task', 'Cores per task', '1'],
  ['memory', 'Memory per node', '2G'],
  ['time', 'Limit of scheduled time', '1h30m'],
  ['wall_time', 'Limit of elapsed time', '2h'],
  ['queue', 'Queue', 'normal'],
  ['partition', 'Partition', ''],
  ['array', 'Array', '0-99%8'],
  ['after', 'After', 'afterok:12'],
  ['output', 'Output file', 'kept by the head'],
];

interface Checked {
  plan: Plan | null;
  fault: Fault | null;
}

// Asks the head about the form, once typing pauses. Only the last answer counts.
function useCheck(form: Form, session: Session): Checked {
  const [checked, setChecked] = useState<Checked>({ plan: null, fault: null });
  const text = JSON.stringify(documentOf(form, session.user === 'root'));
  useEffect(() => {
    const aborter = new AbortController();
    const timer = setTimeout(() => {
      const body = JSON.parse(text) as object;
      void change<Plan>(session, { method: 'POST', path: 'jobs?dry_run=1', body, signal: aborter.signal }).then((answer) => {
        if (aborter.signal.aborted) return;
        setChecked(answer.ok ? { plan: answer.value, fault: null } : { plan: null, fault: answer.fault });
      });
    }, pauseOfCheck);
    return () => {
      clearTimeout(timer);
      aborter.abort();
    };
  }, [text]);
  return checked;
}

function verdict({ plan, fault }: Checked): string {
  if (plan) return planSentence(plan);
  return fault ? fault.message : 'Checking …';
}

interface TemplatesProps {
  form: Form;
  onChoose: (part: Partial<Form>) => void;
}

function Templates({ form, onChoose }: TemplatesProps) {
  const [own, setOwn] = useState<Template[]>(ownTemplates);
  const [chosen, setChosen] = useState('');
  const all = [...own, ...templates];
  const choose = (name: string) => {
    setChosen(name);
    const template = all.find((one) => one.name === name);
    if (template) onChoose(template.form);
  };
  const save = () => {
    const name = window.prompt('Name of the template', form.name)?.trim();
    if (!name) return;
    saveTemplate({ name, form });
    setOwn(ownTemplates());
    setChosen(name);
  };
  const remove = () => {
    removeTemplate(chosen);
    setOwn(ownTemplates());
    setChosen('');
  };
  return (
    <span class="tools">
      <label>
        Template{' '}
        <select name="template" value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">–</option>
          {all.map(({ name }) => <option key={name} value={name}>{name}</option>)}
        </select>
      </label>
      <button type="button" onClick={save}>Save as template</button>
      {own.some(({ name }) => name === chosen) && <button type="button" onClick={remove}>Remove template</button>}
    </span>
  );
}

const keyOf = (snapshot: Snapshot | null, session: Session, job: number) => `${snapshot?.cluster.name} ${session.user} ${job}`;

// Returns the form to begin with: like a job, or with the directory of the last submission.
function useFirstForm(session: Session, snapshot: Snapshot | null, take: (form: Form) => void): void {
  const { query } = useAddress();
  const like = Number(query.get('like'));
  useEffect(() => {
    const last = lastForm();
    if (!like) return last ? take({ ...emptyForm, directory: last.directory, environment: last.environment }) : undefined;
    const kept = formOf(keyOf(snapshot, session, like));
    if (kept) return take(kept);
    return void ask<JobDocument>(`jobs/${like}`).then((answer) => {
      const isOwn = answer.ok && (answer.value.job.user === session.user || session.role === 'operator');
      if (answer.ok && isOwn) take({ ...emptyForm, ...formLike(answer.value.job) });
    });
  }, [like]);
}

function useSubmit(form: Form, session: Session, snapshot: Snapshot | null) {
  const [fault, setFault] = useState<Fault | null>(null);
  const [isBusy, setBusy] = useState(false);
  // The same key until the form changes, so that a second click, or a repeated request, makes no second job.
  const key = useRef({ form, text: crypto.getRandomValues(new Uint32Array(4)).join('') });
  if (key.current.form !== form) key.current = { form, text: crypto.getRandomValues(new Uint32Array(4)).join('') };
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    const answer = await change<{ job: number }>(session, {
      method: 'POST', path: 'jobs', body: documentOf(form, session.user === 'root'), headers: { 'Idempotency-Key': key.current.text },
    });
    setBusy(false);
    if (!answer.ok) return setFault(answer.fault);
    rememberForm(keyOf(snapshot, session, answer.value.job), form);
    location.hash = linkTo(`jobs/${answer.value.job}`);
  };
  return { fault, isBusy, submit };
}

export function NewJob({ session, snapshot }: { session: Session; snapshot: Snapshot | null }) {
  const [form, setForm] = useState<Form>(emptyForm);
  const put = (part: Partial<Form>) => setForm((known) => ({ ...known, ...part }));
  useFirstForm(session, snapshot, setForm);
  const checked = useCheck(form, session);
  const script = scriptOf(form, session.user === 'root');
  const { fault, isBusy, submit } = useSubmit(form, session, snapshot);
  const wrong = fault?.field || checked.fault?.field;
  const marks = (name: string) => (wrong === name ? { 'aria-invalid': true, 'aria-describedby': 'verdict' } as const : {});
  return (
    <form id="new-job" onSubmit={(event) => void submit(event)}>
      <section class="panel" aria-labelledby="new-job-title">
        <div class="panel-head">
          <h2 id="new-job-title">New job</h2>
          <Templates form={form} onChoose={put} />
        </div>
        <div class="fields">
          {fields.map(([name, label, hint]) => (
            <label key={name}>
              <span>{label}</span>
              <input name={name} value={String(form[name])} placeholder={hint} {...marks(name)} onInput={(event) => put({ [name]: event.currentTarget.value })} />
            </label>
          ))}
          <label class="check">
            <input type="checkbox" name="hold" checked={form.hold} onChange={() => put({ hold: !form.hold })} /> Hold it until it is released
          </label>
        </div>
        <label class="text">
          <span>Script</span>
          <textarea name="script" rows={8} spellcheck={false} value={form.script} {...marks('script')} onInput={(event) => put({ script: event.currentTarget.value })} />
        </label>
        <label class="text">
          <span>Environment, a line NAME=value each</span>
          <textarea name="environment" rows={3} spellcheck={false} value={form.environment} {...marks('environment')} onInput={(event) => put({ environment: event.currentTarget.value })} />
        </label>
        <p id="verdict" role="status" class={checked.fault || fault ? 'failed' : ''}>{fault?.message ?? verdict(checked)}</p>
        <button type="submit" disabled={isBusy || checked.fault !== null}>Submit</button>
      </section>
      <section class="panel" aria-labelledby="stands-for-title">
        <div class="panel-head"><h2 id="stands-for-title">On the command line</h2></div>
        <pre id="command-line" tabIndex={0}>{commandLine(form, session.user === 'root')}</pre>
        <h3>The script with its options</h3>
        <pre id="script-text" tabIndex={0}>{script}</pre>
        <a href={`data:text/plain;charset=utf-8,${encodeURIComponent(script)}`} download="job.sh">Download job.sh</a>
      </section>
    </form>
  );
}
