from ._client import Client as Client
from ._door import Door as Door
from ._serve import serve as serve
from ._settings import ServeSettings as ServeSettings
from .http._app import make_app as make_app
