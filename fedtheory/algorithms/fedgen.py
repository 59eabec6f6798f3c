"""FedGen: Zhu, Hong and Zhou 2021, "Data-Free Knowledge Distillation for Heterogeneous Federated Learning",
arXiv:2105.10056v2, Algorithm 1 with (4) and (5).
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average_weights, by_problem
from fedtheory.core.key import Key
from fedtheory.core.message import Known
from fedtheory.core.problem import Classifier, Outputs, Problem
from fedtheory.core.registry import Card, Method
from fedtheory.problems.models import networks
from fedtheory.problems.models.networks import Network

_Head = Callable[[torch.Tensor], torch.Tensor]
_FIRST, _SECOND, _TINY = 0.9, 0.999, 1e-8  # Adam's


@dataclass(frozen=True)
class Generator:
    w: torch.Tensor  # (q,)
    p: torch.Tensor  # p(y), (classes,)


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # theta, (d,)
    generator: Generator
    m: torch.Tensor  # Adam's moments of w, (q,)
    v: torch.Tensor
    t: int
    weights: torch.Tensor  # (N,)
    network: Known[Classifier]


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)
    generator: Generator | None  # None before it has been trained


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # theta_k - theta, (S, d)
    c: torch.Tensor  # label counter c_k, (S, classes), int32

    def misplaced(self, d: int) -> str:
        """What is wrong with a stranger's counts; empty where nothing is."""
        least, most = int(self.c.min()), int(self.c.max())
        return "" if least >= 0 and most > 0 else f"c holds {least} to {most}, expected counts of labels"


