"""The student: a DQN whose action is a pair of buttons and a position of the spinner."""
