"""Which metrics a training measures: recalls at the k of its data set or of its configuration, and those of all ranks."""

from __future__ import annotations

import re

from likewise.app.defaults import Config
from likewise.app.errors import making
from likewise.app.objects import import_class
from likewise.train import RECALLS, check_ks

OF_ALL_RANKS = ("RP", "MAP@R", "MRR", "mAP")
"""What is measured besides recall at k."""

RECALL = re.compile(r"R@([1-9]\d*)")
"""The name of recall at k."""


def recall_ks(config: Config) -> tuple[int, ...]:
    """The k of the recalls that a training with this configuration measures.

    Examples:
        >>> recall_ks({"data": {"class_path": "likewise.data.StanfordOnlineProducts"}, "train": {}})
        (1, 10, 100, 1000)
        >>> recall_ks({"data": {"class_path": "likewise.data.CUB200"}, "train": {"ks": [1, 50]}})
        (1, 50)
    """
    ks = (config.get("train") or {}).get("ks")
    if ks is None:
        data = config.get("data") or {}
        ks = getattr(import_class(data["class_path"]), "recall_at", RECALLS) if "class_path" in data else RECALLS
        chosen = RECALL.fullmatch(str((config.get("train") or {}).get("metric")))
        ks = sorted({*ks, int(chosen[1])}) if chosen else ks
    with making("--train"):
        return check_ks(ks)


def metrics_of(config: Config) -> tuple[str, ...]:
    """The metrics that the table of a study has of every part.

    Examples:
        >>> metrics_of({"data": {"class_path": "likewise.data.Glyphs"}, "train": {}})
        ('R@1', 'R@2', 'R@4', 'R@8', 'RP', 'MAP@R', 'MRR', 'mAP')
    """
    return (*(f"R@{k}" for k in recall_ks(config)), *OF_ALL_RANKS)


def is_metric(name: str) -> bool:
    """Whether a table of results can have a metric of this name.

    Examples:
        >>> is_metric("R@1000"), is_metric("queries")
        (True, False)
    """
    return name in OF_ALL_RANKS or RECALL.fullmatch(name) is not None
