"""The topics. Each module has `pairs()`, a list of (English, French) built from the lexicon and the grammar."""
