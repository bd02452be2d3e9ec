from ._findings import ModelFindings as ModelFindings
from ._findings import find as find
from ._html import to_html as to_html
