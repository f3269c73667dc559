"""Are texts that command an agent found, and ordinary ones left alone?"""
