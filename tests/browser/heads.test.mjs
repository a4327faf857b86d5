// An open page of a cluster with two heads, when the other one takes over.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Cluster, missing, startBrowser, until } from '../../bench/support/cluster.mjs';

const heads = ['head', 'head2'];
let cluster, browser;

// Through a node, which knows the head in charge; no heads while it knows none.
async function info() {
  const about = await cluster.info().catch(() => ({ heads: [] }));
  return { ...about, leader: heads[about.heads.findIndex((head) => head.in_charge)] };
}

describe('two heads', { skip: missing() }, () => {
  before(async () => {
    cluster = await Cluster.start(2, '--heads', '2');
    cluster.env.SCORED_SERVER = `${cluster.about.directory}/node00/commands.sock`;
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  test('the page goes to the head that took over', async () => {
    await until(async () => (await info()).heads.some((head) => head.state === 'current'), 'a follower with everything');
    const first = await info();
    const page = await browser.newPage();
    await page.goto(first.dashboard_url);
    const link = () => page.locator('#link').innerText().catch(() => '');
    await until(async () => /live/.test(await link()), 'live');
    cluster.kill(first.leader);
    await until(async () => /lost/.test(await link()), 'lost');
    await until(async () => ![undefined, first.leader].includes((await info()).leader), 'take-over');
    const { dashboard_url: second } = await info();
    assert.notEqual(second, first.dashboard_url);
    await cluster.restart(first.leader);
    await until(async () => page.url() === second && /live/.test(await link()), 'live at the other head');
    await page.close();
  });
});
