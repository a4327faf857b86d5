// Builds a module of the page as the page is built, and loads it.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const modules = path.resolve(process.env.SCORE_NODE_MODULES ?? here('../node_modules'));
export const skip = existsSync(`${modules}/esbuild`) ? undefined : 'no esbuild';

export async function load(name) {
  const { build } = createRequire(`${modules}/`)('esbuild');
  const made = await build({ entryPoints: [here(`../src/${name}`)], bundle: true, format: 'esm', write: false });
  return import(`data:text/javascript,${encodeURIComponent(made.outputFiles[0].text)}`);
}
