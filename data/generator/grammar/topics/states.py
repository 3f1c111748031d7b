"""States of people: adjectives, expressions with avoir, places where a person is, feelings."""

from .. import english as en
from .. import french as fr
from ..lexicon import CHARACTERS, EVERYONE, HE, I, MOODS, PEOPLE, PRONOUNS, SHE, THEY, WE, YOU
from ..pairs import Pairs, pick, table

# Expressions with be in English and avoir in French: "I'm hungry" = "j'ai faim".
AVOIR = table("""
hungry = faim
thirsty = soif
cold = froid
hot = chaud
afraid = peur
right = raison
wrong = tort
lucky = de la chance
sleepy = sommeil
""")
# Expressions with être that have the same form for all subjects.
INVARIABLE = table("""
late = en retard
early = en avance
at home = à la maison
home = chez @moi
at work = au travail
at school = à l'école
at the hospital = à l'hôpital
in Paris = à Paris
on vacation = en vacances
in a hurry = pressé@e
angry = en colère
in the kitchen = dans la cuisine
in the garden = dans le jardin
here = ici
in good health = en bonne santé
""")
FEELINGS = table("""
much better = beaucoup mieux
better today = mieux aujourd'hui
very tired = très fatigué@e
very happy = très @heureux
alone = seul@e
ready = prêt@e
""")


def adjectives():
    found = Pairs()
    for adjective in MOODS.values():
        for who in EVERYONE:
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(en.with_be(who, adjective.en), fr.clause(who, "être", form))
    return found


def adverbs_before_adjectives():
    found = Pairs()
    degrees = (
        ("very", "très"),
        ("too", "trop"),
        ("a little", "un peu"),
        ("still", "encore"),
        ("always", "toujours"),
        ("often", "souvent"),
    )
    for english_degree, french_degree in degrees:
        adjectives = list(MOODS.values())
        if english_degree in ("very", "too"):
            adjectives = [
                MOODS[name]
                for name in ("tired", "busy", "sick", "happy", "sad", "worried", "nervous")
                if (english_degree, name) != ("too", "happy")
            ]
            adjectives += [
                CHARACTERS[name]
                for name in ("young", "shy", "curious", "kind", "nice", "funny", "serious", "lazy", "polite")
                if english_degree == "very" or name not in ("nice", "funny", "polite")
            ]
        elif english_degree == "a little":
            adjectives = [MOODS[name] for name in ("tired", "sad", "worried", "nervous", "surprised", "sick")] + [
                CHARACTERS["shy"],
                CHARACTERS["jealous"],
            ]
        elif english_degree == "still":
            adjectives = [MOODS[name] for name in ("sick", "tired", "busy", "worried", "sad")] + [CHARACTERS["young"]]
        else:
            adjectives = [MOODS[name] for name in ("tired", "busy", "sick", "happy", "calm", "sad", "worried")]
        options = [(who, adjective) for who in EVERYONE for adjective in adjectives]
        for who, adjective in pick(26, options, english_degree):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(
                en.with_be(who, f"{english_degree} {adjective.en}"), fr.clause(who, "être", f"{french_degree} {form}")
            )
    return found


def negated_and_asked():
    every = list(MOODS.values()) + list(CHARACTERS.values())
    found = Pairs()
    for adjective in every:
        for who in pick(3, EVERYONE, "not" + adjective.en):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(en.with_be(who, adjective.en, negated=True), fr.clause(who, "être", form, negation="pas"))
        for who in pick(2, (YOU, HE, SHE, THEY), "ask" + adjective.en):
            form = fr.agree(adjective, who.gender, who.plural)
            found.ask(f"{en.be(who)} {who.en} {adjective.en}", fr.question(who, "être", form))
        for who in pick(1, PEOPLE[4:], "ask someone" + adjective.en):
            form = fr.agree(adjective, who.gender, who.plural)
            found.ask(f"{en.be(who)} {who.en} {adjective.en}", fr.est_ce_que(who, "être", form))
    for name in ("tired", "sick", "busy", "sad", "worried", "nervous", "alone"):
        for who in pick(4, EVERYONE, "any more" + name):
            form = fr.agree(MOODS[name], who.gender, who.plural)
            found.say(en.with_be(who, f"{name} anymore", negated=True), fr.clause(who, "être", form, negation="plus"))
    return found


