/** Requests to the bridge. They do not throw: what went wrong is an outcome too. */

import type { Config } from "./config";

export interface Success {
  readonly ok: true;
  /** What the tool said, as it is shown to the model. */
  readonly text: string;
  /** The same as data. */
  readonly structured: Record<string, unknown>;
}

export interface Failure {
  readonly ok: false;
  /** The HTTP status; undefined if there was no answer. */
  readonly status: number | undefined;
  readonly detail: string;
}

export type Outcome = Success | Failure;

export interface Request {
  readonly path: string;
  readonly body: unknown;
  readonly agent: string;
  readonly timeoutMs: number;
  /** Ends the request earlier, when the agent is stopped. */
  readonly signal?: AbortSignal | undefined;
  /** The same key twice is the same request: it is done once. */
  readonly idempotencyKey?: string | undefined;
}

/** Sends a request to the bridge and waits for its answer. */
export type Send = (request: Request) => Promise<Outcome>;

const MOST_DETAIL_CHARS = 2_000;

/** A sender to the bridge of this configuration. */
export function sender(config: Config): Send {
  return async (request) => {
    const stop = new AbortController();
    const late = setTimeout(() => stop.abort(), request.timeoutMs);
    const cancel = (): void => stop.abort();
    request.signal?.addEventListener("abort", cancel, { once: true });
    if (request.signal?.aborted) stop.abort();
    try {
      const response = await fetch(config.serverUrl + request.path, {
        method: "POST",
        headers: headers(config, request),
        body: JSON.stringify(request.body ?? {}, wellFormed),
        signal: stop.signal,
        redirect: "error", // the token and the memory are for this address only
      });
      return read(response.status, await response.text());
    } catch (error) {
      return { ok: false, status: undefined, detail: reason(error, request) };
    } finally {
      clearTimeout(late);
      request.signal?.removeEventListener("abort", cancel);
    }
  };
}

function headers(config: Config, request: Request): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "X-Agent-Id": request.agent,
    ...(config.authToken === undefined ? {} : { Authorization: `Bearer ${config.authToken}` }),
    ...(request.idempotencyKey === undefined ? {} : { "Idempotency-Key": request.idempotencyKey }),
  };
}

/** Half a character, which cutting a text may leave, is no JSON for the bridge. */
function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}

function read(status: number, raw: string): Outcome {
  const answer = asObject(parsed(raw));
  if (status < 200 || status > 299) {
    return { ok: false, status, detail: detailOf(answer) ?? (cut(raw) || `HTTP ${status}`) };
  }
  if (answer["success"] !== true) {
    return { ok: false, status, detail: detailOf(answer) ?? "The answer is not one of a Vestige bridge." };
  }
  const data = asObject(answer["data"]);
  const structured = asObject(data["structured"]);
  return { ok: true, text: texts(data["content"]) || JSON.stringify(structured), structured };
}

/** The reason of a refusal, with what would have been right if the bridge says so. */
function detailOf(answer: Record<string, unknown>): string | undefined {
  const parts = [answer["error"] ?? answer["detail"], answer["hint"]].map(asText);
  const sentences = parts.filter((part) => part !== "").map((part) => (/[.!?…]$/.test(part) ? part : `${part}.`));
  return cut(sentences.join(" ")) || undefined;
}

function texts(content: unknown): string {
  const blocks: unknown[] = Array.isArray(content) ? content : [];
  return blocks.map((block) => asObject(block)["text"]).filter((one) => typeof one === "string").join("\n");
}

function reason(error: unknown, request: Request): string {
  if (request.signal?.aborted) return "The call was cancelled.";
  if (error instanceof Error && error.name === "AbortError") {
    return `The bridge did not answer within ${request.timeoutMs} ms.`;
  }
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : "";
  return cut(`The bridge cannot be reached: ${[String(error), cause].filter(Boolean).join(": ")}`);
}

function parsed(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

function asText(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function cut(text: string): string {
  return text.slice(0, MOST_DETAIL_CHARS);
}

/** A value as an object; an empty one if it is something else. */
export function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>) // any object may be read by names
    : {};
}
