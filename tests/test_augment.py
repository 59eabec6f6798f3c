"""Random crops and flips: by hand, from the problem's keys, and nothing where they are off."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from test_networks import DOUBLE, problem
from test_store import ON_IMAGES

from fedtheory import FedAvg, ImageClassification, Key, run
from fedtheory.problems.augment import AUGMENTS, PADDING, Augment
from fedtheory.problems.images import Batch
from fedtheory.problems.validation import validation

NETS = ("mlp", "decomfl-mnist", "fedmud-cnn4")
ON = AUGMENTS[1:]


def made(name="decomfl-mnist", augment="crop+flip", **options):
    """Images of 8 x 8 for a perceptron, too."""
    if name != "mlp":
        return problem(name, augment=augment, **options)
    other = problem("decomfl-mnist", **options)
    built = ImageClassification.load("digits", "mlp", Key(0), subset=40, tested=9, dtype=DOUBLE).network
    return ImageClassification(other.images, other.labels % 3, other.parts, built, Key(1), batch=4, augment=augment)


def by_hand(image, row, column, flip, black):
    """torchvision's two transforms on one image (channels, height, width), in NumPy."""
    channels, height, width = image.shape
    wide = np.stack([np.full((height + 8, width + 8), black[c]) for c in range(channels)])
    wide[:, 4 : 4 + height, 4 : 4 + width] = image
    cut = wide[:, row : row + height, column : column + width]
    return cut[:, :, ::-1] if flip else cut


def seen_by_hand(p, xi):
    """What the networks should be given, image by image."""
    black = p.images.amin((0, 2, 3)).numpy()
    crop, flip = p.augment.crop, p.augment.flip
    of = lambda i, j, row, column, mirrored: by_hand(
        p.images[xi.index[i, j]].numpy(), *((row, column) if crop else (PADDING, PADDING)), mirrored and flip, black
    )
    rows = [[of(i, j, *draw) for j, draw in enumerate(some)] for i, some in enumerate(xi.draws.tolist())]
    return torch.from_numpy(np.array(rows))


