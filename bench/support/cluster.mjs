// Provides a virtual cluster and a browser for the tests of the page; both are removed at the end.
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
export const bin = path.resolve(process.env.SCORE_BIN ?? 'build/release/bin');
export const examples = path.resolve(process.env.SCORE_EXAMPLES ?? `${bin}/../examples`);
const pictures = path.resolve(process.env.SCORE_PICTURES ?? `${bin}/../pictures`);
const modules = path.resolve(process.env.SCORE_NODE_MODULES ?? `${bin}/../monitor/web/npm/node_modules`);
export const require = createRequire(`${modules}/`);
export const browserPath = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find(existsSync);

// The reason why the tests cannot run here, or undefined.
export function missing() {
  if (!existsSync(`${bin}/../share/scored/web/index.html`)) return 'the page was not built';
  if (!browserPath) return 'no Chromium';
  if (!existsSync(`${modules}/playwright-core`)) return 'no playwright-core';
  return undefined;
}

export class Cluster {
  static async start(nodes, ...options) {
    const cluster = new Cluster();
    cluster.process = spawn(`${bin}/score`,
      ['virtual', '--nodes', String(nodes), '--print-json', ...options, '--', 'cat'],
      { stdio: ['pipe', 'pipe', 'inherit'] });
    let text = '';
    for await (const chunk of cluster.process.stdout) {
      text += chunk;
      if (text.endsWith('\n}\n')) break;
    }
    cluster.about = JSON.parse(text);
    cluster.env = { ...process.env, SCORED_SERVER: cluster.about.socket, PATH: `${bin}:${process.env.PATH}` };
    return cluster;
  }

  async command(name, ...words) {
    const { stdout } = await run(`${bin}/${name}`, words.map(String), { env: this.env });
    return stdout;
  }

  async info() {
    return JSON.parse(await this.command('score', 'info', '--json'));
  }

  submit(...words) {
    return this.command('scrun', '--detach', '--allow-root', ...words).then(Number);
  }

  cancel(job) {
    return this.command('sccancel', '--grace', 0, job);
  }

  kill(head) {
    const daemons = JSON.parse(readFileSync(`${this.about.directory}/cluster.json`));
    process.kill(daemons[head].pid, 'SIGKILL');
  }

  restart(head) {
    return this.command('score', 'virtual', '--restart', head, this.about.directory);
  }

  restartHead() {
    this.kill('head');
    return this.restart('head');
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.stdin.end();
    await ended;
  }
}

// The limit of every wait. It only ends a test that has failed, even on a slow machine.
const limitMs = 600_000;

export async function startBrowser() {
  const { chromium } = require('playwright-core');
  const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'], timeout: limitMs });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    const context = await newContext(options);
    context.setDefaultTimeout(limitMs);
    return context;
  };
  return browser;
}

export function picture(name) {
  mkdirSync(pictures, { recursive: true });
  return `${pictures}/${name}.png`;
}

// Waits until `claim` holds; returns the milliseconds that it took.
export async function until(claim, what, limit = limitMs) {
  const begin = performance.now();
  for (;;) {
    const held = await claim();
    if (held) return performance.now() - begin;
    if (performance.now() - begin > limit) throw new Error(`not within ${limit} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
