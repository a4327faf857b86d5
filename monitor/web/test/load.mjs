// Bundles a module of the page as the page is bundled, and loads it.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const esbuild = process.env.SCORE_ESBUILD ?? 'esbuild';

export function load(name) {
  const made = execFileSync(esbuild, [here(`../src/${name}`), '--bundle', '--format=esm'],
    { encoding: 'utf8', env: { ...process.env, NODE_PATH: here('../vendor') } });
  return import(`data:text/javascript,${encodeURIComponent(made)}`);
}
