"""Food and likes: some, any, a lot of, likes and dislikes, at the table."""

from .. import english as en
from .. import french as fr
from ..lexicon import EVERYONE, HE, I, PRONOUNS, SHE, THEY, WE, YOU
from ..pairs import Pairs, pick, table

# English = French with "some" = French with "the" = kind: D drink, F food, S seasoning or other ingredient.
FOODS = table("""
bread = du pain = le pain = F
cheese = du fromage = le fromage = F
meat = de la viande = la viande = F
fish = du poisson = le poisson = F
soup = de la soupe = la soupe = F
salad = de la salade = la salade = F
rice = du riz = le riz = F
chicken = du poulet = le poulet = F
chocolate = du chocolat = le chocolat = F
cake = du gâteau = le gâteau = F
fruit = des fruits = les fruits = F
sugar = du sucre = le sucre = S
salt = du sel = le sel = S
butter = du beurre = le beurre = S
water = de la eau = la eau = D
milk = du lait = le lait = D
coffee = du café = le café = D
tea = du thé = le thé = D
wine = du vin = le vin = D
orange juice = du jus de orange = le jus de orange = D
""")
LIKED = table("""
dogs = les chiens
cats = les chats
horses = les chevaux
flowers = les fleurs
music = la musique
the sea = la mer
apples = les pommes
eggs = les œufs
old movies = les vieux films
books = les livres
this city = cette ville
this song = cette chanson
this restaurant = ce restaurant
@my work = @mon travail
my new dress = ma nouvelle robe
""")


def _grown(name):
    return [who for who in EVERYONE if who.en != "the children" or name not in ("wine", "coffee", "tea")]


def at_the_table(found):
    for name, some, the, kind in FOODS:
        people = _grown(name)
        none = fr.without_quantity(some)
        for who in pick(3, [one for one in people if one is not YOU], "want some" + name):
            found.say(en.simple(who, "want", f"some {name}"), fr.clause(who, "vouloir", some))
        for who in pick(2, people, "want no" + name):
            found.say(
                en.simple(who, "want", f"any {name}", negated=True), fr.clause(who, "vouloir", none, negation="pas")
            )
        for who in pick(2, (YOU, HE, SHE, THEY), "want?" + name):
            found.ask(f"{en.do(who)} {who.en} want some {name}", fr.est_ce_que(who, "vouloir", some))
        for who in pick(2, (I, HE, SHE, WE, THEY), "would like" + name):
            found.say(f"{who.en} would like some {name}", fr.clause(who, "vouloir", some, tense="conditional"))
        found.ask(f"would you like some {name}", fr.question(YOU, "vouloir", some, tense="conditional"))
        for who in pick(2, people, "no more" + name):
            found.say(
                en.simple(who, "have", f"any {name} left", negated=True), fr.clause(who, "avoir", none, negation="plus")
            )
        for who in pick(2, (I, WE, HE, SHE, THEY), "bought" + name):
            found.say(
                en.simple_past(who, "buy", f"a lot of {name}"),
                fr.clause(who, "acheter", "beaucoup " + none, tense="past"),
            )
        needed = name in ("bread", "meat", "rice", "fruit", "sugar", "salt", "butter", "water", "milk", "coffee")
        for who in pick(3 if needed else 0, PRONOUNS, "need" + name):
            found.say(en.simple(who, "need", name), fr.clause(who, "avoir", "besoin " + none))
        found.say(f"there's {name} on the table", f"il y a {some} sur la table")
        found.say(f"there isn't any {name} left", f"il n'y a plus {none}")
        found.ask(f"is there any {name}", f"est-ce qu'il y a {some}")
        found.say(f"pass me the {name}, please", f"passe-moi {the}, s'il te plaît")
        found.ask(f"where's the {name}", f"où est {the}" if name != "fruit" else "où sont les fruits")


def eating(found):
    for name, some, the, kind in FOODS:
        people = _grown(name)
        none = fr.without_quantity(some)
        verb, french_verb = ("drink", "boire") if kind == "D" else ("eat", "manger")
        if kind != "S":
            for who in pick(2, people, "ate" + name):
                found.say(
                    en.simple_past(who, verb, f"too much {name}"),
                    fr.clause(who, french_verb, "trop " + none, tense="past"),
                )
            for who in pick(1, people, "never" + name):
                found.say(
                    en.simple(who, verb, name, adverb="never"), fr.clause(who, french_verb, none, negation="jamais")
                )
            for who in pick(1, people, "not any more" + name):
                found.say(
                    en.simple(who, verb, f"{name} anymore", negated=True),
                    fr.clause(who, french_verb, none, negation="plus"),
                )
            found.order(f"{verb} some {name}", fr.command(french_verb, some))
        if kind != "S" and name != "fruit":
            article, noun = the.split(" ", 1)
            this, cold, good = ("cette", "froide", "bonne") if article == "la" else ("ce", "froid", "bon")
            if name not in ("bread", "cheese", "chocolate", "cake", "salad"):
                found.say(f"the {name} is cold", f"{the} est {cold}")
            found.say(f"the {name} is good", f"{the} est {good}")
            found.say(f"this {name} is very good", f"{this} {noun} est très {good}")


def liking(found):
    liked = [(name, the) for name, _, the, kind in FOODS if kind != "S" and name != "water"] + LIKED
    for name, the in liked:
        people = _grown(name)
        if "dress" in name:
            people = [who for who in EVERYONE if who.slot != 0]
        if "work" in name:
            people = [who for who in EVERYONE if who.en != "the children"]
        for who in pick(4, people, "like" + name):
            found.say(en.simple(who, "like", name), fr.clause(who, "aimer", the))
        for who in pick(3, people, "don't like" + name):
            found.say(en.simple(who, "like", name, negated=True), fr.clause(who, "aimer", the, negation="pas"))
        for who in pick(2, (YOU, HE, SHE, THEY), "like?" + name):
            found.ask(f"{en.do(who)} {who.en} like {en.bind(name, who)}", fr.est_ce_que(who, "aimer", the))
        for who in pick(1, people, "like a lot" + name):
            found.say(en.simple(who, "like", name + " a lot"), fr.clause(who, "aimer", "beaucoup " + the))
    couples = [(a, b) for a in FOODS for b in FOODS if a != b and a[3] == b[3] != "S" and "fruit" not in (a[0], b[0])]
    for first, second in pick(24, couples, "prefer"):
        who = pick(1, _grown("wine" if first[3] == "D" else ""), first[0] + second[0])[0]
        found.say(
            en.simple(who, "prefer", f"{first[0]} to {second[0]}"),
            fr.clause(who, "préférer", f"{first[2]} à {second[2]}"),
        )


def pairs():
    found = Pairs()
    at_the_table(found)
    eating(found)
    liking(found)
    return found
