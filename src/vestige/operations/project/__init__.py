"""Operations on a project: its code index, its recall packages, and the memories of its scope."""
