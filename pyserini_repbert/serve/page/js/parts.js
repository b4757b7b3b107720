// What extensions show, by where it is shown. A script of an extension calls `addPart` when it is loaded.

const makers = new Map();

/**
 * Show something more; make(…) returns a falsy value for nothing. where:
 * - 'judging', below the learning: make(about) returns {section, load}, and load() is called when a learning has ended
 * - 'asking', the reader's search: make(about) returns parameters, [name, value] each
 * - 'hit', the head of the reader's hit: make(hit) returns an element
 * - 'answer', before the reader's hits: make(answer, about) returns {note}, an element, or {unlikely}, why the hits answer
 *   nothing, in a line; they are folded then
 * - 'scan', how a system searches: make(about, system) returns {exact, flag}, the ranking of exact search whose hits it finds
 *   and the flag of the command line, where it is no exact search
 * - 'kind', the color of a ranking: make(name) returns 'dense' where it is of vectors
 * - 'hits', above the hits of an answer, in both pages: make(answer) returns an element
 */
export function addPart(where, make) {
  makers.set(where, [...(makers.get(where) ?? []), make]);
}

/** What extensions show there: make(...values) of each, without falsy ones. */
export const partsOf = (where, ...values) => (makers.get(where) ?? []).map((make) => make(...values)).filter(Boolean);
