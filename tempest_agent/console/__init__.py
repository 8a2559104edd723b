"""Progress lines, and terminals that go away."""
