"""What the gate makes of a new text: restatement, correction, something else; beside what it is."""
