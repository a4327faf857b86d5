// Takes README's pictures of the dashboard: 64 virtual nodes that two MPI jobs share, in light and dark.
// usage: node tests/browser/screenshot.mjs [DIRECTORY]    (SCORE_BIN: where the programs are; see ./try screenshot)
import { existsSync, mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { Cluster, examples, missing, startBrowser, until } from '../../bench/support/cluster.mjs';

const nodes = 64;
const mostBytes = 200_000;
const directory = path.resolve(process.argv[2] ?? 'docs');

async function take(browser, url, colorScheme, file) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme });
  const page = await context.newPage();
  await page.goto(url);
  await page.waitForSelector('#matrix canvas');
  const loads = page.locator('#loads-table tbody tr');
  await until(async () => (await loads.count()) >= 2 * nodes, 'all processes', 60_000);
  await page.waitForTimeout(20_000); // the plot of switch times fills
  await page.screenshot({ path: file });
  const { size } = statSync(file);
  if (size > mostBytes) throw new Error(`${file}: ${size} bytes are too many`);
  console.log(`${file}: ${size} bytes`);
  await context.close();
}

async function main() {
  const why = missing();
  if (why) throw new Error(why);
  const ring = `${examples}/ring`;
  if (!existsSync(ring)) throw new Error(`${ring}: no MPI program (mpicc)`);
  mkdirSync(directory, { recursive: true });
  const cluster = await Cluster.start(nodes, '--slice', '100ms');
  const browser = await startBrowser();
  try {
    await cluster.command('scadm', 'set', 'idle', 'off'); // 64 ranks on few cores may look idle
    for (const name of ['ring', 'ring-too']) await cluster.submit('-N', nodes, '-J', name, ring, '--seconds', 600);
    const url = (await cluster.info()).dashboard_url;
    await take(browser, url, 'light', `${directory}/dashboard.png`);
    await take(browser, url, 'dark', `${directory}/dashboard-dark.png`);
  } finally {
    await browser.close();
    await cluster.stop();
  }
}

await main();
