"""The day: getting up, washing, going to bed, hours, days, habits, ages and the weather."""

from .. import english as en
from .. import french as fr
from ..lexicon import EVERYONE, HE, PRONOUNS, SHE, THEY, YOU
from ..pairs import Pairs, pick, table

# Reflexive verbs. Object agreement "none": the participle does not agree, because a direct object follows ("elle s'est
# lavé les mains").
REFLEXIVE = """
get up | se lever | early = tôt; at seven o'clock = à sept heures; late = tard; at six o'clock = à six heures
go to bed | se coucher | early = tôt; at ten o'clock = à dix heures; late = tard; at eleven o'clock = à onze heures
wake up | se réveiller | early = tôt; at five o'clock = à cinq heures; at noon = à midi
wash | se laver | @my hands = les mains; @my hair = les cheveux; @my face = le visage
brush | se brosser | @my teeth = les dents; @my hair = les cheveux
get dressed | s'habiller | for dinner = pour le dîner; = 
have fun | s'amuser | = ; at the beach = à la plage; with the dog = avec le chien; in the park = dans le parc
rest | se reposer | = ; in the garden = dans le jardin; at home = à la maison
hurry | se dépêcher | = 
get lost | se perdre | in the city = en ville; in the forest = dans la forêt
"""
CLOCK = (
    ("one", "une"),
    ("two", "deux"),
    ("three", "trois"),
    ("four", "quatre"),
    ("five", "cinq"),
    ("six", "six"),
    ("seven", "sept"),
    ("eight", "huit"),
    ("nine", "neuf"),
    ("ten", "dix"),
    ("eleven", "onze"),
)
DAYS = (
    ("Monday", "lundi"),
    ("Tuesday", "mardi"),
    ("Wednesday", "mercredi"),
    ("Thursday", "jeudi"),
    ("Friday", "vendredi"),
    ("Saturday", "samedi"),
    ("Sunday", "dimanche"),
)
AGES = (
    ("two", "deux"),
    ("four", "quatre"),
    ("six", "six"),
    ("eight", "huit"),
    ("ten", "dix"),
    ("twelve", "douze"),
    ("fifteen", "quinze"),
    ("twenty", "vingt"),
    ("thirty", "trente"),
    ("forty", "quarante"),
    ("fifty", "cinquante"),
)
# Habits: English verb | French verb | rest. The objects are general, so that they fit "often" or "always".
HABITS = """
eat | manger | meat = de la viande; fish = du poisson; vegetables = des légumes; at the restaurant = au restaurant; too much = trop
drink | boire | coffee = du café; wine = du vin; milk = du lait; tea = du thé
read | lire | the newspaper = le journal; in bed = dans @mon lit
play | jouer | tennis = au tennis; soccer = au football; with the children = avec les enfants
watch | regarder | TV = la télévision; movies = des films
go | aller | to school = à l'école; to the movies = au cinéma; to the beach = à la plage; to the market = au marché; to the library = à la bibliothèque
listen | écouter | to the radio = la radio; to music = de la musique
take | prendre | the bus = le bus; the train = le train; a taxi = un taxi
work | travailler | in the evening = le soir; at home = à la maison; too much = trop
call | appeler | @my mother = @ma mère; @my friends = @mes amis
make | préparer | dinner = le dîner
make | faire | cakes = des gâteaux; mistakes = des erreurs
travel | voyager | alone = seul@e; by train = en train
speak | parler | French = français; English = anglais
walk | marcher | in the park = dans le parc; on the beach = sur la plage
help | aider | @my parents = @mes parents; @my friends = @mes amis
arrive | arriver | late = en retard
come home | rentrer | late = tard; early = tôt
cry | pleurer | = 
laugh | rire | = 
smile | sourire | = 
sing | chanter | in the shower = sous la douche; = 
forget | oublier | @my keys = @mes clés; my name = mon nom; everything = tout
lose | perdre | @my keys = @mes clés; at tennis = au tennis
"""
FREQUENCIES = (("often", "souvent"), ("always", "toujours"), ("sometimes", "parfois"))
TIMES = (
    ("every day", "tous les jours"),
    ("every morning", "tous les matins"),
    ("on Sundays", "le dimanche"),
    ("on Saturdays", "le samedi"),
    ("every evening", "tous les soirs"),
)
WEATHER = table("""
it's hot = il fait chaud
it's cold = il fait froid
it's raining = il pleut
it's snowing = il neige
it's sunny = il y a du soleil
it's windy = il y a du vent
the weather is nice = il fait beau
the weather is bad = il fait mauvais
it's dark = il fait nuit
it's very hot = il fait très chaud
it's very cold = il fait très froid
it's a little cold = il fait un peu froid
""")
WEATHER_TIMES = (
    ("today", "aujourd'hui"),
    ("in Paris", "à Paris"),
    ("here", "ici"),
    ("in the mountains", "à la montagne"),
    ("this morning", "ce matin"),
    ("in London", "à Londres"),
)


