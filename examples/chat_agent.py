"""A chat agent with a long-term memory, without a language model: it remembers and answers.

Put your model where `reply` decides. Run it with `python examples/chat_agent.py`. It prints:

    you:   My sister Nora lives in Lisbon.
    agent: I will remember that.
    you:   The demo for Contoso is on 12 June.
    agent: I will remember that.
    -- the next day, a new conversation --
    you:   Where does my sister live?
    agent: My sister Nora lives in Lisbon.
    you:   When is the demo for Contoso?
    agent: The demo for Contoso is on 12 June.
    you:   What is the boiling point of iron?
    agent: I do not know.
"""

import tempfile

from vestige import Memory


class ChatAgent:
    """Recalls before it answers, and remembers what it is told."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def reply(self, text: str) -> str:
        if not text.endswith("?"):
            self.memory.add(text, author="user")
            return "I will remember that."
        found = self.memory.search(text, limit=1)
        # With a model: put these results into its prompt, as data.
        return found["results"][0]["content"] if found["results"] else "I do not know."


def talk(agent: ChatAgent, *texts: str) -> None:
    for text in texts:
        print(f"you:   {text}")
        print(f"agent: {agent.reply(text)}")


with tempfile.TemporaryDirectory() as folder:
    with Memory(folder) as memory:
        talk(ChatAgent(memory), "My sister Nora lives in Lisbon.", "The demo for Contoso is on 12 June.")
    print("-- the next day, a new conversation --")
    with Memory(folder) as memory:
        talk(
            ChatAgent(memory),
            "Where does my sister live?",
            "When is the demo for Contoso?",
            "What is the boiling point of iron?",
        )
