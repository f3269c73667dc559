"""Operations on sessions of coding agents."""
