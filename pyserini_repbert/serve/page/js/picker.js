// The controls of a pipeline: systems, fusion, rerankers.

import { button, field, h, select } from './dom.js';
import { fusionOf, ownFusion, systemsOf } from './state.js';

const FUSIONS = { interleave: 'interleave', rrf: 'reciprocal ranks (rrf)', interpolation: 'interpolation of scores' };
const NORMALIZED = { none: 'as they are', minmax: '0 to 1 (minmax)', zscore: 'z-scores (zscore)', max: 'share of the best (max)', background: 'share above the background' };
const MOST_READ = 20; // hits that a reranker takes at first
const MOST_COMPARED = 5; // that duoBERT takes at first: k (k − 1) inferences
const METHODS = ['', 'binary', 'min', 'max', 'sample=3']; // options of duoBERT; the first is its default, 'sum'

/** {name, k, options} of a stage such as 'duobert-demo@5:sample=2'; a malformed one is left to the service. */
function parseStage(text) {
  const [, name, k, options = ''] = /^(.*)@(\d+)(?::(.*))?$/s.exec(text) ?? [text, text, 10];
  return { name, k: Number(k), options };
}

/** The text of a stage. */
function stageText({ name, k, options }) {
  return `${name}@${k}${options && `:${options}`}`;
}

/** The system of a reranker; undefined for one that the service lacks. */
function systemOf(about, name) {
  return about.rerankers.find((own) => own.name === name)?.system;
}

function number(value, { min, max, step = 1 }, onchange) {
  return h('input', { type: 'number', value: String(value), min, max, step, onchange, inputmode: 'decimal' });
}

/** The controls of a pipeline of an index; onchange(pipeline) is called at each change; label: a heading, or null. */
export function picker({ about, pipeline, onchange, label }) {
  let now = pipeline;
  const box = h('div', { class: 'picker' });
  const changed = (change) => {
    now = { ...now, ...change };
    draw();
    onchange(now);
  };

  function systems() {
    const effective = systemsOf(about, now);
    const known = [...about.systems, ...effective.filter((own) => !about.systems.includes(own))];
    const toggle = (name, on) => {
      const wanted = new Set(on ? [...effective, name] : effective.filter((own) => own !== name));
      const system = known.filter((own) => wanted.has(own));
      changed({ system: system.length ? system : about.systems.slice(0, 1), weights: [] });
    };
    const pills = known.map((name) => h('label', { class: 'pill' },
      h('input', { type: 'checkbox', checked: effective.includes(name), value: name,
        onchange: (event) => toggle(name, event.target.checked) }),
      h('span', null, name)));
    return h('fieldset', { class: 'systems' }, h('legend', null, 'Systems'), pills);
  }

  function fusion() {
    const fused = systemsOf(about, now);
    if (fused.length < 2) return null;
    const offered = about.fusions.map((name) => [name, FUSIONS[name] ?? name]);
    const usual = ownFusion(about, fused).fusion;
    const chosen = fusionOf(about, now);
    const choose = ({ target: { value } }) => changed({ fusion: value === usual ? '' : value, weights: [], normalize: '', rrf_k: null });
    const method = field('Fusion', select(offered, chosen, choose));
    if (chosen === 'interpolation') return [method, weightsOf(fused), normalization(fused)];
    if (chosen === 'rrf') return [method, rrfConstant()];
    return [method];
  }

  /** A weight for each of the systems that are fused; at first the index's own, or equal ones. */
  function weightsOf(fused) {
    const equal = Number((1 / fused.length).toFixed(2));
    const own = ownFusion(about, fused).weights;
    const usual = own.length ? own : fused.map(() => equal);
    const weights = now.weights.length === fused.length ? now.weights : usual;
    return fused.map((name, index) => {
      const weigh = (event) => changed({ weights: weights.with(index, Number(event.target.value)) });
      return field(`Weight of ${name}`, number(weights[index], { min: 0, step: 0.05 }, weigh));
    });
  }

  /** What is done to scores; at first as the index does it. */
  function normalization(fused) {
    const usual = ownFusion(about, fused).normalize;
    const choose = ({ target: { value } }) => changed({ normalize: value === usual ? '' : value });
    return field('Scores', select(Object.entries(NORMALIZED), now.normalize || usual, choose));
  }

  function rrfConstant() {
    const choose = (event) => changed({ rrf_k: Number(event.target.value) });
    return field('RRF constant k', number(now.rrf_k ?? 60, { min: 0, max: 1e6 }, choose));
  }

  const mostOf = (name) => (systemOf(about, name) === 'duobert' ? MOST_COMPARED : Infinity);

  function stageRow(text, index) {
    const stage = parseStage(text);
    const system = systemOf(about, stage.name);
    const put = (change) => changed({ rerank: now.rerank.with(index, stageText({ ...stage, ...change })) });
    const offered = [...new Set([...about.rerankers.map((own) => own.name), stage.name])];
    const renamed = (event) => {
      const name = event.target.value;
      put({ name, k: Math.min(stage.k, mostOf(name)), options: '' });
    };
    const deepened = (event) => put({ k: Math.max(1, Math.round(Number(event.target.value)) || 1) });
    const methods = [...new Set([...METHODS, stage.options])].map((own) => [own, own || 'sum']);
    const aggregated = (event) => put({ options: event.target.value });
    const remove = () => changed({ rerank: now.rerank.toSpliced(index, 1) });
    return h('li', { class: 'stage' },
      field('Reranker', select(offered, stage.name, renamed)),
      field('of the best', number(stage.k, { min: 1, max: about.limits.rerank_depth }, deepened)),
      system === 'duobert' && field('aggregated by', select(methods, stage.options, aggregated)),
      button('Remove', remove, { class: 'quiet', 'aria-label': `Remove ${stage.name}` }));
  }

  function stages() {
    const add = () => {
      const used = now.rerank.map((own) => parseStage(own));
      const name = (about.rerankers.find((own) => own.system === (used.length ? 'duobert' : 'monobert'))
        ?? about.rerankers[0]).name;
      const k = Math.min(MOST_READ, mostOf(name), ...used.map((own) => own.k));
      changed({ rerank: [...now.rerank, stageText({ name, k, options: '' })] });
    };
    if (!about.rerankers.length) return h('p', { class: 'note' }, 'This service has no rerankers.');
    return h('fieldset', { class: 'stages' }, h('legend', null, 'Rerankers'),
      now.rerank.length ? h('ol', null, now.rerank.map(stageRow)) : h('p', { class: 'note' }, 'No reranker'),
      now.rerank.length < 4 && button(now.rerank.length ? 'Add a stage' : 'Add a reranker', add, { class: 'quiet add' }));
  }

  function draw() {
    const controls = () => [...box.querySelectorAll('input, select, button')];
    const focused = controls().indexOf(document.activeElement);
    box.replaceChildren(...[label && h('h2', null, label), systems(), fusion(), stages()].flat(2).filter(Boolean));
    if (focused >= 0) controls()[focused]?.focus();
  }

  draw();
  return box;
}
