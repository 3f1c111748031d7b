"""Questions with where, when, what, who, why, how, how many and which."""

from .. import english as en
from .. import french as fr
from ..lexicon import HE, NOUNS, PEOPLE, SHE, THEY, WE, YOU
from ..noun_phrases import this
from ..pairs import Pairs, pick, table

ASKERS = (YOU, HE, SHE, THEY)
NEAR = (YOU, HE, SHE, WE, THEY)
SOMEONE = tuple(who for who in PEOPLE if who.slot == 2)

# Questions with "do" in the simple present: question word | French | verb | French verb.
PRESENT = table(
    """
where | où | live | habiter
where | où | work | travailler
where | où | sleep | dormir
when | quand | leave | partir
when | quand | arrive | arriver
when | quand | eat | manger
when | quand | finish | finir
what time | à quelle heure | get up | se lever
what time | à quelle heure | come home | rentrer
how | comment | know | savoir
what | que | want | vouloir
what | que | see | voir
what | que | think | penser
""",
    "|",
)
DOING = table(
    """
where | où | go | aller
why | pourquoi | laugh | rire
why | pourquoi | cry | pleurer
why | pourquoi | run | courir
why | pourquoi | smile | sourire
what | que | do | faire
what | que | eat | manger
what | que | read | lire
what | que | look for | chercher
what | que | watch | regarder
what | que | drink | boire
""",
    "|",
)
PAST = table(
    """
where | où | go | aller
where | où | sleep | dormir
where | où | find it | trouver
where | où | buy it | acheter
when | quand | leave | partir
when | quand | arrive | arriver
when | quand | come home | rentrer
when | quand | start | commencer
why | pourquoi | leave | partir
why | pourquoi | stay | rester
why | pourquoi | come | venir
why | pourquoi | cry | pleurer
why | pourquoi | do it | faire
what | que | say | dire
what | que | buy | acheter
what | que | do | faire
what | que | eat | manger
what | que | see | voir
what | que | lose | perdre
what | que | choose | choisir
how | comment | come | venir
how | comment | do it | faire
how | comment | find it | trouver
""",
    "|",
)
WHO = table("""
is coming tomorrow = vient demain
is talking = parle
is singing = chante
wants some coffee = veut du café
has the key = a la clé
knows the answer = connaît la réponse
opened the window = a ouvert la fenêtre
closed the door = a fermé la porte
broke the glass = a cassé le verre
ate the cake = a mangé le gâteau
took my umbrella = a pris mon parapluie
wrote this letter = a écrit cette lettre
won the game = a gagné le match
lives here = habite ici
speaks French = parle français
is hungry = a faim
is there = est là
said that = a dit cela
called you = te a appelé
""")
COUNTED = table("""
brothers = frères
sisters = sœurs
children = enfants
books = livres
cats = chats
dogs = chiens
tickets = billets
suitcases = valises
friends = amis
""")
WHAT_COLOR = (
    ("car", "ta voiture", "your"),
    ("dress", "sa robe", "her"),
    ("coat", "ton manteau", "your"),
    ("house", "leur maison", "their"),
    ("hat", "son chapeau", "his"),
    ("bike", "ton vélo", "your"),
    ("cat", "leur chat", "their"),
)
WHICH = table("""
book = quel livre
dress = quelle robe
car = quelle voiture
hat = quel chapeau
movie = quel film
room = quelle chambre
picture = quelle photo
song = quelle chanson
""")