@dataclass(frozen=True)
class FedGen(Algorithm):
    """FedAvg with a generator of features: the server fits it to the clients' heads, the clients fit their heads to it.

    Server, (4): min_w E CE(mean_k g(z; theta_k^p), y), y ~ p(y), z = G_w(eps, y), eps ~ N(0, I). The head g is linear
    in its parameters, so the mean of the clients' logits is what the averaged head makes of z: one head is evaluated.
    Client, (5): min L_k(theta_k) + reg E CE(g(z; theta_k^p), y), with fresh z in every step.

    The generator is a perceptron with one hidden layer on (eps, one-hot y), without the batch normalisation that the
    authors' code gives it. Algorithm 1 steps along the gradient in w. Their code takes Adam, and so does this, its
    moments kept between rounds, without weight decay and decaying rate. The p(y) is the share of each label in the
    batches that the last round's participants counted. The first round is the code's: before the generator has been
    trained nothing is generated, and it is not sent. Four things are not taken from the code. In (5): a third term, on
    real images. In (4): the sum over clients of their own cross-entropies, weighted by client and label. Uniform
    labels, and eps from [0, 1]. And reg that starts at 10, decays, and is gone after 20 local epochs.

    Fields:
        lr: beta; None: `pace` times the problem's `rate`.
        local_steps: T.
        reg: weight of the generated term in (5), which has 1; 0 trains FedAvg's model.
        server_steps, generator_lr: steps on (4) in a round, Adam's step size: 1000 and 0.005 in FLSS, 50 and 0.0003
            (0.0001 on EMNIST) in the code. The longer it is fitted, the less is left of the clients' term: their heads
            know z already.
        generated: z of one local step, and of one server step.
        noise, hidden: length of eps, width of the hidden layer.
        diversity: weight in (4) of exp(-mean_ij |eps_i - eps_j|_2^2 |z_i - z_j|_1), both norms means over the entries,
            from the code, where it is 1; 0 is (4) as printed.
        weighted: averages are weighted by the problem's client weights, as in the code; False: alike, as printed.
    """

    lr: float = by_problem()
    local_steps: int = 5
    reg: float = 1.0
    server_steps: int = 1000
    generator_lr: float = 0.005
    generated: int = 32
    noise: int = 32
    hidden: int = 128
    diversity: float = 0.0
    weighted: bool = False
    name = "FedGen"

    def __post_init__(self) -> None:
        checks.number("reg", self.reg, 0.0)
        for count in ("server_steps", "generated", "noise", "hidden"):
            checks.count(count, getattr(self, count))
        checks.rate("generator_lr", self.generator_lr)
        checks.number("diversity", self.diversity, 0.0)

    def maker(self, network: Classifier) -> Network:
        """G for a network's features: (eps, one-hot y) -> z."""
        return networks.mlp((1, 1, self.noise + network.classes), network.head.n_in, self.hidden)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        network = problem.classifier
        drawn = self.server_steps * self.generated * (self.noise + network.classes)
        checks.room("server_steps", self.server_steps, 8 * drawn * 3)
        sides = self.hidden * (self.noise + network.classes + network.head.n_in)
        checks.room("hidden", self.hidden, 8 * sides * 4)
        w = self.maker(network).init(key.fold("w")).to(x)
        p = x.new_full((network.classes,), 1 / network.classes)
        none = torch.zeros_like(w)
        return State(Server(x, Generator(w, p), none, none, 0, problem.weights.to(x), Known(network)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(server.x, server.generator if server.t else None)

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        y, grads = down.x.expand(len(clients), -1), lambda y, k: problem.grads(y, xi[k])
        if down.generator is not None:
            keys = [key.fold("generated", int(i)) for i in clients]
            drawn = [self._draw(down.generator.p, self.local_steps, one) for one in keys]
            labels, inputs = (torch.stack(parts, 1) for parts in zip(*drawn))  # (K, S, B), (K, S, B, .)
            z = self.maker(problem.classifier).logits(down.generator.w[None], inputs.flatten(0, 2)[None])
            z = z.view(*labels.shape, -1)  # z ~ G_w(. | y)
            grads = lambda y, k: problem.penalised(y, xi[k], self._generated, z[k], labels[k])  # (5)
        for k in range(self.local_steps):
            y = y.sub(grads(y, k), alpha=self.lr)  # theta_k <- theta_k - beta grad J(theta_k)
            yield y
        counts = torch.stack([problem.count_labels(batch) for batch in xi])
        return Up(y - down.x, counts.sum(0, dtype=torch.int32)), None

    def server(self, server: Server, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        share = average_weights(server.weights, clients, self.weighted)
        x = server.x + share @ up.dy  # theta <- (1/|A|) sum_k theta_k
        p = up.c.sum(0).to(x)
        p = p / p.sum()
        labels, inputs = self._draw(p, self.server_steps, key.fold("generator"))
        network, maker = server.network.value, self.maker(server.network.value)
        w, m, v = server.generator.w.clone(), server.m.clone(), server.v.clone()
        for k in range(self.server_steps):  # w <- w - alpha grad J(w)
            g = self._slope(maker, w, lambda z: network.classify(x[None], z), labels[k], inputs[k])
            m.lerp_(g, 1 - _FIRST)
            v.lerp_(g * g, 1 - _SECOND)
            done = server.t * self.server_steps + k + 1
            size = (v / (1 - _SECOND**done)).sqrt_().add_(_TINY)
            w.addcdiv_(m, size, value=-self.generator_lr / (1 - _FIRST**done))
        return Server(x, Generator(w, p), m, v, server.t + 1, server.weights, server.network), None

    def _draw(self, p: torch.Tensor, steps: int, key: Key) -> tuple[torch.Tensor, torch.Tensor]:
        """y ~ p, (steps, B), and the generator's inputs (eps, one-hot y), (steps, B, noise + classes)."""
        g, shape = key.generator(), (steps, self.generated)
        labels = torch.multinomial(p.double().cpu(), steps * self.generated, True, generator=g).view(shape)
        eps = torch.randn(*shape, self.noise, generator=g, dtype=torch.float64)
        inputs = torch.cat([eps, functional.one_hot(labels, len(p))], -1)
        return labels.to(p.device), inputs.to(p)

    def _generated(self, out: Outputs, z: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """The second term of (5): z (S, B, .), labels (S, B) -> (S,)."""
        each = functional.cross_entropy(out.head(z).flatten(0, 1), labels.flatten(), reduction="none")
        return self.reg * each.view(labels.shape).mean(1)

    def _slope(
        self, maker: Network, w: torch.Tensor, head: _Head, labels: torch.Tensor, inputs: torch.Tensor
    ) -> torch.Tensor:
        """The gradient of (4) in w on one batch."""
        leaf = w[None].clone().requires_grad_()
        with torch.enable_grad():
            z = maker.logits(leaf, inputs[None])
            loss = functional.cross_entropy(head(z)[0], labels)
            if self.diversity:
                eps = inputs[:, : self.noise]
                apart = (z[0, :, None] - z[0]).abs().mean(-1)
                loss = loss + self.diversity * (-(eps[:, None] - eps).square().mean(-1) * apart).mean().exp()
            return torch.autograd.grad(loss, leaf)[0][0]


METHODS = [
    Method(
        "FedGen",
        "full",
        lambda o: FedGen(o.lr, o.local_steps, generator_lr=0.005, server_steps=50),
        Card(
            "A generator of features tells clients what the others' labels look like.",
            "y -= eta grad(f_i + CE of generated features); server: Adam on the generator",
            "Without the generated term it is FedAvg (law). No rate here.",
            "The server trains as well; the generator and label counts cross besides the model.",
        ),
        command=lambda o: FedGen(o.lr, o.local_steps),
        needs="networks",
    ),
]
