"""Small copies of the data sets' official layouts, drawn with Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import savemat


def draw(path: Path, size: tuple[int, int] = (8, 6), color: Any = "red") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)
    return path


def cub(root: Path, *, boxes: bool = True) -> Path:
    """Four kinds with 1, 2, 2 and 1 images; the lists are not in the order of the classes."""
    folder = root / "CUB_200_2011"
    names = ["001.Auk", "002.Bunting", "003.Crow", "004.Duck"]
    images = [(1, 3, "c1"), (2, 1, "a1"), (3, 2, "b1"), (4, 2, "b2"), (5, 4, "d1"), (6, 3, "c2")]
    for number, kind, name in images:
        draw(folder / "images" / names[kind - 1] / f"{name}.png", size=(10, 8), color=(number, 0, 0))
    (folder / "classes.txt").write_text("".join(f"{n} {name}\n" for n, name in enumerate(names, 1)))
    (folder / "images.txt").write_text("".join(f"{n} {names[k - 1]}/{name}.png\n" for n, k, name in images))
    (folder / "image_class_labels.txt").write_text("".join(f"{n} {k}\n" for n, k, _ in images))
    if boxes:
        (folder / "bounding_boxes.txt").write_text("".join(f"{n} {n}.0 1.0 4.0 5.0\n" for n, _, _ in images))
    return folder


def _annotations(entries: list[dict[str, Any]]) -> np.ndarray[Any, Any]:
    array = np.zeros((1, len(entries)), dtype=[(field, object) for field in entries[0]])
    for index, entry in enumerate(entries):
        for field, value in entry.items():
            array[0, index][field] = value
    return array


def _cells(names: list[str]) -> np.ndarray[Any, Any]:
    cells = np.zeros((1, len(names)), dtype=object)
    cells[0, :] = names
    return cells


MODELS = ["Acura TL", "BMW M3", "Dodge Ram", "Tesla S"]
# class, from 1, of the pictures 1 to 5; the first three were for training in the authors' classification task
CARS = [2, 4, 1, 2, 3]


def _box(number: int) -> dict[str, int]:
    """The first pixel is number 1, as MATLAB counts: 3 x 4 pixels from the second column and the given row."""
    return {"bbox_x1": 2, "bbox_y1": number, "bbox_x2": 4, "bbox_y2": number + 3}


def cars_whole(root: Path) -> Path:
    entries = []
    for number, kind in enumerate(CARS, 1):
        draw(root / "car_ims" / f"{number:06}.jpg", size=(12, 12))
        path = {"relative_im_path": f"car_ims/{number:06}.jpg"}
        entries.append(path | _box(number) | {"class": kind, "test": int(number > 3)})
    savemat(root / "cars_annos.mat", {"annotations": _annotations(entries), "class_names": _cells(MODELS)})
    return root


def cars_halves(root: Path, *, inside: bool) -> Path:
    devkit = root / "devkit"
    devkit.mkdir(parents=True)
    savemat(devkit / "cars_meta.mat", {"class_names": _cells(MODELS)})
    test = (devkit if inside else root) / "cars_test_annos_withlabels.mat"
    for part, path, chosen in (
        ("cars_train", devkit / "cars_train_annos.mat", range(1, 4)),
        ("cars_test", test, range(4, 6)),
    ):
        entries = []
        for place, number in enumerate(chosen, 1):
            draw(root / part / f"{place:05}.jpg", size=(12, 12))
            entries.append(_box(number) | {"class": CARS[number - 1], "fname": f"{place:05}.jpg"})
        savemat(path, {"annotations": _annotations(entries)})
    return root


def sop(root: Path) -> Path:
    folder = root / "Stanford_Online_Products"
    lists = {
        "train": [
            (1, 1, 1, "bicycle_final/1_0.JPG"),
            (2, 1, 1, "bicycle_final/1_1.JPG"),
            (3, 2, 2, "mug_final/2_0.JPG"),
        ],
        "test": [(4, 9, 2, "mug_final/9_0.JPG"), (5, 7, 1, "bicycle_final/7_0.JPG")],
    }
    for part, entries in lists.items():
        for entry in entries:
            draw(folder / entry[3])
        lines = ["image_id class_id super_class_id path", *(" ".join(map(str, entry)) for entry in entries)]
        (folder / f"Ebay_{part}.txt").write_text("\n".join(lines) + "\n")
    return folder


def inshop(root: Path, *, official: bool = True) -> Path:
    entries = [
        ("img/MEN/Denim/id_00000080/01_1_front.jpg", "id_00000080", "train"),
        ("img/WOMEN/Dresses/id_00000002/02_1_front.jpg", "id_00000002", "query"),
        ("img/WOMEN/Dresses/id_00000002/02_2_side.jpg", "id_00000002", "gallery"),
        ("img/WOMEN/Tees/id_00000001/01_1_front.jpg", "id_00000001", "gallery"),
        ("img/WOMEN/Tees/id_00000001/01_3_back.jpg", "id_00000001", "query"),
        ("img/WOMEN/Tees/id_00000001/01_7_full.jpg", "id_00000001", "gallery"),
    ]
    lists, notes, images = (root / part if official else root for part in ("Eval", "Anno", "Img"))
    for folder in (lists, notes):
        folder.mkdir(parents=True, exist_ok=True)
    header = f"{len(entries)}\nimage_name item_id evaluation_status\n"
    (lists / "list_eval_partition.txt").write_text(header + "".join(f"{f}     {i}  {s}\n" for f, i, s in entries))
    header = f"{len(entries)}\nimage_name clothes_type pose_type x_1 y_1 x_2 y_2\n"
    (notes / "list_bbox_inshop.txt").write_text(header + "".join(f"{f} 1 1 001 002 007 005\n" for f, _, _ in entries))
    for file, _, _ in entries:
        draw(images / file)
    return root
