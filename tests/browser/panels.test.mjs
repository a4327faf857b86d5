// Curves of switches, the dialogs of a late switch and of an event, and the traffic map.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { Cluster, examples, missing, picture, startBrowser, until } from '../../bench/support/cluster.mjs';
import { seriousFaults } from './checks.mjs';

const nodes = 4;
const skip = missing();
let cluster, browser, url, jobs;

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  await page.goto(url);
  await page.waitForSelector('#switches .u-wrap');
  return page;
}

async function close(page) {
  assert.deepEqual(page.errors, []);
  await page.context().close();
}

const cellsOf = (page, id) => page.locator(`#${id} tbody tr`).evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map(({ textContent }) => textContent)));
const caption = (page, id) => page.locator(`#${id} caption`).textContent();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A node's daemon stands still over some boundaries, so its next switch is late.
async function beLate(node) {
  const { pid } = cluster.about.nodes.find(({ name }) => name === node);
  process.kill(pid, 'SIGSTOP');
  await sleep(130);
  process.kill(pid, 'SIGCONT');
}

const lateButton = (page) => page.getByRole('button', { name: /^last late switch/ });

// The page before a late switch of node02, and its dialog.
async function openLate(options) {
  const page = await open(options);
  await until(async () => {
    await beLate('node02');
    await sleep(1500); // samples travel together
    return (await lateButton(page).count()) > 0 && /node02/.test(await lateButton(page).innerText());
  }, 'a late switch');
  // Others may be late at any time: the one whose dialog opens counts.
  await lateButton(page).focus();
  await page.keyboard.press('Enter');
  await page.waitForSelector('#trace canvas');
  return page;
}

