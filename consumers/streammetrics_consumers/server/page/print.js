// Printing: on paper everything is drawn, so the dialog opens once the charts out of view are drawn too.

import { byId, say } from "/assets/elements.js";

const LONGEST_MS = 60_000; // after which it is printed as it is

/** Print after `drawn` has resolved, by the button and by the keys of the browser. */
export function onPrint(drawn) {
  const button = byId("print");
  let printing = false;
  async function start() {
    if (printing) return;
    printing = true;
    say(button, "Drawing…");
    try {
      await Promise.race([drawn(), new Promise((done) => setTimeout(done, LONGEST_MS))]);
      globalThis.print();
    } finally {
      printing = false;
      say(button, "Print");
    }
  }
  button.addEventListener("click", start);
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "p" || event.shiftKey) return;
    event.preventDefault();
    start();
  });
}