@pytest.mark.parametrize("augment", ON)
@pytest.mark.parametrize("name", NETS)
def test_networks_see_the_crops_and_flips_that_were_drawn(name, augment):
    """Grey and coloured images, a perceptron's written-out gradient, and the losses of clients at one point."""
    p = made(name, augment)
    xi = p.draw(p.clients, 2, Key(2))[1]
    seen = seen_by_hand(p, xi)
    assert torch.equal(p._seen(xi), seen)
    assert not torch.equal(seen, p.images[xi.index])
    plain = made(name, "none")
    plain.images = seen.flatten(0, 1)
    plain.labels = p.labels[xi.index].flatten()
    same = Batch(torch.arange(len(plain.images)).view(xi.index.shape), xi.size)
    y = p.start() + 0.01 * torch.randn(p.n, p.d, generator=Key(3).generator(), dtype=DOUBLE)
    torch.testing.assert_close(p.grads(y, xi), plain.grads(y, same), rtol=1e-9, atol=1e-12)
    for x in (y, p.start().expand(p.n, -1)):
        torch.testing.assert_close(p.losses(x, xi), plain.losses(x, same), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(p.outputs(y, xi).logits, plain.outputs(y, same).logits, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", NETS)
def test_off_is_as_before(name):
    """The same batches, no draws, the same images; words do not know of it. On changes them, and the fingerprint."""
    off, on = made(name, "none"), made(name)
    before, after = off.draw(off.clients, 3, Key(2)), on.draw(on.clients, 3, Key(2))
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a.index, b.index)  # an image is drawn alike, whatever is done to it
        assert a.draws is None
        assert torch.equal(off._seen(a), off.images[a.index])
    assert off.augment is None
    assert len({made(name, augment).fingerprint() for augment in AUGMENTS}) == len(AUGMENTS)
    assert off.fingerprint() == made(name, "none").fingerprint()
    assert "augment" not in {name for name, value in vars(off).items() if isinstance(value, (int, float, str))}


@pytest.mark.parametrize("kind", ["images", "validation"])
def test_stored_runs_keep_their_names(kind):
    before = replace(ON_IMAGES, problem=kind)
    off, on = (replace(before, options=(("augment", value), *before.options)) for value in ("none", "crop+flip"))
    assert "augment" not in before.words()["options"]
    assert off.words() == before.words()
    assert on.words()["options"]["augment"] == "crop+flip"
    assert off.ran() == before.ran()
    assert "2 clients, augmented by crop+flip" in on.ran()["ran data"]


def test_moments_are_words_where_there_are_any():
    """Runs were stored before moments were drawn: of networks with batch normalisation those of the first images."""

    def words(network: str, **more: str) -> dict:
        options = dict(ON_IMAGES.options) | {"network": network} | more
        return replace(ON_IMAGES, options=tuple(options.items())).words()["options"]

    assert "moments" not in words("resnet8", moments="first")
    assert words("resnet8")["moments"] == words("resnet8", moments="drawn")["moments"] == "drawn"
    assert "moments" not in words("mlp") | words("mlp", moments="drawn") | words("mlp", moments="first")


def test_draws_hang_on_the_client_and_the_key_alone():
    """Not on who else takes part, in which order, how many steps follow, or how the work is cut."""
    p = made(sizes=(12, 9, 1, 12))
    together, apart = p.draw(p.clients, 3, Key(2)), p.draw(torch.tensor([3, 1]), 3, Key(2))
    for whole, some in zip(together, apart, strict=True):
        for at, i in enumerate((3, 1)):
            assert torch.equal(whole.client(i).draws, some.client(at).draws)
            assert whole.client(i).draws.shape == (1, whole.size[i], 3)
    draws = torch.cat([batch.client(0).draws for batch in (*together, *p.draw(p.clients, 3, Key(3)))])
    assert len(draws.flatten(1).unique(dim=0)) == 6  # each step, and each round, its own
    assert not torch.equal(together[0].client(0).draws, together[0].client(3).draws)
    orders = [
        run(FedAvg(0.1, 3), p, 3, sampled=3, metrics=(), chunk=chunk, threads=t).x for chunk, t in [(1, 1), (1, 2)]
    ]
    assert torch.equal(*orders)
    p.stacked = True
    stacked = run(FedAvg(0.1, 3), p, 3, sampled=3, metrics=(), chunk=4).x
    torch.testing.assert_close(stacked, orders[0], rtol=1e-8, atol=1e-10)


def test_epochs_pad_the_draws_with_the_batches():
    p = made(epochs=2, sizes=(12, 9, 7, 12))
    for batch in p.draw(p.clients, p.steps, Key(2)):
        assert batch.draws.shape == (*batch.index.shape, 3)
    alone = p.draw(torch.tensor([2]), p.steps, Key(2))
    for whole, own in zip(p.draw(p.clients, p.steps, Key(2)), alone, strict=True):
        assert torch.equal(whole.client(2).draws, own.client(0).draws)


def test_every_window_and_both_sides_are_drawn_alike():
    augment = Augment(True, True, torch.zeros(1, 1, 1))
    draws = augment.draw(90_000, Key(1))
    corners = torch.bincount(9 * draws[:, 0] + draws[:, 1], minlength=81)
    assert len(corners) == 81
    assert float((corners - 90_000 / 81).abs().max()) < 6 * (90_000 / 81) ** 0.5
    assert float(draws[:, 2].double().mean()) == pytest.approx(0.5, abs=0.01)
    assert abs(float(torch.corrcoef(draws.double().T).fill_diagonal_(0).abs().max())) < 0.02


def test_a_run_that_was_cut_off_goes_on_with_the_same_bits(tmp_path):
    whole = run(FedAvg(0.1, 2), made(), 6, sampled=2, metrics=("loss",))
    run(FedAvg(0.1, 2), made(), 4, sampled=2, metrics=("loss",), checkpoint=tmp_path, checkpoint_every=2)
    resumed = run(FedAvg(0.1, 2), made(), 6, sampled=2, metrics=("loss",), checkpoint=tmp_path)
    assert torch.equal(whole.x, resumed.x)
    assert not torch.equal(whole.x, run(FedAvg(0.1, 2), made(augment="none"), 6, sampled=2, metrics=()).x)
    with pytest.raises(ValueError, match="checkpoint"):
        run(FedAvg(0.1, 2), made(augment="crop"), 6, sampled=2, metrics=("loss",), checkpoint=tmp_path)


def test_what_is_evaluated_is_not_augmented():
    """Loss, accuracy, moments and the gradient of all of a client's data."""
    off, on = made("fedmud-cnn4", "none"), made("fedmud-cnn4")
    x = off.start()
    assert (off.loss(x), off.accuracy(x)) == (on.loss(x), on.accuracy(x))
    assert all(torch.equal(a, b) for these in zip(off.moments(x), on.moments(x)) for a, b in zip(*these))
    assert torch.equal(off.grads(x[None], off.full(torch.tensor([1]))), on.grads(x[None], on.full(torch.tensor([1]))))


def test_black_pads_real_images():
    """The least value of a channel is a pixel of 0, normalised: digits' background."""
    p = ImageClassification.load("digits", "mlp", Key(0), clients=5, augment="crop")
    assert float(p.augment.black) == float(p.images.min())
    held = validation("digits", "mlp", Key(0), clients=5, augment="crop")
    assert held.augment is not None
    assert held.augment.crop
    assert not held.augment.flip
    assert torch.equal(held.augment.black, p.augment.black)
    assert validation("digits", "mlp", Key(0), clients=5).augment is None


@pytest.mark.parametrize(
    ("shape", "augment", "words"),
    [
        ((1, 6, 6), "crop", "'crop' on images of 6 x 6 pixels"),
        ((1, 1, 64), "crop+flip", "'crop+flip' on images of 1 x 64 pixels"),
        ((1, 1, 64), "flip", "'flip' on images of 1 x 64 pixels"),
        ((1, 64, 1), "flip", "'flip' on images of 64 x 1 pixels"),
        ((1, 8, 8), "mixup", "augment='mixup'"),
        ((1, 8, 8), True, "augment=True"),
    ],
)
def test_flat_data_and_unknown_names_are_refused(shape, augment, words):
    with pytest.raises((ValueError, TypeError)) as caught:
        Augment.of(augment, torch.zeros(3, *shape))
    assert words in str(caught.value)
    assert "Fix:" in str(caught.value)
