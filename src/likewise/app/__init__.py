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
    from likewise.app.build import Machine as Machine
    from likewise.app.build import Pieces as Pieces
    from likewise.app.build import this_machine as this_machine
    from likewise.app.calibration import RATES as RATES
    from likewise.app.calibration import CalibratedModel, Verification, calibrate, verify
    from likewise.app.classifying import Classification, Prediction, classify
    from likewise.app.comparisons import ComparisonReport, collect_trainings, compare, leaderboard
    from likewise.app.comparisons import leaderboards_by_setting as leaderboards_by_setting
    from likewise.app.conditions import read_conditions
    from likewise.app.configuration import add_group as add_group
    from likewise.app.configuration import add_settings as add_settings
    from likewise.app.configuration import configure
    from likewise.app.configuration import dump_configuration as dump_configuration
    from likewise.app.configuration import parse_request as parse_request
    from likewise.app.defaults import cache_folder as cache_folder
    from likewise.app.demo import Demo, DemoTraining, run_demo
    from likewise.app.embedding import EmbeddedFile, EmbeddingStart, embed_folder
    from likewise.app.embedding_options import EmbeddingOptions, ImageOptions
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
    from likewise.app.guessing import guess_data as guess_data
    from likewise.app.guessing import write_starter as write_starter
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
    from likewise.app.recipes import find_recipe as find_recipe
    from likewise.app.recipes import list_recipes as list_recipes
    from likewise.app.runs import open_run as open_run
    from likewise.app.search_output import MEMBERS as MEMBERS
    from likewise.app.search_output import (
        answer_rows,
        answer_shots,
        cluster_rows,
        cluster_shots,
        group_rows,
        group_shots,
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
    from likewise.app.table_evaluation import TableEvaluation, evaluate_table
    from likewise.app.tables import TABLE_FORMATS as TABLE_FORMATS
    from likewise.app.tables import write_rows
    from likewise.app.text_index import index_texts
    from likewise.app.training import resume, train
    from likewise.app.trust import NotAllowed
    from likewise.app.trust import allow_flags as allow_flags

__all__ = [
    "Answer",
    "CalibratedModel",
    "Check",
    "Classification",
    "Cluster",
    "ComparisonReport",
    "Demo",
    "DemoTraining",
    "EmbeddedFile",
    "EmbeddingOptions",
    "EmbeddingStart",
    "Evaluation",
    "Execution",
    "ImageOptions",
    "IndexResult",
    "Match",
    "NotAllowed",
    "Prediction",
    "SearchResult",
    "Service",
    "StudyFile",
    "StudyReport",
    "TableEvaluation",
    "UnreadableImagesError",
    "UserError",
    "Verification",
    "answer_rows",
    "answer_shots",
    "calibrate",
    "check_artifact",
    "classify",
    "cluster_rows",
    "cluster_shots",
    "collect_trainings",
    "compare",
    "configure",
    "draw_dataset",
    "embed_folder",
    "evaluate",
    "evaluate_table",
    "execute_pack",
    "export",
    "export_study",
    "find_clusters",
    "find_duplicates",
    "group_rows",
    "group_shots",
    "index_folder",
    "index_next_to",
    "index_texts",
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
    "build": "Machine Pieces this_machine",
    "calibration": "CalibratedModel RATES Verification calibrate verify",
    "classifying": "Classification Prediction classify",
    "comparisons": "ComparisonReport collect_trainings compare leaderboard leaderboards_by_setting",
    "conditions": "read_conditions",
    "configuration": "add_group add_settings configure dump_configuration parse_request",
    "defaults": "cache_folder",
    "demo": "Demo DemoTraining run_demo",
    "embedding": "EmbeddedFile EmbeddingStart embed_folder",
    "embedding_options": "EmbeddingOptions ImageOptions",
    "errors": "Note UserError making nearest sentence writing",
    "evaluation": "Evaluation evaluate report",
    "execute": "execute_pack",
    "execution": "Execution Watch",
    "exporting": "export",
    "guessing": "guess_data write_starter",
    "images": "is_image_source",
    "index_places": "check_store open_index store_index",
    "indexing": "IndexResult UnreadableImagesError index_folder index_vectors merge_indexes update_index",
    "integrity": "Check check_artifact",
    "layers": "allowed_by flags_of read_request",
    "objects": "KINDS Kind import_class kind_of make needed resolve",
    "recipes": "find_recipe list_recipes",
    "runs": "open_run",
    "search_output": "MEMBERS answer_rows answer_shots check_outputs cluster_rows cluster_shots group_rows group_shots item_row write_sheet",
    "searching": "Answer Cluster Match RERANKS SearchResult find_clusters find_duplicates search",
    "serving": "SERVER_TOKEN SERVING_MODEL Service bind_socket check_host check_server_packages choose_token find_served index_next_to index_place serve url_of",
    "sheets": "draw_dataset",
    "studies": "OnStart repeat run_study tune",
    "study_file": "StudyFile",
    "study_io": "find_presets read_study",
    "study_report": "StudyReport",
    "study_table": "view_study",
    "study_transfer": "export_study merge_study pack_study run_planned",
    "table_evaluation": "TableEvaluation evaluate_table",
    "tables": "TABLE_FORMATS write_rows",
    "text_index": "index_texts",
    "training": "resume train",
    "trust": "NotAllowed allow_flags",
}
"""The names in each module."""

__getattr__, __dir__ = lazy_names(__name__, _PLACES)
