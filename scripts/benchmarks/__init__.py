"""heed measured beside the field's programs: a module a subject, `command` in front of them, `peers/` the other side."""
