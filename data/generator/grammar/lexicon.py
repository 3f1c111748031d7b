"""The lexicon: verbs, adjectives, nouns and subjects of both languages, as tables."""

from dataclasses import dataclass

# ---- verbs. Each English line is: base, past, participle. Regular verbs are not listed.

ENGLISH_IRREGULAR = {line.split()[0]: tuple(line.split()[1:]) for line in """
eat ate eaten
drink drank drunk
read read read
write wrote written
sleep slept slept
buy bought bought
sell sold sold
find found found
lose lost lost
speak spoke spoken
swim swam swum
run ran run
drive drove driven
see saw seen
hear heard heard
know knew known
understand understood understood
go went gone
come came come
leave left left
take took taken
give gave given
make made made
do did done
have had had
put put put
forget forgot forgotten
pay paid paid
think thought thought
win won won
fall fell fallen
say said said
tell told told
wear wore worn
break broke broken
choose chose chosen
meet met met
bring brought brought
get got gotten
feel felt felt
sit sat sat
sing sang sung
wake woke woken
hurt hurt hurt
""".split("\n") if line}
ENGLISH_DOUBLING = {"swim", "run", "get", "put", "win", "sit", "stop", "shop", "forget", "begin"}

MOVEMENT_VERBS = {"aller", "venir", "revenir", "partir", "arriver", "rester", "rentrer", "sortir", "tomber", "devenir"}

# French verbs in -er whose stem changes before a silent e.
FRENCH_STEM_CHANGES = {
    "acheter": "achèt",
    "appeler": "appell",
    "lever": "lèv",
    "espérer": "espèr",
    "préférer": "préfèr",
    "nettoyer": "nettoi",
    "payer": "pai",
    "essayer": "essai",
}


def _french(table):
    verbs = {}
    for line in table.strip().split("\n"):
        infinitive, present, participle, future = [field.strip() for field in line.split(":")]
        verbs[infinitive] = (present.split(), participle, future)
    return verbs


# Each line is: infinitive : present : participle : future stem.
FRENCH_IRREGULAR = _french("""
être : suis es est sommes êtes sont : été : ser
avoir : ai as a avons avez ont : eu : aur
aller : vais vas va allons allez vont : allé : ir
faire : fais fais fait faisons faites font : fait : fer
pouvoir : peux peux peut pouvons pouvez peuvent : pu : pourr
vouloir : veux veux veut voulons voulez veulent : voulu : voudr
devoir : dois dois doit devons devez doivent : dû : devr
savoir : sais sais sait savons savez savent : su : saur
voir : vois vois voit voyons voyez voient : vu : verr
boire : bois bois boit buvons buvez boivent : bu : boir
croire : crois crois croit croyons croyez croient : cru : croir
lire : lis lis lit lisons lisez lisent : lu : lir
écrire : écris écris écrit écrivons écrivez écrivent : écrit : écrir
dire : dis dis dit disons dites disent : dit : dir
conduire : conduis conduis conduit conduisons conduisez conduisent : conduit : conduir
rire : ris ris rit rions riez rient : ri : rir
sourire : souris souris sourit sourions souriez sourient : souri : sourir
dormir : dors dors dort dormons dormez dorment : dormi : dormir
partir : pars pars part partons partez partent : parti : partir
sortir : sors sors sort sortons sortez sortent : sorti : sortir
sentir : sens sens sent sentons sentez sentent : senti : sentir
courir : cours cours court courons courez courent : couru : courr
ouvrir : ouvre ouvres ouvre ouvrons ouvrez ouvrent : ouvert : ouvrir
venir : viens viens vient venons venez viennent : venu : viendr
revenir : reviens reviens revient revenons revenez reviennent : revenu : reviendr
souvenir : souviens souviens souvient souvenons souvenez souviennent : souvenu : souviendr
prendre : prends prends prend prenons prenez prennent : pris : prendr
apprendre : apprends apprends apprend apprenons apprenez apprennent : appris : apprendr
comprendre : comprends comprends comprend comprenons comprenez comprennent : compris : comprendr
mettre : mets mets met mettons mettez mettent : mis : mettr
connaître : connais connais connaît connaissons connaissez connaissent : connu : connaîtr
recevoir : reçois reçois reçoit recevons recevez reçoivent : reçu : recevr
""")

# ---- adjectives


@dataclass(frozen=True)
class Adjective:
    """`forms` are masculine, feminine, masculine plural and feminine plural. `vowel` is the masculine form before a
    vowel (bel, nouvel, vieil)."""

    en: str
    forms: tuple
    before: bool = False
    vowel: str = ""


def _adjectives(table):
    """Reads lines "english = masculine [feminine [masculine plural [feminine plural]]] [< before the noun] [~vowel
    form]"."""
    adjectives = {}
    for line in table.strip().split("\n"):
        en, fr = [part.strip() for part in line.split("=")]
        before = "<" in fr
        forms = [word for word in fr.split() if word != "<" and word[0] != "~"]
        vowel = next((word[1:] for word in fr.split() if word[0] == "~"), "")
        masculine = forms[0]
        feminine = forms[1] if len(forms) > 1 else masculine if masculine.endswith("e") else masculine + "e"
        masculine_plural = forms[2] if len(forms) > 2 else masculine if masculine[-1] in "sx" else masculine + "s"
        feminine_plural = forms[3] if len(forms) > 3 else feminine + "s"
        adjectives[en] = Adjective(en, (masculine, feminine, masculine_plural, feminine_plural), before, vowel)
    return adjectives


# Adjectives for the state of a person at a moment.
MOODS = _adjectives("""
tired = fatigué
happy = heureux heureuse
sad = triste
calm = calme
busy = occupé
sick = malade
ready = prêt
alone = seul
worried = inquiet inquiète
surprised = surpris surprise
nervous = nerveux nerveuse
free = libre
""")

