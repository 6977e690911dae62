"""Trunks: networks that embed images, texts and class names."""

from likewise.trunks.bert import SentenceBert
from likewise.trunks.bninception import BNInception, bninception
from likewise.trunks.card import Card, read_card
from likewise.trunks.classic import AlexNet, LeNet, alexnet, lenet
from likewise.trunks.convnet import ConvNet, convnet
from likewise.trunks.efficientnet_lite import (
    EfficientNetLite,
    efficientnet_lite0,
    efficientnet_lite1,
    efficientnet_lite2,
)
from likewise.trunks.embedder import HEADS, Embedder
from likewise.trunks.googlenet import GoogLeNet, googlenet
from likewise.trunks.language import class_embeddings, prompts, readable, sentence_encoder
from likewise.trunks.metric_head import fold_metric
from likewise.trunks.pooling import POOLS, AveragePlusMaxPool, AveragePool, GeneralizedMeanPool, MaxPool
from likewise.trunks.preprocessing import IMAGENET, Preprocessing
from likewise.trunks.registry import TRUNKS, Entry, build, classifier, rebuild
from likewise.trunks.resnet import ResNet, resnet18, resnet50, resnet101
from likewise.trunks.sources import FromFile, FromNpm, FromPackage, FromUrl
from likewise.trunks.text import TEXT_TRUNKS, NGrams, TextTrunk, build_text
from likewise.trunks.trunk import Trunk
from likewise.trunks.two_towers import TwoTowers
from likewise.trunks.vectors import Perceptron, linear, mlp
from likewise.trunks.vit import VisionTransformer, vit_base, vit_small, vit_tiny
from likewise.trunks.weights import Weights, load_state, read_state

__all__ = [
    "HEADS",
    "IMAGENET",
    "POOLS",
    "TEXT_TRUNKS",
    "TRUNKS",
    "AlexNet",
    "AveragePlusMaxPool",
    "AveragePool",
    "BNInception",
    "Card",
    "ConvNet",
    "EfficientNetLite",
    "Embedder",
    "Entry",
    "FromFile",
    "FromNpm",
    "FromPackage",
    "FromUrl",
    "GeneralizedMeanPool",
    "GoogLeNet",
    "LeNet",
    "MaxPool",
    "NGrams",
    "Perceptron",
    "Preprocessing",
    "ResNet",
    "SentenceBert",
    "TextTrunk",
    "Trunk",
    "TwoTowers",
    "VisionTransformer",
    "Weights",
    "alexnet",
    "bninception",
    "build",
    "build_text",
    "class_embeddings",
    "classifier",
    "convnet",
    "efficientnet_lite0",
    "efficientnet_lite1",
    "efficientnet_lite2",
    "fold_metric",
    "googlenet",
    "lenet",
    "linear",
    "load_state",
    "mlp",
    "prompts",
    "read_card",
    "read_state",
    "readable",
    "rebuild",
    "resnet18",
    "resnet50",
    "resnet101",
    "sentence_encoder",
    "vit_base",
    "vit_small",
    "vit_tiny",
]

# Used by other packages of the library, not part of the public API.
from likewise.trunks.card import read_tensors as read_tensors
from likewise.trunks.card import write_model as write_model
