"""Going, coming, staying, living: places, cities and countries, and where things are."""

from .. import english as en
from .. import french as fr
from ..lexicon import EVERYONE, HE, I, NOUNS, SHE, THEY, WE, YOU
from ..noun_phrases import a, as_subject, own, the, OWNERS
from ..pairs import Pairs, pick, table

GOALS = table("""
to school = à l'école
to the market = au marché
to the station = à la gare
to the movies = au cinéma
to the restaurant = au restaurant
to the beach = à la plage
to the park = au parc
to the library = à la bibliothèque
to the hospital = à l'hôpital
to the bank = à la banque
to the airport = à l'aéroport
to the museum = au musée
to work = au travail
to the doctor = chez le médecin
to Paris = à Paris
to London = à Londres
to France = en France
to Italy = en Italie
to Spain = en Espagne
to Canada = au Canada
to Japan = au Japon
""")
HOMES = table("""
in Paris = à Paris
in London = à Londres
in France = en France
in Spain = en Espagne
in Canada = au Canada
in Japan = au Japon
in a small house = dans une petite maison
in a big city = dans une grande ville
near the sea = près de la mer
near the station = près de la gare
with @my parents = avec @mes parents
on this street = dans cette rue
""")
ORIGINS = table("""
from Paris = de Paris
from Italy = d'Italie
from Canada = du Canada
from Spain = d'Espagne
from London = de Londres
""")
MOVES = table(
    """
leave | partir | yesterday = hier; this morning = ce matin; early = tôt; without me = sans moi
arrive | arriver | late = en retard; this morning = ce matin; yesterday = hier; at the hotel = à l'hôtel
stay | rester | at home = à la maison; in bed = au lit; at the hotel = à l'hôtel; with @my mother = avec @ma mère
come back | revenir | yesterday = hier; from school = de l'école; with a friend = avec un ami; from Italy = d'Italie
come home | rentrer | late = tard; very early = très tôt; alone = seul@e; by bus = en bus
go out | sortir | last night = hier soir; with @my friends = avec @mes amis; alone = seul@e; in the rain = sous la pluie
come | venir | alone = seul@e; by car = en voiture; with @my father = avec @mon père; to see me = me voir
""",
    "|",
)
PREPOSITIONS = (
    ("on", "sur"),
    ("under", "sous"),
    ("in", "dans"),
    ("near", "près de"),
    ("behind", "derrière"),
    ("in front of", "devant"),
)
ON = {
    "table": (
        "book",
        "key",
        "phone",
        "letter",
        "bag",
        "computer",
        "glass",
        "cup",
        "bottle",
        "plate",
        "hat",
        "cake",
        "watch",
    ),
    "chair": ("coat", "shirt", "dress", "bag", "cat", "hat", "book"),
    "bed": ("dress", "shirt", "cat", "suitcase", "coat", "phone"),
}
UNDER = {
    "table": ("dog", "cat", "bag", "shoe", "box"),
    "bed": ("cat", "suitcase", "box", "shoe"),
    "tree": ("dog", "table", "horse", "chair"),
    "chair": ("shoe", "cat", "bag"),
}
IN = {
    "bag": ("key", "phone", "book", "ticket", "bottle", "passport", "letter"),
    "kitchen": ("table", "plate", "cat", "glass", "cake"),
    "garden": ("dog", "bird", "tree", "chair", "bike", "cat"),
    "box": ("gift", "key", "watch", "letter", "hat"),
    "car": ("suitcase", "umbrella", "bag", "dog"),
    "room": ("bed", "computer", "chair", "suitcase", "cat"),
    "suitcase": ("shirt", "shoe", "dress", "passport"),
}
NEAR = {
    "house": ("school", "hotel", "restaurant", "tree"),
    "station": ("hotel", "school", "hospital", "restaurant"),
    "door": ("chair", "bike", "dog", "box"),
    "window": ("table", "bed", "chair", "cat"),
}
PLURAL_THINGS = {"key", "shoe", "plate", "glass", "bird"}


def going(found):
    for english_place, french_place in GOALS:

        def who(count, salt, choices=EVERYONE):
            children = ("to work", "to the bank")
            return pick(
                count,
                [one for one in choices if one.en != "the children" or english_place not in children],
                salt + english_place,
            )

        for one in who(6, "now"):
            found.say(en.with_be(one, "going " + english_place), fr.clause(one, "aller", french_place))
        for one in who(3, "past"):
            found.say(
                en.simple_past(one, "go", english_place + " yesterday"),
                fr.clause(one, "aller", french_place + " hier", tense="past"),
            )
        for one in who(2, "past plain"):
            found.say(en.simple_past(one, "go", english_place), fr.clause(one, "aller", french_place, tense="past"))
        for one in who(2, "not past"):
            found.say(
                en.simple_past(one, "go", english_place, negated=True),
                fr.clause(one, "aller", french_place, tense="past", negation="pas"),
            )
        for one in who(1, "must"):
            found.say(en.words(one.en, "must go", english_place), fr.clause(one, "devoir", "aller " + french_place))
        for one in who(2, "want"):
            found.say(
                en.simple(one, "want", "to go " + english_place), fr.clause(one, "vouloir", "aller " + french_place)
            )
        for one in who(2, "ask", (YOU, HE, SHE, THEY)):
            found.ask(en.words(en.be(one), one.en, "going", english_place), fr.est_ce_que(one, "aller", french_place))
        for one in who(1, "will", (I, WE, HE, SHE, THEY)):
            found.say(
                en.will(one, en.words("go", english_place, "tomorrow")),
                fr.clause(one, "aller", french_place + " demain", tense="future"),
            )
        if english_place not in ("to work", "to the hospital", "to the doctor", "to the bank", "to school"):
            found.order("let's go " + english_place, fr.command("aller", french_place, slot=3))


