from . import cells as cells
from ._read import RAGGED as RAGGED
from ._read import TableRows as TableRows
from ._read import json_or_lines as json_or_lines
from ._read import read_rows as read_rows
from ._write import write_table as write_table
