// What extensions show, by where it is shown. A script of an extension calls `addPart` when it is loaded.

const makers = new Map();

/**
 * Show something more. where: 'judging', below the learning, made by make(about): {section, load}, or a falsy value for nothing;
 * load() is called when a learning has ended. 'hits', above the hits of an answer, made by make(answer): an element, or a falsy
 * value for nothing.
 */
export function addPart(where, make) {
  makers.set(where, [...(makers.get(where) ?? []), make]);
}

/** What extensions show there: make(...values) of each, without falsy ones. */
export const partsOf = (where, ...values) => (makers.get(where) ?? []).map((make) => make(...values)).filter(Boolean);
