// Charts that answer to the pointer, in a trusted notebook: the values under the pointer, zoom, a logarithmic axis, smoothing,
// a choice among paths.
// The script is a constant. What it shows is in the attributes data-gnb (JSON, see chart.AreasJSON) and data-gnb-key of a picture,
// or of an element after the picture; texts become text nodes, never HTML. A panel is replaced many times per second and runs
// this script each time: what the reader chose is kept by the key, and drawn again.
(() => {
  const all = window.graphnbCharts ??= start();
  all();

  function start() {
    const views = new Map();    // what the reader chose, by key and title: {x: [from, to], y: [from, to], log, smooth, pick}
    const pictures = new Map(); // by image
    const latest = new Map();   // the picture that shows a key now
    let hover = null;           // {id, x, y}: the pointer, in points on the picture
    let drag = null;            // {id, chart, from: [x, y], to: [x, y]}

    const svg = (name, attrs, parent, text) => {
      const e = document.createElementNS('http://www.w3.org/2000/svg', name);
      for (const k in attrs) e.setAttribute(k, attrs[k]);
      if (text !== undefined) e.textContent = text;
      return parent.appendChild(e);
    };
    const html = (name, style, parent, text) => {
      const e = document.createElement(name);
      e.style.cssText = style;
      if (text !== undefined) e.textContent = text;
      return parent.appendChild(e);
    };

    // attach finds new pictures.
    function attach(again = 0) {
      for (const e of document.querySelectorAll('[data-gnb]:not([data-gnb-on])')) {
        const data = read(e);
        const image = !data || e.tagName === 'IMG' ? e : find(e, data.tail);
        if (!image && again < 20) continue; // the picture may be drawn after this element
        e.setAttribute('data-gnb-on', '');
        if (data && image) take(image, data, e.getAttribute('data-gnb-key'));
      }
      if (again < 20 && document.querySelector('[data-gnb]:not([data-gnb-on])')) setTimeout(attach, 100, again + 1);
      if (pictures.size > 50) for (const i of pictures.keys()) if (!i.isConnected) pictures.delete(i);
    }
    function read(e) {
      try { return JSON.parse(e.getAttribute('data-gnb')); } catch { return null; }
    }
    // find returns the picture above an element whose data ends with tail.
    function find(e, tail) {
      const area = e.closest('.jp-OutputArea, .output, body');
      return tail && [...area.querySelectorAll('img')].reverse().find(i => i.src.startsWith('data:image/png') && i.src.replace(/\s|%0A/g, '').endsWith(tail));
    }
    function take(image, data, key) {
      if (pictures.has(image)) return;
      const id = (key || data.tail) + ' ' + (data.charts[0]?.title ?? '');
      const p = { image, data, key, id };
      p.over = html('div', 'position:absolute;pointer-events:none;line-height:1.3;font-size:11px', image.parentElement);
      p.over.setAttribute('data-gnb-over', '');
      image.parentElement.style.position = 'relative';
      image.draggable = false;
      image.style.userSelect = 'none';
      pictures.set(image, p);
      latest.set(id, p);
      theme(p);
      new ResizeObserver(() => draw(p)).observe(image);
      draw(p);
    }

    // theme chooses colours for what is behind the picture. Drawings have colours for a dark page, too.
    function theme(p) {
      let light = true;
      for (let e = p.image; e && !p.data.page; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor.match(/[\d.]+/g)?.map(Number);
        if (!c || c[3] < 0.5) continue;
        light = 0.3 * c[0] + 0.6 * c[1] + 0.1 * c[2] > 128;
        p.back = `rgb(${c[0]},${c[1]},${c[2]})`;
        break;
      }
      if (p.data.page || !p.back) p.back = '#ffffff';
      p.light = light;
      p.ink = light ? '#4a4c50' : '#c4c6ca';
      if (!p.data.page) p.image.style.colorScheme = light ? 'light' : 'dark';
      if (!p.data.page && p.image.src.startsWith('data:image/png')) p.image.style.filter = light ? 'brightness(0.9)' : 'brightness(1.25)';
    }
    new MutationObserver(() => {
      for (const p of latest.values()) if (p.image.isConnected) { p.back = ''; theme(p); draw(p); }
    }).observe(document.body, { attributes: true, attributeFilter: ['data-jp-theme-light', 'class'] });

    const word = (p, c) => '#' + [1, 3, 5].map(i => {
      const v = parseInt(c.slice(i, i + 2), 16);
      return Math.round(p.light ? v * 0.65 : v + (255 - v) * 0.35).toString(16).padStart(2, '0');
    }).join('');

    // Views: the values that a chart shows now.
    const chosen = (p, c) => views.get(p.key + ' ' + c.title) ?? {};
    const choose = (p, c, v) => views.set(p.key + ' ' + c.title, { ...chosen(p, c), ...v });
    const changed = v => v.x || v.log || v.smooth;
    const paths = c => c.marks.some(m => !m.bar);
    function points(line, smooth) {
      const out = [];
      let mean = 0, weight = 0;
      for (let i = 0; i + 1 < line.points.length; i += 2) {
        const x = line.points[i];
        let y = line.points[i + 1];
        if (x === null || y === null) { out.push(null); continue; }
        if (smooth) { // an exponential mean, without the bias of its start
          mean = smooth * mean + (1 - smooth) * y;
          weight = smooth * weight + 1 - smooth;
          y = mean / weight;
        }
        out.push([x, y]);
      }
      return out;
    }
    function view(p, c) {
      const v = chosen(p, c), lines = c.lines.map(l => points(l, v.smooth));
      let [x0, x1] = v.x ?? c.x, [y0, y1] = c.y;
      if (changed(v)) {
        let ys = lines.flatMap(l => l.filter(q => q && q[0] >= x0 && q[0] <= x1 && (!v.log || q[1] > 0)).map(q => q[1]));
        if (v.y && (!v.log || v.y[0] > 0)) [y0, y1] = v.y;
        else if (ys.length) {
          y0 = ys.reduce((a, b) => Math.min(a, b)); y1 = ys.reduce((a, b) => Math.max(a, b));
          if (v.log) { y1 *= 1.1; y0 /= 1.1; }
          else { const d = (y1 - y0 || Math.abs(y1) * 0.1 || 1) * 0.05; y0 -= d; y1 += d; }
        } else if (v.log) { y0 = 0.1; y1 = 1; }
      }
      const f = v.log ? Math.log10 : y => y, [l, t, w, h] = c.data;
      return {
        v, lines, x0, x1, y0, y1,
        X: x => l + (x - x0) / (x1 - x0) * w,
        Y: y => t + h - (f(y) - f(y0)) / (f(y1) - f(y0)) * h,
        at: px => x0 + (px - l) / w * (x1 - x0),
        atY: py => { const u = f(y0) + (t + h - py) / h * (f(y1) - f(y0)); return v.log ? 10 ** u : u; },
      };
    }
    function steps(from, to, n, whole) {
      let raw = (to - from) / n, p = 10 ** Math.floor(Math.log10(raw));
      let d = [1, 2, 2.5, 5, 10].map(m => m * p).find(s => s >= raw * (1 - 1e-9));
      if (whole) d = Math.max(1, Math.round(d));
      const out = [];
      for (let i = Math.ceil(from / d - 1e-9); i * d <= to + 1e-9 * d && out.length < 20; i++) out.push(i * d);
      return out;
    }
    function decades(from, to) {
      const out = [], few = Math.log10(to / from);
      for (let e = Math.floor(Math.log10(from)); e <= Math.log10(to); e += Math.max(1, Math.ceil(few / 6))) {
        for (const m of few < 1.2 ? [1, 2, 3, 5, 7] : few < 3 ? [1, 3] : [1]) {
          const y = m * 10 ** e;
          if (y >= from && y <= to) out.push(y);
        }
      }
      return out.length > 1 ? out : steps(from, to, 4);
    }
    const short = y => !isFinite(y) ? '' : y !== 0 && (Math.abs(y) >= 1e5 || Math.abs(y) < 1e-3) ? y.toExponential(2) : String(+y.toPrecision(4));
    const grouped = x => Math.round(x) === x ? x.toLocaleString('en-US') : short(x);

    // draw draws what is over a picture: changed charts, and what the pointer shows.
    function draw(p) {
      const { image, over, data } = p, [w, h] = data.size;
      if (!image.isConnected) return;
      Object.assign(over.style, { left: image.offsetLeft + 'px', top: image.offsetTop + 'px', width: image.offsetWidth + 'px', height: image.offsetHeight + 'px' });
      over.replaceChildren();
      const root = svg('svg', { viewBox: `0 0 ${w} ${h}`, width: '100%', height: '100%', style: 'position:absolute;left:0;top:0;overflow:visible;font-family:Liberation Sans,Arial,Helvetica,sans-serif', preserveAspectRatio: 'none' }, over);
      for (const c of data.charts) {
        const s = view(p, c);
        if (changed(s.v)) chart(p, c, s, root);
        if (s.v.pick) faded(p, c, s.v.pick, root);
        if (drag?.id === p.id && drag.chart === c.title) {
          const [l, t, r, b] = dragged(c);
          svg('rect', { x: l, y: t, width: r - l, height: b - t, fill: '#2080c8', 'fill-opacity': 0.15 }, root);
        }
        if (hover?.id === p.id && within(c, hover)) pointed(p, c, s, root);
      }
    }
    const within = (c, q) => {
      const [l, t, w, h] = c.data, [bl, , bw] = c.box;
      return q.x >= bl && q.x <= bl + bw && q.y >= t - 22 && q.y <= t + h + 14 && l < l + w;
    };
    // dragged is what the pointer has drawn a box around: all of the height, where only x is chosen.
    function dragged(c) {
      const order = (a, b) => a < b ? [a, b] : [b, a], [l, r] = order(drag.from[0], drag.to[0]);
      const [t, b] = c.dots || paths(c) ? order(drag.from[1], drag.to[1]) : [c.data[1], c.data[1] + c.data[3]];
      return [l, t, r, b];
    }
    // faded fades the paths of a chart that do not go through a box, whose corners are shares of the chart's width and height.
    function faded(p, c, pick, root) {
      const [l, t, w, h] = c.data, box = [l + pick[0] * w, t + pick[1] * h, l + pick[2] * w, t + pick[3] * h];
      const all = c.marks.filter(m => !m.bar), through = all.filter(m => crosses(m.at, box));
      const line = (m, stroke, width, more) => svg('polyline', { points: m.at.join(' '), fill: 'none', stroke, 'stroke-width': width, ...more }, root);
      for (const m of all) if (!through.includes(m)) line(m, p.back, 2.4, { 'stroke-opacity': 0.8 });
      for (const m of through.reverse()) line(m, m.color, 1.4, { 'data-gnb-picked': m.text.split('\n')[0] });
      svg('rect', { x: box[0], y: box[1], width: box[2] - box[0], height: box[3] - box[1], fill: 'none', stroke: p.ink, 'stroke-width': 0.6, 'stroke-dasharray': '2 2' }, root);
    }
    // crosses says whether a path has a point in a box; the path is followed in small steps.
    function crosses(at, [l, t, r, b]) {
      for (let i = 0; i + 3 < at.length; i += 2) {
        for (let k = 0; k <= 64; k++) {
          const x = at[i] + (at[i + 2] - at[i]) * k / 64, y = at[i + 1] + (at[i + 3] - at[i + 1]) * k / 64;
          if (x >= l && x <= r && y >= t && y <= b) return true;
        }
      }
      return false;
    }
    function chart(p, c, s, root) {
      const [l, t, w, h] = c.data, [bl, bt, bw, bh] = c.box;
      // The legend beside dots stays.
      svg('rect', { x: bl, y: t - 7, width: c.dots ? l + w + 4 - bl : bw, height: bt + bh - t + 7, fill: p.back, 'data-gnb-chart': c.title }, root);
      const text = { fill: p.ink, 'font-size': 7.5 };
      for (const y of s.v.log ? decades(s.y0, s.y1) : steps(s.y0, s.y1, 5)) {
        svg('line', { x1: l, x2: l + w, y1: s.Y(y), y2: s.Y(y), stroke: '#808080', 'stroke-opacity': 0.3, 'stroke-width': 0.6 }, root);
        svg('text', { ...text, x: l - 4, y: s.Y(y) + 2.6, 'text-anchor': 'end', 'data-gnb-tick': 'y' }, root, short(y));
      }
      for (const x of steps(s.x0, s.x1, 5, c.whole)) svg('text', { ...text, x: s.X(x), y: t + h + 10, 'text-anchor': 'middle', 'data-gnb-tick': 'x' }, root, grouped(x));
      svg('text', { ...text, x: l + w, y: bt + bh - 1, 'text-anchor': 'end' }, root, c.unit);
      const clip = svg('svg', { x: l, y: t - 2, width: w, height: h + 4, viewBox: `${l} ${t - 2} ${w} ${h + 4}` }, root);
      const ends = [];
      c.lines.forEach((line, i) => {
        let d = '', gap = true, last = null;
        if (c.dots) {
          for (const q of s.lines[i]) if (q && !(s.v.log && q[1] <= 0)) d += `M${s.X(q[0]).toFixed(1)} ${s.Y(q[1]).toFixed(1)}h0`;
          svg('path', { d, stroke: line.color, 'stroke-width': 3, 'stroke-linecap': 'round', 'data-gnb-line': line.name }, clip);
          return;
        }
        for (const q of s.lines[i]) {
          if (!q || s.v.log && q[1] <= 0) { gap = true; continue; }
          d += `${gap ? 'M' : 'L'}${s.X(q[0]).toFixed(2)} ${s.Y(q[1]).toFixed(2)}`;
          gap = false;
          if (q[0] >= s.x0 && q[0] <= s.x1) last = q;
        }
        svg('path', { d, fill: 'none', stroke: line.color, 'stroke-width': 1.6, 'data-gnb-line': line.name }, clip);
        if (last) ends.push({ line, q: last, y: s.Y(last[1]) });
      });
      const room = bl + bw - l - w;
      ends.sort((a, b) => a.y - b.y).forEach((e, i) => {
        if (i && e.y < ends[i - 1].y + 9) e.y = ends[i - 1].y + 9;
        const long = `${e.line.name} ${short(e.q[1])}`;
        svg('text', { x: Math.min(s.X(e.q[0]), l + w) + 4, y: e.y + 2.8, 'font-size': 7.5, 'font-weight': 'bold', fill: word(p, e.line.color) }, root, long.length * 4.3 < room ? long : short(e.q[1]));
      });
    }

    // pointed shows the values under the pointer, and the buttons.
    function pointed(p, c, s, root) {
      const [l, t, w, h] = c.data, scale = p.image.offsetWidth / p.data.size[0];
      const bar = html('div', `position:absolute;pointer-events:auto;right:${(p.data.size[0] - c.box[0] - c.box[2]) * scale}px;top:${(t - 22) * scale}px;display:flex;gap:4px`, p.over);
      const button = (does, text, on, title) => {
        const b = html('button', `font:inherit;cursor:pointer;padding:0 6px;border:1px solid ${p.ink};border-radius:3px;background:${on ? p.ink : p.back};color:${on ? p.back : p.ink}`, bar, text);
        b.dataset.gnbDo = does;
        b.dataset.gnbTitle = c.title;
        b.title = title;
        b.setAttribute('aria-pressed', Boolean(on));
      };
      if (c.smooth) button('smooth', s.v.smooth ? `smooth ${s.v.smooth}` : 'smooth', s.v.smooth, 'exponential mean of the values, with this weight of the earlier ones');
      if (s.lines.some(l => l.some(q => q && q[1] > 0))) button('log', 'log', s.v.log, 'logarithmic axis of values');
      if (changed(s.v) || s.v.pick) button('whole', 'reset', false, 'show all values again; a double click does the same');
      if (drag || hover.x < l - 3 || hover.x > l + w + 3 || hover.y < t - 3 || hover.y > t + h + 3) return;
      // tip writes lines beside a place: [text, colour of a square before it].
      const tip = (at, lines) => {
        const right = at > l + w / 2, x = at * scale;
        const box = html('div', `position:absolute;${right ? `right:${p.image.offsetWidth - x + 8}px` : `left:${x + 8}px`};top:${Math.max(0, t * scale)}px;white-space:nowrap;padding:3px 7px;border:1px solid ${p.ink};border-radius:3px;background:${p.back};color:${p.ink}`, p.over);
        box.setAttribute('data-gnb-tip', '');
        lines.forEach(([text, color], i) => {
          const row = html('div', i ? '' : 'font-weight:bold', box);
          if (color) html('span', `color:${word(p, color)}`, row, '\u25a0 ');
          html('span', '', row, text);
        });
      };
      const dot = (x, y, fill) => svg('circle', { cx: x, cy: y, r: 2.6, fill, stroke: p.back, 'stroke-width': 0.8 }, root);
      const m = mark(c, s.v);
      if (m) {
        const style = { fill: 'none', stroke: p.ink, 'stroke-width': 1.2 }, [x0, y0, x1, y1] = m.at;
        if (m.bar) svg('rect', { ...style, x: Math.min(x0, x1), y: Math.min(y0, y1), width: Math.abs(x1 - x0), height: Math.abs(y1 - y0) }, root);
        else svg('polyline', { ...style, points: m.at.join(' '), stroke: m.color, 'stroke-width': 2.6 }, root);
        return tip(hover.x, m.text.split('\n').map((text, i) => [text, i ? null : m.color]));
      }
      if (c.grid) return cell(p, c, root, tip);
      if (c.dots) {
        let best = null;
        s.lines.forEach((line, i) => line.forEach(q => {
          if (!q || q[0] < s.x0 || q[0] > s.x1 || s.v.log && q[1] <= 0) return;
          const far = Math.hypot(s.X(q[0]) - hover.x, s.Y(q[1]) - hover.y);
          if (far < (best?.far ?? 12)) best = { q, far, line: c.lines[i] };
        }));
        if (!best) return;
        dot(s.X(best.q[0]), s.Y(best.q[1]), best.line.color);
        return tip(s.X(best.q[0]), [[best.line.name || c.title, best.line.color], [`${c.unit || 'x'}: ${short(best.q[0])}`], [`${c.title || 'y'}: ${short(best.q[1])}`]]);
      }

      const near = s.lines.map(line => line.reduce((best, q) => {
        if (!q || q[0] < s.x0 || q[0] > s.x1 || s.v.log && q[1] <= 0) return best;
        const far = Math.abs(s.X(q[0]) - hover.x);
        return !best || far < best.far ? { q, far } : best;
      }, null));
      const first = near.filter(Boolean).reduce((a, b) => (!a || b.far < a.far ? b : a), null);
      if (!first) return;
      svg('line', { x1: s.X(first.q[0]), x2: s.X(first.q[0]), y1: t, y2: t + h, stroke: p.ink, 'stroke-width': 0.6, 'stroke-dasharray': '2 2' }, root);
      const rows = [[`${c.unit} ${grouped(first.q[0])}`]];
      near.forEach((n, i) => {
        if (!n) return;
        const y = s.Y(n.q[1]);
        if (y >= t - 2 && y <= t + h + 2) dot(s.X(n.q[0]), y, c.lines[i].color);
        rows.push([`${c.lines[i].name}: ${short(n.q[1])}` + (n.q[0] === first.q[0] ? '' : ` (${c.unit} ${grouped(n.q[0])})`), c.lines[i].color]);
      });
      tip(s.X(first.q[0]), rows);
    }
    // mark is the bar or the path under the pointer.
    function mark(c, v) {
      let best = null, least = 6;
      for (const m of c.marks) {
        const at = m.at;
        if (m.bar) {
          if ((hover.x - at[0]) * (hover.x - at[2]) <= 0 && (hover.y - at[1]) * (hover.y - at[3]) <= 0) return m;
          continue;
        }
        if (v.pick && !crosses(at, [0, 1, 2, 3].map(i => c.data[i % 2] + v.pick[i] * c.data[2 + i % 2]))) continue;
        for (let i = 0; i + 3 < at.length; i += 2) { // the distance to each part
          const dx = at[i + 2] - at[i], dy = at[i + 3] - at[i + 1];
          const share = Math.min(1, Math.max(0, ((hover.x - at[i]) * dx + (hover.y - at[i + 1]) * dy) / (dx * dx + dy * dy || 1)));
          const far = Math.hypot(at[i] + share * dx - hover.x, at[i + 1] + share * dy - hover.y);
          if (far < least) { least = far; best = m; }
        }
      }
      return best;
    }
    // cell shows the cell of a matrix under the pointer.
    function cell(p, c, root, tip) {
      const [l, t, w, h] = c.data, { rows, columns, cells, rowLabel, colLabel } = c.grid;
      const i = Math.floor((hover.y - t) / h * rows.length), j = Math.floor((hover.x - l) / w * columns.length);
      if (i < 0 || j < 0 || i >= rows.length || j >= columns.length) return;
      const v = cells[i * columns.length + j];
      svg('rect', { x: l + j * w / columns.length, y: t + i * h / rows.length, width: w / columns.length, height: h / rows.length, fill: 'none', stroke: p.ink, 'stroke-width': 1.2 }, root);
      tip(hover.x, [[v === null ? 'no value' : typeof v === 'number' ? short(v) : v], [`${rowLabel || 'row'}: ${rows[i]}`], [`${colLabel || 'column'}: ${columns[j]}`]]);
    }

    // The pointer.
    const where = (p, e) => {
      const r = p.image.getBoundingClientRect();
      return { id: p.id, x: (e.clientX - r.left) / r.width * p.data.size[0], y: (e.clientY - r.top) / r.height * p.data.size[1] };
    };
    const under = e => pictures.get(e.target);
    const chartAt = (p, q) => p.data.charts.find(c => within(c, q));
    const inside = (c, q) => [0, 1].map(i => Math.min(Math.max(i ? q.y : q.x, c.data[i]), c.data[i] + c.data[2 + i]));
    const again = id => { const p = latest.get(id); if (p) draw(p); };
    function point(at) {
      const before = hover?.id;
      hover = at;
      if (before && before !== at?.id) again(before);
      if (at) again(at.id);
    }
    document.addEventListener('pointermove', e => {
      if (drag) {
        const p = latest.get(drag.id), c = p.data.charts.find(c => c.title === drag.chart);
        drag.to = inside(c, where(p, e));
        again(drag.id);
        return;
      }
      if (e.target.closest?.('[data-gnb-over]')) return;
      const p = under(e);
      if (p || hover) point(p ? where(p, e) : null);
    });
    document.addEventListener('pointerleave', () => point(null));
    document.addEventListener('pointerdown', e => {
      const does = e.target.dataset?.gnbDo;
      if (does && hover) {
        act(does, e.target.dataset.gnbTitle);
        return;
      }
      const p = under(e), q = p && where(p, e), c = p && chartAt(p, q);
      if (!c || e.button !== 0 || e.pointerType === 'touch') return;
      if (!c.lines.length && !paths(c)) return;
      drag = { id: p.id, chart: c.title, from: inside(c, q) };
      drag.to = drag.from;
    });
    document.addEventListener('pointerup', e => {
      if (!drag) return;
      const p = latest.get(drag.id), c = p.data.charts.find(c => c.title === drag.chart);
      if (c) {
        const [l, t, r, b] = dragged(c), s = view(p, c);
        if (r - l > 4 && b - t > 4 && paths(c)) choose(p, c, { pick: [(l - c.data[0]) / c.data[2], (t - c.data[1]) / c.data[3], (r - c.data[0]) / c.data[2], (b - c.data[1]) / c.data[3]] });
        else if (r - l > 4 && c.lines.length) choose(p, c, { x: [s.at(l), s.at(r)], ...(c.dots && b - t > 4 ? { y: [s.atY(b), s.atY(t)] } : {}) });
      }
      drag = null;
      point(where(p, e));
    });
    document.addEventListener('pointercancel', () => { const id = drag?.id; drag = null; again(id); });
    // JupyterLab shows a picture at its full size after a double click: not one of these.
    document.addEventListener('dblclick', e => {
      const p = under(e), c = p && chartAt(p, where(p, e));
      if (!c) return;
      e.stopPropagation();
      views.delete(p.key + ' ' + c.title);
      draw(p);
    }, true);
    // A button that the keyboard presses has no pointer.
    document.addEventListener('click', e => { if (e.detail === 0 && e.target.dataset?.gnbDo && hover) act(e.target.dataset.gnbDo, e.target.dataset.gnbTitle); });
    function act(does, title) {
      const p = latest.get(hover.id), c = p?.data.charts.find(c => c.title === title);
      if (!c) return;
      const v = chosen(p, c);
      if (does === 'log') choose(p, c, { log: !v.log });
      if (does === 'smooth') choose(p, c, { smooth: v.smooth === 0.9 ? 0 : v.smooth ? 0.9 : 0.6 });
      if (does === 'whole') views.delete(p.key + ' ' + title);
      draw(p);
    }
    return attach;
  }
})();
