// Light or dark: as the system says, until a person chooses; the choice is kept in this browser.

import { byId, say } from "/assets/elements.js";

const THEMES = { auto: "as the system", light: "light", dark: "dark" };
const KEY = "streammetrics-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

/** Whether the page is dark now. */
export const isDark = () =>
  root.dataset.theme === "dark" || (root.dataset.theme === "auto" && system.matches);

/** Put the choice in force, and call `changed` whenever light becomes dark or the other way. */
export function onTheme(changed) {
  choose(localStorage.getItem(KEY));
  system.addEventListener("change", changed);
  byId("theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(root.dataset.theme) + 1) % names.length];
    localStorage.setItem(KEY, next);
    choose(next);
    changed();
  });
}

function choose(name) {
  root.dataset.theme = name in THEMES ? name : "auto";
  say(byId("theme"), `Theme: ${THEMES[root.dataset.theme]}`);
}
