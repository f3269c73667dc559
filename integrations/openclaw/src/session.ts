/** The agent's habits of Vestige: the program `vestige-hook` on this machine gives each session its context, recalls for
 * prompts only when it is sure, and logs what was done. On any trouble nothing is added. */

import { spawn } from "node:child_process";

import { asObject } from "./client";
import { isFromPerson, type AgentContext, type AgentEndEvent, type PromptEvent, type PromptResult } from "./openclaw";
import { userText } from "./recall";

export const HOOK_TIMEOUT_MS = 8_000;
const MOST_SESSIONS = 500;
const MOST_TURNS = 100;
const TURN_CHARS = 4_000;
// From an opening tag to its closing one, or to the end if that was cut off.
const BLOCK = /<vestige-(recall|context)\b[^>]*>[\s\S]*?(?:<\/vestige-\1>|$)/g;

interface Turn {
  role: string;
  text: string;
}

interface ToolCall {
  name: string;
  input: unknown;
}

export class SessionHooks {
  /** The context of each session, which stays the same until a compaction, so that prompt caches stay valid. */
  private readonly packs = new Map<string, string>();
  private readonly compacted = new Set<string>();
  /** How many messages of a session were sent: `agent_end` lists all of them each time. */
  private readonly sent = new Map<string, number>();

  constructor(private readonly command: string) {}

  readonly prompt = async (event: PromptEvent, context: AgentContext): Promise<PromptResult | undefined> => {
    const session = sessionOf(context);
    if (session === undefined) return undefined;
    let pack = this.packs.get(session);
    if (pack === undefined) {
      const source = this.compacted.delete(session) ? "compact" : "startup";
      pack = await this.ask("SessionStart", session, { source });
      this.keep(session, pack);
    }
    const tail = await this.ask("UserPromptSubmit", session, { prompt: userText(event).replace(BLOCK, "").trim() });
    if (pack === "" && tail === "") return undefined;
    return { ...(pack && { prependSystemContext: pack }), ...(tail && { prependContext: tail }) };
  };

  readonly ended = async (event: AgentEndEvent, context: AgentContext): Promise<void> => {
    const session = sessionOf(context);
    if (session === undefined) return;
    const all = event.messages ?? [];
    const before = this.sent.get(session) ?? 0;
    const fresh = all.slice(before <= all.length ? before : 0).map(asObject);
    this.sent.set(session, all.length);
    const turns = all.map(asObject).flatMap(turnOf).slice(-MOST_TURNS);
    const last = turns.findLast(({ role }) => role === "assistant")?.text ?? "";
    await this.ask("Stop", session, { turns, calls: fresh.flatMap(callsOf), last_assistant_message: last });
  };

  readonly compacting = async (_event: unknown, context: AgentContext): Promise<void> => {
    const session = sessionOf(context);
    if (session === undefined) return;
    await this.ask("PreCompact", session, {});
    this.packs.delete(session);
    this.compacted.add(session);
  };

  readonly closed = async (_event: unknown, context: AgentContext): Promise<void> => {
    const session = sessionOf(context);
    if (session === undefined) return;
    for (const kept of [this.packs, this.compacted, this.sent]) kept.delete(session);
    await this.ask("SessionEnd", session, {});
  };

  private keep(session: string, pack: string): void {
    this.packs.set(session, pack);
    for (const oldest of this.packs.keys()) {
      if (this.packs.size <= MOST_SESSIONS) return;
      for (const kept of [this.packs, this.sent]) kept.delete(oldest);
    }
  }

  /** What the program adds to the context; empty if it says nothing, fails or takes too long. */
  private ask(name: string, session: string, fields: Record<string, unknown>): Promise<string> {
    return new Promise((resolve) => {
      let said = "";
      const child = spawn(this.command, ["openclaw"], {
        stdio: ["pipe", "pipe", "ignore"],
        timeout: HOOK_TIMEOUT_MS,
      });
      child.on("error", () => resolve(""));
      child.on("close", () => resolve(contextIn(said)));
      child.stdout.setEncoding("utf8").on("data", (part: string) => (said += part));
      child.stdin.on("error", () => undefined);
      child.stdin.end(JSON.stringify({ hook_event_name: name, session_id: session, ...fields }));
    });
  }
}

/** The session of a turn that a person began. A reset keeps the key and gives a new id. */
function sessionOf(context: AgentContext): string | undefined {
  return isFromPerson(context) ? (context.sessionId ?? context.sessionKey) : undefined;
}

function contextIn(said: string): string {
  try {
    const context = asObject(asObject(JSON.parse(said))["hookSpecificOutput"])["additionalContext"];
    return typeof context === "string" ? context : "";
  } catch {
    return "";
  }
}

function blocksOf(message: Record<string, unknown>): Record<string, unknown>[] {
  const content = message["content"];
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content.map(asObject) : [];
}

function turnOf(message: Record<string, unknown>): Turn[] {
  const role = message["role"];
  if (role !== "user" && role !== "assistant") return [];
  const texts = blocksOf(message).flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []));
  const text = texts.join("\n").replace(BLOCK, "").trim().slice(0, TURN_CHARS + 1);
  return text === "" ? [] : [{ role, text }];
}

function callsOf(message: Record<string, unknown>): ToolCall[] {
  return blocksOf(message).flatMap((block) =>
    block["type"] === "toolCall" && typeof block["name"] === "string"
      ? [{ name: block["name"], input: block["arguments"] }]
      : [],
  );
}
