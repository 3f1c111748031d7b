"""Builds a small treebank: English sentences with their constituency trees, in the brackets of the Penn Treebank with
its labels, function tags and traces. Where a prepositional phrase or a relative clause attaches depends on the words
around it, so that a parser must learn from the words and not only from their parts of speech."""

from .pairs import digest

# singular, plural, and whether it is a person
PEOPLE = """girl girls;boy boys;woman women;man men;teacher teachers;doctor doctors;neighbor neighbors;child children;
friend friends;baker bakers;student students;farmer farmers""".replace("\n", "").split(";")
THINGS = """book books;letter letters;apple apples;cake cakes;picture pictures;song songs;key keys;box boxes;
ticket tickets;hat hats;coat coats;bicycle bicycles""".replace("\n", "").split(";")
PLACES = "garden kitchen park school village station library market".split()
NAMES = "Anne Paul Marie Tom Nina Hugo".split()
ADJECTIVES = "old young small red new happy quiet little".split()
ADVERBS = "often never always already".split()
TIMES = "today yesterday tomorrow".split()

# base, third person, past, participle. Each kind of verb has its own frame.
INTRANSITIVE = "sleep sleeps slept slept;laugh laughs laughed laughed;wait waits waited waited;sing sings sang sung".split(";")
TRANSITIVE = """see sees saw seen;find finds found found;like likes liked liked;buy buys bought bought;
bring brings brought brought;paint paints painted painted""".replace("\n", "").split(";")
GIVING = "give gives gave given;send sends sent sent;show shows showed shown".split(";")
SAYING = "say says said said;think thinks thought thought;know knows knew known".split(";")
WANTING = "want wants wanted wanted;hope hopes hoped hoped;try tries tried tried".split(";")
# An instrument belongs to the verb, a part to the noun before it: "paints a box with a brush", "a box with a lock".
INSTRUMENTS = "brush camera telescope pencil".split()
PARTS = "lock cover ribbon pocket".split()


class Choices:
    """A fixed sequence of choices that depends on a text only."""

    def __init__(self, text):
        self.text, self.count = text, 0

    def number(self, below):
        self.count += 1
        return int(digest(f"{self.text}|{self.count}")[:8], 16) % below

    def one(self, items):
        return items[self.number(len(items))]

    def chance(self, percent):
        return self.number(100) < percent


def tree(label, *children):
    return f"({label} {' '.join(child for child in children if child)})"


def verb(choose, verbs, form):
    return choose.one(verbs).split()[form]


def prepositional(preposition, phrase, tag=""):
    return tree("PP" + tag, tree("IN", preposition), phrase)


def noun_phrase(choose, tag="", depth=0, things=False, parts=True, subject=False):
    """Returns (tree, plural). A subject is a person, and `things` are no persons."""
    subject = subject or tag == "-SBJ"
    kind = choose.number(100)
    if not things and kind < 15:
        return tree("NP" + tag, tree("NNP", choose.one(NAMES))), False
    if not things and kind < 30:
        pronoun = choose.one(["she", "he", "they", "we"] if subject else ["her", "him", "them", "us"])
        return tree("NP" + tag, tree("PRP", pronoun)), pronoun in ("they", "we")
    if depth < 2 and kind < 38:
        left, right = (noun_phrase(choose, "", 2, things, subject=subject)[0] for _ in range(2))
        return tree("NP" + tag, left, tree("CC", "and"), right), True
    plural = choose.chance(30)
    noun = choose.one(THINGS if things or not subject and choose.chance(25) else PEOPLE)
    determiner = choose.one(["the", "some", "these"] if plural else ["the", "a", "this", "every"])
    adjective = tree("JJ", choose.one(ADJECTIVES)) if choose.chance(30) else ""
    head = noun.split()[1 if plural else 0]
    if determiner == "a" and ("JJ old" in adjective or head == "apple" and not adjective):
        determiner = "the"  # not "a old"
    core = [tree("DT", determiner), adjective, tree("NNS" if plural else "NN", head)]
    if depth < 2 and parts and choose.chance(32):
        after = choose.number(3)
        if after == 0:
            more = prepositional("of", tree("NP", tree("NNP", choose.one(NAMES))))
        elif after == 1 and noun in THINGS:
            more = prepositional("with", tree("NP", tree("DT", "a"), tree("NN", choose.one(PARTS))))
        elif after == 1:
            more = prepositional("from", tree("NP", tree("DT", "the"), tree("NN", choose.one(PLACES))))
        else:
            form = 0 if plural else 1
            more = tree(
                "SBAR",
                tree("WHNP-1", tree("WDT" if noun in THINGS else "WP", "that" if noun in THINGS else "who")),
                tree("S", tree("NP-SBJ", "(-NONE- *T*-1)"), verb_phrase(choose, form, depth + 2))
                if noun in PEOPLE
                else tree(
                    "S",
                    noun_phrase(choose, "-SBJ", 2, parts=False)[0],
                    tree("VP", tree("VBD", verb(choose, TRANSITIVE, 2)), tree("NP", "(-NONE- *T*-1)")),
                ),
            )
        return tree("NP" + tag, tree("NP", *core), more), plural
    return tree("NP" + tag, *core), plural


