// duoBERT: the matrix of probabilities that one passage is more relevant than another, and the ranking that each of the
// five aggregations makes of it. The matrix is computed once; another aggregation only sorts again.

import { button, freshId, h } from './dom.js';
import { count, docidText, move, score } from './words.js';

const MEANING = {
  sum: 'adds up how likely it beats each other passage',
  binary: 'counts the passages that it beats',
  min: 'takes its weakest comparison',
  max: 'takes its strongest comparison',
  sample: 'adds up a few comparisons, drawn by chance',
};
const COMPARED = 5;

/** A cell of the matrix; value: the probability that the row's passage is more relevant; null: a passage and itself. */
function cell(value, row, column) {
  if (value === null) return h('td', { class: 'none', 'aria-label': 'itself' });
  const share = (Math.abs(value - 0.5) * 2).toFixed(3);
  const kind = value >= 0.5 ? 'wins' : 'loses';
  const title = `${row} over ${column}: ${score(value)}`;
  return h('td', { class: kind, title, css: { '--share': share } }, String(Math.round(100 * value)));
}

function matrix(found, hit, ranks) {
  const heads = found.docids.map((docid) => h('th', { scope: 'col', title: docidText(docid) }, String(ranks.get(docid))));
  const rows = found.docids.map((docid, i) => h('tr', { class: docid === hit.docid ? 'own' : '' },
    h('th', { scope: 'row', title: docidText(docid) }, `${ranks.get(docid)}. ${docidText(docid)}`),
    found.probabilities[i].map((value, j) => cell(value, docid, found.docids[j]))));
  const caption = 'How likely, in percent, the passage of the row is more relevant than that of the column';
  const table = h('table', { class: 'matrix' },
    h('caption', null, caption),
    h('thead', null, h('tr', null, h('td'), heads)),
    h('tbody', null, rows));
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Pair matrix, scrolls to the side' }, table);
}

/** The ranking that an aggregation makes of the matrix, with each passage's move. */
function ranking(found, method, hit, ranks) {
  const { scores, order } = found.methods[method];
  const before = [...found.docids].sort((one, other) => ranks.get(one) - ranks.get(other));
  return h('ol', { class: 'order' }, order.map((docid, index) => {
    const { text, kind } = move(before.indexOf(docid), index);
    return h('li', { class: docid === hit.docid ? 'own' : '' },
      h('span', { class: 'rank' }, String(index + 1)),
      h('span', { class: 'docid' }, docidText(docid)),
      h('span', { class: 'soft' }, score(scores[found.docids.indexOf(docid)])),
      h('span', { class: kind, title: 'against the ranking above' }, text));
  }));
}

/** The matrix beside the ranking of the aggregation that is chosen. */
function aggregations(found, hit, ranks) {
  const list = h('div', { class: 'order-place' });
  const note = h('p', { class: 'note', 'aria-live': 'polite' });
  const choose = (method) => {
    list.replaceChildren(ranking(found, method, hit, ranks));
    const samples = method === 'sample' ? ` (${found.samples} each)` : '';
    note.textContent = `${method}: ${MEANING[method]}${samples}. No new inference.`;
  };
  const name = freshId('method');
  const radios = Object.keys(found.methods).map((method) => h('label', { class: 'pill' },
    h('input', { type: 'radio', name, value: method, checked: method === 'sum', onchange: () => choose(method) }),
    h('span', null, method)));
  choose('sum');
  const choices = h('fieldset', { class: 'systems' }, h('legend', null, 'Aggregation'), radios);
  return h('div', { class: 'pairs' }, matrix(found, hit, ranks), h('div', null, choices, note, list));
}

/** Show the pair matrix of the best hits and this one; its cost is shown before it is computed. */
export function pairsView({ answer, hit, models, explain, load, best, panel }) {
  const model = models[0];
  const ranks = new Map(answer.candidates.map((own) => [own.docid, own.rank]));
  const docids = best(COMPARED);
  const n = docids.length;
  if (n < 2) {
    panel.replaceChildren(h('p', null, 'One hit alone has nothing to be compared with.'));
    return;
  }
  panel.replaceChildren(
    h('p', { class: 'lead' }, `${model} compares each two of ${n} hits: which of them answers the question better?`),
    h('p', { class: 'pair-count note' }, `${n} × ${n - 1} = ${count(n * (n - 1), 'inference')}.`),
    button('Compare', show, { class: 'strong' }));

  function show() {
    load('duoBERT compares', async (how) => {
      const found = await explain(model, docids, [], how);
      const cost = found.inferences ? `It took ${count(found.inferences, 'inference')}.` : 'The matrix was there already.';
      return [aggregations(found, hit, ranks), h('p', { class: 'note' }, cost)];
    }, { total: n * (n - 1), announce: () => `${n} passages compared` });
  }
}
