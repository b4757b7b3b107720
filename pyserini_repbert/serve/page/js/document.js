// A document of any length, opened at a passage: parts of its text are fetched as one scrolls, in either direction.

import { address, ask } from './api.js';
import { button, h, say } from './dom.js';
import { during } from './messages.js';
import { proseElements, unitsOf } from './prose.js';
import { sourceLink } from './source.js';
import { dateText, docidText } from './words.js';

const PART = 20_000; // characters
const MOST_PARTS = 10; // that are on the page
const NEAR = '1500px'; // before an end of what is on the page comes into view, more is fetched
const MATCHES = 10;
const TOP_LINE = 170; // px below the top of the window, where what was jumped to stands
const JUMPED = 8; // px within which the page is where a jump has left it
const HEAD_FIELDS = ['from', 'to', 'cc', 'date']; // of a mail; any document may have a date
const MOST_PEOPLE = 8; // of a field

/** The [start, end] pairs of a part, which are of the whole text, as {start, end, kind} of the part's string. */
function placed(part, pairs, kind) {
  const inside = pairs.filter(([start, end]) => end > part.start && start < part.end);
  const edges = inside.flatMap(([start, end]) => [Math.max(start - part.start, 0), Math.min(end, part.end) - part.start]);
  const order = [...edges].sort((one, other) => one - other);
  const units = unitsOf(part.text, order);
  const unitOf = new Map(order.map((character, number) => [character, units[number]]));
  return inside.map((_, number) => ({ start: unitOf.get(edges[2 * number]), end: unitOf.get(edges[2 * number + 1]), kind }));
}

/** The element of a part of a text. */
function partElement(part, { passages, headings, pages, isCode }) {
  const words = placed(part, part.words, 'mark');
  const spans = placed(part, passages.map(({ start, end }) => [start, end]), 'passage');
  const units = startsIn(part, headings);
  const marks = [...words, ...spans].sort((one, other) => one.start - other.start);
  const code = placed(part, part.code, 'code');
  const element = h('div', { class: 'part' }, proseElements(part.text, { marks, headings: new Set(units), code, isCode }));
  const inside = pages.filter(({ start }) => start >= part.start && start < part.end);
  startsIn(part, inside).forEach((unit, number) => {
    const block = [...element.querySelectorAll('[data-unit]')].find((own) => Number(own.dataset.unit) >= unit);
    const label = h('p', { class: 'printed-page' }, `Page ${inside[number].page}`);
    if (block) block.before(label);
    else element.append(label);
  });
  return element;
}

/** Where headings or pages {start} of a text begin in the string of a part; those of other parts are left out. */
function startsIn(part, places) {
  const starts = places.map(({ start }) => start).filter((start) => start >= part.start && start < part.end);
  return unitsOf(part.text, starts.map((start) => start - part.start));
}

/** The block of a part in which a character of the whole text stands. */
function blockAt({ part, element }, character) {
  const [unit] = unitsOf(part.text, [character - part.start]);
  const blocks = [...element.querySelectorAll('[data-unit]')];
  return blocks.filter((own) => Number(own.dataset.unit) <= unit).at(-1) ?? element;
}

/** The distance from the top of the window of a character of a program's part, whose text is on the page as it is. */
function topOfCode({ part, element }, character) {
  let [unit] = unitsOf(part.text, [character - part.start]);
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (unit < node.length) {
      const range = new Range();
      range.setStart(node, unit);
      range.setEnd(node, unit + 1);
      return range.getBoundingClientRect().top;
    }
    unit -= node.length;
  }
  return element.getBoundingClientRect().top;
}

/** The column from which the title of a table's row is; '' for none: its text has the other columns alone. */
function columnOfTitle({ title, fields }) {
  const isTitle = (value) => title === String(value) || title.startsWith(`${value} (`);
  return Object.keys(fields).find((name) => !HEAD_FIELDS.includes(name) && fields[name] !== '' && isTitle(fields[name])) ?? '';
}

/** Who wrote a document to whom, and when, below its title, or the column of a row's title; null where nothing of it is known. */
function headLine(outline, isRow) {
  const { fields } = outline;
  const column = isRow ? columnOfTitle(outline) : '';
  const lines = column ? [h('div', null, h('dt', null, column), h('dd', null, String(fields[column])))] : [];
  for (const name of HEAD_FIELDS) {
    const values = [fields[name] ?? ''].flat().filter((own) => typeof own !== 'object' && own !== '');
    const texts = values.map(name === 'date' ? dateText : String);
    const others = texts.length > MOST_PEOPLE ? ` and ${texts.length - MOST_PEOPLE} more` : '';
    const label = name[0].toUpperCase() + name.slice(1);
    if (texts.length) lines.push(h('div', null, h('dt', null, label), h('dd', null, texts.slice(0, MOST_PEOPLE).join(', ') + others)));
  }
  return lines.length ? h('dl', { class: 'head-fields' }, lines) : null;
}

