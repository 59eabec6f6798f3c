"""The book's parts that need no Sphinx: statements in LaTeX, mathematics from ASCII, folded cells, links, the primer.

That every page opens in a browser is `make book-check`; that Sphinx has no warning is `make book`.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import claim_pages
import item_pages
import mathematics
import method_pages
import moving_pages
import nbformat
import notebook_pages
import pages
import proof_pages
import pytest
import stage
import used

from fedtheory.core import registry
from fedtheory.course.moving import PICTURES
from fedtheory.running import verdicts
from fedtheory.theory import ledger
from fedtheory.theory.letters import GREEK, HIGH, LOW, letters, untex
from fedtheory.theory.statements import statements

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "book"


def load(name: str, path: Path):
    """A script that is no module of the package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


builder = load("build_notebooks", ROOT / "notebooks" / "build.py")
browser = load("browser", BOOK / "browser.py")
check = load("check_book", BOOK / "check.py")


STATED = {id: one for paper in registry.PAPERS for id, one in statements(paper).items()}


def test_plain_words_fit_in_a_cell_of_a_table():
    assert [id for id, one in STATED.items() if "|" in one.words] == []


def ascii_left(text: str) -> list[str]:
    """Words outside of dollars that are mathematics in ASCII."""
    outside = re.sub(r"\$[^$]*\$|`[^`]*`", " ", text)
    return re.findall(r"\S*(?:\w[_^]\{?\w|<=|>=|\|\|)\S*", outside)


def test_statements_hold_no_ascii_mathematics():
    for id, one in STATED.items():
        assert ascii_left(one.latex) == [], id
        assert ascii_left(one.words) == [], id
        assert one.latex.count("$") % 2 == 0, id
        for formula in re.findall(r"\$([^$]*)\$", one.latex):
            assert formula.count("{") - formula.count(r"\{") == formula.count("}") - formula.count(r"\}"), id
            assert len(re.findall(r"\\left\b", formula)) == len(re.findall(r"\\right\b", formula)), id


def test_ascii_mathematics_is_seen():
    assert ascii_left("so E||x||^2 <= sigma^2 here") == ["E||x||^2", "<=", "sigma^2"]
    assert ascii_left(r"so $x_i^2$ and `y_i` here") == []


ASCII = {  # what a reader would have to translate -> how it is found
    "a Greek letter": rf"(?<![\w./'\"-])(?:{'|'.join(GREEK)})(?![A-Za-z0-9('-]|_\w{{2}}|\.\w|/[a-z]{{2}})",
    "a power": r"[\w)\]|}]\^[\w{*+-]",
    "an index": rf"(?<![\w.-])[A-Za-z]_(?:[{''.join(filter(str.isalnum, LOW))}](?![A-Za-z])|\{{)",
    "a sign": r"<=|>=|!=|\|\||(?<![-<=\w])->|\bsqrt\b",
}
UNSEEN = re.compile(  # code, formulas, tags, targets of links, attributes
    r"```.*?```|<pre>.*?</pre>|<style.*?</style>|<script.*?</script>|<span class=\"math.*?</span>|`[^`]*`|\$\$.*?\$\$|"
    r"(?<!\\)\$(?:[^$\\]|\\.)*\$|<[A-Za-z/!][^>]*>|\]\([^)]*\)|\{\.[^}]*\}|\{\w+\}|https?://\S+",
    re.DOTALL,
)
LISTS = re.compile(
    r"getsource|^box\(|print\(source|Texts|python -m", re.MULTILINE
)  # cells that print code or data, as it is


def read(path: Path):
    """What a reader of a staged page sees of it in letters: (place, text)."""
    if path.suffix == ".md":
        yield "", re.sub(r"\\(.)", r"\1", UNSEEN.sub(" ", path.read_text()))
        return
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "markdown":
            yield f"cell {number}", re.sub(r"\\(.)", r"\1", UNSEEN.sub(" ", cell.source))
        else:
            yield f"caption of cell {number}", cell.metadata.get("mystnb", {}).get("code_prompt_show", "")
            if not LISTS.search(cell.source):
                yield from ((f"output of cell {number}", said(output)) for output in cell.outputs)


def said(output) -> str:
    """The words of an output, of a picture none."""
    data = output.get("data", {})
    return output.get("text", "") + (data.get("text/plain", "") if "text/html" in data else "")


