// monoBERT: how sure the model is of each hit, and where this hit stands among them.

import { h, svg } from './dom.js';
import { button } from './messages.js';
import { count, percent, score } from './words.js';

const WIDE = 560, HIGH = 120, BELOW = 34;
const MOST = 20;

function histogram(found, own) {
  const { counts, edges } = found.histogram;
  const [low, high] = [edges[0], edges.at(-1)];
  const x = (value) => 14 + ((value - low) / (high - low || 1)) * (WIDE - 28);
  const most = Math.max(...counts, 1);
  const bars = counts.map((number, place) => number > 0 && svg('rect', { class: 'column', x: x(edges[place]) + 1,
    y: HIGH - (number / most) * (HIGH - 26), width: Math.max(1, x(edges[place + 1]) - x(edges[place]) - 2), height: (number / most) * (HIGH - 26) },
  svg('title', null, `${number} from ${score(edges[place])} to ${score(edges[place + 1])}`)));
  const ticks = found.scores.map((value) => svg('line', { class: 'tick', x1: x(value), x2: x(value), y1: HIGH + 2, y2: HIGH + 9 }));
  return svg('svg', { class: 'histogram', viewBox: `0 0 ${WIDE} ${HIGH + BELOW}`, role: 'img',
    'aria-label': `Scores from ${score(low)} to ${score(high)}; this passage has ${score(own)}` },
  bars, svg('line', { class: 'axis', x1: 8, x2: WIDE - 8, y1: HIGH, y2: HIGH }), ticks,
  svg('line', { class: 'this', x1: x(own), x2: x(own), y1: 16, y2: HIGH + 9 }),
  svg('text', { class: 'this', x: Math.min(Math.max(x(own), 50), WIDE - 50), y: 11 }, 'this passage'),
  svg('text', { class: 'end', x: 8, y: HIGH + 27 }, score(low)),
  svg('text', { class: 'end right', x: WIDE - 8, y: HIGH + 27 }, score(high)));
}

/** Show the distribution of monoBERT's scores over the best hits and this one. */
export function scoresView({ about, answer, hit, models, explain, load }) {
  const best = answer.candidates.slice(0, Math.min(MOST, about.limits.rerank_depth)).map((own) => own.docid);
  const docids = best.includes(hit.docid) ? best : [...best.slice(0, -1), hit.docid];

  function show() {
    load('monoBERT reads the hits', async (how) => {
      const found = await explain(models[0], docids, [], how);
      const place = found.docids.indexOf(hit.docid);
      const [own, sure] = [found.scores[place], found.probabilities[place]];
      const rank = 1 + found.scores.filter((value) => value > own).length;
      const rows = found.docids.map((docid, i) => [docid, found.probabilities[i]]).sort((one, other) => other[1] - one[1])
        .map(([docid, value], i) => {
          const bar = h('span', { class: 'bar rerank' });
          bar.style.width = `${100 * value}%`;
          return h('tr', { class: docid === hit.docid ? 'own' : '' }, h('td', { class: 'soft' }, String(i + 1)), h('th', { scope: 'row' }, docid),
            h('td', { class: 'wide' }, h('span', { class: 'bar-place', 'aria-hidden': 'true' }, bar)), h('td', null, percent(value)));
        });
      const table = h('table', { class: 'terms' }, h('caption', null, 'How likely each is relevant'), h('tbody', null, rows));
      table.hidden = true;
      const more = button('All of them', () => {
        table.hidden = !table.hidden;
        more.setAttribute('aria-expanded', String(!table.hidden));
      }, { class: 'quiet', 'aria-expanded': 'false' });
      return [h('p', { class: 'lead' }, `${models[0]} holds this passage relevant with ${percent(sure)}: `
        + `${rank} of the ${count(docids.length, 'hit')} it read. Scores are logarithms of that, as far as 0.`),
      histogram(found, own), more, table];
    }, { total: docids.length, retry: show });
  }

  show();
}
