// monoBERT: how sure the model is of each hit, and where this hit stands among them.

import { bar, h } from './dom.js';
import { count, docidText, percent, score } from './words.js';

const MOST = 20;

/** Show how likely monoBERT holds the best hits and this one relevant. */
export function scoresView({ hit, models, explain, load, best }) {
  const docids = best(MOST);
  load('monoBERT reads the hits', async (how) => {
    const found = await explain(models[0], docids, [], how);
    const own = found.docids.indexOf(hit.docid);
    const rank = 1 + found.scores.filter((value) => value > found.scores[own]).length;
    const order = [...found.docids.keys()].sort((one, other) => found.scores[other] - found.scores[one]);
    const rows = order.map((index, above) => h('tr', { class: index === own ? 'own' : '' },
      h('td', { class: 'soft' }, String(above + 1)),
      h('th', { scope: 'row' }, docidText(found.docids[index])),
      bar(found.probabilities[index], 'rerank'),
      h('td', null, percent(found.probabilities[index])),
      h('td', { class: 'soft' }, score(found.scores[index]))));
    const likely = percent(found.probabilities[own]);
    return [
      h('p', { class: 'lead' }, `${models[0]} holds this passage relevant with ${likely}: `
        + `${rank} of the ${count(docids.length, 'hit')} it read.`),
      h('table', { class: 'terms' },
        h('caption', null, 'How likely each is relevant, and the logarithm of that'),
        h('tbody', null, rows)),
    ];
  }, { total: docids.length });
}
