// Runs the cells of a notebook one by one and takes a picture of what each shows, in JupyterLab's light
// and dark theme. args.shots: {name, text: what the cell's source has, looks: how many looks to wait for,
// 0 for the cell's end, hover: after how many looks to point at a chart, while it changes}. Prints what is hard to read, text
// with too little contrast to its background, and what charts show to the pointer.
import path from 'node:path';
import { Lab, run } from './lab.mjs';

await run(async (page, args) => {
  const lab = new Lab(page, args), facts = [];
  await lab.open(args.notebook);
  await lab.command('application:toggle-left-area'); // room for the cell
  for (const shot of args.shots) {
    const i = await lab.cell(shot.text);
    await lab.watch(i);
    await lab.runCell(i);
    // A fast machine has ended before it was seen so often; then the picture is of the end.
    const ended = lab.idle();
    const live = {};
    if (shot.hover) {
      await Promise.race([lab.until(shot.hover), ended]);
      await page.locator('.jp-Notebook .jp-CodeCell').nth(i).locator('img').first().evaluate(e => e.scrollIntoView({ block: 'center' }));
      // point moves the pointer to a curve, or onto a path, and returns what is shown there; nothing when the cell has ended. A
      // picture that was just replaced has no height yet, and the pointer is below it.
      const point = async () => {
        let shown;
        for (let k = 0; k < 40 && !shown?.tip; k++) {
          const c = (await lab.charts(i)).find(c => c.curves || c.paths.length);
          if (!c || !await page.locator('.jp-Notebook .jp-CodeCell').nth(i).locator('img[data-gnb]').count()) return null;
          const [x, y] = c.paths.length ? [0, 1].map(k => (c.paths[0][k] + c.paths[0][2 + k]) / 2) : [c.data[0] + 0.3 * c.data[2], c.data[1] + 0.5 * c.data[3]];
          await lab.pointAt(c, x, y);
          await page.waitForTimeout(50 * Math.min(k, 8)); // a busy machine draws later
          shown = { ...await lab.pointed(i), moves: c.paths.length > 0 };
        }
        return shown;
      };
      live.at = await point();
      if (live.at) {
        await lab.watch(i);
        await Promise.race([lab.until(2), ended]);
        // What is under the pointer at the same place; an update may move a path away from it.
        for (let k = 0; k < 40 && !live.later?.tip; k++) {
          live.later = live.at.moves ? await point() : await lab.pointed(i);
          if (!live.later?.tip) await page.waitForTimeout(50 * Math.min(k, 8));
        }
        await page.mouse.move(5, 5); // the pictures are without the pointer
      }
    }
    if (shot.looks) await Promise.race([lab.until(shot.looks).catch(() => ended), ended]);
    else await ended;
    for (const theme of ['light', 'dark']) {
      await lab.theme(theme);
      const file = path.join(args.out, shot.name + (theme === 'dark' ? '-dark' : '') + '.png');
      await lab.show(i, file);
      facts.push({ name: shot.name, theme, file, faint: await lab.faint(i), words: (await lab.outputs())[i].text.split(/\s+/).length });
    }
    await lab.theme('light');
    await lab.idle();
    const { error, text } = (await lab.outputs())[i];
    const charts = shot.name === 'first' ? [] : await lab.tryCharts(i);
    facts.push({ name: shot.name, theme: 'end', error, text, live, charts });
  }
  return facts;
});
