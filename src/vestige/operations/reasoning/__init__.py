"""Operations that think over many memories: reference, session, insights, sleep, prediction."""
