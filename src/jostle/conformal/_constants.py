"""All constants of the bounds: what each means, in one table. Those that find drift stand with their bets."""

from __future__ import annotations

# How large errors usually are.
ERROR_FLOOR = 0.2  # of the median error, that is added to each before its log is taken
LEAST_ERROR = 1e-9  # log seconds
FARTHEST_WIDTH = 3.0  # standard deviations of a width, past which it tells no more
MOST_EFFECT = 1.5  # log units that names may make errors larger or smaller than usual
SCALE_FOLDS = 5  # by which runs have a scale that was not learned from them
POWERS = (0.25, 0.5, 0.75, 1.0)  # of the effects, of which one is chosen
CHOSEN_BY = (0.9, 0.95, 0.99)  # confidences whose margins choose the power
FEWEST_TO_CHOOSE = 50  # rows of a category

# Ranks.
FROM_TOP = 5  # groups above a bound that a category of left-out runs needs of its own
FEWEST_GROUPS = 9  # of all categories alike, under which there is no bound
FEW_GROUPS = 20  # under which the largest score stands for the rank, where no theorem holds
USUAL = 0.8  # confidence at which categories are put to one size before shapes are borrowed
FARTHEST_BEYOND = 2  # times the most co-runners that were measured, past which there is no bound
LARGEST = (0.8, 0.95)  # shares of the scores, past which those count as large
NEAR = 1e-12  # of confidences that only rounding tells apart
SUMS_ROUND = 1e-9  # relative error of a sum of weights, at most
# Bounds are raised by this share, far under what anybody measures: logarithms and sums round, and a program
# that takes exactly as long each time would otherwise be late by the last digit.
ROUNDING = 2.0**-30

# Imprecise measured times.
NOISE_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of runs' squared errors, that may be in what is seen
PLAUSIBLE = 0.82  # log likelihood below the best, of a one-sided 90% interval
FAR_ERROR = 4.0  # robust standard deviations at which what is far off counts no more
LITTLE_NOISE = 0.02  # of the variance: errors so small are left alone

# The law of the largest errors.
# Scores; of a law with shape .6 a thousand let three times as many over as should be.
FEWEST_FOR_TAIL = 2000
TOP = 0.05  # share of the scores over the threshold
SHAPE, SHAPE_SPREAD = 0.35, 0.15  # prior: scores of runtimes have heavy tails
