"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { test } = require("node:test");

const plugin = require("../dist/index.js");
const { host } = require("./bridge.js");

const PERSON = { agentId: "butler", sessionKey: "agent:butler:main", sessionId: "s1", trigger: "user" };

/** A program that stands in for `vestige-hook`, and what it was asked. */
function program(t, answers) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "vestige-hook-"));
  t.after(() => fs.rmSync(folder, { recursive: true }));
  const [command, log] = [path.join(folder, "hook"), path.join(folder, "asked.jsonl")];
  const code = `#!${process.execPath}
    const fs = require("node:fs");
    const asked = JSON.parse(fs.readFileSync(0, "utf8"));
    fs.appendFileSync(${JSON.stringify(log)}, JSON.stringify({ client: process.argv[2], ...asked }) + "\\n");
    const context = ${JSON.stringify(answers)}[asked.hook_event_name];
    if (context) console.log(JSON.stringify({ hookSpecificOutput: { additionalContext: context } }));`;
  fs.writeFileSync(command, code, { mode: 0o755 });
  const asked = () => fs.readFileSync(log, "utf8").trim().split("\n").map((line) => JSON.parse(line));
  return { command, asked };
}

test("a session has its context in the system prompt, and what is recalled beside the prompt", async (t) => {
  const { command, asked } = program(t, { SessionStart: "pack", UserPromptSubmit: "tail" });
  const api = host({ hooksEnabled: true, hookCommand: command });
  plugin.register(api);
  const ask = async (prompt, context = PERSON) => (await api.run("before_prompt_build", { prompt }, context))[0];
  assert.deepEqual(await ask("Which port?"), { prependSystemContext: "pack", prependContext: "tail" });
  await ask('<vestige-recall id="r">old</vestige-recall> And the host?');
  assert.equal(await ask("noise", { ...PERSON, trigger: "cron" }), undefined);
  await api.run("before_compaction", {}, PERSON);
  await ask("Go on with it.");
  await api.run("session_end", {}, PERSON);
  assert.deepEqual(
    asked().map((one) => [one.client, one.hook_event_name, one.session_id, one.source ?? one.prompt]),
    [
      ["openclaw", "SessionStart", "s1", "startup"],
      ["openclaw", "UserPromptSubmit", "s1", "Which port?"],
      ["openclaw", "UserPromptSubmit", "s1", "And the host?"],
      ["openclaw", "PreCompact", "s1", undefined],
      ["openclaw", "SessionStart", "s1", "compact"],
      ["openclaw", "UserPromptSubmit", "s1", "Go on with it."],
      ["openclaw", "SessionEnd", "s1", undefined],
    ],
  );
});

test("what was said and done goes with the end of a turn, each call once", async (t) => {
  const { command, asked } = program(t, {});
  const api = host({ hooksEnabled: true, hookCommand: command });
  plugin.register(api);
  const edit = { type: "toolCall", id: "c", name: "edit", arguments: { path: "a.py" } };
  const messages = [
    { role: "user", content: "Fix it." },
    { role: "assistant", content: [{ type: "thinking", thinking: "…" }, edit, { type: "text", text: "Done." }] },
    { role: "toolResult", content: [{ type: "text", text: "ok" }] },
  ];
  await api.run("agent_end", { messages }, PERSON);
  await api.run("agent_end", { messages: [...messages, { role: "user", content: "Thanks." }] }, PERSON);
  const [first, second] = asked();
  assert.deepEqual(first.calls, [{ name: "edit", input: { path: "a.py" } }]);
  assert.deepEqual(first.turns, [{ role: "user", text: "Fix it." }, { role: "assistant", text: "Done." }]);
  assert.equal(first.last_assistant_message, "Done.");
  assert.deepEqual([second.calls, second.turns.length], [[], 3]);
});

test("a program that is not there or fails adds nothing", async (t) => {
  const { command } = program(t, {});
  for (const hookCommand of ["/nowhere/vestige-hook", command, process.execPath]) {
    const api = host({ hooksEnabled: true, hookCommand });
    plugin.register(api);
    assert.deepEqual(await api.run("before_prompt_build", { prompt: "Which port?" }, PERSON), []);
  }
});
