// Written by `vestige connect opencode --hooks`; `--undo` removes it. Changes here are overwritten.
// It gives each session the context and the recall of Vestige. On any trouble it does nothing.
import { spawn } from "node:child_process"

const COMMAND = /* the program and its arguments */ []

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

export const Vestige = async ({ directory, client }) => {
  const packs = new Map()
  const tails = new Map()
  const children = new Map()
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
  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (await isChild(sessionID)) return
      if (!packs.has(sessionID)) await start(sessionID, "startup")
      const prompt = parts.filter((part) => part.type === "text").map((part) => part.text).join("\n")
      tails.set(sessionID, await ask({ ...base("UserPromptSubmit", sessionID), prompt }))
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      // The pack is the same for the whole session, so that the prompt cache stays valid; the tail comes last.
      for (const text of [packs.get(sessionID), tails.get(sessionID)]) if (text) output.system.push(text)
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.compacted") await start(session, "compact")
      if (event.type === "session.deleted") {
        await ask(base("SessionEnd", session))
        for (const kept of [packs, tails, children]) kept.delete(session)
      }
    },
  }
}
