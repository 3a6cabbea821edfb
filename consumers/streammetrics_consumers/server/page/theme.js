// Light or dark: the setting of the system, until the user chooses; this browser keeps the choice.

import { byId, say } from "/assets/elements.js";

const THEMES = { auto: "system", light: "light", dark: "dark" };
const KEY = "streammetrics-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

/** Whether the page is dark now. */
export const isDark = () =>
  root.dataset.theme === "dark" || (root.dataset.theme === "auto" && system.matches);

/** Apply the choice, and call `changed` whenever the theme may have changed. */
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
