"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");

const { bridge, connected, done } = require("./bridge.js");

const ask = (send, more = {}) =>
  send({ path: "/search", body: { query: "tea" }, agent: "ada", timeoutMs: 5_000, ...more });

test("a request carries the token, the agent and the body", async (t) => {
  const { url, asked } = await bridge(t, () => done({ total: 0 }));
  const outcome = await ask(connected(`${url}/`).send, { idempotencyKey: "k1" });
  assert.deepEqual(outcome, { ok: true, text: '{"total":0}', structured: { total: 0 } });
  const [{ path, headers, body }] = asked;
  assert.equal(path, "/search");
  assert.deepEqual(body, { query: "tea" });
  assert.equal(headers.authorization, "Bearer t0ken");
  assert.equal(headers["x-agent-id"], "ada");
  assert.equal(headers["idempotency-key"], "k1");
});

test("without a token none is sent", async (t) => {
  const { url, asked } = await bridge(t, () => done({}));
  await ask(connected(url, { authToken: "" }).send);
  assert.equal(asked[0].headers.authorization, undefined);
});

test("half a character is sent as a whole one", async (t) => {
  const { url, asked } = await bridge(t, () => done({}));
  await ask(connected(url).send, { body: { query: "tea 🍵".slice(0, 5), deep: ["\udc00"] } });
  assert.deepEqual(asked[0].body, { query: "tea \ufffd", deep: ["\ufffd"] });
});

test("a refusal tells its status, its reason and what would be right", async (t) => {
  const { url } = await bridge(t, () => [422, { detail: "`limit`: too large.", hint: "At most 100." }]);
  assert.deepEqual(await ask(connected(url).send), {
    ok: false, status: 422, detail: "`limit`: too large. At most 100.",
  });
  const bare = await bridge(t, () => [401, { detail: "Missing token", hint: "Send it." }]);
  assert.equal((await ask(connected(bare.url).send)).detail, "Missing token. Send it.");
});

test("a tool that failed is a failure, although the request was answered", async (t) => {
  const { url } = await bridge(t, () => [200, { success: false, data: null, error: "No such memory." }]);
  assert.deepEqual(await ask(connected(url).send), { ok: false, status: 200, detail: "No such memory." });
});

test("an answer that is not of a bridge is a failure", async (t) => {
  for (const [status, body] of [[200, "<html>welcome</html>"], [200, "[]"], [502, "<html>bad gateway</html>"]]) {
    const { url } = await bridge(t, () => [status, body]);
    const outcome = await ask(connected(url).send);
    assert.deepEqual([outcome.ok, outcome.status], [false, status]);
  }
});

test("a long page of an error is cut", async (t) => {
  const { url } = await bridge(t, () => [500, "x".repeat(100_000)]);
  assert.equal((await ask(connected(url).send)).detail.length, 2_000);
});

test("a bridge that does not answer is waited for no longer than said", async (t) => {
  const { url } = await bridge(t, () => undefined);
  const outcome = await ask(connected(url).send, { timeoutMs: 50 });
  assert.deepEqual(outcome, { ok: false, status: undefined, detail: "The bridge did not answer within 50 ms." });
});

test("a call that is stopped ends at once", async (t) => {
  const { url, nextAsked } = await bridge(t, () => undefined);
  const stop = new AbortController();
  const waiting = ask(connected(url).send, { signal: stop.signal, timeoutMs: 60_000 });
  await nextAsked();
  stop.abort();
  assert.equal((await waiting).detail, "The call was cancelled.");
  assert.equal((await ask(connected(url).send, { signal: AbortSignal.abort() })).detail, "The call was cancelled.");
});

test("a bridge that is not there is a failure, not an exception", async (t) => {
  const { url } = await bridge(t, () => done({}));
  const closed = url.replace(/:\d+$/, ":1");
  const outcome = await ask(connected(closed).send);
  assert.equal(outcome.ok, false);
  assert.match(outcome.detail, /cannot be reached/);
});

test("token and memory do not follow a redirect", async (t) => {
  const elsewhere = await bridge(t, () => done({}));
  const { url } = await bridge(t, () => [307, "", { Location: `${elsewhere.url}/search` }]);
  const outcome = await ask(connected(url).send);
  assert.equal(outcome.ok, false);
  assert.deepEqual(elsewhere.asked, []);
});
