"""What a forecast answers: the distribution of resource use at one time, and the total of several."""
