// Where a hit comes from: a small slope chart of its ranks, from the first ranking to the last.

import { h, svg } from './dom.js';
import { partsOf } from './parts.js';

const STEP = 80; // px between two rankings
const TOP = 16, HEIGHT = 28, BELOW = 16;
const BOW = 28; // px that a line bends upwards to pass another ranking
const DOT = 10;
const NOT_IN_IT = '–';
const LABEL = 13; // characters of a ranking's name

/** The kind of a ranking: 'dense', 'sparse', 'fused' or 'rerank'. */
export function kindOf(name, fusions) {
  if (name.includes('@')) return 'rerank';
  if (fusions.includes(name)) return 'fused';
  return name === 'dense' ? 'dense' : partsOf('kind', name)[0] ?? 'sparse';
}

/** A ranking's name without options and '-demo', cut to fit. */
function shortName(name) {
  const short = name.split(':', 1)[0].replace('-demo@', '@');
  return short.length > LABEL ? `${short.slice(0, LABEL - 1)}…` : short;
}

/** Pairs of rankings that a line joins: each system and the ranking after them, then each and the next. */
function edges(kinds) {
  const firsts = kinds.flatMap((kind, place) => (kind === 'dense' || kind === 'sparse' ? [place] : []));
  const next = firsts.length;
  const joined = next < kinds.length ? firsts.map((place) => [place, next]) : [];
  for (let place = next; place + 1 < kinds.length; place += 1) joined.push([place, place + 1]);
  return joined;
}

/** The ranks in words: 'dense 3, bm25 below 100, interleave 2, monobert-demo@20 not in it'. */
export function inWords(places) {
  return places.map((own) => `${own.ranking} ${own.rank ?? (own.below ? `below ${own.below}` : 'not in it')}`).join(', ');
}

/** The greatest rank that any hit has in any ranking. */
export function deepestRank(hits) {
  return Math.max(...hits.flatMap((hit) => hit.provenance.map((own) => own.rank ?? 1)));
}

function rankOf(place) {
  return String(place.rank ?? (place.below ? `>${place.below}` : NOT_IN_IT));
}

/** Whether a reranker gives a hit another rank. */
export function moves(places, fusions) {
  return places.some((own, at) => at > 0 && kindOf(own.ranking, fusions) === 'rerank' && own.rank !== places[at - 1].rank);
}

/** The ranks in a line: 'dense 3 · bm25 12 → rrf 4'. */
function inLine(places, fusions) {
  const sign = (own) => (['dense', 'sparse'].includes(kindOf(own.ranking, fusions)) ? ' · ' : ' → ');
  return `Ranks: ${places.map((own, at) => `${at ? sign(own) : ''}${own.ranking} ${rankOf(own)}`).join('')}`;
}

/**
 * The ranks of a hit: a slope chart where a reranker moves it, a line of text otherwise.
 * places: [{ranking, rank, score, below}] in the order of the rankings; fusions: names of fusion methods; deepest: the greatest
 * rank that any hit has, so that the lines of all hits have one scale.
 */
export function journey(places, fusions, deepest) {
  if (!moves(places, fusions)) return h('p', { class: 'journey' }, inLine(places, fusions));
  const kinds = places.map((own) => kindOf(own.ranking, fusions));
  const scale = Math.log2(Math.max(deepest, 10));
  const x = (place) => (place + 0.5) * STEP;
  const y = (rank) => TOP + (rank === null ? 1 : Math.log2(rank) / scale) * HEIGHT;
  const width = places.length * STEP, height = TOP + HEIGHT + DOT + BELOW + 2;
  const shown = edges(kinds).filter(([from, to]) => places[from].rank !== null || kinds[to] === 'rerank');
  const lines = shown.map(([from, to]) => {
    const [start, end] = [places[from].rank, places[to].rank];
    const missing = start === null || end === null;
    const bend = Math.min(y(start), y(end)) - BOW;
    const path = to - from > 1 ? `Q ${(x(from) + x(to)) / 2} ${bend} ${x(to)} ${y(end)}` : `L ${x(to)} ${y(end)}`;
    return svg('path', { class: `slope ${kinds[from]}${missing ? ' missing' : ''}`, d: `M ${x(from)} ${y(start)} ${path}` });
  });
  const dots = places.map((own, place) => svg('g', { class: `dot ${kinds[place]}${own.rank === null ? ' missing' : ''}` },
    svg('title', null, inWords([own]) + (own.rank === null ? '' : `, score ${own.score}`)),
    svg('circle', { cx: x(place), cy: y(own.rank), r: DOT }),
    svg('text', { class: 'rank', x: x(place), y: y(own.rank), dy: '0.36em' }, rankOf(own)),
    svg('text', { class: 'label', x: x(place), y: height - 5 }, shortName(own.ranking))));
  return svg('svg', { class: 'journey', role: 'img', 'aria-label': `Ranks: ${inWords(places)}`, width, height,
    viewBox: `0 0 ${width} ${height}` }, lines, dots);
}
