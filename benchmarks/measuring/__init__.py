"""What the questions share: the machine, spreads, the calibration loop, results and their comparison."""
