// EPIC and SparseEncoder: the terms that make a passage's score, and the terms that it lacks but is expanded by.

import { bar, h } from './dom.js';
import { joined, score } from './words.js';

const EXPANSIONS = 15;

const share = (weight, most) => ({ '--share': (weight / most).toFixed(3) });

function shaded(terms) {
  const most = Math.max(...terms.map((own) => own.weight), 1e-9);
  return h('p', { class: 'shaded' }, joined(terms.map((own) => own.term)).flatMap(({ text, pieces }) => {
    const weight = Math.max(...pieces.map((place) => terms[place].weight));
    return [h('span', { title: `weight ${score(weight)}`, css: share(weight, most) }, text), ' '];
  }));
}

/** Show the explanation of one passage by weights of terms. */
export function epicView({ hit, models, explain, load }) {
  load(`${models[0]} reads the passage`, async (how) => {
    const found = (await explain(models[0], [hit.docid], [['top', EXPANSIONS]], { signal: how.signal })).passages[0];
    const most = Math.max(...found.contributions.map((own) => own.contribution), 1e-9);
    const rows = found.contributions.map((own) => h('tr', null, h('th', { scope: 'row' }, own.term),
      bar(own.contribution / most, 'dense'), h('td', null, score(own.contribution)),
      h('td', { class: 'soft' }, `${score(own.query_weight)} × ${score(own.passage_weight)}`)));
    const known = new Set(found.query_terms.map((own) => own.term));
    const strongest = Math.max(...found.expansions.map((own) => own.weight), 1e-9);
    return [
      h('p', { class: 'lead' }, `${models[0]} gives this passage ${score(found.score)}: for each word of the question, its weight `
        + 'there times its weight in the passage.'),
      h('table', { class: 'terms' }, h('caption', null, 'Words that make the score'), h('thead', null, h('tr', null,
        ['word', '', 'adds', 'question × passage'].map((own) => (own ? h('th', { scope: 'col' }, own) : h('td'))))),
      h('tbody', null, rows.length ? rows : h('tr', null, h('td', { colspan: '4' }, 'No word of the question has a weight here.')))),
      h('h3', null, 'Expansions: words that the passage does not have, and is found by'),
      h('ul', { class: 'chips' }, found.expansions.map((own) => h('li', { class: known.has(own.term) ? 'asked' : '',
        css: share(own.weight, strongest) }, own.term, ' ', h('small', null, score(own.weight))))),
      h('h3', null, 'The passage, shaded by weight'), shaded(found.passage_terms),
    ];
  });
}
