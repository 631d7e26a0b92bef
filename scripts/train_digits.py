#!/usr/bin/env python3
"""Writes examples/data/digits.bin and examples/data/mlp.bin: 1797 handwritten digits and an MLP trained on two thirds of them.

Usage, in a virtual environment outside the repository (Python 3.11):

    pip install numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
    python scripts/train_digits.py

The same seed, versions and machine give the same bytes. Another CPU may sum in another order, so its weights may differ in their
last bits: the committed files are the reference. examples/data/README.md describes both formats.
"""

import argparse
import struct
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SIZES = (64, 128, 128, 10)
MIN_TEST_ACCURACY = 0.97
MIN_MARGIN = 1e-3  # top logit minus the next one
MIN_MARGIN_OVER_ERROR = 100  # smallest margin over the largest f32 rounding error of a logit


def forward(layers, x):
    """The input and output of every layer: [x, hidden 1, hidden 2, logits]."""
    acts = [x]
    for i, (w, b) in enumerate(layers):
        z = acts[-1] @ w.T + b
        acts.append(z if i == len(layers) - 1 else np.maximum(z, 0))
    return acts


def gradients(layers, x, onehot):
    """Gradients of the mean cross-entropy, in the order w, b, w, b, ..."""
    acts = forward(layers, x)
    p = np.exp(acts[-1] - acts[-1].max(axis=1, keepdims=True))
    delta = (p / p.sum(axis=1, keepdims=True) - onehot) / len(x)
    grads = []
    for (w, _), inputs in zip(reversed(layers), reversed(acts[:-1])):
        grads = [delta.T @ inputs, delta.sum(axis=0)] + grads
        delta = (delta @ w) * (inputs > 0)
    return grads


def train(x, y, args):
    """Adam in f64 with decoupled weight decay and a learning rate that falls linearly to 0; the result is rounded to f32 once."""
    rng = np.random.default_rng(args.seed)
    layers = [(rng.normal(0, np.sqrt(2 / n), (m, n)), np.zeros(m)) for n, m in zip(SIZES, SIZES[1:])]
    params = [p for layer in layers for p in layer]
    mean, var = ([np.zeros_like(p) for p in params] for _ in range(2))
    onehot = np.eye(SIZES[-1])[y]
    steps = args.epochs * -(-len(x) // args.batch)
    t = 0
    for _ in range(args.epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), args.batch):
            pick = order[start : start + args.batch]
            rate = args.rate * (1 - t / steps)
            t += 1
            for p, g, m, v in zip(params, gradients(layers, x[pick], onehot[pick]), mean, var):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= rate * (m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8) + args.decay * p * (p.ndim == 2))
    return [(w.astype("<f4"), b.astype("<f4")) for w, b in layers]


def evaluate(layers, pixels, labels, split):
    """Prints what the example must reproduce; exits with a message when the model is not fit for it."""
    logits = forward(layers, pixels.astype(np.float32) / np.float32(16))[-1]
    assert logits.dtype == np.float32
    exact = forward([(w.astype(float), b.astype(float)) for w, b in layers], pixels / 16)[-1]
    error = np.abs(logits - exact).max()
    right = logits.argmax(axis=1) == labels
    ranked = np.sort(logits, axis=1)
    margin = ranked[:, -1] - ranked[:, -2]
    worst = margin.argmin()

    for name, part in (("train", right[split == 0]), ("test", right[split == 1]), ("all", right)):
        print(f"{name:5} {part.sum()} of {len(part)} right, {100 * part.mean():.2f} %")
    print(f"smallest margin {margin[worst]:.6f} on image {worst} ({'test' if split[worst] else 'train'}, label {labels[worst]}, "
          f"top two {logits[worst].argsort()[:-3:-1].tolist()})")
    print(f"largest f32 error of a logit {error:.2e}, largest logit {np.abs(logits).max():.2f}")

    if right[split == 1].mean() < MIN_TEST_ACCURACY:
        raise SystemExit(f"test accuracy is below {MIN_TEST_ACCURACY}")
    if margin[worst] < max(MIN_MARGIN, MIN_MARGIN_OVER_ERROR * error):
        raise SystemExit("the smallest margin is too close to f32 rounding; train with another seed")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "examples" / "data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--decay", type=float, default=0.05)
    args = parser.parse_args()

    digits = load_digits()
    pixels, labels = digits.data.astype(np.uint8), digits.target.astype(np.uint8)
    split = np.zeros(len(labels), np.uint8)
    _, test = train_test_split(np.arange(len(labels)), test_size=len(labels) // 3, stratify=labels, random_state=args.seed)
    split[test] = 1

    layers = train(pixels[split == 0] / 16, labels[split == 0], args)
    evaluate(layers, pixels, labels, split)

    args.out.mkdir(parents=True, exist_ok=True)
    header = struct.pack("<8sII", b"VTDIGIT1", *pixels.shape)
    (args.out / "digits.bin").write_bytes(header + pixels.tobytes() + labels.tobytes() + split.tobytes())
    header = struct.pack(f"<8sI{len(SIZES)}I", b"VTMLPF32", len(layers), *SIZES)
    (args.out / "mlp.bin").write_bytes(header + b"".join(p.tobytes() for layer in layers for p in layer))


if __name__ == "__main__":
    main()
