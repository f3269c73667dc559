"""Changes to memories that exist: feedback, links, tags, merging, suppression, archiving, deletion."""
