/** The part of OpenClaw's plugin API that this plugin uses. OpenClaw brings the rest at run time. */

export interface Logger {
  info(message: string): void;
  warn(message: string): void;
}

/** A tool's answer: `content` is for the model, `details` for OpenClaw. */
export interface ToolResult {
  content: { type: "text"; text: string }[];
  details: { ok: boolean };
}

export interface Tool {
  name: string;
  label: string;
  description: string;
  parameters: Record<string, unknown>;
  execute(toolCallId: string, params: unknown, signal?: AbortSignal): Promise<ToolResult>;
}

/** Which agent a tool is made for. */
export interface ToolContext {
  agentId?: string;
}

/** What a hook knows of the run. Older hosts leave most of it out. */
export interface AgentContext {
  runId?: string;
  agentId?: string;
  sessionKey?: string;
  sessionId?: string;
  trigger?: string;
  inputProvenance?: { kind: string };
}

export interface PromptEvent {
  prompt: string;
  /** What was asked, without history; empty if there is no text. Older hosts leave it out. */
  currentUserMessage?: string;
}

export interface PromptResult {
  prependContext?: string;
  prependSystemContext?: string;
}

/** What an agent said and did, from the beginning of the session. */
export interface AgentEndEvent {
  messages?: unknown[];
}

export interface OutputEvent {
  runId?: string;
  prompt?: string;
  assistantTexts: string[];
}

export interface DispatchEvent {
  content: string;
  isGroup?: boolean;
}

export interface DispatchContext {
  sessionKey?: string;
}

export interface DispatchResult {
  handled: boolean;
  text?: string;
}

interface HookOptions {
  priority?: number;
  timeoutMs?: number;
}

type Maybe<T> = Promise<T | undefined> | T | undefined;

export interface PluginApi {
  pluginConfig?: Record<string, unknown>;
  logger: Logger;
  registerTool(make: (context: ToolContext) => Tool, options: { name: string }): void;
  on(
    hook: "before_prompt_build",
    handler: (event: PromptEvent, context: AgentContext) => Maybe<PromptResult>,
    options?: HookOptions,
  ): void;
  on(
    hook: "llm_output",
    handler: (event: OutputEvent, context: AgentContext) => void,
    options?: HookOptions,
  ): void;
  on(
    hook: "before_dispatch",
    handler: (event: DispatchEvent, context: DispatchContext) => Maybe<DispatchResult>,
    options?: HookOptions,
  ): void;
  on(
    hook: "agent_end" | "before_compaction" | "session_end",
    handler: (event: AgentEndEvent, context: AgentContext) => Promise<void>,
    options?: HookOptions,
  ): void;
}

const BACKGROUND = new Set(["cron", "heartbeat", "memory", "overflow"]);

/** The agent of a session's key, such as `agent:main:telegram:direct:7`. */
export function agentOfSession(sessionKey: string | undefined): string | undefined {
  return /^agent:([^:]+):/i.exec(sessionKey ?? "")?.[1];
}

/** Whether a person began this turn, as far as the host says: not a schedule, another session or a sub-agent. */
export function isFromPerson(context: AgentContext): boolean {
  const origin = context.inputProvenance?.kind ?? "external_user";
  return (
    origin === "external_user" &&
    !BACKGROUND.has(context.trigger ?? "") &&
    !/(^|:)subagent:/i.test(context.sessionKey ?? "")
  );
}
