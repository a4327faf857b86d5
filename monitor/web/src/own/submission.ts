// The form of a new job as a value, and the three things that it stands for: the document for the API, the
// command line of scbatch, and the script. It is pure.

export interface Form {
  name: string;
  script: string;
  directory: string;
  nodes: string;
  tasks: string;
  cpus_per_task: string;
  memory: string;
  time: string;
  wall_time: string;
  queue: string;
  partition: string;
  array: string;
  after: string;
  output: string;
  hold: boolean;
  environment: string; // lines NAME=value
}

export const emptyForm: Form = {
  name: '', script: '#!/bin/sh\n', directory: '', nodes: '', tasks: '', cpus_per_task: '', memory: '', time: '', wall_time: '',
  queue: '', partition: '', array: '', after: '', output: '', hold: false, environment: 'PATH=/usr/local/bin:/usr/bin:/bin',
};

export interface Template {
  name: string;
  form: Partial<Form>;
}

// The directory and the environment are those that the form has.
export const templates: Template[] = [
  { name: 'One program', form: { name: 'program', script: '#!/bin/sh\n./program\n', tasks: '1', nodes: '', array: '', time: '1h' } },
  { name: 'MPI program', form: { name: 'mpi', script: '#!/bin/sh\nscrun ./program\n', nodes: '2', tasks: '8', array: '', time: '1h' } },
  {
    name: 'Array',
    form: { name: 'array', script: '#!/bin/sh\n./program input.$SCORE_ARRAY_TASK_ID\n', nodes: '', tasks: '1', array: '0-9%4', time: '1h' },
  },
];

const texts = ['memory', 'time', 'wall_time', 'queue', 'partition', 'array', 'after', 'output'] as const;
const counts = ['tasks', 'cpus_per_task'] as const;

const trimmed = (form: Form, name: keyof Form) => String(form[name]).trim();

// A number is sent as such; anything else is left to the head, which names the fault.
const number = (text: string) => (/^\d{1,9}$/.test(text) ? Number(text) : text);

// Returns the submission as docs/reference/api.md describes it.
export function documentOf(form: Form, isRoot: boolean): Record<string, unknown> {
  const out: Record<string, unknown> = { script: form.script, directory: trimmed(form, 'directory') };
  if (trimmed(form, 'name')) out['name'] = trimmed(form, 'name');
  if (trimmed(form, 'nodes')) out['nodes'] = number(trimmed(form, 'nodes'));
  for (const name of counts) if (trimmed(form, name)) out[name] = number(trimmed(form, name));
  for (const name of texts) if (trimmed(form, name)) out[name] = trimmed(form, name);
  const environment = form.environment.split('\n').map((line) => line.trim()).filter(Boolean);
  if (environment.length > 0) out['environment'] = environment;
  if (form.hold) out['hold'] = true;
  if (isRoot) out['allow_root'] = true;
  return out;
}

// Returns the word as a shell reads it.
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// The memory and the time limits have other names in the options than in the documents.
const optionNames: [name: keyof Form, option: string][] = [
  ['name', 'job-name'], ['nodes', 'nodes'], ['tasks', 'ntasks'], ['cpus_per_task', 'cpus-per-task'], ['memory', 'mem'], ['time', 'time'],
  ['wall_time', 'wall-time'], ['queue', 'queue'], ['partition', 'partition'], ['array', 'array'], ['after', 'after'],
  ['output', 'output'], ['directory', 'chdir'],
];

function optionsOf(form: Form, isRoot: boolean): string[] {
  const options = optionNames.filter(([name]) => trimmed(form, name)).map(([name, option]) => `--${option}=${quoted(trimmed(form, name))}`);
  const flags = [...(form.hold ? ['--hold'] : []), ...(isRoot ? ['--allow-root'] : [])];
  return [...options, ...flags];
}

// Returns the command that submits the script from a file.
export function commandLine(form: Form, isRoot: boolean): string {
  return ['scbatch', ...optionsOf(form, isRoot), 'job.sh'].join(' ');
}

// Returns the script with the options in it: "scbatch job.sh" does the same.
export function scriptOf(form: Form, isRoot: boolean): string {
  const lines = form.script.endsWith('\n') ? form.script : `${form.script}\n`;
  const end = lines.indexOf('\n') + 1;
  const first = lines.startsWith('#!') ? lines.slice(0, end) : '#!/bin/sh\n';
  const rest = lines.startsWith('#!') ? lines.slice(end) : lines;
  return `${first}${optionsOf(form, isRoot).map((option) => `#SCORE ${option}\n`).join('')}${rest}`;
}

// Returns the form of a job like this one, as far as its record tells: the environment and the script of
// a job from elsewhere are not known.
export function formLike(job: {
  name: string; command: string; directory: string; nodes_wanted: number; tasks: number; memory_per_node_bytes: number;
  scheduled_limit_s: number; wall_limit_s: number; queue: string; partition?: string | undefined;
}): Partial<Form> {
  const seconds = (limit: number) => (limit > 0 ? `${limit}s` : '');
  return {
    name: job.name, directory: job.directory, script: `#!/bin/sh\n${job.command}\n`, tasks: String(job.tasks),
    nodes: job.nodes_wanted > 0 ? String(job.nodes_wanted) : '', memory: job.memory_per_node_bytes > 0 ? String(job.memory_per_node_bytes) : '',
    time: seconds(job.scheduled_limit_s), wall_time: seconds(job.wall_limit_s),
    queue: job.queue === 'normal' ? '' : job.queue, partition: job.partition ?? '',
  };
}
