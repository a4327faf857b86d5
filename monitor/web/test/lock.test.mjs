// Tests the requirements of the lock file on Node. Debian 12 has version 18; a newer version on a developer's
// machine accepts packages that do not start on a plain Debian.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const read = (name) => JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url)));
const least = (range) => Math.min(...range.split('||').map((part) => Number(/(\d+)/.exec(part)?.[1] ?? 0)));

test('every locked package runs on the Node that package.json promises', () => {
  const promised = least(read('package.json').engines.node);
  assert.equal(promised, 18);
  const newer = Object.entries(read('package-lock.json').packages)
    .filter(([, { engines }]) => engines?.node && least(engines.node) > promised)
    .map(([name, { version, engines }]) => `${name} ${version} wants ${engines.node}`);
  assert.deepEqual(newer, []);
});
