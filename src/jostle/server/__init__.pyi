from ._client import Client as Client
from ._interface_plugins import Door as Door
from ._serve import serve as serve
from ._serve_settings import ServeSettings as ServeSettings
from .http._http_app import make_app as make_app