def reflexive(found):
    for base, infinitive, rests in table(REFLEXIVE, "|"):
        infinitive = infinitive.replace("s'", "se ")
        verb, _, particle = base.partition(" ")
        for rest in rests.split(";"):
            english_rest, french_rest = (side.strip() for side in rest.split("="))
            act = (base + rest, verb, en.words(particle, english_rest), infinitive, french_rest)
            _reflexive_past(found, *act)
            if verb != "get" or particle in ("up", "dressed"):
                _reflexive_plan(found, *act, unwise=english_rest in ("late", "at noon"))
            if verb in ("get", "go", "wake") and particle not in ("lost", "dressed"):
                _reflexive_habit(found, *act)


def _reflexive_past(found, key, verb, after, infinitive, rest):
    told = {"tense": "past", "object_agreement": "none" if rest.startswith("les ") or rest == "le visage" else None}
    for who in pick(5, EVERYONE, "past" + key):
        found.say(en.simple_past(who, verb, after), fr.clause(who, infinitive, rest, **told))
    for who in pick(2, EVERYONE, "not past" + key):
        found.say(
            en.simple_past(who, verb, after, negated=True), fr.clause(who, infinitive, rest, negation="pas", **told)
        )
    for who in pick(1, (YOU, HE, SHE, THEY), "ask" + key):
        found.ask(en.words("did", who.en, verb, en.bind(after, who)), fr.question(who, infinitive, rest, **told))


def _reflexive_plan(found, key, verb, after, infinitive, rest, unwise):
    """Adds sentences with "going to", and, for actions that people want, with must, want and commands."""
    plain = en.words("@me " + fr.verb(infinitive).infinitive, rest)
    for who in pick(2, EVERYONE, "going" + key):
        found.say(en.with_be(who, en.words("going to", verb, after)), fr.clause(who, infinitive, rest, tense="going"))
    if unwise:
        return
    for who in pick(2, EVERYONE, "must" + key):
        found.say(en.words(who.en, "must", verb, en.bind(after, who)), fr.clause(who, "devoir", plain))
    for who in pick(2, EVERYONE, "want" + key):
        found.say(en.simple(who, "want", en.words("to", verb, after)), fr.clause(who, "vouloir", plain))
    found.order(en.words(verb, after.replace("@my", "your")), fr.command(infinitive, rest))


def _reflexive_habit(found, key, verb, after, infinitive, rest):
    for who in pick(2, EVERYONE, "always" + key):
        found.say(en.simple(who, verb, after, adverb="always"), fr.clause(who, infinitive, en.words("toujours", rest)))
    for who in pick(1, EVERYONE, "never" + key):
        found.say(en.simple(who, verb, after, adverb="never"), fr.clause(who, infinitive, rest, negation="jamais"))


NOT_FOR_CHILDREN = ("wine", "coffee", "a taxi", "with the children", "in the evening", "too much", "alone")
THEMSELVES = (("my mother", "mother"), ("my parents", "parents"), ("my friends", "friends"))
TIMED = ("eat", "drink", "read", "play", "watch", "go", "listen", "take", "call", "make", "walk", "help")


