// A text for reading: the marks of light Markdown become elements, all else is text. Every character keeps its place, so that
// words and passages are marked exactly. Patterns take linear time, as texts are anybody's.

import { h } from './dom.js';

const INLINE = [
  // Code, with one or two signs around it: the signs are hidden.
  { pattern: /(``?)([^`\n]{1,500})\1/g, kind: 'code' },
  // The words of a link or a picture stay, its target is hidden.
  { pattern: /(!?\[)([^[\]\n]{1,500})\]\([^()\s]{0,500}\)/g, kind: 'link' },
  { pattern: /(\*\*)(?=\S)([^*\n]{1,500})\*\*/g, kind: 'strong' },
];
const HEADING = /^#{1,6} +/;
// Not '>>>', behind which Python waits.
const QUOTE = /^>(?!>) ?/;
const ITEM = /^(\s*)(?:[-*+•]|\d{1,9}[.)]) +/;
const FENCE = /^\s*(?:```|~~~)/;
const RULE = /^\|?[\s:|-]{3,}$/;

/** The positions in a string of characters, which may take two of its units; both ascend. */
export function unitsOf(text, characters) {
  const units = [];
  let unit = 0;
  let character = 0;
  for (const wanted of characters) {
    while (character < wanted && unit < text.length) {
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      character += 1;
    }
    units.push(unit);
  }
  return units;
}

/** The styles of a line's parts {start, end, kind}; signs that are not text have the kind 'hidden'. */
function inlineStyles(text, start, end) {
  const styles = [];
  const line = text.slice(start, end);
  const isTaken = (from, to) => styles.some((own) => own.kind === 'code' && own.start < to && from < own.end);
  for (const { pattern, kind } of INLINE) {
    for (const match of line.matchAll(pattern)) {
      const from = start + match.index;
      const to = from + match[0].length;
      if (isTaken(from, to)) continue;
      const first = from + match[1].length;
      const last = first + match[2].length;
      styles.push({ start: from, end: first, kind: 'hidden' }, { start: last, end: to, kind: 'hidden' });
      if (kind !== 'link') styles.push({ start: first, end: last, kind });
    }
  }
  return styles;
}

/** A part of a text within its styles and marks. */
function wrapped(text, kinds) {
  let node = text;
  for (const name of ['code', 'strong', 'mark']) if (kinds.has(name)) node = h(name, null, node);
  return kinds.has('passage') ? h('span', { class: 'in-passage' }, node) : node;
}

/** The nodes of `text[start:end]`; ranges: {start, end, kind} of styles and marks, kinds 'hidden', 'code', 'strong', 'mark', 'passage'. */
function nodesOf(text, start, end, ranges) {
  const own = ranges.filter((range) => range.start < end && range.end > start);
  const cuts = new Set([start, end]);
  for (const range of own) {
    cuts.add(Math.max(range.start, start));
    cuts.add(Math.min(range.end, end));
  }
  const sorted = [...cuts].sort((one, other) => one - other);
  const nodes = [];
  sorted.slice(0, -1).forEach((from, number) => {
    const to = sorted[number + 1];
    const kinds = new Set(own.filter((range) => range.start <= from && range.end >= to).map((range) => range.kind));
    if (!kinds.has('hidden')) nodes.push(wrapped(text.slice(from, to), kinds));
  });
  return nodes;
}

/** The lines of a text {start, end}, without their ends. */
function linesOf(text) {
  const lines = [];
  let start = 0;
  while (start <= text.length) {
    const next = text.indexOf('\n', start);
    const end = next < 0 ? text.length : next;
    lines.push({ start, end });
    start = end + 1;
  }
  return lines;
}

/** The blocks of a text {kind, lines}: kind is heading, item, quote, table, code or words; a line has its signs as `hidden`. code: the spans that are code. */
function blocksOf(text, headings, code = []) {
  const blocks = [];
  let last = null;
  let isFenced = false;
  let next = 0; // of the spans of code, which ascend
  const add = (kind, line) => {
    const joins = last && last.kind === kind && !['heading', 'item'].includes(kind);
    if (joins) last.lines.push(line);
    else {
      last = { kind, lines: [line] };
      blocks.push(last);
    }
  };
  for (const line of linesOf(text)) {
    const words = text.slice(line.start, line.end);
    const signs = (match) => ({ ...line, hidden: match[0].length });
    while (next < code.length && code[next].end < line.end) next += 1;
    if (code[next] && code[next].start <= line.start) {
      if (line.start === code[next].start) last = null;
      add('code', line);
    } else if (FENCE.test(words)) {
      isFenced = !isFenced;
      last = null;
    } else if (isFenced) add('code', line);
    else if (!words.trim()) last = null;
    else if (headings.has(line.start)) add('heading', line);
    else if (HEADING.test(words)) add('heading', signs(words.match(HEADING)));
    else if (RULE.test(words)) last = words.includes('|') ? last : null;
    else if (words.includes('\t')) add('table', line);
    else if (ITEM.test(words)) add('item', signs(words.match(ITEM)));
    else if (QUOTE.test(words)) add('quote', signs(words.match(QUOTE)));
    else if (last?.kind === 'item') last.lines.push(line); // goes on with the item
    else add('words', line);
  }
  return blocks;
}

const FLOWING = 50; // characters of a line that was broken because it was full
const KEPT_BREAK = /(?: {2}|\\)$/;
// A cell of a table's row: its column, and its value.
const CELL = /^[\p{L}\p{N}_ ]{1,40}: \S/u;
const CJK = /[\u2e80-\uffef]$/;

/**
 * What stands between two lines of a block, where lines that are full flow on: lines of verse or of an address stay.
 * longest: the length of the block's longest line.
 */
function between(text, line, longest) {
  const words = text.slice(line.start, line.end);
  const isFull = longest >= FLOWING && words.trim().length > longest / 2;
  if (!isFull || KEPT_BREAK.test(words)) return '\n';
  return CJK.test(words) ? '' : ' ';
}

/** The element of a block; data-unit is where it begins. */
function blockElement(text, { kind, lines }, ranges) {
  const unit = { 'data-unit': lines[0].start };
  const contentOf = ({ start, end, hidden = 0 }) => {
    const styles = kind === 'code' ? [] : inlineStyles(text, start + hidden, end);
    return nodesOf(text, start + hidden, end, [...ranges, ...styles]);
  };
  if (kind === 'table') {
    const rows = lines.map(({ start, end }) => {
      let from = start;
      return h('tr', null, text.slice(start, end).split('\t').map((cell) => {
        const nodes = contentOf({ start: from, end: from + cell.length });
        from += cell.length + 1;
        return h('td', null, nodes);
      }));
    });
    return h('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table', ...unit }, h('table', null, h('tbody', null, rows)));
  }
  const longest = Math.max(...lines.map(({ start, end }) => end - start));
  const joint = (line) => (kind === 'code' ? '\n' : between(text, line, longest));
  const content = lines.flatMap((line, number) => (number ? [joint(lines[number - 1]), ...contentOf(line)] : contentOf(line)));
  if (kind === 'heading') return h('p', { class: 'heading', ...unit }, content);
  if (kind === 'code') return h('pre', { tabindex: '0', ...unit }, content);
  if (kind === 'item') {
    const sign = text.slice(lines[0].start, lines[0].start + lines[0].hidden);
    return h('p', { class: 'item', ...unit }, /\d/.test(sign) ? sign : `${sign.replace(/\S+\s*/, '')}• `, content);
  }
  return h(kind === 'quote' ? 'blockquote' : 'p', unit, content);
}

/**
 * The elements of a text.
 * marks: {start, end, kind} with the kind 'mark' or 'passage'; headings: a set of the positions at which lines are headings; code: {start, end} of
 * lines that are code; isCode: of a program, which has no marks of Markdown.
 */
export function proseElements(text, { marks = [], headings = new Set(), code = [], isCode = false }) {
  if (isCode) return [h('pre', { tabindex: '0', 'data-unit': 0 }, nodesOf(text, 0, text.length, marks))];
  let next = 0; // of the marks, which ascend
  return blocksOf(text, headings, code).map((block) => {
    const { start } = block.lines[0];
    const { end } = block.lines.at(-1);
    while (next < marks.length && marks[next].end <= start) next += 1;
    const own = [];
    for (let number = next; number < marks.length && marks[number].start < end; number += 1) own.push(marks[number]);
    return blockElement(text, block, own);
  });
}

/** A text in parts {text, match}, and where those are that match. */
function joinedParts(parts) {
  const marks = [];
  let start = 0;
  for (const own of parts) {
    const end = start + own.text.length;
    if (own.match) marks.push({ start, end, kind: 'mark' });
    start = end;
  }
  return { text: parts.map((own) => own.text).join(''), marks };
}

/** The elements of a text in parts {text, match}. isCode: as in `proseElements`. */
export function proseOfParts(parts, { isCode = false } = {}) {
  const { text, marks } = joinedParts(parts);
  return proseElements(text, { marks, isCode });
}

/**
 * A passage's parts {text, match} as the nodes of a few lines: without marks of Markdown, with one space for each run of white space.
 * isCode: of a program, which has no marks of Markdown.
 */
export function snippetNodes(parts, { isCode = false } = {}) {
  const { text, marks: ranges } = joinedParts(parts);
  if (isCode) return nodesOf(text, 0, text.length, ranges);
  const nodes = [];
  for (const { kind, lines } of blocksOf(text, new Set())) {
    const areCells = kind === 'words' && lines.every((line) => CELL.test(text.slice(line.start, line.end)));
    for (const { start: from, end, hidden = 0 } of lines) {
      // An item may go on in further lines.
      if (nodes.length) nodes.push((kind === 'item' && hidden) || areCells ? ' · ' : ' ');
      const styles = kind === 'code' ? [{ start: from, end, kind: 'code' }] : inlineStyles(text, from + hidden, end);
      nodes.push(...nodesOf(text, from + hidden, end, [...ranges, ...styles]));
    }
  }
  return nodes;
}
