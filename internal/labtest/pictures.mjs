// Runs the cells of a notebook one by one and takes a picture of what each shows, in JupyterLab's light
// and dark theme. args.shots: {name, text: what the cell's source has, looks: how many looks to wait for,
// 0 for the cell's end}. Prints what is hard to read: text with too little contrast to its background.
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
    facts.push({ name: shot.name, theme: 'end', error, text });
  }
  return facts;
});
