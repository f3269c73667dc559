"""Operations on domains."""
