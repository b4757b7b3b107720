// Two rankings of one question side by side, with a line from each passage's rank on the left to its rank on the right.

import { h, marked, openDialog, svg } from './dom.js';
import { deepestRank, journey } from './journey.js';
import { gradeBadge, shownDocument, stepsStrip, warnings } from './results.js';
import { docidText, measure, move, percent, pipelineName, score, signed } from './words.js';

const SIDES = ['a', 'b'];
const ROW = 92; // px, as in compare.css
const WIDE = 72; // px between the two lists
const ARROW = 10; // px
const CONTEXT = 40; // characters before a passage's first word of the question

/** The rank of each hit, by docid. */
function ranksOf(hits) {
  return new Map(hits.map((hit, index) => [hit.docid, index + 1]));
}

/** A hit's rank on a side in words, of a move {docid, a, b}: below the depth, '>DEPTH'; null where the side lacks it. */
function rankInWords(movement, side, depths) {
  if (movement[side] !== null) return String(movement[side]);
  return depths[side] === null ? null : `>${depths[side]}`;
}

/** The mark of a hit that the other side does not show. */
function aloneMark(side, otherSide, movement, depths) {
  const far = rankInWords(movement, otherSide, depths);
  const text = far === null ? `only in ${side.toUpperCase()}` : `${otherSide.toUpperCase()}: ${far}`;
  return { text, kind: 'alone' };
}

/** A hit in the list of a side; mark: {text, kind}, or null. */
function row(hit, rank, mark, side, onopen) {
  const relevant = hit.grade > 0;
  const head = h('span', { class: 'row-head' },
    h('span', { class: 'rank' }, String(rank)),
    h('span', { class: 'docid-label wide-only' }, 'docid'),
    h('span', { class: 'docid' }, docidText(hit.docid)),
    relevant && h('span', { class: 'badge good' }, '✓', h('span', { class: 'wide-only' }, ' relevant')),
    mark && h('span', { class: `move ${mark.kind}` }, mark.text));
  const open = h('button', { type: 'button', onclick: () => onopen(hit) },
    head,
    h('span', { class: 'extract' }, extract(hit.display)));
  return h('li', { class: `pair-row${relevant ? ' relevant' : ''}`, 'data-docid': hit.docid, 'data-side': side }, open);
}

/** The parts of a passage from shortly before its first word of the question, as a row has little room. */
function extract(parts) {
  const first = parts.findIndex((part) => part.match);
  if (first < 1) return marked(parts);
  let before = parts.slice(0, first).map((part) => part.text).join('');
  if (before.length > CONTEXT + 10) before = `…${before.slice(-CONTEXT).replace(/^\S*\s/, '')}`;
  return [before, ...marked(parts.slice(first))];
}

/** The middle of a row, in px from the top. */
function middleOf(rank) {
  return (rank - 0.5) * ROW;
}

/** A line from a rank on the left to one on the right; x1 and x2: where it begins and ends, in px. */
function line(docid, kind, { from, to, x1, x2 }) {
  const bend = WIDE / 2;
  const d = `M ${x1} ${middleOf(from)} C ${bend} ${middleOf(from)} ${bend} ${middleOf(to)} ${x2} ${middleOf(to)}`;
  return svg('path', { class: `link ${kind}`, 'data-docid': docid, d });
}

/** The lines of all hits: with an arrow from left to right, or a stub where the other side does not show the hit. */
function links(left, right) {
  const ranks = { a: ranksOf(left), b: ranksOf(right) };
  const elements = [];
  for (const { docid } of left) {
    const from = ranks.a.get(docid);
    const to = ranks.b.get(docid);
    if (to === undefined) {
      elements.push(line(docid, 'alone', { from, to: from, x1: 2, x2: WIDE / 5 }));
    } else {
      const { kind } = move(from, to);
      elements.push(line(docid, kind, { from, to, x1: 2, x2: WIDE - ARROW }));
      elements.push(svg('path', { class: `end ${kind}`, d: `M ${WIDE - 2} ${middleOf(to)} l -10 -5 v 10 z` }));
    }
  }
  for (const { docid } of right) {
    const rank = ranks.b.get(docid);
    if (!ranks.a.has(docid)) elements.push(line(docid, 'alone', { from: rank, to: rank, x1: WIDE - 2, x2: (4 * WIDE) / 5 }));
  }
  return elements;
}

