// CEDR: how similar each word of the question is to each word of the passage, in a layer of the model, as a heat map.

import { field, h, select, svg } from './dom.js';
import { joined, score } from './words.js';

const WIDE = 15, HIGH = 22, HEAD = 74;
const BEST = 3; // passage words listed for each word of the question

/** The words of question and passage, and how similar: the most similar pieces count. */
function byWords(found) {
  const [rows, columns] = [joined(found.query_tokens), joined(found.passage_tokens)];
  const values = rows.map((row) => columns.map((column) => Math.max(...row.pieces.flatMap((i) => column.pieces.map((j) => found.maps[0].values[i][j])))));
  return { rows: rows.map((own) => own.text), columns: columns.map((own) => own.text), values };
}

function map({ rows, columns, values }) {
  const flat = values.flat();
  const low = Math.min(...flat), high = Math.max(...flat), span = high - low || 1;
  const readout = h('p', { class: 'readout', 'aria-hidden': 'true' }, `cosine from ${score(low)} (light) to ${score(high)} (dark)`);
  const cells = values.flatMap((row, i) => row.map((value, j) => svg('rect', { class: 'cell', x: j * WIDE, y: HEAD + i * HIGH,
    width: WIDE - 1, height: HIGH - 1, 'fill-opacity': (0.03 + (0.97 * ((value - low) / span) ** 2)).toFixed(3), 'data-i': i, 'data-j': j })));
  const heads = columns.map((token, j) => svg('text', { class: 'token', transform: `translate(${j * WIDE + WIDE / 2 + 4} ${HEAD - 5}) rotate(-90)` }, token));
  const over = (event) => {
    const { i, j } = event.target.dataset ?? {};
    if (i !== undefined) readout.textContent = `${rows[i]} · ${columns[j]}: ${score(values[i][j])}`;
  };
  const drawing = svg('svg', { width: columns.length * WIDE, height: HEAD + rows.length * HIGH, role: 'img', class: 'heat',
    'aria-label': `Similarity of ${rows.length} words of the question and ${columns.length} of the passage`, onpointerover: over },
  heads, cells);
  const names = h('ol', { class: 'heat-rows', 'aria-hidden': 'true' }, rows.map((token) => h('li', null, token)));
  return [h('div', { class: 'heat-place' }, names, h('div', { class: 'scroll', tabindex: '0', role: 'region',
    'aria-label': 'Heat map, scrolls to the side' }, drawing)), readout];
}

function strongest({ rows, columns, values }) {
  return h('ul', { class: 'strongest' }, rows.map((token, i) => {
    const best = new Map();
    [...values[i].keys()].sort((one, other) => values[i][other] - values[i][one]).forEach((j) => {
      const word = columns[j];
      if (best.size < BEST && !best.has(word)) best.set(word, values[i][j]);
    });
    return h('li', null, h('b', null, token), ' ', [...best].map(([word, value], place) => [place ? ', ' : '', word,
      h('span', { class: 'soft' }, ` ${score(value)}`)]));
  }));
}

/** Show the similarity map of one passage, with a choice of CEDR model and layer. */
export function cedrView({ hit, models, explain, load }) {
  let model = models.find((own) => own.includes('knrm')) ?? models[0];

  function show(layer) {
    load('CEDR reads the passage', async (how) => {
      const found = (await explain(model, [hit.docid], layer === undefined ? [] : [['layer', layer]], { signal: how.signal })).passages[0];
      const [now, words] = [found.maps[0].layer, byWords(found)];
      const label = h('output', null, `${now} of ${found.n_layers}`);
      return [
        h('p', { class: 'lead' }, 'Cosine similarity of the words as the model sees them, in one of its layers: layer 0 knows the '
          + 'words alone, the last one their context. CEDR counts what is similar, and how much.'),
        h('div', { class: 'choices' },
          field('Model', select(models, model, (event) => { model = event.target.value; show(); })),
          field('Layer', h('input', { type: 'range', min: 0, max: found.n_layers, value: String(now),
            oninput: (event) => { label.textContent = `${event.target.value} of ${found.n_layers}`; },
            onchange: (event) => show(event.target.value) })), label),
        map(words), h('h3', null, 'The most similar words'), strongest(words),
      ].flat();
    });
  }

  show();
}