def ascii_mathematics(path: Path) -> list[str]:
    """Lines of a staged page with mathematics that nobody set."""
    return [
        f"{path.name}, {place}: {found[0]!r} is {kind} in ASCII: {line.strip()[:120]}"
        for place, text in read(path)
        for kind, pattern in ASCII.items()
        if re.search(pattern, text)  # of most pages nothing is read line by line
        for line in text.splitlines()
        if (found := re.search(pattern, line))
    ]


@pytest.fixture(scope="module")
def staged(tmp_path_factory) -> Path:
    """All pages as Sphinx reads them, without the frames of the pictures that move."""
    folder = tmp_path_factory.mktemp("book")
    with pytest.MonkeyPatch.context() as patch:
        frames = {name: [("frame.png", "words")] * len(list(one.settings())) for name, one in PICTURES.items()}
        patch.setattr(moving_pages, "write", lambda stage: frames)
        pages.write(stage.Stage(folder))
    return folder


def test_no_page_shows_mathematics_in_ascii(staged):
    """A name of the code stands in backticks; a formula in dollars, an output in the letters of mathematics."""
    paths = [path for path in sorted(staged.rglob("*")) if path.suffix in (".md", ".ipynb")]
    assert len(paths) > 250
    faults = [fault for path in paths for fault in ascii_mathematics(path)]
    assert faults == [], "\n".join(faults)


def test_mathematics_in_ascii_is_found(tmp_path):
    """As pages had it: in prose, in a table of numbers, in the name and in the reason of a number."""
    old = {
        "the rate is O(sqrt(d/(mPKR)))": "'sqrt' is a sign",
        "<table><tr><th>eta_l</th><td>1/8</td></tr></table>": "'eta' is a Greek letter",
        "| CIFAR-10 beta=0.1 LBGM | 25.1 |": "'beta' is a Greek letter",
        r"finite here: P P\^T = I": "'P^T' is a power",
        r"client i's part, c\_i": "'c_i' is an index",
        r"E\|\|g\|\| of all": "'||' is a sign",
    }
    page = tmp_path / "page.md"
    for text, said in old.items():
        page.write_text(f"# Page\n\n{text}\n")
        assert said in " ".join(ascii_mathematics(page)), text
    page.write_text("$\\eta_l^2 \\le 1$, `eta_l <= 1`, [ηₗ](beta^2.md), eta.json, local_steps, a-b\n")
    assert ascii_mathematics(page) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("E||x_i||^2 <= sigma^2", "E‖xᵢ‖² ≤ σ²"),
        ("(P^{k+1})^T P^k: by e^{lambda k}", "(Pᵏ⁺¹)ᵀ Pᵏ: by e^(λ k)"),
        ("|grad F_i(x^t)| and sum_i xbar_i, eta~", "|∇Fᵢ(xᵗ)| and ∑ᵢ x̄ᵢ, η̃"),
        ("rho_R of C_g, x* -> 1/sqrt T", "ρ_R of C_g, x* → 1/√T"),
        ("U (x) V~, F (x) is", "U ⊗ V\u0303, F (x) is"),
        ("local_steps, c_proj, t_decomfl.py::test_a_b, eta(x)", "local_steps, c_proj, t_decomfl.py::test_a_b, eta(x)"),
    ],
)
def test_outputs_are_in_the_letters_of_mathematics(text, shown):
    assert letters(text) == shown


def test_labels_of_pictures_without_their_tex():
    assert untex(r"$\|x^k-x^\star\|\,/\,\|x^\star\|$, one seed") == "‖xᵏ - x⋆‖ / ‖x⋆‖, one seed"
    assert untex(r"$\frac{1}{n}\sum_i\bar\xi_i$ and $\sqrt{m/r}$") == "(1/n) ∑ᵢ ξ̄ᵢ and √(m/r)"


