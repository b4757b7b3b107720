// Elements. Texts become text nodes: no passage, docid or message is ever parsed as markup.

const AS_PROPERTY = new Set(['hidden', 'disabled', 'checked', 'value', 'selected', 'open', 'htmlFor', 'multiple']);
const FORBIDDEN = /^(?:style|srcdoc|on.*)$/i;
const SVG = 'http://www.w3.org/2000/svg';

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === 'function' && name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'css') Object.entries(value).forEach((pair) => element.style.setProperty(...pair));
    else if (AS_PROPERTY.has(name)) element[name] = value;
    else if (FORBIDDEN.test(name)) throw new TypeError(`attribute ${name}`);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
  return element;
}

/** An HTML element; functions named on… are listeners, css is {property: value}; empty children are left out. */
export function h(name, properties, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** An SVG element. */
export function svg(name, properties, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

/** The page's element with an id. */
export function byId(id) {
  return document.getElementById(id);
}

/** A passage's parts {text, match}, matches marked. */
export function marked(parts) {
  return parts.map((part) => (part.match ? h('mark', null, part.text) : part.text));
}

/** A button. */
export function button(text, onclick, properties) {
  return h('button', { type: 'button', onclick, ...properties }, text);
}

/** A labelled control. */
export function field(label, control, properties) {
  control.id = freshId('field');
  return h('div', { class: 'field', ...properties }, h('label', { htmlFor: control.id }, label), control);
}

/** A choice among values, each a text or [value, text]. */
export function select(values, chosen, onchange) {
  const options = values.map((own) => [own].flat()).map(([value, text = value]) => h('option', { value, selected: value === chosen }, text));
  return h('select', { onchange }, options);
}

/** A bar of a table, as long as a share of its cell. */
export function bar(share, kind) {
  return h('td', { class: 'wide' }, h('span', { class: `bar ${kind}`, css: { width: `${100 * Math.max(0, share)}%` }, 'aria-hidden': 'true' }));
}

/** Show elements in the dialog. */
export function openDialog(title, ...elements) {
  const dialog = byId('dialog');
  const header = h('header', null, h('h2', { id: 'dialog-title' }, title), button('Close', () => dialog.close(), { class: 'quiet' }));
  dialog.replaceChildren(header, ...elements.flat().filter(Boolean));
  dialog.showModal();
}

/** Announce a text to screen readers. */
export function say(text) {
  byId('status').textContent = text;
}

let ids = 0;

/** An id that no other element has. */
export function freshId(stem) {
  ids += 1;
  return `${stem}-${ids}`;
}

/** The value that `storage` holds under a name; null without one, or where storage is forbidden. */
export function stored(storage, name) {
  try {
    return window[storage].getItem(name);
  } catch {
    return null;
  }
}

/** Store a value; does nothing where storage is forbidden. */
export function keep(storage, name, value) {
  try {
    window[storage].setItem(name, value);
  } catch {
    // The page works without storage.
  }
}

/** Remove a value; does nothing where storage is forbidden. */
export function drop(storage, name) {
  try {
    window[storage].removeItem(name);
  } catch {
    // The page works without storage.
  }
}