def living(found):
    for english_place, french_place in HOMES:
        for one in pick(6, EVERYONE, "live" + english_place):
            if (
                "parents" in one.en
                and "parents" in english_place
                or (one.en == "the children" and "parents" not in english_place)
            ):
                continue
            found.say(en.simple(one, "live", english_place), fr.clause(one, "habiter", french_place))
        for one in pick(2, EVERYONE[:10], "not live" + english_place):
            found.say(
                en.simple(one, "live", english_place, negated=True),
                fr.clause(one, "habiter", french_place, negation="pas"),
            )
        for one in pick(1, (YOU, HE, SHE, THEY), "ask" + english_place):
            found.ask(
                en.words(en.do(one), one.en, "live", en.bind(english_place, one)),
                fr.est_ce_que(one, "habiter", french_place),
            )
    for english_place, french_place in ORIGINS:
        for one in pick(5, EVERYONE[:16], english_place):
            found.say(en.simple(one, "come", english_place), fr.clause(one, "venir", "~" + french_place))


def moving(found):
    for base, infinitive, rests in MOVES:
        verb, _, particle = base.partition(" ")
        for rest in rests.split(";"):
            english_rest, french_rest = (side.strip() for side in rest.split("="))
            after = en.words(particle, english_rest)
            for one in pick(6, EVERYONE, "past" + base + rest):
                if "mother" in one.en and "mother" in rest or "father" in one.en and "father" in rest:
                    continue
                found.say(en.simple_past(one, verb, after), fr.clause(one, infinitive, french_rest, tense="past"))
            for one in pick(2, EVERYONE, "not past" + base + rest):
                found.say(
                    en.simple_past(one, verb, after, negated=True),
                    fr.clause(one, infinitive, french_rest, tense="past", negation="pas"),
                )
            for one in pick(2, (YOU, HE, SHE, THEY), "ask" + base + rest):
                found.ask(
                    en.words("did", one.en, verb, en.bind(after, one)),
                    fr.question(one, infinitive, french_rest, tense="past"),
                )
        for one in pick(4, (I, WE, HE, SHE, THEY, YOU), "will" + base):
            found.say(en.will(one, en.words(base, "tomorrow")), fr.clause(one, infinitive, "demain", tense="future"))
            found.say(
                en.will(one, en.words(base, "tomorrow"), negated=True),
                fr.clause(one, infinitive, "demain", tense="future", negation="pas"),
            )
        for one in pick(0 if base == "arrive" else 5, EVERYONE, "want" + base):
            found.say(en.simple(one, "want", "to " + base), fr.clause(one, "vouloir", infinitive))
        for one in pick(0 if base == "arrive" else 4, EVERYONE, "must" + base):
            found.say(en.words(one.en, "must", base, "soon"), fr.clause(one, "devoir", "bientôt " + infinitive))
        for one in pick(0 if base == "arrive" else 4, EVERYONE, "can't" + base):
            found.say(
                en.words(one.en, "can't", base, "today"),
                fr.clause(one, "pouvoir", infinitive + " aujourd'hui", negation="pas"),
            )


def where_things_are(found):
    for (english_word, french_word), places in zip(PREPOSITIONS, (ON, UNDER, IN, NEAR)):
        for place, things in places.items():
            for name in things:
                noun, plural = NOUNS[name], name in PLURAL_THINGS
                ground = the(NOUNS[place])
                phrase = (
                    own(pick(1, OWNERS, name + place)[0], noun, plural=plural)
                    if name in ("key", "phone", "passport", "coat", "suitcase", "bike", "shoe", "hat")
                    else the(noun, plural=plural)
                )
                subject = as_subject(phrase, noun, plural)
                found.say(
                    en.with_be(subject, f"{english_word} {ground[0]}"),
                    fr.clause(subject, "être", f"{french_word} {ground[1]}"),
                )
                thing = a(noun)
                if not plural and pick(1, (0, 1), name + place)[0] and name not in ("passport", "kitchen"):
                    found.say(
                        f"there's {thing[0]} {english_word} {ground[0]}", f"il y a {thing[1]} {french_word} {ground[1]}"
                    )
    for name, place in (
        ("dog", "door"),
        ("bike", "house"),
        ("car", "house"),
        ("tree", "house"),
        ("car", "hotel"),
        ("garden", "house"),
    ):
        noun, ground = NOUNS[name], the(NOUNS[place])
        subject = as_subject(the(noun), noun)
        for english_word, french_word in PREPOSITIONS[4:]:
            found.say(
                en.with_be(subject, f"{english_word} {ground[0]}"),
                fr.clause(subject, "être", f"{french_word} {ground[1]}"),
            )
            thing = a(noun)
            found.say(f"there's {thing[0]} {english_word} {ground[0]}", f"il y a {thing[1]} {french_word} {ground[1]}")


def pairs():
    found = Pairs()
    for build in (going, living, moving, where_things_are):
        build(found)
    return found
