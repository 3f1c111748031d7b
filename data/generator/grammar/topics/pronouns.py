"""Object pronouns: "I see him" = "je le vois", "he's talking to me" = "il me parle", and commands with pronouns."""

from .. import english as en
from .. import french as fr
from ..lexicon import HE, PEOPLE, PRONOUNS, SHE, THEY, YOU
from ..pairs import Pairs, pick, table

# Each object: English, person slot, direct object, indirect object, gender, plural, form after a command.
OBJECTS = (
    ("me", 0, "me", "me", "m", False, "moi"),
    ("you", 1, "te", "te", "m", False, "toi"),
    ("him", 2, "le", "lui", "m", False, "le"),
    ("her", 2, "la", "lui", "f", False, "la"),
    ("us", 3, "nous", "nous", "m", True, "nous"),
    ("them", 5, "les", "leur", "m", True, "les"),
)
# English | French | s: state (simple present), a: action (be + -ing) | d: direct object, i: indirect object.
VERBS = table(
    """
see | voir | s | d
know | connaître | s | d
understand | comprendre | s | d
hear | entendre | s | d
love | aimer | s | d
believe | croire | s | d
help | aider | a | d
wait for | attendre | a | d
look for | chercher | a | d
watch | regarder | a | d
listen to | écouter | a | d
call | appeler | a | d
talk to | parler | a | i
answer | répondre | a | i
smile at | sourire | a | i
write to | écrire | a | i
""",
    "|",
)
GIVING = table(
    """
give | donner | a book = un livre; the key = la clé; some water = de l'eau; a gift = un cadeau
show | montrer | the house = la maison; a picture = une photo; the station = la gare
bring | apporter | some coffee = du café; a chair = une chaise; the newspaper = le journal
tell | raconter | a story = une histoire; everything = tout
buy | acheter | a coat = un manteau; a bike = un vélo; some flowers = des fleurs
ask | poser | a question = une question
""",
    "|",
)
THINGS = table("""
take = prendre
eat = manger
buy = acheter
read = lire
find = trouver
see = voir
want = vouloir
understand = comprendre
know = savoir
forget = oublier
finish = finir
""")


def _options(people):
    """Returns every subject with every object that is another person."""
    same = ((0, 3), (3, 0))
    return [
        (who, what)
        for who in people
        for what in OBJECTS
        if (what[1] != who.slot or who.slot == 2 and (what[4] != who.gender or not who.pronoun))
        and (who.slot, what[1]) not in same
    ]


def verbs_with_people(found):
    for base, infinitive, kind, case in VERBS:
        verb, _, particle = base.partition(" ")
        options = _options(PRONOUNS) + _options(PEOPLE[:12])
        for who, what in pick(14, options, "now" + base):
            clitic = what[2] if case == "d" else what[3]
            rest = en.words(particle, what[0])
            english = en.with_be(who, en.words(en.ing(verb), rest)) if kind == "a" else en.simple(who, verb, rest)
            found.say(english, fr.clause(who, infinitive, clitic=clitic))
        for who, what in pick(7, options, "not" + base):
            clitic = what[2] if case == "d" else what[3]
            rest = en.words(particle, what[0])
            english = (
                en.with_be(who, en.words(en.ing(verb), rest), negated=True)
                if kind == "a"
                else en.simple(who, verb, rest, negated=True)
            )
            found.say(english, fr.clause(who, infinitive, clitic=clitic, negation="pas"))
        for who, what in pick(9, options, "past" + base):
            if base in ("know", "love", "believe", "need"):
                continue
            clitic = what[2] if case == "d" else what[3]
            agreement = (what[4], what[5]) if case == "d" else None
            found.say(
                en.simple_past(who, verb, en.words(particle, what[0])),
                fr.clause(who, infinitive, clitic=clitic, tense="past", object_agreement=agreement),
            )
        for who, what in pick(4, _options((YOU, HE, SHE, THEY)), "ask" + base):
            clitic = what[2] if case == "d" else what[3]
            english = (
                en.words(en.do(who), who.en, verb, particle, what[0])
                if kind == "s"
                else en.words(en.be(who), who.en, en.ing(verb), particle, what[0])
            )
            found.ask(english, fr.est_ce_que(who, infinitive, clitic=clitic))
        for who, what in pick(6, options, "can" + base):
            if base in ("know", "love", "answer", "watch", "look for", "smile at"):
                continue
            clitic = what[2] if case == "d" else what[3]
            rest = en.words(verb, particle, what[0])
            found.say(
                en.words(who.en, "can't", rest), fr.clause(who, "pouvoir", f"~{clitic} {infinitive}", negation="pas")
            )
            if kind == "a" and base != "smile at":
                found.say(en.with_be(who, "going to " + rest), fr.clause(who, infinitive, clitic=clitic, tense="going"))


