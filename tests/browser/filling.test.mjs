// Jobs that fill, wait or are deadlocked, as the page shows them.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { bin, Cluster, examples, missing, picture, startBrowser, until } from '../../bench/support/cluster.mjs';

const skip = missing();
const mayFill = process.getuid() === 0;
let cluster, browser, url;

const text = (page, selector) => page.locator(selector).innerText();

async function open(address = url) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  await page.goto(address);
  await page.waitForSelector('#matrix canvas');
  await page.waitForSelector('#events');
  return page;
}

// Colours that the middle of a row of the first node's cells has, one after another.
function coloursOf(page, row, rows) {
  return page.locator('#matrix canvas').evaluate(async (canvas, [index, count]) => {
    const [left, top] = [34, 16];
    const scale = canvas.width / canvas.clientWidth;
    const h = Math.min((canvas.clientHeight - top) / count, 64);
    const [x, y] = [left + 8, top + (index + 0.25) * h].map((one) => Math.round(one * scale));
    const found = new Set();
    for (const end = performance.now() + 3000; performance.now() < end && found.size < 2;) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      found.add(canvas.getContext('2d').getImageData(x, y, 1, 1).data.slice(0, 3).join());
    }
    return [...found];
  }, [row, rows]);
}

describe('filling', { skip }, () => {
  before(async () => {
    cluster = await Cluster.start(2, '--slice', '50ms', '--cores', '1');
    url = (await cluster.info()).dashboard_url;
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  test('the cell of a job that fills is lighter, that of a frozen one is not', async () => {
    const page = await open(`${url}?simulate=2x2`); // job 2 fills in job 1's slices
    assert.match(await text(page, '#matrix .legend'), /fills/);
    await until(async () => (await coloursOf(page, 1, 2)).length === 2, 'full and light');
    assert.equal((await coloursOf(page, 0, 2)).length, 1);
    await page.getByRole('button', { name: 'Nodes × time' }).click();
    await page.screenshot({ path: picture('filling-simulated') });
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('two jobs that block fill, and the page shows how much', { skip: mayFill ? undefined : 'needs cgroups' }, async () => {
    await cluster.command('scadm', 'set', 'fill', 'on');
    const page = await open();
    const jobs = [];
    for (let i = 0; i < 2; ++i) {
      jobs.push(await cluster.submit('-N', 2, `${bin}/scbench-phases`, 'alone', 0, 2_000_000, 2_000_000, 2 ** 40, 1));
    }
    const heads = await page.locator('#loads-table th').allTextContents();
    const rows = () => page.locator('#loads-table tbody tr').evaluateAll(
      (all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
    const states = new Set();
    await until(async () => {
      const now = await rows();
      for (const row of now) states.add(row[heads.indexOf('state')]);
      return states.has('fill') && now.length === 4 && now.every((row) => Number(row[heads.indexOf('filling %')]) > 0);
    }, 'filled time of every process');
    for (const job of jobs) {
      await until(async () => /\d:\d\d:\d\d/.test(await text(page, `#jobs-table tr[data-job="${job}"] td:nth-child(11)`)), 'filled time');
    }
    await page.getByRole('button', { name: 'Nodes × time' }).click();
    await page.locator('#loads canvas').focus();
    await page.keyboard.press('ArrowRight');
    await until(async () => /filling \d/.test(await text(page, '#loads .hint')), 'what the bar says');
    await page.screenshot({ path: picture('filling') });
    for (const job of jobs) await cluster.cancel(job);
    await cluster.command('scadm', 'set', 'fill', 'off');
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });

  test('a deadlocked job says which rank waits for what when it is marked', async () => {
    const page = await open();
    const job = await cluster.submit('-N', 2, `${examples}/pm_patient`);
    const row = page.locator(`#jobs-table tr[data-job="${job}"]`);
    await until(async () => (await row.count()) === 1 && / deadlocked\s/.test((await row.innerText()).replace(/\t/g, ' ')), 'its state');
    const waits = page.locator(`#jobs-table tr[data-waits="${job}"] li`);
    assert.equal(await waits.count(), 0);
    await row.locator('button').click();
    await until(async () => (await waits.count()) === 2, 'a line per rank');
    assert.match((await waits.allTextContents()).join('\n'), /^rank 0 .*\nrank 1 .*$/);
    await page.screenshot({ path: picture('deadlocked') });
    await cluster.cancel(job);
    assert.deepEqual(page.errors, []);
    await page.context().close();
  });
});
