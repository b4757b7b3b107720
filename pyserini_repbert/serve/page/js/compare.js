// Two rankings of one question side by side, with a line from each passage's rank on the left to its rank on the right.

import { h, marked, openDialog, svg } from './dom.js';
import { deepestRank, journey } from './journey.js';
import { gradeBadge, stepsStrip } from './results.js';
import { measure, move, percent, pipelineName, score, signed } from './words.js';

const ROW = 92; // px, as in compare.css
const WIDE = 72;

/**
 * The mark of a hit: its move from A to B, or where the other side has it; null for a hit of A that B shows.
 * other: its rank among the hits that the other side shows; far: in words, its rank below them.
 */
function moveMark(rank, other, side, far) {
  if (other === undefined) return { text: far ? `${'BA'[side]}: ${far}` : `only in ${'AB'[side]}`, kind: 'alone' };
  return side ? move(other, rank) : null;
}

function row(hit, rank, mark, side, onopen) {
  return h('li', { class: `pair-row${hit.grade > 0 ? ' relevant' : ''}`, 'data-docid': hit.docid, 'data-side': side },
    h('button', { type: 'button', onclick: () => onopen(hit, rank) },
      h('span', { class: 'row-head' }, h('span', { class: 'rank' }, String(rank)), h('span', { class: 'docid-label wide-only' }, 'docid'), h('span', { class: 'docid' }, hit.docid),
        hit.grade > 0 && h('span', { class: 'badge good' }, '✓', h('span', { class: 'wide-only' }, ' relevant')),
        mark && h('span', { class: `move ${mark.kind}` }, mark.text)),
      h('span', { class: 'extract' }, extract(hit.display))));
}

/** The parts of a passage from shortly before its first word of the question, as a row has little room. */
function extract(parts) {
  const first = parts.findIndex((own) => own.match);
  if (first < 1) return marked(parts);
  const before = parts.slice(0, first).map((own) => own.text).join('');
  return [before.length > 50 ? `…${before.slice(-40).replace(/^\S*\s/, '')}` : before, ...marked(parts.slice(first))];
}

/**
 * Two rankings as lists with lines between them; hits are {docid, display, grade, provenance}.
 * moves: the hits' ranks on both sides {docid, a, b}; depths: how many ranks of each side {a, b} are known, null for all.
 */
function sideBySide(left, right, { moves, depths }, names, onopen) {
  const far = new Map(moves.map((own) => [own.docid, ['b', 'a'].map((side) => own[side] ?? (depths[side] && `>${depths[side]}`))]));
  const ranks = [left, right].map((hits) => new Map(hits.map((own, place) => [own.docid, place + 1])));
  const lists = [left, right].map((hits, side) => h('ol', { class: 'pair-list', 'aria-label': names[side] }, hits.length
    ? hits.map((hit, place) => row(hit, place + 1, moveMark(place + 1, ranks[1 - side].get(hit.docid), side, far.get(hit.docid)[side]), 'ab'[side], onopen))
    : h('li', { class: 'note' }, 'No hits')));
  const height = ROW * Math.max(left.length, right.length, 1);
  const y = (rank) => (rank - 0.5) * ROW;
  const line = (docid, kind, from, to, x1, x2) => svg('path', { class: `link ${kind}`, 'data-docid': docid,
    d: `M ${x1} ${y(from)} C ${WIDE / 2} ${y(from)} ${WIDE / 2} ${y(to)} ${x2} ${y(to)}` });
  const lines = left.flatMap((hit, place) => {
    const to = ranks[1].get(hit.docid);
    if (to === undefined) return [line(hit.docid, 'alone', place + 1, place + 1, 2, WIDE / 5)];
    const { kind } = move(place + 1, to);
    return [line(hit.docid, kind, place + 1, to, 2, WIDE - 10),
      svg('path', { class: `end ${kind}`, d: `M ${WIDE - 2} ${y(to)} l -10 -5 v 10 z` })];
  });
  const alone = right.filter((hit) => !ranks[0].has(hit.docid))
    .map((hit) => line(hit.docid, 'alone', ranks[1].get(hit.docid), ranks[1].get(hit.docid), WIDE - 2, (4 * WIDE) / 5));
  const drawing = svg('svg', { class: 'links', width: WIDE, height, viewBox: `0 0 ${WIDE} ${height}`, preserveAspectRatio: 'none',
    'aria-hidden': 'true' }, lines, alone);
  const box = h('div', { class: 'pair' }, lists[0], drawing, lists[1]);
  const light = (event) => {
    const docid = event.target.closest('[data-docid]')?.dataset.docid;
    for (const own of box.querySelectorAll('[data-docid]')) own.classList.toggle('lit', own.dataset.docid === docid);
  };
  for (const name of ['pointerover', 'pointerleave', 'focusin']) box.addEventListener(name, light);
  return box;
}

/** Show a hit's whole passage in the dialog; places: [label, hit] of each side, without a hit where it lacks it. */
function openPassage(hit, places, fusions) {
  const origins = places.filter(([, own]) => own).flatMap(([label, own]) => [h('h3', null, label),
    h('div', { class: 'journey-place' }, journey(own.provenance, fusions, deepestRank([own])))]);
  openDialog(hit.docid, gradeBadge(hit.grade), h('p', { class: 'passage' }, marked(hit.display)), ...origins);
}

function figures(found) {
  const tile = (value, label, title) => h('div', { class: 'tile', title }, h('b', null, value), h('span', null, label));
  const tiles = [tile(percent(found.overlap), 'of hits in common'),
    tile(score(found.rbo), 'rank-biased overlap', 'p = 0.9: 1 where the rankings agree, and the top counts most')];
  if (!found.judged) return h('div', { class: 'tiles' }, tiles, h('p', { class: 'note' }, 'The question is not a judged topic: no measures.'));
  const { a, b } = found.judged.measures;
  const rows = Object.keys(a).map((name) => h('tr', null, h('th', { scope: 'row' }, name), h('td', null, measure(a[name])),
    h('td', null, measure(b[name])), h('td', { class: b[name] > a[name] ? 'up' : b[name] < a[name] ? 'down' : 'soft' }, signed(b[name] - a[name]))));
  return h('div', { class: 'tiles' }, tiles, h('table', { class: 'figures' }, h('caption', null, `Topic ${found.judged.qid}, `
    + `${Object.keys(found.judged.relevant).length} relevant`), h('thead', null, h('tr', null, h('td'),
    ['A', 'B', 'B − A'].map((own) => h('th', { scope: 'col' }, own)))), h('tbody', null, rows)));
}

/** The elements of a comparison of two pipelines. */
export function comparison({ about, found }) {
  const sides = ['a', 'b'].map((own) => found[own]);
  const names = sides.map((own, place) => `${'AB'[place]}: ${pipelineName({ ...own, fusion: own.fusion ?? 'interleave' })}`);
  const open = (hit) => openPassage(hit, sides.map((own, place) => [names[place],
    own.candidates.find((other) => other.docid === hit.docid)]), about.fusions);
  return [figures(found),
    h('div', { class: 'pair-heads' }, sides.map((own, place) => h('div', null, h('h2', null, names[place]), stepsStrip(own, about.fusions)))),
    h('p', { class: 'note' }, 'Arrows lead from A to B: green where B ranks a passage higher, orange where lower.'),
    sideBySide(sides[0].candidates, sides[1].candidates, found, names, open)];
}
