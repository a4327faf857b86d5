// Tests the pure parts of the views of one's own jobs, and the places in the matrix.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './load.mjs';

const job = {
  job: 7, user: 'alice', name: 'solve', command: './solve', directory: '/tmp', state: 'running', final: false, activity: 'busy', restarts: 0,
  reasons: [], waits: [], tasks: 4, nodes: ['node00', 'node01'], nodes_wanted: 2, share: 0.5, slices: 9, queue: 'normal', scheduled_s: 50,
  elapsed_s: 100, scheduled_limit_s: 200, wall_limit_s: 0, cores: 4, memory_per_node_bytes: 100, submitted_unix_s: 1, started_unix_s: 2,
  ended_unix_s: 0, exit_code: 0, signal: 0,
};

test('a sentence says the state and why', async () => {
  const { sentence } = await load('own/words.ts');
  assert.match(sentence(job), /^Running on node00, node01 since .*, with 50 % of the time there\.$/);
  assert.match(sentence({ ...job, activity: 'idle' }), /It is idle\.$/);
  assert.equal(sentence({ ...job, state: 'pending', reasons: ['not enough nodes'] }), 'Waiting: not enough nodes.');
  assert.equal(sentence({ ...job, state: 'failed', final: true, ended_unix_s: 62, exit_code: 3, reasons: ['rank 1 failed'] }),
    'Failed after 0:01:00 with exit code 3: rank 1 failed.');
  assert.equal(sentence({ ...job, state: 'cancelled', final: true, started_unix_s: 0, reasons: ['cancelled by alice'] }),
    'Cancelled before it started: cancelled by alice.');
});

test('the buttons follow the state', async () => {
  const { actionsOf } = await load('own/words.ts');
  assert.deepEqual(actionsOf({ ...job, final: true }), ['again']);
  assert.equal(actionsOf({ ...job, state: 'pending', reasons: ['held until it is released'] })[0], 'release');
  assert.equal(actionsOf({ ...job, state: 'pending' })[0], 'hold');
  assert.equal(actionsOf({ ...job, state: 'suspended' })[0], 'resume');
  assert.ok(actionsOf(job).includes('requeue'));
});

test('efficiency compares use with request', async () => {
  const { efficiencyOf } = await load('own/words.ts');
  assert.deepEqual(efficiencyOf(job), { processors: null, memory: null, time: 0.25 });
  const used = { ...job, usage: { cpu_user_s: 90, cpu_system_s: 10, memory_peak_bytes: 50 } };
  assert.deepEqual(efficiencyOf(used), { processors: 0.5, memory: 0.5, time: 0.25 });
});

test('filters select by state and by words', async () => {
  const { isShown } = await load('own/words.ts');
  assert.ok(isShown(job, '', '') && isShown(job, 'active', 'SOLV') && isShown(job, 'running', '7'));
  assert.ok(!isShown(job, 'ended', '') && !isShown(job, 'pending', '') && !isShown(job, '', 'other'));
});

test('a form stands for a document, a command line and a script', async () => {
  const { commandLine, documentOf, emptyForm, scriptOf } = await load('own/submission.ts');
  const form = { ...emptyForm, name: "it's", directory: '/tmp', nodes: '2', tasks: '8', time: '1h', script: '#!/bin/sh\nscrun ./a\n', hold: true };
  assert.deepEqual(documentOf(form, false), {
    script: '#!/bin/sh\nscrun ./a\n', directory: '/tmp', name: "it's", nodes: 2, tasks: 8, time: '1h',
    environment: ['PATH=/usr/local/bin:/usr/bin:/bin'], hold: true,
  });
  assert.equal(documentOf({ ...form, nodes: '2-4' }, true).nodes, '2-4');
  assert.equal(documentOf(form, true).allow_root, true);
  assert.equal(commandLine(form, false), String.raw`scbatch --job-name='it'\''s' --nodes=2 --ntasks=8 --time=1h --chdir=/tmp --hold job.sh`);
  assert.equal(scriptOf({ ...form, name: 'a' }, false),
    '#!/bin/sh\n#SCORE --job-name=a\n#SCORE --nodes=2\n#SCORE --ntasks=8\n#SCORE --time=1h\n#SCORE --chdir=/tmp\n#SCORE --hold\nscrun ./a\n');
  assert.ok(scriptOf({ ...emptyForm, script: 'echo a' }, false).startsWith('#!/bin/sh\n'));
});

test('output is searched by lines', async () => {
  const { searchLines } = await load('own/words.ts');
  assert.deepEqual(searchLines('one\nTwo\nthree\n', 'T'), { text: 'Two\nthree', count: 2 });
  assert.deepEqual(searchLines('one\n', ''), { text: 'one\n', count: null });
});

test('labels of nodes never touch, and every node has one where there is room', async () => {
  const { columnX, labelled } = await load('places.ts');
  const names = (count) => Array.from({ length: count }, (_, node) => `node${String(node).padStart(2, '0')}`);
  const widthOf = () => 38;
  assert.deepEqual(labelled(names(4), 900, widthOf), [0, 1, 2, 3]);
  assert.deepEqual(labelled(names(8), 900, widthOf).length, 8);
  for (const count of [1, 2, 4, 8, 16, 64, 256, 4096]) {
    for (const width of [280, 340, 600, 1000, 2500]) {
      const shown = labelled(names(count), width, widthOf);
      assert.equal(shown[0], 0);
      shown.slice(1).forEach((node, index) => {
        assert.ok(columnX(node, width, count) - columnX(shown[index], width, count) >= 38, `${count} nodes, ${width} px`);
      });
    }
  }
});

test('a range is read from the address, zoomed and moved', async () => {
  const { moved, readPosition } = await load('range.ts');
  const read = (text) => readPosition(new URLSearchParams(text), 1_000_000);
  assert.deepEqual([read('').from, read('').to, read('').isZoomed], [1_000_000 - 7200, 1_000_000, false]);
  assert.equal(read('span=week').span.step, 600);
  assert.deepEqual([read('from=990000&to=995000').from, read('from=990000&to=995000').isZoomed], [990_000, true]);
  for (const wrong of ['from=5&to=4', 'from=x&to=y', 'from=1&to=999999', 'span=never']) assert.equal(read(wrong).isZoomed, false, wrong);
  assert.deepEqual(moved({ from: 0, to: 100 }, 0.5, 0), { from: 25, to: 75 });
  assert.deepEqual(moved({ from: 0, to: 100 }, 1, -0.5), { from: -50, to: 50 });
});

test('a pause of the head is a gap in the curves', async () => {
  const { columnsOf } = await load('range.ts');
  const history = { columns: ['unix_s', 'user', 'jobs'], rows: [[10, 0.5, 1], [20, null, 2], [60, 0.25, 3]] };
  assert.deepEqual(columnsOf(history, 10, ['jobs', 'user']), [[10, 20, 30, 60], [1, 2, null, 3], [0.5, null, null, 0.25]]);
});

test('jobs without slices are named', async () => {
  const { absentText } = await load('places.ts');
  const jobs = [{ job: 1, activity: 'busy' }, { job: 2, activity: 'idle' }, { job: 3, activity: 'deadlocked' }, { job: 4, activity: 'idle', final: true }];
  const matrix = { rows: [{ cells: [[1], []] }] };
  assert.equal(absentText({ jobs, matrix }), 'Without slices, idle: job 2; deadlocked: job 3.');
  assert.equal(absentText({ jobs: jobs.slice(0, 1), matrix }), 'Every job that runs has slices.');
});
