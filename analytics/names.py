"""Names that a reader takes for one another: Ａlpha and alpha, С1audе and Claude, GPT-40 and GPT-4o.

Two names are alike where they are equal after NFKC and casefolding, or where their skeletons are, or the
skeletons of their letters: without blanks, accents, hyphens and other signs, but for +, # and *, and for what
stands between two digits. A skeleton has the prototype of UTS #39 in the place of each letter that looks like
it: Cyrillic а is a, 0 is O, 1 and I are l, m is rn. Its case is folded afterwards. Digits stay apart: two
different numbers are never alike.

Not done here
-------------
alike is not transitive: I is like i and like l. w and vv, 5 and S are apart, as in UTS #39.
Letters without a width are ignored there; a name holds none.

Source: Unicode Technical Standard #39, §4, by the data of `confusable_homoglyphs`.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from unicodedata import category, decomposition, normalize
from unicodedata import name as unicode_name

LETTERS = {"Ll", "Lt", "Lu", "Lo", "Nd", "Nl", "No"}
DOTS = "•‣∙⋅⋆⊙⊚⦁⦿"
NOT_STATED = "not stated"  # as files say of a scaffold or a model
MARK = "\u200e"  # stands around letters that are written from right to left


def alike(name: str, other: str) -> bool:
    """Whether a reader may take one name for the other."""
    return not forms(name).isdisjoint(forms(other))


@lru_cache(maxsize=100_000)
def forms(name: str) -> frozenset[str]:
    """Return the name as it is compared: names are alike where they have a form in common."""
    return frozenset((without_case(name), skeleton(name), letters(name)))


def without_case(name: str) -> str:
    """Return what names have in common that differ only in case or in forms of the same letters (NFKC)."""
    return normalize("NFKC", normalize("NFKC", name).casefold())


def skeleton(name: str) -> str:
    """Return what names have in common whose letters look the same, in any case."""
    return without_case(normalize("NFD", name).translate(_prototypes()))


def letters(name: str) -> str:
    """Return what names have in common but blanks, hyphens, dots and accents; without a letter, itself."""
    if not any(category(letter).startswith("L") for letter in name):
        return name
    marked = "".join(
        letter if category(letter) in LETTERS or letter in "+#*" else " "
        for letter in normalize("NFD", without_case(name))
        if not category(letter).startswith("M")
    )
    first, *others = marked.split()
    for part in others:
        first += "." * (first[-1].isdigit() and part[0].isdigit()) + part
    return skeleton(first)


def mark_in(name: str) -> str:
    """Return the first symbol or styled letter, as ●, 𝐯 and ᴠ, which next to a name may pass for a mark."""
    return next((sign for sign in name if sign > "ÿ" and sign not in "™℠" and _may_be_mark(sign)), "")


def _may_be_mark(sign: str) -> bool:
    made_of, kind = decomposition(sign), category(sign)
    if kind in {"So", "Sk"}:
        return not made_of.startswith("<compat>")  # as № and ㈱
    is_styled = made_of.startswith("<font>") or "SMALL CAPITAL" in unicode_name(sign, "")
    return sign in DOTS or (is_styled and kind in {"Lu", "Ll"})


@cache
def _prototypes() -> dict[int, str]:
    """Map letters to the prototypes of UTS #39, of which the data hold each pair both ways."""
    from confusable_homoglyphs.confusables import confusables_data

    pairs = {
        letter.strip(MARK): [one["c"].strip(MARK) for one in others]
        for letter, others in confusables_data.items()
    }
    prototypes = {ord(letter): letter for letter in pairs if len(letter) == 1}
    for letter, others in pairs.items():
        if len(letter) == len(others) == 1:
            other = others[0]
            apart = len(other) > 1 or len(pairs[other]) > 1
            prototypes[ord(letter)] = other if apart else min(letter, other)
    return prototypes


def first_names(names: Sequence[str], n: int = 3, *, of: int = 0) -> str:
    """Return the first names, and how many more there are; `of` how many where `names` are only the first."""
    n_more = max(of, len(names)) - n
    return ", ".join(names[:n]) + (f" and {n_more:,} more" if n_more > 0 else "")