TAGS = ("VBP", "VBZ", "VBD", "VBN", "VB")


def place(choose):
    return prepositional("in", tree("NP", tree("DT", "the"), tree("NN", choose.one(PLACES))), "-LOC")


def verb_phrase(choose, form, depth=0):
    """Returns a verb phrase whose verb has a form of: 0 present, 1 third person, 2 past, 4 base."""

    def word(verbs):
        return tree(TAGS[form], verb(choose, verbs, 0 if form == 4 else form))

    kind = choose.number(100)
    if kind < 18:
        return tree("VP", word(INTRANSITIVE), place(choose) if choose.chance(50) else "")
    if kind < 34:
        who = noun_phrase(choose, "", max(depth, 1), things=True, parts=False)[0]
        to = tree("PP-DTV", tree("TO", "to"), noun_phrase(choose, "", 2)[0])
        return tree("VP", word(GIVING), who, to)
    if kind < 44 and depth < 2:
        return tree("VP", word(SAYING), tree("SBAR", tree("IN", "that"), clause(choose, depth + 1)))
    if kind < 54 and depth < 2:
        inner = tree("VP", tree("TO", "to"), verb_phrase(choose, 4, depth + 1))
        return tree("VP", word(WANTING), tree("S", tree("NP-SBJ", "(-NONE- *)"), inner))
    thing = noun_phrase(choose, "", max(depth, 1), things=True)[0]
    after = choose.number(4)
    if after == 0:
        tool = tree("NP", tree("DT", "a"), tree("NN", choose.one(INSTRUMENTS)))
        return tree("VP", word(TRANSITIVE), thing, prepositional("with", tool, "-MNR"))
    return tree("VP", word(TRANSITIVE), thing, place(choose) if after == 1 else "")


def clause(choose, depth=0, more=()):
    subject, plural = noun_phrase(choose, "-SBJ", depth)
    kind = choose.number(100)
    adverb = tree("ADVP-TMP", tree("RB", choose.one(ADVERBS))) if choose.chance(12) else ""
    if kind < 15:
        predicate = tree("VP", tree("MD", choose.one(["can", "will", "must"])), adverb, verb_phrase(choose, 4, depth))
    elif kind < 28:
        does = tree("VBP", "do") if plural else tree("VBZ", "does")
        predicate = tree("VP", does, tree("RB", "not"), verb_phrase(choose, 4, depth))
    elif kind < 40:
        be = tree("VBP", "are") if plural else tree("VBZ", "is")
        predicate = tree("VP", be, adverb, tree("ADJP-PRD", tree("JJ", choose.one(ADJECTIVES))))
    else:
        form = 2 if choose.chance(50) else 0 if plural else 1
        return tree("S", *more, subject, adverb, verb_phrase(choose, form, depth))
    return tree("S", *more, subject, predicate)


def sentence(choose):
    kind = choose.number(100)
    if kind < 10:
        when = tree("SBAR-TMP", tree("WHADVP-1", tree("WRB", "when")), clause(choose, 2))
        body = clause(choose, 1, (when, tree(",", ",")))[:-1] + " (. .))"
    elif kind < 18:
        body = tree("S", clause(choose, 1), tree("CC", choose.one(["and", "but"])), clause(choose, 1), tree(".", "."))
    elif kind < 26:
        time = tree("NP-TMP", tree("NN", choose.one(TIMES)))
        body = clause(choose, 0, (time, tree(",", ",")))[:-1] + " (. .))"
    elif kind < 34:
        subject, plural = noun_phrase(choose, "-SBJ", 1)
        does = tree("VBP", "do") if plural else tree("VBZ", "does")
        body = tree("SQ", does, subject, verb_phrase(choose, 4, 1), tree(".", "?"))
    else:
        body = clause(choose)[:-1] + " (. .))"
    return f"( {body} )"


def words(bracketed):
    """Returns the number of words of a tree, traces left out."""
    return sum(")" in part and not part.startswith("-NONE-") for part in bracketed.split("("))


def build(count, longest):
    """Returns `count` different trees of 3 to `longest` words."""
    found = {}
    number = 0
    while len(found) < count:
        one = sentence(Choices(f"tree|{number}"))
        number += 1
        if 3 <= words(one) <= longest:
            found.setdefault(one)
    return list(found)
