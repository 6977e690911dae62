"""The application: a configuration becomes objects, and every use case is a function.

    >>> from likewise import app
    >>> config = app.configure({"data": "Glyphs", "loss": "ProxyAnchorLoss"})
    >>> config["model"]["trunk"]
    'convnet'

``app.train(config)`` then returns a run, and ``app.evaluate(run)`` measures it.  ``__all__`` lists what a Python user needs;
the other names are for `likewise.cli`.  Names are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.app.build import Machine as Machine
    from likewise.app.build import Pieces as Pieces
    from likewise.app.build import make_model as make_model
    from likewise.app.build import make_pieces as make_pieces
    from likewise.app.build import this_machine as this_machine
    from likewise.app.configuration import Split as Split
    from likewise.app.configuration import add_group as add_group
    from likewise.app.configuration import add_settings as add_settings
    from likewise.app.configuration import check as check
    from likewise.app.configuration import configure
    from likewise.app.configuration import dump_configuration as dump_configuration
    from likewise.app.configuration import parse_request as parse_request
    from likewise.app.defaults import Tree as Tree
    from likewise.app.defaults import cache_folder as cache_folder
    from likewise.app.defaults import defaults_for as defaults_for
    from likewise.app.defaults import merged as merged
    from likewise.app.errors import EXPECTED as EXPECTED
    from likewise.app.errors import Note as Note
    from likewise.app.errors import UserError
    from likewise.app.errors import making as making
    from likewise.app.errors import nearest as nearest
    from likewise.app.errors import sentence as sentence
    from likewise.app.evaluation import Evaluation, evaluate, report
    from likewise.app.evaluation import Opening as Opening
    from likewise.app.evaluation import parts_of as parts_of
    from likewise.app.evaluation import scores as scores
    from likewise.app.evaluation import write as write
    from likewise.app.layers import flags_of as flags_of
    from likewise.app.layers import read_request as read_request
    from likewise.app.layers import with_paths as with_paths
    from likewise.app.models import Asked as Asked
    from likewise.app.models import Chosen as Chosen
    from likewise.app.models import asked_model as asked_model
    from likewise.app.models import chosen_model as chosen_model
    from likewise.app.objects import KINDS as KINDS
    from likewise.app.objects import Kind as Kind
    from likewise.app.objects import imported as imported
    from likewise.app.objects import kind_of as kind_of
    from likewise.app.objects import make as make
    from likewise.app.objects import needed as needed
    from likewise.app.objects import resolve as resolve
    from likewise.app.runs import open_run as open_run
    from likewise.app.training import resume, train
    from likewise.app.trials import METRICS as METRICS
    from likewise.app.trials import run_trial as run_trial

__all__ = [
    "Evaluation",
    "UserError",
    "configure",
    "evaluate",
    "report",
    "resume",
    "train",
]

_PLACES = {
    "Asked": "models",
    "Chosen": "models",
    "EXPECTED": "errors",
    "Evaluation": "evaluation",
    "KINDS": "objects",
    "Kind": "objects",
    "METRICS": "trials",
    "Machine": "build",
    "UserError": "errors",
    "Note": "errors",
    "Opening": "evaluation",
    "Pieces": "build",
    "Split": "configuration",
    "Tree": "defaults",
    "add_group": "configuration",
    "add_settings": "configuration",
    "asked_model": "models",
    "cache_folder": "defaults",
    "check": "configuration",
    "chosen_model": "models",
    "configure": "configuration",
    "defaults_for": "defaults",
    "dump_configuration": "configuration",
    "evaluate": "evaluation",
    "flags_of": "layers",
    "imported": "objects",
    "kind_of": "objects",
    "make": "objects",
    "make_model": "build",
    "make_pieces": "build",
    "making": "errors",
    "merged": "defaults",
    "nearest": "errors",
    "needed": "objects",
    "open_run": "runs",
    "parse_request": "configuration",
    "parts_of": "evaluation",
    "read_request": "layers",
    "report": "evaluation",
    "resolve": "objects",
    "resume": "training",
    "run_trial": "trials",
    "scores": "evaluation",
    "sentence": "errors",
    "this_machine": "build",
    "train": "training",
    "with_paths": "layers",
    "write": "evaluation",
}
"""The module of each name."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'likewise.app' has no attribute {name!r}")
    return getattr(importlib.import_module(f"likewise.app.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return [*_PLACES]
