"""Families, jobs, languages, comparisons, and opinions about people."""

from .. import english as en
from .. import french as fr
from ..lexicon import CHARACTERS, EVERYONE, HE, I, NOUNS, PEOPLE, SHE, THEY, WE, YOU
from ..noun_phrases import OWNERS, as_subject, own, this
from ..pairs import Pairs, pick, table

JOBS = table("""
a teacher = professeur = professeur
a doctor = médecin = médecin
a student = étudiant = étudiante
a baker = boulanger = boulangère
a nurse = infirmier = infirmière
a lawyer = avocat = avocate
a singer = chanteur = chanteuse
an engineer = ingénieur = ingénieure
""")
LANGUAGES = table("""
French = français
English = anglais
Spanish = espagnol
Italian = italien
Japanese = japonais
""")
NATIONALITIES = table("""
French = français = française = français
English = anglais = anglaise = anglais
Spanish = espagnol = espagnole = espagnols
Italian = italien = italienne = italiens
Canadian = canadien = canadienne = canadiens
Japanese = japonais = japonaise = japonais
""")
ALL_KIN = (
    "brother",
    "sister",
    "mother",
    "father",
    "friend",
    "son",
    "daughter",
    "uncle",
    "aunt",
    "grandmother",
    "grandfather",
    "cousin",
    "neighbor",
    "teacher",
    "doctor",
)
COMPARED = (
    ("taller", "tall"),
    ("younger", "young"),
    ("older", "old"),
    ("stronger", "strong"),
    ("richer", "rich"),
    ("poorer", "poor"),
)
THAN = (
    ("me", "moi", 0),
    ("you", "toi", 1),
    ("him", "lui", 2),
    ("her", "elle", 2),
    ("us", "nous", 3),
    ("them", "eux", 5),
)


DREAMERS = ("my brother", "my sister", "your brother", "your sister", "Paul", "Marie", "Anne", "Thomas")


def jobs(found):
    working = [who for who in EVERYONE if not who.plural]
    for english_job, masculine, feminine in JOBS:
        people = [who for who in working if english_job != "a student" or who.pronoun or who.en in DREAMERS]
        for who in pick(7, people, english_job):
            found.say(
                en.with_be(who, english_job), fr.clause(who, "être", feminine if who.gender == "f" else masculine)
            )
        for who in pick(3, people, "not" + english_job):
            found.say(
                en.with_be(who, english_job, negated=True),
                fr.clause(who, "être", feminine if who.gender == "f" else masculine, negation="pas"),
            )
        for who in pick(3, [one for one in working if one.pronoun or one.en in DREAMERS], "want" + english_job):
            found.say(
                en.simple(who, "want", "to be " + english_job),
                fr.clause(who, "vouloir", "être " + (feminine if who.gender == "f" else masculine)),
            )
        for who in (YOU, HE, SHE):
            found.ask(
                f"{en.be(who)} {who.en} {english_job}",
                fr.question(who, "être", feminine if who.gender == "f" else masculine),
            )


def languages_and_nations(found):
    for language, french_language in LANGUAGES:
        for who in pick(6, EVERYONE, language):
            found.say(en.simple(who, "speak", language), fr.clause(who, "parler", french_language))
        for who in pick(4, EVERYONE, "not" + language):
            found.say(
                en.simple(who, "speak", language, negated=True),
                fr.clause(who, "parler", french_language, negation="pas"),
            )
        for who in (YOU, HE, SHE, THEY):
            found.ask(f"{en.do(who)} {who.en} speak {language}", fr.est_ce_que(who, "parler", french_language))
        for who in pick(2, EVERYONE, "a little" + language):
            found.say(
                en.simple(who, "speak", f"a little {language}"), fr.clause(who, "parler", f"un peu {french_language}")
            )
        for who in pick(3, EVERYONE, "well" + language):
            found.say(
                en.simple(who, "speak", f"{language} very well"),
                fr.clause(who, "parler", f"très bien {french_language}"),
            )
    for nation, masculine, feminine, plural in NATIONALITIES:
        for who in pick(5, [one for one in EVERYONE if one.en != "my sisters"], "nation" + nation):
            form = plural if who.plural else feminine if who.gender == "f" else masculine
            found.say(en.with_be(who, nation), fr.clause(who, "être", form))
        for who in (YOU, HE, SHE, THEY):
            form = plural if who.plural else feminine if who.gender == "f" else masculine
            found.ask(f"{en.be(who)} {who.en} {nation}", fr.question(who, "être", form))


