// Checks the types of the page, and that vendor/ has the libraries of the lock file. The compiler of TypeScript and
// the packages to compare with come from npm's registry.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const modules = path.resolve(process.env.SCORE_NODE_MODULES ?? here('node_modules'));
const skip = existsSync(`${modules}/typescript`) ? false : 'the packages of the lock file are not there';
const libraries = ['preact', 'uplot'];

function* filesBelow(folder, below = '') {
  for (const entry of readdirSync(path.join(folder, below), { withFileTypes: true })) {
    const name = path.join(below, entry.name);
    if (entry.isDirectory()) yield* filesBelow(folder, name);
    else yield name;
  }
}

test('the page has no error of types', { skip }, () => {
  const work = mkdtempSync(path.join(tmpdir(), 'scored-types-'));
  try {
    for (const name of ['src', 'tsconfig.json']) cpSync(here(name), `${work}/${name}`, { recursive: true });
    symlinkSync(modules, `${work}/node_modules`);
    execFileSync(process.execPath, [`${modules}/typescript/bin/tsc`, '--noEmit', '-p', work], { encoding: 'utf8' });
  } catch (error) {
    assert.fail(error.stdout || error);
  } finally {
    rmSync(work, { recursive: true });
  }
});

test('the libraries have the versions of the lock file', () => {
  const { packages } = JSON.parse(readFileSync(here('package-lock.json')));
  for (const name of libraries) {
    assert.equal(JSON.parse(readFileSync(here(`vendor/${name}/package.json`))).version, packages[`node_modules/${name}`].version);
  }
});

test('the libraries are files of their packages', { skip }, () => {
  for (const name of libraries) {
    const files = [...filesBelow(here(`vendor/${name}`))];
    assert.ok(files.length > 3);
    for (const file of files) {
      assert.deepEqual(readFileSync(here(`vendor/${name}/${file}`)), readFileSync(`${modules}/${name}/${file}`), file);
    }
  }
});
