// Takes pictures of the dashboard. `dashboard`, for README: 64 virtual nodes that two MPI jobs share, in light and dark.
// `filling`, for docs/lab/fill.md: two jobs that sleep half of the time, without and with filling.
// usage: node tests/browser/screenshot.mjs [DIRECTORY [dashboard|filling]]    (SCORE_BIN: where the programs are; see ./try screenshot)
import { existsSync, mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { bin, Cluster, examples, missing, startBrowser, until } from '../../bench/support/cluster.mjs';

const nodes = 64;
const mostBytes = 200_000;
const directory = path.resolve(process.argv[2] ?? 'docs');

async function save(shown, file) {
  await shown.screenshot({ path: file });
  const { size } = statSync(file);
  if (size > mostBytes) throw new Error(`${file}: ${size} bytes are too many`);
  console.log(`${file}: ${size} bytes`);
}

// The page with so many processes.
async function open(browser, url, processes, { height, colorScheme }) {
  const context = await browser.newContext({ viewport: { width: 1280, height }, colorScheme });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector('#matrix canvas');
  const loads = page.locator('#loads-table tbody tr');
  await until(async () => (await loads.count()) >= processes, 'all processes', 60_000);
  return page;
}

async function take(browser, url, colorScheme, file) {
  const page = await open(browser, url, 2 * nodes, { height: 800, colorScheme });
  await page.waitForTimeout(20_000); // the plot of switch times fills
  await save(page, file);
  await page.context().close();
}

// Each policy has its own cluster, so that the jobs' times begin at 0.
async function takeFilling(browser) {
  for (const policy of ['off', 'on']) {
    const cluster = await Cluster.start(2, '--slice', '100ms', '--cores', '1');
    try {
      await cluster.command('scadm', 'set', 'fill', policy);
      for (const name of ['first', 'second']) {
        await cluster.submit('-N', 2, '-J', name, `${bin}/scbench-phases`, 'alone', 0, 2_000_000, 2_000_000, 2 ** 40, 1);
      }
      const page = await open(browser, (await cluster.info()).dashboard_url, 4, { height: 720, colorScheme: 'light' });
      await page.getByRole('button', { name: 'Nodes × time' }).click();
      await page.waitForTimeout(15_000); // the last seconds are there
      await save(page, `${directory}/filling-${policy}.png`);
      await page.context().close();
    } finally {
      await cluster.stop();
    }
  }
}

async function takeDashboard(browser) {
  const ring = `${examples}/ring`;
  if (!existsSync(ring)) throw new Error(`${ring}: no MPI program (mpicc)`);
  const cluster = await Cluster.start(nodes, '--slice', '100ms');
  try {
    await cluster.command('scadm', 'set', 'idle', 'off'); // 64 ranks on few cores may look idle
    for (const name of ['ring', 'ring-too']) await cluster.submit('-N', nodes, '-J', name, ring, '--seconds', 600);
    const url = (await cluster.info()).dashboard_url;
    await take(browser, url, 'light', `${directory}/dashboard.png`);
    await take(browser, url, 'dark', `${directory}/dashboard-dark.png`);
  } finally {
    await cluster.stop();
  }
}

const why = missing();
if (why) throw new Error(why);
mkdirSync(directory, { recursive: true });
const browser = await startBrowser();
try {
  await (process.argv[3] === 'filling' ? takeFilling(browser) : takeDashboard(browser));
} finally {
  await browser.close();
}
