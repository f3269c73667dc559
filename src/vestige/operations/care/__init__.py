"""Operations that look after the store: status, health, doctor, backup, export, import, keys."""
