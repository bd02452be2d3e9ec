"""Whatever a file holds, a reader gives what it holds or says what is wrong with it."""
