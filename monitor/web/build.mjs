// Builds the page: node build.mjs [DIRECTORY]. Files have fixed names; the server's ETags show changes.
import { build } from 'esbuild';
import { copyFile, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const out = process.argv[2] ?? here('dist');

await mkdir(out, { recursive: true });
await build({
  entryPoints: { page: here('src/main.tsx') },
  outdir: out,
  bundle: true,
  minify: true,
  format: 'esm',
  splitting: true, // page.js for the first paint, rest.js afterwards, shared code in chunk.js
  chunkNames: '[name]',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'linked',
});
for (const file of ['index.html', 'icon.svg', 'light.css']) await copyFile(here(`src/${file}`), `${out}/${file}`);