def _people_for(rest):
    """Returns the people of whom a habit can be told. Leaves out combinations that would be odd, such as "my mother
    calls her mother"."""
    people = [who for who in EVERYONE if who.en != "the children" or rest not in NOT_FOR_CHILDREN]
    people = [who for who in people if not any(who.en == name and word in rest for name, word in THEMSELVES)]
    return [who for who in people if who.slot not in (0, 3)] if "my name" in rest else people


def habits(found):
    for base, infinitive, rests in table(HABITS, "|"):
        verb, _, particle = base.partition(" ")
        for rest in rests.split(";"):
            english_rest, french_rest = (side.strip() for side in rest.split("="))
            act = (
                base + rest,
                verb,
                en.words(particle, english_rest),
                infinitive,
                french_rest,
                _people_for(english_rest),
            )
            if french_rest != "trop":
                _how_often(found, *act)
            if french_rest not in ("trop", "tout", "mon nom") and base != "lose":
                _never(found, *act)
            if base in TIMED and "mistakes" not in rest and french_rest != "trop":
                _when(found, *act)
            if (
                french_rest
                and base not in ("lose", "forget", "come home", "arrive", "travel")
                and english_rest != "too much"
            ):
                _not_often(found, *act)


def _how_often(found, key, verb, after, infinitive, rest, people):
    for index, who in enumerate(pick(3, people, "habit" + key)):
        english_adverb, french_adverb = FREQUENCIES[index]
        found.say(
            en.simple(who, verb, after, adverb=english_adverb),
            fr.clause(who, infinitive, en.words(french_adverb, rest)),
        )


def _never(found, key, verb, after, infinitive, rest, people):
    for who in pick(2, people, "never" + key):
        none = fr.without_quantity(rest)
        found.say(en.simple(who, verb, after, adverb="never"), fr.clause(who, infinitive, none, negation="jamais"))


def _when(found, key, verb, after, infinitive, rest, people):
    for index, who in enumerate(pick(2, people, "every" + key)):
        english_time, french_time = (
            TIMES[index] if "school" in after else pick(1, TIMES[:3] if index else TIMES[2:], key)[0]
        )
        found.say(
            en.simple(who, verb, en.words(after, english_time)), fr.clause(who, infinitive, en.words(rest, french_time))
        )


def _not_often(found, key, verb, after, infinitive, rest, people):
    for who in pick(1, people, "don't" + key):
        none = fr.without_quantity(rest)
        found.say(en.simple(who, verb, after, negated=True), fr.clause(who, infinitive, none, negation="pas"))
    for who in pick(1, (YOU, HE, SHE, THEY), "ask" + key):
        english = en.words(en.do(who), who.en, "often", verb, en.bind(after, who))
        found.ask(english, fr.est_ce_que(who, infinitive, en.words("souvent", rest)))


