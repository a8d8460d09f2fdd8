// Points at the charts of a run in JupyterLab, while it trains, when it has ended, and in the reopened notebook, trusted and not.
// Prints what is shown.
import fs from 'node:fs';
import path from 'node:path';
import { Lab, run } from './lab.mjs';

await run(async (page, args) => {
  const lab = new Lab(page, args), facts = { errors: [] };
  page.on('pageerror', e => facts.errors.push(String(e).slice(0, 300)));
  await lab.open(args.notebook);
  await lab.command('application:toggle-left-area');
  const i = await lab.cell('gnb.Launch');
  const output = page.locator('.jp-Notebook .jp-CodeCell').nth(i).locator('.jp-Cell-outputArea');
  // box is where the n-th picture of the output is now.
  const box = n => output.evaluate((o, n) => { const { x, y, width, height } = o.querySelectorAll('img')[n].getBoundingClientRect(); return { x, y, width, height }; }, n);
  // at moves the pointer to a place in a chart: shares of its width and height.
  const at = async (title, x, y, then = async () => {}) => {
    const c = (await lab.charts(i)).find(c => c.title === title);
    await lab.pointAt(c, c.data[0] + x * c.data[2], c.data[1] + y * c.data[3]);
    await then();
    await page.waitForTimeout(100);
  };
  const shown = () => lab.pointed(i);
  const press = what => output.locator(`[data-gnb-do=${what}]`).first().dispatchEvent('pointerdown');
  const updates = async n => { await lab.watch(i); await lab.until(n); };

  await lab.watch(i);
  await lab.runCell(i);
  await lab.until(30);

  // While it trains.
  await output.evaluate(o => o.scrollIntoView({ block: 'nearest' }));
  await at('loss per step', 0.3, 0.5);
  facts.hover = await shown();
  await updates(4);
  facts.hoverLater = await shown();
  await page.mouse.down();
  await at('loss per step', 0.6, 0.5);
  await page.mouse.up();
  await page.waitForTimeout(100);
  facts.zoomed = await shown();
  await updates(4);
  facts.zoomedLater = await shown();
  await press('log');
  await press('smooth');
  await updates(4);
  facts.log = await shown();
  await page.screenshot({ path: path.join(args.out, 'pointer-live.png') });
  facts.faint = {};
  for (const theme of ['dark', 'light']) {
    await lab.theme(theme);
    await at('loss per step', 0.5, 0.5);
    facts.faint[theme] = await lab.faint(i, 4.5);
    await page.screenshot({ path: path.join(args.out, `pointer-${theme}.png`) });
  }
  await at('half', 0.2, 0.5);
  facts.logged = await shown();
  await output.evaluate(o => [...o.querySelectorAll('img')].at(-1).scrollIntoView({ block: 'center' }));
  // A picture that was just replaced has no height yet, and the pointer is below it.
  for (let k = 0; k < 10 && !facts.drawn?.tip; k++) {
    await at('weights', 0.2, 0.5);
    facts.drawn = await shown();
  }
  await page.screenshot({ path: path.join(args.out, 'pointer-drawn.png') });
  fs.writeFileSync(path.join(args.dir, 'enough'), '');
  await lab.idle();

  // When it has ended, in the saved picture.
  const ended = async () => {
    const facts = {};
    await page.waitForFunction(() => document.querySelector('.jp-OutputArea img'), null, { timeout: 60000 });
    await page.waitForTimeout(1000);
    await output.evaluate(o => o.querySelector('img').scrollIntoView({ block: 'center' }));
    facts.before = await shown();
    const all = await output.evaluate(o => o.querySelectorAll('[data-gnb]').length);
    if (all) {
      await at('half', 0.999, 0.2);
      facts.last = await shown();
      await at('loss per step', 0.2, 0.5, () => page.mouse.down());
      await at('loss per step', 0.8, 0.5, () => page.mouse.up());
      facts.zoomed = await shown();
      const r = await box(0);
      await page.mouse.dblclick(r.x + r.width * 0.25, r.y + r.height * 0.4);
      await page.waitForTimeout(100);
      facts.reset = await shown();
      await output.evaluate(o => [...o.querySelectorAll('img')].at(-1).scrollIntoView({ block: 'center' }));
      await at('confusion', 0.2, 0.2);
      facts.drawn = await shown();
    } else {
      const r = await box(0);
      await page.mouse.move(r.x + r.width * 0.3, r.y + r.height * 0.4, { steps: 3 });
      await page.waitForTimeout(200);
      facts.last = await shown();
    }
    facts.pictures = (await lab.outputs())[i].pictures;
    facts.scripts = await output.evaluate(o => o.querySelectorAll('script').length);
    facts.table = await output.evaluate(o => o.querySelectorAll('table').length);
    facts.cut = await lab.cut(output);
    return facts;
  };
  facts.ended = await ended();
  facts.text = (await lab.outputs())[i].text;
  await page.screenshot({ path: path.join(args.out, 'pointer-ended.png') });
  await lab.save();
  await page.waitForTimeout(500);
  const saved = await lab.saved(args.notebook);
  facts.bytes = saved.cells.filter(c => c.cell_type === 'code').flatMap(c => c.outputs).map(o => JSON.stringify(o).length);

  await page.setViewportSize({ width: 1300, height: 1000 });
  await lab.open(args.notebook, false);
  facts.trusted = await ended();
  saved.cells[0].source += '\n\nA copy.';
  for (const c of saved.cells) delete c.metadata.trusted;
  fs.writeFileSync(path.join(args.dir, 'copy.ipynb'), JSON.stringify(saved));
  await page.setViewportSize({ width: 1300, height: 1000 });
  await lab.open('copy.ipynb', false);
  facts.untrusted = await ended();
  return facts;
});
