/** The command `.forget <query>`: demotes what is found first, and says what that was. */

import type { Send } from "./client";
import { agentFor, type Config } from "./config";
import { harmless } from "./markers";
import { agentOfSession, type DispatchContext, type DispatchEvent, type DispatchResult } from "./openclaw";
import { hitsOf, shortened, type Hit } from "./recall";

export const MOST_FORGOTTEN = 3;
const SHOWN_CHARS = 100;
/** What fits much worse than the best is most likely about something else. */
const LEAST_SHARE_OF_BEST = 0.7;
const COMMAND = /^\.forget(?:\s+([\s\S]*))?$/i;

/** The hook: answers the command itself, and lets every other message pass. */
export function forget(config: Config, send: Send) {
  return async (event: DispatchEvent, context: DispatchContext): Promise<DispatchResult | undefined> => {
    const command = COMMAND.exec(event.content.trim());
    if (command === null) return undefined;
    if (event.isGroup) {
      // Everybody in the group could use it, and all of them would read what was found.
      return { handled: true, text: "`.forget` works in a direct chat only." };
    }
    const query = (command[1] ?? "").trim();
    if (query === "") return { handled: true, text: "What should be forgotten? `.forget <words>`" };
    const agent = agentFor(config, agentOfSession(context.sessionKey));
    return { handled: true, text: await demoteFound(query, agent, config, send) };
  };
}

async function demoteFound(query: string, agent: string, config: Config, send: Send): Promise<string> {
  const timeoutMs = config.timeoutMs;
  // Looking for something to forget it must not strengthen it.
  const body = { query, limit: MOST_FORGOTTEN, record: false };
  const found = await send({ path: "/search", body, agent, timeoutMs });
  if (!found.ok) return `Nothing was forgotten: ${found.detail}`;
  const lines: string[] = [];
  for (const { id, content } of meant(hitsOf(found.structured))) {
    const done = await send({ path: "/demote", body: { memory_id: id, reason: ".forget" }, agent, timeoutMs });
    const shown = shortened(harmless(content).replace(/\s+/g, " "), SHOWN_CHARS);
    lines.push(done.ok ? `- demoted: ${shown} (${id})` : `- not demoted: ${shown} (${id}): ${done.detail}`);
  }
  if (lines.length === 0) return "Nothing like that is remembered.";
  return ["What is demoted fades sooner and is found less; promoting it undoes that.", ...lines].join("\n");
}

function meant(hits: readonly Hit[]): readonly Hit[] {
  const best = Math.max(...hits.map((hit) => hit.score));
  return hits.filter((hit) => hit.score >= LEAST_SHARE_OF_BEST * best).slice(0, MOST_FORGOTTEN);
}
