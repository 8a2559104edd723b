"""What changes during a run: the teacher's share and the schedules."""
