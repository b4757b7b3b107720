// All requests to the service; whatever fails becomes a Refusal.

import { stored } from './dom.js';

const LOOK_EVERY = 600; // ms between two requests for progress
const KEPT = 60; // answers

/** Why there is no answer: `kind` is offline, busy, key, starting, late, failed or refused; seconds: when to try again; status: of the answer, if there is one. */
export class Refusal extends Error {
  constructor(message, kind, seconds = 2, status = null) {
    super(message);
    Object.assign(this, { kind, seconds, status });
  }
}

const KINDS = { 401: 'key', 403: 'key', 429: 'busy', 503: 'starting', 504: 'late', 500: 'failed' };
const answers = new Map();

/** The address of a route: parts of the path, then parameters as [name, value] pairs. */
export function address(parts, parameters = []) {
  const path = parts.map(encodeURIComponent).join('/');
  const text = new URLSearchParams(parameters).toString();
  return new URL(`v1/${path}${text ? `?${text}` : ''}`, document.baseURI).href;
}

function headers(extra) {
  const key = stored('sessionStorage', 'key');
  return { Accept: 'application/json', ...(key ? { 'X-API-Key': key } : {}), ...extra };
}

async function refusal(response) {
  const { error } = await response.json().catch(() => ({})); // not JSON: something in between has answered
  return new Refusal(error ?? `the service answered ${response.status}`, KINDS[response.status] ?? 'refused', Number(response.headers.get('Retry-After')) || undefined, response.status);
}

async function lookAt(id, tell) {
  const response = await fetch(address(['progress', id]), { headers: headers() }).catch(() => null);
  if (response?.ok) tell(await response.json());
}

/**
 * The JSON answer of a route.
 * body: sent as JSON, by POST unless `method` says another; tell: called with {stage, done, total} while stages run; signal: aborts the request.
 * The last answers are kept, so that going back asks nothing again; a `fresh` one is neither taken from them nor kept.
 * Throws Refusal, or AbortError.
 */
export async function ask(url, { method, body, fresh = false, tell, signal } = {}) {
  const sent = { method: method ?? (body ? 'POST' : 'GET') };
  if (body) sent.body = JSON.stringify(body);
  const key = `${url} ${sent.body}`;
  if (!fresh && answers.has(key)) return answers.get(key);
  const id = `page-${Math.random()}`;
  const extra = { 'X-Request-ID': id, ...(body && { 'Content-Type': 'application/json' }) };
  const timer = tell && setInterval(lookAt, LOOK_EVERY, id, tell);
  try {
    const response = await fetch(url, { ...sent, headers: headers(extra), signal });
    if (!response.ok) throw await refusal(response);
    const found = await response.json();
    if (!fresh) answers.set(key, found);
    if (answers.size > KEPT) answers.delete(answers.keys().next().value);
    return found;
  } catch (error) {
    if (error instanceof Refusal || error.name === 'AbortError') throw error;
    throw new Refusal('the service cannot be reached', 'offline');
  } finally {
    clearInterval(timer);
  }
}

/** Forget the answers kept so far, as the service would give others now. */
export function forget() {
  answers.clear();
}

/** The text that a route gives for a file. Throws Refusal. */
export async function askText(url) {
  const response = await fetch(url, { headers: headers() }).catch(() => null);
  if (!response) throw new Refusal('the service cannot be reached', 'offline');
  if (!response.ok) throw await refusal(response);
  return response.text();
}
