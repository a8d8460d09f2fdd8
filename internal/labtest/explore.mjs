// Runs notebooks/explore.ipynb in JupyterLab as somebody would: all cells, ■ while one trains, all cells
// again, save; then opens a copy that is not trusted. Prints what could be seen of it.
import fs from 'node:fs';
import path from 'node:path';
import { Lab, run, sleep, workers } from './lab.mjs';

await run(async (page, args) => {
  const lab = new Lab(page, args), facts = {};
  const runs = path.join(args.dir, 'runs');
  const states = () => fs.readdirSync(runs).map(r => {
    const dir = path.join(runs, r), result = path.join(dir, 'result.json'), checkpoints = path.join(dir, 'checkpoints');
    return {
      state: fs.existsSync(result) ? JSON.parse(fs.readFileSync(result)).state : '',
      checkpoints: fs.existsSync(checkpoints) ? fs.readdirSync(checkpoints).length : 0,
    };
  });

  await lab.open(args.notebook);
  facts.version = await page.evaluate(() => window.jupyterapp.version);
  const train = await lab.cell('gnb.Train(ctx, ds, gnb.SAGE, Options())');
  await lab.watch(train);
  await lab.command('notebook:run-all-cells');
  await lab.until(args.looks);
  await lab.show(train, path.join(args.out, 'running.png'));
  facts.workers = workers(args.tmp);
  facts.looks = await lab.seen();

  const pressed = Date.now();
  await page.click('.jp-NotebookPanel-toolbar [data-command="notebook:interrupt-kernel"]');
  while (workers(args.tmp) > 0 && Date.now() - pressed < 20000) await sleep(10);
  facts.gone = workers(args.tmp) === 0 ? (Date.now() - pressed) / 1000 : -1;
  await lab.idle();
  facts.interrupted = (await lab.outputs())[train];
  facts.runsInterrupted = states();
  await lab.show(train, path.join(args.out, 'interrupted.png'));

  await lab.watch(train);
  await lab.command('notebook:run-all-cells');
  await lab.until(args.looksResumed);
  await lab.idle();
  facts.looksResumed = await lab.seen();
  facts.most = await page.evaluate(() => window.gnbMost);
  facts.cells = await lab.outputs();
  facts.runs = states();
  await lab.save();

  const saved = await lab.saved(args.notebook);
  facts.bytes = JSON.stringify(saved).length;
  facts.saved = saved.cells.filter(c => c.cell_type === 'code').map(c => c.outputs.map(o => o.data ? Object.keys(o.data).sort().join(' ') : o.output_type));
  // Not trusted: signed by nobody, since its text is another one.
  saved.cells[0].source += '\n\nA copy.';
  for (const c of saved.cells) delete c.metadata.trusted;
  fs.writeFileSync(path.join(args.dir, 'copy.ipynb'), JSON.stringify(saved));
  await lab.open('copy.ipynb', false);
  await page.waitForFunction(() => document.querySelectorAll('.jp-OutputArea-output img').length > 0, null, { timeout: 60000 });
  await page.waitForTimeout(1500); // for the last ones
  facts.trusted = await page.evaluate(() => [...window.jupyterapp.shell.currentWidget.content.model.cells].filter(c => c.type === 'code').map(c => c.trusted));
  facts.reopened = await lab.outputs();
  await lab.show(train, path.join(args.out, 'reopened.png'));
  return facts;
});