def clock(found):
    for english_hour, french_hour in CLOCK:
        hours = "heure" if french_hour == "une" else "heures"
        found.say(f"it's {english_hour} o'clock", f"il est {french_hour} {hours}")
        found.say(f"it's already {english_hour} o'clock", f"il est déjà {french_hour} {hours}")
        found.ask(f"is it {english_hour} o'clock", f"est-il {french_hour} {hours}")
        found.say(f"it's half past {english_hour}", f"il est {french_hour} {hours} et demie")
        for thing, french_thing in pick(
            2,
            table(
                "the train leaves = le train part\nthe bus arrives = le bus arrive\nthe store opens = le magasin ouvre\nthe bank closes = la banque ferme\nthe movie starts = le film commence"
            ),
            english_hour,
        ):
            found.say(f"{thing} at {english_hour} o'clock", f"{french_thing} à {french_hour} {hours}")
        for who in pick(2, PRONOUNS, english_hour):
            found.say(
                en.will(who, f"come at {english_hour} o'clock"),
                fr.clause(who, "venir", f"à {french_hour} {hours}", tense="future"),
            )
    for english_day, french_day in DAYS:
        found.say(f"today is {english_day}", f"aujourd'hui, ce est {french_day}")
        found.say(f"tomorrow is {english_day}", f"demain, ce est {french_day}")
        found.say(f"the store is closed on {english_day}s", f"le magasin est fermé le {french_day}")
        found.exclaim(f"see you on {english_day}", f"à {french_day}")
        for who in pick(3, PRONOUNS, english_day):
            found.say(en.with_be(who, f"leaving on {english_day}"), fr.clause(who, "partir", french_day))
            found.say(
                en.simple(who, "work", f"on {english_day}s", negated=True),
                fr.clause(who, "travailler", f"le {french_day}", negation="pas"),
            )
        for who in pick(2, PRONOUNS, "free" + english_day):
            found.say(
                en.with_be(who, f"free on {english_day}"),
                fr.clause(who, "être", ("libres" if who.plural else "libre") + f" {french_day}"),
            )


def ages(found):
    young = [
        who
        for who in EVERYONE
        if who.slot == 2 and who.en not in ("my mother", "my father", "my uncle", "my aunt", "our neighbor")
    ]
    for english_age, french_age in AGES:
        old = AGES.index((english_age, french_age)) >= 7
        people = (
            [who for who in EVERYONE if who.en not in ("the children", "my parents", "my friends", "my sisters")]
            if old
            else young
        )
        for who in pick(4, people, english_age):
            found.say(en.with_be(who, f"{english_age} years old"), fr.clause(who, "avoir", f"{french_age} ans"))
        for relation, french_relation in (
            ("son", "mon fils"),
            ("daughter", "ma fille"),
            ("cat", "mon chat"),
            ("dog", "mon chien"),
        ):
            if not old and (
                relation in ("son", "daughter") or english_age in ("two", "four", "six", "eight", "ten", "twelve")
            ):
                found.say(f"my {relation} is {english_age} years old", f"{french_relation} a {french_age} ans")
    for who in [one for one in EVERYONE if one.slot in (1, 2, 5)]:
        english = en.words("how old", en.be(who), who.en)
        french = (
            fr.question(who, "avoir", wh="quel âge")
            if who.pronoun
            else f"quel âge {fr.verb('avoir').present[who.slot]} {who.fr}"
        )
        found.ask(english, french)


def weather(found):
    for english_weather, french_weather in WEATHER:
        found.say(english_weather, french_weather)
        for english_time, french_time in pick(4, WEATHER_TIMES, english_weather):
            if "dark" not in english_weather:
                found.say(f"{english_weather} {english_time}", f"{french_weather} {french_time}")
    for english_weather, french_weather in (("hot", "chaud"), ("cold", "froid"), ("dark", "nuit")):
        found.say(f"it isn't {english_weather}", f"il ne fait pas {french_weather}")
        found.say(f"it was {english_weather}", f"il faisait {french_weather}")
        found.ask(f"is it {english_weather}", f"est-ce qu'il fait {french_weather}")
    for english_time, french_time in (("tomorrow", "demain"), ("tonight", "ce soir"), ("soon", "bientôt")):
        found.say(f"it's going to rain {english_time}", f"il va pleuvoir {french_time}")
        found.say(f"it's going to snow {english_time}", f"il va neiger {french_time}")
    found.say("it isn't raining anymore", "il ne pleut plus")
    found.say("it isn't raining", "il ne pleut pas")
    found.say("it rained yesterday", "il a plu hier")
    found.say("it snowed last night", "il a neigé cette nuit")
    found.say("it never snows here", "il ne neige jamais ici")
    found.say("it often rains here", "il pleut souvent ici")
    found.ask("is it raining", "est-ce qu'il pleut")
    found.ask("is it snowing", "est-ce qu'il neige")


def pairs():
    found = Pairs()
    for build in (reflexive, habits, clock, ages, weather):
        build(found)
    return found
