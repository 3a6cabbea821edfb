// Elements with untrusted names: text is inserted as text, never as markup.

// A name written from right to left, which must not turn around the words and numbers beside it.
const LETTERS = "[\\p{Script=Arabic}\\p{Script=Hebrew}\\p{Script=Syriac}\\p{Script=Thaana}\\p{Script=Nko}]+";
const FROM_RIGHT = new RegExp(`(${LETTERS}(?: +${LETTERS})*)`, "u");

/** An element with attributes and children. Texts become text nodes; null children are left out. */
export const h = (tag, attributes = {}, ...children) =>
  filled(document.createElement(tag), attributes, children);

/** The same of a drawing. */
export const svg = (tag, attributes = {}, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(...isolated(child));
  }
  return element;
}

/** A text with each run of words from right to left in an element of its own. */
function isolated(child) {
  if (typeof child !== "string" || !FROM_RIGHT.test(child)) return [child];
  return child.split(FROM_RIGHT).map((part, i) => {
    if (i % 2 === 0) return part;
    const run = document.createElement("bdi");
    run.append(part);
    return run;
  });
}

/**
 * Make these the children of an element. Existing nodes of the same shape stay, so that focus,
 * selection and layout are kept. None of the children may listen to events.
 */
export function put(parent, ...children) {
  const wanted = children.flat().filter((child) => child !== null && child !== undefined);
  wanted.forEach((child, i) => {
    const there = parent.childNodes[i];
    if (there === undefined) parent.append(child);
    else if (isAlike(there, child)) change(there, child);
    else there.replaceWith(child);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

const isAlike = (there, child) =>
  there.nodeName === child.nodeName && there.childNodes.length === child.childNodes.length;

function change(there, child) {
  if (there.nodeType === Node.TEXT_NODE) {
    if (there.data !== child.data) there.data = child.data;
    return;
  }
  // Styles are set separately: the policy of the page refuses the attribute.
  if (there.style.cssText !== child.style.cssText) there.style.cssText = child.style.cssText;
  for (const { name, value } of child.attributes) {
    if (name !== "style" && there.getAttribute(name) !== value) there.setAttribute(name, value);
  }
  for (const name of there.getAttributeNames()) {
    if (name !== "style" && !child.hasAttribute(name)) there.removeAttribute(name);
  }
  put(there, ...child.childNodes);
}

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** Set a text only if it differs, so that nothing is laid out or spoken again needlessly. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Announce a text to users of screen readers, once. */
export function announce(text) {
  say(byId("announce"), text);
}
