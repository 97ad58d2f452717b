"""What an evaluation came to: the result, its rows, saving and explaining it."""
