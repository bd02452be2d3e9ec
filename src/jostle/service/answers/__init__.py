"""What each operation answers, item by item."""
