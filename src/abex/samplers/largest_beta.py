r"""The probability of each arm to have the largest of independent Beta draws, by one-dimensional quadrature.

.. math:: p_k=\int f_k(x)\prod_{j\ne k}F_j(x)\,dx

In :math:`y=\ln\frac{x}{1-x}` every Beta density is smooth and log-concave, whatever its parameters: with
:math:`\pi=\frac{a}{a+b}` and :math:`u=y-\ln\frac ab` it is

.. math:: h(u)=h(0)\exp\big(au-(a+b)\ln(1+\pi(e^u-1))\big),\qquad
          h(0)=\sqrt{\tfrac{ab}{2\pi(a+b)}}\;e^{r(a+b)-r(a)-r(b)},

where r is what Stirling's formula leaves of :math:`\ln\Gamma`. No large numbers cancel: the density is exact to about
1e-13 at a million observations. The line is walked from where the product of all distribution functions is negligible to
where the last arm's tail is, in panels as wide as the steepest density allows; on each, the densities at 16 Gauss-Legendre
nodes give both the integrand and, integrated, the distribution functions (`RUNNING`). From the left end of a panel, where
:math:`\varsigma=1/(1+e^{-y})` is the same for all arms, a density moves by

.. math:: \ln\frac{h(y+\delta)}{h(y)} = (a-(a+b)\varsigma)\,\delta-(a+b)\,m(\delta),\qquad
          m(\delta)=\ln(1+\varsigma(e^\delta-1))-\varsigma\delta,

so the arms share the logarithms of a panel, and each takes one exponential a node. Cost O(K) a panel, about twenty panels for
alike posteriors. The sum over the arms, 1, measures the error.

**Ties.** A draw nearer to 1 than rounding can tell *is* 1, and one below the smallest number is 0; for priors far below 1 that
happens. There arms tie, which a uniform draw decides: :math:`\int_0^1 q_k\prod_{j\ne k}(F_j+q_js)\,ds`, one panel more. So do
arms that stand at the same point with some probability (epsilon-exploring Thompson sampling): panels end at such points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from abex.kernels import kernel, rare_kernel

N_NODES = 16  # of a panel, at which Gauss and Legendre look at a function

MIN_SHAPE, MIN_TOTAL = 1e-30, 1e-6  # parameters below make a coin of the draw: all lies at 0 and 1
LEFT_END, RIGHT_END = (
    -640.0,
    37.43,
)  # x below e^-640; 1 - x below 2^-54, half of what is between 1 and its neighbour
NEGLIGIBLE = -34.0  # logarithm of what may be left out
NEGLIGIBLE_MASS = math.exp(NEGLIGIBLE)
MANY_OBSERVATIONS = 300.0  # beyond, a continued fraction loses digits
MAX_TERMS = 1_000  # of it
MAX_GROWTH = 12.0  # of the logarithm of the product over a panel
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)

# Rows of the table of shapes: the density is HEIGHT * exp(SHAPE * u - TOTAL * log1p(SHARE * expm1(u))), u = SIGN * (y - CENTRE),
# where the parameter of the side that SIGN takes for the lower one has SHARE <= 1/2, so that nothing cancels.
# BELOW is its distribution function where the walk has come to, TAIL what it has at a tie, MASS what lies at the point ATOM,
# LOG the logarithm of the density over its height there, SLOPE how that grows; WON and LOST are the parameters a and b.
SHAPE, TOTAL, SHARE, SIGN, CENTRE, HEIGHT, BELOW, TAIL, ATOM, MASS, LOG, SLOPE, WON, LOST = range(14)


def running_integrals(nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The integral of each Lagrange polynomial of these nodes from -1 to each of them, (polynomial, node)."""
    from numpy.polynomial import legendre

    n = nodes.size
    values = legendre.legvander(nodes, n)  # P_0..P_n at the nodes
    antiderivatives = np.empty((n, n))  # of P_m, from -1: (P_(m+1) - P_(m-1)) / (2 m + 1)
    antiderivatives[0] = nodes + 1.0
    for m in range(1, n):
        antiderivatives[m] = (values[:, m + 1] - values[:, m - 1]) / (2 * m + 1)
    return np.asarray(np.linalg.solve(values[:, :n].T, antiderivatives), np.float64)


