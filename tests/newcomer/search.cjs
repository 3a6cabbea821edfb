// Asks the search of a built site, as a browser does: node search.cjs PAGES WORKER < queries.json
// prints for each query the addresses of the pages that are found, the best first.

const { readFileSync } = require("node:fs");
const { runInThisContext } = require("node:vm");

const [folder, worker] = process.argv.slice(2);
let answered;
globalThis.self = globalThis;
globalThis.addEventListener = (_, listener) => (globalThis.listener = listener);
globalThis.postMessage = (message) => answered(message);

const ask = (type, data) =>
  new Promise((resolve) => {
    answered = resolve;
    globalThis.listener({ data: { type, data } });
  });

async function main() {
  const { config, docs } = JSON.parse(readFileSync(`${folder}/search/search_index.json`, "utf8"));
  runInThisContext(readFileSync(worker, "utf8"));
  await ask(0, { config, docs, options: { suggest: false } });
  const pages = {};
  for (const query of JSON.parse(readFileSync(0, "utf8"))) {
    const { data } = await ask(2, query);
    pages[query] = data.items.map(([section]) => section.location.split("#")[0]);
  }
  process.stdout.write(JSON.stringify(pages));
}

main();
