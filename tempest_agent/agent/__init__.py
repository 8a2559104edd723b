"""The student: a DQN with a discrete and a continuous action."""
