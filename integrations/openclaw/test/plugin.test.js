"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");

const plugin = require("../dist/index.js");
const { marked } = require("../dist/markers.js");
const { DEFINITIONS } = require("../dist/tools.js");
const manifest = require("../openclaw.plugin.json");
const { version } = require("../package.json");
const { bridge, done, found, host } = require("./bridge.js");

test("the manifest names this plugin, its version and its tools", () => {
  assert.deepEqual([manifest.id, manifest.version], [plugin.id, version]);
  assert.deepEqual(manifest.contracts.tools, DEFINITIONS.map((one) => one.name));
  assert.equal(DEFINITIONS.length, 12);
});

test("by default there are tools, and no hook sees a conversation", () => {
  const api = host({});
  plugin.register(api);
  assert.deepEqual([...api.tools.keys()], manifest.contracts.tools);
  assert.deepEqual(api.hooks, []);
});

test("hooks are registered when they are turned on", () => {
  const names = (config) => {
    const api = host(config);
    plugin.register(api);
    return api.hooks.map(({ name, priority }) => `${name} ${priority ?? 0}`);
  };
  assert.deepEqual(names({ hooksEnabled: true }), ["before_prompt_build 10", "before_dispatch 10"]);
  assert.deepEqual(names({ captureEnabled: true }), ["before_prompt_build 0", "llm_output 90"]);
});

test("a wrong configuration does not load, and a token in the clear is told of", () => {
  assert.throws(() => plugin.register(host({ serverUrl: "nowhere" })), /config\.serverUrl/);
  const api = host({ serverUrl: "http://vestige.internal:8000", authToken: "t" });
  plugin.register(api);
  assert.match(api.logger.lines[0], /plain http/);
});

test("each tool is a request of its own, by the agent that calls it", async (t) => {
  const { url, asked } = await bridge(t, ({ path }) => done({ path }));
  const api = host({ serverUrl: url });
  plugin.register(api);
  for (const [name, make] of api.tools) {
    const tool = make({ agentId: "main" });
    assert.equal(tool.name, name);
    const path = name.replace("vestige_", "/");
    assert.deepEqual(await tool.execute("call-1", { some: name }), {
      content: [{ type: "text", text: JSON.stringify({ path }) }],
      details: { ok: true },
    });
    const last = asked.at(-1);
    assert.deepEqual([last.path, last.body, last.headers["x-agent-id"]], [path, { some: name }, "main"]);
  }
});

test("an agent that repeats what was recalled for it does not have it remembered again", async (t) => {
  const { url, asked } = await bridge(t, () => done({}));
  const api = host({ serverUrl: url });
  plugin.register(api);
  for (const name of ["vestige_ingest", "vestige_smart_ingest"]) {
    const content = `${marked(["The user drinks tea."])}\nThe cat is called Tom.`;
    await api.tools.get(name)({}).execute("1", { content, tags: ["pets"] });
    assert.deepEqual(asked.at(-1).body, { content: "The cat is called Tom.", tags: ["pets"] });
  }
});

test("what goes wrong is told to the model as data", async (t) => {
  const { url } = await bridge(t, ({ path }) => (path === "/search" ? [401, { detail: "No token." }] : undefined));
  const api = host({ serverUrl: url, timeoutMs: 100 });
  plugin.register(api);
  const said = async (name, params) => JSON.parse((await api.tools.get(name)({}).execute("1", params)).content[0].text);
  assert.deepEqual(await said("vestige_search", { query: "x" }), { error: true, status: 401, detail: "No token." });
  assert.deepEqual(await said("vestige_predict"), {
    error: true, status: null, detail: "The bridge did not answer within 100 ms.",
  });
  const circular = {};
  circular.self = circular;
  assert.equal((await said("vestige_predict", circular)).error, true);
});

test("dream, consolidate and backup are waited for longer", async (t) => {
  const timeouts = new Map();
  t.mock.method(globalThis, "setTimeout", (_, ms) => (timeouts.set(ms, (timeouts.get(ms) ?? 0) + 1), 0));
  t.mock.method(globalThis, "fetch", async () => new Response("{}"));
  const api = host({ timeoutMs: 1_234 });
  plugin.register(api);
  for (const make of api.tools.values()) await make({}).execute("1", {});
  assert.deepEqual([...timeouts], [[1_234, 9], [180_000, 3]]);
});

test("the command .forget demotes what is found, says what, and strengthens nothing", async (t) => {
  const answer = ({ path }) => (path === "/search" ? found("Tea\nat five.", "Milk.") : done({}));
  const { url, asked } = await bridge(t, answer);
  const api = host({ serverUrl: url, hooksEnabled: true });
  plugin.register(api);
  const context = { sessionKey: "agent:butler:main" };
  const [told] = await api.run("before_dispatch", { content: " .forget  tea " }, context);
  assert.equal(told.handled, true);
  assert.match(told.text, /- demoted: Tea at five\. \(m0\)\n- demoted: Milk\. \(m1\)/);
  assert.deepEqual(asked.map(({ path, body }) => [path, body]), [
    ["/search", { query: "tea", limit: 3, record: false }],
    ["/demote", { memory_id: "m0", reason: ".forget" }],
    ["/demote", { memory_id: "m1", reason: ".forget" }],
  ]);
  assert.ok(asked.every(({ headers }) => headers["x-agent-id"] === "butler"));
});

test("the command .forget spares what fits much worse than the best", async (t) => {
  const results = [0.9, 0.7, 0.5].map((combinedScore, index) => ({ id: `m${index}`, content: "Tea.", combinedScore }));
  const { url, asked } = await bridge(t, ({ path }) => done(path === "/search" ? { results } : {}));
  const api = host({ serverUrl: url, hooksEnabled: true });
  plugin.register(api);
  await api.run("before_dispatch", { content: ".forget tea" }, {});
  assert.deepEqual(asked.slice(1).map(({ body }) => body.memory_id), ["m0", "m1"]);
});

test("other messages pass, and .forget without words or in a group changes nothing", async (t) => {
  const { url, asked } = await bridge(t, () => found("Tea."));
  const api = host({ serverUrl: url, hooksEnabled: true });
  plugin.register(api);
  assert.deepEqual(await api.run("before_dispatch", { content: "Please .forget tea" }, {}), []);
  assert.deepEqual(await api.run("before_dispatch", { content: ".forgetful" }, {}), []);
  const [empty] = await api.run("before_dispatch", { content: ".forget" }, {});
  const [group] = await api.run("before_dispatch", { content: ".forget tea", isGroup: true }, {});
  assert.ok(empty.handled && group.handled);
  assert.match(group.text, /direct chat/);
  assert.deepEqual(asked, []);
});

test("a .forget that fails says so", async (t) => {
  const { url } = await bridge(t, ({ path }) => (path === "/search" ? found("Tea.") : [502, { detail: "down" }]));
  const api = host({ serverUrl: url, hooksEnabled: true });
  plugin.register(api);
  const [answer] = await api.run("before_dispatch", { content: ".forget tea" }, {});
  assert.match(answer.text, /not demoted: Tea\. \(m0\): down/);
});