# Adjectives for the character of a person.
CHARACTERS = _adjectives("""
rich = riche
poor = pauvre
young = jeune
old = vieux vieille
tall = grand
strong = fort
kind = gentil gentille
nice = sympathique
shy = timide
polite = poli
funny = drôle
serious = sérieux sérieuse
lazy = paresseux paresseuse
jealous = jaloux jalouse
curious = curieux curieuse
brave = courageux courageuse
patient = patient
famous = célèbre
""")

# Adjectives for things.
QUALITIES = _adjectives("""
new = nouveau nouvelle nouveaux nouvelles < ~nouvel
old = vieux vieille < ~vieil
beautiful = beau belle beaux belles < ~bel
big = grand <
small = petit <
good = bon bonne <
bad = mauvais mauvaise <
long = long longue <
red = rouge
blue = bleu
green = vert
black = noir
white = blanc blanche
expensive = cher chère
clean = propre
dirty = sale
empty = vide
full = plein
heavy = lourd
light = léger légère
open = ouvert
closed = fermé
broken = cassé
interesting = intéressant
easy = facile
difficult = difficile
hot = chaud
cold = froid
""")

# In "the car is new" (just made), "new" is neuf; in "a new car" (another car), "new" is nouveau.
BRAND_NEW = Adjective("new", ("neuf", "neuve", "neufs", "neuves"))

# ---- nouns


@dataclass(frozen=True)
class Noun:
    en: str
    en_plural: str
    fr: str
    fr_plural: str
    gender: str


def _english_plural(noun):
    if noun.endswith(("s", "sh", "ch", "x")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def _french_plural(noun):
    if noun[-1] in "sxz":
        return noun
    if noun.endswith(("eau", "eu")):
        return noun + "x"
    if noun.endswith("al"):
        return noun[:-2] + "aux"
    return noun + "s"


def _nouns(table):
    """Reads lines "english[/plural] = french[/plural] gender"."""
    nouns = {}
    for line in table.strip().split("\n"):
        en, right = [part.strip() for part in line.split("=")]
        fr, gender = right.rsplit(" ", 1)
        en, _, en_plural = en.partition("/")
        fr, _, fr_plural = fr.partition("/")
        nouns[en] = Noun(en, en_plural or _english_plural(en), fr, fr_plural or _french_plural(fr), gender)
    return nouns


NOUNS = _nouns("""
brother = frère m
sister = sœur f
mother = mère f
father = père m
friend = ami m
son = fils m
daughter = fille f
uncle = oncle m
aunt = tante f
grandmother = grand-mère f
grandfather = grand-père m
cousin = cousin m
neighbor = voisin m
teacher = professeur m
doctor = médecin m
man/men = homme m
woman/women = femme f
child/children = enfant m
house = maison f
car = voiture f
book = livre m
key = clé f
phone = téléphone m
bag = sac m
door = porte f
window = fenêtre f
table = table f
chair = chaise f
bed = lit m
room = chambre f
kitchen = cuisine f
garden = jardin m
dog = chien m
cat = chat m
bird = oiseau m
horse = cheval m
letter = lettre f
newspaper = journal m
watch = montre f
hat = chapeau m
coat = manteau m
shirt = chemise f
dress = robe f
shoe = chaussure f
bike = vélo m
ticket = billet m
passport = passeport m
suitcase = valise f
umbrella = parapluie m
picture = photo f
box = boîte f
computer = ordinateur m
glass = verre m
cup = tasse f
bottle = bouteille f
plate = assiette f
idea = idée f
question = question f
answer = réponse f
problem = problème m
story = histoire f
address = adresse f
job = travail m
song = chanson f
movie = film m
gift = cadeau m
apple = pomme f
orange = orange f
egg = œuf m
cake = gâteau m
school = école f
station = gare f
hotel = hôtel m
restaurant = restaurant m
hospital = hôpital m
city = ville f
street = rue f
tree = arbre m
flower = fleur f
""")

# ---- subjects


@dataclass(frozen=True)
class Subject:
    """The subject of a clause. slot: 0 je, 1 tu, 2 il/elle, 3 nous, 4 vous, 5 ils/elles."""

    en: str
    fr: str
    slot: int
    gender: str = "m"

    @property
    def plural(self):
        return self.slot >= 3

    @property
    def pronoun(self):
        return self.fr in ("je", "tu", "il", "elle", "nous", "vous", "ils", "elles")


I = Subject("I", "je", 0)
YOU = Subject("you", "tu", 1)
HE = Subject("he", "il", 2)
SHE = Subject("she", "elle", 2, "f")
WE = Subject("we", "nous", 3)
THEY = Subject("they", "ils", 5)
PRONOUNS = (I, YOU, HE, SHE, WE, THEY)

PEOPLE = (
    Subject("my brother", "mon frère", 2),
    Subject("my sister", "ma sœur", 2, "f"),
    Subject("my mother", "ma mère", 2, "f"),
    Subject("my father", "mon père", 2),
    Subject("your brother", "ton frère", 2),
    Subject("your sister", "ta sœur", 2, "f"),
    Subject("our neighbor", "notre voisin", 2),
    Subject("my uncle", "mon oncle", 2),
    Subject("my aunt", "ma tante", 2, "f"),
    Subject("Paul", "Paul", 2),
    Subject("Marie", "Marie", 2, "f"),
    Subject("Anne", "Anne", 2, "f"),
    Subject("Thomas", "Thomas", 2),
    Subject("my parents", "mes parents", 5),
    Subject("my friends", "mes amis", 5),
    Subject("the children", "les enfants", 5),
    Subject("my sisters", "mes sœurs", 5, "f"),
)
EVERYONE = PRONOUNS + PEOPLE
