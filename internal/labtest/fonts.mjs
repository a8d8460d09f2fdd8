// Shows a saved notebook in a browser that has the fonts of charts. Prints what is cut off there.
import path from 'node:path';
import { Lab, run } from './lab.mjs';

await run(async (page, args) => {
  const lab = new Lab(page, args);
  await lab.open(args.notebook, false);
  const i = await lab.cell('gnb.Launch');
  const output = page.locator('.jp-Notebook .jp-CodeCell').nth(i).locator('.jp-Cell-outputArea');
  await page.waitForFunction(() => document.querySelector('.jp-OutputArea img'), null, { timeout: 60000 });
  await page.waitForTimeout(1000);
  await output.evaluate(o => o.querySelector('img').scrollIntoView({ block: 'center' }));
  // A text has another width in a font that is there than in the one that takes its place.
  const installed = await page.evaluate(() => {
    const c = document.createElement('canvas').getContext('2d');
    const width = family => { c.font = `40px ${family}`; return c.measureText('Widths of 0.125 letters').width; };
    return width('"Liberation Sans", monospace') !== width('monospace');
  });
  // A chart that is zoomed has its texts drawn by the browser.
  const chart = (await lab.charts(i)).find(c => c.title === 'loss per step');
  const at = (x, y) => lab.pointAt(chart, chart.data[0] + x * chart.data[2], chart.data[1] + y * chart.data[3]);
  await at(0.2, 0.5);
  await page.waitForTimeout(100);
  await page.mouse.down();
  await at(0.8, 0.5);
  await page.mouse.up();
  await page.waitForTimeout(100);
  await page.screenshot({ path: path.join(args.out, 'pointer-fonts.png') });
  const { charts } = await lab.pointed(i);
  return { installed, charts, cut: await lab.cut(output) };
});
