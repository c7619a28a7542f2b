"""Writes the request bodies in samples/: a drawn line of text, upright and upside down, and the picture of each.

Run from anywhere: pip install pillow numpy && python make_samples.py
"""
import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FOLDER = Path(__file__).resolve().parent / "samples"
HEIGHT, WIDTH = 48, 192


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    picture = Image.new("L", (WIDTH, HEIGHT), 255)
    ImageDraw.Draw(picture).text((6, 4), "Paceline", fill=0, font=ImageFont.load_default(size=36))
    for name, view in (("upright", picture), ("upside-down", picture.rotate(180))):
        view.save(FOLDER / f"{name}.png", optimize=True)
        scaled = np.round(np.asarray(view, np.float32) / 127.5 - 1, 2)
        channel = ",".join(f"{value:g}" for value in scaled.flatten())
        shape = json.dumps([1, 3, HEIGHT, WIDTH])
        tensor = f'{{"name":"x","datatype":"FP32","shape":{shape},"data":[{",".join([channel] * 3)}]}}'
        wanted = '{"name":"softmax_0.tmp_0","parameters":{"classification":2}}'
        (FOLDER / f"{name}.json").write_text(f'{{"inputs":[{tensor}],"outputs":[{wanted}]}}\n')


if __name__ == "__main__":
    main()
