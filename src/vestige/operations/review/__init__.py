"""The review inbox: texts that wait for a decision."""