def family(found):
    for name in ALL_KIN:
        noun = NOUNS[name]
        for owner in OWNERS:
            person = own(owner, noun)
            subject = as_subject(person, noun)
            adjective = pick(
                1,
                [
                    CHARACTERS[key]
                    for key in ("tall", "kind", "funny", "young", "nice", "patient", "famous", "serious", "rich")
                    if key != "young" or not name.startswith("grand")
                ],
                name + owner[0],
            )[0]
            form = fr.agree(adjective, noun.gender, False)
            found.say(en.with_be(subject, f"very {adjective.en}"), fr.clause(subject, "être", "très " + form))
            if owner[1] in (0, 2, 5):
                who = {0: YOU, 2: I, 5: WE}[owner[1]]
                found.say(en.simple(who, "know", person[0]), fr.clause(who, "connaître", person[1]))
            else:
                found.ask(f"do they know {person[0]}", fr.est_ce_que(THEY, "connaître", person[1]))
            if pick(1, (0, 1), name + owner[0])[0]:
                found.say(f"this is {person[0]}", f"ce est {person[1]}")
        for thing in pick(3, ("car", "house", "dog", "hat", "bike", "room", "phone"), name):
            possession = NOUNS[thing]
            person = own(pick(1, OWNERS, thing + name)[0], noun)
            french_the = ("le " if possession.gender == "m" else "la ") + possession.fr
            found.say(f"this is {person[0]}'s {thing}", f"ce est {french_the} de {person[1]}")
            found.ask(f"where's {person[0]}'s {thing}", f"où est {french_the} de {person[1]}")


def strangers_and_names(found):
    for name in ("man", "woman", "child", "dog"):
        noun = NOUNS[name]
        for adjective in pick(
            7,
            [
                one
                for key, one in CHARACTERS.items()
                if name != "dog" or key in ("kind", "old", "strong", "young", "lazy", "funny", "brave", "calm")
            ],
            name,
        ):
            phrase = this(noun)
            subject = as_subject(phrase, noun)
            found.say(
                en.with_be(subject, f"very {adjective.en}"),
                fr.clause(subject, "être", "très " + fr.agree(adjective, noun.gender, False)),
            )
    for english_name, french_name in (("Paul", "Paul"), ("Marie", "Marie"), ("Anne", "Anne"), ("Thomas", "Thomas")):
        for thing in pick(6, ("car", "house", "dog", "book", "bike", "room", "watch", "hat", "bag"), english_name):
            possession = NOUNS[thing]
            french_the = ("le " if possession.gender == "m" else "la ") + possession.fr
            found.say(f"it's {english_name}'s {thing}", f"ce est {french_the} de {french_name}")
        found.say(f"my name is {english_name}", f"je me appelle {french_name}")
        for who in (PEOPLE[0], PEOPLE[1]):
            if (english_name in ("Marie", "Anne")) == (who.gender == "f"):
                found.say(f"{who.en}'s name is {english_name}", f"{who.fr} se appelle {french_name}")
        friend = "amie" if english_name in ("Marie", "Anne") else "ami"
        for owner, slot in OWNERS[:4]:
            possessive = fr.POSSESSIVE[slot][1 if friend == "amie" else 0]
            found.say(f"{owner} friend {english_name} is here", f"{possessive} {friend} {french_name} est ici")
            found.say(
                f"I know {owner} friend {english_name} well" if slot else f"you know my friend {english_name} well",
                f"{'je connais' if slot else 'tu connais'} bien {possessive} {friend} {french_name}",
            )


def comparisons(found):
    for comparative, plain in COMPARED:
        adjective = CHARACTERS[plain]
        options = [(who, than) for who in EVERYONE for than in THAN if than[2] != who.slot and who.en != "the children"]
        for who, (than, french_than, _) in pick(11, options, comparative):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(
                en.with_be(who, f"{comparative} than {than}"), fr.clause(who, "être", f"plus {form} que {french_than}")
            )
        for who in pick(
            4,
            [one for one in EVERYONE if one.pronoun or one.en in ("Paul", "Marie", "Anne", "Thomas")],
            "brother" + comparative,
        ):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(
                en.with_be(who, f"{comparative} than @my brother"),
                fr.clause(who, "être", f"plus {form} que @mon frère"),
            )
        for who, (than, french_than, _) in pick(3, options, "as" + comparative):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(
                en.with_be(who, f"as {plain} as {than}"), fr.clause(who, "être", f"aussi {form} que {french_than}")
            )
    for name in ("patient", "curious", "polite", "famous", "serious", "jealous"):
        adjective = CHARACTERS[name]
        for who, (than, french_than, _) in pick(4, options, "more" + name):
            form = fr.agree(adjective, who.gender, who.plural)
            found.say(
                en.with_be(who, f"more {name} than {than}"), fr.clause(who, "être", f"plus {form} que {french_than}")
            )


def pairs():
    found = Pairs()
    for build in (jobs, languages_and_nations, family, strangers_and_names, comparisons):
        build(found)
    return found
