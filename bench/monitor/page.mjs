// Measures the cost of the page in headless Chromium.
//
// usage: SCORE_BIN=build/release/bin node bench/monitor/page.mjs [--json] [--nodes 64] [--loads 5] [--seconds 10]
//            [--viewers 100] [--minutes 0] [--against FILE.html]
//
// first_paint_ms is the time from the request to the first frame with the gang matrix in it, with --loads fresh browsers and a
// virtual cluster with two jobs. With --against it is measured in turns with a second page next to index.html (whose scripts and
// styles have different names). --seconds 0 measures only this. dropped_frames counts the frames that a display of 60 Hz would
// have shown and the page did not, by intervals of requestAnimationFrame, for 64 x 16 simulated processes at 10 Hz (the page
// shows that they are simulated); it is also measured over time and with the traffic map. encoded_per_s is measured with
// --viewers WebSockets at 10 Hz, from the head's counters. heap is that of the simulated page after a collection, over --minutes.
import os from 'node:os';
import { parseArgs } from 'node:util';
import { browserPath, Cluster, missing, require, until } from '../support/cluster.mjs';

const { values } = parseArgs({ options: {
  json: { type: 'boolean', default: false }, nodes: { type: 'string', default: '64' },
  loads: { type: 'string', default: '5' }, seconds: { type: 'string', default: '10' },
  viewers: { type: 'string', default: '100' }, minutes: { type: 'string', default: '0' },
  against: { type: 'string' },
} });
const words = new Set(['json', 'against']);
const option = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, words.has(name) ? value : Number(value)]));
const { chromium } = require('playwright-core');
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const frameMs = 1000 / 60;

const launch = () => chromium.launch({
  executablePath: browserPath,
  args: ['--no-sandbox', '--disable-gpu', '--js-flags=--expose-gc', '--enable-precise-memory-info'],
});

function spread(all) {
  const sorted = [...all].sort((a, b) => a - b);
  const round = (value) => Math.round(value * 10) / 10;
  return { median: round(sorted[Math.floor(sorted.length / 2)]), least: round(sorted[0]), most: round(sorted.at(-1)), of: sorted.length };
}

// Returns when the first frame with the matrix has been painted.
async function firstPaint(url) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.addInitScript(() => {
    const look = () => {
      if (!document.querySelector('#matrix canvas')) return requestAnimationFrame(look);
      return requestAnimationFrame(() => { window.painted = performance.now(); });
    };
    requestAnimationFrame(look);
  });
  await page.goto(url);
  await page.waitForFunction(() => window.painted > 0);
  const painted = await page.evaluate(() => window.painted);
  await browser.close();
  return painted;
}

// Measures the intervals between frames, and tasks of more than 50 ms, of a page that shows `address`.
async function frames(address, seconds, button) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(address);
  await page.waitForSelector('#matrix canvas');
  await pause(1);
  if (button) await page.getByRole('button', { name: button }).click();
  if (button) await pause(1);
  const seen = await page.evaluate(async (length) => {
    const long = [];
    new PerformanceObserver((list) => long.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' });
    const intervals = [];
    const begin = await new Promise(requestAnimationFrame);
    for (let last = begin; last - begin < length * 1000;) {
      const now = await new Promise(requestAnimationFrame);
      intervals.push(now - last);
      last = now;
    }
    return { intervals, long };
  }, seconds);
  await browser.close();
  const dropped = seen.intervals.reduce((sum, interval) => sum + Math.max(0, Math.round(interval / frameMs) - 1), 0);
  return {
    simulated: true, seconds, frames: seen.intervals.length, dropped_frames: dropped,
    dropped_share: Math.round((1e4 * dropped) / (dropped + seen.intervals.length)) / 1e4,
    longest_interval_ms: Math.round(Math.max(...seen.intervals)), long_tasks: seen.long.length,
    longest_task_ms: Math.round(Math.max(0, ...seen.long)),
  };
}

async function metric(url, name) {
  const text = await (await fetch(new URL('metrics', url))).text();
  return Number(text.split('\n').find((line) => line.startsWith(`${name} `))?.split(' ')[1]);
}

async function encodings(url, viewers, seconds) {
  const browser = await launch();
  const page = await browser.newPage();
  await page.goto(new URL('metrics', url).href); // a page of the same origin that watches nothing
  await page.evaluate(({ count, address }) => {
    window.sockets = Array.from({ length: count }, () => new WebSocket(address));
  }, { count: viewers, address: `${url.replace('http', 'ws')}api/v1/ws?rate=10` });
  await until(async () => (await metric(url, 'scored_viewers')) === viewers, 'all watch');
  const read = () => Promise.all(['encoded', 'delivered', 'skipped'].map((what) => metric(url, `scored_documents_${what}_total`)));
  const before = await read();
  const begin = performance.now();
  await pause(seconds);
  const after = await read();
  const passed = (performance.now() - begin) / 1000;
  await browser.close();
  const [encoded, delivered, skipped] = after.map((value, i) => Math.round((10 * (value - before[i])) / passed) / 10);
  return { viewers, encoded_per_s: encoded, delivered_per_s: delivered, skipped_per_s: skipped };
}

async function heap(address, minutes) {
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(address);
  await page.waitForSelector('#matrix canvas');
  const bytes = [];
  for (let i = 0; i <= minutes * 4; ++i) {
    if (i > 0) await pause(15);
    bytes.push(await page.evaluate(() => { window.gc(); return performance.memory.usedJSHeapSize; }));
  }
  const nodes = await page.evaluate(() => document.querySelectorAll('*').length);
  await browser.close();
  return { simulated: true, minutes, elements: nodes, megabytes: bytes.map((one) => Math.round(one / 1e5) / 10) };
}

// Measures the pages in turns.
async function firstPaints(pages, loads) {
  const paints = pages.map(() => []);
  for (let i = 0; i < loads; ++i) {
    for (const [which, page] of pages.entries()) paints[which].push(await firstPaint(page));
  }
  return paints.map(spread);
}

async function simulatedPage(address) {
  const found = {
    frames_64x16: await frames(address, option.seconds),
    frames_64x16_time: await frames(address, option.seconds, 'Nodes × time'),
    frames_64x16_map: await frames(address, option.seconds, 'Who to whom'),
  };
  if (option.minutes > 0) found.heap_64x16 = await heap(address, option.minutes);
  return found;
}

const why = missing();
if (why) throw new Error(why);
const cluster = await Cluster.start(option.nodes);
const result = { schema: 'scored.bench.page/1', nodes: option.nodes, load_average: os.loadavg()[0] };
try {
  const url = (await cluster.info()).dashboard_url;
  for (let i = 0; i < 2; ++i) await cluster.submit('-N', option.nodes, 'sh', '-c', 'while :; do sleep 0.05; done');
  const pages = [url, ...(option.against ? [new URL(option.against, url).href] : [])];
  const [ours, other] = await firstPaints(pages, option.loads);
  result.first_paint_ms = ours;
  if (other) result.first_paint_other_ms = other;
  result.load_average_after = os.loadavg()[0];
  if (option.seconds > 0 && option.viewers > 0) result.encodings = await encodings(url, option.viewers, option.seconds);
  await cluster.command('sccancel', '--grace', 0, 1, 2);
  if (option.seconds > 0) Object.assign(result, await simulatedPage(`${url}?simulate=64x16`));
} finally {
  await cluster.stop();
}
if (option.json) {
  console.log(JSON.stringify(result, null, 1));
} else {
  for (const [name, value] of Object.entries(result)) console.log(`${name}: ${JSON.stringify(value)}`);
}
