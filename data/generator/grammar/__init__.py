"""A small bilingual grammar: a lexicon, functions that build clauses, and topics that return (English, French)
pairs."""
