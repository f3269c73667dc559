// Written by `vestige connect opencode --hooks`; `--undo` removes it. Changes here are overwritten.
// It gives each session the context and the recall of Vestige, and logs what it did. On any trouble it does nothing.
import { spawn } from "node:child_process"

const COMMAND = /* the program and its arguments */ []
const INPUTS = ["filePath", "file_path", "path", "command", "todos", "patch"]
const MOST_CALLS = 200
const MOST_TURNS = 100
const TURN_CHARS = 4000

const ask = (payload) =>
  new Promise((resolve) => {
    let out = ""
    let child
    try {
      child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      return resolve("")
    }
    const timer = setTimeout(() => child.kill(), 8000)
    const done = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(out).hookSpecificOutput.additionalContext)
      } catch {
        resolve("")
      }
    }
    child.on("error", () => resolve(""))
    child.on("close", done)
    child.stdout.on("data", (part) => (out += part))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })

const text = (parts) =>
  (parts ?? []).filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")

export const Vestige = async ({ directory, client }) => {
  const packs = new Map()
  const tails = new Map()
  const children = new Map()
  const calls = new Map()
  const base = (name, session) => ({ hook_event_name: name, session_id: session, cwd: directory })
  const isChild = async (session) => {
    if (!children.has(session)) {
      let parent
      try {
        parent = (await client.session.get({ path: { id: session } })).data?.parentID
      } catch {}
      children.set(session, Boolean(parent))
    }
    return children.get(session)
  }
  const start = async (session, source) => {
    if (!(await isChild(session))) packs.set(session, await ask({ ...base("SessionStart", session), source }))
  }
  // OpenCode has no transcript file: what was said and done goes with the hook.
  const follow = async (name, session) => {
    if (await isChild(session)) return
    let said = []
    try {
      said = (await client.session.messages({ path: { id: session } })).data ?? []
    } catch {}
    const turns = said
      .map(({ info, parts }) => ({ role: info?.role, text: text(parts).slice(0, TURN_CHARS + 1) }))
      .filter((turn) => turn.text)
      .slice(-MOST_TURNS)
    const last = turns.filter((turn) => turn.role === "assistant").pop()
    const done = calls.get(session) ?? []
    calls.delete(session)
    await ask({ ...base(name, session), turns, calls: done, last_assistant_message: last?.text ?? "" })
  }
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (await isChild(sessionID)) return
      if (!packs.has(sessionID)) await start(sessionID, "startup")
      tails.set(sessionID, await ask({ ...base("UserPromptSubmit", sessionID), prompt: text(parts) }))
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      // The pack is the same for the whole session, so that the prompt cache stays valid; the tail comes last.
      for (const text of [packs.get(sessionID), tails.get(sessionID)]) if (text) output.system.push(text)
    },
    "tool.execute.before": async ({ tool, sessionID }, { args }) => {
      const input = Object.fromEntries(INPUTS.filter((key) => args?.[key]).map((key) => [key, args[key]]))
      const listed = calls.get(sessionID) ?? []
      listed.push({ name: tool, input })
      calls.set(sessionID, listed.slice(-MOST_CALLS))
    },
    "experimental.session.compacting": async ({ sessionID }) => follow("PreCompact", sessionID),
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.idle") await follow("Stop", session)
      if (event.type === "session.compacted") await start(session, "compact")
      if (event.type === "session.deleted") {
        if (!(await isChild(session))) await ask(base("SessionEnd", session))
        for (const kept of [packs, tails, children, calls]) kept.delete(session)
      }
    },
  }
}
