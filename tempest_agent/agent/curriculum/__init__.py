"""What changes during a run: the teacher's share, schedules, start levels."""
