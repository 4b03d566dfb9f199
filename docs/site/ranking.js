// What the site's own search answers: node ranking.js SITE QUERY...; for each query one line of
// JSON, the pages in their order. The search runs in a worker of the theme; here it gets what it
// asks of a browser.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const [site, ...queries] = process.argv.slice(2);
const workers = path.join(site, 'assets/javascripts/workers');
const [worker] = fs.readdirSync(workers).filter((name) => /^search\..*\.js$/.test(name));
const index = JSON.parse(fs.readFileSync(path.join(site, 'search/search_index.json'), 'utf8'));

let receive;
const answers = [];
const scope = {
  console,
  addEventListener: (_, handler) => { receive = handler; },
  postMessage: (message) => answers.push(message),
};
scope.self = scope;
vm.runInNewContext(fs.readFileSync(path.join(workers, worker), 'utf8'), scope);

async function ask(message) {
  await receive({ data: message });
  return answers.pop();
}

async function main() {
  await ask({ type: 0, data: { ...index, options: { suggest: true } } });
  for (const query of queries) {
    // As the theme's search box sends words: each must be there, the last may go on.
    const reply = await ask({ type: 2, data: query });
    const pages = reply.data.items.map((group) => group[0].location.replace(/#.*/, ''));
    console.log(JSON.stringify(pages.slice(0, 10)));
  }
}

main();
