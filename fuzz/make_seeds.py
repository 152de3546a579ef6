"""Makes small valid files in seeds/ to start the fuzz targets from. Needs numpy and pyarrow."""

import gzip
import io
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent / "seeds"


def put(target, name, content, flags=None):
    folder = here / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes((b"" if flags is None else bytes([flags])) + content)


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(save, **arrays):
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()


matrix = np.arange(6, dtype="f4").reshape(2, 3)
square = np.array([[2, 1, 0], [1, 2, 1], [0, 1, 2]])
for dtype in ["<f4", ">f8", "<f2", "u1", "<i8", "?"]:
    put("npy", f"m{dtype.strip('<>?') or 'b1'}", npy(matrix.astype(dtype)))
put("npy", "fortran", npy(np.asfortranarray(matrix)))
put("npy", "text", npy(np.array(["ab", "cde"])))
put("npz", "stored", npz(np.savez, a=matrix, y=np.array([0, 1])))
put("npz", "deflated", npz(np.savez_compressed, a=matrix, b=matrix * 2, y=np.array(["u", "v"])))
table = b"id,a1,a2,y,s\nu,1,2,yes,ACGT\nv,3,-4e1,no,\"AC\"\"GT\"\n"
numbers = b"id,a1,a2,y\n1,1,2,1\n2,3,-4e1,0\n"
for flags in [0, 2, 6]:
    put("csv", f"numbers{flags}", numbers, flags)
put("csv", "cut", table, 14)
put("csv", "gz", gzip.compress(numbers, mtime=0), 3)
put("libsvm", "some", b"+1 qid:3 1:0.5 3:2 # comment\n-1 2:1e3\n")
put("libsvm", "unlabelled", b"1:0.5 3:2\n2:1\n")
put("fasta", "some", b">a label=1 x\nACGT\nAC\n>b|label=2\nGT\n")
put("labels", "text", b"a\nb\na\n", 0)
put("labels", "numbers", b"1\n2.5\n-3\n", 0)
put("labels", "array", npy(np.array([1.5, 2.5])), 1)
put("given", "square", npy(square.astype("f4")), 0)
put("given", "stack", npy(np.stack([square, square]).astype("f8")), 0)
put("given", "last", npy(np.stack([square, square], axis=-1).astype("f4")), 0)
put("given", "archive", npz(np.savez, a=square, b=square.astype("f4")), 1)
put("given", "new", npy(np.ones((2, 4, 3), dtype="f4")), 4)
for k, options in enumerate(
    [{}, {"compression": "zstd"}, {"use_dictionary": False, "compression": "none"}, {"data_page_version": "2.0", "compression": "gzip"},
     {"compression": "brotli"}, {"compression": "lz4"}]
):
    out = io.BytesIO()
    data = pa.table({"a": [1.5, 2.5, 3.5], "b": [1, 2, 3], "y": ["u", "v", "u"], "id": ["r", "s", "t"]})
    pq.write_table(data, out, **options)
    put("parquet", f"p{k}", out.getvalue(), 3 + 4 * (k % 2))
