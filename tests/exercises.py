"""Answers to every exercise of the notebooks: right ones in two forms, typical wrong ones, and what is said of each.

EXERCISES[notebook][exercise]: "right" (code that is put after `answer = `; the folded solution is the first form and
stands in the notebook), "wrong" (code, and words that the refusal must contain), "tells": patterns that must not stand
above the solution, beside the answer itself; "open": not searched for above, since more than one number is right, or
since it is a small count.
"""

from typing import Any

Exercise = dict[str, Any]

EXERCISES: dict[str, dict[int, Exercise]] = {
    "00_tour": {
        1: {
            "right": ["2 * (10 * 30) * 64 // 8", "4800.0"],
            "wrong": {"10 * 30 * 8": "one matrix", "2 * 10 * 30": "not bytes", "200 * 30 * 8": "whole model"},
        },
        2: {
            "right": ["sum(two.error(resting_point(0.003, K)) <= 0.01 for K in range(1, 80))"],
            "wrong": {"1": "too few", "90": "too many", "14.5": "is whole", "None": "is whole"},
        },
        3: {
            "right": ["Quadratic(torch.eye(2).expand(2, 2, 2), torch.tensor([[0.0, 0.0], [0.0, 1.5]]))"],
            "wrong": {
                "Quadratic(H, b)": "different speeds",
                "Quadratic(H, torch.zeros(2, 2))": "less than 1 apart",
                "Quadratic(H[:1].expand(2, 2, 2), b / 100)": "less than 1 apart",
            },
        },
    },
    "01_subspaces": {
        1: {
            "right": ["int(46 / 2 + 1)"],
            "wrong": {"23.5": "whole number", "23": "equally bad", "12": "Too small", "40": "Too large"},
        },
        2: {
            "right": ["lambda m, r: 1 / ((m + r + 1) / r)"],
            "wrong": {
                "lambda m, r: r / (m + r)": "a little less is better",
                "lambda m, r: r / m": "a little less is better",
                "lambda m, r: 1.0": "a little less is better",
                "lambda m, r: r / (m + 2 * r + 1)": "a little more is better",
            },
        },
        3: {
            "right": ["math.log(0.01, 0.95)", "90"],
            "wrong": {"20": "visited twice", "19.8": "visited twice", "45": "90%", "math.inf": "One finite number"},
        },
    },
    "02_fedsub": {
        1: {
            "right": ["math.ceil(17 / math.log10(3))", "36.0"],
            "wrong": {"18": "mean square", "35": "One round earlier", "34": "m/r = 10", "16": "powers of ten"},
        },
        2: {
            "right": ["lambda dual: dual - dual.sum(0) / len(dual)"],
            "wrong": {
                "lambda dual: dual": "do not average to zero",
                "lambda dual: 0 * dual": "differences have changed",
                "lambda dual: dual - dual[0]": "do not average to zero",
                "lambda dual: dual - dual.mean(1, keepdim=True)": "differences have changed",
            },
        },
        3: {
            "right": ["0.06"],
            "open": True,
            "wrong": {"0.2": "times that without", "0.5": "Outside", "0.001": "Outside"},
        },
    },
    "06_flss": {
        1: {
            "right": ["lambda P, g: P.lift(P.project(2 * g)) / 2"],
            "wrong": {
                "lambda P, g: P.project(g)": "coordinates",
                "lambda P, g: g": "Nothing was projected",
                "lambda P, g: g - P.lift(P.project(g))": "what is lost",
                "lambda P, g: 2 * P.lift(P.project(g))": "not the projection",
            },
        },
        2: {
            "right": ["held_by(1 / torch.arange(1.0, 201))", "float(held_by(slow**2))"],
            "wrong": {
                "held_by(slow**2) - 1": "Too small",
                "held_by(slow**2) + 1": "Too large",
                "held_by(slow)": "not of their squares",
                "160": "share of their number",
                "4": "Too small",
            },
        },
        3: {
            "right": ["67"],
            "wrong": {"66": "One more", "133": "more than a third", "68": "more than a third", "66.7": "is whole"},
        },
    },
    "07_decomfl": {
        1: {
            "right": ["13 * (10 + 10 + 200) / 100", "28.6"],
            "wrong": {"27.3": "seeds of the round", "15.6": "two numbers each", "286": "per participant", "13": "K P"},
        },
        2: {
            "right": ["1 / 32", "0.03125"],
            "wrong": {"2 / 62": "2/d", "1 / 64": "Half", "2": "gradient descent's", "2 / 63": "d + 1"},
        },
        3: {
            "right": ["lambda x, Z, g, eta: x - eta * (Z * g[:, None]).mean(0)"],
            "wrong": {
                "lambda x, Z, g, eta: x - eta * g @ Z": "the sum",
                "lambda x, Z, g, eta: x + eta * g @ Z / len(g)": "sign",
                "lambda x, Z, g, eta: x - g @ Z / len(g)": "eta is missing",
                "lambda x, Z, g, eta: x - eta * g[0] * Z[0]": "elsewhere",
            },
        },
    },
    "08_frontier": {
        1: {
            "right": ["[2, 4]", "(2.0, 4.0)"],
            "wrong": {
                "(1, 4)": "surely better",
                "(2, 3)": "surely worse",
                "(3, 3)": "means",
                "(4, 2)": "First the best",
            },
        },
        2: {
            "right": ["4 * (4810 // 32 + 1) + 4", "608.0"],
            "wrong": {"604": "the scale", "4810 / 8 + 4": "Words are whole", "4842": "bits", "19240": "FedAvg"},
        },
        3: {
            "right": [
                "lambda rows, axis: [a['method'] for a in rows for b in rows "
                "if b[axis] <= a[axis] and a['high'] < b['low']]"
            ],
            "tells": [r"b\[axis\] <= a\[axis\]"],
            "wrong": {
                "lambda rows, axis: {a['method'] for a in rows} - {'SCAFFOLD'}": "surely the best",
                "lambda rows, axis: {a['method'] for a in rows if any(b[axis] <= a[axis] and "
                "b['quality'] > a['quality'] for b in rows)}": "means alone",
                "lambda rows, axis: {a['method'] for a in rows if any(b['low'] > a['high'] for b in rows)}": (
                    "means alone"
                ),
                "lambda rows, axis: {a['method'] for a in rows if any(b[axis] < a[axis] and "
                "b['low'] > a['high'] for b in rows)}": "no more",
                "lambda rows, axis: {'tie'} & {a['method'] for a in rows}": "On the digits",
            },
        },
    },
    "09_language_models": {
        1: {
            "right": ["lambda mask: mask * (mask.cumsum(1) - 1)"],
            "wrong": {
                "lambda mask: mask.cumsum(1)": "position 0",
                "lambda mask: mask.cumsum(1) - 1": "negative",
                "lambda mask: torch.arange(mask.shape[1]).expand(mask.shape)": "Padding counts",
                "lambda mask: 0 * mask": "count 0, 1, 2, 3",
            },
        },
        2: {
            "right": ["lambda v, w: v.softmax(1)[:, w].log()"],
            "wrong": {
                "lambda v, w: v[:, w].log_softmax(1)": "left out",
                "lambda v, w: v.softmax(1)[:, w]": "never positive",
                "lambda v, w: v[:, w] - v.max()": "left out",
                "lambda v, w: v.log_softmax(1)": "per text and word",
            },
        },
        3: {
            "right": ["10 * round(0.24e12 / (0.25 * 8 * 125.2e6) / 10)", "960.0"],
            "wrong": {"240": "quarter", "1920": "up and down", "958": "whole tens", "1": "thousands"},
        },
    },
    "10_deep": {
        1: {
            "right": ["64 * 128 * 10", "81920.0"],
            "wrong": {
                "2 * 2 * 64 * 128": "not the height",
                "25 * 64 * 128": "whole layer",
                "3 * 5 * 64 * 128": "not train",
            },
        },
        2: {
            "right": ["1600 * 2 // 5", "640.0"],
            "wrong": {"2": "2 of 1,600", "10": "one kernel", "81920": "number of trained", "1600": "whole layer"},
        },
        3: {
            "right": ["lambda lr0, tau0, lr, tau: (lr / lr0) * (tau / tau0)"],
            "wrong": {
                "lambda lr0, tau0, lr, tau: 0.4": "times what it was",
                "lambda lr0, tau0, lr, tau: lr / lr0": "times what it was",
                "lambda lr0, tau0, lr, tau: lr0 * tau0 / (lr * tau)": "times what it was",
                "lambda lr0, tau0, lr, tau: 1": "times what it was",
            },
        },
    },
}
