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

/**
 * Make these the children of an element. What is there and alike stays, so that focus, selection and
 * layout stay with it. None of the children may listen to events.
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
  // Styles go by their own way: the policy of the page refuses the attribute.
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

/** Change a text only where it differs, so that nothing is laid out or spoken anew for nothing. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Tell people who hear the page, once. */
export function announce(text) {
  say(byId("announce"), text);
}
