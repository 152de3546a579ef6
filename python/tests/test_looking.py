"""Pictures and the notebook's view."""

import pickle
import re
import subprocess
from html import escape

import matplotlib
import numpy as np
import pytest
import sklearn

import multikernel as mk

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def fitted(cancer):
    return mk.MKLClassifier().fit(*cancer)


def test_weights(fitted, digits):
    ax = fitted.plot_weights()
    assert len(ax.patches) == 6
    assert max(bar.get_width() for bar in ax.patches) == fitted.kernel_weights_.max()
    assert len(mk.plot_weights(fitted, top=2).patches) == 2
    X, y, views = digits
    by_class = mk.MKLClassifier(multiclass="ovr", views=views).fit(X[:150], y[:150] % 3)
    assert len(by_class.plot_weights(top=None).lines) == 3


def test_convergence(fitted, tmp_path):
    line = fitted.plot_convergence().lines[0]
    np.testing.assert_array_equal(line.get_ydata(), fitted.history_["gap"])
    fitted.save(tmp_path / "model.mk")
    with pytest.raises(ValueError, match="model files keep none"):
        mk.load(tmp_path / "model.mk").plot_convergence()


def test_path(cancer):
    X, y = cancer
    model = mk.MKLClassifier()
    by_c = model.path(X, y, C=[0.1, 1, 10]).plot()
    assert by_c.get_xscale() == "log" and len(by_c.lines) == 6
    by_norm = model.plot_path(X, y, norm=["lp:1", "lp:2", "lp:inf"])
    assert [label.get_text() for label in by_norm.get_xticklabels()] == ["lp:1", "lp:2", "lp:inf"]
    with pytest.raises(ValueError, match="one of them changing"):
        mk.plot_path(model.path(X, y, C=[0.1, 1], norm=["lp:1", "lp:2"]))


def test_alignment(cancer):
    X, y = cancer
    K, names = mk.gram(X[:100], return_names=True)
    ax = mk.plot_alignment(K, y[:100], names=names)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["targets", *names]
    assert mk.plot_alignment(K).images[0].get_array().shape == (6, 6)


def test_notebooks_show_weights(fitted):
    assert "relative duality gap" not in mk.MKLClassifier()._repr_html_()
    for html in [fitted._repr_html_(), fitted._repr_mimebundle_()["text/html"]]:
        assert "x/rbf(mean)" in html and "relative duality gap" in html and "sk-" in html
    with sklearn.config_context(display="text"):
        assert "text/html" not in fitted._repr_mimebundle_()


def test_a_report_says_what_was_learned(fitted, cancer, tmp_path):
    X, y = cancer
    fitted.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text().replace("<wbr>", "")
    assert page.startswith("<!DOCTYPE html>") and "0 and 1 told apart" in page
    assert "Relative gap, round by round" in page and fitted.kernel_names_[0] in page
    assert "<span>MKLClassifier().fit(X,</span> <span>y)</span>" in page, "how to get it again"
    assert 'id="alignments"' in page and "Computed on a sample of 400 samples" in page
    assert "Confusions" not in page, "nothing was measured"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_alignments_are_computed_when_somebody_looks(cancer, tmp_path):
    X, y = cancer
    model = mk.MKLClassifier(kernels="rbf:width=mean|mean*2").fit(X[:120], y[:120])
    assert "alignment" not in model._result
    copied = pickle.loads(pickle.dumps(model))
    model.save(tmp_path / "model.mk")
    for number, one in enumerate([model, copied, mk.load(tmp_path / "model.mk")]):
        one.report(tmp_path / f"{number}.html")
        page = (tmp_path / f"{number}.html").read_text()
        assert 'id="alignments"' in page and "all 120 samples" not in page
        assert one._result["alignment"] == model._result["alignment"]


def test_a_report_says_how_the_model_was_called(tmp_path, cancer):
    X, y = cancer
    model = mk.MKLRegressor(kernels=mk.kernels.rbf([0.5, 1.0]), C=2.5, norm=np.eye(2), n_jobs=None).fit(X[:60], y[:60])
    model.set_params(C=1.0)
    model.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    text = re.sub("<[^>]*>", "", page)
    called = f"MKLRegressor(kernels={' '.join(repr(model.kernels).split())}, norm=array([[1., 0.], [0., 1.]]), C=2.5).fit(X, y)"
    assert escape(called, quote=False) in text, "what differs from the defaults, as it was when it was fitted"


def test_a_report_measures_on_samples(tmp_path, cancer):
    X, y = cancer
    words = np.where(y, "benign", "malignant")
    model = mk.MKLClassifier().fit(X[:400], words[:400])
    model.report(tmp_path / "report.html", X[400:], words[400:])
    page = (tmp_path / "report.html").read_text()
    right = round(100 * model.score(X[400:], words[400:]), 1)
    assert f"benign and malignant told apart, <em>{right}\u00a0%</em> right on the samples given" in page
    assert "169 samples" in page and "Confusions" in page and "with 95\u00a0% confidence" in page
    # A class that the model does not know is wrong, and a number of targets that does not fit is said.
    model.report(tmp_path / "report.html", X[400:], np.full(169, "neither"))
    assert "<em>0\u00a0%</em> right" in (tmp_path / "report.html").read_text()
    with pytest.raises(ValueError, match="169"):
        model.report(tmp_path / "report.html", X[400:], words[:7])
    with pytest.raises(ValueError, match="requires y"):
        model.report(tmp_path / "report.html", X[400:])


def test_reports_of_other_estimators(tmp_path, cancer):
    X, y = cancer
    rows = X[:150]
    file = tmp_path / "report.html"
    mk.MKLRegressor().fit(rows, X[:150, 0]).report(file, X[150:300], X[150:300, 0])
    assert "A value predicted with R²" in file.read_text() and "Prediction against truth" in file.read_text()
    mk.MKLOneClass().fit(rows).report(file, X[150:300])
    assert "look usual on the samples given" in file.read_text()
    mk.MKLClassifier(kernels=[lambda a, b: a @ b.T]).fit(rows, y[:150]).report(file, X[150:300], y[150:300])
    assert "told apart" in file.read_text(), "kernels may be functions"
    stream = mk.OnlineMKLClassifier(kernels="rbf:width=10").fit(rows, y[:150])
    stream.report(file)
    assert "along the stream" in file.read_text()


def test_a_report_of_a_file_is_that_of_the_model(fitted, tmp_path, program):
    fitted.report(tmp_path / "ours.html")
    fitted.save(tmp_path / "model.mk")
    mk.load(tmp_path / "model.mk").report(tmp_path / "loaded.html")
    subprocess.run([program, "report", "model.mk", "--out", "theirs.html", "--quiet"], cwd=tmp_path, check=True)
    ours = (tmp_path / "ours.html").read_text()
    assert (tmp_path / "loaded.html").read_text() == ours
    assert (tmp_path / "theirs.html").read_text() == ours
