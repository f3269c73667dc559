/** The plugin: the memory of Vestige, for agents of OpenClaw. */

import { capture, Turns } from "./capture";
import { sender } from "./client";
import { readConfig, sendsTokenInClear } from "./config";
import { forget } from "./forget";
import type { PluginApi } from "./openclaw";
import { recall } from "./recall";
import { HOOK_TIMEOUT_MS, SessionHooks } from "./session";
import { registerTools } from "./tools";

const RECALL_PRIORITY = 10;
const CAPTURE_PRIORITY = 90;

const plugin = {
  id: "openclaw-vestige",
  name: "Vestige",
  description: "A memory that fades like memory does: tools, recall before each prompt, and capture if you want it.",
  register(api: PluginApi): void {
    const config = readConfig(api.pluginConfig);
    const send = sender(config);
    if (sendsTokenInClear(config)) {
      api.logger.warn("openclaw-vestige: the token goes over plain http to another machine; use https there.");
    }
    registerTools(api, config, send);
    if (config.hooksEnabled) {
      if (config.hookCommand === undefined) {
        api.on("before_prompt_build", recall(config, send, api.logger), { priority: RECALL_PRIORITY });
      } else {
        const session = new SessionHooks(config.hookCommand);
        const options = { priority: RECALL_PRIORITY, timeoutMs: 2 * HOOK_TIMEOUT_MS };
        api.on("before_prompt_build", session.prompt, options);
        api.on("agent_end", session.ended, options);
        api.on("before_compaction", session.compacting, options);
        api.on("session_end", session.closed, options);
      }
      api.on("before_dispatch", forget(config, send), { priority: RECALL_PRIORITY });
    }
    if (config.captureEnabled) {
      const turns = new Turns();
      api.on("before_prompt_build", (event, context) => {
        turns.begin(event, context);
        return undefined;
      });
      api.on("llm_output", capture(config, send, turns, api.logger), { priority: CAPTURE_PRIORITY });
    }
  },
};

export = plugin;
