"""Text that gives orders to an agent, hides something, or imitates what only a client may say."""
