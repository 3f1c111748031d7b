"""What people do, did and will do: the same activities in all tenses, negation, questions, modal verbs and commands."""

from .. import english as en
from .. import french as fr
from ..lexicon import EVERYONE, HE, I, SHE, THEY, WE, YOU
from ..pairs import Pairs, pick, table

# Activities that can be going on, be over, be planned or be wanted. English verb | French verb | English rest = French
# rest; ...
ACTIVITIES = """
eat | manger | an apple = une pomme; some bread = du pain; some fish = du poisson; the soup = la soupe; in the kitchen = dans la cuisine
drink | boire | some water = de l'eau; some coffee = du café; some tea = du thé; some milk = du lait
read | lire | a book = un livre; the newspaper = le journal; a story = une histoire
write | écrire | a letter = une lettre; a book = un livre; a song = une chanson
work | travailler | = ; at the hospital = à l'hôpital; in the garden = dans le jardin; with @my father = avec @mon père
sleep | dormir | = ; in the garden = dans le jardin; at the hotel = à l'hôtel
watch | regarder | TV = la télévision; a movie = un film; the game = le match
listen | écouter | to the radio = la radio; to a song = une chanson; to music = de la musique
play | jouer | tennis = au tennis; soccer = au football; the piano = ~du piano; with the dog = avec le chien; in the park = dans le parc
make | préparer | dinner = le dîner; breakfast = le petit-déjeuner; the coffee = le café
make | faire | a cake = un gâteau; some soup = de la soupe; a salad = une salade
buy | acheter | a car = une voiture; some bread = du pain; some fruit = des fruits; a ticket = un billet; some flowers = des fleurs
look | chercher | for @my keys = @mes clés; for a job = un travail; for @my phone = @mon téléphone; for @my glasses = @mes lunettes
wait | attendre | for the bus = le bus; for the train = le train; for @my brother = @mon frère; for the doctor = le médecin
learn | apprendre | French = le français; English = l'anglais; to swim = à nager; to drive = à conduire; a song = une chanson
study | étudier | at the library = à la bibliothèque; in @my room = dans @ma chambre
help | aider | @my mother = @ma mère; the teacher = le professeur; @my friends = @mes amis
call | appeler | the doctor = le médecin; the police = la police; @my father = @mon père; a taxi = un taxi
clean | nettoyer | the kitchen = la cuisine; @my room = @ma chambre; the windows = les fenêtres
wash | laver | the car = la voiture; the plates = les assiettes; @my dog = @mon chien
take | prendre | the bus = le bus; the train = le train; a shower = une douche; a picture = une photo
do | faire | @my homework = @mes devoirs; the dishes = la vaisselle; the shopping = les courses
sing | chanter | = ; a song = une chanson; in the shower = sous la douche
dance | danser | = ; with @my friends = avec @mes amis; in the street = dans la rue
swim | nager | = ; in the sea = dans la mer; in the lake = dans le lac
run | courir | = ; in the park = dans le parc; in the street = dans la rue
walk | marcher | in the street = dans la rue; on the beach = sur la plage; in the park = dans le parc
travel | voyager | by train = en train; with @my parents = avec @mes parents; in Italy = en Italie
talk | parler | to the teacher = au professeur; with @my friends = avec @mes amis; about @my work = de @mon travail
sell | vendre | @my car = @ma voiture; the house = la maison; @my bike = @mon vélo; flowers = des fleurs
"""
# Events, which are told only in the past.
EVENTS = """
lose | perdre | = ; @my keys = @mes clés; @my passport = @mon passeport; @my phone = @mon téléphone; a lot of money = beaucoup d'argent; the game = le match
find | trouver | @my keys = @mes clés; a job = un travail; the answer = la réponse; a good hotel = un bon hôtel; a solution = une solution
forget | oublier | @my umbrella = @mon parapluie; @my passport = @mon passeport; the address = l'adresse; the milk = le lait; everything = tout
break | casser | a glass = un verre; the window = la fenêtre; a plate = une assiette
win | gagner | = ; the game = le match; a lot of money = beaucoup d'argent
choose | choisir | the red dress = la robe rouge; a gift = un cadeau; a good restaurant = un bon restaurant
hear | entendre | the news = la nouvelle; a noise = un bruit; the question = la question
see | voir | a good movie = un bon film; the sea = la mer; the doctor = le médecin; your sister = ta sœur; an accident = un accident
meet | rencontrer | a friend = un ami; the teacher = le professeur; an old friend = un vieil ami
understand | comprendre | = ; the question = la question; the problem = le problème; everything = tout
receive | recevoir | a letter = une lettre; a gift = un cadeau; good news = une bonne nouvelle
finish | finir | = ; @my homework = @mes devoirs; the book = le livre; the work = le travail
pay | payer | the bill = l'addition; for the meal = le repas; a lot = cher
open | ouvrir | the window = la fenêtre; the door = la porte; the box = la boîte
close | fermer | the window = la fenêtre; the door = la porte; the store = le magasin
miss | rater | the bus = le bus; the train = le train
"""