@pytest.mark.parametrize(
    ("tex", "shown"),
    [
        (r"\mathcal E_{i,t}\le6K^2\eta_l^2\sigma^2", "ℰ_{i,t} ≤ 6K²ηₗ²σ²"),
        (r"\frac1{2KL}, \frac L2\Vert x\Vert^2, \frac{8(a+b)}{\rho T}", "1/(2KL), (L/2)‖x‖², 8(a + b)/(ρT)"),
        (r"\frac{a+b}c+\frac{\frac ab}c", "(a + b)/c + (a/b)/c"),
        (r"-\eta\sum_{k=0}^{K-1}c_{i,proj}^{t}", "-η ∑ₖ₌₀ᴷ⁻¹ c_{i,proj}ᵗ"),
        (r"\mathbb E[\Vert\xi\Vert^2\mid y]=\langle a,b\rangle", "E[‖ξ‖² | y] = ⟨a, b⟩"),
        (r"P^\top, x^*, x_{res}, \tilde\eta:=2\cdot10^{-3}, 25{,}000", "Pᵀ, x⋆, x_res, η̃ := 2 · 10⁻³, 25,000"),
        (r"\sqrt{mn}, \sqrt[4]\kappa, \binom NM, \min\{a,b\}", "√(mn), ⁴√κ, C(N, M), min{a, b}"),
        (r"\begin{bmatrix}a\\b\end{bmatrix}, \mathrm{tr}\,H, \mathrm{rank}(W)", "[a; b], tr H, rank(W)"),
    ],
)
def test_latex_as_a_line_of_a_terminal(tex, shown):
    assert untex(f"${tex}$") == shown


def test_no_number_and_no_greek_letter_of_a_statement_is_lost():
    signs = {**{small: sign for sign, small in HIGH.items()}, **{small: sign for sign, small in LOW.items()}}
    for id, one in STATED.items():
        text = "".join(signs.get(letter, letter) for letter in untex(one.latex))
        assert re.findall(r"\d", one.latex) == re.findall(r"\d", text), id
        assert not re.search(r"[$\\]", text), id
        inside = " ".join(re.findall(r"\$([^$]*)\$", one.latex))
        for name in GREEK.keys() - {"eps"}:
            found = re.findall(rf"\\(?:var)?{name}(?![A-Za-z])", inside)
            assert len(found) == text.count(GREEK[name]), (id, name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("noise of E||g_i||^2 <= sigma^2 only", r"noise of $\mathbb E\Vert g_{i}\Vert ^{2} \le  \sigma ^{2}$ only"),
        ("with c^0 = (1/N) sum_i c_i^0, a mean", r"with $c^{0} = (1/N) \sum _{i}\,c_{i}^{0}$, a mean"),
        ("E[|xi|^2 | y] is given", r"$\mathbb E[\vert \xi \vert ^{2} \mid  y]$ is given"),
        ("each f_i is L_f-smooth (so is f)", "each $f_{i}$ is $L_{f}$-smooth (so is f)"),
        ("with {'lr': 0.5, 'T': 8} it ends", "with lr = 0.5, $T = 8$ it ends"),
        ("for a client (eta = 1)", r"for a client ($\eta  = 1$)"),
        ("has A = S^(1 - share) V^T, too", r"has $A = S^{1 - \mathrm{share}} V^{\top}$, too"),
        (
            "blocks U (x) V~, w 8 x 1, (c k) x (d k), R^{D x J}",
            "blocks U ⊗ V\u0303, w 8 × 1, (c k) x (d k), $R^{D\\,\\times \\,J}$",
        ),
        ("P^perp, of [1.0, 2, 3e-4] and [1, 2]", r"$P^{\perp}$, of (1.0, 2, 3e-4) and \[1, 2\]"),
        ("a word, a test and I", "a word, a test and I"),
        ("sides [[0.0, -1.5], [1, 2]] at Edge(N=6, noisy=False)", "sides (0, -1.5; 1, 2) at $N = 6$, noisy = no"),
    ],
)
def test_sentences_of_the_ledger_are_set(text, shown):
    assert mathematics.prose(text) == shown


def test_an_items_numbers_are_a_table_and_its_runs_are_in_words():
    found = item_pages.notes(["Said: of 2.", "SSF, best: 0.3", "SSF, best, low: 0.2", "SSF, best, high: 0.4", "q: inf"])
    assert found[0] == "- Said: of 2."
    assert [line for line in found if line.startswith("| ")][1:] == [r"| SSF, best | 0.3 \[0.2, 0.4\] |", "| q | inf |"]
    rows = [{"ran data": "quadratics, 1 clients", "ran network": "none", "ran rounds": 1}]
    assert item_pages.ran_words(rows) == "quadratics, 1 client, 1 round"


def test_every_set_run_is_sound():
    """Of all sentences of the ledger: brackets match, no index on an index, no object of the code is left."""
    for record in claim_pages.records():
        for part in (record["detail"], record["control"], record["caveat"], record["repaired"], record["implies"]):
            shown = mathematics.prose(part)
            for formula in re.findall(r"(?<!\\)\$([^$]*)(?<!\\)\$", shown):
                assert formula.replace(r"\{", "").count("{") == formula.replace(r"\}", "").count("}"), record["id"]
                assert not re.search(r"[_^]\{[^{}]*\}\s*\^\{[^{}]*\}\s*\^|_\{[^{}]*\}\s*_\{", formula), record["id"]
            assert not re.search(r"\b[A-Z]\w+\(\w+=", shown), record["id"]