describe('panels', { skip }, () => {
  before(async () => {
    cluster = await Cluster.start(nodes, '--slice', '50ms', '--cores', '1');
    url = (await cluster.info()).dashboard_url;
    browser = await startBrowser();
    jobs = [];
    for (const name of ['one', 'two']) {
      jobs.push(await cluster.submit('-N', nodes, '-J', name, 'sh', '-c', 'while :; do sleep 0.02; done'));
    }
  });

  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  test('curves have one point per second for each phase, the skew and the slice', async () => {
    const page = await open();
    const history = () => cellsOf(page, 'switch-history-table');
    await until(async () => (await history()).filter(([, p50, , , skew]) => p50 !== '–' && skew !== '–').length >= 3, 'three seconds');
    assert.equal(await caption(page, 'switch-history-table'), 'The last minute, total');
    const [[time, p50, p95, max, skew, slice]] = await history();
    for (const value of [p50, p95, max, skew]) assert.match(value, /^\d+$/);
    assert.match(time, /^\d\d:\d\d:\d\d$/);
    assert.equal(slice, '50000');
    const heads = await page.locator('#switch-history-table th').allTextContents();
    assert.deepEqual(heads.slice(1), ['p50 µs', 'p95 µs', 'max µs', 'skew (p95) µs', 'slice µs']);
    const times = (await history()).map(([one]) => one);
    assert.equal(new Set(times).size, times.length, `a second has one point: ${times}`);
    await close(page);
  });

  test('the keyboard selects the phase and its curves', async () => {
    const page = await open();
    await until(async () => (await cellsOf(page, 'switch-history-table')).some(([, p50]) => p50 !== '–'), 'a point');
    const phase = page.locator('#switches select');
    assert.deepEqual(await phase.locator('option').allTextContents(), ['total', 'go', 'restore', 'save', 'guard', 'stop', 'wake']);
    await phase.focus();
    await page.keyboard.type('guard');
    await until(async () => /guard/.test(await caption(page, 'switch-history-table')), 'the caption');
    const guards = (await cellsOf(page, 'switch-history-table')).map(([, p50]) => p50);
    assert.deepEqual([...new Set(guards)], ['–'], 'these jobs have no network to guard');
    await page.keyboard.press('ArrowDown');
    await until(async () => /stop/.test(await caption(page, 'switch-history-table')), 'the next one');
    await until(async () => (await cellsOf(page, 'switch-history-table')).some(([, p50]) => /^\d+$/.test(p50)), 'stop');
    await close(page);
  });

  test('a change of the slice shows in the curve', async () => {
    const page = await open();
    const slices = async () => [...new Set((await cellsOf(page, 'switch-history-table')).map((row) => row[5]))];
    await until(async () => (await slices()).join() === '50000', 'as it is');
    await cluster.command('scadm', 'set', 'quantum', '20ms');
    await until(async () => (await slices()).join() === '20000,50000', 'newest first');
    await page.screenshot({ path: picture('curves') });
    await cluster.command('scadm', 'set', 'quantum', '50ms');
    await close(page);
  });

  test('the last late switch is one key away, one line per node', async () => {
    const page = await openLate();
    const title = await page.locator('#trace-dialog-title').innerText();
    const [, late, node] = /^Switch (.+) late on (node\d\d)$/.exec(title);
    await until(async () => (await cellsOf(page, 'trace-table')).some(([name, wake]) => name === node && Math.abs(Number(wake) / 1000 - parseFloat(late)) <= 0.5), `${title} in the table`);
    assert.match(await caption(page, 'trace-table'), /at that moment/);
    const rows = await cellsOf(page, 'trace-table');
    for (const row of rows) {
      assert.match(row[7], /^[1-9]\d*$/, `a total: ${row}`);
      assert.ok(jobs.some((job) => row[8].includes(job) || row[9].includes(job)), `jobs: ${row}`);
    }
    await page.locator('#trace canvas').focus();
    await page.keyboard.press('ArrowDown');
    await until(async () => /^node\d\d: wake/.test(await page.locator('#trace .hint').innerText()), 'the hint describes a node');
    const place = page.locator('#trace output');
    const before = await place.innerText();
    await page.keyboard.press('ArrowRight');
    await until(async () => (await place.innerText()) !== before, 'the next switch');
    await until(async () => /after/.test(await place.innerText()), 'how long after');
    await page.screenshot({ path: picture('late') });
    await page.keyboard.press('Escape');
    await page.waitForSelector('#trace-dialog', { state: 'detached' });
    await until(() => page.evaluate(() => /^last late switch/.test(document.activeElement.textContent)), 'the focus is back');
    await close(page);
  });

  test('its files name their viewer and contain the switch', async () => {
    const page = await openLate();
    const node = /node\d\d/.exec(await page.locator('#trace-dialog-title').innerText())[0];
    const list = await page.locator('.downloads li').allTextContents();
    assert.match(list[0], /^switches\.pftrace for ui\.perfetto\.dev/);
    assert.match(list[1], /^switches\.json for chrome:\/\/tracing/);
    const take = async (name) => {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name }).click()]);
      assert.equal(download.suggestedFilename(), name);
      return readFileSync(await download.path());
    };
    const { traceEvents } = JSON.parse(await take('switches.json'));
    const pid = traceEvents.find(({ name, args }) => name === 'process_name' && args.name === node).pid;
    assert.ok(traceEvents.some((event) => event.pid === pid && event.name === 'wake' && event.dur > 1000), 'late by a millisecond');
    const perfetto = await take('switches.pftrace');
    assert.equal(perfetto[0], 0x0a, 'packets of a trace');
    assert.ok(perfetto.includes(node) && perfetto.includes(`job ${jobs[0]}`));
    await close(page);
  });

  test('an event leads to the switches around it', async () => {
    const page = await open();
    const job = await cluster.submit('-N', nodes, '-J', 'of-the-event', 'sleep', 600);
    const item = page.locator('#events li', { hasText: new RegExp(`job ${job}\\b`) }).last();
    const button = item.getByRole('button', { name: /^trace: / });
    await button.waitFor();
    await sleep(1500); // the switches after it, too
    const [asked] = await Promise.all([page.waitForRequest(/api\/v1\/trace/), button.click()]);
    await page.waitForSelector('#trace canvas');
    assert.match(await page.locator('#trace-dialog-title').innerText(), new RegExp(`^Switches around \\d\\d:\\d\\d:\\d\\d: .*job ${job}`));
    await until(async () => (await cellsOf(page, 'trace-table')).length > 0, 'nodes');
    await until(async () => { // a busy node reports its switches later
      const { nodes: found } = await (await page.request.get(asked.url())).json();
      return found.some(({ switches }) => switches.some((one) => one.entered.some((attempt) => Math.floor(attempt / 256) === job)));
    }, `job ${job} among the switches`);
    await page.getByRole('button', { name: 'Close' }).click();
    await page.waitForSelector('#trace-dialog', { state: 'detached' });
    await cluster.cancel(job);
    await close(page);
  });

  test('a time long past has no switches, and bad queries are refused', async () => {
    const page = await open();
    const status = async (query) => (await page.request.get(new URL(`api/v1/trace?${query}`, url).href)).status();
    const { nodes: found } = await (await page.request.get(new URL('api/v1/trace?at=0.5', url).href)).json();
    assert.deepEqual(found.flatMap(({ switches }) => switches), []);
    for (const query of ['at=', 'at=x', 'at=-1', 'at=1e3', 'at=99999999999', 'format=exe', 'format=', 'late=-1', 'seconds=61', 'seconds=11&format=pftrace', 'who=1']) {
      assert.equal(await status(query), 400, query);
    }
    assert.equal(await status('seconds=10&format=chrome'), 200);
    assert.equal(await status('late=999999&format=pftrace'), 404);
    await close(page);
  });

  test('the traffic map is measured while it is open', async () => {
    const page = await open();
    const talk = await cluster.submit('-N', nodes, '-n', nodes, '-J', 'talk', `${examples}/pm_talk`, 600);
    const counted = async () => {
      const { peers } = await (await page.request.get(new URL('api/v1/snapshot?parts=peers', url).href)).json();
      return peers.cells.length;
    };
    await sleep(3000);
    assert.equal(await counted(), 0, 'no viewer requests it');
    const button = page.getByRole('button', { name: 'Traffic matrix' });
    await button.focus();
    await page.keyboard.press('Enter');
    const cells = () => cellsOf(page, 'peers-table');
    // Each rank talks to the next one.
    const ring = ['node00 > node01', 'node01 > node02', 'node02 > node03', 'node03 > node00'];
    await until(async () => (await cells()).map(([from, to]) => `${from} > ${to}`).sort().join() === ring.join(), 'a ring');
    for (const [, , sent] of await cells()) assert.match(sent, /^[\d.]+$/);
    await page.locator('#peers canvas').focus();
    await page.keyboard.press('ArrowRight');
    await until(async () => /^node00 to node01: [1-9]/.test(await page.locator('#peers .hint').innerText()), 'the cell');
    await page.keyboard.press('ArrowLeft');
    await until(async () => /within a node, not counted/.test(await page.locator('#peers .hint').innerText()), 'the diagonal');
    await page.screenshot({ path: picture('map') });
    await until(async () => (await counted()) > 0, 'cells in a snapshot');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#peers-dialog', { state: 'detached' });
    await until(() => page.evaluate(() => document.activeElement.textContent === 'Traffic matrix'), 'the focus is back');
    await until(async () => (await counted()) === 0, 'no viewer requests it any more');
    await cluster.cancel(talk);
    await close(page);
  });

  test('traffic is shown in bytes or messages', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Messages' }).click();
    await until(async () => /messages/.test(await page.locator('#traffic canvas').getAttribute('aria-label')), 'messages');
    await page.getByRole('button', { name: 'Messages' }).click();
    await until(async () => /bytes/.test(await page.locator('#traffic canvas').getAttribute('aria-label')), 'bytes');
    await close(page);
  });

  for (const colorScheme of ['dark', 'light']) {
    for (const width of [1440, 360]) {
      test(`dialogs have no serious accessibility fault, ${colorScheme}, ${width} pixels`, async () => {
        const page = await openLate({ colorScheme, viewport: { width, height: 900 } });
        assert.deepEqual(await seriousFaults(page), []);
        await page.locator('#trace').getByRole('button', { name: 'Table' }).click();
        assert.deepEqual(await seriousFaults(page), []);
        await page.screenshot({ path: picture(`late-${colorScheme}-${width}`) });
        await page.keyboard.press('Escape');
        await page.getByRole('button', { name: 'Traffic matrix' }).click();
        await page.waitForSelector('#peers canvas');
        assert.deepEqual(await seriousFaults(page), []);
        await page.screenshot({ path: picture(`map-${colorScheme}-${width}`) });
        await close(page);
      });
    }
  }
});
