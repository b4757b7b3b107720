// More like a hit: a search with a document in place of a question.

import { button, h } from './dom.js';
import { addressOf, systemsOf } from './state.js';
import { docidText } from './words.js';

/** The state that searches for what is like a document, by those systems that take one. */
export function likeState(about, state, docid) {
  const able = systemsOf(about, state.a).filter((own) => about.like.includes(own));
  const system = able.length ? able : about.like.slice(0, 1);
  return { ...state, view: 'search', q: '', like: docid, a: { ...state.a, system, rerank: [] }, open: '', why: '' };
}

/** A link that searches for what is like a hit; null where no system takes a document. */
export function likeLink({ about, state, docid, onlike }) {
  if (!about.like.length) return null;
  const next = likeState(about, state, docid);
  const follow = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    onlike(next);
  };
  return h('a', { class: 'quiet like', href: addressOf(next), onclick: follow, 'aria-label': `More like ${docidText(docid)}` }, 'More like this');
}

/** What is searched where it is not a question; null for a question. */
export function likeNote({ query }, onend) {
  if (query.like === undefined) return null;
  return h('p', { class: 'note like-note' }, 'More like ', h('b', null, query.like), '. ', button('Ask a question instead', onend, { class: 'quiet' }));
}
