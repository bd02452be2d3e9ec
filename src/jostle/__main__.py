"""`python -m jostle` is the command `jostle`."""

from jostle.cli import main

if __name__ == "__main__":
    main()
