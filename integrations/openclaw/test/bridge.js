"use strict";

/** A bridge of the test's own, which remembers what it was asked. */

const { once } = require("node:events");
const http = require("node:http");

const { sender } = require("../dist/client.js");
const { readConfig } = require("../dist/config.js");

/** Begin to listen; `answer(request)` gives `[status, body]`, or nothing to never answer. */
async function bridge(t, answer) {
  const asked = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const one = { path: request.url, headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) };
    asked.push(one);
    server.emit("asked", one);
    const told = answer(one);
    if (told === undefined) return;
    const [status, body, headers] = told;
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${server.address().port}`, asked, nextAsked: () => once(server, "asked") };
}

/** The answer of a bridge whose tool did what it was asked. */
function done(structured) {
  const content = [{ type: "text", text: JSON.stringify(structured) }];
  return [200, { success: true, data: { content, structured }, error: null }];
}

/** The answer to a search that finds these texts. */
function found(...texts) {
  return done({ results: texts.map((content, index) => ({ id: `m${index}`, content })) });
}

/** A configuration, and what sends requests with it. */
function connected(url, more = {}) {
  const config = readConfig({ serverUrl: url, authToken: "t0ken", ...more });
  return { config, send: sender(config) };
}

/** What was logged. */
function log() {
  const lines = [];
  return { lines, info: (line) => lines.push(line), warn: (line) => lines.push(line) };
}

/** OpenClaw's plugin API, as far as the plugin uses it. */
function host(pluginConfig) {
  const tools = new Map();
  const hooks = [];
  return {
    pluginConfig,
    logger: log(),
    tools,
    hooks,
    registerTool: (make, { name }) => tools.set(name, make),
    on: (name, handler, options = {}) => hooks.push({ name, handler, ...options }),
    /** Run the hooks of a name as the host does: the highest priority first. */
    async run(name, event, context) {
      const results = [];
      const wanted = hooks.filter((hook) => hook.name === name);
      for (const hook of wanted.sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0))) {
        results.push(await hook.handler(event, context));
      }
      return results.filter((result) => result !== undefined);
    },
  };
}

module.exports = { bridge, connected, done, found, host, log };