def verbs(found):
    for wh, french_wh, base, infinitive in PRESENT:
        for who in ASKERS:
            found.ask(en.words(wh, en.do(who), who.en, base), fr.question(who, infinitive, wh=french_wh))
        if wh in ("where", "when", "what time"):
            for who in pick(4, SOMEONE, wh + base):
                found.ask(en.words(wh, "does", who.en, base), f"{french_wh} {fr.est_ce_que(who, infinitive)}")
    for wh, french_wh, base, infinitive in DOING:
        verb, _, particle = base.partition(" ")
        for who in NEAR:
            found.ask(
                en.words(wh, en.be(who), who.en, en.ing(verb), particle), fr.question(who, infinitive, wh=french_wh)
            )
        for who in pick(3, SOMEONE, "doing" + wh + base):
            found.ask(
                en.words(wh, "is", who.en, en.ing(verb), particle), f"{french_wh} {fr.est_ce_que(who, infinitive)}"
            )
    for wh, french_wh, base, infinitive in PAST:
        clitic = "le" if base.endswith(" it") else ""
        for who in NEAR:
            found.ask(
                en.words(wh, "did", who.en, base),
                fr.question(who, infinitive, tense="past", clitic=clitic, wh=french_wh),
            )
    for who in NEAR:
        found.ask(en.words("what", en.be(who), who.en, "going to do"), fr.question(who, "aller", "faire", wh="que"))
        found.ask(en.words("where", en.be(who), who.en, "going to sleep"), fr.question(who, "aller", "dormir", wh="où"))
        found.ask(
            en.words("when", en.be(who), who.en, "going to leave"), fr.question(who, "aller", "partir", wh="quand")
        )
        found.ask(en.words("what", "can", who.en, "do"), fr.question(who, "pouvoir", "faire", wh="que"))


def others(found):
    for english, french in WHO:
        found.ask("who " + english, "qui " + french)
    for who in NEAR:
        if who is not WE:
            found.ask(en.words("where", en.be(who), who.en), fr.question(who, "être", wh="où"))
            found.ask(en.words("who", en.be(who), who.en), fr.question(who, "être", wh="qui"))
            found.ask(en.words("how", en.be(who), who.en), fr.question(who, "aller", wh="comment"))
            found.ask(en.words("why", en.be(who), who.en, "late"), fr.question(who, "être", "en retard", wh="pourquoi"))
            found.ask(
                en.words("why", en.be(who), who.en, "sad"),
                fr.question(who, "être", "tristes" if who.plural else "triste", wh="pourquoi"),
            )
            found.ask(
                en.words("why", en.be(who), who.en, "angry"), fr.question(who, "être", "en colère", wh="pourquoi")
            )
        found.ask(en.words("who", en.be(who), who.en, "waiting for"), fr.question(who, "attendre", wh="qui"))
        found.ask(en.words("who", en.be(who), who.en, "talking to"), fr.question(who, "parler", wh="à qui"))
        found.ask(en.words("who", "did", who.en, "see"), fr.question(who, "voir", tense="past", wh="qui"))
        found.ask(en.words("who", en.do(who), who.en, "know here"), fr.question(who, "connaître", "ici", wh="qui"))


def about_people_and_things(found):
    for who in PEOPLE:
        if who.slot == 2:
            found.ask(f"where's {who.en}", f"où est {who.fr}")
            found.ask(f"how is {who.en}", f"comment va {who.fr}")
            found.ask(f"who's waiting for {who.en}", f"qui attend {who.fr}")
        else:
            found.ask(f"where are {who.en}", f"où sont {who.fr}")
            found.ask(f"how are {who.en}", f"comment vont {who.fr}")
    for things, french_things in COUNTED:
        for who in pick(3, ASKERS, things):
            found.ask(
                f"how many {things} {en.do(who)} {who.en} have",
                fr.question(who, "avoir", wh=f"combien de {french_things}"),
            )
    for thing, french_thing, owner in WHAT_COLOR:
        found.ask(f"what color is {owner} {thing}", f"de quelle couleur est {french_thing}")
        if thing != "cat":
            this_thing = this(NOUNS[thing])
            found.ask(f"how much is {this_thing[0]}", f"combien coûte {this_thing[1]}")
    for thing, french_thing in WHICH:
        for who in pick(3, ASKERS, thing):
            found.ask(f"which {thing} {en.do(who)} {who.en} want", fr.question(who, "vouloir", wh=french_thing))
            found.ask(f"which {thing} {en.do(who)} {who.en} prefer", fr.question(who, "préférer", wh=french_thing))


def pairs():
    found = Pairs()
    verbs(found)
    others(found)
    about_people_and_things(found)
    return found
