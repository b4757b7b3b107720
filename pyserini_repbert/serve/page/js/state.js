// The state of the laboratory, to its address and back. The address has a view: one without it is the reader's page.

import { partsOf } from './parts.js';

const OF_B = 'b.'; // begins the parameters of the right side
const HITS = 10;
const VIEWS = ['search', 'compare', 'judge'];

/** A pipeline of the index's default systems, which are fused in the index's own way. */
export const BARE = { system: [], fusion: '', weights: [], normalize: '', rrf_k: null, rerank: [] };

function pipelineOf(parameters, prefix) {
  const all = (name) => parameters.getAll(prefix + name).filter(Boolean);
  const parted = (name) => all(name).flatMap((own) => own.split(',').map((part) => part.trim()));
  return {
    system: parted('system'),
    fusion: all('fusion')[0] ?? '',
    weights: parted('weights').map(Number),
    normalize: all('normalize')[0] ?? '',
    rrf_k: all('rrf_k').map(Number)[0] ?? null,
    rerank: all('rerank'),
  };
}

/** The pipelines that a state's view shows. */
export function pipelinesOf(state) {
  return state.view === 'compare' ? [state.a, state.b] : [state.a];
}

/** The systems of a pipeline: the index's default for none; for 'hybrid', dense and BM25, or the learned ranking in its place. */
export function systemsOf(about, { system }) {
  const hybrid = ['dense', about.systems.includes('bm25') ? 'bm25' : 'sparse'];
  return (system.length ? system : about.default).flatMap((own) => (own === 'hybrid' ? hybrid : [own]));
}

/** How a system scans vectors, {exact, flag}; nothing for exact search. */
export const scanOf = (about, system) => partsOf('scan', about, system)[0];

/** The ranking of exact search whose hits a system finds. */
export function exactOf(about, system) {
  return scanOf(about, system)?.exact ?? system;
}

/** How an index fuses systems unless it is told: {fusion, weights, normalize}; a collection has a way of its own for all its rankings. */
export function ownFusion(about, systems) {
  const fused = about.systems.slice(0, about.weights?.length ?? 0);
  const exact = systems.map((own) => exactOf(about, own));
  if (systems.length !== fused.length || !fused.every((own) => exact.includes(own))) return { fusion: 'interleave', weights: [], normalize: 'minmax' };
  const { fusion, normalize } = about;
  return { fusion, weights: exact.map((own) => about.weights[fused.indexOf(own)]), normalize };
}

/** How a pipeline fuses its systems. */
export function fusionOf(about, pipeline) {
  return pipeline.fusion || ownFusion(about, systemsOf(about, pipeline)).fusion;
}

/** The state in an address's query string. */
export function stateOf(search) {
  const parameters = new URLSearchParams(search);
  const hits = Number(parameters.get('hits') ?? HITS);
  const view = parameters.get('view');
  return {
    view: VIEWS.includes(view) ? view : 'search',
    index: parameters.get('index') ?? '',
    q: parameters.get('q') ?? '',
    like: parameters.get('q') ? '' : parameters.get('like') ?? '',
    hits: Number.isInteger(hits) ? hits : HITS,
    filter: parameters.get('filter') ?? '',
    a: pipelineOf(parameters, ''),
    b: pipelineOf(parameters, OF_B),
    open: parameters.get('open') ?? '',
    why: parameters.get('why') ?? '',
  };
}

/** What a pipeline has that `BARE` has not, as [name, value] pairs: of one system, nothing about fusion. */
export function settingsOf(pipeline) {
  const { system, rerank } = pipeline;
  return Object.entries(system.length > 1 ? pipeline : { system, rerank }).filter(([name, value]) => String(value) !== String(BARE[name]));
}

/** The settings of a pipeline as parameters of an address. */
export function pipelineParameters(pipeline, prefix = '') {
  return settingsOf(pipeline).flatMap(([name, values]) => [values].flat().map((own) => [prefix + name, own]));
}

/** What a state's view asks: a question, or a document in its place; '' for nothing. */
export function askedOf({ view, q, like }) {
  return q.trim() || (view === 'search' ? like : '');
}

/** The filter of a state as parameters of an address; none without a filter. */
export function filterParameters({ filter }) {
  return filter ? [['filter', filter]] : [];
}

/** The body of a request for a comparison. */
export function comparisonBody({ q, hits, ...state }) {
  const [a, b] = [state.a, state.b].map((own) => Object.fromEntries([...settingsOf(own), ...filterParameters(state)]));
  return { query: q, hits, a, b, display: true };
}

/** The parameters of a state that its view has beside the question. */
function viewParameters({ view, hits, filter, a, b, open, why }) {
  if (view === 'judge') return [['open', open]];
  const shared = [['hits', hits === HITS ? '' : hits], ['filter', filter], ...pipelineParameters(a)];
  if (view === 'compare') return [...shared, ...pipelineParameters(b, OF_B)];
  return [...shared, ['open', open], ['why', open && why]];
}

/** The address of a state, relative to the page. */
export function addressOf(state) {
  const { view, index, q, like } = state;
  const pairs = [['view', view], ['index', index], ['q', q], ['like', view === 'search' ? like : ''], ...viewParameters(state)].filter(([, value]) => value !== '');
  return `./?${new URLSearchParams(pairs)}`;
}
