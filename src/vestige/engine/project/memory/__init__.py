"""The durable memory of a project: copies into other projects, snapshots, and files that a team shares."""