def test_numbers_have_no_marks_of_python():
    shown = claim_pages.numbers(
        {"h": [["1/2", "0"], ["1", 2.5]], "reuse": False, "also": [{"K": 2}, {"K": 3}], "left": None}
    )
    assert "<td>1/2</td><td>0</td>" in shown
    assert "<th>reuse</th><td>no</td>" in shown
    assert "<thead><tr><th>K</th></tr></thead>" in shown
    assert not re.search(r"[\[\]']|False|None", shown)


def test_every_verdict_has_a_colour():
    for word in (*verdicts.VERDICTS, *ledger.VERDICTS):
        assert re.fullmatch(rf"\[{re.escape(word)}\]\{{\.verdict \.(good|partly|bad|open)\}}", stage.badge(word))
    assert stage.badge(verdicts.VERDICTS[0]).endswith(".good}")
    assert stage.badge(ledger.VERDICTS[-1]).endswith(".open}")


def test_every_method_has_its_row_for_its_card():
    assert set(method_pages.counted()) == set(registry.method_names())


def test_a_folded_cell_is_named_by_its_first_line():
    assert (
        notebook_pages.caption("# Picture: the drift over the step\nfigure = 1") == "Picture: the drift over the step"
    )
    assert notebook_pages.caption("figure = 1\n# a remark") == "the code"


def test_every_picture_says_what_is_seen(staged):
    """A sentence of its own for every picture of the notebooks and of the pages; frames say their setting."""
    sentences = json.loads((staged / "_ext" / "alternatives.json").read_text())
    for path in used.NOTEBOOKS:
        found = dict(notebook_pages.alternatives(nbformat.read(path, as_version=4)))
        assert all(re.fullmatch(r"\S.{20,}\.", sentence) and "$" not in sentence for sentence in found.values()), path
        assert found.items() <= sentences.items()
    assert len(sentences) > 90
    for path in staged.rglob("*.md"):
        for words, file in re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", path.read_text()):
            assert len(words.split()) > 3, (path.name, file)


def test_a_folded_cell_is_hidden_in_a_notebook_too(tmp_path):
    (tmp_path / "n.py").write_text('# %% tags=["hide-input"]\n# Checks: one\nassert 1\n\n# %%\nprint(1)\n')
    hidden, shown = (cell.metadata for cell in builder.read_source(tmp_path / "n.py").cells)
    assert hidden == {"tags": ["hide-input"], "jupyter": {"source_hidden": True}}
    assert shown == {}


def test_a_cell_with_a_picture_that_moves_becomes_its_sliders(monkeypatch, tmp_path):
    """All frames are in the page, in the order in which book.js counts them; the first one stands without a script."""
    picture = PICTURES["kronecker"]
    small = replace(picture, sliders={"ratio": (1 / 4, 1.0), "shape": ("6 x 3", "2 x 2")}, start={"shape": "2 x 2"})
    monkeypatch.setattr(moving_pages, "PICTURES", {"kronecker": small})
    frames = moving_pages.write(stage.Stage(tmp_path))
    files = [file for file, _ in frames["kronecker"]]
    assert sorted(path.name for path in (tmp_path / "_static" / "moving").iterdir()) == sorted(files)
    assert len(set(files)) == 4
    assert moving_pages.shown('x = 1\nmoving("kronecker")') is small
    assert moving_pages.shown('moving("kronecker", live=True)') is None
    shown = moving_pages.html(small, frames, "../")
    assert (
        f'<img src="../_static/moving/{files[1]}" alt="numbers sent per entry, asked for = 0.25, matrix = 2 x 2.'
        in shown
    )
    data = json.loads(re.search(r'<script type="application/json">(.*)</script>', shown)[1])
    assert [one["start"] for one in data["sliders"]] == [0, 1]
    assert [words.split(". ")[0].rsplit("= ")[-1] for _, words in data["frames"]] == ["6 x 3", "2 x 2"] * 2
    drawn = (tmp_path / "_static" / "moving" / files[0]).stat().st_mtime_ns
    again = stage.Stage(tmp_path)
    assert {name: [tuple(one) for one in own] for name, own in moving_pages.write(again).items()} == frames
    again.finish()
    assert (tmp_path / "_static" / "moving" / files[0]).stat().st_mtime_ns == drawn


