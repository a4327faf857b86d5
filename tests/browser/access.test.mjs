// The page without a mouse, without colours, and on a narrow screen.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Cluster, missing, picture, startBrowser, until } from '../../bench/support/cluster.mjs';
import { cutOff, focused, seriousFaults, tabOrder } from './checks.mjs';

const skip = missing();
const jobNames = Array.from({ length: 8 }, (_, index) => `job${index}`);
let cluster, browser, job;

// As an operator, whose drawer has everything.
async function open({ init, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  if (init) await context.addInitScript(init);
  const page = await context.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(error.message));
  await page.goto((await cluster.command('scadm', 'web-login')).trim().split('\n').at(-1));
  await page.waitForSelector(`#jobs-table tr[data-job="${job}"]`);
  await page.locator('#viewer', { hasText: 'operator' }).waitFor();
  return page;
}

async function close(page) {
  assert.deepEqual(page.errors, []);
  await page.context().close();
}

async function showTables(page) {
  for (const button of await page.getByRole('button', { name: 'Table', exact: true }).all()) await button.click();
}

// WCAG 2's, of colours as #rrggbb.
function contrast(one, other) {
  const luminance = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

// Machado, Oliveira and Fernandes 2009, whole deficiency, of linear light.
const visions = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const product = (matrix, vector) => matrix.map((row) => row.reduce((sum, part, i) => sum + part * vector[i], 0));

// Where the eye sees the colour, in Ottosson's Oklab: distances are differences.
function seen(colour, vision) {
  const linear = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const cones = product([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005]], product(vision, linear).map((part) => Math.min(Math.max(part, 0), 1)));
  return product([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.808675766]], cones.map(Math.cbrt));
}

const distance = (one, other, vision) => {
  const [a, b] = [seen(one, vision), seen(other, vision)];
  return Math.hypot(...a.map((part, i) => part - b[i]));
};

// Counts what moves without anybody having asked for it, from the first paint on: [share of the screen, what].
const watchShifts = () => {
  window.shifts = [];
  const nameOf = (node) => {
    const element = node?.nodeType === 1 ? node : node?.parentElement;
    return `${element?.tagName}#${element?.closest('[id]')?.id}.${element?.getAttribute('class')}`;
  };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      // Rows that come and go are data.
      const isData = entry.sources.every(({ node }) => (node?.nodeType === 1 ? node : node?.parentElement)?.closest('tbody, ol'));
      if (!entry.hadRecentInput && !isData) window.shifts.push([entry.value, entry.sources.map(({ node, previousRect: a, currentRect: b }) => `${nameOf(node)} ${a.x},${a.y},${a.width}x${a.height}>${b.x},${b.y},${b.width}x${b.height}`).join(' ')]);
    }
  }).observe({ type: 'layout-shift', buffered: true });
};

