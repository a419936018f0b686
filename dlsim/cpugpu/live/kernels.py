"""Small applications with a version for every device (paper C, section 5 A).

Each is written three times: vectorised for NumPy; as a function of one element, which numba
compiles for one CPU thread, for all of them, or for CUDA; and as the same function in
OpenCL C. The binary is chosen once the device has been (`dlsim.cpugpu.live.devices`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dlsim.given import option, sequence, whole

Floats = NDArray[np.float32]


class Problem(NamedTuple):
    """The input of a run: n elements of the result, two arrays of float32 or uint8, two numbers."""

    n: int
    a: NDArray[Any]
    b: NDArray[Any]
    x: float
    y: float


@dataclass(frozen=True)
class Kernel:
    """An application with its versions, one for every device."""

    classes: ClassVar[tuple[str, ...]] = ("gpu", "cpu")
    limit: ClassVar[float] = math.inf
    has_function: ClassVar[bool] = False
    is_one: ClassVar[bool] = False

    name: str
    size: int  # some tenths of a second on one CPU core
    tiny: int  # warms up in no time
    make: Callable[[int, np.random.Generator], Problem]
    element: Callable[..., Any]  # (i, a, b, x, y) to element i of the result; numba compiles it
    source: str  # the same in OpenCL C, as the body of a function
    vectorised: Callable[[Problem], Any]  # the whole result, in NumPy

    def problem_size(self, size: Any) -> int:
        """Return a size that there can be a problem of, or refuse."""
        rule = f"a whole number in 1..{2**28}, such as the usual {self.size}"
        return whole(f"size of {self.name}", size, 1, 2**28, rule)

    def problem(self, size: int, seed: int = 0) -> Problem:
        """Return the input of a size, the same for the same seed."""
        return self.make(self.problem_size(size), np.random.default_rng(sequence(seed)))


def _none(dtype: type = np.float32) -> NDArray[Any]:
    return np.zeros(1, dtype)


def _uniform(rng: np.random.Generator, low: float, high: float, n: int) -> Floats:
    return (low + (high - low) * rng.random(n)).astype(np.float32)


# --- Mandelbrot set: steps until |z| > 2 ----------------------------------------------------------


def _mandelbrot_make(size: int, rng: np.random.Generator) -> Problem:
    return Problem(size * size, _none(), _none(), float(size), 100.0)


def _mandelbrot(i, a, b, x, y):  # type: ignore[no-untyped-def]
    side = int(x)
    cr = 3.0 * (i % side) / side - 2.0
    ci = 3.0 * (i // side) / side - 1.5
    zr = zi = 0.0
    steps = 0
    while steps < y and zr * zr + zi * zi <= 4.0:
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        steps += 1
    return steps


MANDELBROT = """
    int side = (int)x;
    float cr = 3.0f * (i % side) / side - 2.0f, ci = 3.0f * (i / side) / side - 1.5f;
    float zr = 0, zi = 0;
    int steps = 0;
    while (steps < y && zr * zr + zi * zi <= 4.0f) {
        float next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
        steps++;
    }
    return steps;
"""


def _mandelbrot_numpy(p: Problem) -> Floats:
    side = int(p.x)
    axis = 3.0 * np.arange(side) / side
    c = ((axis - 2.0)[None, :] + 1j * (axis - 1.5)[:, None]).ravel()
    z, steps, live = np.zeros_like(c), np.zeros(p.n, np.float32), np.arange(p.n)
    for _ in range(int(p.y)):
        steps[live] += 1
        z = z * z + c[live]
        inside = z.real**2 + z.imag**2 <= 4.0
        live, z = live[inside], z[inside]
    return steps


# --- y = x y + a, over and over -------------------------------------------------------------------


def _saxpy_make(size: int, rng: np.random.Generator) -> Problem:
    return Problem(size, _uniform(rng, -1, 1, size), _uniform(rng, -1, 1, size), 0.5, 200.0)


def _saxpy(i, a, b, x, y):  # type: ignore[no-untyped-def]
    value = float(b[i])
    for _ in range(int(y)):
        value = x * value + a[i]
    return value


SAXPY = """
    float value = b[i];
    for (int k = 0; k < (int)y; k++) value = x * value + a[i];
    return value;
"""


def _saxpy_numpy(p: Problem) -> Any:
    value = p.b.copy()
    for _ in range(int(p.y)):
        value *= np.float32(p.x)
        value += p.a
    return value


# --- price of a European call, one year -----------------------------------------------------------


def _options_make(size: int, rng: np.random.Generator) -> Problem:
    return Problem(size, _uniform(rng, 5, 30, size), _uniform(rng, 1, 100, size), 0.02, 0.3)


def _options(i, a, b, x, y):  # type: ignore[no-untyped-def]
    d1 = (math.log(a[i] / b[i]) + x + 0.5 * y * y) / y
    c1 = 0.5 * (1.0 + math.erf(d1 * 0.7071067811865476))
    c2 = 0.5 * (1.0 + math.erf((d1 - y) * 0.7071067811865476))
    return a[i] * c1 - b[i] * math.exp(-x) * c2


OPTIONS = """
    float d1 = (log(a[i] / b[i]) + x + 0.5f * y * y) / y;
    float c1 = 0.5f * (1.0f + erf(d1 * 0.70710678f));
    float c2 = 0.5f * (1.0f + erf((d1 - y) * 0.70710678f));
    return a[i] * c1 - b[i] * exp(-x) * c2;