def characters():
    found = Pairs()
    for adjective in CHARACTERS.values():
        for who in pick(7, EVERYONE, adjective.en):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(en.with_be(who, adjective.en), fr.clause(who, "être", form))
    for name in (
        "rich",
        "poor",
        "young",
        "shy",
        "lazy",
        "strong",
        "tired",
        "sick",
        "happy",
        "busy",
        "calm",
        "ready",
        "nervous",
        "famous",
    ):
        adjective = CHARACTERS.get(name) or MOODS[name]
        for who in pick(4, EVERYONE, "was" + name):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(en.with_was(who, name), fr.clause(who, "être", form, tense="imperfect"))
    return found


def avoir():
    found = Pairs()
    for english_word, french_word in AVOIR:
        for who in pick(9, EVERYONE, english_word):
            found.say(en.with_be(who, english_word), fr.clause(who, "avoir", french_word))
        for who in pick(4, EVERYONE, "not" + english_word):
            after = fr.without_quantity(french_word)
            found.say(en.with_be(who, english_word, negated=True), fr.clause(who, "avoir", after, negation="pas"))
        for who in pick(3, (YOU, HE, SHE, THEY), "ask" + english_word):
            found.ask(f"{en.be(who)} {who.en} {english_word}", fr.question(who, "avoir", french_word))
    for english_word, french_word in AVOIR[:8]:
        for who in pick(4, EVERYONE, "was" + english_word):
            found.say(en.with_was(who, english_word), fr.clause(who, "avoir", french_word, tense="imperfect"))
    for english_word, french_word in AVOIR[:6]:
        if english_word not in ("right",):
            for who in pick(4, EVERYONE, "very" + english_word):
                if english_word != "wrong":
                    found.say(en.with_be(who, "very " + english_word), fr.clause(who, "avoir", "très " + french_word))
    return found


def invariable():
    found = Pairs()
    for english_word, french_word in INVARIABLE:
        always = PRONOUNS if english_word == "home" else ()
        people = [
            who
            for who in EVERYONE
            if (english_word, who.en)
            not in (
                ("at school", "my father"),
                ("at school", "my mother"),
                ("at school", "my parents"),
                ("at work", "the children"),
            )
        ]
        for who in always + tuple(pick(9, [who for who in people if who not in always], english_word)):
            found.say(en.with_be(who, english_word), fr.clause(who, "être", french_word))
        for who in pick(4, people, "not" + english_word):
            found.say(en.with_be(who, english_word, negated=True), fr.clause(who, "être", french_word, negation="pas"))
        for who in pick(3, (YOU, HE, SHE, THEY), "ask" + english_word):
            found.ask(f"{en.be(who)} {who.en} {english_word}", fr.question(who, "être", french_word))
        for who in pick(3, people, "was" + english_word):
            if english_word != "here":
                found.say(en.with_was(who, english_word), fr.clause(who, "être", french_word, tense="imperfect"))
    return found


def feelings():
    found = Pairs()
    for english_word, french_word in FEELINGS:
        for who in pick(6, EVERYONE, english_word):
            happy = fr.agree(MOODS["happy"], who.gender, who.plural)
            word = french_word.replace("@heureux", happy)
            found.say(en.simple(who, "feel", english_word), fr.clause(who, "se sentir", word))
    return found


def pairs():
    found = pick(150, adjectives(), "adjectives") + adverbs_before_adjectives() + negated_and_asked() + characters()
    found += avoir() + invariable() + feelings()
    plural_you = (
        ("You're both right", "vous avez raison tous les deux"),
        ("You're both tired", "vous êtes fatigués tous les deux"),
        ("You're both late", "vous êtes en retard tous les deux"),
        ("You're both very kind", "vous êtes très gentils tous les deux"),
    )
    more = Pairs()
    for english, french in plural_you:
        more.say(english, french)
    for who in (I, HE, SHE, WE):
        more.say(en.with_be(who, "calm"), fr.clause(who, "être", fr.agree(MOODS["calm"], who.gender, who.plural)))
    return found + more