def orders_about_people(found):
    for base, infinitive, _, case in VERBS:
        if base in ("help", "wait for", "watch", "listen to", "call", "talk to", "answer", "believe", "write to"):
            for what in OBJECTS:
                if what[0] == "you":
                    continue
                after = what[6] if case == "d" or what[1] in (0, 3) else what[3]
                found.order(en.words(base, what[0]), f"{fr.command(infinitive)}-{after}")
                found.order(
                    en.words("don't", base, what[0]),
                    f"ne {what[2] if case == 'd' else what[3]} {fr.command(infinitive)} pas",
                )


def giving(found):
    for base, infinitive, rests in GIVING:
        for rest in rests.split(";"):
            english_rest, french_rest = (side.strip() for side in rest.split("="))
            everything, after_verb = ("tout", "") if french_rest == "tout" else ("", french_rest)
            options = _options(PRONOUNS) + _options(PEOPLE[:8])
            for who, what in pick(6, options, "past" + base + rest):
                found.say(
                    en.simple_past(who, base, en.words(what[0], english_rest)),
                    fr.clause(who, infinitive, after_verb, clitic=what[3], tense="past", adverb=everything),
                )
            for who, what in pick(3, options, "going" + base + rest):
                found.say(
                    en.with_be(who, en.words("going to", base, what[0], english_rest)),
                    fr.clause(who, infinitive, after_verb, clitic=what[3], tense="going", adverb=everything),
                )
            for what in pick(3, [one for one in OBJECTS if one[0] != "you"], "do" + base + rest):
                after = what[6] if what[1] in (0, 3) else what[3]
                found.order(en.words(base, what[0], english_rest), f"{fr.command(infinitive)}-{after} {french_rest}")
            for what in pick(2, [one for one in OBJECTS if one[0] != "you"], "can" + base + rest):
                found.ask(
                    en.words("can you", base, what[0], english_rest),
                    fr.question(YOU, "pouvoir", f"{everything} ~{what[3]} {infinitive} {after_verb}"),
                )


def things(found):
    for base, infinitive in THINGS:
        for who in pick(5, PRONOUNS + PEOPLE[:6], "going" + base):
            if base in ("want", "know", "see", "forget", "find", "understand"):
                continue
            found.say(en.with_be(who, f"going to {base} it"), fr.clause(who, infinitive, clitic="le", tense="going"))
        for who in pick(4, PRONOUNS + PEOPLE[:6], "don't" + base):
            if base in ("want", "know", "understand", "see"):
                found.say(
                    en.simple(who, base, "it", negated=True), fr.clause(who, infinitive, clitic="le", negation="pas")
                )
        for who in pick(5, PRONOUNS + PEOPLE[:6], "past" + base):
            if base not in ("want", "know"):
                found.say(en.simple_past(who, base, "it"), fr.clause(who, infinitive, clitic="le", tense="past"))
        if base in ("take", "eat", "buy", "read", "finish"):
            found.order(f"{base} it", f"{fr.command(infinitive)}-le")
            found.order(f"don't {base} it", f"ne le {fr.command(infinitive)} pas")


def nothing_and_it(found):
    for who in PRONOUNS:
        found.say(en.simple(who, "need", "it"), fr.clause(who, "avoir", "besoin", clitic="en"))
        found.say(en.with_be(who, "thinking about it"), fr.clause(who, "penser", clitic="y"))
        found.say(
            en.simple(who, "remember", "it", negated=True), fr.clause(who, "se souvenir", clitic="en", negation="pas")
        )
        found.say(en.words(who.en, "can do it"), fr.clause(who, "pouvoir", "~le faire"))
        found.say(en.words(who.en, "can't do it"), fr.clause(who, "pouvoir", "~le faire", negation="pas"))
        found.say(en.with_be(who, "going there tomorrow"), fr.clause(who, "aller", "demain", clitic="y"))
        for infinitive, base in (
            ("voir", "see"),
            ("entendre", "hear"),
            ("manger", "eat"),
            ("acheter", "buy"),
            ("comprendre", "understand"),
            ("faire", "do"),
            ("dire", "say"),
        ):
            found.say(
                en.simple_past(who, base, "anything", negated=True),
                fr.clause(who, infinitive, negation="rien", tense="past"),
            )
        for infinitive, base in (
            ("voir", "see"),
            ("entendre", "hear"),
            ("vouloir", "want"),
            ("comprendre", "understand"),
            ("savoir", "know"),
            ("dire", "say"),
        ):
            found.say(en.simple(who, base, "anything", negated=True), fr.clause(who, infinitive, negation="rien"))


def pairs():
    found = Pairs()
    for build in (verbs_with_people, orders_about_people, giving, things, nothing_and_it):
        build(found)
    return found
