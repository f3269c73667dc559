"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");

const { agentFor, readConfig, sendsTokenInClear } = require("../dist/config.js");
const manifest = require("../openclaw.plugin.json");

const properties = Object.entries(manifest.configSchema.properties);

test("the manifest and the code have the same keys and defaults", () => {
  const config = readConfig({});
  assert.deepEqual(Object.keys(config).sort(), properties.map(([key]) => key).sort());
  for (const [key, schema] of properties) assert.equal(config[key], schema.default, key);
});

test("the manifest and the code have the same limits", () => {
  const numbers = properties.filter(([, schema]) => schema.type === "integer");
  assert.ok(numbers.length > 3);
  for (const [key, { minimum, maximum }] of numbers) {
    for (const value of [minimum, maximum]) assert.equal(readConfig({ [key]: value })[key], value);
    for (const value of [minimum - 1, maximum + 1, minimum + 0.5, String(minimum)]) {
      assert.throws(() => readConfig({ [key]: value }), new RegExp(`config\\.${key}`));
    }
  }
});

test("hooks and capture are off unless they are turned on", () => {
  const { hooksEnabled, captureEnabled } = readConfig({});
  assert.deepEqual([hooksEnabled, captureEnabled], [false, false]);
  assert.throws(() => readConfig({ hooksEnabled: "true" }), /config\.hooksEnabled/);
});

test("slashes at the end of the address do not count", () => {
  const { serverUrl } = readConfig({ serverUrl: "https://memory.example:8000/base//" });
  assert.equal(serverUrl, "https://memory.example:8000/base");
});

test("an address of something else is refused", () => {
  for (const serverUrl of ["memory:8000", "file:///etc", "http://user:pass@host", "http://host/?a=1", 7]) {
    assert.throws(() => readConfig({ serverUrl }), /config\.serverUrl/);
  }
});

test("a token that is none in a header is refused, and not shown", () => {
  assert.throws(
    () => readConfig({ authToken: "geheim\r\nX-Evil: 1" }),
    (error) => /config\.authToken/.test(error.message) && !error.message.includes("geheim"),
  );
  assert.equal(readConfig({ authToken: "" }).authToken, undefined);
});

test("an agent's name follows the rule of the bridge", () => {
  for (const agentId of ["a", "main", "a b", "x".repeat(128)]) assert.equal(readConfig({ agentId }).agentId, agentId);
  for (const agentId of ["a/b", "a|b", "a\\b", "..", " a", "a ", "ä", "a\nb", "x".repeat(129)]) {
    assert.throws(() => readConfig({ agentId }), /config\.agentId/, agentId);
  }
});

test("without a configured name the agent that calls is meant", () => {
  assert.equal(agentFor(readConfig({ agentId: "team" }), "main"), "team");
  assert.equal(agentFor(readConfig({}), "main"), "main");
  assert.equal(agentFor(readConfig({}), undefined), "default");
  assert.equal(agentFor(readConfig({}), "a/../b"), "default");
});

test("a token over plain http to another machine is noticed", () => {
  const said = (serverUrl, authToken = "t") => sendsTokenInClear(readConfig({ serverUrl, authToken }));
  assert.ok(said("http://vestige.internal:8000"));
  for (const url of ["http://127.0.0.1:8000", "http://localhost:1", "http://[::1]:1", "https://vestige.internal"]) {
    assert.ok(!said(url), url);
  }
  assert.ok(!said("http://vestige.internal:8000", ""));
});
