/** Capture after a turn: what the user stated about himself or decided, with the beginning of the reply. */

import type { Send } from "./client";
import { agentFor, type Config } from "./config";
import { withoutMarked } from "./markers";
import { isFromPerson, type AgentContext, type Logger, type OutputEvent, type PromptEvent } from "./openclaw";
import { userText } from "./recall";

export const CAPTURE_TIMEOUT_MS = 5_000;
export const TAGS = ["auto-ingested"];
const LEAST_CHARS = 20;
const USER_CHARS = 100;
const REPLY_CHARS = 200;
const SCANNED_CHARS = 2_000;
const MOST_TURNS = 200;

const OWN = [
  "name", "birthday", "e-?mail", "address", "phone", "time ?zone", "job", "role", "team", "company", "wife", "husband",
  "partner", "son", "daughter", "dog", "cat", "laptop", "machine", "editor", "stack", "project", "setup", "city",
  "language",
];

/** What a user says that is worth remembering. The README lists these rules; they are English. */
const STATEMENTS: readonly RegExp[] = [
  // Preferences: I prefer tabs; my favourite editor is Helix; I don't like mocks; please always use UTC.
  /\bI(?:'d| would)? (?:really |much |generally |usually |always )?(?:prefer|like|love|hate|dislike|enjoy)\b/i,
  /\bI (?:do not|don't|can't|cannot) (?:like|stand|want)\b/i,
  /\bmy (?:preferred|favou?rite)\b/i,
  /(?:^|[.!;,]\s*)(?:please )?(?:always|never|from now on|in (?:the )?future)\b/i,
  // Decisions: we decided on Postgres; let's go with plan B; we will use Rust.
  /\b(?:I|we)(?:'ve| have)? (?:decided|chosen|chose|agreed|settled on|picked|switched to|moved to)\b/i,
  /\b(?:I|we)(?:'ll| will|'re going to| are going to) (?:use|go with|switch to|move to|stick with|drop)\b/i,
  /\blet(?:'|’)?s (?:use|go with|stick with|switch to|drop)\b/i,
  // Facts about himself: my name is Ada; I am a vet; I work at the harbour; my timezone is CET; call me Bo.
  new RegExp(`\\bmy (?:[\\w'-]+ ){0,3}?(?:${OWN.join("|")})s? (?:is|are|was|runs|lives)\\b`, "i"),
  /\bI(?:'m| am) (?:a|an|the|from|based|allergic|vegetarian|vegan|married|responsible)\b/i,
  /\bI (?:live|work|study|grew up|was born|moved)\b/i,
  /\b(?:call me|remember that|note that|keep in mind|for the record|fyi)\b/i,
  // Corrections: no, it is port 8080; actually the key moved; that's wrong; I meant the other one.
  /^(?:no|nope|wrong|actually|correction)\b[\s,:.!-]/i,
  /\b(?:that(?:'s| is)|you(?:'re| are)|it(?:'s| is)) (?:wrong|incorrect|not (?:right|true|correct))\b/i,
  /\bI (?:meant|mean)\b/i,
];

/** The user's words of turns that are under way, for the hook that sees the reply may not see them. */
export class Turns {
  private readonly known = new Map<string, string>();

  /** Keep what the user of this run wrote; nothing if no person did. */
  begin(event: PromptEvent, context: AgentContext): void {
    if (context.runId === undefined) return;
    this.known.delete(context.runId);
    this.known.set(context.runId, isFromPerson(context) ? userText(event) : "");
    const oldest = this.known.keys().next().value;
    if (this.known.size > MOST_TURNS && oldest !== undefined) this.known.delete(oldest);
  }

  /** What the user of a run wrote, once. */
  end(runId: string | undefined): string | undefined {
    if (runId === undefined) return undefined;
    const words = this.known.get(runId);
    this.known.delete(runId);
    return words;
  }
}

/** The hook: sends what is worth remembering, and lets nobody wait for it. */
export function capture(config: Config, send: Send, turns: Turns, logger: Logger) {
  return (event: OutputEvent, context: AgentContext): void => {
    const runId = event.runId ?? context.runId;
    const said = turns.end(runId) ?? withoutMarked(event.prompt ?? "");
    if (!isFromPerson(context) || !states(said)) return;
    const request = {
      path: "/smart_ingest",
      body: { content: turnText(said, event.assistantTexts), node_type: "fact", tags: TAGS },
      agent: agentFor(config, context.agentId),
      timeoutMs: CAPTURE_TIMEOUT_MS,
      // A run that is told of twice, as after a retry, is remembered once.
      idempotencyKey: runId === undefined ? undefined : `openclaw-run:${runId}`.slice(0, 200),
    };
    void send(request).then((outcome) => {
      if (!outcome.ok) logger.warn(`openclaw-vestige: a turn was not remembered: ${outcome.detail}`);
    });
  };
}

/** Whether a message states a preference, a decision, a fact about its writer or a correction. */
export function states(said: string): boolean {
  const text = said.slice(0, SCANNED_CHARS).replaceAll("’", "'");
  return text.length >= LEAST_CHARS && !/^[./]\w/.test(text) && STATEMENTS.some((rule) => rule.test(text));
}

/** A turn as one text. What was recalled for it is not in there. */
export function turnText(said: string, replies: readonly string[]): string {
  const reply = withoutMarked(replies.join("\n")).slice(0, REPLY_CHARS).trim();
  const user = said.slice(0, USER_CHARS).trim();
  return reply === "" ? user : `${user} → ${reply}`;
}
