"""The topics. Each module has `pairs()`, which returns a list of (English, French) built from the lexicon and the
grammar."""
