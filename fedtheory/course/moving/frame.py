"""What a picture that moves is: sliders, the numbers of one setting, and how they are drawn."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from matplotlib.figure import Figure

from fedtheory.core import checks
from fedtheory.core.key import Key
from fedtheory.running.records import Table

KEY = Key(0)  # of all that is random in the pictures
Value = int | float | str
Setting = dict[str, Value]  # parameter -> its value


@dataclass(frozen=True)
class Moving:
    """A picture with sliders: one frame for each setting.

    Fields:
        name: in `moving(name)` and in names of files.
        title: what it shows.
        look: what to look for, in one or two sentences.
        sliders: parameter of `compute` -> its values, from left to right.
        start: parameter -> the value at which its slider starts; default its first.
        says: parameter -> its name for a reader.
        compute: one value for each parameter -> the numbers of that frame, from the package's own code.
        draw: of these numbers and nothing else; all frames have the same axes.
        values: whether the words below a frame give the last value of each curve: not where it is rounding error.
    """

    name: str
    title: str
    look: str
    sliders: Mapping[str, Sequence[Value]]
    compute: Callable[..., Table]
    draw: Callable[[Table], Figure]
    start: Mapping[str, Value] = field(default_factory=dict)
    says: Mapping[str, str] = field(default_factory=dict)
    values: bool = True

    @property
    def first(self) -> Setting:
        """The setting of the frame that is shown first."""
        return {name: self.start.get(name, values[0]) for name, values in self.sliders.items()}

    def settings(self) -> Iterator[Setting]:
        """All of them; the last slider moves fastest."""
        for chosen in product(*self.sliders.values()):
            yield dict(zip(self.sliders, chosen))

    def frame(self, **setting: Value) -> Figure:
        """The picture at a setting; a parameter that is not named stands where its slider starts.

        Raises ValueError for a parameter that it does not have or a value that its slider does not reach.
        """
        for name, value in setting.items():
            checks.choice("parameter", name, self.sliders)
            checks.choice(name, value, self.sliders[name])
        return self.draw(self.compute(**self.first | setting))

    def label(self, parameter: str) -> str:
        """A parameter's name for a reader."""
        return self.says.get(parameter, parameter)

    def words(self, setting: Setting) -> str:
        """A setting in one line."""
        return ", ".join(f"{self.label(name)} = {word(value)}" for name, value in setting.items())


def word(value: Value) -> str:
    """A slider's value as a reader sees it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