/** Two rankings as lists with lines between them; found: the comparison; names: of the sides; onopen(hit). */
function sideBySide(found, names, onopen) {
  const hits = { a: found.a.candidates, b: found.b.candidates };
  const ranks = { a: ranksOf(hits.a), b: ranksOf(hits.b) };
  const movements = new Map(found.moves.map((own) => [own.docid, own]));

  /** Only hits of B say where they come from; a hit of A that B shows has no mark. */
  function markOf(docid, side, otherSide) {
    const other = ranks[otherSide].get(docid);
    if (other === undefined) return aloneMark(side, otherSide, movements.get(docid), found.depths);
    return side === 'b' ? move(other, ranks.b.get(docid)) : null;
  }

  function list(side, otherSide) {
    const rows = hits[side].map((hit, index) => row(hit, index + 1, markOf(hit.docid, side, otherSide), side, onopen));
    return h('ol', { class: 'pair-list', 'aria-label': names[side] }, rows.length ? rows : h('li', { class: 'note' }, 'No hits'));
  }

  const height = ROW * Math.max(hits.a.length, hits.b.length, 1);
  const size = { width: WIDE, height, viewBox: `0 0 ${WIDE} ${height}`, preserveAspectRatio: 'none' };
  const drawing = svg('svg', { class: 'links', ...size, 'aria-hidden': 'true' }, links(hits.a, hits.b));
  const box = h('div', { class: 'pair' }, list('a', 'b'), drawing, list('b', 'a'));
  const light = (event) => {
    const docid = event.target.closest('[data-docid]')?.dataset.docid;
    for (const own of box.querySelectorAll('[data-docid]')) own.classList.toggle('lit', own.dataset.docid === docid);
  };
  for (const name of ['pointerover', 'pointerleave', 'focusin']) box.addEventListener(name, light);
  return box;
}

/** Show a hit's whole passage in the dialog, with its ranks on each side that has it. */
function openPassage(hit, found, names, about) {
  const origins = [];
  for (const side of SIDES) {
    const own = found[side].candidates.find((other) => other.docid === hit.docid);
    if (own) {
      const chart = journey(own.provenance, about.fusions, deepestRank([own]));
      origins.push(h('h3', null, names[side]), h('div', { class: 'journey-place' }, chart));
    }
  }
  const text = hit.passage === undefined ? h('p', { class: 'passage' }, marked(hit.display)) : shownDocument(about, hit, found.query.text);
  openDialog(docidText(hit.docid), gradeBadge(hit.grade), text, ...origins);
}

function tile(value, label, title) {
  return h('div', { class: 'tile', title }, h('b', null, value), h('span', null, label));
}

/** The measures of both sides, and their differences. */
function measuresTable(judged) {
  const { a, b } = judged.measures;
  const rows = Object.keys(a).map((name) => {
    const difference = b[name] - a[name];
    let kind = 'soft';
    if (difference > 0) kind = 'up';
    if (difference < 0) kind = 'down';
    return h('tr', null,
      h('th', { scope: 'row' }, name),
      h('td', null, measure(a[name])),
      h('td', null, measure(b[name])),
      h('td', { class: kind }, signed(difference)));
  });
  const heads = ['A', 'B', 'B − A'].map((own) => h('th', { scope: 'col' }, own));
  return h('table', { class: 'figures' },
    h('caption', null, `Topic ${judged.qid}, ${Object.keys(judged.relevant).length} relevant`),
    h('thead', null, h('tr', null, h('td'), heads)),
    h('tbody', null, rows));
}

/** How alike the rankings are, and how good, if the question is a judged topic. */
function figures(found) {
  const meaning = 'p = 0.9: 1 where the rankings agree, and the top counts most';
  return h('div', { class: 'tiles' },
    tile(percent(found.overlap), 'of hits in common'),
    tile(score(found.rbo), 'rank-biased overlap', meaning),
    found.judged ? measuresTable(found.judged)
      : h('p', { class: 'note' }, 'The question is not a judged topic: no measures.'));
}

/** The elements of a comparison of two pipelines. */
export function comparison({ about, found }) {
  const names = {};
  for (const side of SIDES) {
    const pipeline = { ...found[side], fusion: found[side].fusion ?? '' };
    names[side] = `${side.toUpperCase()}: ${pipelineName(pipeline)}`;
  }
  const heads = SIDES.map((side) => h('div', null, h('h2', null, names[side]), warnings(found[side]), stepsStrip(found[side], about.fusions)));
  return [figures(found),
    h('div', { class: 'pair-heads' }, heads),
    h('p', { class: 'note' }, 'Arrows lead from A to B: green where B ranks a passage higher, orange where lower.'),
    sideBySide(found, names, (hit) => openPassage(hit, found, names, about))];
}
