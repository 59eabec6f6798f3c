"""Answers to every exercise of the notebooks: right ones in two forms, typical wrong ones, and what is said of each.

EXERCISES[notebook][exercise]: "right" (code that is put after `answer = `; the folded solution is the first form and
stands in the notebook), "wrong" (code, and words that the refusal must contain), "tells": patterns that must not stand
above the solution, beside the answer itself; "open": not searched for above, since more than one number is right, or
since it is a small count.
"""

from typing import Any

Exercise = dict[str, Any]

EXERCISES: dict[str, dict[int, Exercise]] = {
    "03_ssf": {
        1: {
            "right": ["1 + int(math.log(1e-4) / math.log(1 - 2 / 64))", "291.0"],
            "wrong": {"290": "One round earlier", "32": "of the start", "295": "approximated", "146": "1%"},
        },
        2: {
            "right": ["lambda c, P, g: c - P.lift(P.project(c - g))"],
            "wrong": {
                "lambda c, P, g: P.lift(P.project(g))": "Outside the subspace",
                "lambda c, P, g: c + P.lift(P.project(g))": "is not g",
                "lambda c, P, g: P.project(g)": "lift what you projected",
                "lambda c, P, g: g": "Outside the subspace",
            },
        },
        3: {
            "right": ["int(74 / 2) + 1"],
            "wrong": {"37": "exactly as far", "10": "Too small", "60": "Too large", "37.5": "whole number"},
        },
    },
    "04_theory_ledger": {
        1: {
            "right": ["min(K for K in range(2, 60) if kept_ratio(K) > 1)"],
            "wrong": {"15": "still holds", "60": "One local step less", "31.5": "is whole", "2": "still holds"},
        },
        2: {
            "right": ["lambda L, rho: 0.0625 * rho / L", "lambda L, rho: rho / (19 * L)"],
            "tells": [r"rho\s*/\s*\(?\s*16", r"1\s*/\s*16\b"],
            "wrong": {
                "lambda L, rho: rho / (20 * L)": "Too small",
                "lambda L, rho: rho / 16": "Units",
                "lambda L, rho: 1 / (32 * L)": "as large as needed",
                "lambda L, rho: 1": "Units",
                "lambda L, rho: 1 / L": "as large as needed",
            },
        },
        3: {
            "right": ["0.102"],
            "open": True,
            "wrong": {"0.2": "still stands", "0.05": "breaks the lemma", "1.0": "still stands"},
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