def rule(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights on [-1, 1], and the running integrals.

    >>> nodes, weights, running = rule(3)
    >>> bool(abs((nodes**4) @ weights - 2 / 5) < 1e-15), bool(abs((nodes @ running)[1] + 0.5) < 1e-15)
    (True, True)
    """
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return nodes, weights, running_integrals(nodes)


NODES, WEIGHTS, RUNNING = rule(
    N_NODES
)  # weights are exact up to degree 2 n - 1, running integrals up to n - 1


@kernel
def make_total_one(weights: Any) -> float:
    """Divide by the total, which is returned."""
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    for k in range(weights.size):
        weights[k] /= total
    return total


@kernel
def stirling_series(x: float) -> float:
    """What Stirling's formula leaves of ln Gamma(x) for x >= 10, to 2e-14; for x >= 16 to 1e-16."""
    y = 1.0 / (x * x)
    return (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / x


@kernel
def stirling_rest(x: float) -> float:
    """What Stirling's formula leaves of ln Gamma(x) for any x > 0."""
    rest = 0.0
    while x < 16.0:
        rest += (x + 0.5) * math.log1p(1.0 / x) - 1.0
        x += 1.0
    return rest + stirling_series(x)


@kernel
def describe(arm: int, a: float, b: float, weight: float, shapes: Any) -> None:
    """Write the column of an arm's density, which has mass ``weight``."""
    total = a + b
    if total < MIN_TOTAL:  # shares first: their quotient is finite for the smallest numbers, too
        a, b = MIN_TOTAL * (a / total), MIN_TOTAL * (b / total)
    a, b = max(a, MIN_SHAPE), max(b, MIN_SHAPE)
    shapes[WON, arm], shapes[LOST, arm] = a, b
    shapes[SHAPE, arm] = min(a, b)
    shapes[TOTAL, arm] = a + b
    shapes[SHARE, arm] = min(a, b) / (a + b)
    shapes[SIGN, arm] = 1.0 if a <= b else -1.0
    shapes[CENTRE, arm] = math.log(a / b)
    rest = stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b)
    shapes[HEIGHT, arm] = weight * math.sqrt(min(a, b) / (a + b) * max(a, b)) / ROOT_TWO_PI * math.exp(rest)


@kernel
def log_shape(shapes: Any, arm: int, y: float) -> float:
    """Logarithm of the density over its height."""
    u = shapes[SIGN, arm] * (y - shapes[CENTRE, arm])
    return shapes[SHAPE, arm] * u - shapes[TOTAL, arm] * math.log1p(shapes[SHARE, arm] * math.expm1(u))  # type: ignore[no-any-return]


@kernel
def slope_and_curvature(shapes: Any, arm: int, y: float) -> tuple[float, float]:
    """Of the logarithm of the density; the second is minus its second derivative."""
    grown = math.exp(shapes[SIGN, arm] * (y - shapes[CENTRE, arm]))
    share = shapes[SHARE, arm]
    weight = share * grown / (1.0 - share + share * grown)  # x, or 1 - x
    rest = (1.0 - share) / (1.0 - share + share * grown)
    slope = shapes[SHAPE, arm] - shapes[TOTAL, arm] * weight
    return shapes[SIGN, arm] * slope, shapes[TOTAL, arm] * weight * rest


@kernel
def log_tail(shapes: Any, arm: int, y: float, side: float) -> float:
    """A bound on the logarithm of the mass beyond y on a side (1: above): log-concave, it lies below its tangent."""
    slope, _ = slope_and_curvature(shapes, arm, y)
    if -side * slope <= 0.0:
        return 0.0
    return min(0.0, math.log(shapes[HEIGHT, arm] / (-side * slope)) + log_shape(shapes, arm, y))


@kernel
def panel_width(slope: float, curvature: float, ease: float) -> float:
    """How wide a panel may be for 16 nodes to see a density and its integral to 1e-13, times ``ease``."""
    return ease * min(2.1, 1.9 / math.sqrt(curvature), 5.5 / max(abs(slope), 1e-9))


@kernel
def look_at(shapes: Any, arm: int, y: float) -> tuple[float, float]:
    """Write LOG and SLOPE of an arm at y; returns its density and the curvature."""
    shapes[LOG, arm] = log_shape(shapes, arm, y)
    if y <= 0.0:
        grown = math.exp(y)
        share = grown / (1.0 + grown)
        shapes[SLOPE, arm] = shapes[WON, arm] - shapes[TOTAL, arm] * share
    else:
        grown = math.exp(-y)
        share = grown / (1.0 + grown)
        shapes[SLOPE, arm] = shapes[TOTAL, arm] * share - shapes[LOST, arm]
    curvature = shapes[TOTAL, arm] * share / (1.0 + grown)
    return shapes[HEIGHT, arm] * math.exp(shapes[LOG, arm]), curvature


@kernel
def lay_nodes(y: float, half: float, nodes: Any) -> None:
    """Write what all arms share on a panel that begins at y: how far the nodes are, and what m(delta) is there."""
    grown = math.exp(-abs(y))
    share, sign = grown / (1.0 + grown), -1.0 if y > 0.0 else 1.0
    for i in range(N_NODES):
        away = half * (1.0 + NODES[i])
        nodes[0, i] = away
        nodes[1, i] = math.log1p(share * math.expm1(sign * away)) - share * sign * away


@kernel
def densities(shapes: Any, arm: int, nodes: Any, out: Any) -> None:
    """The density of an arm at the nodes of the panel that begins where it was looked at."""
    log, slope, total, height = shapes[LOG, arm], shapes[SLOPE, arm], shapes[TOTAL, arm], shapes[HEIGHT, arm]
    for i in range(N_NODES):
        out[i] = height * math.exp(log + slope * nodes[0, i] - total * nodes[1, i])


@rare_kernel
def mass_beyond(shapes: Any, arm: int, y: float) -> float:
    """The probability of a draw beyond y, away from the mode."""
    density, _ = look_at(shapes, arm, y)
    below = shapes[SLOPE, arm] > 0.0
    if shapes[TOTAL, arm] > MANY_OBSERVATIONS:
        return mass_by_panels(shapes, arm, y, -1.0 if below else 1.0)
    if below:
        return density * incomplete_beta(shapes[WON, arm], shapes[LOST, arm], 1.0 / (1.0 + math.exp(-y)))
    return density * incomplete_beta(shapes[LOST, arm], shapes[WON, arm], 1.0 / (1.0 + math.exp(y)))


@kernel
def incomplete_beta(a: float, b: float, x: float) -> float:
    """The Beta(a, b) distribution function at x, below the mode, over the density of ln(x/(1-x)): DLMF 8.17.22."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d / a
    for m in range(1, MAX_TERMS):
        whole = a + 2.0 * m
        even = m * (b - m) * x / ((whole - 1.0) * whole)
        odd = -(a + m) * (a + b + m) * x / (whole * (whole + 1.0))
        d = 1.0 / (1.0 + even * d)
        c = 1.0 + even / c
        value *= c * d
        d = 1.0 / (1.0 + odd * d)
        c = 1.0 + odd / c
        value *= c * d
        if abs(c * d - 1.0) < 4e-16:
            break
    return value


@rare_kernel
def mass_by_panels(shapes: Any, arm: int, y: float, side: float) -> float:
    """The probability of a draw beyond y on a side, panel by panel outwards: many observations make the fraction imprecise."""
    mass = 0.0
    end = RIGHT_END if side > 0.0 else LEFT_END
    while side * (end - y) > 0.0 and log_tail(shapes, arm, y, side) > NEGLIGIBLE:
        slope, curvature = slope_and_curvature(shapes, arm, y)
        half = 0.5 * min(panel_width(slope, curvature, 1.1), side * (end - y))
        for i in range(N_NODES):
            at = y + side * half * (1.0 + NODES[i])
            mass += half * WEIGHTS[i] * shapes[HEIGHT, arm] * math.exp(log_shape(shapes, arm, at))
        y += side * 2.0 * half
    if side * (end - y) <= 0.0:
        mass += math.exp(log_tail(shapes, arm, end, side))  # there the density is its tangent
    return mass


@rare_kernel
def first_level(shapes: Any, n_arms: int) -> float:
    """A level below which, surely, hardly ever all draws are: by bisection."""
    low, high = LEFT_END, LEFT_END
    for k in range(n_arms):
        high = max(high, min(max(shapes[CENTRE, k], shapes[ATOM, k]), RIGHT_END))
    finest = 1.0  # of the spreads of the draws
    for k in range(n_arms):
        _, curvature = slope_and_curvature(shapes, k, shapes[CENTRE, k])
        finest = min(finest, 1.0 / math.sqrt(max(curvature, 1.0)))
    while high - low > 0.3 * finest:
        middle = 0.5 * (low + high)
        total = 0.0
        for k in range(n_arms):
            if total > NEGLIGIBLE and (shapes[ATOM, k] > middle or shapes[MASS, k] == 0.0):
                total += log_tail(shapes, k, middle, -1.0)
        if total > NEGLIGIBLE:
            high = middle
        else:
            low = middle
    return low


@kernel
def others_product(density: Any, below: Any, active: Any, count: int, half: float, out: Any) -> None:
    """Add to each active arm the integral of its density times the other arms' distribution functions."""
    running = np.ones(N_NODES)
    for j in range(count):
        for i in range(N_NODES):
            density[j, i] *= running[i]
            running[i] *= below[j, i]
    running[:] = half * WEIGHTS
    for j in range(count - 1, -1, -1):
        total = 0.0
        for i in range(N_NODES):
            total += density[j, i] * running[i]
            running[i] *= below[j, i]
        out[active[j]] += total


@rare_kernel
def share_ties(shapes: Any, active: Any, count: int, density: Any, below: Any, out: Any) -> None:
    """Arms that tie share what is theirs: each has mass TAIL on top of BELOW, spread evenly over the panels."""
    mass = 0.0
    for j in range(count):
        mass += shapes[TAIL, active[j]]
    panels = 1 + int(0.25 * mass)  # the product grows by less than the exponential of the mass
    for panel in range(panels):
        for j in range(count):
            for i in range(N_NODES):
                density[j, i] = shapes[TAIL, active[j]]
                at = (panel + 0.5 * (1.0 + NODES[i])) / panels
                below[j, i] = shapes[BELOW, active[j]] + shapes[TAIL, active[j]] * at
        others_product(density, below, active, count, 0.5 / panels, out)
    for j in range(count):
        shapes[BELOW, active[j]] += shapes[TAIL, active[j]]


@rare_kernel
def beta_panel(
    shapes: Any, active: Any, count: int, left: float, half: float, density: Any, below: Any, out: Any
) -> None:
    """One panel: the densities of the active arms at its nodes, their integrals, and what they win."""
    nodes = np.empty((2, N_NODES))
    lay_nodes(left, half, nodes)
    for j in range(count):
        arm = active[j]
        densities(shapes, arm, nodes, density[j])
        start = shapes[BELOW, arm]
        for i in range(N_NODES):
            below[j, i] = 0.0
        whole = 0.0
        for m in range(N_NODES):
            value = half * density[j, m]
            whole += value * WEIGHTS[m]
            for i in range(N_NODES):
                below[j, i] += value * RUNNING[m, i]
        for i in range(N_NODES):
            below[j, i] = min(max(start + below[j, i], 0.0), 1.0)
        shapes[BELOW, arm] = start + whole
    others_product(density, below, active, count, half, out)


@kernel
def at_atom(shapes: Any, active: Any, count: int, y: float) -> bool:
    """Write what each active arm has at y; whether there is any."""
    some = False
    for j in range(count):
        here = shapes[ATOM, active[j]] == y and shapes[MASS, active[j]] > 0.0
        shapes[TAIL, active[j]] = shapes[MASS, active[j]] if here else 0.0
        some = some or here
    return some


@kernel
def logit(x: float) -> float:
    """Where a draw of x stands on the line."""
    if x <= 0.0 or x >= 1.0:
        return LEFT_END if x <= 0.0 else RIGHT_END
    return min(max(math.log(x / (1.0 - x)), LEFT_END), RIGHT_END)


@rare_kernel
def largest_of_line(shapes: Any, out: Any) -> float:
    """The probability of each described arm to have the largest draw into ``out``; returns their sum before it was made 1."""
    n_arms = out.size
    active = np.empty(n_arms, np.int64)
    density, below = np.empty((n_arms, N_NODES)), np.empty((n_arms, N_NODES))
    y, count = first_level(shapes, n_arms), n_arms
    for k in range(n_arms):
        out[k] = 0.0
        active[k] = k
        beyond = mass_beyond(shapes, k, y)
        below_y = beyond if shapes[SLOPE, k] > 0.0 else 1.0 - shapes[MASS, k] - beyond
        if shapes[ATOM, k] <= y:
            below_y += shapes[MASS, k]
        shapes[TAIL, k] = below_y if y <= LEFT_END else 0.0
        shapes[BELOW, k] = 0.0 if y <= LEFT_END else below_y
    if y <= LEFT_END:
        share_ties(shapes, active, count, density, below, out)
    while y < RIGHT_END:
        width, end, kept = RIGHT_END - y, RIGHT_END, 0
        growth, log_product, product = 1e-9, 0.0, 1.0
        for j in range(count):
            arm = active[j]
            here, curvature = look_at(shapes, arm, y)
            fall = -shapes[SLOPE, arm]
            ahead = shapes[MASS, arm] > 0.0 and shapes[ATOM, arm] > y
            counts = fall <= 0.0 or here > NEGLIGIBLE_MASS * fall  # what lies above is not negligible
            if counts:
                wide = panel_width(fall, curvature, 1.0)
                if wide < width:
                    width = min(width, wide * (max(1.0, fall / here) if fall > 0.0 else 1.0) ** (1.0 / 18.0))
                likely = max(shapes[BELOW, arm], 1e-17)
                growth += here / likely
                product *= likely
                if product < 1e-200:
                    log_product, product = log_product + math.log(product), 1.0
            if counts or ahead:
                active[kept] = arm
                kept += 1
            if ahead:
                end = min(end, shapes[ATOM, arm])
        log_product += math.log(product)
        count = kept
        if count == 0:
            break
        # the product may be steeper than any of its factors; it does not matter as long as it is negligible
        width = min(width, max(MAX_GROWTH, NEGLIGIBLE - log_product) / growth)
        right = min(y + width, end)
        beta_panel(shapes, active, count, y, 0.5 * (right - y), density, below, out)
        y = right
        if y < RIGHT_END and at_atom(shapes, active, count, y):
            share_ties(shapes, active, count, density, below, out)
    if y >= RIGHT_END:
        for j in range(count):
            shapes[TAIL, active[j]] = max(1.0 - shapes[BELOW, active[j]], 0.0)
        share_ties(shapes, active, count, density, below, out)
    return make_total_one(out)


@rare_kernel
def largest_beta(successes: Any, failures: Any, out: Any) -> float:
    """The probability of each arm to have the largest draw into ``out``; returns their sum before it was made 1."""
    shapes = np.zeros((14, out.size))
    for k in range(out.size):
        describe(k, successes[k], failures[k], 1.0, shapes)
    return largest_of_line(shapes, out)


@rare_kernel
def largest_beta_or_point(successes: Any, failures: Any, weight: float, points: Any, out: Any) -> float:
    """As `largest_beta`, where an arm has its draw with probability ``weight`` > 0 and stands at its point otherwise."""
    shapes = np.zeros((14, out.size))
    for k in range(out.size):
        describe(k, successes[k], failures[k], weight, shapes)
        shapes[ATOM, k], shapes[MASS, k] = logit(points[k]), 1.0 - weight
    return largest_of_line(shapes, out)
