"""Prediction of latencies that nobody measured, from those that were.

    measured_pairs      the measurements at one moment, as arrays
    coordinates         positions and heights of endpoints, whose distances are latencies
    kriging             corrects distances by how measurements nearby differ from theirs
    error_model         how far a prediction is from the truth, learned from pairs held out
    latency_model       coordinates and kriging, fitted together
    predictor           all of these together: estimates of every node for every location
    next_measurements   which pairs to measure, because better nodes may hide there
    measurement_plan    what each node is asked to measure

Pure, and deterministic: the same measurements in the same order give the same predictions. These
modules import numpy (the extra `placement`); nothing else in `placement` imports them.
"""
