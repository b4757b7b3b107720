// duoBERT: the matrix of probabilities that one passage is more relevant than another, and the ranking that each of the
// five aggregations makes of it. The matrix is computed once; another aggregation only sorts again.

import { button, freshId, h } from './dom.js';
import { count, move, score } from './words.js';

const MEANING = {
  sum: 'adds up how likely it beats each other passage',
  binary: 'counts the passages that it beats',
  min: 'takes its weakest comparison',
  max: 'takes its strongest comparison',
  sample: 'adds up a few comparisons, drawn by chance',
};
const COMPARED = 5;

function matrix(found, hit, ranks) {
  const head = h('tr', null, h('td'), found.docids.map((own) => h('th', { scope: 'col', title: own }, String(ranks.get(own)))));
  const rows = found.docids.map((docid, i) => h('tr', { class: docid === hit.docid ? 'own' : '' },
    h('th', { scope: 'row', title: docid }, `${ranks.get(docid)}. ${docid}`),
    found.probabilities[i].map((value, j) => (value === null ? h('td', { class: 'none', 'aria-label': 'itself' })
      : h('td', { class: value >= 0.5 ? 'wins' : 'loses', title: `${docid} over ${found.docids[j]}: ${score(value)}`,
        css: { '--share': (Math.abs(value - 0.5) * 2).toFixed(3) } }, String(Math.round(100 * value)))))));
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Pair matrix, scrolls to the side' },
    h('table', { class: 'matrix' }, h('caption', null, 'How likely, in percent, the passage of the row is more relevant than that of the column'),
      h('thead', null, head), h('tbody', null, rows)));
}

function ranking(found, method, hit, ranks) {
  const { scores, order } = found.methods[method];
  const before = [...found.docids].sort((one, other) => ranks.get(one) - ranks.get(other));
  return h('ol', { class: 'order' }, order.map((docid, place) => {
    const { text, kind } = move(before.indexOf(docid), place);
    return h('li', { class: docid === hit.docid ? 'own' : '' }, h('span', { class: 'rank' }, String(place + 1)), h('span', { class: 'docid' }, docid),
      h('span', { class: 'soft' }, score(scores[found.docids.indexOf(docid)])),
      h('span', { class: kind, title: 'against the ranking above' }, text));
  }));
}

/** Show the pair matrix of the best hits and this one; its cost is shown before it is computed. */
export function pairsView({ answer, hit, models, explain, load, best, panel }) {
  const model = models[0];
  const ranks = new Map(answer.candidates.map((own) => [own.docid, own.rank]));
  const docids = best(COMPARED), n = docids.length;
  panel.replaceChildren(...(n < 2 ? [h('p', null, 'One hit alone has nothing to be compared with.')]
    : [h('p', { class: 'lead' }, `${model} compares each two of ${n} hits: which of them answers the question better?`),
      h('p', { class: 'pair-count note' }, `${n} × ${n - 1} = ${count(n * (n - 1), 'inference')}.`), button('Compare', show, { class: 'strong' })]));

  function show() {
    load('duoBERT compares', async (how) => {
      const found = await explain(model, docids, [], how);
      const list = h('div', { class: 'order-place' });
      const note = h('p', { class: 'note', 'aria-live': 'polite' });
      const choose = (method) => {
        list.replaceChildren(ranking(found, method, hit, ranks));
        note.textContent = `${method}: ${MEANING[method]}${method === 'sample' ? ` (${found.samples} each)` : ''}. No new inference.`;
      };
      const name = freshId('method');
      const radios = Object.keys(found.methods).map((own) => h('label', { class: 'pill' },
        h('input', { type: 'radio', name, value: own, checked: own === 'sum', onchange: () => choose(own) }), h('span', null, own)));
      choose('sum');
      return [h('div', { class: 'pairs' }, matrix(found, hit, ranks),
        h('div', null, h('fieldset', { class: 'systems' }, h('legend', null, 'Aggregation'), radios), note, list)),
      h('p', { class: 'note' }, found.inferences ? `It took ${count(found.inferences, 'inference')}.` : 'The matrix was there already.')];
    }, { total: n * (n - 1), announce: () => `${n} passages compared` });
  }
}
