// Tests the pure part of how the page shows filling, built as the page is. tests/browser tests the drawing
// itself.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './load.mjs';

const row = { node: 0, job: 7, rank: 0, state: 'running', user: 0.4, system: 0.1, pm: 0.2, waited: 0.1, filled: 0.3 };

test('what was used while filling is a lighter part of the bar', async () => {
  const { partsOf, fillingAlpha } = await load('filling.ts');
  const parts = partsOf(row);
  assert.deepEqual(parts.map(({ share }) => share), [0.4, 0.1, 0.3, 0.1, 0.2]);
  assert.deepEqual(parts.filter(({ alpha }) => alpha < 1), [{ share: 0.3, colour: 'user', alpha: fillingAlpha }]);
  assert.ok(fillingAlpha > 0 && fillingAlpha < 1);
});

test('a bar is full in its turn, lighter while it fills, dimmest while it is frozen', async () => {
  const { barAlpha } = await load('filling.ts');
  assert.equal(barAlpha('running'), 1);
  assert.equal(barAlpha('pm'), 1);
  assert.ok(barAlpha('frozen') < barAlpha('fill') && barAlpha('fill') < 1);
});

test('only what fills now is lighter in its cell', async () => {
  const { fillersOf } = await load('filling.ts');
  const fills = [[0, 7, 1, 2], [0, 8, 2, null], [1, 7, 2, null], [9, 7, 2, null]];
  const nodes = fillersOf({ nodes: [{}, {}, {}], slices: { fills } });
  assert.deepEqual(nodes.map((jobs) => [...jobs]), [[8], [7], []]);
});

test('over time fillers lie below the gang in turn', async () => {
  const { fillLane } = await load('filling.ts');
  assert.deepEqual(fillLane({ x: 5, y: 30, w: 10, h: 12 }), { x: 5, y: 38, w: 10, h: 4 });
});

test('a process of a head that knows no filling has none', async () => {
  const { rowsOf } = await load('processes.ts');
  const [read] = rowsOf({ columns: ['node', 'job', 'rank', 'state', 'user'], rows: [[0, 7, 1, 'running', 0.5]] });
  assert.equal(read.filled, 0);
  assert.equal(rowsOf({ columns: ['job', 'filled'], rows: [[7, 0.25]] })[0].filled, 0.25);
});
