// The link to where a document comes from: a page of the web, or a file of one's own machine.

import { button, h, say } from './dom.js';

const OF_WEB = /^https?:\/\//;

async function copy(url, control) {
  try {
    await navigator.clipboard.writeText(url);
    say('The address of the source is copied');
    control.textContent = 'Copied';
  } catch {
    control.textContent = url; // to be copied by hand
  }
}

/** The link to an address, named for `title`; null without one. Browsers open no file from a page: its address is copied. */
export function sourceLink(url, title) {
  if (!url) return null;
  if (OF_WEB.test(url)) return h('a', { class: 'source', href: url, rel: 'noreferrer', 'aria-label': `Source of ${title}` }, 'Source');
  const control = button('Copy source address', () => copy(url, control), { class: 'quiet source', 'aria-label': `Copy source address: ${title}` });
  return control;
}