"""


def _options_numpy(p: Problem) -> Any:
    d1 = (np.log(p.a / p.b) + p.x + 0.5 * p.y * p.y) / p.y
    return p.a * ndtr(d1) - p.b * math.exp(-p.x) * ndtr(d1 - p.y)


# --- product of two square matrices ---------------------------------------------------------------


def _matmul_make(size: int, rng: np.random.Generator) -> Problem:
    n = size * size
    return Problem(n, _uniform(rng, 0, 1, n), _uniform(rng, 0, 1, n), float(size), 0.0)


def _matmul(i, a, b, x, y):  # type: ignore[no-untyped-def]
    side = int(x)
    row, column, total = i // side * side, i % side, 0.0
    for k in range(side):
        total += a[row + k] * b[k * side + column]
    return total


MATMUL = """
    int side = (int)x, row = i / side * side, column = i % side;
    float total = 0;
    for (int k = 0; k < side; k++) total += a[row + k] * b[k * side + column];
    return total;
"""


def _matmul_numpy(p: Problem) -> Any:
    side = int(p.x)
    return (p.a.reshape(side, side) @ p.b.reshape(side, side)).ravel()


# --- strength of the pull of all bodies on each, in the plane -------------------------------------


def _bodies_make(size: int, rng: np.random.Generator) -> Problem:
    return Problem(size, _uniform(rng, 0, 1, size), _uniform(rng, 0, 1, size), 0.01, float(size))


def _bodies(i, a, b, x, y):  # type: ignore[no-untyped-def]
    px = py = 0.0
    for j in range(int(y)):
        dx, dy = a[j] - a[i], b[j] - b[i]
        near = dx * dx + dy * dy + x
        weight = 1.0 / (near * math.sqrt(near))
        px += dx * weight
        py += dy * weight
    return math.sqrt(px * px + py * py)


BODIES = """
    float px = 0, py = 0;
    for (int j = 0; j < (int)y; j++) {
        float dx = a[j] - a[i], dy = b[j] - b[i], near = dx * dx + dy * dy + x;
        float weight = 1.0f / (near * sqrt(near));
        px += dx * weight;
        py += dy * weight;
    }
    return sqrt(px * px + py * py);
"""


def _bodies_numpy(p: Problem) -> Any:
    pull = np.empty(p.n, np.float32)
    for first in range(0, p.n, 256):
        rows = slice(first, first + 256)
        dx, dy = p.a[None, :] - p.a[rows, None], p.b[None, :] - p.b[rows, None]
        near = dx * dx + dy * dy + np.float32(p.x)
        weight = 1 / (near * np.sqrt(near))
        pull[rows] = np.hypot((dx * weight).sum(axis=1), (dy * weight).sum(axis=1))
    return pull


# --- words of a text, chunk by chunk --------------------------------------------------------------


def _words_make(size: int, rng: np.random.Generator) -> Problem:
    chunk = 4096
    text = rng.integers(97, 123, size * chunk, dtype=np.uint8)
    text[rng.random(len(text)) < 0.18] = 32
    return Problem(size, text, _none(np.uint8), float(chunk), 0.0)


def _words(i, a, b, x, y):  # type: ignore[no-untyped-def]
    chunk, count = int(x), 0
    for k in range(i * chunk, (i + 1) * chunk):
        if a[k] > 32 and (k == 0 or a[k - 1] <= 32):
            count += 1
    return count


WORDS = """
    int chunk = (int)x, count = 0;
    for (int k = i * chunk; k < (i + 1) * chunk; k++)
        if (a[k] > 32 && (k == 0 || a[k - 1] <= 32)) count++;
    return count;
"""


def _words_numpy(p: Problem) -> Any:
    letter = p.a > 32
    first = letter.copy()
    first[1:] &= ~letter[:-1]
    return first.reshape(p.n, -1).sum(axis=1)


#: Every application of the live run, by name.
KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel("mandelbrot", 512, 16, _mandelbrot_make, _mandelbrot, MANDELBROT, _mandelbrot_numpy),
        Kernel("saxpy", 2**20, 64, _saxpy_make, _saxpy, SAXPY, _saxpy_numpy),
        Kernel("black-scholes", 2**22, 64, _options_make, _options, OPTIONS, _options_numpy),
        Kernel("matmul", 768, 8, _matmul_make, _matmul, MATMUL, _matmul_numpy),
        Kernel("n-body", 6144, 32, _bodies_make, _bodies, BODIES, _bodies_numpy),
        Kernel("word-count", 2**14, 2, _words_make, _words, WORDS, _words_numpy),
    )
}


def kernel_named(name: str) -> Kernel:
    """Look an application up by name."""
    return KERNELS[option("application", name, KERNELS)]


def signature(result: NDArray[Any]) -> list[float]:
    """Return what is compared of a result: the means of up to 16 blocks of its elements."""
    blocks = np.array_split(np.asarray(result, dtype=np.float64), min(16, len(result)))
    return [float(block.mean()) for block in blocks]


#: What results of float32, added in another order, may differ by.
ROUNDING = 1e-3


def agree(one: list[float], other: list[float]) -> bool:
    """Tell whether finite signatures are equal but for rounding, relative to the largest mean."""
    if len(one) != len(other) or not all(map(math.isfinite, one + other)):
        return False
    scale = max(map(abs, one), default=0.0)
    return all(abs(p - q) <= ROUNDING * scale for p, q in zip(one, other, strict=True))
