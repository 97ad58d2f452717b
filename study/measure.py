"""From pairs and similarities to every number about decisions; section 5 of the protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from study.answers import (
    Bools,
    Floats,
    auc,
    best_threshold,
    counted,
    decision,
    f1,
    known,
    of_documents,
    resampled,
)
from study.pairs import AS_IT_IS, Pair, is_main
from study.systems import System, decide
from study.tables import PARTS

#: Kinds in which people said what is right; κ is of these alone.
JUDGED = ("verbatim", "apart", "claim", "claim, cut", "claim, experts")


class Group(NamedTuple):
    """Pairs that are counted together."""

    kind: str
    source: str
    language: str
    part: str


@dataclass(frozen=True)
class Measured:
    """Pairs, what each system says of them, and what it accepts.

    Attributes:
        pairs: All pairs.
        systems: Who decides.
        similarity: System -> the similarity of each pair; NaN where it was not asked.
        accepted: System -> what it accepts.
    """

    pairs: Sequence[Pair]
    systems: Mapping[str, System]
    similarity: Mapping[str, Floats]
    accepted: Mapping[str, Bools]

    @classmethod
    def of(
        cls,
        pairs: Sequence[Pair],
        systems: Mapping[str, System],
        ask: Callable[[System, Sequence[tuple[str, ...]]], Floats],
    ) -> Measured:
        """Ask every system about the pairs in its languages."""
        similarity, accepted = {}, {}
        for name, system in systems.items():
            places = [at for at, pair in enumerate(pairs) if is_asked(system, pair)]
            found = np.full(len(pairs), np.nan)
            found[places] = ask(system, [texts_for(system, pairs[at]) for at in places])
            similarity[name] = found
            accepted[name] = np.zeros(len(pairs), np.bool_)
            accepted[name][places] = decide(system, found[places])
        return cls(pairs, systems, similarity, accepted)

    def asked(self, name: str, places: NDArray[np.intp]) -> bool:
        """Tell whether a system was asked about pairs."""
        return not np.isnan(self.similarity[name][places]).any()

    def numbers(self) -> dict[str, Any]:
        """Return every number about decisions."""
        return {
            "pairs": [*self._counts()],
            "decisions": [*self._decisions()],
            "calibration": [*self._calibrations()],
            "damage": [*self._by_variant("damaged")],
            "contradictions": [*self._contradictions()],
            "two_people": [*self._two_people()],
        }

    def _groups(self, choose: Callable[[Pair], bool] = is_main) -> dict[Group, NDArray[np.intp]]:
        groups: dict[Group, list[int]] = {}
        for at, pair in enumerate(self.pairs):
            if choose(pair):
                key = Group(pair.kind, pair.source, pair.language, pair.part)
                groups.setdefault(key, []).append(at)
        ordered = sorted(groups.items(), key=lambda one: PARTS.index(one[0].part))
        return {key: np.array(places, np.intp) for key, places in ordered}

    def _right(self, places: NDArray[np.intp]) -> Bools:
        return np.array([self.pairs[at].right for at in places], np.bool_)

    def _documents(self, places: NDArray[np.intp]) -> tuple[NDArray[np.intp], Floats]:
        codes, n = of_documents([self.pairs[at].document for at in places])
        return codes, resampled(n)

    def _counts(self) -> Iterator[dict[str, Any]]:
        for group, places in self._groups().items():
            right = self._right(places)
            yield group._asdict() | {
                "n": len(places),
                "right": int(right.sum()),
                "wanted": len({self.pairs[at].wanted for at in places}),
                "documents": len({self.pairs[at].document for at in places}),
            }

    def _decisions(self) -> Iterator[dict[str, Any]]:
        """Yield each system's decisions in each group, also where truth may be disputed."""
        for how, choose, read in DISPUTED:
            for group, places in self._groups(choose).items():
                pairs = [self.pairs[at] for at in places]
                right = np.array([read(pair) for pair in pairs], np.bool_)
                documents, weights = self._documents(places)
                for name in self.systems:
                    if not self.asked(name, places):
                        continue
                    found = decision(self.accepted[name][places], right, documents, weights)
                    if group.kind not in JUDGED:
                        del found["kappa"]
                    found["auc"] = self._auc(name, places, right)
                    yield {"how": how, **group._asdict(), "system": name, **found}

    def _auc(self, name: str, places: NDArray[np.intp], right: Bools) -> float | None:
        if self.systems[name].threshold is None:
            return None
        return known(auc(self.similarity[name][places], right))

    def _calibrations(self) -> Iterator[dict[str, Any]]:
        """Yield what the threshold chosen on one part is worth on the other."""
        groups = self._groups()
        for group, opened in groups.items():
            held = groups.get(group._replace(part="held"))
            if group.part != "open" or held is None:
                continue
            documents, weights = self._documents(held)
            for name, system in self.systems.items():
                if system.threshold is None or not self.asked(name, opened):
                    continue
                at = best_threshold(self.similarity[name][opened], self._right(opened))
                there, right = replace(system, threshold=at), self._right(held)
                f1s = {
                    key: decision(
                        decide(one, self.similarity[name][held]), right, documents, weights
                    )
                    for key, one in (("shipped", system), ("calibrated", there))
                }
                yield {
                    **group._replace(part="held")._asdict(),
                    "system": name,
                    "shipped_threshold": system.threshold,
                    "threshold": at,
                    "f1_shipped": f1s["shipped"]["f1"],
                    "f1": f1s["calibrated"]["f1"],
                    "precision": f1s["calibrated"]["precision"],
                    "recall": f1s["calibrated"]["recall"],
                }

    def _by_variant(self, kind: str) -> Iterator[dict[str, Any]]:
        variants = dict.fromkeys(pair.variant for pair in self.pairs if pair.kind == kind)
        for variant in variants:
            choose = _chooser(kind, variant)
            for group, places in self._groups(choose).items():
                right = self._right(places)
                for name in self.systems:
                    if self.asked(name, places):
                        counts = counted(self.accepted[name][places], right).sum(axis=0)
                        found = known(float(f1(counts)))
                        yield {**group._asdict(), "variant": variant, "system": name, "f1": found}

    def _contradictions(self) -> Iterator[dict[str, Any]]:
        """Yield the share of changed chunks accepted: of all, and where the original is."""
        at_id = {pair.id: at for at, pair in enumerate(self.pairs)}
        pairs = [one for one in self.pairs if one.kind == "contradicted"]
        for variant in dict.fromkeys(one.variant for one in pairs if one.variant != AS_IT_IS):
            for group, places in self._groups(_chooser("contradicted", variant)).items():
                ids = [self.pairs[at].id.rsplit("!", 1)[0] for at in places]
                originals = np.array([at_id[f"{one}!{AS_IT_IS}"] for one in ids], np.intp)
                for name in self.systems:
                    if not self.asked(name, places):
                        continue
                    accepted = self.accepted[name]
                    before = accepted[originals]
                    n, both = int(before.sum()), int((accepted[places] & before).sum())
                    yield {
                        **group._asdict(),
                        "variant": variant,
                        "system": name,
                        "n": len(places),
                        "accepted": known(float(accepted[places].mean())),
                        "n_of_accepted": n,
                        "accepted_of_accepted": known(both / n if n else np.nan),
                    }

    def _two_people(self) -> Iterator[dict[str, Any]]:
        """Yield κ with a second person, also of rules that know the first one's runs."""

        def choose(pair: Pair) -> bool:
            return pair.kind == "verbatim" and pair.second is not None

        for group, places in self._groups(choose).items():
            windows = dict.fromkeys(self.pairs[at].window for at in places)
            number = {window: at for at, window in enumerate(windows)}
            of_window = np.array([number[self.pairs[at].window] for at in places], np.intp)

            def any_of(
                values: Bools, of: NDArray[np.intp] = of_window, n: int = len(number)
            ) -> Bools:
                return np.bincount(of, values, n) > 0

            second = any_of(np.array([bool(self.pairs[at].second) for at in places], np.bool_))
            names = dict(zip(of_window, (self.pairs[at].document for at in places), strict=True))
            documents, n = of_documents([names[at] for at in range(len(number))])
            weights = resampled(n)
            deciders = {"the first person": any_of(self._right(places))} | {
                name: any_of(self.accepted[name][places])
                for name in self.systems
                if self.asked(name, places)
            }
            for name, accepted in deciders.items():
                found = decision(accepted, second, documents, weights)
                kept = {key: found[key] for key in ("tp", "fp", "fn", "tn", "kappa", "f1")}
                yield {**group._asdict(), "decider": name, "n": len(number), **kept}

    def accepted_lines(self) -> Iterator[tuple[str, str]]:
        """Yield a kind, and a line of what is kept: identifier, truth, and 0, 1 or - by system."""
        for at, pair in enumerate(self.pairs):
            said = "".join(
                "-" if np.isnan(self.similarity[name][at]) else str(int(self.accepted[name][at]))
                for name in self.systems
            )
            yield pair.kind, f"{pair.id},{pair.part},{int(pair.right)},{said}"


