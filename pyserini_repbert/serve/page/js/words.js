// Numbers and names for people to read.

const SIGNIFICANT = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const WHOLE = new Intl.NumberFormat('en');

/** A whole number with separators: '1,583'. */
export function whole(number) {
  return WHOLE.format(number);
}

/** A number of things: '1 passage', '2 passages'. */
export function count(number, noun) {
  return `${whole(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** What an index holds: '1,583 passages', or the documents of a collection. */
export function held({ documents, passages }) {
  return documents === undefined ? count(passages, 'passage') : count(documents, 'document');
}

/** A duration of so many milliseconds: '12 ms', '1.4 s', '3 min'. */
export function duration(ms) {
  if (ms < 1) return '<1 ms';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 99_500) return `${SIGNIFICANT.format(ms / 1000)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

/** A score with four significant digits; below 1e-4 with three and an exponent. */
export function score(value) {
  const size = Math.abs(value);
  return size !== 0 && size < 1e-4 ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

/** A measure's value with four decimals. */
export function measure(value) {
  return value.toFixed(4);
}

/** A difference of measures with its sign: '+0.1250', '−0.5000', '±0'. */
export function signed(value) {
  const size = measure(Math.abs(value));
  return Number(size) ? (value > 0 ? '+' : '−') + size : '±0';
}

/** A move from one rank to another {text, kind}: '▲ 2' and up, '▼ 1' and down, '=' and same. */
export function move(from, to) {
  if (from === to) return { text: '=', kind: 'same' };
  return to < from ? { text: `▲ ${from - to}`, kind: 'up' } : { text: `▼ ${to - from}`, kind: 'down' };
}

/** A share of 1 in percent: '74 %'. */
export function percent(share) {
  return `${Math.round(100 * share)} %`;
}

/** Wordpieces joined to words [{text, pieces}]; pieces are their places: 'let', '##tu', '##ce' become 'lettuce'. */
export function joined(tokens) {
  const words = [];
  tokens.forEach((token, place) => {
    const last = words.at(-1);
    if (token.startsWith('##') && last) Object.assign(last, { text: last.text + token.slice(2), pieces: [...last.pieces, place] });
    else words.push({ text: token, pieces: [place] });
  });
  return words;
}

/** A pipeline in words: 'dense + bm25, interleave → monobert-demo@20'. */
export function pipelineName(pipeline) {
  const systems = pipeline.system.join(' + ') || 'the default systems';
  const fused = pipeline.system.length > 1 ? `${systems}, ${pipeline.fusion}` : systems;
  return [fused, ...pipeline.rerank].join(' → ');
}

/** What the service says, as a sentence. The first letter of a file's name stays. */
export function sentence(text) {
  return `${text.replace(/^[a-z](?=[a-z]* )/, (own) => own.toUpperCase())}.`;
}

/** A docid as a person reads it: that of a file has its spaces and % as they are. The stored docid finds documents. */
export function docidText(docid) {
  const text = docid.replace(/%2[05]/g, decodeURIComponent);
  return text.replace(/[\s%]/gu, encodeURIComponent) === docid ? text : docid;
}

const ISO_DAY = /^\d{4}-\d\d-\d\d$/;
const ISO_TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/;

/** A date as a person reads it: '1 Jan 2024', with a time '1 Jan 2024, 10:00' on the clock of the reader; what is no ISO date, as it is. */
export function dateText(value) {
  const isDay = ISO_DAY.test(value);
  const time = new Date(value);
  if (!(isDay || ISO_TIME.test(value)) || Number.isNaN(time.getTime())) return String(value);
  const day = { dateStyle: 'medium' };
  return time.toLocaleString(undefined, isDay ? { ...day, timeZone: 'UTC' } : { ...day, timeStyle: 'short' });
}
