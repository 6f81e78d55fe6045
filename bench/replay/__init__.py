"""The parts of the context bench: conversations, counting, the bill, the baselines, the replay and its report."""
