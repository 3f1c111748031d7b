"""Things: having them, their owners, their qualities, their number."""

from .. import english as en
from .. import french as fr
from ..lexicon import BRAND_NEW, EVERYONE, HE, NOUNS, QUALITIES, SHE, THEY, WE, YOU
from ..noun_phrases import NUMBERS, OWNERS, a, as_subject, counted, own, the, this
from ..pairs import Pairs, pick

OWNED = (
    "house",
    "car",
    "book",
    "phone",
    "bag",
    "garden",
    "dog",
    "cat",
    "horse",
    "watch",
    "hat",
    "coat",
    "bike",
    "ticket",
    "passport",
    "suitcase",
    "umbrella",
    "computer",
    "brother",
    "sister",
    "son",
    "daughter",
    "question",
    "idea",
    "problem",
    "job",
)
ASKED_FOR = (
    "key",
    "phone",
    "book",
    "bag",
    "hat",
    "coat",
    "watch",
    "ticket",
    "passport",
    "umbrella",
    "shoe",
    "suitcase",
    "bike",
    "car",
    "address",
)
DESCRIBED = {
    "house": "big small old new beautiful expensive empty clean",
    "car": "new old red blue expensive dirty clean small",
    "book": "new interesting good long difficult heavy expensive",
    "story": "long beautiful interesting good",
    "question": "good easy difficult interesting",
    "door": "open closed green white",
    "window": "open closed broken dirty big",
    "room": "small big clean dirty empty cold beautiful",
    "kitchen": "clean dirty small new white",
    "garden": "small big beautiful",
    "bag": "heavy full empty black new",
    "box": "heavy empty full closed light",
    "suitcase": "heavy full empty light open",
    "dress": "beautiful red blue expensive new black",
    "shirt": "white clean dirty green new",
    "coat": "black expensive old new long heavy",
    "hat": "new old red beautiful",
    "glass": "empty full broken clean",
    "bottle": "empty full broken green",
    "cup": "empty full clean white",
    "plate": "hot clean dirty white",
    "movie": "long good bad interesting",
    "song": "beautiful good long",
    "idea": "good bad interesting new",
    "answer": "good bad long",
    "problem": "difficult easy interesting",
    "job": "difficult interesting easy",
    "watch": "new old broken expensive",
    "computer": "new old broken expensive",
    "phone": "new broken expensive old",
    "hotel": "full clean expensive new good",
    "restaurant": "full empty closed good expensive",
    "street": "long empty clean dirty",
    "city": "big beautiful old interesting",
    "tree": "big beautiful old",
    "bird": "small beautiful black blue",
    "dog": "small big black old dirty",
    "cat": "black white small old",
    "horse": "beautiful white black strong old",
    "egg": "hot cold small white",
    "bed": "big small cold new",
    "bike": "new broken red old",
    "umbrella": "black new red broken",
    "shoe": "new dirty black expensive old",
    "flower": "beautiful red white blue",
    "key": "small old broken",
}
SEVERAL = {"brother", "sister", "son", "daughter", "dog", "cat", "horse", "ticket", "hat"}
NOBODYS = {"hotel", "restaurant", "street", "movie", "egg", "tree", "bird", "window", "door", "bottle", "plate"}
OFTEN_PLURAL = {"shoe", "flower", "key", "egg"}
NOT_BEFORE = {"open", "closed", "broken", "full", "hot", "cold", "strong"}


def having(found):
    for name in OWNED:
        thing = a(NOUNS[name])
        grown = [
            who
            for who in EVERYONE
            if who.en != "the children"
            or name in ("dog", "cat", "question", "idea", "problem", "book", "horse", "garden")
        ]
        if name in ("son", "daughter", "brother", "sister"):
            grown = [
                who
                for who in grown
                if who.slot in (0, 1, 2) and "brother" not in who.en and "sister" not in who.en or who.pronoun
            ]
        for who in pick(5, grown, name):
            found.say(en.simple(who, "have", thing[0]), fr.clause(who, "avoir", thing[1]))
        for who in pick(3, grown, "not" + name):
            found.say(
                en.simple(who, "have", thing[0], negated=True),
                fr.clause(who, "avoir", fr.without_quantity(thing[1]), negation="pas"),
            )
        for who in pick(2, (YOU, HE, SHE, THEY), "ask" + name):
            found.ask(f"{en.do(who)} {who.en} have {thing[0]}", fr.question(who, "avoir", thing[1]))
        if name not in ("son", "daughter", "brother", "sister", "question", "idea", "problem", "ticket", "passport"):
            for who in pick(2, grown, "want" + name):
                found.say(en.simple(who, "want", thing[0]), fr.clause(who, "vouloir", thing[1]))
            for who in pick(1, grown, "need" + name):
                found.say(en.simple(who, "need", thing[0]), fr.clause(who, "avoir", "besoin de " + thing[1]))
        if name not in ("question", "problem", "passport", "job", "idea"):
            most = len(NUMBERS) if name == "book" else 4 if name in SEVERAL else 2
            for number in pick(2, NUMBERS[:most], name):
                who = pick(1, [one for one in grown if one.pronoun], number[0] + name)[0]
                things = counted(number, NOUNS[name])
                found.say(en.simple(who, "have", things[0]), fr.clause(who, "avoir", things[1]))