def _read(text):
    """Returns (English verb, English rest, French verb, French rest) for each item of each line."""
    found = Pairs()
    for base, infinitive, rests in table(text, "|"):
        for rest in rests.split(";"):
            english_rest, french_rest = (side.strip() for side in rest.split("="))
            found.append((base, english_rest, infinitive, french_rest))
    return found


ACTIVITY = _read(ACTIVITIES)
EVENT = _read(EVENTS)
NO_COMMAND = {"look", "travel", "learn", "sell", "sleep"}
TONIGHT = {
    "eat",
    "drink",
    "read",
    "write",
    "work",
    "sleep",
    "watch",
    "listen",
    "play",
    "make",
    "study",
    "call",
    "do",
    "sing",
    "dance",
    "talk",
}
NO_TIME = {"look", "wait"}
NOT_FOR_CHILDREN = (
    "car",
    "job",
    "hospital",
    "hotel",
    "coffee",
    "taxi",
    "bill",
    "drive",
    "house",
    "money",
    "restaurant",
    "@my work",
    "Italy",
    "accident",
)
PAST_SCHOOL = ("my mother", "my father", "my uncle", "my aunt", "my parents", "our neighbor")


def _subjects(count, action, salt):
    everyone = EVERYONE
    if action[0] in ("work", "sell", "study", "travel") or any(word in action[1] for word in NOT_FOR_CHILDREN):
        everyone = [who for who in EVERYONE if who.en != "the children"]
    if "homework" in action[1]:
        everyone = [who for who in EVERYONE if who.en not in PAST_SCHOOL]
    return pick(count, everyone, f"{salt}{action}")


def _past_time(action, index):
    """Returns the time of a past action: in turn none, yesterday, this morning; for actions that take long, last
    year."""
    if action in EVENT and not action[1] or action[0] in NO_TIME:
        return "", ""
    if action[0] in ("travel", "learn"):
        return (("", ""), ("last year", "l'année dernière"))[index % 2]
    if not action[1]:
        return (("yesterday", "hier"), ("this morning", "ce matin"))[index % 2]
    return (("", ""), ("yesterday", "hier"), ("this morning", "ce matin"))[index % 3]


def now(found):
    for action in ACTIVITY:
        base, rest, infinitive, french_rest = action
        for who in _subjects(6, action, "now"):
            found.say(en.with_be(who, en.words(en.ing(base), rest)), fr.clause(who, infinitive, french_rest))
        for who in _subjects(2, action, "not now"):
            negative = fr.without_quantity(french_rest)
            found.say(
                en.with_be(who, en.words(en.ing(base), en.any_for_some(rest)), negated=True),
                fr.clause(who, infinitive, negative, negation="pas"),
            )
        for who in pick(1, (YOU, HE, SHE, THEY), f"now?{action}"):
            english = en.words(en.be(who), who.en, en.ing(base), en.bind(rest, who))
            found.ask(english, fr.est_ce_que(who, infinitive, french_rest))


