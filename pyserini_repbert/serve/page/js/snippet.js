// A passage in an element of a few lines. On a narrow screen they hold less than the service sends: they begin where the marked words are seen.

const LEFT_OUT = '… ';
const SURE = 0.9; // share of the room that a text is sure to fit into: lines are seldom full

const MOST_WORDS = 300; // that are looked at

const howManyDiffer = (words) => new Set(words.map((own) => own.text)).size;

/** Where the first marked words {start, end} begin and end of which `room` characters show the most different ones; null without any. */
function densest(words, room) {
  let best = null;
  for (const [first, { start }] of words.entries()) {
    const inside = words.slice(first).filter(({ end }) => end - start <= room);
    const different = howManyDiffer(inside);
    if (different > (best?.different ?? 0)) best = { start, end: inside.at(-1).end, different };
  }
  return best;
}

/** The marked words of parts {text, match}, and where they are in the whole text. */
function markedWords(parts) {
  const words = [];
  let start = 0;
  for (const { text, match } of parts) {
    if (match) words.push({ text: text.toLowerCase(), start, end: start + text.length });
    start += text.length;
  }
  return words;
}

/** The place at or behind `start` where a word begins, or before it a line of code; `latest` is where one begins in any case. */
function cleanStart(text, start, { latest, isCode }) {
  if (isCode) return text.lastIndexOf('\n', start) + 1;
  const toSpace = text.slice(start, latest).search(/\s/);
  return toSpace < 0 ? latest : start + toSpace + 1;
}

/** The parts behind the first `start` characters, with a sign of what is left out. */
function partsFrom(parts, start, isCode) {
  const rest = [{ text: isCode ? `${LEFT_OUT.trim()}\n` : LEFT_OUT, match: false }];
  let before = 0;
  for (const { text, match } of parts) {
    const own = text.slice(Math.max(start - before, 0));
    if (own) rest.push({ text: own, match });
    before += text.length;
  }
  return rest;
}

/** The parts that show the marked words in an element, which has all parts now and hides what does not fit. */
function fittingParts(element, parts, isCode) {
  if (element.scrollHeight <= element.clientHeight + 1) return parts;
  const text = parts.map((own) => own.text).join('');
  const room = Math.floor(SURE * text.length * element.clientHeight / element.scrollHeight);
  const marked = markedWords(parts).slice(0, MOST_WORDS);
  const words = densest(marked, room);
  const atStart = howManyDiffer(marked.filter(({ end }) => end <= room));
  if (!words || atStart >= words.different) return parts;
  const centred = Math.floor((words.start + words.end - room) / 2);
  const start = cleanStart(text, Math.max(Math.min(centred, text.length - room), 0), { latest: words.start, isCode });
  return start > 0 ? partsFrom(parts, start, isCode) : parts;
}

/**
 * Fill an element whose style hides what is beyond a few lines, so that marked words are seen, anew whenever its width changes.
 * parts: {text, match}; draw(parts): their nodes; isCode: lines stay whole; isCut(): whether something may be left out now.
 * Returns draw(), to be called when that changes.
 */
export function fillWithMarksInView(element, parts, draw, { isCode = false, isCut = () => true } = {}) {
  let width = 0;
  const fill = () => {
    element.replaceChildren(...draw(parts));
    if (!isCut() || !width) return;
    const fitting = fittingParts(element, parts, isCode);
    if (fitting !== parts) element.replaceChildren(...draw(fitting));
  };
  fill();
  new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    fill();
  }).observe(element);
  return fill;
}
