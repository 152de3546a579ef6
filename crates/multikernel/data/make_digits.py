"""Makes digits.zlib from the digits that scikit-learn ships. Run: python make_digits.py (needs scikit-learn)."""

import pathlib
import zlib

from sklearn.datasets import load_digits

digits = load_digits()
assert digits.data.shape == (1797, 64) and digits.data.max() == 16
# All pixels row after row, one byte each (0..16), then all labels (0..9).
raw = digits.data.astype("uint8").tobytes() + digits.target.astype("uint8").tobytes()
packed = zlib.compress(raw, 9)
pathlib.Path(__file__).with_name("digits.zlib").write_bytes(packed)
print(len(raw), "bytes packed into", len(packed))
