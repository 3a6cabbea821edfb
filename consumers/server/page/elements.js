// Elements from names that nobody vouches for: text goes in as text, and never as markup.

/** An element with attributes and children. Texts become text nodes; null children are left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, String(value));
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) element.append(child);
  }
  return element;
}

/** The element of the page with this id. */
export const byId = (id) => document.getElementById(id);

/** Change a text only where it differs, so that nothing is laid out or spoken anew for nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Tell people who hear the page, once. */
export function announce(text) {
  say(byId("announce"), text);
}