def past(found):
    for action in ACTIVITY + EVENT:
        base, rest, infinitive, french_rest = action
        extra = 3 if action in EVENT else 0
        for index, who in enumerate(_subjects(3 + extra, action, "past")):
            english_time, french_time = _past_time(action, index)
            everything = "tout" if french_rest == "tout" else ""
            after = en.words("" if everything else french_rest, french_time)
            found.say(
                en.simple_past(who, base, en.words(rest, english_time)),
                fr.clause(who, infinitive, after, tense="past", adverb=everything),
            )
        for who in _subjects(1 + extra // 3, action, "not past"):
            negative = fr.without_quantity(french_rest)
            if rest == "everything":
                continue
            found.say(
                en.simple_past(who, base, en.any_for_some(rest), negated=True),
                fr.clause(who, infinitive, negative, tense="past", negation="pas"),
            )
        for who in pick(1 + extra // 3, (YOU, HE, SHE, THEY), f"past?{action}"):
            english = en.words("did", who.en, base, en.bind(rest, who))
            everything = "tout" if french_rest == "tout" else ""
            found.ask(
                english,
                fr.question(who, infinitive, "" if everything else french_rest, tense="past", adverb=everything),
            )


def already(found):
    done = [
        a
        for a in ACTIVITY
        if a[0] in ("eat", "do", "buy", "clean", "take", "call", "wash")
        and a[1]
        and "kitchen" not in a[1]
        or a[1] == "the kitchen"
    ]
    done += [a for a in EVENT if a[0] in ("finish", "pay", "choose", "open", "find") and a[1] != "a lot"]
    for action in done:
        base, rest, infinitive, french_rest = action
        for who in _subjects(1, action, "already"):
            found.say(
                en.perfect(who, base, rest, adverb="already"),
                fr.clause(who, infinitive, french_rest, tense="past", adverb="déjà"),
            )
        for who in _subjects(1, action, "not yet"):
            found.say(
                en.perfect(who, base, en.words(en.any_for_some(rest), "yet"), negated=True),
                fr.clause(who, infinitive, fr.without_quantity(french_rest), tense="past", negation="pas encore"),
            )


def future(found):
    for action in ACTIVITY:
        base, rest, infinitive, french_rest = action
        for index, who in enumerate(_subjects(3, action, "going")):
            english_time, french_time = (("", ""), ("tomorrow", "demain"), ("tonight", "ce soir"))[index]
            if base in NO_TIME or base == "learn" or "Italy" in rest or (index == 2 and base not in TONIGHT):
                english_time = french_time = ""
            found.say(
                en.with_be(who, en.words("going to", base, rest, english_time)),
                fr.clause(who, infinitive, en.words(french_rest, french_time), tense="going"),
            )
        for who in pick(1, (YOU, HE, SHE, THEY), f"going?{action}"):
            english = en.words(en.be(who), who.en, "going to", base, en.bind(rest, who))
            found.ask(english, fr.est_ce_que(who, infinitive, french_rest, tense="going"))
        if rest not in ("in Italy", "a car") and base in (
            "help",
            "call",
            "work",
            "take",
            "travel",
            "do",
            "buy",
            "make",
            "eat",
            "talk",
        ):
            for who in pick(1, (I, WE, YOU, HE, SHE, THEY), f"will{action}"):
                found.say(
                    en.will(who, en.words(base, rest, "tomorrow")),
                    fr.clause(who, infinitive, en.words(french_rest, "demain"), tense="future"),
                )


def with_modals(found):
    for action in ACTIVITY:
        base, rest, infinitive, french_rest = action
        plain = en.words(infinitive, french_rest)
        for who in _subjects(1, action, "want"):
            found.say(en.simple(who, "want", en.words("to", base, rest)), fr.clause(who, "vouloir", plain))
        for who in _subjects(1, action, "not want"):
            found.say(
                en.simple(who, "want", en.words("to", base, en.any_for_some(rest)), negated=True),
                fr.clause(who, "vouloir", en.words(infinitive, fr.without_quantity(french_rest)), negation="pas"),
            )
        for who in pick(1, (YOU, HE, SHE, THEY), f"want?{action}"):
            found.ask(
                en.words(en.do(who), who.en, "want to", base, en.bind(rest, who)), fr.est_ce_que(who, "vouloir", plain)
            )
        for who in _subjects(1, action, "must"):
            found.say(en.words(who.en, "must", base, en.bind(rest, who)), fr.clause(who, "devoir", plain))
        for who in _subjects(0 if base == "look" else 1, action, "can't"):
            found.say(
                en.words(who.en, "can't", base, en.bind(en.any_for_some(rest), who)),
                fr.clause(who, "pouvoir", en.words(infinitive, fr.without_quantity(french_rest)), negation="pas"),
            )
        for who in pick(1, (YOU, HE, SHE, WE, THEY), f"can?{action}"):
            found.ask(en.words("can", who.en, base, en.bind(rest, who)), fr.question(who, "pouvoir", plain))
        for who in _subjects(1, action, "would like"):
            found.say(
                en.words(who.en, "would like to", base, en.bind(rest, who)),
                fr.clause(who, "vouloir", plain, tense="conditional"),
            )
        if base not in (
            "look",
            "wait",
            "sell",
            "call",
            "buy",
            "learn",
            "wash",
            "sleep",
            "help",
            "take",
        ) and not rest.startswith(("some ", "the ", "a ", "in the street")):
            for who in _subjects(2, action, "like"):
                found.say(en.simple(who, "like", en.words("to", base, rest)), fr.clause(who, "aimer", plain))


def commands(found):
    for action in ACTIVITY:
        base, rest, infinitive, french_rest = action
        if base in NO_COMMAND or rest in ("in the street", "a car", "at the hospital"):
            continue
        english_rest = rest.replace("@my", "your")
        if rest and base not in ("sing", "dance", "swim", "drink"):
            found.order(en.words(base, english_rest), fr.command(infinitive, french_rest))
        if (
            base in ("eat", "read", "watch", "take", "wash", "call", "buy", "do", "clean", "help", "make")
            and rest
            and "some" not in rest
        ):
            found.say(
                en.words(base, english_rest) + ", please", fr.command(infinitive, french_rest) + ", s'il te plaît"
            )
        if base in ("eat", "run", "dance", "play", "sing", "walk", "talk", "wash", "call", "take", "swim"):
            found.order(
                en.words("don't", base, en.any_for_some(english_rest)),
                fr.command(infinitive, fr.without_quantity(french_rest), negated=True),
            )
        if base in (
            "eat",
            "take",
            "buy",
            "play",
            "watch",
            "sing",
            "dance",
            "call",
            "walk",
            "make",
            "drink",
            "clean",
            "listen",
            "wait",
            "swim",
        ):
            ours = rest.replace("@my", "our")
            found.order(en.words("let's", base, ours), fr.command(infinitive, french_rest, slot=3))


def pairs():
    found = Pairs()
    for build in (now, past, already, future, with_modals, commands):
        build(found)
    return found
