"""French word forms and clauses: conjugation, agreement, elision, contraction, negation and inversion.

Templates write a phrase with whole words ("je ai", "de le bus", "ma amie"). `spell` turns the finished phrase into
French spelling ("j'ai", "du bus", "mon amie"), so that no template depends on the next word.
"""

from .lexicon import FRENCH_IRREGULAR, FRENCH_STEM_CHANGES, MOVEMENT_VERBS

VOWELS = "aeiouyâàéèêëîïôûùœ"
ASPIRATED = {"haut", "haute", "hauts", "héros", "huit", "onze", "oui"}
ELIDING = {"je", "ne", "de", "le", "la", "me", "te", "se", "que"}
CONTRACTIONS = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}
FEMININE_POSSESSIVES = {"ma": "mon", "ta": "ton", "sa": "son"}


def starts_with_vowel(word):
    """Returns whether a preceding word like "je" or "le" elides: `word` begins with a vowel or a mute h."""
    word = word.lower()
    return word not in ASPIRATED and (word[0] in VOWELS or word[0] == "h")


def spell(phrase):
    """Returns the phrase in French spelling: elision, contracted articles, and the forms before a vowel (cet, mon
    amie). `~le` marks a pronoun, which is never contracted."""
    words = phrase.split()
    merged = []
    position = 0
    while position < len(words):
        word = words[position]
        following = words[position + 1] if position + 1 < len(words) else ""
        after = words[position + 2] if position + 2 < len(words) else ""
        contracted = CONTRACTIONS.get((word, following))
        if contracted and (following == "les" or not starts_with_vowel(after)):
            merged.append(contracted)
            position += 2
            continue
        merged.append(word.lstrip("~"))
        position += 1
    text = ""
    for word, following in zip(merged, merged[1:] + [""]):
        lower = word.lower()
        if following and starts_with_vowel(following):
            if lower == "ce":
                word, glue = ("c'", "") if following in ("est", "était") else ("cet", " ")
                text += word + glue
                continue
            if lower in ELIDING:
                text += word[:-1] + "'"
                continue
            if lower in FEMININE_POSSESSIVES:
                word = FEMININE_POSSESSIVES[lower]
        if lower == "si" and following in ("il", "ils"):
            text += "s'"
            continue
        text += word + " "
    return text.strip()


# ---- word forms


class Verb:
    """A conjugated verb: present[6], participle, future stem and imperfect stem. The infinitive of a reflexive verb
    is written "se laver"."""

    def __init__(self, infinitive):
        self.reflexive = infinitive.startswith("se ")
        bare = infinitive[3:] if self.reflexive else infinitive
        self.infinitive = bare
        self.with_etre = self.reflexive or bare in MOVEMENT_VERBS
        if bare in FRENCH_IRREGULAR:
            self.present, self.participle, self.future_stem = FRENCH_IRREGULAR[bare]
        elif bare.endswith("er"):
            self._first_group(bare)
        elif bare.endswith("ir"):
            stem = bare[:-2]
            self.present = [stem + end for end in ("is", "is", "it", "issons", "issez", "issent")]
            self.participle, self.future_stem = stem + "i", bare
        elif bare.endswith("re"):
            stem = bare[:-2]
            self.present = [stem + end for end in ("s", "s", "", "ons", "ez", "ent")]
            self.participle, self.future_stem = stem + "u", bare[:-1]
        else:
            raise ValueError(f"no conjugation for {infinitive}")
        self.imperfect_stem = "ét" if bare == "être" else self.present[3][:-3]

    def _first_group(self, bare):
        stem = bare[:-2]
        strong = FRENCH_STEM_CHANGES.get(bare, stem)
        soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
        self.present = [strong + "e", strong + "es", strong + "e", soft + "ons", stem + "ez", strong + "ent"]
        self.participle = stem + "é"
        self.future_stem = strong + "er" if strong != stem and "é" not in stem else bare

    def future(self, slot):
        return self.future_stem + ("ai", "as", "a", "ons", "ez", "ont")[slot]

    def conditional(self, slot):
        return self.future_stem + ("ais", "ais", "ait", "ions", "iez", "aient")[slot]

    def imperfect(self, slot):
        return self.imperfect_stem + ("ais", "ais", "ait", "ions", "iez", "aient")[slot]

    def imperative(self, slot):
        """Returns the imperative for slot 1 (tu), 3 (nous) or 4 (vous). For tu, the -s of -es and of vas is dropped."""
        special = {"être": {1: "sois", 3: "soyons", 4: "soyez"}, "avoir": {1: "aie", 3: "ayons", 4: "ayez"}}
        if self.infinitive in special:
            return special[self.infinitive][slot]
        form = self.present[slot]
        return form[:-1] if slot == 1 and (form.endswith("es") or form == "vas") else form


_cache = {}


def verb(infinitive):
    if infinitive not in _cache:
        _cache[infinitive] = Verb(infinitive)
    return _cache[infinitive]


def agree_participle(participle, gender, plural):
    form = participle + "e" if gender == "f" else participle
    return form + "s" if plural and not form.endswith("s") else form


