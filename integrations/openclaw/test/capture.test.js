"use strict";

const assert = require("node:assert/strict");
const { test } = require("node:test");

const { capture, states, turnText, Turns } = require("../dist/capture.js");
const { marked } = require("../dist/markers.js");
const { bridge, connected, done, log } = require("./bridge.js");

const PERSON = { runId: "r1", agentId: "main", sessionKey: "agent:main:main" };
const SAID = "I prefer tabs over spaces in Go files.";

test("what a user states is worth remembering", () => {
  const stated = [
    SAID,
    "My favourite editor is Helix.",
    "I don't like mocks in our tests.",
    "Please always answer in UTC.",
    "From now on, write tests first.",
    "We decided to use Postgres for the harbour.",
    "Let’s go with plan B for the release.",
    "we'll switch to Rust next month",
    "My name is Ada Lovelace.",
    "my project's time zone is CET",
    "I'm a vet in Kraków, by the way.",
    "I work at the harbour office.",
    "Remember that the fence is green.",
    "No, it is port 8080, not 8000.",
    "Actually the key moved to the vault.",
    "That is wrong, the bus leaves at nine.",
    "I meant the other branch, the old one.",
  ];
  for (const said of stated) assert.ok(states(said), said);
});

test("what a user asks or orders is not", () => {
  const others = [
    "", "I like it", "What is the capital of Norway?", "Fix the failing test in src/app.py, please.",
    "Can you summarise this article for me?", "Translate this sentence into Polish.",
    "How do I list files by date?", ".forget I prefer tabs over spaces", "/model I prefer the big one",
    "Nobody knows what happened there.", "Normal people never do that kind of thing?",
  ];
  for (const said of others) assert.ok(!states(said), said);
});

test("a turn is remembered short, and without what was recalled for it", () => {
  const reply = `${marked(["The user drinks tea."])}\nNoted. ${"r".repeat(300)}`;
  const text = turnText(`${SAID} ${"u".repeat(200)}`, [reply]);
  const [user, rest] = text.split(" → ");
  assert.equal(user.length, 100);
  assert.equal(rest.length, 200);
  assert.ok(rest.startsWith("Noted."));
  assert.ok(!text.includes("tea"));
  assert.equal(turnText(SAID, []), SAID);
});

test("a stated preference is sent, attributed and tagged, and nobody waits", async (t) => {
  const { url, asked, nextAsked } = await bridge(t, () => done({ nodeId: "m1" }));
  const { config, send } = connected(url);
  const turns = new Turns();
  turns.begin({ prompt: `${marked(["The user drinks tea."])}\n${SAID}` }, PERSON);
  const coming = nextAsked();
  const answer = capture(config, send, turns, log())({ runId: "r1", assistantTexts: ["Noted."] }, PERSON);
  assert.equal(answer, undefined);
  assert.deepEqual(asked, []);
  await coming;
  const [{ path, headers, body }] = asked;
  assert.equal(path, "/smart_ingest");
  assert.deepEqual(body, { content: `${SAID} → Noted.`, node_type: "fact", tags: ["auto-ingested"] });
  assert.equal(headers["x-agent-id"], "main");
  assert.equal(headers["idempotency-key"], "openclaw-run:r1");
});

test("the prompt of the reply's event is used where no other is known, without what was recalled", async (t) => {
  const { url, asked, nextAsked } = await bridge(t, () => done({}));
  const { config, send } = connected(url);
  const coming = nextAsked();
  const prompt = `${marked(["The user drinks tea."])}\n${SAID}`;
  capture(config, send, new Turns(), log())({ prompt, assistantTexts: [] }, {});
  await coming;
  assert.equal(asked[0].body.content, SAID);
  assert.equal(asked[0].headers["x-agent-id"], "default");
});

test("turns of sub-agents, schedules and other sessions are not remembered", () => {
  const sent = [];
  const { config } = connected("http://127.0.0.1:1");
  const send = (request) => (sent.push(request), Promise.resolve({ ok: true, text: "", structured: {} }));
  const turns = new Turns();
  const hook = capture(config, send, turns, log());
  hook({ prompt: SAID, assistantTexts: [] }, { ...PERSON, sessionKey: "agent:main:subagent:1" });
  hook({ prompt: SAID, assistantTexts: [] }, { ...PERSON, trigger: "cron" });
  // The hook of the reply may know less of where a prompt came from than the hook before it.
  turns.begin({ prompt: SAID }, { ...PERSON, inputProvenance: { kind: "inter_session" } });
  hook({ runId: "r1", prompt: SAID, assistantTexts: [] }, PERSON);
  assert.deepEqual(sent, []);
});

test("a refusal is logged, and nothing is thrown", async (t) => {
  const { url } = await bridge(t, () => [200, { success: false, error: "It holds a secret." }]);
  const { config, send } = connected(url);
  const logger = log();
  let finished;
  const over = new Promise((resolve) => (finished = resolve));
  const watched = (request) => send(request).finally(() => setImmediate(finished));
  capture(config, watched, new Turns(), logger)({ prompt: SAID, assistantTexts: [] }, {});
  await over;
  assert.match(logger.lines[0], /It holds a secret/);
});

test("words of turns that never end are not kept for ever", () => {
  const turns = new Turns();
  for (let n = 0; n < 1_000; n += 1) turns.begin({ prompt: SAID }, { runId: `r${n}` });
  assert.equal(turns.end("r0"), undefined);
  assert.equal(turns.end("r999"), SAID);
  assert.equal(turns.end("r999"), undefined);
});
