"""A small bilingual grammar: one lexicon, one set of clause builders and a list of topics that yield (English, French) pairs."""
