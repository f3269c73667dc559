"""The part that all relational stores share. ADR 0019 says how one SQL serves two engines."""
