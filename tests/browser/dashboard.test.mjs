// The page in a real browser before a real cluster that runs real MPI jobs.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import { after, before, describe, test } from 'node:test';
import { Cluster, examples, missing, picture, require, startBrowser, until } from '../../bench/support/cluster.mjs';

const skip = missing();
let cluster, browser, url;

const text = (page, selector) => page.locator(selector).innerText();
const tableRows = (page, id) => page.locator(`#${id} tbody tr`).allTextContents();

// Status of a plain request with these headers.
function request(path, headers = {}, method = 'GET', body = '') {
  return new Promise((resolve, reject) => {
    const asked = http.request(new URL(path, url), { method, headers }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode));
    });
    asked.on('error', reject);
    asked.end(body);
  });
}

async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  await page.goto(options.address ?? url);
  await page.waitForSelector('#matrix canvas');
  await page.waitForSelector('#events');
  return page;
}

function mpiJob(seconds, ...more) {
  const ring = `${examples}/ring`;
  const words = existsSync(ring) ? [ring, '--seconds', seconds] : ['sh', '-c', 'while :; do :; done'];
  return cluster.submit('-N', 8, ...more, ...words);
}

describe('dashboard', { skip }, () => {
  before(async () => {
    cluster = await Cluster.start(8, '--slice', '50ms', '--cores', '2');
    url = (await cluster.info()).dashboard_url;
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  test('opens, and its parts need no scrolling', async () => {
    const page = await open();
    assert.match(await text(page, 'h1'), /Scored/);
    await until(async () => /live/.test(await text(page, '#link')), 'live');
    await until(async () => (await text(page, '#quantum')) === '50 ms' && (await text(page, '#nodes-up')) === '8', 'the cluster');
    assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), 900);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('the matrix is shown before the rest of the page, which is requested until it arrives', async () => {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    let refused = 0;
    let isThere = false;
    await page.route('**/rest.js', (asked) => {
      if (isThere) return asked.continue();
      ++refused;
      return asked.abort();
    });
    await page.goto(url);
    await page.waitForSelector('#matrix canvas');
    await until(async () => /live/.test(await text(page, '#link')), 'live');
    await until(() => refused > 0, 'asked for the rest');
    assert.equal(await page.locator('#events').count(), 0);
    const place = async (what) => {
      const { x, y } = await page.locator(what).first().boundingBox();
      return [what, x, y, (await page.locator('#matrix').boundingBox()).width];
    };
    const places = () => Promise.all(['.figures', '.tools button', '#matrix', '#matrix canvas'].map(place));
    const before = await places();
    isThere = true;
    for (const part of ['loads', 'jobs', 'switches', 'traffic', 'events']) await page.waitForSelector(`#${part}`);
    assert.deepEqual(await places(), before);
    await context.close();
  });

  test('asks no other host', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const hosts = new Set();
    page.on('request', (asked) => hosts.add(new URL(asked.url()).host));
    await page.goto(url);
    await page.waitForSelector('#events');
    assert.deepEqual([...hosts], [new URL(url).host]);
    await context.close();
  });

  test('cells and bars follow a job from its start to its end', async () => {
    const page = await open();
    const job = await mpiJob(600, '-c', 2);
    const cells = async () => (await tableRows(page, 'matrix-table')).filter((row) => row.endsWith(String(job)));
    const shown = await until(async () => (await cells()).length === 8, 'eight cells');
    await until(async () => (await tableRows(page, 'loads-table')).length === 8, 'eight processes');
    const loads = new Set();
    await until(async () => loads.add((await tableRows(page, 'loads-table')).join()).size > 2, 'loads move');
    await page.screenshot({ path: picture('job') });
    await cluster.cancel(job);
    const gone = await until(async () => (await cells()).length === 0, 'cells empty');
    console.log(`job shown after ${shown.toFixed(0)} ms, gone after ${gone.toFixed(0)} ms (tables are renewed at 1 Hz)`);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('two jobs take turns in the picture over time', async () => {
    const page = await open();
    const jobs = [await mpiJob(600, '-c', 2), await mpiJob(600, '-c', 2)];
    const heads = await page.locator('#jobs-table th').allTextContents();
    assert.deepEqual(heads.slice(6, 10), ['share %', 'scheduled h:mm:ss', 'elapsed h:mm:ss', 'limit h:mm:ss']);
    const shares = () => Promise.all(jobs.map((job) => text(page, `#jobs-table tr[data-job="${job}"] td:nth-child(7)`)));
    await until(async () => (await shares()).join() === '50,50', 'half of the time each');
    await page.getByRole('button', { name: 'Nodes × time' }).click();
    await page.waitForTimeout(2500);
    await page.screenshot({ path: picture('time') });
    const shown = () => page.locator('#matrix canvas').getAttribute('aria-label');
    await until(async () => /in the last 5 s$/.test(await shown()), 'a hundred slices');
    await cluster.command('scadm', 'set', 'quantum', '10ms');
    await until(async () => /in the last 1 s$/.test(await shown()), 'about a hundred slices');
    await cluster.command('scadm', 'set', 'quantum', '50ms');
    for (const job of jobs) await cluster.cancel(job);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('a click on a job marks it, a bar says what it is', async () => {
    const page = await open();
    const job = await mpiJob(600, '-c', 2);
    const button = page.locator(`#jobs-table tr[data-job="${job}"] button`);
    await button.waitFor();
    assert.equal(await button.getAttribute('aria-pressed'), 'false');
    await button.click();
    await until(async () => (await button.getAttribute('aria-pressed')) === 'true', 'marked');
    // Of this job: those of a job before it are shown until the table is renewed.
    const rows = async () => (await tableRows(page, 'loads-table')).map((row) => row.slice('node00'.length));
    await until(async () => (await rows()).length === 8 && (await rows()).every((row) => row.startsWith(job)), 'its processes');
    await page.locator('#loads canvas').focus();
    await page.keyboard.press('ArrowRight');
    await until(async () => (await text(page, '#loads .hint')).startsWith(`node00, job ${job} rank 0`), 'the bar');
    await page.locator('#matrix canvas').focus();
    await page.keyboard.press('ArrowRight');
    await until(async () => /rank 1 \w+/.test(await text(page, '#matrix .hint:not(#absent)')), 'state of the rank there');
    await page.screenshot({ path: picture('marked') });
    await button.click();
    await until(async () => (await button.getAttribute('aria-pressed')) === 'false', 'not marked');
    await cluster.cancel(job);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('a job name is always text', async () => {
    const page = await open();
    const name = '<script>window.bad = 1</script><img src=x onerror="window.bad=1">';
    const job = await cluster.submit('-N', 1, '-J', name, 'sleep', 600);
    await until(async () => (await text(page, '#jobs-table')).includes(name), 'the name');
    assert.equal(await page.evaluate(() => window.bad), undefined);
    await cluster.cancel(job);
    await page.context().close();
  });

  test('changes need a login, and take effect', async () => {
    const page = await open();
    await page.getByRole('button', { name: /Admin/ }).click();
    await until(async () => /web-login/.test(await text(page, '#admin')), 'how to log in');
    assert.equal(await page.locator('#admin input').count(), 0);
    const json = { 'content-type': 'application/json' };
    assert.equal(await request('api/v1/admin/set', json, 'POST', '{"name":"quantum","value":"20ms"}'), 401);

    const address = (await cluster.command('scadm', 'web-login')).trim().split('\n').at(-1);
    await page.goto(address);
    await page.waitForSelector('#matrix canvas');
    await page.getByRole('button', { name: /Admin/ }).click();
    await page.locator('#admin input[name=quantum]').fill('20ms');
    await until(async () => /switches\/s 20\.0 → 50\.0/.test(await text(page, '#admin')), 'what it means');
    await page.screenshot({ path: picture('admin') });
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Set', exact: true }).first().click();
    await until(async () => (await cluster.info()).quantum_s === 0.02, 'the new quantum');
    await until(async () => /quantum/.test(await text(page, '#audit')), 'the audit line');
    await page.locator('#admin input[name=nodes]').fill('node[01-02,07]');
    await until(async () => /3 of 8 nodes take no new jobs; 0 jobs there go on/.test(await text(page, '#admin')), 'the number of nodes');
    await until(async () => (await text(page, '#quantum')) === '20 ms', 'shown too');
    await cluster.command('scadm', 'set', 'quantum', '50ms');
    const slots = (await cluster.info()).max_slots;
    await page.locator('#admin input[name=slots]').fill('3');
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Set', exact: true }).nth(1).click();
    await until(async () => (await text(page, '#slots')) === '3', 'the new number of slots');
    await cluster.command('scadm', 'set', 'slots', slots);
    await until(async () => (await text(page, '#slots')) === String(slots), 'the old number of slots');  // the form is drawn anew
    await page.locator('#admin select[name=setting]').selectOption('idle');
    await page.locator('#admin input[name=value]').fill('off');
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Set', exact: true }).last().click();
    await until(async () => (await cluster.info()).idle_detection === false, 'the new setting');
    await cluster.command('scadm', 'set', 'idle', 'on');

    const again = await browser.newPage();
    const refused = again.waitForResponse((answer) => answer.request().method() === 'POST');
    await again.goto(address);
    assert.equal((await refused).status(), 401);
    await until(async () => (await text(again, '#said')).includes('used'), 'why it is refused');
    await again.close();
    await page.context().close();
  });

  test('other hosts and origins are refused', async () => {
    assert.equal(await request('/', { host: 'evil.example' }), 421);
    const upgrade = {
      connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==', origin: 'http://evil.example',
    };
    assert.equal(await request('/api/v1/ws', upgrade), 403);
  });

  test('arrow keys move through the matrix', async () => {
    const page = await open();
    await page.locator('#matrix canvas').focus();
    for (const node of ['node01', 'node02']) {
      await page.keyboard.press('ArrowRight');
      await until(async () => (await text(page, '#matrix .hint:not(#absent)')).includes(node), node);
    }
    await page.context().close();
  });

  test('pause holds the picture', async () => {
    const page = await open();
    await page.getByRole('button', { name: 'Pause' }).click();
    await until(async () => /paused/.test(await text(page, '#link')), 'paused');
    await page.getByRole('button', { name: 'Pause' }).click();
    await until(async () => /live/.test(await text(page, '#link')), 'live again');
    await page.context().close();
  });

  test('with reduced motion the page draws once per second', async () => {
    const asked = async (reducedMotion) => {
      const context = await browser.newContext({ reducedMotion });
      const page = await context.newPage();
      const [socket] = await Promise.all([page.waitForEvent('websocket'), page.goto(url)]);
      await context.close();
      return new URL(socket.url()).searchParams.get('rate');
    };
    assert.equal(await asked('no-preference'), '10');
    assert.equal(await asked('reduce'), '1');
  });

  for (const colorScheme of ['dark', 'light']) {
    test(`has no serious accessibility fault, ${colorScheme}`, async () => {
      const page = await open({ colorScheme });
      await page.getByRole('button', { name: /Admin/ }).click();
      await page.addScriptTag({ content: readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8') })
        .catch(async () => page.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')));
      const { violations } = await page.evaluate(() => window.axe.run());
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`), []);
      await page.screenshot({ path: picture(`page-${colorScheme}`) });
      await page.context().close();
    });
  }

  test('keeps up with 1,024 processes at 10 Hz', async () => {
    const page = await open({ address: `${url}?simulate=64x16` });
    assert.match(await text(page, '#link'), /simulated/);
    const drawn = await page.evaluate(async () => {
      let frames = 0, longest = 0, last = performance.now();
      const end = last + 3000;
      for (let now = last; now < end; now = performance.now()) {
        await new Promise(requestAnimationFrame);
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
        ++frames;
      }
      return { frames, longest };
    });
    console.log(`64 x 16, 3 s: ${drawn.frames} frames, longest gap ${drawn.longest.toFixed(0)} ms`);
    assert.ok(drawn.frames > 0);
    assert.deepEqual(page.errors, []);
    await page.screenshot({ path: picture('simulated') });
    await page.context().close();
  });

  test('draws 4,096 nodes', async () => {
    const page = await open({ address: `${url}?simulate=4096x1` });
    await page.locator('#loads canvas').focus();
    await page.keyboard.press('ArrowRight');
    await until(async () => /^node0+, job \d+ rank 0, /.test(await text(page, '#loads .hint')), 'the first bar');
    assert.deepEqual(page.errors, []);
    await page.screenshot({ path: picture('nodes-4096') });
    await page.context().close();
  });

  test('an ended job dims nothing', async () => {
    const page = await open();
    const job = await mpiJob(600, '-c', 2);
    const button = page.locator(`#jobs-table tr[data-job="${job}"] button`);
    await button.click();
    await until(async () => (await page.locator('main').getAttribute('data-marked')) === String(job), 'marked');
    await cluster.cancel(job);
    await until(async () => (await button.count()) === 0, 'the job is no longer listed');
    await until(async () => (await page.locator('main').getAttribute('data-marked')) === '', 'nothing marked');
    await page.context().close();
  });

  test('a silent connection is given up', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const asked = [];
    await page.routeWebSocket(/api\/v1\/ws/, (socket) => asked.push(socket.url()));
    await page.goto(url);
    await page.getByRole('button', { name: '1 Hz' }).click();
    await until(async () => asked.length >= 2 && /rate=1$/.test(asked.at(-1)), 'another connection, at the chosen rate');
    await context.close();
  });

  // Late: jobs are placed in another order after it.
  test('a drained node is hatched and described', async () => {
    const page = await open();
    const job = await mpiJob(600, '-c', 2);
    await until(async () => (await tableRows(page, 'matrix-table')).filter((row) => row.endsWith(String(job))).length === 8, 'cells');
    // Colours in the middle of a node's cell, of which there is one: the job's, its number's, and the hatching's.
    const colours = (node) => page.locator('#matrix canvas').evaluate((canvas, index) => {
      const [left, top] = [34, 16];
      const step = (canvas.clientWidth - left) / 8;
      const scale = canvas.width / canvas.clientWidth;
      const [x, y, w, h] = [left + index * step + 4, top + 4, step / 4, 30].map((one) => Math.round(one * scale));
      const { data } = canvas.getContext('2d').getImageData(x, y, w, h);
      const found = new Set();
      for (let at = 0; at < data.length; at += 4) found.add(data.slice(at, at + 3).join());
      return found.size;
    }, node);
    await until(async () => (await colours(3)) === 1, 'the job alone');
    await cluster.command('scadm', 'drain', 'node03', '-m', 'test');
    await until(async () => (await colours(3)) > 1, 'hatched');
    await until(async () => (await tableRows(page, 'matrix-table'))[3].includes('drained'), 'in the table');
    assert.equal(await colours(4), 1);
    await page.screenshot({ path: picture('drained') });
    await cluster.command('scadm', 'resume', 'node03');
    await until(async () => (await colours(3)) === 1, 'as before');
    await cluster.cancel(job);
    await page.context().close();
  });

  // Last: it restarts the head.
  test('comes back after the head was restarted', async () => {
    const page = await open();
    await until(async () => /live/.test(await text(page, '#link')), 'live');
    const before = (await cluster.info()).dashboard_url;
    await cluster.restartHead();
    await until(async () => (await cluster.info().catch(() => ({}))).nodes_up === 8, 'nodes back');
    assert.equal((await cluster.info()).dashboard_url, before);
    await until(async () => /live/.test(await text(page, '#link')), 'live again');
    const job = await cluster.submit('-N', 8, 'sleep', 600);
    await until(async () => (await tableRows(page, 'matrix-table')).some((row) => row.endsWith(String(job))), 'a new job');
    await page.context().close();
  });
});