def agree(adjective, gender, plural):
    """Returns the form of an Adjective for a gender and a number."""
    return adjective.forms[(1 if gender == "f" else 0) + (2 if plural else 0)]


REFLEXIVE = ("me", "te", "se", "nous", "vous", "se")
TONIC = {
    "je": "moi",
    "tu": "toi",
    "il": "lui",
    "elle": "elle",
    "nous": "nous",
    "vous": "vous",
    "ils": "eux",
    "elles": "elles",
}
POSSESSIVE = (
    ("mon", "ma", "mes"),
    ("ton", "ta", "tes"),
    ("son", "sa", "ses"),
    ("notre", "notre", "nos"),
    ("votre", "votre", "vos"),
    ("leur", "leur", "leurs"),
)


def bind(text, subject):
    """Replaces @mon, @ma, @mes, @moi, @me and @e by the forms that fit the subject (@e: the ending of an adjective)."""
    mon, ma, mes = POSSESSIVE[subject.slot]
    tonic = TONIC.get(subject.fr, "lui" if subject.gender == "m" else "elle")
    if subject.fr not in TONIC and subject.plural:
        tonic = "eux" if subject.gender == "m" else "elles"
    ending = ("e" if subject.gender == "f" else "") + ("s" if subject.plural else "")
    for mark, form in (
        ("@mon", mon),
        ("@mes", mes),
        ("@ma", ma),
        ("@moi", tonic),
        ("@me", REFLEXIVE[subject.slot]),
        ("@e", ending),
    ):
        text = text.replace(mark, form)
    return text


# ---- clauses


def clause(subject, infinitive, rest="", tense="present", negation="", clitic="", adverb="", object_agreement=None):
    """Returns the clause: subject, verb group, rest. negation: pas, plus, jamais, rien, "pas encore"; clitic: le,
    lui, y ...; adverb: stands after the conjugated verb; tense: present, past, going, future, imperfect, conditional;
    object_agreement: (gender, plural) of a direct object before avoir.
    """
    before, after = verb_group(subject, infinitive, tense, negation, clitic, adverb, object_agreement)
    return " ".join(part for part in (subject.fr, *before, *after, bind(rest, subject)) if part)


def verb_group(subject, infinitive, tense, negation, clitic, adverb, object_agreement):
    """Returns (words up to the finite verb, words after the finite verb)."""
    v = verb(infinitive)
    slot = subject.slot
    own = REFLEXIVE[slot] if v.reflexive else ""
    ne = "ne" if negation else ""
    if tense == "going":
        after = [negation, adverb, own, "~" + clitic if clitic else "", v.infinitive]
        return [ne, verb("aller").present[slot]], after
    if tense == "past":
        participle = v.participle
        auxiliary = "être" if v.with_etre else "avoir"
        if v.with_etre and not (v.reflexive and object_agreement == "none"):
            participle = agree_participle(participle, subject.gender, subject.plural)
        elif object_agreement and object_agreement != "none":
            participle = agree_participle(participle, *object_agreement)
        return [ne, own, clitic, verb(auxiliary).present[slot]], [negation, adverb, participle]
    finite = {
        "present": lambda: v.present[slot],
        "future": lambda: v.future(slot),
        "imperfect": lambda: v.imperfect(slot),
        "conditional": lambda: v.conditional(slot),
    }[tense]()
    return [ne, own, clitic, finite], [negation, adverb]


def question(
    subject, infinitive, rest="", tense="present", negation="", clitic="", adverb="", object_agreement=None, wh=""
):
    """Returns a question with inversion: "a-t-il mangé". Works only for pronoun subjects."""
    before, after = verb_group(subject, infinitive, tense, negation, clitic, adverb, object_agreement)
    before[-1] = invert(before[-1], subject)
    return " ".join(part for part in (wh, *before, *after, bind(rest, subject)) if part)


def invert(finite, subject):
    link = "-t-" if subject.slot == 2 and finite[-1] in "aeé" else "-"
    return finite + link + subject.fr


def est_ce_que(subject, infinitive, rest="", **options):
    return "est-ce que " + clause(subject, infinitive, rest, **options)


def command(infinitive, rest="", negated=False, slot=1):
    v = verb(infinitive)
    form = v.imperative(slot)
    toi = {1: "toi", 3: "nous", 4: "vous"}[slot]
    rest = (
        rest.replace("@mon", POSSESSIVE[slot][0])
        .replace("@mes", POSSESSIVE[slot][2])
        .replace("@ma", POSSESSIVE[slot][1])
    )
    if negated:
        return " ".join(part for part in ("ne", REFLEXIVE[slot] if v.reflexive else "", form, "pas", rest) if part)
    return (form + "-" + toi if v.reflexive else form) + (" " + rest if rest else "")


def without_quantity(rest):
    """Returns the direct object after a negation: un, une, du, de la, des become de ("pas de pain", "pas d'eau")."""
    for article in ("un ", "une ", "du ", "de la ", "de l'", "des "):
        if rest.startswith(article):
            return "de " + rest[len(article) :]
    return rest