def test_a_claim_with_two_names_is_linked_on_a_page_of_proofs():
    where = claim_pages.places(claim_pages.records())
    for id in ("ssf.lemma2", "decomfl.theorem1 / theorem3"):
        shown = re.sub(proof_pages.CLAIM, lambda found: proof_pages._linked(found, where), f"see `{id}` there")
        assert f"[`{id}`](../{where[id].page}.md#{where[id].anchor})" in shown


def test_a_step_shows_its_strongest_evidence_and_unfolds_its_coq_statement(monkeypatch):
    shown = proof_pages.with_evidence("A step. [ssf.2.7]\n\nThe next paragraph.")
    first, fold, rest = shown.split("\n\n")
    assert (first, rest) == ('A step. (<a href="#step-ssf-2-7">Coq</a>)', "The next paragraph.")
    assert fold.startswith("<details><summary>Coq: Ssf.step_2_7</summary><pre>Ssf.step_2_7\n     : forall K")
    assert "<details><summary>Proof</summary><pre>Lemma step_2_7 K" in fold
    monkeypatch.setattr(proof_pages.tie, "results", lambda *where: {})
    assert "Coq" not in proof_pages.with_evidence("A step. [ssf.2.7]")


def test_links_of_pages_lead_to_pages(staged):
    """And not out of the book; the page of the pictures that move is not staged here."""
    links = {
        (page.parent / link).resolve()
        for page in staged.rglob("*.md")
        for link in re.findall(r"\]\(([^)#:\s]+\.(?:md|ipynb|py))", page.read_text())
    }
    assert len(links) > 300
    assert {link for link in links if not link.exists()} == {staged.resolve() / "look-up" / "moving.md"}


def test_every_page_of_claims_leads_to_its_letters(staged):
    paths = [path for path in (staged / "look-up" / "claims").glob("*/*.md") if path.stem != "notation"]
    assert len(paths) > 40
    assert [path.name for path in paths if "](notation.md)" not in path.read_text()] == []


def test_names_are_linked_once_and_never_in_code_or_mathematics():
    linked: set[str] = set()
    text = "`SSF` and $SSF$; SSF is like FedSub, as notebook 02 shows; SSF again; `ssf.lemma2`"
    where = claim_pages.places(claim_pages.records())
    shown = notebook_pages.with_links(text, "03_ssf", where, linked)
    assert shown.count("](../look-up/methods/ssf.md)") == 1
    assert "`SSF` and $SSF$; [SSF](../look-up/methods/ssf.md) is like [FedSub](" in shown
    assert "[notebook 02](02_fedsub.ipynb)" in shown
    assert "[`ssf.lemma2`](../look-up/claims/ssf/section-4.md#ssf-lemma2)" in shown


