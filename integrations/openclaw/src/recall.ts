/** Recall before each prompt: what is remembered of what is asked, put before it. */

import { asObject, type Send } from "./client";
import { agentFor, type Config } from "./config";
import { harmless, marked, withoutMarked } from "./markers";
import { isFromPerson, type AgentContext, type Logger, type PromptEvent, type PromptResult } from "./openclaw";

export const RECALL_TIMEOUT_MS = 3_000;
const LEAST_CHARS = 5;
const QUERY_CHARS = 200;
const SCANNED_CHARS = 4_000;
const MOST_REFERENT_CHARS = 200;
const CHARS_PER_TOKEN = 4;

const PLEASANTRIES = [
  "hi", "hello", "hey", "yo", "good (?:morning|afternoon|evening|night)", "thanks", "thank you", "thx", "ok", "okay",
  "yes", "no", "yep", "nope", "sure", "great", "nice", "cool", "perfect", "got it", "go on", "continue", "please",
  "bye", "goodbye", "see you",
];
const TRIVIAL = new RegExp(
  `^(?:(?:${PLEASANTRIES.join("|")})(?: (?:there|again|all|everyone|so much|very much|a lot))?[\\s.,!?…]*)+$`,
  "i",
);

// What names one thing exactly: addresses, paths, commit hashes, issues such as VEST-12, #34 and owner/name#5.
const REFERENTS: readonly RegExp[] = [
  /\bhttps?:\/\/[^\s<>"'`)\]]+/gi,
  /(?<![\w/:.])(?:~|\.{1,2})?\/(?:[\w.@-]+\/)*[\w.@-]+/g,
  /\b[\w@-][\w.@-]*(?:\/[\w.@-]+)+\.[A-Za-z]\w{0,7}\b/g,
  /\b(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b/g,
  /\b[A-Z][A-Z0-9]{1,9}-\d{1,6}\b/g,
  /(?<![\w&])(?:[\w.-]+\/[\w.-]+)?#\d{1,7}\b/g,
];

/** The hook: asks the bridge, and never keeps a prompt from being built. */
export function recall(config: Config, send: Send, logger: Logger) {
  return async (event: PromptEvent, context: AgentContext): Promise<PromptResult | undefined> => {
    const asked = userText(event);
    if (!isFromPerson(context) || !isWorthRecalling(asked)) return undefined;
    const outcome = await send({
      path: "/search",
      body: {
        query: queryOf(asked, config.maxReferents),
        limit: config.maxMemories,
        truncate_body_chars: config.maxPerMemoryChars + 1, // one more, so that what was cut is seen to be
      },
      agent: agentFor(config, context.agentId),
      timeoutMs: RECALL_TIMEOUT_MS,
    });
    if (!outcome.ok) {
      logger.warn(`openclaw-vestige: nothing was recalled: ${outcome.detail}`);
      return undefined;
    }
    const chosen = withinBudget(hitsOf(outcome.structured).map((one) => one.content), config);
    return chosen.length === 0 ? undefined : { prependContext: marked(chosen) };
  };
}

/** What the user wrote, without memories that an earlier turn put before it. */
export function userText(event: PromptEvent): string {
  return withoutMarked(event.currentUserMessage ?? event.prompt);
}

/** Whether a message says enough to look for something. */
export function isWorthRecalling(text: string): boolean {
  return text.length >= LEAST_CHARS && !/^[./]\w/.test(text) && !TRIVIAL.test(text.slice(0, QUERY_CHARS));
}

/** What is looked for: the beginning of the message, and the things that the rest of it names. */
export function queryOf(text: string, maxReferents: number): string {
  const beginning = text.slice(0, QUERY_CHARS);
  const named = referents(text).filter((one) => !beginning.includes(one));
  return [beginning, ...named.slice(0, maxReferents)].join(" ");
}

/** The things that a text names exactly, in the order of their kinds, each once. */
export function referents(text: string): string[] {
  const scanned = text.slice(0, SCANNED_CHARS);
  const found = REFERENTS.flatMap((pattern) => scanned.match(pattern) ?? [])
    .map((one) => one.replace(/[.,;:!?]+$/, ""))
    .filter((one) => one.length <= MOST_REFERENT_CHARS);
  return [...new Set(found)].filter((one) => !found.some((other) => other !== one && other.includes(one)));
}

/** The texts that fit, best first; what is too long is passed over, and the next may still fit. */
export function withinBudget(texts: readonly string[], config: Config): string[] {
  const mostChars = config.maxMemoryTokens * CHARS_PER_TOKEN;
  const chosen: string[] = [];
  for (const text of texts) {
    if (chosen.length === config.maxMemories) break;
    const short = shortened(harmless(text), config.maxPerMemoryChars);
    if (short !== "" && marked([...chosen, short]).length <= mostChars) chosen.push(short);
  }
  return chosen;
}

/** A memory that was found, with how good it fits. */
export interface Hit {
  readonly id: string;
  readonly content: string;
  readonly score: number;
}

/** The memories in the answer to a search, best first. */
export function hitsOf(structured: Record<string, unknown>): Hit[] {
  const results: unknown[] = Array.isArray(structured["results"]) ? structured["results"] : [];
  return results.map(asObject).flatMap(({ id, content, combinedScore }) =>
    typeof id === "string" && typeof content === "string"
      ? [{ id, content, score: typeof combinedScore === "number" ? combinedScore : 1 }]
      : [],
  );
}

/** A text of at most so many characters, which says if it was cut. */
export function shortened(text: string, mostChars: number): string {
  if (text.length <= mostChars) return text;
  return `${text.slice(0, mostChars - 1)}…`;
}
