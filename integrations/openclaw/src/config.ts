/** The plugin's configuration. OpenClaw checks it against `openclaw.plugin.json`; here it gets its defaults. */

export interface Config {
  readonly serverUrl: string;
  readonly authToken: string | undefined;
  readonly agentId: string | undefined;
  readonly hooksEnabled: boolean;
  readonly hookCommand: string | undefined;
  readonly captureEnabled: boolean;
  readonly maxMemories: number;
  readonly maxMemoryTokens: number;
  readonly maxPerMemoryChars: number;
  readonly maxReferents: number;
  readonly timeoutMs: number;
}

export const DEFAULT_AGENT = "default";
const DEFAULT_URL = "http://127.0.0.1:8000";
// The rule of the bridge: printable ASCII without slashes and bars, and no space at either end.
const AGENT = /^(?!\.{1,2}$)[!-.0-[\]-{}~](?:[ -.0-[\]-{}~]{0,126}[!-.0-[\]-{}~])?$/;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** The configuration with its defaults; an Error that names the key if a value cannot be used. */
export function readConfig(given: Record<string, unknown> = {}): Config {
  return {
    serverUrl: address(text(given, "serverUrl") ?? DEFAULT_URL),
    authToken: token(text(given, "authToken")),
    agentId: agent(text(given, "agentId")),
    hooksEnabled: flag(given, "hooksEnabled"),
    hookCommand: text(given, "hookCommand"),
    captureEnabled: flag(given, "captureEnabled"),
    maxMemories: number(given, "maxMemories", 5, 1, 50),
    maxMemoryTokens: number(given, "maxMemoryTokens", 1_000, 100, 20_000),
    maxPerMemoryChars: number(given, "maxPerMemoryChars", 600, 40, 4_000),
    maxReferents: number(given, "maxReferents", 8, 0, 50),
    timeoutMs: number(given, "timeoutMs", 30_000, 100, 600_000),
  };
}

/** Whom memories are attributed to: what is configured, or the agent that calls. */
export function agentFor(config: Config, caller: string | undefined): string {
  return config.agentId ?? (caller !== undefined && AGENT.test(caller) ? caller : DEFAULT_AGENT);
}

/** Whether the token would go over a network that others may listen to. */
export function sendsTokenInClear(config: Config): boolean {
  const url = new URL(config.serverUrl);
  return config.authToken !== undefined && url.protocol === "http:" && !LOOPBACK.test(url.hostname);
}

function address(given: string): string {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw wrong("serverUrl", "expected an address that begins with http:// or https://");
  }
  if (url.username || url.password || url.search || url.hash) {
    throw wrong("serverUrl", "expected an address without user, query and fragment; the token is `authToken`");
  }
  return given.trim().replace(/\/+$/, "");
}

function token(given: string | undefined): string | undefined {
  if (given !== undefined && !/^[!-~](?:[ -~]*[!-~])?$/.test(given)) {
    throw wrong("authToken", "expected printable ASCII characters");
  }
  return given;
}

function agent(given: string | undefined): string | undefined {
  if (given !== undefined && !AGENT.test(given)) {
    throw wrong("agentId", "expected 1 to 128 printable ASCII characters without slashes and bars");
  }
  return given;
}

/** A text; an empty one is the same as none. */
function text(given: Record<string, unknown>, key: string): string | undefined {
  const value = given[key];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value !== "string") throw wrong(key, "expected a text");
  return value;
}

function flag(given: Record<string, unknown>, key: string): boolean {
  const value = given[key] ?? false;
  if (typeof value !== "boolean") throw wrong(key, "expected true or false");
  return value;
}

function number(
  given: Record<string, unknown>, key: string, otherwise: number, least: number, most: number,
): number {
  const value = given[key] ?? otherwise;
  if (typeof value !== "number" || !Number.isInteger(value) || value < least || value > most) {
    throw wrong(key, `expected a whole number from ${least} to ${most}`);
  }
  return value;
}

function wrong(key: string, what: string): Error {
  return new Error(`openclaw-vestige: config.${key}: ${what}.`); // never the value: it may be the token
}