def test_links_of_tables_lead_to_pages_of_the_book(staged):
    """Claims and items; a test has no page, and its name stays."""
    links, names = set(), set()
    for path in sorted((staged / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                page = output.get("data", {}).get("text/html", "")
                links |= set(re.findall(r'<a href="(\.\.?/[^"#]*)', page))
                names |= set(re.findall(r"test_\w+\.py", page.replace("<wbr>", "")))
    assert len(links) > 5
    assert names
    assert [link for link in links if not (staged / "notebooks" / link).resolve().with_suffix(".md").exists()] == []


@pytest.mark.parametrize("path", sorted((BOOK / "foundations").glob("*.py")), ids=lambda path: path.stem)
def test_the_primer_is_in_step_and_was_run(path):
    """One cell with code, which printed something."""
    assert builder.out_of_step(path) is None
    built = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    (cell,) = [cell for cell in built.cells if cell.cell_type == "code"]
    assert cell.outputs
    assert "assert" in cell.source
    assert all(output.get("name") != "stderr" for output in cell.outputs)


def test_statements_give_cells_that_run():
    """A cell that stands with a claim is at most ten lines long and runs."""
    for id, one in STATED.items():
        if one.cell:
            assert len(one.cell.splitlines()) <= 10, id
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(one.cell, {})
            assert printed.getvalue(), id


def test_pages_are_written_only_where_they_changed(tmp_path):
    one = stage.Stage(tmp_path)
    one.write("a/b.md", "text")
    old = (tmp_path / "a/b.md").stat().st_mtime_ns
    two = stage.Stage(tmp_path)
    two.write("a/b.md", "text")
    two.write("c.md", "more")
    two.finish()
    assert (tmp_path / "a/b.md").stat().st_mtime_ns == old
    three = stage.Stage(tmp_path)
    three.write("c.md", "more")
    three.finish()
    assert [path.name for path in tmp_path.rglob("*")] == ["c.md"]


def test_notebooks_that_name_a_claim_are_found():
    uses = used.Uses()
    assert ("notebook 04", "notebooks/04_theory_ledger.ipynb") in uses.of("ssf.lemma2", most=12)
    assert uses.of("no-such-name") == []


def test_no_browser_is_one_line_with_a_fix(monkeypatch):
    """Python ends with it, on stderr: a text that SystemExit is given is such a line."""
    monkeypatch.setattr(os, "environ", {"PATH": "", "BROWSER": ""})
    with pytest.raises(SystemExit) as stopped:
        browser.find()
    assert re.fullmatch(
        r"browser: found none of .*, expected one\. Fix: apt-get install chromium .*", stopped.value.code
    )


ROW = (  # a slider that changes nothing
    '<img src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==" alt="K = 1">'
    '<div class="sliders"><label><span>K</span><input type="range" max="1" {1}><output>{0}</output></label></div>'
)
PAGES = {  # what stands on a page -> what is said of it
    "<p>a formula \\(x_i\\) that nobody set</p>": "raw TeX",
    "<p>The answer is tensor(0.5000)</p>": "Python's own words",
    '<img src="nowhere.png">': "no picture",
    f'<div class="cell_output"><pre style="overflow:auto">{"wide " * 200}</pre></div>': "output wider than its box",
    '<div style="width:900px">a table</div>': "wider than a phone",
    '<a href="missing.html">there</a>': "leads to no file",
    '<a href="good.html#missing">there</a>': "leads to no anchor",
    '<a href="../outside.html">there</a>': "leads out of the book",
    '<details><summary>Solution</summary><p style="display:none">42</p></details>': "box does not open",
    "<script>nothing.at.all</script>": "ReferenceError",
    '<script src="https://example.org/x.js"></script>': "asks the network",
    '<span class="math">x</span>': "formula not set",
    '<figure class="moving" data-moving="a"></figure>': "picture a: no slider",
    f'<figure class="moving" data-moving="b">{ROW.format(1, "value=0")}</figure>': "picture b: does not change",
    f'<figure class="moving" data-moving="c">{ROW.format("", "")}</figure>': "picture c: K does not say its value",
    f'<figure class="moving" data-moving="d">{ROW.format(1, "disabled")}</figure>': "does not move it",
}
GOOD = '<h1 id="top">All is well</h1><details><summary>Solution</summary><p>42</p></details><a href="#top">up</a>'


def test_broken_pages_are_seen(tmp_path):
    """In a real browser, one fault a page, and none on the good page; the search, which is not there, finds nothing."""
    if not any(map(shutil.which, browser.NAMES)):
        pytest.skip(f"no browser ({', '.join(browser.NAMES)}): apt-get install chromium")
    pytest.importorskip("websocket", reason="make book installs websocket-client")
    shell = "<!doctype html><html><head><title>t</title></head><body><article>{}</article></body></html>"
    (tmp_path / "good.html").write_text(shell.format(GOOD))
    (tmp_path / "search.html").write_text(shell.format('<p id="search-results">did not match</p>'))
    (tmp_path.parent / "outside.html").write_text("")
    for number, body in enumerate(PAGES):
        (tmp_path / f"{number}.html").write_text(shell.format(body))
    pages = [tmp_path / "good.html", *(tmp_path / f"{number}.html" for number in range(len(PAGES)))]
    said = list(check.check(tmp_path, pages))
    for number, words in enumerate(PAGES.values()):
        assert any(line.startswith(f"{number}.html: ") and words in line for line in said), (words, said)
    assert [line for line in said if line.startswith("good.html")] == []
    assert sum("and none with" in line for line in said) == len(check.SOUGHT)


def test_pages_of_docs_that_notebooks_link_to_have_a_place():
    """Else the book would not build: Sphinx does not find them."""
    linked = {
        page
        for path in used.NOTEBOOKS
        for page in re.findall(r"\]\(\.\./docs/(\S+?)\.md", path.with_suffix(".py").read_text())
    }
    assert linked
    assert linked <= set(notebook_pages.PAGES)
