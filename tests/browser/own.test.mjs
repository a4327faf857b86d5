// The views of one's own jobs: the list, the page of a job and the form of a new one, by mouse and keyboard, on small screens, and
// as a user who owns none of the jobs.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { bin, Cluster, missing, picture, startBrowser, until } from '../../bench/support/cluster.mjs';
import { cutOff, focused, seriousFaults, tabOrder } from './checks.mjs';

const run = promisify(execFile);
const nobody = 65534;
const skip = missing();
const longName = 'a-name-that-is-much-longer-than-any-column-of-any-table-should-ever-become';
let cluster, browser, origin, job;

const address = async () => (await cluster.command('scadm', 'web-login')).trim().split('\n').at(-1);
const text = (page, selector) => page.locator(selector).innerText();
const says = (page, selector, pattern) => until(async () => pattern.test(await text(page, selector).catch(() => '')), `${selector}: ${pattern}`);
const button = (page, name) => page.getByRole('button', { name, exact: true });

async function open(view, { login, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  page.on('dialog', (dialog) => dialog.accept(dialog.defaultValue()));
  await page.goto(login ?? await address());
  await page.locator('#viewer', { hasText: login ? 'user' : 'operator' }).waitFor();
  await page.goto(`${origin}#/${view}`);
  await page.waitForSelector('main.own');
  return page;
}

async function close(page) {
  assert.deepEqual(page.errors, []);
  await page.context().close();
}

// As an ordinary user, whom the kernel names to the head.
async function nobodysLogin() {
  const directory = path.dirname(cluster.about.socket);
  chmodSync(directory, 0o711);
  const { stdout } = await run(`${bin}/scadm`, ['web-login'],
    { cwd: directory, uid: nobody, gid: nobody, env: { ...process.env, SCORED_SERVER: `./${path.basename(cluster.about.socket)}` } });
  return stdout.trim().split('\n').at(-1);
}

describe('own jobs', { skip }, () => {
  before(async () => {
    cluster = await Cluster.start(2, '--cores', '2');
    browser = await startBrowser();
    origin = (await cluster.info()).dashboard_url;
    job = await cluster.submit('-N', 2, '-J', longName, '--time', '1h', 'sh', '-c', 'while :; do :; done');
  });

  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  test('the list follows its filters, which are in the address', async () => {
    const ended = await cluster.submit('-N', 1, '-J', 'short', 'true');
    const page = await open('jobs');
    const row = (number) => page.locator(`#own-jobs-table tr[data-job="${number}"]`);
    await row(job).waitFor();
    await until(async () => /completed/.test(await row(ended).innerText().catch(() => '')), 'an ended job');
    await page.locator('select[name=state]').selectOption('active');
    await until(async () => (await row(ended).count()) === 0, 'the ended job is left out');
    assert.match(page.url(), /#\/jobs\?state=active$/);
    await page.reload();
    await row(job).waitFor();
    assert.equal(await row(ended).count(), 0);
    await page.getByRole('searchbox').fill('no such job');
    await says(page, '#own-jobs', /No job matches/);
    await page.getByRole('searchbox').fill('');
    await row(job).getByRole('link').click();
    await says(page, '#job-title', new RegExp(`Job ${job}`));
    assert.match(page.url(), new RegExp(`#/jobs/${job}$`));
    await page.goBack();
    await row(job).waitFor();
    await close(page);
  });

  test('the page of a job says what it does, and the matrix marks it', async () => {
    const page = await open(`jobs/${job}`);
    await says(page, '#sentence', /^Running on node00, node01 since /);
    await says(page, '#job-figures', /slices, limit 1:00:00/);
    await says(page, '#job-events', /accepted|started/i);
    assert.match(await text(page, '#command'), /while :; do :; done/);
    await page.waitForSelector('#matrix canvas');
    await page.screenshot({ path: picture('own-job') });
    await close(page);
  });

  test('buttons suspend, resume, change, requeue, hold, release and cancel', async () => {
    const mine = await cluster.submit('-N', 1, '-J', 'mine', '--requeue', 'sh', '-c', 'while :; do :; done');
    const page = await open(`jobs/${mine}`);
    await says(page, '#sentence', /^Running/);
    await button(page, 'Suspend').click();
    await says(page, '#sentence', /^Suspended/);
    await button(page, 'Resume').click();
    await says(page, '#sentence', /^Running/);
    await button(page, 'Change limit').click();
    await page.locator('#limit input').fill('soon');
    await button(page, 'Set').click();
    await says(page, '#actions .failed', /time/);
    await button(page, 'Change limit').click();
    await page.locator('#limit input').fill('2h');
    await button(page, 'Set').click();
    await says(page, '#job-figures', /limit 2:00:00/);
    await button(page, 'Requeue').click();
    await until(async () => JSON.parse(await cluster.command('score', 'job', mine, '--json')).job.restarts === 1, 'requeued');
    const held = await cluster.submit('-N', 1, '--hold', 'true');
    await page.goto(`${origin}#/jobs/${held}`);
    await says(page, '#sentence', /^Waiting: held/);
    await button(page, 'Release').click();
    await says(page, '#sentence', /^Completed after/);
    await page.goto(`${origin}#/jobs/${mine}`);
    await says(page, '#sentence', /^Running/);
    await button(page, 'Cancel').click();
    await says(page, '#sentence', /^Cancelled/);
    await close(page);
  });

  test('output is live, searched and downloaded', async () => {
    const mine = await cluster.submit('-N', 1, '/bin/sh', '-c', 'echo first; echo problem >&2; while :; do sleep 0.1; done');
    const page = await open(`jobs/${mine}`);
    await says(page, '#output pre', /first/);
    await says(page, '#output', /Live\./);
    await page.locator('#output select').selectOption('stderr');
    await until(async () => (await text(page, '#output pre')).trim() === 'problem', 'standard error alone');
    assert.match(page.url(), /stream=stderr$/);
    await page.locator('#output select').selectOption('');
    await says(page, '#output pre', /first/);
    await page.locator('#output input[name=search]').fill('PROB');
    await until(async () => (await text(page, '#output pre')).trim() === 'problem', 'the line that is searched');
    await says(page, '#output .hint', /1 lines have/);
    await cluster.cancel(mine);
    await says(page, '#output .hint', /writes no more/);
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()]);
    assert.equal(download.suggestedFilename(), `job-${mine}.txt`);
    await close(page);
  });

  test('the form says what a job would do, submits it, and another one like it', async () => {
    const page = await open('new');
    await page.locator('select[name=template]').selectOption('One program');
    await page.locator('textarea[name=script]').fill('#!/bin/sh\necho from the form\n');
    await page.locator('input[name=directory]').fill('tmp');
    await says(page, '#verdict', /absolute path/);
    assert.equal(await page.locator('input[name=directory]').getAttribute('aria-invalid'), 'true');
    await page.locator('input[name=directory]').fill('/tmp');
    await says(page, '#verdict', /^Starts now on node\d\d: 1 task\.$/);
    await page.locator('input[name=nodes]').fill('1000');
    await says(page, '#verdict', /nodes/);
    await until(async () => button(page, 'Submit').isDisabled(), 'a job that cannot run is not submitted');
    await page.locator('input[name=nodes]').fill('');
    await page.locator('input[name=name]').fill('from form');
    await says(page, '#command-line', /^scbatch --job-name='from form' --ntasks=1 --time=1h --chdir=\/tmp --allow-root job\.sh$/);
    await says(page, '#script-text', /^#!\/bin\/sh\n#SCORE --job-name='from form'\n/);
    await page.screenshot({ path: picture('new-job') });
    await until(async () => button(page, 'Submit').isEnabled(), 'it may be submitted');
    await button(page, 'Submit').click();
    await says(page, '#sentence', /^Completed after/);
    await says(page, '#output pre', /from the form/);
    await page.getByRole('link', { name: 'Submit again' }).click();
    await until(async () => (await page.locator('input[name=name]').inputValue()) === 'from form', 'the same form');
    assert.match(await page.locator('textarea[name=script]').inputValue(), /echo from the form/);
    await close(page);
  });

  test('the script of the form is accepted by scbatch', async () => {
    const page = await open('new');
    await page.locator('select[name=template]').selectOption('Array');
    await page.locator('input[name=directory]').fill('/tmp');
    await page.locator('input[name=array]').fill('0-2%2');
    await says(page, '#verdict', /^(Starts now|Waits)/);
    const shown = await text(page, '#script-text');
    const place = mkdtempSync('/tmp/own-');
    writeFileSync(`${place}/job.sh`, shown);
    const planned = await cluster.command('scbatch', '--dry-run', `${place}/job.sh`);
    assert.match(planned, /^would /);
    rmSync(place, { recursive: true });
    await close(page);
  });

  test('templates of the user are kept in the browser', async () => {
    const page = await open('new');
    await page.locator('input[name=name]').fill('kept');
    await button(page, 'Save as template').click();
    await page.reload();
    await page.locator('select[name=template]').selectOption('kept');
    await until(async () => (await page.locator('input[name=name]').inputValue()) === 'kept', 'the template');
    await button(page, 'Remove template').click();
    assert.equal(await page.locator('select[name=template] option', { hasText: 'kept' }).count(), 0);
    await close(page);
  });

  test('a job is submitted and cancelled by the keyboard alone', async () => {
    const page = await open('new');
    const order = (await tabOrder(page)).map(({ name }) => name);
    for (const name of ['Cluster', 'My jobs', 'New job', 'Template', 'Name', 'Directory', 'Script']) {
      assert.ok(order.some((one) => one.startsWith(name)), `${name} among ${order.join(', ')}`);
    }
    await page.locator('input[name=name]').focus();
    await page.keyboard.type('by-keyboard');
    await page.keyboard.press('Tab');
    await page.keyboard.type('/tmp');
    await page.locator('textarea[name=script]').focus();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('sleep 600\n');
    await until(async () => button(page, 'Submit').isEnabled(), 'it may be submitted');
    await button(page, 'Submit').focus();
    await page.keyboard.press('Enter');
    await says(page, '#sentence', /^Running/);
    await button(page, 'Cancel').focus();
    assert.notEqual((await focused(page)).outline, 'none');
    await page.keyboard.press('Enter');
    await says(page, '#sentence', /^Cancelled/);
    await close(page);
  });

  for (const [what, viewport] of [['a phone', { width: 360, height: 740 }], ['200 % zoom', { width: 720, height: 450 }]]) {
    test(`nothing is cut off on ${what}`, async () => {
      for (const view of ['jobs', `jobs/${job}`, 'new']) {
        const page = await open(view, { viewport });
        await page.waitForSelector('main.own .panel');
        if (view === 'jobs') await page.locator(`#own-jobs-table tr[data-job="${job}"]`).waitFor();
        if (view.endsWith(job)) await says(page, '#sentence', /^Running/);
        assert.deepEqual(await cutOff(page), [], view);
        await page.screenshot({ path: picture(`own-${view.replace('/', '-').replace(job, 'one')}-${viewport.width}`), fullPage: true });
        await close(page);
      }
    });
  }

  for (const theme of ['light', 'dark']) {
    test(`the views have no serious accessibility fault, ${theme} theme of the address`, async () => {
      const page = await open(`jobs?theme=${theme}`, { colorScheme: theme === 'light' ? 'dark' : 'light' });
      await page.locator(`#own-jobs-table tr[data-job="${job}"]`).waitFor();
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(await ground(), theme === 'light' ? 'rgb(238, 240, 242)' : 'rgb(20, 23, 26)');
      assert.deepEqual(await seriousFaults(page), []);
      await page.screenshot({ path: picture(`own-jobs-${theme}`) });
      await page.getByRole('link', { name: String(job), exact: true }).click();
      await says(page, '#sentence', /^Running/);
      assert.match(page.url(), new RegExp(`theme=${theme}`));
      assert.deepEqual(await seriousFaults(page), []);
      await page.screenshot({ path: picture(`own-job-${theme}`), fullPage: true });
      await page.getByRole('link', { name: 'New job' }).click();
      await page.waitForSelector('#new-job');
      assert.deepEqual(await seriousFaults(page), []);
      await page.screenshot({ path: picture(`own-new-${theme}`), fullPage: true });
      await close(page);
    });
  }

  test('another user sees none of these jobs, and can change none', { skip: process.getuid() === 0 ? undefined : 'needs root' }, async () => {
    const page = await open('jobs', { login: await nobodysLogin() });
    await says(page, '#own-jobs', /You have no jobs/);
    await page.goto(`${origin}#/jobs/${job}`);
    await says(page, 'main.own', /belongs to another user/);
    const shown = await text(page, 'main.own');
    assert.ok(!shown.includes(longName) && !shown.includes('while'), shown);
    await page.goto(`${origin}#/new?like=${job}`);
    await page.waitForSelector('#new-job');
    await page.waitForTimeout(500);
    assert.equal(await page.locator('input[name=name]').inputValue(), '');
    const status = await page.evaluate(async (number) => {
      const session = await (await fetch('api/v1/session')).json();
      const headers = { 'X-Scored-Csrf': session.csrf, 'Content-Type': 'application/json' };
      const ask = async (method, part, body) => (await fetch(`api/v1/jobs/${number}${part}`, { method, headers, body })).status;
      return [await ask('DELETE', ''), await ask('PATCH', '', '{"time":"1h"}'), await ask('GET', '/output'), await ask('GET', '/events')];
    }, job);
    assert.deepEqual(status, [403, 403, 403, 403]);
    await close(page);
  });

  test('a viewer without a login is told how to log in', async () => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(`${origin}#/jobs`);
    await says(page, 'main.own', /scadm web-login/);
    await page.context().close();
  });
});