def texts_for(system: System, pair: Pair) -> tuple[str, ...]:
    """Return what a system is given of a pair."""
    texts = pair.wanted, pair.chunk
    return (*texts, pair.question) if system.with_questions else texts


def is_asked(system: System, pair: Pair) -> bool:
    """Tell whether a system is asked: in its languages, and its own rules alone about the rest.

    Embeddings are not asked about damaged chunks, of which there are too many for them.
    """
    language = {"mix": "ko"}.get(pair.language, pair.language)
    too_many = pair.kind == "damaged" and system.family == "embeddings"
    is_later = pair.part == "later" and system.family != "krag_eval"
    return language in system.languages and not (too_many or is_later)


def _chooser(kind: str, variant: str) -> Callable[[Pair], bool]:
    return lambda pair: pair.kind == kind and pair.variant == variant


def _is_whole(pair: Pair) -> bool:
    return pair.kind in ("verbatim", "apart") and pair.share in (0, 1)


#: How truth is read, where it may be disputed -> which pairs, and what is right of them.
DISPUTED: tuple[tuple[str, Callable[[Pair], bool], Callable[[Pair], bool]], ...] = (
    ("main", is_main, lambda pair: pair.right),
    ("parts left out", _is_whole, lambda pair: pair.right),
    (
        "the answer",
        lambda pair: pair.kind == "verbatim" and pair.source == "korquad",
        lambda pair: bool(pair.answer),
    ),
    (
        "partial support",
        lambda pair: pair.kind.startswith("claim"),
        lambda pair: pair.right,
    ),
)


def described(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return how often windows that hold part of a sentence hold the answer, by the share held.

    KorQuAD alone, where people marked the answer.
    """
    bounds = (0.0, 0.5, 0.8, 1.0)
    found: Counter[tuple[str, bool]] = Counter()
    for pair in pairs:
        if pair.kind == "verbatim" and pair.source == "korquad" and pair.share:
            low = max(one for one in bounds if one <= pair.share)
            found[f"{low:.1f}", bool(pair.answer)] += 1
    return {
        low: {"windows": found[low, True] + found[low, False], "hold the answer": found[low, True]}
        for low in sorted({low for low, _ in found})
    }
