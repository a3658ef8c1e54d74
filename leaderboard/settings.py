"""Settings, all from the environment; `#:` describes each; docs/reference/settings.md lists them.

Without DATABASE_URL the embedded server of `leaderboard.postgres` is used. With it nothing has a
default that would be unsafe on the internet: SECRET_KEY and ALLOWED_HOSTS must then be given.
"""

import re
import secrets
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

import environ
from csp.constants import NONE, SELF, UNSAFE_EVAL, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from leaderboard import deployed, logs, postgres

env = environ.Env()
PACKAGE = Path(__file__).resolve().parent
#: DATABASE_URL | the embedded server | PostgreSQL 15 or later: `postgres://user:password@host:port/name`
EMBEDDED = not env.str("DATABASE_URL", default="")


def folder(name: str) -> Path:
    """Find what the wheel holds inside the package, and a checkout beside it."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name


def required(name: str, embedded_default: str) -> str:
    """Return the variable; only the embedded server, which serves this machine alone, has a default."""
    if value := env.str(name, default=""):
        return value
    if EMBEDDED:
        return embedded_default
    raise ImproperlyConfigured(f"{name} must be set in the environment when DATABASE_URL is set.")


def seed(text: str) -> str:
    try:
        n_bytes = len(b64decode(text, validate=True))
    except ValueError:
        n_bytes = -1
    if n_bytes not in (0, 32):
        raise ImproperlyConfigured("SIGNING_KEY must be the base64 of 32 bytes.")
    return text


def whole(name: str, default: int, *, lowest: int = 0, highest: int | None = None) -> int:
    text = env.str(name, default="") or str(default)
    if not re.fullmatch(r"-?[0-9]{1,15}", text):
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be a whole number.")
    value = int(text)
    if value < lowest or (highest is not None and value > highest):
        limits = f"{lowest} or more" if highest is None else f"from {lowest} to {highest}"
        raise ImproperlyConfigured(f"{name} is {value}; it must be {limits}.")
    return value


def one_of(name: str, known: Sequence[str]) -> str:
    text = str(env.str(name, default=""))
    if text and text not in known:
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be one of {', '.join(known)}.")
    return text


def address(name: str) -> str:
    text = env.str(name, default="")
    if text and not re.fullmatch(r"(tcp|tls)://\S+:\d+", text):
        raise ImproperlyConfigured(f"{name} is {text!r}; it must be like tcp://scheduler:8786.")
    return str(text)


def flag(name: str, default: bool) -> bool:
    return deployed.yes_or_no(name, env.str(name, default=""), default=default)


#: DEBUG | off | Django's debug pages; never on the internet
DEBUG = flag("DEBUG", False)
#: SECRET_KEY | random at each start; required with `DATABASE_URL` | signs sessions and links; at least 50
#:   random characters
SECRET_KEY = required("SECRET_KEY", secrets.token_urlsafe(48))
#: ALLOWED_HOSTS | `localhost,127.0.0.1,[::1]`; required with `DATABASE_URL` | host names that the service
#:   answers to, separated by commas; not `*`
ALLOWED_HOSTS = [host.strip() for host in required("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]").split(",")]
if not EMBEDDED:
    SECRET_KEY, ALLOWED_HOSTS = deployed.strong_key(SECRET_KEY), deployed.named_hosts(ALLOWED_HOSTS)

#: SIGNING_KEY | unset: boards are not signed; the embedded server makes its own | base64 of 32 random bytes:
#:   the seed of the Ed25519 key that signs boards
SIGNING_KEY = seed(env.str("SIGNING_KEY", default=""))  # of boards; the embedded server keeps one of its own
#: SITE_URL | unset | address of the service, such as `https://board.example`; links in mail and webhooks need
#:   it
SITE_URL = env.str("SITE_URL", default="").rstrip("/")

DATABASES = {"default": postgres.database() if EMBEDDED else deployed.database(env.db("DATABASE_URL"))}
DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
# A machine that vanished answers nothing, not even a refusal.
DATABASES["default"]["OPTIONS"] = {"connect_timeout": 5} | DATABASES["default"].get("OPTIONS", {})

INSTALLED_APPS = [
    "unfold.apps.BasicAppConfig",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "csp",
    "pghistory",
    "pgtrigger",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "leaderboard.accounts",
    "leaderboard.catalog",
    "leaderboard.submissions",
    "leaderboard.studies",
    "leaderboard.boards",
    "leaderboard.operations",
    "leaderboard.api",
    "leaderboard.pages",
    "leaderboard.terminal",
    "leaderboard.admin.BackofficeConfig",
]
MIDDLEWARE = [
    "leaderboard.probes.ProbeMiddleware",  # first: a probe knows neither host names nor TLS
    "leaderboard.requests.RequestIdMiddleware",
    "leaderboard.rate_limits.RateLimitMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "leaderboard.statics.StaticFiles",
    "django.middleware.gzip.GZipMiddleware",
    "leaderboard.urls.ConditionalGetMiddleware",
    # Session, user and messages are read when a view asks for them: no public page does, or sets a cookie.
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "leaderboard.urls.DatabaseErrorMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "leaderboard.admin.audit.AuditMiddleware",
]
ROOT_URLCONF = "leaderboard.urls"
WSGI_APPLICATION = "leaderboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [folder("templates")],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# What is recorded of a changed row knows who changed it and why; the row itself may not go while it does.
PGHISTORY_APPEND_ONLY = True

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "django.contrib.auth.hashers.ScryptPasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
#: OPEN_REGISTRATION | off | anybody may open an account; otherwise by invitation
OPEN_REGISTRATION = flag("OPEN_REGISTRATION", False)
#: REQUIRE_2FA | off | the admin requires a second factor (TOTP)
REQUIRE_2FA = flag("REQUIRE_2FA", False)
ACCOUNT_ADAPTER = "leaderboard.accounts.services.Adapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_FORMS = {"signup": "leaderboard.accounts.services.SignUp"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_CONFIRM_EMAIL_ON_GET = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "Bandstand: "
# allauth counts tries to sign in here, and codes that were used: one table for all processes.
CACHES = {"default": {"BACKEND": "leaderboard.accounts.counting.DatabaseCounterCache"}}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "Bandstand"
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/account"

# Who is in front is set, never guessed: a header that nobody in front sets is the visitor's own.
#: PROXIES | 0 | number of proxies in front that append to `X-Forwarded-For`; with 0 visitors are not told
#:   apart
PROXIES = whole("PROXIES", 0, highest=10)  # that append to X-Forwarded-For
# One of them reads requests whole; without it gunicorn listens to this machine alone (leaderboard.serving).
#: BEHIND_PROXY | on with `PROXIES` | a proxy in front buffers requests; without it gunicorn listens on
#:   loopback addresses and Unix sockets only
BEHIND_PROXY = flag("BEHIND_PROXY", PROXIES > 0)
#: TLS_HEADER | unset | header by which the proxy reports TLS, such as `X-Forwarded-Proto`; plain requests are
#:   then redirected to `https://`
TLS_HEADER = env.str("TLS_HEADER", default="")  # by which the proxy says that it was asked over TLS
if TLS_HEADER:
    SECURE_PROXY_SSL_HEADER = (f"HTTP_{TLS_HEADER.upper().replace('-', '_')}", "https")
SECURE_SSL_REDIRECT = bool(TLS_HEADER)
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]  # asked from inside, past the proxy
#: HSTS_SECONDS | a year with `TLS_HEADER`, else 0 | how long browsers use TLS only, subdomains included
SECURE_HSTS_SECONDS = whole("HSTS_SECONDS", 365 * 24 * 3_600 if TLS_HEADER else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = bool(SECURE_HSTS_SECONDS)
# To be built into browsers is for the owner of the whole domain to ask for, and hard to take back.
SILENCED_SYSTEM_CHECKS = ["security.W021"]

# A cookie that opens the admin travels over TLS alone, but on the embedded server, which has none.
#: SECURE_COOKIES | on; off on the embedded server | session cookies travel over TLS only
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = flag("SECURE_COOKIES", not EMBEDDED)
CSRF_TRUSTED_ORIGINS = [SITE_URL] if SITE_URL else []
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-gb"
USE_I18N = False
TIME_ZONE = "UTC"

STATIC_URL = "static/"
#: STATIC_ROOT | unset: the service serves static files itself | where `collectstatic` writes static files for
#:   another server
STATIC_ROOT = env.str("STATIC_ROOT", default=None)  # unset: served from where they lie
STATICFILES_DIRS = [folder("static")]
WHITENOISE_USE_FINDERS = True
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "leaderboard.statics.HashedNames"},
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# What the admin's scripts (Alpine) and styles need beyond that.
ADMIN_CONTENT = {"script-src": [UNSAFE_EVAL], "style-src": [UNSAFE_INLINE]}
# What Swagger needs beyond that.
DOCS_CONTENT = {"style-src": [UNSAFE_INLINE]}
UNFOLD = {
    "SITE_TITLE": "Bandstand",
    "SITE_HEADER": "Bandstand",
    "SITE_SUBHEADER": "Operations",
    "SITE_URL": "/",
    "STYLES": [lambda request: static("css/desk.css")],
    "SITE_SYMBOL": "leaderboard",
    # The accent of the public pages, from light to dark.
    "COLORS": {
        "primary": {
            shade: f"oklch({lightness}% {chroma} 210)"
            for shade, lightness, chroma in (
                *(("50", 97, 0.012), ("100", 94, 0.025), ("200", 88, 0.05), ("300", 80, 0.075)),
                *(("400", 72, 0.085), ("500", 58, 0.085), ("600", 46, 0.075), ("700", 40, 0.066)),
                *(("800", 34, 0.055), ("900", 29, 0.045), ("950", 21, 0.035)),
            )
        }
    },
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("bandstand.svg")}
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SIDEBAR": {"show_search": False, "show_all_applications": False},
}
#: WEBHOOKS_MAY_BE_PRIVATE | off | webhooks may have private and loopback addresses
WEBHOOKS_MAY_BE_PRIVATE = flag("WEBHOOKS_MAY_BE_PRIVATE", False)
#: WEBHOOKS_MAY_BE_PLAIN | off | webhooks may have `http://` addresses
WEBHOOKS_MAY_BE_PLAIN = flag("WEBHOOKS_MAY_BE_PLAIN", False)
# Without a server for mail a deployed service fails to send, and the log of deliveries says so.
#: EMAIL_URL | `smtp://localhost:25`; the console on the embedded server | mail server, such as
#:   `smtp+tls://user:password@host:587`
_mail = env.str("EMAIL_URL", default="") or ("consolemail://" if EMBEDDED else "smtp://localhost:25")
vars().update(env.email_url_config(_mail))  # no setting is called EMAIL_URL: it would show the password
EMAIL_TIMEOUT = 5  # seconds
#: EMAIL_FROM | `bandstand@localhost` | sender of mail
DEFAULT_FROM_EMAIL = env.str("EMAIL_FROM", default="bandstand@localhost")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["leaderboard.api.permissions.BearerToken"],
    "DEFAULT_PERMISSION_CLASSES": ["leaderboard.api.permissions.Denied"],
    "DEFAULT_PARSER_CLASSES": ["leaderboard.api.parsers.BoundedJSON"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "leaderboard.api.errors.problem_response",
    "DEFAULT_SCHEMA_CLASS": "leaderboard.api.schema.EndpointSchema",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS is answered with nothing: the schema has it
    "URL_FORMAT_OVERRIDE": None,  # `format` names that of a file which is delivered
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Bandstand",
    "DESCRIPTION": "Leaderboards of AI agents that ask only for the runs they need, with honest error bars.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["leaderboard.api.schema.every_code"],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None},
    "SERVE_INCLUDE_SCHEMA": False,
}

#: NIGHT_HOUR | 3 | hour in UTC from which nightly jobs are due
NIGHT_HOUR = whole("NIGHT_HOUR", 3, highest=23)
#: STUCK_AFTER | 1800 | seconds without a sign of life after which a run is given up
STUCK_AFTER = whole("STUCK_AFTER", 1_800, lowest=1)
#: PAGES_KEPT | 1000; 0 with `DEBUG` | rendered pages kept in the database
PAGES_KEPT = whole("PAGES_KEPT", 0 if DEBUG else 1_000)
#: LONGEST_JOB | 43200 | seconds after which a long run is given up
LONGEST_JOB = whole("LONGEST_JOB", 12 * 3_600, lowest=1)
#: DASK_SCHEDULER_ADDRESS | unset: processes of this machine | Dask scheduler that validation is spread over,
#:   such as `tcp://scheduler:8786`
DASK_SCHEDULER_ADDRESS = address("DASK_SCHEDULER_ADDRESS")

#: METRICS_TOKEN | unset | bearer token that reads `/metrics`; at least 20 characters
METRICS_TOKEN = deployed.secret_token("METRICS_TOKEN", env.str("METRICS_TOKEN", default=""))
#: METRICS_NETWORKS | unset; loopback on the embedded server | networks that read `/metrics` without a token,
#:   such as `10.0.0.0/8`
_near = "127.0.0.0/8,::1" if EMBEDDED else ""
METRICS_NETWORKS = deployed.networks(
    "METRICS_NETWORKS", env.str("METRICS_NETWORKS", default=_near).split(",")
)
# Seconds of processor that each process spends in a minute on one visitor who has no token; 0: no bound.
#: VISITOR_SECONDS | 20; 0 on the embedded server | seconds of processor that one address may use per minute
#:   in each process before it gets 429; 0: no limit
VISITOR_SECONDS = whole("VISITOR_SECONDS", 0 if EMBEDDED else 20)

#: LOG_FORMAT | `json` with `DATABASE_URL`, else `text` | one JSON object per line, or plain lines
LOG_FORMAT = one_of("LOG_FORMAT", (logs.JSON, logs.TEXT)) or logs.form_of_lines(is_deployed=not EMBEDDED)
#: LOG_LEVEL | `WARNING`; `INFO` for the scheduler and, in JSON, for requests | level of the log on stderr
LOG_LEVEL = one_of("LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
logs.configure()
LOGGING = logs.settings_of(
    LOG_FORMAT,
    {
        # Whoever asks for nonsense is answered with 400; a traceback of each would fill the log.
        **{
            f"django.security.{nonsense}": {"handlers": ["none"], "propagate": False}
            for nonsense in ("DisallowedHost", "TooManyFieldsSent", "RequestDataTooBig")
        },
        # With a line for each request another one for what is not found says nothing more.
        "django.request": {"level": "ERROR" if LOG_FORMAT == logs.JSON else "WARNING"},
        "leaderboard.requests": {"level": LOG_LEVEL or ("INFO" if LOG_FORMAT == logs.JSON else "ERROR")},
        # What the scheduler did is logged, a line for each run.
        "leaderboard.operations.scheduler": {"level": LOG_LEVEL or "INFO"},
    },
    level=LOG_LEVEL or "WARNING",
)
#: SENTRY_DSN | unset | where errors are reported; needs the extra `sentry`
if SENTRY_DSN := env.str("SENTRY_DSN", default=""):
    logs.start_sentry(SENTRY_DSN)