/**
 * The elements of a document and of its bar, with what moves through it: {bar, elements, jump(step), stop()}.
 * at: the passage {start, end} at which it opens, or null; onat(passage): called when another is shown.
 */
async function reading({ about, docid, query, at, onat }, { signal }) {
  const isRow = docid.includes('#'); // of a table, or another part of a file: its columns are fields
  const named = isRow ? [] : [['fields', HEAD_FIELDS.join(',')]];
  const partAddress = (parameters) => address([about.name, 'text', docid], [...parameters, ['characters', PART], ['query', query]]);
  const [first, outline] = await Promise.all([
    ask(partAddress(at ? [['at', at.start]] : [['start', 0]]), { signal }),
    ask(address([about.name, 'outline', docid], [['query', query], ['passages', query ? MATCHES : 0], ...named]), { signal }),
  ]);
  const isKnown = at && outline.passages.some((own) => own.start === at.start && own.end === at.end);
  const isWithin = at && outline.passages.some((own) => own.start <= at.start && at.end <= own.end);
  const passages = at && !isWithin ? [...outline.passages, at].sort((one, other) => one.start - other.start) : outline.passages;
  // A passage that is all of the text is not marked: it would be nothing but marked.
  const marked = [...outline.passages, ...(at && !isKnown ? [at] : [])].filter((own) => own.start > 0 || own.end < outline.length);
  const shape = { passages: marked, headings: outline.headings, pages: outline.pages, isCode: outline.is_code };
  const shown = []; // {part, element} in the order of the text
  const box = h('div', { class: `parts${outline.is_code ? ' code' : ''}` });
  const above = h('div', { class: 'edge' });
  const below = h('div', { class: 'edge' });
  const counter = h('span', { class: 'note', 'aria-live': 'polite' });
  let now = at ? passages.findIndex((own) => own.start <= at.start && at.end <= own.end) : -1;
  // What the contents lead to: headings, or else printed pages.
  const places = outline.headings.length ? outline.headings : outline.pages.map(({ start, page }) => ({ start, level: 1, title: `Page ${page}` }));
  const links = []; // of the contents, in the order of the places
  let settledAt = null; // where the page was scrolled to by a jump
  let isBusy = false;

  function put(part, isAbove) {
    const own = { part, element: partElement(part, shape) };
    if (isAbove) {
      keepPlace(() => {
        shown.unshift(own);
        above.after(own.element);
      });
      if (shown.length > MOST_PARTS) shown.pop().element.remove();
      return;
    }
    shown.push(own);
    below.before(own.element);
    if (shown.length > MOST_PARTS) keepPlace(() => shown.shift().element.remove());
  }

  /** Change what stands above what is read, which stays where it is on the screen. */
  function keepPlace(change) {
    const anchor = shown.at(-1)?.element ?? below;
    const before = anchor.getBoundingClientRect().top;
    change();
    window.scrollBy(0, anchor.getBoundingClientRect().top - before);
  }

  async function more(isAbove) {
    const edge = isAbove ? shown[0]?.part : shown.at(-1)?.part;
    const isWhole = !edge || (isAbove ? edge.start === 0 : edge.end === edge.length);
    if (isBusy || isWhole) return;
    isBusy = true;
    try {
      const part = await ask(partAddress([isAbove ? ['end', edge.start] : ['start', edge.end]]), { signal });
      if (shown.some((own) => own.part === edge)) put(part, isAbove);
    } catch (error) {
      if (error.name !== 'AbortError') (isAbove ? above : below).replaceChildren(h('p', { class: 'note' }, error.message));
    } finally {
      isBusy = false;
    }
    watch();
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const own of entries) if (own.isIntersecting) more(own.target === above);
  }, { rootMargin: NEAR });

  /** Look anew at the ends of what is on the page: one that stays in view is not told of again. */
  function watch() {
    for (const edge of [above, below]) {
      watcher.unobserve(edge);
      watcher.observe(edge);
    }
  }

  /** Mark the heading of the contents below which a character of the text stands. */
  function markPlace(character) {
    const current = places.findLastIndex(({ start }) => start <= character);
    links.forEach((link, number) => {
      if (number === current) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    });
  }

  /** Mark the heading of what is at the top of the window, once it is no longer where a jump has left it. */
  function followScrolling() {
    if (!links.length || !shown.length || (settledAt !== null && Math.abs(window.scrollY - settledAt) < JUMPED)) return;
    settledAt = null;
    const inView = places.filter(({ start }) => start >= shown[0].part.start && start < shown.at(-1).part.end);
    const above = inView.findLast(({ start }) => {
      const own = shown.find(({ part }) => start < part.end);
      return blockAt(own, start).getBoundingClientRect().top <= TOP_LINE;
    });
    markPlace(above?.start ?? shown[0].part.start);
  }

  /** Show a character of the text, whose part is fetched where it is not on the page. */
  async function goTo(character) {
    const holds = ({ part }) => part.start <= character && (character < part.end || part.end === part.length);
    if (!shown.some(holds)) {
      const part = await ask(partAddress([['at', character]]), { signal });
      for (const own of shown.splice(0)) own.element.remove();
      put(part, false);
    }
    const own = shown.find(holds);
    const block = blockAt(own, character);
    const label = block.previousElementSibling;
    // What begins the text is in view, below its title.
    if (character === 0) window.scrollTo(0, 0);
    else if (outline.is_code) window.scrollBy(0, topOfCode(own, character) - TOP_LINE);
    else (label?.matches('.printed-page') ? label : block).scrollIntoView({ block: 'start' });
    settledAt = window.scrollY;
    markPlace(character);
    watch();
    return block;
  }

  function tell() {
    counter.textContent = passages.length ? `Match ${now < 0 ? '–' : now + 1} of ${passages.length}` : '';
    previous.disabled = now === 0;
    next.disabled = now === passages.length - 1;
  }

  async function jump(step) {
    if (!passages.length) return;
    now = now < 0 ? (step > 0 ? 0 : passages.length - 1) : Math.min(Math.max(now + step, 0), passages.length - 1);
    tell();
    onat(passages[now]);
    await goTo(passages[now].start);
  }

  /** The headings in a list, from which one jumps. */
  function outlineElement() {
    if (places.length < 2) return null;
    const top = Math.min(...places.map(({ level }) => level));
    links.push(...places.map(({ start, title }) => button(title, async () => {
      // On a phone, the contents stand above the text.
      if (!wide.matches) details.open = false;
      await goTo(start);
      say(title);
    }, { class: 'quiet' })));
    const items = places.map(({ level }, number) => h('li', { class: `level-${Math.min(level - top, 3)}` }, links[number]));
    const wide = window.matchMedia('(min-width: 56rem)');
    const details = h('details', { class: 'outline', open: wide.matches }, h('summary', null, 'Contents'),
      h('nav', { 'aria-label': 'Headings', tabindex: '0' }, h('ol', null, items)));
    return details;
  }

  const previous = button('Previous', () => jump(-1), { class: 'quiet', 'aria-label': 'Previous match', 'aria-keyshortcuts': 'p' });
  const next = button('Next', () => jump(1), { class: 'quiet', 'aria-label': 'Next match', 'aria-keyshortcuts': 'n' });
  tell();
  const title = outline.title || docidText(docid);
  const tools = passages.length > 1 && h('div', { class: 'matches' }, counter, previous, next);
  const row = outline.row ? `row ${outline.row}` : isRow && outline.line ? `line ${outline.line}` : '';
  const file = [outline.file || (outline.title && docidText(docid)), row].filter(Boolean).join(' › ');
  box.append(above, below);
  put(first, false);
  const article = h('article', { class: 'reading', tabindex: '-1', 'aria-label': title },
    h('header', null, h('h2', null, title), headLine(outline, isRow), sourceLink(outline.url, title)), box);
  return {
    bar: [h('p', { class: 'name-of-document note', title: file }, h('b', null, title), file && file !== title && ` · ${file}`), tools],
    elements: [outlineElement(), h('div', { class: 'sheet' }, article)],
    jump,
    start: async () => {
      article.focus({ preventScroll: true });
      if (at) await goTo(at.start);
      else markPlace(0);
      watch();
      window.addEventListener('scroll', followScrolling, { passive: true });
    },
    stop: () => {
      watcher.disconnect();
      window.removeEventListener('scroll', followScrolling);
    },
  };
}

/**
 * Open a document in `place`. Returns {jump(step), stop()}: to the next match (1) or the one before (-1); end it.
 * asked: {about, docid, query, at, onat}; back: the element that leads away from it.
 */
export function openDocument(place, asked, back) {
  let opened = null;
  const giveUp = during(place, 'Opening', async (how) => {
    opened = await reading(asked, how);
    setTimeout(opened.start); // once its elements are on the page
    return [h('div', { class: 'document-bar' }, back, opened.bar), h('div', { class: 'document-body' }, opened.elements)];
  }, { retry: () => openDocument(place, asked, back), announce: () => 'Document' });
  return {
    jump: (step) => opened?.jump(step),
    stop: () => {
      opened?.stop();
      giveUp();
    },
  };
}
