// monoBERT: how sure the model is of each hit, and where this hit stands among them.

import { h } from './dom.js';
import { count, percent, score } from './words.js';

const MOST = 20;

/** Show how likely monoBERT holds the best hits and this one relevant. */
export function scoresView({ about, answer, hit, models, explain, load }) {
  const best = answer.candidates.slice(0, Math.min(MOST, about.limits.rerank_depth)).map((own) => own.docid);
  const docids = best.includes(hit.docid) ? best : [...best.slice(0, -1), hit.docid];

  function show() {
    load('monoBERT reads the hits', async (how) => {
      const found = await explain(models[0], docids, [], how);
      const place = found.docids.indexOf(hit.docid);
      const [own, sure] = [found.scores[place], found.probabilities[place]];
      const rank = 1 + found.scores.filter((value) => value > own).length;
      const rows = found.docids.map((docid, i) => [docid, found.probabilities[i], found.scores[i]]).sort((one, other) => other[2] - one[2])
        .map(([docid, value, logarithm], i) => {
          const bar = h('span', { class: 'bar rerank' });
          bar.style.width = `${100 * value}%`;
          return h('tr', { class: docid === hit.docid ? 'own' : '' }, h('td', { class: 'soft' }, String(i + 1)), h('th', { scope: 'row' }, docid),
            h('td', { class: 'wide' }, h('span', { class: 'bar-place', 'aria-hidden': 'true' }, bar)), h('td', null, percent(value)), h('td', { class: 'soft' }, score(logarithm)));
        });
      const table = h('table', { class: 'terms' }, h('caption', null, 'How likely each is relevant, and the logarithm of that'), h('tbody', null, rows));
      return [h('p', { class: 'lead' }, `${models[0]} holds this passage relevant with ${percent(sure)}: `
        + `${rank} of the ${count(docids.length, 'hit')} it read.`), table];
    }, { total: docids.length, retry: show });
  }

  show();
}
