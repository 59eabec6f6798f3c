"""The quick scale: what each paper's item claims, what its picture shows there, and what the committed run found.

Quick runs are small, tuned problems of seconds. They show an effect and are not judged. Where the effect takes longer,
the committed run is drawn, and the picture says so.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.figure import Figure

from fedtheory.core.files import write_atomic
from fedtheory.papers import style
from fedtheory.papers.store import Item, Result
from fedtheory.running import records
from fedtheory.running.records import Table


@dataclass(frozen=True)
class Text:
    """What is said of an item.

    Fields:
        claim: of the paper.
        see: in the quick picture.
        found: in the committed run; its numbers are the record's.
        committed: whether the quick scale draws that run.
    """

    claim: str
    see: str
    found: str
    committed: bool = False


TEXTS: dict[str, Text] = {
    "fedsub/fig1a": Text(
        "In the full space (P = I) FedSub converges exactly. In a subspace an error remains, the smallest with "
        "random coordinates (CD).",
        "our-P=I falls to rounding error. The three projections level off, our-RD highest; our-CD and our-SS lie "
        "close.",
        "Exact with P = I alone, as claimed. The error of RD is 3.72 times that of CD; that of SS is 1.13 times, "
        "which five seeds do not tell from 1.",
    ),
    "fedsub/fig1b": Text(
        "Dual variables lower the error that remains: in the full space to zero, in subspaces about 100 times.",
        "FedAvg is highest, then FedAvg-CD, then our-CD, which has dual variables. our-P=I falls to rounding error.",
        "The order holds without overlap. In subspaces the error is 2.55 times as large without dual variables, "
        "not 100 times.",
    ),
    "fedsub/fig1c": Text(
        "The larger the subspace, the smaller the error.",
        "The curves lie in the order of r: the largest subspace, r = 18, ends lowest.",
        "It holds: from r = 5 to 10 the error falls 11.8 times, from 10 to 15 1.53 times, from 15 to 18 2.19 times.",
    ),
    "fedsub/fig2": Text(
        "On CIFAR-100 a ResNet-110 reaches nearly 58% with FedSub, projected or not, and less with FedAvg.",
        "A ResNet-8 on CIFAR-10: FedAvg lies above both variants of FedSub.",
        "Reversed with a ResNet-8 on CIFAR-10: our-CD ends 6.93 points below FedAvg, our-P=I 8.32 points.",
        committed=True,
    ),
    "fedsub/table1": Text(
        "A client of FedSub uploads r d numbers in place of m d, and computes and stores less.",
        "Left the formulas, right our counts, both relative to FedAvg. FedSub's upload is a fifth; its bars of "
        "multiplications and memory are above 1.",
        "The upload is 200 numbers in place of 1000, as claimed. On this layer FedSub needs more multiplications "
        "and memory than FedAvg, in the formulas too.",
    ),
    "ssf/fig1a": Text(
        "At low heterogeneity all four methods converge; SCAFFOLD in the full space stays best, SSF is close to it.",
        "FedSub levels off highest. The three others end at the same level, SSF after more rounds.",
        "The printed levels are reached: SSF ends at 0.00755, SCAFFOLD at 0.00709, which five seeds do not tell apart.",
    ),
    "ssf/fig1b": Text(
        "At medium heterogeneity SCAFFOLD is best and SSF second, ahead of FedSub and FedAvg.",
        "FedSub levels off highest, FedAvg below it, SSF and SCAFFOLD lowest.",
        "SSF is second with 0.00812, FedAvg has 0.0106. FedSub, 0.0134, ends behind FedAvg; the paper has it ahead.",
    ),
    "ssf/fig1c": Text(
        "At high heterogeneity SCAFFOLD is best, SSF second; FedAvg and FedSub keep larger errors.",
        "FedAvg stops early and high. SSF falls more slowly and goes on towards SCAFFOLD's level; FedSub stays "
        "above SSF.",
        "Order and levels match: SCAFFOLD ends at 0.00205, SSF at 0.00347, FedAvg at 0.00374, FedSub at 0.00631.",
    ),
    "ssf/fig2a": Text(
        "At a tenth of the dimensions SSF is already near the methods of the full space.",
        "SSF falls more slowly than with larger r and ends below FedAvg; FedSub is above SSF.",
        "The levels match: SSF ends at 0.00372, FedAvg at 0.00374.",
    ),
    "ssf/fig2b": Text(
        "At a fifth of the dimensions SSF is ahead of FedAvg, behind SCAFFOLD.",
        "SSF crosses FedAvg's level and ends between it and SCAFFOLD.",
        "The levels match: SCAFFOLD ends at 0.00205, SSF at 0.00347, FedAvg at 0.00374.",
    ),
    "ssf/fig2c": Text(
        "At half of the dimensions SSF is near SCAFFOLD, and FedSub diverges to NaN.",
        "SSF reaches SCAFFOLD's level soon. FedSub stays finite and levels off above SSF.",
        "SSF matches. FedSub does not diverge in our reading: it ends at 0.00765.",
    ),
    "ssf/fig3": Text(
        "At half of the dimensions FedSub becomes unstable and ends in NaN.",
        "FedSub stays finite: it levels off above the other methods.",
        "Contradicted in our reading: FedSub ends at 0.0162. It diverges where absent clients go on stepping their "
        "duals (ssf/readings).",
    ),
    "ssf/fig4": Text(
        "On CIFAR-100 the order of final accuracies is SCAFFOLD, SSF, FedAvg, FedSub.",
        "A ResNet-8 on CIFAR-10: FedAvg ends above the three others.",
        "Reversed with a ResNet-8 on CIFAR-10: SSF ends 7.14 points below FedAvg, FedSub 8.51 points.",
        committed=True,
    ),
    "ssf/table1": Text(
        "A search over four rates chooses 0.01 at the two lower heterogeneities and 0.001 at the highest.",
        "Each curve is lowest at the rate of its dotted line; crosses at the top mark rates that diverge.",
        "The search chooses the printed rates in all five seeds: 0.01, 0.01 and 0.001.",
    ),
    "ssf/table2": Text(
        "At a fifth of the dimensions SSF is ahead of FedSub at every heterogeneity, and second to SCAFFOLD.",
        "In each column SSF lies below FedSub; the distance from FedAvg to SCAFFOLD grows with het.",
        "SSF is ahead of FedSub at all three: by 1.61, 1.64 and 1.82 times. SCAFFOLD's lead over SSF is sure at "
        "het = 2.0 alone.",
    ),
    "ssf/table3": Text(
        "The larger the subspace, the smaller SSF's error; a single direction of a hundred is far too few.",
        "SSF and FedSub fall from left to right, the full methods do not change.",
        "It holds: with r = 1 SSF's error is 123 times SCAFFOLD's, with r = 50 1.41 times.",
    ),
    "ssf/table4": Text(
        "At half of the dimensions FedSub ends in NaN at every heterogeneity, and SSF is near SCAFFOLD.",
        "FedSub is finite in every column, and above SSF.",
        "SSF matches. FedSub does not diverge in our reading: it ends at 0.0148, 0.0162 and 0.00765.",
    ),
    "ssf/table5": Text(
        "On CIFAR-100 SCAFFOLD ends at 52.92%, SSF at 45.43%, FedAvg at 34.35%, FedSub at 23.17%.",
        "A ResNet-8 on CIFAR-10: FedAvg's final accuracy is the highest.",
        "Reversed with a ResNet-8 on CIFAR-10: FedAvg ends 8.61 points above SCAFFOLD; SSF's 24.4% is open against "
        "SCAFFOLD's 22.9%.",
        committed=True,
    ),
    "mud/fig2": Text(
        "FedMUD and its variants converge faster than FedHM, FedLMT and FedPara.",
        "On the digits the four variants rise at once, BKD+AAD first; FedHM, FedLMT and FedPara stay below 40%.",
        "On Fashion-MNIST BKD+AAD lies on average 1.96 points above FedHM and 6.43 above FedPara; plain FedMUD's "
        "lead of 0.119 over FedHM stays open.",
    ),
    "mud/fig3": Text(
        "Accuracy falls where the update is reset more rarely (larger s).",
        "On the digits accuracy falls from left to right, most for AAD. FedMUD has no point at s = R: it diverged.",
        "Without resets BKD+AAD loses 3.61 points and FedMUD 1.17.",
    ),
    "mud/fig4": Text(
        "BKD needs larger initial values, and is less sensitive to them.",
        "On the digits BKD+AAD is best at the largest a, the others near 0.5; beyond it they diverge and have no "
        "point.",
        "BKD's best value is larger (11.2 against 1.6). That it is less sensitive stays open.",
    ),
    "mud/fig5": Text(
        "Accuracy grows as the compression weakens; at an eighth BKD+AAD is as good as FedAvg.",
        "On CIFAR-10 all four variants rise from 1/32 to 1/8; BKD+AAD meets FedAvg, the line at zero.",
        "All four variants gain, FedMUD 4 points. At an eighth BKD+AAD is 0.04 points from FedAvg.",
        committed=True,
    ),
    "mud/fig6": Text(
        "The variants converge faster under all three partitions.",
        "On the digits the variants lie above FedHM, FedLMT and FedPara in all three panels.",
        "On Fashion-MNIST N1 BKD+AAD lies 1.81 points above FedLMT; for plain FedMUD three of the nine comparisons "
        "are sure.",
    ),
    "mud/fig7": Text(
        "The sweeps over s, a and the ratio look alike under the other partitions.",
        "On the digits. A curve that ends at the left has diverged without resets (s = R).",
        "Not tested: run on the digits alone. Without resets AAD loses 45.8 points (N2) and 26.7 (IID), and FedMUD "
        "diverges.",
        committed=True,
    ),
    "mud/table1": Text(
        "Under label skew BKD+AAD is the most accurate compression to a 32nd, and stays behind FedAvg.",
        "On the digits BKD+AAD lies nearest to FedAvg, far ahead of FedHM, FedLMT and FedPara. In N2 a run of "
        "FedMUD+BKD diverged and has no point.",
        "On Fashion-MNIST (N1) BKD+AAD is 2.25 points ahead of FedHM and 0.933 behind FedAvg. Its lead of 0.89 "
        "over FedBAT stays open.",
    ),
    "mud/table2": Text(
        "Decoupled factors (AAD) are more accurate than a frozen one (F).",
        "On the digits (N1) AAD lies about 3 points above F in the mean, within the bars; with BKD the two are level.",
        "On CIFAR-10 AAD gains 1.28 points over F, with BKD 1.61 points. On Fashion-MNIST neither gain is sure.",
    ),
    "mud/table3": Text(
        "Without label skew BKD+AAD is again the most accurate compression.",
        "On IID digits BKD+AAD is level with FedAvg; FedHM, FedLMT and FedPara are far behind.",
        "On Fashion-MNIST BKD+AAD is 2.1 points ahead of FedHM; EF21-P, 0.257 points behind it, stays open.",
    ),
    "mud/table4": Text(
        "Decoupling beats freezing under the two other partitions, too.",
        "On the digits AAD's gain over F lies within the bars in both partitions; with BKD the two are level.",
        "On Fashion-MNIST no gain is sure: with BKD it is 0.065 points (N2) and 0.15 (IID). The paper prints 0.2 "
        "and 0.1.",
    ),
    "mud/table5": Text(
        "On a ResNet-18 BKD+AAD is ahead of FedLMT and nearest to FedAvg.",
        "The paper's numbers alone: none of these runs was made here.",
        "Not tested: such a run takes hours on a GPU.",
        committed=True,
    ),
    "flss/fig1a": Text(
        "Training goes on after it is restricted to the subspace; the loss rises a little at first.",
        "On the digits the loss goes on falling after T0. It does not rise at once; at the end FLSS lies above FedAvg.",
        "The loss falls further, by 0.0913. A rise at the start of the subspace is not sure.",
    ),
    "flss/fig1bcd": Text(
        "The updates lie near a space of few dimensions, fewer for smaller networks.",
        "On the digits the perceptron's singular values fall faster than those of ResNet-8.",
        "It holds: the CNN's first three directions have 0.104 more of the energy than ResNet-8's, and these 0.2 "
        "more than ResNet-20's.",
    ),
    "flss/fig2": Text(
        "With FLSS features become more distinct than with FedAvg.",
        "On the digits classes part from T = 3 to T = 30. In the end FLSS and FedAvg look alike.",
        "Reversed: the silhouette is 0.176 with FLSS and 0.189 with FedAvg.",
    ),
    "flss/table1": Text(
        "Projecting the update of a round beats projecting gradients, or both.",
        "On the digits all three are level at sr = 1. At sr = 3 updates lose accuracy, gradients and both do not.",
        "At sr = 1 it holds: gradients are 1.31 points behind updates. At sr = 3 it is reversed: they are 2.44 ahead.",
    ),
    "flss/table2": Text(
        "FLSS improves FedAvg and sign compression at every heterogeneity.",
        "On the digits FedAvg+FLSS lies below FedAvg, most at beta = 0.1, and Sign+EF+FLSS below Signsgd+EF.",
        "Reversed: on Fashion-MNIST in full FLSS ends 0.432, 0.322 and 0.172 points below FedAvg.",
    ),
    "flss/table3": Text(
        "FLSS improves FedAvg most with one local epoch, and cuts the upload to a fifth after its warm-up.",
        "On the digits nothing gains by FLSS: level with FedAvg at one epoch, below it at five and ten.",
        "The cost matches. Accuracy does not: with one epoch FLSS ends 2.95 points below FedAvg; a gain of 2.43 is "
        "printed.",
    ),
    "flss/table4": Text(
        "FLSS is more accurate than LBGM at about the same cost.",
        "On the digits FLSS lies below LBGM at beta = 0.5 and 1; at 0.1 three seeds leave it open.",
        "Not tested: LBGM sent nearly every model in our runs, so the costs are not the same.",
    ),
    "decomfl/fig2a": Text(
        "More local steps K converge faster.",
        "On the digits K = 4 rises above K = 1 in the same rounds. It sends as much in 20 rounds as K = 1 in 80.",
        "It holds: after 60 rounds K = 4 is 32.1 points above K = 1. Perturbations gain less, against the text.",
    ),
    "decomfl/fig2b": Text(
        "More perturbations P give a higher accuracy in the end.",
        "On the digits the curves end in the order of P, with P = 20 highest; the bands overlap on the left.",
        "Open after 240 rounds: P = 40 is 6.12 points above P = 10, and the interval has both signs.",
    ),
    "decomfl/fig3a": Text(
        "DeComFL needs more rounds than FedAvg and FedCom; Top-k alone is slower.",
        "On the digits DeComFL's loss falls most slowly. Top-k lies between it and FedAvg, which FedCom covers.",
        "DeComFL is slower, by 27.5 times the rounds. Top-k is not: its loss ends 1.29 below DeComFL's.",
    ),
    "decomfl/fig3b": Text(
        "DeComFL reaches an accuracy with many times fewer numbers than FedAvg, FedCom or Top-k.",
        "On the digits DeComFL is at its level after some thousand numbers; the others need several times as many.",
        "To DeComFL's 57.5% FedAvg sends 709 times as many numbers. A single round of FedAvg sends more than the "
        "whole run, so this could not fail.",
    ),
    "decomfl/fig4": Text(
        "Differences of losses beat projected gradients and bear more rates.",
        "On the digits three kinds of scalars give the same curves at every rate: below, the bands contain zero.",
        "Open at all three rates: the difference is 0.337 points at 0.001, and the interval has both signs.",
    ),
    "decomfl/fig5a": Text(
        "Most eigenvalues of the Hessian of a trained network are near zero.",
        "On the digits nearly all of the density lies at zero, by Lanczos as by all eigenvalues.",
        "It holds: 98.6% lie below a hundredth of the largest.",
    ),
    "decomfl/fig5b": Text(
        "The number of rounds hardly grows with the size of a language model.",
        "The authors' logs: larger models end higher, in about as many rounds.",
        "Not tested: these are the authors' logs; no such model was run here.",
        committed=True,
    ),
    "decomfl/fig6": Text(
        "Top-k loses accuracy where it sends less, and still sends far more than DeComFL.",
        "On the digits 1% of the entries is far behind 5% and 10%, which are level. DeComFL sends least.",
        "Open: from 10% to 5% Top-k loses 1.01 points, from 5% to 1% 2.51 points; three seeds are too few.",
    ),
    "decomfl/table1": Text(
        "What crosses in a round is a few numbers, however large the model is.",
        "On a logarithmic axis ours (dots) lie on the formulas (diamonds). DeComFL's are the smallest.",
        "The counts match: 100 numbers up per round in place of FedAvg's 48100. Clients that missed rounds "
        "download 2106.",
    ),
    "decomfl/table2": Text(
        "Fine-tuning OPT-1.3B takes DeComFL about 1 MB, where FedZO sends terabytes.",
        "Ours (dots) lie near the printed costs (diamonds), but for two of DeComFL with OPT-1.3B and one of FedZO.",
        "The costs follow from the printed rounds, but for three. No accuracy was tested: the models were not at hand.",
    ),
    "decomfl/table4": Text(
        "A client needs about its model's memory, the server next to none.",
        "Dots and diamonds meet where the claim holds. Clients of DeComFL lie above 1.",
        "A client needs 1.23 times its model for ResNet-18 and 2.1 times for the small CNN, whose largest layer is "
        "nearly all of it.",
    ),
    "decomfl/table5": Text(
        "The printed rounds and bytes agree.",
        "Dots lie on the diamonds, but for two rows of OPT-1.3B.",
        "They agree but for two rows, whose bytes pay for 10 times the printed rounds.",
    ),
    "decomfl/table6": Text(
        "With adapters fine-tuning is as accurate and as cheap.",
        "Ours (dots) lie a quarter above the printed costs (diamonds) of DeComFL.",
        "The costs are 1.25 times those of the printed rounds. No accuracy was tested.",
    ),
}


def drawn() -> list[str]:
    """The items whose committed run is drawn."""
    return [name for name, text in TEXTS.items() if text.committed]


def captioned(item: Item) -> Item:
    """The item, with what to see below its picture; our own pictures stay as they are."""
    if item.name not in TEXTS:
        return item

    def draw(table: Table) -> Figure:
        figure = style.with_caption(item.draw(table), table)
        return style.below(figure, f"See: {TEXTS[item.name].see}")

    return replace(item, draw=draw)


def unjudged(result: Result) -> Result:
    """A quick result, without the numbers of small problems: nothing printed stands beside them."""
    return replace(result, cells=[cell for cell in result.cells if cell.ran != "smoke"])


def committed(out: Path, name: str) -> Path | None:
    """The folder that holds an item's committed run, no quick one of today: `out`, or that of `records.results`."""
    for folder in dict.fromkeys((out, records.results())):
        made = records.made(folder, name)
        if made and (TEXTS[name].committed or records.load(folder, name, pictured=False)["scale"] != "quick"):
            return folder
    return None


def draw_committed(out: Path, item: Item) -> bool:
    """Write `<out>/quick/<item>.png`, the committed run's picture, which says that it is; whether that run is there."""
    folder = committed(out, item.name)
    if folder is None:
        return False
    record = records.load(folder, item.name, pictured=False)
    figure = style.with_caption(item.draw(record["table"]), record["table"])
    said = f"Drawn from the committed run, {record['scale']} scale. See: {TEXTS[item.name].see}"
    path = (out / "quick" / item.name).with_suffix(".png")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, style.save_bytes(style.below(figure, said)))
    return True


def picture(out: Path, name: str) -> Path | None:
    """An item's quick picture, where there is one."""
    beside = (out / "quick" / name).with_suffix(".png")
    if beside.exists():
        return beside
    quick = records.made(out, name) and records.load(out, name, pictured=False)["scale"] == "quick"
    return (out / name).with_suffix(".png") if quick else None
