// The state of the page, to its address and back.

const SIDES = { a: '', b: 'b.' };
export const VIEWS = ['search', 'compare'];
export const HITS = 10;

/** A pipeline of the index's default system. */
export const BARE = { system: [], fusion: 'interleave', weights: [], normalize: 'none', rrf_k: null, rerank: [] };

function pipelineOf(parameters, prefix) {
  const listed = parameters.getAll(`${prefix}system`).flatMap((own) => own.split(','));
  const number = (name) => {
    const given = parameters.get(prefix + name);
    return given === null || given === '' || Number.isNaN(Number(given)) ? null : Number(given);
  };
  return {
    system: listed.map((own) => own.trim()).filter(Boolean),
    fusion: parameters.get(`${prefix}fusion`) || 'interleave',
    weights: parameters.getAll(`${prefix}weights`).map(Number).filter(Number.isFinite),
    normalize: parameters.get(`${prefix}normalize`) || 'none',
    rrf_k: number('rrf_k'),
    rerank: parameters.getAll(`${prefix}rerank`).filter(Boolean),
  };
}

/** The state in an address's query string. */
export function stateOf(search) {
  const parameters = new URLSearchParams(search);
  const view = parameters.get('view');
  const hits = Number(parameters.get('hits') ?? HITS);
  return {
    view: VIEWS.includes(view) ? view : 'search',
    index: parameters.get('index') ?? '',
    q: parameters.get('q') ?? '',
    hits: Number.isInteger(hits) ? hits : HITS,
    a: pipelineOf(parameters, SIDES.a),
    b: pipelineOf(parameters, SIDES.b),
    open: parameters.get('open') ?? '',
    why: parameters.get('why') ?? '',
  };
}

/** The fusion of several systems {fusion, weights, normalize, rrf_k}, without settings that have no effect. */
export function fusionSettings({ fusion, weights, normalize, rrf_k }) {
  const settings = { fusion };
  if (fusion === 'interpolation' && weights.length) settings.weights = weights;
  if (fusion === 'interpolation' && normalize !== 'none') settings.normalize = normalize;
  if (fusion === 'rrf' && rrf_k !== null) settings.rrf_k = rrf_k;
  return settings;
}

/** A pipeline as [name, value] pairs, without settings that have no effect. */
export function pipelineParameters(pipeline, prefix = '') {
  const pairs = pipeline.system.map((own) => [`${prefix}system`, own]);
  if (pipeline.system.length > 1) {
    pairs.push(...Object.entries(fusionSettings(pipeline)).flatMap(([name, value]) => [value].flat().map((own) => [`${prefix}${name}`, own])));
  }
  return [...pairs, ...pipeline.rerank.map((own) => [`${prefix}rerank`, own])];
}

/** The body of a request for a comparison. */
export function comparisonBody(state) {
  const side = ({ system, rerank, ...fusion }) => ({ system, rerank, ...(system.length > 1 ? fusionSettings(fusion) : {}) });
  return { query: state.q, hits: state.hits, a: side(state.a), b: side(state.b), display: true };
}

/** The address of a state, relative to the page. */
export function addressOf(state) {
  const pairs = [];
  if (state.view !== 'search') pairs.push(['view', state.view]);
  if (state.index) pairs.push(['index', state.index]);
  if (state.q) pairs.push(['q', state.q.toWellFormed?.() ?? state.q]);
  if (state.hits !== HITS) pairs.push(['hits', state.hits]);
  pairs.push(...pipelineParameters(state.a));
  if (state.view === 'compare') pairs.push(...pipelineParameters(state.b, SIDES.b));
  if (state.view === 'search' && state.open) {
    pairs.push(['open', state.open]);
    if (state.why) pairs.push(['why', state.why]);
  }
  const text = new URLSearchParams(pairs).toString();
  return text ? `./?${text}` : './';
}
