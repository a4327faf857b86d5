// Checks of a page for people without a mouse, with a small screen, or with a screen reader.
import { readFileSync } from 'node:fs';
import { require } from '../../bench/support/cluster.mjs';

// What has the focus: its words, and whether one sees that it has.
export const focused = (page) => page.evaluate(() => {
  const element = document.activeElement;
  const name = element.getAttribute('aria-label') ?? element.labels?.[0]?.textContent ?? element.textContent;
  const body = element.classList.contains('panel-body') ? element.closest('section').id : '';
  const wasHere = element.dataset.wasHere === 'yes';
  element.dataset.wasHere = 'yes';
  return { tag: element.tagName, name: body || name.trim(), outline: getComputedStyle(element).outlineStyle, wasHere };
});

// All that Tab comes to from the top, in its order, until it leaves the page or is where it was.
export async function tabOrder(page) {
  const all = [];
  await page.evaluate(() => {
    document.body.tabIndex = -1;
    document.body.focus();
  });
  for (let i = 0; i < 200; ++i) {
    await page.keyboard.press('Tab');
    const one = await focused(page);
    if (one.tag === 'BODY' || one.wasHere) break;
    all.push(one);
  }
  return all;
}

// Elements whose text is cut off, or that reach out of the screen where nothing scrolls.
export const cutOff = (page) => page.evaluate(() => {
  const width = document.documentElement.clientWidth;
  const found = document.documentElement.scrollWidth > width ? ['the page is wider than the screen'] : [];
  const scrolls = (element) => ['auto', 'scroll'].includes(getComputedStyle(element).overflowX);
  const ancestors = (element) => (element ? [element, ...ancestors(element.parentElement)] : []);
  for (const element of document.querySelectorAll('#app *')) {
    if (element.closest('.panel:not(.as-table) .table-view')) continue; // for screen readers alone
    const box = element.getBoundingClientRect();
    if (box.width === 0 || box.height === 0) continue;
    const what = `${element.tagName}.${element.getAttribute('class') ?? ''} ${element.textContent.slice(0, 40)}`;
    const hides = getComputedStyle(element).overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1;
    if (hides && !element.title) found.push(`cut: ${what}`);
    const isOut = box.right > width + 1 || box.left < -1;
    if (isOut && !ancestors(element.parentElement).some(scrolls)) found.push(`outside: ${what}`);
  }
  return found;
});

export async function seriousFaults(page) {
  const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  return violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
}
