// A notebook in JupyterLab in Chromium, for the scripts beside this file. They are started by labtest.go
// with one argument, JSON, and print one JSON object at the end.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';

const { chromium } = createRequire(path.join(process.env.GNB_BROWSER_MODULES, 'x.js'))('playwright-core');

const patience = 60000; // ms that anything may take which is no training

// run calls main with the arguments and prints what it returns; a failure leaves a picture of the page. The browser has the
// fonts of the folder args.fonts/fonts beside those of the machine.
export async function run(main) {
  const args = JSON.parse(process.argv[2]);
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'gnb-chromium-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.GNB_CHROMIUM, headless: true, viewport: args.size ?? { width: 1300, height: 1000 },
    deviceScaleFactor: args.scale ?? 1,
    env: args.fonts ? { ...process.env, XDG_DATA_HOME: args.fonts } : process.env,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const page = await context.newPage();
  try {
    console.log(JSON.stringify(await main(page, args)));
  } catch (e) {
    if (args.failed) await page.screenshot({ path: args.failed }).catch(() => {});
    console.error(String(e).slice(0, 2000));
    process.exitCode = 1;
  }
  await context.close();
  fs.rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

// Lab is a notebook that is open in a page.
export class Lab {
  constructor(page, { url, token }) {
    Object.assign(this, { page, url, token });
  }

  // open shows a notebook in a workspace of its own, with its kernel connected if that is asked for.
  async open(notebook, kernel = true) {
    await this.page.goto(`${this.url}/lab/workspaces/${path.basename(notebook, '.ipynb')}/tree/${notebook}?reset&token=${this.token}`);
    await this.page.waitForSelector('.jp-Notebook .jp-CodeCell', { timeout: patience });
    if (kernel) {
      await this.page.waitForFunction(() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.connectionStatus === 'connected', null, { timeout: patience });
    }
  }

  command(name, args = {}) {
    return this.page.evaluate(([name, args]) => { window.jupyterapp.commands.execute(name, args); }, [name, args]);
  }

  // cut is what is cut off in an output, at the widths of a small and of a usual screen.
  async cut(output) {
    const cut = {};
    for (const width of [900, 1280]) {
      await this.page.setViewportSize({ width, height: 1000 });
      await this.page.waitForTimeout(300);
      cut[width] = await output.evaluate(o => {
        const cut = [], room = o.getBoundingClientRect();
        for (const e of o.querySelectorAll('img, table, div, td, span')) {
          const r = e.getBoundingClientRect();
          if (r.width && r.right > room.right + 1) cut.push(`${e.tagName} ${e.innerText.slice(0, 40)} ends ${Math.round(r.right - room.right)} px too far right`);
          if (['hidden', 'clip'].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1) cut.push(`${e.innerText.slice(0, 60)} is cut off`);
        }
        return cut;
      });
    }
    return cut;
  }

  // cell is the index, among code cells, of the one whose source has the text.
  async cell(text) {
    const find = text => [...window.jupyterapp?.shell?.currentWidget?.content?.model?.cells ?? []].filter(c => c.type === 'code').findIndex(c => c.sharedModel.getSource().includes(text));
    // The page shows cells before their text has arrived.
    await this.page.waitForFunction(`(${find})(${JSON.stringify(text)}) >= 0`, null, { timeout: patience }).catch(() => { throw new Error(`no code cell has ${text}`); });
    return this.page.evaluate(find, text);
  }

  // outputs is what the code cells show: text, pictures (with the width that they were drawn at), whether
  // an error is among them, and whether the cell is running or waits to.
  outputs() {
    return this.page.evaluate(() => {
      const widgets = window.jupyterapp.shell.currentWidget.content.widgets.filter(w => w.model.type === 'code');
      return widgets.map(w => ({
        text: w.outputArea.node.innerText,
        pictures: [...w.outputArea.node.querySelectorAll('img')].map(i => i.naturalWidth),
        error: [...Array(w.model.outputs.length).keys()].some(i => w.model.outputs.get(i).type === 'error'),
        outputs: w.model.outputs.length,
        busy: w.promptNode?.innerText.includes('*') ?? false,
      }));
    });
  }

  // show takes a picture of a code cell's output, without the empty margin beside it.
  async show(i, file) {
    await this.page.addStyleTag({ content: '.jp-OutputArea-prompt { display: none } .jp-OutputArea-child { padding-inline-end: 0 }' });
    await this.page.locator('.jp-Notebook .jp-CodeCell').nth(i).locator('.jp-Cell-outputArea').screenshot({ path: file, animations: 'disabled' });
  }

  // runCell runs one code cell.
  runCell(i) {
    return this.page.evaluate(i => {
      const { content } = window.jupyterapp.shell.currentWidget;
      content.activeCellIndex = content.widgets.indexOf(content.widgets.filter(w => w.model.type === 'code')[i]);
      content.deselectAll();
      window.jupyterapp.commands.execute('notebook:run-cell');
    }, i);
  }

  // theme chooses JupyterLab's "light" or "dark" theme.
  async theme(name) {
    await this.page.emulateMedia({ colorScheme: name });
    await this.page.evaluate(t => window.jupyterapp.commands.execute('apputils:change-theme', { theme: t }), name === 'dark' ? 'JupyterLab Dark' : 'JupyterLab Light');
    await this.page.waitForFunction(light => document.body.dataset.jpThemeLight === light, String(name === 'light'), { timeout: patience });
    await this.page.waitForTimeout(300); // for its style sheet to be drawn
  }

  // faint is the text of a code cell's output whose contrast to what is behind it is below least:1, with the
  // contrast, by the Web Content Accessibility Guidelines' formula.
  faint(i, least = 4.5) {
    return this.page.evaluate(([i, least]) => {
      const rgba = s => { const m = s.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
      const over = (a, b) => [0, 1, 2].map(k => a[k] * a[3] + b[k] * (1 - a[3]));
      const luminance = c => {
        const [r, g, b] = c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const behind = e => {
        const layers = [];
        for (; e; e = e.parentElement) {
          const c = rgba(getComputedStyle(e).backgroundColor);
          if (c[3] > 0) layers.push(c);
          if (c[3] === 1) break;
        }
        return layers.reverse().reduce((under, c) => over(c, under), [255, 255, 255]);
      };
      const output = document.querySelectorAll('.jp-Notebook .jp-CodeCell')[i].querySelector('.jp-Cell-outputArea');
      const faint = [], walk = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
      for (let node = walk.nextNode(); node; node = walk.nextNode()) {
        const e = node.parentElement, text = node.data.trim();
        if (!/[\p{L}\p{N}]/u.test(text) || e.getClientRects().length === 0) continue;
        const back = behind(e), color = rgba(getComputedStyle(e).color);
        for (let p = e; p && p !== output; p = p.parentElement) color[3] *= Number(getComputedStyle(p).opacity);
        const [x, y] = [luminance(over(color, back)), luminance(back)].sort((a, b) => b - a);
        const contrast = (x + 0.05) / (y + 0.05);
        if (contrast < least) faint.push({ text: text.slice(0, 40), contrast });
      }
      return faint;
    }, [i, least]);
  }

  // charts are those of a code cell's output that answer to the pointer, with the place of their picture on the page.
  charts(i) {
    return this.page.evaluate(i => {
      const output = document.querySelectorAll('.jp-Notebook .jp-CodeCell')[i].querySelector('.jp-Cell-outputArea');
      const images = [...output.querySelectorAll('img')];
      return [...output.querySelectorAll('[data-gnb]')].flatMap(e => {
        const data = JSON.parse(e.getAttribute('data-gnb'));
        const image = e.tagName === 'IMG' ? e : images.find(i => i.src.replace(/\s|%0A/g, '').endsWith(data.tail));
        const { x, y, width } = image.getBoundingClientRect();
        return data.charts.map(c => ({
          title: c.title, size: data.size, picture: { x, y, width }, data: c.data, unit: c.unit, curves: c.dots ? 0 : c.lines.length, names: c.lines.map(l => l.name),
          dots: c.dots, paths: c.marks.filter(m => !m.bar).map(m => m.at), bars: c.marks.filter(m => m.bar).map(m => m.at), grid: Boolean(c.grid),
        }));
      });
    }, i);
  }

  // pointAt moves the pointer to a place in a chart, in points of its picture.
  async pointAt(c, x, y) {
    const scale = c.picture.width / c.size[0];
    await this.page.mouse.move(c.picture.x + x * scale, c.picture.y + y * scale, { steps: 2 });
    await this.page.waitForTimeout(40);
  }

  // pointed is what the pointer shows in a code cell's output.
  pointed(i) {
    return this.page.evaluate(i => {
      const o = document.querySelectorAll('.jp-Notebook .jp-CodeCell')[i].querySelector('.jp-Cell-outputArea');
      return {
        tip: o.querySelector('[data-gnb-tip]')?.innerText ?? '',
        charts: [...o.querySelectorAll('[data-gnb-chart]')].map(e => e.getAttribute('data-gnb-chart')),
        ticks: [...o.querySelectorAll('[data-gnb-tick=y]')].map(e => Number(e.textContent)),
        steps: [...o.querySelectorAll('[data-gnb-tick=x]')].map(e => Number(e.textContent.replaceAll(',', ''))),
        pressed: [...o.querySelectorAll('[data-gnb-do][aria-pressed=true]')].map(e => e.dataset.gnbDo),
        picked: o.querySelectorAll('[data-gnb-picked]').length,
      };
    }, i);
  }

  // tryCharts points at each chart of an ended cell: at its largest bar, at its first path, or in its middle; then drags over most of it, chooses a
  // logarithmic axis where there is one, and resets it.
  async tryCharts(i) {
    const cell = this.page.locator('.jp-Notebook .jp-CodeCell').nth(i).locator('.jp-Cell-outputArea'), facts = [];
    for (const { title } of await this.charts(i)) {
      await cell.locator('img').first().evaluate(e => e.scrollIntoView({ block: 'center' }));
      const c = (await this.charts(i)).find(c => c.title === title), [l, t, w, h] = c.data;
      const middle = a => [(a[0] + a[2]) / 2, (a[1] + a[3]) / 2];
      const size = a => Math.abs((a[2] - a[0]) * (a[3] - a[1]));
      const [x, y] = c.bars.length ? middle(c.bars.reduce((a, b) => size(b) > size(a) ? b : a)) : c.paths.length ? middle(c.paths[0]) : [l + 0.6 * w, t + 0.5 * h];
      await this.pointAt(c, x, y);
      const f = { title, kind: c.bars.length ? 'bars' : c.paths.length ? 'paths' : c.grid ? 'grid' : c.dots ? 'dots' : 'curves', names: c.names, all: c.paths.length, hover: await this.pointed(i) };
      if (f.kind === 'dots') { // the pointer must be near one
        for (let k = 0; k < 60 && !f.hover.tip; k++) {
          await this.pointAt(c, l + w * (0.1 + 0.8 * (k * 0.37 % 1)), t + h * (0.1 + 0.8 * (k * 0.61 % 1)));
          f.hover = await this.pointed(i);
        }
      }
      await this.pointAt(c, l + 0.3 * w, t + 0.1 * h);
      await this.page.mouse.down();
      await this.pointAt(c, l + 0.9 * w, t + 0.9 * h);
      await this.page.mouse.up();
      await this.page.waitForTimeout(40);
      f.dragged = await this.pointed(i);
      const log = cell.locator('[data-gnb-do=log]').first();
      if (await log.count()) {
        await log.dispatchEvent('pointerdown');
        f.log = await this.pointed(i);
      }
      await this.pointAt(c, l + 0.5 * w, t + 0.5 * h);
      const scale = c.picture.width / c.size[0];
      await this.page.mouse.dblclick(c.picture.x + (l + 0.5 * w) * scale, c.picture.y + (t + 0.5 * h) * scale);
      f.reset = await this.pointed(i);
      facts.push(f);
    }
    await this.page.mouse.move(5, 5);
    return facts;
  }

  // watch counts from now on the different things that a code cell shows.
  watch(i) {
    return this.page.evaluate(i => {
      const widget = window.jupyterapp.shell.currentWidget.content.widgets.filter(w => w.model.type === 'code')[i];
      window.gnbSeen = new Set();
      window.gnbMost = 0;
      window.gnbWatch?.disconnect();
      const look = () => {
        const figure = widget.outputArea.node.querySelector('img');
        if (figure) window.gnbSeen.add(figure.src.length + figure.src.slice(-400) + widget.outputArea.node.textContent); // innerText would lay out the page
        window.gnbMost = Math.max(window.gnbMost, widget.model.outputs.length);
      };
      window.gnbWatch = new MutationObserver(look);
      window.gnbWatch.observe(widget.node, { subtree: true, childList: true, characterData: true, attributes: true });
    }, i);
  }

  seen() { return this.page.evaluate(() => window.gnbSeen.size); }

  // until waits for so many different looks of the watched cell.
  until(looks, ms = patience) { return this.page.waitForFunction(n => window.gnbSeen.size >= n, looks, { timeout: ms, polling: 20 }); }

  // idle waits until the kernel has nothing to do and no cell waits.
  async idle(ms = 5 * patience) {
    await this.page.waitForFunction(() => {
      const panel = window.jupyterapp.shell.currentWidget;
      return panel.sessionContext.session?.kernel?.status === 'idle' && panel.content.widgets.every(w => !(w.promptNode?.innerText ?? '').includes('*'));
    }, null, { timeout: ms, polling: 50 });
  }

  async save() {
    await this.page.evaluate(() => window.jupyterapp.commands.execute('docmanager:save'));
  }

  async saved(notebook) {
    const r = await fetch(`${this.url}/api/contents/${notebook}?token=${this.token}`);
    return (await r.json()).content;
  }
}

// workers is the number of worker processes of cells whose kernel was started below the directory.
export function workers(dir) {
  let n = 0;
  for (const p of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(p)) continue;
    try {
      const env = fs.readFileSync(`/proc/${p}/environ`, 'utf8');
      if (env.includes('GNB_WORKER=') && env.includes(dir)) n++;
    } catch { /* ended, or not ours */ }
  }
  return n;
}

export const sleep = ms => new Promise(done => setTimeout(done, ms));
