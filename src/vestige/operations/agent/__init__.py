"""Operations on the layers of a persistent agent."""
