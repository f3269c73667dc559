"use strict";

/** Loads the built plugin as OpenClaw would, uses all of it against the bridge that is named, and prints what came. */

const plugin = require("../dist/index.js");
const { host } = require("./bridge.js");

const SAID = "I prefer oolong tea over coffee in the morning.";
const PERSON = { runId: "run-1", agentId: "butler", sessionKey: "agent:butler:main", trigger: "user" };

async function main() {
  const api = host(JSON.parse(process.argv[2]));
  plugin.register(api);
  const told = { calls: [] };
  const call = async (name, params) => {
    const { content } = await api.tools.get(`vestige_${name}`)({ agentId: PERSON.agentId }).execute("call", params);
    const answer = JSON.parse(content[0].text);
    told.calls.push({ name, answer });
    return answer;
  };
  const { nodeId: walrus } = await call("ingest", {
    content: "The walrus in the harbour is called Magda.", node_type: "fact", tags: ["harbour"], context: "a walk",
  });
  const { nodeId: fence } = await call("smart_ingest", { content: "The harbour fence was painted green in May." });
  await call("search", { query: "What is the walrus called?", limit: 3, mode: "hybrid", threshold: 0 });
  await call("promote", { memory_id: walrus });
  await call("demote", { memory_id: fence, reason: "it is blue" });
  await call("session_context", {
    queries: ["harbour"], token_budget: 500, context: { codebase: "harbour", topics: ["walrus"], file: "a.py" },
    include_status: true, include_intentions: false, include_predictions: false,
  });
  await call("explore_connections", { action: "associations", from: walrus, limit: 5 });
  await call("predict", { context: { codebase: "harbour", current_file: "a.py", current_topics: ["walrus"] } });
  await call("importance_score", {
    content: "The harbour closes at nine.", context_topics: ["harbour"], project: "harbour",
  });
  for (const fact of ["Gulls nest on the crane.", "The ferry to Gdynia leaves at noon.", "Pilots drink kvass."]) {
    await call("ingest", { content: fact });
  }
  await call("dream", { memory_count: 5 });
  await call("consolidate", {});
  await call("backup", {});
  await call("promote", { memory_id: "00000000-0000-0000-0000-000000000000" }); // is refused

  const prompt = "What is the walrus in the harbour called?";
  told.recalled = await api.run("before_prompt_build", { prompt, messages: [] }, PERSON);
  const whole = `${told.recalled[0]?.prependContext}\n\n${SAID}`;
  await api.run("before_prompt_build", { prompt: whole, currentUserMessage: SAID, messages: [] }, PERSON);
  // An agent that copies its prompt into a tool.
  await call("ingest", { content: `${told.recalled[0]?.prependContext}\nThe lighthouse is striped.` });
  const waiting = watched();
  // The reply repeats what was recalled, marks and all.
  const assistantTexts = [`${told.recalled[0]?.prependContext}\nNoted: oolong in the morning.`];
  await api.run("llm_output", { runId: PERSON.runId, prompt: whole, assistantTexts }, PERSON);
  await waiting;
  told.forgotten = await api.run("before_dispatch", { content: ".forget pilots and kvass" }, PERSON);
  const few = host({ ...api.pluginConfig, maxMemories: 2, maxMemoryTokens: 100, maxPerMemoryChars: 40 });
  plugin.register(few);
  told.few = await few.run("before_prompt_build", { prompt, messages: [] }, PERSON);
  told.walrus = walrus;
  told.logged = api.logger.lines;
  process.stdout.write(JSON.stringify(told));
}

/** Until the next request has been answered: capture itself lets nobody wait for it. */
function watched() {
  const send = globalThis.fetch;
  return new Promise((resolve) => {
    globalThis.fetch = async (...request) => {
      globalThis.fetch = send;
      try {
        return await send(...request);
      } finally {
        setImmediate(resolve);
      }
    };
  });
}

main();