def whose(found):
    for name in ASKED_FOR:
        noun, plural = NOUNS[name], name in ("shoe", "key")
        for owner in pick(3, OWNERS, "this" + name):
            thing = own(owner, noun, plural=plural)
            if plural:
                found.say(f"these are {thing[0]}", f"ce sont {thing[1]}")
            else:
                found.say(f"this is {thing[0]}", f"ce est {thing[1]}")
                found.say(f"it isn't {thing[0]}", f"ce n'est pas {thing[1]}")
                found.ask(f"is it {thing[0]}", f"est-ce que ce est {thing[1]}")
        for owner in pick(4 if name != "address" else 0, OWNERS, "where" + name):
            thing = own(owner, noun, plural=plural)
            found.ask(
                f"where are {thing[0]}" if plural else f"where's {thing[0]}",
                f"où sont {thing[1]}" if plural else f"où est {thing[1]}",
            )
        for owner in pick(2, OWNERS[:2] + OWNERS[4:], "found" + name):
            thing = own(owner, noun, plural=plural)
            who = {0: HE, 1: SHE, 3: THEY, 5: WE}[owner[1]]
            found.say(en.simple_past(who, "find", thing[0]), fr.clause(who, "trouver", thing[1], tense="past"))
    for name in ("name", "family"):
        french_name = {"name": "nom", "family": "famille"}[name]
        for english_owner, slot in OWNERS:
            form = fr.POSSESSIVE[slot][0 if name == "name" else 1]
            if name == "name":
                found.say(
                    f"I know {english_owner} name" if slot else "you know my name",
                    f"je connais {form} {french_name}" if slot else f"tu connais {form} {french_name}",
                )
            else:
                found.say(f"{english_owner} family is very big", f"{form} {french_name} est très grande")


def describing(found):
    for name, qualities in DESCRIBED.items():
        noun, plural = NOUNS[name], name in OFTEN_PLURAL
        for quality in qualities.split():
            adjective = QUALITIES.get(quality)
            if adjective is None:
                continue
            said = BRAND_NEW if quality == "new" and name not in ("idea", "song") else adjective
            form = fr.agree(said, noun.gender, plural)
            phrases = [the(noun, plural=plural), this(noun, plural=plural)]
            if name not in NOBODYS:
                phrases.append(own(pick(1, OWNERS, name + quality)[0], noun, plural=plural))
            for index, phrase in enumerate(pick(2, phrases, name + quality)):
                subject = as_subject(phrase, noun, plural)
                found.say(en.with_be(subject, quality), fr.clause(subject, "être", form))
                if (
                    index == 0
                    and said is adjective
                    and quality
                    not in ("open", "closed", "broken", "red", "blue", "green", "black", "white", "full", "empty")
                ):
                    english_degree, french_degree = pick(1, (("very", "très"), ("too", "trop")), name + quality)[0]
                    if english_degree == "too" and quality in (
                        "beautiful",
                        "interesting",
                        "good",
                        "bad",
                        "new",
                        "clean",
                    ):
                        english_degree, french_degree = "very", "très"
                    found.say(
                        en.with_be(subject, f"{english_degree} {quality}"),
                        fr.clause(subject, "être", f"{french_degree} {form}"),
                    )
            other = as_subject(pick(1, phrases[:2], "not" + name + quality)[0], noun, plural)
            found.say(en.with_be(other, quality, negated=True), fr.clause(other, "être", form, negation="pas"))
            if quality not in NOT_BEFORE and not plural:
                of_kind(found, name, adjective)


def of_kind(found, name, adjective):
    """Adds sentences with the adjective beside its noun: "it's a good idea", "they have a big garden"."""
    noun = NOUNS[name]
    thing = a(noun, adjective)
    if pick(1, (0, 1), name + adjective.en)[0]:
        found.say(f"it's {thing[0]}", f"ce est {thing[1]}")
    elif name in OWNED and name not in ("problem", "question", "idea"):
        who = pick(1, EVERYONE[:16], name + adjective.en)[0]
        found.say(en.simple(who, "have", thing[0]), fr.clause(who, "avoir", thing[1]))
    elif name in ("dress", "shirt", "hat", "coat", "bike", "umbrella", "bag", "computer"):
        who = pick(1, EVERYONE[:16], name + adjective.en)[0]
        found.say(en.simple_past(who, "buy", thing[0]), fr.clause(who, "acheter", thing[1], tense="past"))


def counting(found):
    here = {
        "in the garden": ("tree", "flower", "dog", "cat", "bird", "horse", "chair"),
        "on the table": ("book", "glass", "cup", "plate", "bottle", "key", "apple", "egg"),
        "in the box": ("egg", "orange", "key", "hat", "letter"),
        "on this street": ("house", "restaurant", "hotel", "car", "school"),
    }
    french_place = {
        "in the garden": "dans le jardin",
        "on the table": "sur la table",
        "in the box": "dans la boîte",
        "on this street": "dans cette rue",
    }
    for place, names in here.items():
        for name in names:
            for number in pick(2, NUMBERS, place + name):
                things = counted(number, NOUNS[name])
                found.say(f"there are {things[0]} {place}", f"il y a {things[1]} {french_place[place]}")
            if pick(1, (0, 1), place + name)[0]:
                found.say(
                    f"there isn't {a(NOUNS[name])[0]} {place}",
                    f"il n'y a pas {fr.without_quantity(a(NOUNS[name])[1])} {french_place[place]}",
                )
            plural = NOUNS[name]
            found.ask(
                f"are there any {plural.en_plural} {place}", f"y a-t-il des {plural.fr_plural} {french_place[place]}"
            )
            found.ask(
                f"how many {plural.en_plural} are there {place}",
                f"combien de {plural.fr_plural} y a-t-il {french_place[place]}",
            )


def pairs():
    found = Pairs()
    for build in (having, whose, describing, counting):
        build(found)
    return found
