"""What changes during a run: schedules, the teacher's share, the teacher's score."""
