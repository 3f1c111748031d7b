"""Sentences of two clauses: because, when, if, but, that, where, and knowing how to."""

from .. import english as en
from .. import french as fr
from ..lexicon import CHARACTERS, EVERYONE, HE, MOODS, PEOPLE, PRONOUNS, QUALITIES, SHE, THEY, YOU
from ..pairs import Pairs, pick, table

# Short clauses with a pronoun: English after the subject (be or verb), French verb and rest.
BECAUSE = table(
    """
stay at home | rester à la maison | sick = être malade; tired = être fatigué; cold = avoir froid
eat | manger | hungry = avoir faim
drink some water | boire de la eau | thirsty = avoir soif
sleep | dormir | tired = être fatigué; sick = être malade
cry | pleurer | sad = être triste; alone = être seul; afraid = avoir peur
run | courir | late = être en retard; in a hurry = être pressé
laugh | rire | happy = être heureux
close the window | fermer la fenêtre | cold = avoir froid
open the window | ouvrir la fenêtre | hot = avoir chaud
go to bed | se coucher | tired = être fatigué; sleepy = avoir sommeil
""",
    "|",
)
THAT = ("think", "penser"), ("know", "savoir"), ("believe", "croire"), ("hope", "espérer")
STATES = (
    "tired",
    "sick",
    "happy",
    "late",
    "right",
    "wrong",
    "ready",
    "busy",
    "at home",
    "hungry",
    "cold",
    "sad",
    "lucky",
)
# Indirect questions: English word | form of the English verb | English base | French word | French verb | rest | tense.
INDIRECT = table(
    """
where | simple | live | où | habiter | | present
where | simple | work | où | travailler | | present
where | be | | où | être | | present
why | be | crying | pourquoi | pleurer | | present
why | past | leave | pourquoi | partir | | past
when | be | leaving | quand | partir | | present
what | simple | want | ce que | vouloir | | present
what | past | say | ce que | dire | | past
who | be | | qui | être | | present
how old | be | | quel âge | avoir | | present
""",
    "|",
)
KNOW_HOW = table("""
swim = nager
drive = conduire
read = lire
write = écrire
dance = danser
sing = chanter
cook = cuisiner
play tennis = jouer au tennis
play the piano = jouer ~du piano
speak French = parler français
""")
TRY = table("""
sleep = de dormir
help @my friends = de aider @mes amis
learn French = de apprendre le français
understand = de comprendre
find a job = de trouver un travail
finish @my homework = de finir @mes devoirs
open the window = de ouvrir la fenêtre
""")
GOOD = ("happy", "right", "ready", "at home", "lucky")


def _state(who, state):
    """Returns (English after be, French verb, French rest) for a word of STATES."""
    avoir = {
        "hungry": "faim",
        "right": "raison",
        "wrong": "tort",
        "cold": "froid",
        "lucky": "de la chance",
        "thirsty": "soif",
    }
    if state in avoir:
        return "avoir", avoir[state]
    fixed = {"late": "en retard", "at home": "à la maison"}
    return "être", fixed.get(state) or fr.agree(MOODS[state], who.gender, who.plural)


def reasons(found):
    for english_act, french_act, states in BECAUSE:
        verb, _, rest = english_act.partition(" ")
        words = french_act.split(" ")
        infinitive = " ".join(words[:2]) if words[0] == "se" else words[0]
        french_rest = french_act[len(infinitive) :].strip()
        for state in states.split(";"):
            english_state, french_state = (side.strip() for side in state.split("="))
            be_verb, _, word = french_state.partition(" ")
            for who in PRONOUNS:
                form = word
                if word in ("malade", "fatigué", "triste", "seul", "pressé"):
                    form = (
                        word
                        + ("e" if who.gender == "f" and not word.endswith("e") else "")
                        + ("s" if who.plural else "")
                    )
                elif word == "heureux" and who.gender == "f":
                    form = "heureuse"
                found.say(
                    en.with_be(who, en.words(en.ing(verb), rest)) + " because " + en.with_be(who, english_state),
                    f"{fr.clause(who, infinitive, french_rest)} parce que {fr.clause(who, be_verb, form)}",
                )


def that_clauses(found):
    people = PRONOUNS + PEOPLE[:14]
    for state in STATES:
        for base, infinitive in THAT:
            if base == "hope" and state not in GOOD:
                continue
            for who, other in pick(2, [(a, b) for a in PRONOUNS for b in people if a.slot != b.slot], base + state):
                verb, rest = _state(other, state)
                english = en.simple(who, base, en.with_be(other, state))
                found.say(english, f"{fr.clause(who, infinitive)} que {fr.clause(other, verb, rest)}")


def indirect_questions(found):
    for english_word, manner, base, french_word, infinitive, rest, tense in INDIRECT:
        for who in (HE, SHE, THEY):
            if manner == "be":
                told = en.with_be(who, base) if base else f"{who.en} {en.be(who)}"
            else:
                told = en.simple_past(who, base) if manner == "past" else en.simple(who, base)
            english = f"{english_word} {told}"
            french = f"{french_word} {fr.clause(who, infinitive, rest, tense=tense)}"
            knows, wonders = pick(2, [one for one in PRONOUNS if one.slot != who.slot and one is not YOU], english)
            found.say(en.simple(knows, "know", english), fr.clause(knows, "savoir", french))
            found.say(
                en.simple(wonders, "know", english, negated=True), fr.clause(wonders, "savoir", french, negation="pas")
            )
            found.ask(f"do you know {english}", fr.est_ce_que(YOU, "savoir", french))


def abilities(found):
    for english, french in KNOW_HOW:
        for who in pick(5, EVERYONE, "can" + english):
            found.say(en.simple(who, "know", "how to " + english), fr.clause(who, "savoir", french))
        for who in pick(3, EVERYONE, "can't" + english):
            found.say(
                en.simple(who, "know", "how to " + english, negated=True),
                fr.clause(who, "savoir", french, negation="pas"),
            )
        for who in pick(2, (YOU, HE, SHE, THEY), "can?" + english):
            found.ask(en.words(en.do(who), who.en, "know how to", english), fr.question(who, "savoir", french))
    for english, french in TRY:
        people = [
            who
            for who in EVERYONE
            if who.en
            not in (
                "my mother",
                "my father",
                "my uncle",
                "my aunt",
                "my parents",
                "our neighbor",
                "my friends",
                "the children",
            )
        ]
        for who in pick(5, people, "try" + english):
            found.say(en.with_be(who, "trying to " + english), fr.clause(who, "essayer", french))
        for who in pick(3, people, "tried" + english):
            found.say(en.simple_past(who, "try", "to " + english), fr.clause(who, "essayer", french, tense="past"))
        for who in pick(3, people, "need" + english):
            found.say(en.simple(who, "need", "to " + english), fr.clause(who, "avoir", "besoin " + french))


def contrasts(found):
    for first, second in (
        ("tired", "happy"),
        ("young", "serious"),
        ("poor", "happy"),
        ("rich", "sad"),
        ("small", "strong"),
        ("old", "strong"),
        ("shy", "kind"),
    ):
        a, b = (CHARACTERS.get(name) or MOODS.get(name) or QUALITIES[name] for name in (first, second))
        for who in pick(5, EVERYONE[:18], first + second):
            left, right = (fr.agree(one, who.gender, who.plural) for one in (a, b))
            found.say(en.with_be(who, f"{first} but {second}"), fr.clause(who, "être", f"{left} mais {right}"))


def pairs():
    found = Pairs()
    for build in (reasons, that_clauses, indirect_questions, abilities, contrasts):
        build(found)
    return found
