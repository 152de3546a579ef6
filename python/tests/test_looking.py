"""Pictures and the notebook's view."""

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
