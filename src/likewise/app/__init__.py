"""The application: a configuration becomes objects, and every use case is a function.

    >>> from likewise import app
    >>> config = app.configure({"data": "Glyphs", "loss": "ProxyAnchorLoss"})
    >>> config["model"]["trunk"]
    'convnet'

``app.train(config)`` then returns a run, and ``app.evaluate(run)`` measures it.  ``__all__`` lists what a Python user needs;
the other names are for `likewise.cli`.  Names are imported on first use.
"""

from typing import TYPE_CHECKING

from likewise._lazy import lazy_names

if TYPE_CHECKING:
    from likewise.app.build import Pieces as Pieces
    from likewise.app.build import this_machine as this_machine
    from likewise.app.calibration import RATES as RATES
    from likewise.app.calibration import CalibratedModel, Verification, calibrate, verify
    from likewise.app.comparisons import ComparisonReport, collect_trainings, compare, leaderboard
    from likewise.app.conditions import read_conditions
    from likewise.app.configuration import add_group as add_group
    from likewise.app.configuration import add_settings as add_settings
    from likewise.app.configuration import configure
    from likewise.app.configuration import dump_configuration as dump_configuration
    from likewise.app.configuration import parse_request as parse_request
    from likewise.app.defaults import cache_folder as cache_folder
    from likewise.app.demo import Demo, DemoTraining, run_demo
    from likewise.app.embedding import EmbeddedFile, EmbeddingStart, embed_folder
    from likewise.app.embedding_options import EmbeddingOptions
    from likewise.app.errors import Note as Note
    from likewise.app.errors import UserError
    from likewise.app.errors import making as making
    from likewise.app.errors import nearest as nearest
    from likewise.app.errors import sentence as sentence
    from likewise.app.errors import writing as writing
    from likewise.app.evaluation import Evaluation, evaluate, report
    from likewise.app.execute import execute_pack
    from likewise.app.execution import Execution
    from likewise.app.execution import Watch as Watch
    from likewise.app.exporting import export
    from likewise.app.images import is_image_source as is_image_source
    from likewise.app.index_places import check_store as check_store
    from likewise.app.index_places import open_index, store_index
    from likewise.app.indexing import (
        IndexResult,
        UnreadableImagesError,
        index_folder,
        index_vectors,
        merge_indexes,
        update_index,
    )
    from likewise.app.integrity import Check, check_artifact
    from likewise.app.layers import allowed_by as allowed_by
    from likewise.app.layers import flags_of as flags_of
    from likewise.app.layers import read_request as read_request
    from likewise.app.objects import KINDS as KINDS
    from likewise.app.objects import Kind as Kind
    from likewise.app.objects import import_class as import_class
    from likewise.app.objects import kind_of as kind_of
    from likewise.app.objects import make as make
    from likewise.app.objects import needed as needed
    from likewise.app.objects import resolve as resolve
    from likewise.app.runs import open_run as open_run
    from likewise.app.search_output import MEMBERS as MEMBERS
    from likewise.app.search_output import TABLE_FORMATS as TABLE_FORMATS
    from likewise.app.search_output import (
        answer_rows,
        answer_shots,
        cluster_rows,
        cluster_shots,
        group_rows,
        group_shots,
        write_rows,
        write_sheet,
    )
    from likewise.app.search_output import check_outputs as check_outputs
    from likewise.app.search_output import item_row as item_row
    from likewise.app.searching import RERANKS as RERANKS
    from likewise.app.searching import Answer, Cluster, Match, SearchResult, find_clusters, find_duplicates, search
    from likewise.app.serving import SERVER_TOKEN as SERVER_TOKEN
    from likewise.app.serving import SERVING_MODEL as SERVING_MODEL
    from likewise.app.serving import Service, index_next_to, serve
    from likewise.app.serving import bind_socket as bind_socket
    from likewise.app.serving import check_host as check_host
    from likewise.app.serving import check_server_packages as check_server_packages
    from likewise.app.serving import choose_token as choose_token
    from likewise.app.serving import find_served as find_served
    from likewise.app.serving import index_place as index_place
    from likewise.app.serving import url_of as url_of
    from likewise.app.sheets import draw_dataset
    from likewise.app.studies import OnStart as OnStart
    from likewise.app.studies import repeat, run_study, tune
    from likewise.app.study_file import StudyFile
    from likewise.app.study_io import find_presets as find_presets
    from likewise.app.study_io import read_study
    from likewise.app.study_report import StudyReport
    from likewise.app.study_table import view_study as view_study
    from likewise.app.study_transfer import export_study, merge_study, pack_study, run_planned
    from likewise.app.training import resume, train
    from likewise.app.trust import NotAllowed
    from likewise.app.trust import allow_flags as allow_flags