describe('tables and drawings of the cluster', { skip }, () => {
  before(async () => {
    cluster = await Cluster.start(4, '--cores', '2');
    browser = await startBrowser();
    origin = (await cluster.info()).dashboard_url;
    job = await cluster.submit('-N', 2, '-J', longName, '--time', '1h', 'sh', '-c', 'while :; do :; done');
  });

  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  async function clusterPage(viewport) {
    const page = await (await browser.newContext({ viewport })).newPage();
    await page.goto(origin);
    await page.waitForSelector(`#jobs-table tr[data-job="${job}"]`);
    return page;
  }

  test('a long name leaves room for limit and reason', async () => {
    const page = await clusterPage({ width: 1280, height: 800 });
    const panel = await page.locator('#jobs').boundingBox();
    for (const name of ['limit h:mm:ss', 'reason']) {
      const box = await page.locator('#jobs-table th', { hasText: name }).boundingBox();
      assert.ok(box.x + box.width <= panel.x + panel.width && box.width > 40, `${name}: ${JSON.stringify(box)}`);
    }
    await page.context().close();
  });

  test('a legend never breaks between its swatch and its word', async () => {
    for (const width of [360, 1024, 1280, 2560]) {
      const page = await clusterPage({ width, height: 800 });
      const lines = await page.locator('.legend > span').evaluateAll((all) => all.map((one) => one.getClientRects().length));
      assert.ok(lines.length > 4 && lines.every((count) => count === 1), `${width}: ${lines}`);
      await page.context().close();
    }
  });

  test('a phone shows state, share, limit and reason, and the rest on request', async () => {
    const page = await clusterPage({ width: 360, height: 740 });
    const heads = async () => (await page.locator('#jobs-table th').evaluateAll((all) =>
      all.filter((one) => one.offsetWidth > 0).map((one) => one.textContent))).join();
    assert.equal(await heads(), 'job,name,state,share %,limit h:mm:ss,reason');
    await button(page, 'All columns').click();
    await until(async () => (await heads()).split(',').length === 12, 'all columns');
    await page.context().close();
  });

  test('idle jobs that left the matrix are named', async () => {
    const page = await clusterPage({ width: 1280, height: 800 });
    await says(page, '#absent', /^Every job that runs has slices\.$/);
    const idle = await cluster.submit('-N', 4, '-J', 'idle', 'sleep', 600); // shares nodes, so that it leaves the matrix
    try {
      await says(page, '#absent', new RegExp(`^Without slices, idle: job ${idle}\\.$`));
    } finally {
      await cluster.cancel(idle);
    }
    await page.context().close();
  });

  test('the mark, the axes and the filter are in the address', async () => {
    const page = await clusterPage({ width: 1280, height: 800 });
    await page.locator(`#jobs-table tr[data-job="${job}"] button`).click();
    await button(page, 'Nodes × time').click();
    await page.locator('#jobs input[type=search]').fill('never');
    // The browser reports a changed address a moment after the page has changed it.
    await until(() => [`job=${job}`, 'axes=time', 'filter=never'].every((part) => page.url().includes(part)), 'the address');
    await page.reload();
    await page.locator('main').waitFor();
    await until(async () => (await page.locator('main').getAttribute('data-marked')) === String(job), 'the marked job');
    assert.equal(await button(page, 'Nodes × time').getAttribute('aria-pressed'), 'true');
    await until(async () => (await page.locator('#jobs input[type=search]').inputValue().catch(() => '')) === 'never', 'the filter');
    await page.context().close();
  });

  test('a large screen is filled', async () => {
    const page = await clusterPage({ width: 2560, height: 1440 });
    const canvas = await page.locator('#matrix canvas').boundingBox();
    assert.ok(canvas.height > 250, `${canvas.height}`);
    assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 1440);
    await page.screenshot({ path: picture('large') });
    await page.context().close();
  });

  test('the history grows, is zoomed by keyboard and mouse, and saved as CSV', async () => {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true })).newPage();
    await page.goto(`${origin}#/history`);
    const rows = (id) => page.locator(`#${id}-table tbody tr`).count();
    await until(async () => (await rows('history-load')) >= 2, 'two steps of ten seconds');
    const cells = async () => (await page.locator('#history-jobs-table tbody tr').last().locator('td').allTextContents()).slice(1);
    await until(async () => (await cells()).join() === '1,4', 'a step with one job on four nodes');
    const before = await rows('history-load');
    for (let i = 0; i < 12; ++i) await button(page, 'Zoom in').click();
    assert.match(page.url(), /from=\d+&to=\d+/);
    await until(async () => (await rows('history-load')) < before, 'fewer rows');
    await button(page, 'Whole range').click();
    await until(async () => (await rows('history-load')) >= before, 'all rows');
    const plot = await page.locator('#history-load .u-over').boundingBox();
    await page.mouse.move(plot.x + plot.width / 2, plot.y + 20);
    await page.mouse.down();
    await page.mouse.move(plot.x + plot.width - 2, plot.y + 20, { steps: 5 });
    await page.mouse.up();
    await until(() => /from=\d+&to=\d+/.test(page.url()), 'zoomed by the mouse');
    await button(page, 'day').click();
    assert.match(page.url(), /span=day$/);
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'CSV' }).click()]);
    assert.match(readFileSync(await download.path(), 'utf8'), /^unix_s,user,system,/);
    assert.deepEqual(await seriousFaults(page), []);
    await page.screenshot({ path: picture('history') });
    await page.setViewportSize({ width: 360, height: 740 });
    assert.deepEqual(await cutOff(page), []);
    await page.context().close();
  });
});
