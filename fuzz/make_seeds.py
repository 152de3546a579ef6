"""Makes small valid files in seeds/ to start the fuzz targets from: make_seeds.py [PROGRAM].

Needs numpy and pyarrow, and for models the program multikernel.
"""

import gzip
import io
import json
import pathlib
import subprocess
import sys
import tempfile

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
     {"compression": "lz4"}]
):
    out = io.BytesIO()
    data = pa.table({"a": [1.5, 2.5, 3.5], "b": [1, 2, 3], "y": ["u", "v", "u"], "id": ["r", "s", "t"]})
    pq.write_table(data, out, **options)
    put("parquet", f"p{k}", out.getvalue(), 3 + 4 * (k % 2))
for name, text in {
    "product": 'product:of="a b"*c,name=p',
    "rbf": "rbf:width=mean*0.5|mean|2,view=a,normalize=center",
    "toml": '[[kernel]]\nkind = "poly"\ndegree = [2, 3]\n',
    "toml-many": '[[kernel]]\nkind = "sum"\nof = ["a", "b*"]\nname = "s"\n\n[[kernel]]\nkind = "rbf"\nwidth = ["mean*0.5", 2]\n',
    "strings": "weighted-degree:degree=3|4,shift=1,group=g",
    "given": 'distance:from="a,b",gamma=1/3,normalize=spherical',
    "norm": "block:7/6",
    "loss": "epsilon:0.1",
}.items():
    put("spec", name, text.encode())


def parts(model):
    """The parts of a model file, as the target takes them: it makes the container, so that they can change in size."""
    length = int.from_bytes(model[:8], "little")
    tensors = json.loads(model[8 : 8 + length])
    header = json.loads(tensors.pop("__metadata__")["multikernel"])
    header["training"] = None
    tensors = sorted(tensors.items(), key=lambda t: t[1]["data_offsets"])
    lines = "".join(f"{name} {t['dtype']} {int(np.prod(t['shape']))}\n" for name, t in tensors)
    return b"\0".join([json.dumps(header).encode(), lines.encode(), model[8 + length :]])


def put_model(name, files, *options):
    with tempfile.TemporaryDirectory() as folder:
        for file, content in files.items():
            (pathlib.Path(folder) / file).write_bytes(content)
        command = [str(pathlib.Path(sys.argv[1]).absolute()), "train", "--model", "m.mk", *options]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        model = (pathlib.Path(folder) / "m.mk").read_bytes()
    put("model", name + "-file", model, 0)
    put("model", name + "-parts", parts(model), 1)


if len(sys.argv) > 1:
    two = b"id,a1,a2,y\np,1,2,u\nq,3,-4,v\nr,2,1,u\ns,0,-1,v\n"
    three = b"0 1:1\n0 1:2 3:1\n1 2:1\n1 2:2 3:1\n2 3:4\n2 3:5 1:1\n"
    genes = b">a label=1.5\nACGT\n>b label=2\nACCT\n>c label=-1\nGGTT\n"
    indefinite = np.array([[1, 2, 0], [2, 1, 1], [0, 1, 1]], dtype="f4")
    distances = np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0]], dtype="f4")
    labels = b"u\nv\nu\n"
    put_model("dense", {"x.csv": two}, "--features", "x.csv", "--label-column", "y", "--id-column", "id", "--scale", "standard",
              "--kernel", "rbf:normalize=center", "--kernel", "linear:normalize=trace")
    put_model("sparse", {"x.libsvm": three}, "--features", "x.libsvm", "--task", "classify", "--multiclass", "ovo", "--kernel",
              "poly:normalize=spherical", "--kernel", "linear:normalize=multiplicative", "--norm", "block:auto")
    put_model("strings", {"x.fasta": genes}, "--features", "x.fasta", "--task", "regress", "--kernel", "spectrum:k=2,name=a",
              "--kernel", "weighted-degree:degree=3,shift=1,name=b", "--kernel", "product:of=a*b", "--loss", "huber:1")
    put_model("clipped", {"k.npy": npy(indefinite), "y.txt": labels}, "--gram", "k.npy", "--labels", "y.txt", "--indefinite", "clip")
    put_model("distance", {"d.npy": npy(distances)}, "--gram", "d.npy", "--task", "one-class", "--kernel", "distance:from=d,width=1",
              "--kernel", "distance:from=d,width=2,normalize=center", "--indefinite", "shift")