__all__ = [
    "Answer",
    "CalibratedModel",
    "Check",
    "Cluster",
    "ComparisonReport",
    "Demo",
    "DemoTraining",
    "EmbeddedFile",
    "EmbeddingOptions",
    "EmbeddingStart",
    "Evaluation",
    "Execution",
    "IndexResult",
    "Match",
    "NotAllowed",
    "SearchResult",
    "Service",
    "StudyFile",
    "StudyReport",
    "UnreadableImagesError",
    "UserError",
    "Verification",
    "answer_rows",
    "answer_shots",
    "calibrate",
    "check_artifact",
    "cluster_rows",
    "cluster_shots",
    "collect_trainings",
    "compare",
    "configure",
    "draw_dataset",
    "embed_folder",
    "evaluate",
    "execute_pack",
    "export",
    "export_study",
    "find_clusters",
    "find_duplicates",
    "group_rows",
    "group_shots",
    "index_folder",
    "index_next_to",
    "index_vectors",
    "leaderboard",
    "merge_indexes",
    "merge_study",
    "open_index",
    "pack_study",
    "read_conditions",
    "read_study",
    "repeat",
    "report",
    "resume",
    "run_demo",
    "run_planned",
    "run_study",
    "search",
    "serve",
    "store_index",
    "train",
    "tune",
    "update_index",
    "verify",
    "write_rows",
    "write_sheet",
]

_PLACES = {
    "KINDS": "objects",
    "MEMBERS": "search_output",
    "RATES": "calibration",
    "RERANKS": "searching",
    "SERVER_TOKEN": "serving",
    "SERVING_MODEL": "serving",
    "TABLE_FORMATS": "search_output",
    "Answer": "searching",
    "CalibratedModel": "calibration",
    "Check": "integrity",
    "Cluster": "searching",
    "ComparisonReport": "comparisons",
    "Demo": "demo",
    "DemoTraining": "demo",
    "EmbeddedFile": "embedding",
    "EmbeddingOptions": "embedding_options",
    "EmbeddingStart": "embedding",
    "Evaluation": "evaluation",
    "Execution": "execution",
    "IndexResult": "indexing",
    "Kind": "objects",
    "Match": "searching",
    "NotAllowed": "trust",
    "Note": "errors",
    "OnStart": "studies",
    "Pieces": "build",
    "SearchResult": "searching",
    "Service": "serving",
    "StudyFile": "study_file",
    "StudyReport": "study_report",
    "UnreadableImagesError": "indexing",
    "UserError": "errors",
    "Verification": "calibration",
    "Watch": "execution",
    "add_group": "configuration",
    "add_settings": "configuration",
    "allow_flags": "trust",
    "allowed_by": "layers",
    "answer_rows": "search_output",
    "answer_shots": "search_output",
    "bind_socket": "serving",
    "cache_folder": "defaults",
    "calibrate": "calibration",
    "check_artifact": "integrity",
    "check_host": "serving",
    "check_outputs": "search_output",
    "check_server_packages": "serving",
    "check_store": "index_places",
    "choose_token": "serving",
    "cluster_rows": "search_output",
    "cluster_shots": "search_output",
    "collect_trainings": "comparisons",
    "compare": "comparisons",
    "configure": "configuration",
    "draw_dataset": "sheets",
    "dump_configuration": "configuration",
    "embed_folder": "embedding",
    "evaluate": "evaluation",
    "execute_pack": "execute",
    "export": "exporting",
    "export_study": "study_transfer",
    "find_clusters": "searching",
    "find_duplicates": "searching",
    "find_presets": "study_io",
    "find_served": "serving",
    "flags_of": "layers",
    "group_rows": "search_output",
    "group_shots": "search_output",
    "import_class": "objects",
    "index_folder": "indexing",
    "index_next_to": "serving",
    "index_place": "serving",
    "index_vectors": "indexing",
    "is_image_source": "images",
    "item_row": "search_output",
    "kind_of": "objects",
    "leaderboard": "comparisons",
    "make": "objects",
    "making": "errors",
    "merge_indexes": "indexing",
    "merge_study": "study_transfer",
    "nearest": "errors",
    "needed": "objects",
    "open_index": "index_places",
    "open_run": "runs",
    "pack_study": "study_transfer",
    "parse_request": "configuration",
    "read_conditions": "conditions",
    "read_request": "layers",
    "read_study": "study_io",
    "repeat": "studies",
    "report": "evaluation",
    "resolve": "objects",
    "resume": "training",
    "run_demo": "demo",
    "run_planned": "study_transfer",
    "run_study": "studies",
    "search": "searching",
    "sentence": "errors",
    "serve": "serving",
    "store_index": "index_places",
    "this_machine": "build",
    "train": "training",
    "tune": "studies",
    "update_index": "indexing",
    "url_of": "serving",
    "verify": "calibration",
    "view_study": "study_table",
    "write_rows": "search_output",
    "write_sheet": "search_output",
    "writing": "errors",
}
"""The module of each name."""

__getattr__, __dir__ = lazy_names(__name__, _PLACES)
