/** The plugin: the memory of Vestige, for agents of OpenClaw. */

import { capture, Turns } from "./capture";
import { sender } from "./client";
import { readConfig, sendsTokenInClear } from "./config";
import { forget } from "./forget";
import type { PluginApi } from "./openclaw";
import { recall } from "./recall";
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
      api.on("before_prompt_build", recall(config, send, api.logger), { priority: RECALL_PRIORITY });
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
