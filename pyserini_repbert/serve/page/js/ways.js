// What a report of learning calls ways of searching, in words.

import { percent } from './words.js';

// What is learned step by step, as `adapt` calls it.
const STEPS = {
  'with the query map': 'learned: what questions mean',
  'and fused': 'learned: what questions mean, and the shares',
  'and reranked': 'learned: what questions mean, the shares, and the reranker’s share',
};
const LEARNED_BEFORE = /^what is learn(?:ed|t) and used already$/; // with a t in reports of earlier releases
const SCALES = {
  none: ', scores as they are', minmax: ', scores from 0 to 1', zscore: ', z-scores', max: ', scores as shares of the best', background: ', scores above the background',
};
const USUAL_K = '60'; // of reciprocal ranks

// 'interleave A+B', 'rrf A+B k=60', 'interpolation A+B alpha=0.7 zscore', each perhaps with ', RERANKER@10:weight=0.5'.
const MIX = /^(interleave|rrf|interpolation) (\S+?)(?: k=(\S+)| alpha=(\S+)| weights=([\d. ]+?))?(?: (minmax|zscore|max|background))?(?:, (.+))?$/;

/** Whether a way is one that learns; the others need no judgments. */
export const isLearned = (name) => Object.hasOwn(STEPS, name) || LEARNED_BEFORE.test(name);

/** A ranking in words; what is not known stays as it is. */
const rankingName = (name, { encoder }) => ({ [encoder]: 'meaning', bm25: 'words' })[name] ?? name;

/** What a way mixes, such as 'meaning and words'; '' for a single ranking, and for what is learned. */
export function mixedBy(name, about) {
  const order = name.match(MIX)?.[2] ?? '';
  return order && order.split('+').map((own) => rankingName(own, about)).join(' and ');
}

/** A way of searching in words, such as 'meaning 70 %, words 30 %, z-scores'; what is not known stays as it is. */
export function wayName(name, about) {
  if (isLearned(name)) return STEPS[name] ?? 'what was learned before';
  const mix = name.match(MIX);
  if (!mix) {
    const [first, ...reranked] = name.split(', ');
    const searched = reranked.length ? wayName(first, about) : rankingName(first, about);
    return [searched, ...reranked].join(', reranked by ');
  }
  const [, method, order, k, alpha, weights, scale, reranker] = mix;
  let text = mixedBy(name, about);
  if (method === 'interleave') text += ', in turn';
  else if (method === 'rrf') text += `, by rank${k === USUAL_K ? '' : ` (k ${k})`}`;
  else {
    const shares = alpha ? [Number(alpha), 1 - Number(alpha)] : (weights ?? '').split(' ').map(Number);
    const parts = order.split('+').map((own, place) => `${rankingName(own, about)} ${percent(shares[place])}`);
    text = parts.join(', ') + SCALES[scale ?? 'none'];
  }
  return reranker ? `${text}, reranked by ${reranker}` : text;
}
