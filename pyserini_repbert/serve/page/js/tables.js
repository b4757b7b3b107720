// Any reranker: the scores of the best hits, and the tables by which it explains this one.

import { bar, field, h, select } from './dom.js';
import { docidText, score } from './words.js';

const MOST = 20;

/** What a cell shows: whole numbers as they are, others with two decimals, so that a column has one scale. */
const shown = (value) => (typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(2) : String(value));

/** A table of rows whose keys are the columns; the second column is a number, shown as a bar, too. */
export function barTable({ title, rows }) {
  const [name, number, ...others] = Object.keys(rows[0]);
  const most = Math.max(...rows.map((row) => row[number]), 1e-9);
  const head = [name, '', number, ...others].map((own) => (own ? h('th', { scope: 'col' }, own) : h('td')));
  const body = rows.map((row) => h('tr', null, h('th', { scope: 'row' }, shown(row[name])),
    bar(row[number] / most, 'rerank'), [number, ...others].map((own) => h('td', null, shown(row[own])))));
  return h('table', { class: 'terms' }, h('caption', null, title), h('thead', null, h('tr', null, head)), h('tbody', null, body));
}

/** Show the scores of the best hits, or the tables of this one where there are some, with a choice of model. */
export function tablesView({ hit, models, explain, load, best }) {
  let model = models[0];

  function show() {
    load(`${model} reads the passage`, async (how) => {
      const { tables } = await explain(model, [hit.docid], [], { signal: how.signal });
      const choice = models.length > 1 && h('div', { class: 'choices' }, field('Model', select(models, model, (event) => {
        model = event.target.value;
        show();
      })));
      const filled = (tables ?? []).filter((own) => own.rows.length);
      if (filled.length) return [choice, ...filled.map(barTable)].filter(Boolean);
      const found = await explain(model, best(MOST), [], { signal: how.signal });
      const order = [...found.docids.keys()].sort((one, other) => found.scores[other] - found.scores[one]);
      const rows = order.map((index) => h('tr', { class: found.docids[index] === hit.docid ? 'own' : '' },
        h('th', { scope: 'row' }, docidText(found.docids[index])), h('td', null, score(found.scores[index]))));
      return [choice, h('table', { class: 'terms' }, h('caption', null, `Scores of ${model}`), h('tbody', null, rows))].filter(Boolean);
    });
  }

  show();
}
