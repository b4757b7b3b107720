// CEDR: how similar each word of the question is to each word of the passage, in a layer of the model, as a heat map.

import { field, h, select, svg } from './dom.js';
import { joined, score } from './words.js';

const WIDE = 15; // px of a cell
const HIGH = 22;
const HEAD = 74; // px above the cells, for the passage's words
const BEST = 3; // passage words listed for each word of the question

/** The words of question and passage, and how similar: the most similar pieces count. */
function byWords(found) {
  const rows = joined(found.query_tokens);
  const columns = joined(found.passage_tokens);
  const pieces = found.maps[0].values;
  const similarity = (row, column) => Math.max(...row.pieces.flatMap((i) => column.pieces.map((j) => pieces[i][j])));
  return {
    rows: rows.map((row) => row.text),
    columns: columns.map((column) => column.text),
    values: rows.map((row) => columns.map((column) => similarity(row, column))),
  };
}

/** The heat map; the word pair under the pointer is spelled out below. */
function map({ rows, columns, values }) {
  const flat = values.flat();
  const low = Math.min(...flat);
  const high = Math.max(...flat);
  const span = high - low || 1;
  const opacity = (value) => (0.03 + 0.97 * ((value - low) / span) ** 2).toFixed(3);

  const cells = values.flatMap((row, i) => row.map((value, j) => svg('rect', {
    class: 'cell', x: j * WIDE, y: HEAD + i * HIGH, width: WIDE - 1, height: HIGH - 1,
    'fill-opacity': opacity(value), 'data-i': i, 'data-j': j,
  })));
  const heads = columns.map((token, j) => {
    const transform = `translate(${j * WIDE + WIDE / 2 + 4} ${HEAD - 5}) rotate(-90)`;
    return svg('text', { class: 'token', transform }, token);
  });

  const text = `cosine from ${score(low)} (light) to ${score(high)} (dark)`;
  const readout = h('p', { class: 'readout', 'aria-hidden': 'true' }, text);
  const readOut = (event) => {
    const { i, j } = event.target.dataset ?? {};
    if (i !== undefined) readout.textContent = `${rows[i]} · ${columns[j]}: ${score(values[i][j])}`;
  };
  const drawing = svg('svg', {
    width: columns.length * WIDE, height: HEAD + rows.length * HIGH, role: 'img', class: 'heat', onpointerover: readOut,
    'aria-label': `Similarity of ${rows.length} words of the question and ${columns.length} of the passage`,
  }, heads, cells);
  const names = h('ol', { class: 'heat-rows', 'aria-hidden': 'true' }, rows.map((token) => h('li', null, token)));
  const scrolled = { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Heat map, scrolls to the side' };
  return [h('div', { class: 'heat-place' }, names, h('div', scrolled, drawing)), readout];
}

/** The most similar words of the passage, each once: [[word, similarity], …]. */
function bestWords(columns, similarities) {
  const best = new Map();
  const order = [...similarities.keys()].sort((one, other) => similarities[other] - similarities[one]);
  for (const j of order) {
    if (best.size < BEST && !best.has(columns[j])) best.set(columns[j], similarities[j]);
  }
  return [...best];
}

function strongest({ rows, columns, values }) {
  return h('ul', { class: 'strongest' }, rows.map((token, i) => {
    const words = bestWords(columns, values[i]).map(([word, similarity], index) => [
      index ? ', ' : '', word, h('span', { class: 'soft' }, ` ${score(similarity)}`)]);
    return h('li', null, h('b', null, token), ' ', words);
  }));
}

/** Show the similarity map of one passage, with a choice of CEDR model and layer. */
export function cedrView({ hit, models, explain, load }) {
  let model = models.find((own) => own.includes('knrm')) ?? models[0];

  function show(layer) {
    load('CEDR reads the passage', async (how) => {
      const options = layer === undefined ? [] : [['layer', layer]];
      const { passages } = await explain(model, [hit.docid], options, { signal: how.signal });
      const found = passages[0];
      const shown = found.maps[0].layer;
      const words = byWords(found);
      const label = h('output', null, `${shown} of ${found.n_layers}`);
      const slider = h('input', { type: 'range', min: 0, max: found.n_layers, value: String(shown),
        oninput: (event) => { label.textContent = `${event.target.value} of ${found.n_layers}`; },
        onchange: (event) => show(event.target.value) });
      const chooseModel = (event) => {
        model = event.target.value;
        show();
      };
      return [
        h('p', { class: 'lead' }, 'Cosine similarity of the words as the model sees them, in one of its layers: layer 0 knows the '
          + 'words alone, the last one their context. CEDR counts what is similar, and how much.'),
        h('div', { class: 'choices' },
          field('Model', select(models, model, chooseModel)),
          field('Layer', slider), label),
        map(words), h('h3', null, 'The most similar words'), strongest(words),
      ].flat();
    });
  }

  show();
}
