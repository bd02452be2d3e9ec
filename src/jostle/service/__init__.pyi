from ._client import Client as Client
from ._serve import serve as serve
from ._settings import ServiceSettings as ServiceSettings
from .http._app import make_app as make_app