describe('access', { skip }, () => {
  before(async () => {
    cluster = await Cluster.start(2, '--cores', '2');
    browser = await startBrowser();
    job = await cluster.submit('-N', 2, '-J', 'a-job-with-a-rather-long-name', 'sh', '-c', 'while :; do sleep 0.1; done');
  });

  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  test('Tab comes to everything that a mouse can use, and shows where it is', async () => {
    const page = await open();
    await page.getByRole('button', { name: /Admin/ }).click();
    await page.locator('#admin select[name=job]').selectOption(String(job)); // disabled buttons take no focus
    await page.locator('#admin input[name=quantum]').fill('50ms');
    await page.locator('#admin input[name=slots]').fill('2');
    await page.locator('#admin select[name=setting]').selectOption('fill');
    await page.locator('#admin input[name=value]').fill('on');
    await page.locator('#admin input[name=nodes]').fill('node00');
    await page.getByRole('button', { name: 'Pause' }).click(); // an event brings a button
    const order = await tabOrder(page);
    const names = order.map(({ name }) => name);
    const wanted = await page.evaluate(() => [...document.querySelectorAll('button, input, select, a[href], canvas')]
      .filter((element) => element.checkVisibility() && (element.tagName !== 'CANVAS' || element.tabIndex === 0)).length);
    assert.equal(order.filter(({ tag }) => ['BUTTON', 'INPUT', 'SELECT', 'A', 'CANVAS'].includes(tag)).length, wanted, names.join(', '));
    for (const name of ['Pause', '1 Hz', 'Quantum', 'Slots', 'Setting', 'Value', 'Nodes', 'Reason', 'Drain', 'Resume', 'Job', 'Suspend', 'Continue',
      'Cancel', 'Nodes × slots', 'Nodes × time', 'Filter', String(job)]) {
      assert.ok(names.some((one) => one.startsWith(name)), `${name} among ${names.join(', ')}`);
    }
    assert.deepEqual(order.filter(({ outline }) => outline === 'none'), []);
    await close(page);
  });

  test('the drawer opens and closes by the keyboard and gives the focus back', async () => {
    const page = await open();
    const button = page.getByRole('button', { name: /Admin/ });
    await button.focus();
    await page.keyboard.press('Enter');
    await page.waitForSelector('#admin');
    await until(async () => (await button.getAttribute('aria-expanded')) === 'true', 'open');
    await page.keyboard.press('Tab');
    assert.match((await focused(page)).name, /^Quantum/);
    await page.keyboard.press('Escape');
    await page.waitForSelector('#admin', { state: 'detached' });
    await until(async () => /^Admin/.test((await focused(page)).name), 'the focus is back');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#admin');
    await page.getByRole('searchbox').focus();
    await page.keyboard.press('Escape'); // it clears the filter
    assert.equal(await page.locator('#admin').count(), 1);
    await close(page);
  });

  test('a job is marked and cancelled without a mouse', async () => {
    const mine = await cluster.submit('-N', 1, '-J', 'short', 'sleep', 600);
    const page = await open();
    const chip = page.locator(`#jobs-table tr[data-job="${mine}"] button`);
    await chip.focus();
    await page.keyboard.press('Space');
    await until(async () => (await chip.getAttribute('aria-pressed')) === 'true', 'marked');
    await page.getByRole('button', { name: /Admin/ }).focus();
    await page.keyboard.press('Enter');
    await page.locator('#admin select[name=job]').focus();
    await page.keyboard.type(String(mine));
    await until(async () => (await page.locator('#admin select[name=job]').inputValue()) === String(mine), 'the job is chosen');
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Cancel' }).focus();
    await page.keyboard.press('Enter');
    await until(async () => /cancelled/.test(await page.locator(`#jobs-table tr[data-job="${mine}"]`).innerText()), 'cancelled');
    await close(page);
  });

  test('the drawer shows a refusal of the head', async () => {
    const page = await open();
    await page.getByRole('button', { name: /Admin/ }).click();
    await page.locator('#admin input[name=nodes]').fill('nowhere');
    page.once('dialog', (dialog) => dialog.accept());
    await page.getByRole('button', { name: 'Drain' }).click();
    await until(async () => /nowhere/.test(await page.locator('#admin .failed').innerText().catch(() => '')), 'the reason');
    await page.locator('#admin input[name=quantum]').fill('20ms');
    page.once('dialog', (dialog) => dialog.dismiss());
    await page.getByRole('button', { name: 'Set', exact: true }).first().click();
    assert.equal((await cluster.info()).quantum_s, 0.1, 'nothing is done unless it is confirmed');
    await close(page);
  });

  test('at 360 pixels nothing is cut off, and tables scroll', async () => {
    const page = await open({ viewport: { width: 360, height: 740 } });
    await page.getByRole('button', { name: /Admin/ }).click();
    await page.locator('#admin select[name=job]').selectOption(String(job));
    await page.locator('#admin input[name=quantum]').fill('50ms');
    await page.locator('#loads canvas').focus();
    await page.keyboard.press('ArrowRight');
    await until(async () => /waiting for a processor/.test(await page.locator('#loads .hint').innerText()), 'the hint describes a bar');
    assert.deepEqual(await cutOff(page), []);
    await page.screenshot({ path: picture('narrow'), fullPage: true });
    await showTables(page);
    assert.deepEqual(await cutOff(page), []);
    const last = page.locator('#loads-table th').last();
    await last.scrollIntoViewIfNeeded();
    const box = await last.boundingBox();
    assert.ok(box.x >= 0 && box.x < 360, `the last column can be reached: ${box.x}`);
    await close(page);
  });

  for (const width of [1440, 1024, 768, 390]) {
    test(`nothing moves by itself, ${width} pixels`, async () => {
      const page = await open({ viewport: { width, height: 900 }, init: watchShifts });
      const mine = await cluster.submit('-N', 2, '-J', 'comes-and-goes', 'sh', '-c', 'while :; do sleep 0.01; done');
      await page.waitForSelector(`#jobs-table tr[data-job="${mine}"]`);
      await page.waitForTimeout(3000);
      await cluster.cancel(mine);
      await page.waitForTimeout(2000);
      const shifts = await page.evaluate(() => window.shifts);
      const moved = shifts.reduce((sum, [value]) => sum + value, 0);
      console.log(`${width} pixels: layout shift ${moved.toFixed(4)}`);
      assert.ok(moved < 0.02, JSON.stringify(shifts, null, 1));
      await close(page);
    });
  }

  for (const colorScheme of ['dark', 'light']) {
    test(`cells, bars, curves and outlines stand out from their ground, ${colorScheme}`, async () => {
      const page = await open({ colorScheme });
      const colours = await page.evaluate((jobs) => {
        const style = getComputedStyle(document.documentElement);
        const names = ['panel', 'cell', 'line', 'faint', 'accent', ...jobs, 'user', 'system', 'waited', 'pm', 'p50', 'p95', 'max', 'skew'];
        return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
      }, jobNames);
      const low = [];
      const check = (ground, names) => {
        for (const name of names) {
          const ratio = contrast(colours[name], colours[ground]);
          if (!(ratio >= 3)) low.push(`${name} on ${ground}: ${ratio.toFixed(2)}`);
        }
      };
      check('line', ['user', 'system', 'waited', 'pm']);
      check('cell', jobNames);
      check('panel', [...jobNames, 'faint', 'accent', 'p50', 'p95', 'max', 'skew', 'user', 'system', 'waited', 'pm']);
      assert.deepEqual(low, []);
      for (const [name, vision] of Object.entries(visions)) {
        for (const one of jobNames) {
          for (const other of jobNames.filter((each) => each > one)) {
            const apart = distance(colours[one], colours[other], vision);
            assert.ok(apart > 0.05, `${one} and ${other}, ${name}: ${apart.toFixed(3)}`);
          }
        }
      }
      await close(page);
    });

    for (const width of [1440, 360]) {
      test(`drawer and tables have no serious accessibility fault, ${colorScheme}, ${width} pixels`, async () => {
        const page = await open({ colorScheme, viewport: { width, height: 900 } });
        await page.getByRole('button', { name: /Admin/ }).click();
        assert.deepEqual(await seriousFaults(page), []);
        await showTables(page);
        await until(async () => (await page.locator('#loads-table tbody tr').count()) > 0, 'processes');
        assert.deepEqual(await seriousFaults(page), []);
        await page.screenshot({ path: picture(`tables-${colorScheme}-${width}`), fullPage: true });
        await close(page);
      });
    }
  }
});
