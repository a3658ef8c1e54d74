"""`docker compose` where no engine runs, by bubblewrap, as far as docs/deployment.md needs it.

``docker compose build|up|run|exec|stop …`` in a folder with docker-compose.yml and .env. Containers have the
roots that buildah made, the user and the limits that the file gives them, and one network that nothing
leaves. What the walk made before (`Stage`) stands in the file that STAGE names.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

SETPRIV = "/usr/bin/setpriv"
KILLED = 128 + signal.SIGKILL


@dataclass
class Stage:
    """Where images are, what stands in for those of others, and the network of all containers."""

    folder: str
    """For volumes, logs and what runs."""
    network: str
    """The file of its name space."""
    ours: str
    """The name of the image that is built."""
    others: dict[str, dict]
    """By service: root, user, environment and command of what stands in for an image of others."""

    def store(self, file):
        Path(file).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls):
        return cls(**json.loads(Path(os.environ["STAGE"]).read_text()))


def buildah(folder, *arguments):
    """Run it on a storage of its own, and return what it printed."""
    storage = ["--root", f"{folder}/storage", "--runroot", f"{folder}/run", "--storage-driver", "overlay"]
    done = subprocess.run(["buildah", *storage, *arguments], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


def mounted(folder, image):
    """The root of the image, mounted once."""
    container = f"{re.sub(r'[^a-z0-9]', '-', image)}-container"
    named = buildah(folder, "containers", "--format", "{{.ContainerName}}").splitlines()
    if container not in named:
        buildah(folder, "from", "--pull-never", "--name", container, image)
    return buildah(folder, "mount", container)


def configured(folder, image):
    """What the Dockerfile says of how the image is run."""
    return json.loads(buildah(folder, "inspect", "--type", "image", image))["OCIv1"]["config"]


def assigned(environment):
    return dict(one.split("=", 1) for one in environment)


class Project:
    """The services of the file with its .env, as docker-compose reads both."""

    def __init__(self, stage, checkout="."):
        self.stage, self.folder = stage, Path(stage.folder)
        profiles = ["--profile", "https", "--profile", "cluster"]
        command = ["docker-compose", *profiles, "config"]
        config = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, text=True)
        if config.returncode:
            sys.exit(config.returncode)
        self.services = yaml.safe_load(config.stdout)["services"]

    def build(self):
        """Build our image, which `up` does where there is none."""
        context = self.services["web"]["build"]["context"]
        options = ["--isolation", "chroot", "--pull-never", "--layers=false", "--quiet"]
        buildah(self.folder, "bud", *options, "--tag", self.stage.ours, context)

    def has_image(self):
        return self.stage.ours in buildah(self.folder, "images", "--format", "{{.Name}}")

    # ------------------------------------------------------------------------------------------ one container

    def container(self, name, *, arguments=(), inside=(), volumes=(), settings=()):
        """The command line that runs a service: with `arguments` for its own, or a program `inside`."""
        service = self.services[name]
        if other := self.stage.others.get(name):
            root, user, command = other["root"], other["user"], other["command"]
            environment, workdir = dict(other["environment"]), "/"
        else:
            root, config = mounted(self.folder, self.stage.ours), configured(self.folder, self.stage.ours)
            user, workdir = config["User"], config["WorkingDir"]
            environment = assigned(config["Env"])
            command = [*config["Entrypoint"], *(arguments or words(service.get("command", config["Cmd"])))]
        environment |= {key: str(value) for key, value in service.get("environment", {}).items()}
        environment |= assigned(settings)
        mounts = [*service.get("volumes", []), *volumes]
        return [
            *("nsenter", f"--net={self.stage.network}", "bwrap"),
            *("--ro-bind" if service.get("read_only") else "--bind", root, "/"),
            *("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm"),
            *(part for path in service.get("tmpfs", []) for part in ("--perms", "1777", "--tmpfs", path)),
            *("--ro-bind", f"{self.folder}/hosts", "/etc/hosts"),
            *(part for mount in mounts for part in self.bound(mount, root)),
            *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--die-with-parent"),
            *("--clearenv", *(part for one in environment.items() for part in ("--setenv", *one))),
            *("--chdir", workdir),
            *(SETPRIV, *privileges(user, service), *(inside or command)),
        ]

    def bound(self, mount, root):
        """A volume, in a place that is made for it where there is none, as Docker does."""
        source, target, *options = mount.split(":")
        if not source.startswith("/"):  # a volume with a name
            source = self.folder / "volumes" / source
            source.mkdir(parents=True, exist_ok=True)
        if not (place := Path(f"{root}{target}")).exists():
            place.mkdir(parents=True)
        return ["--ro-bind" if "ro" in options else "--bind", str(source), target]

    # ------------------------------------------------------------------------------------------- all of them

    def up(self, profiles):
        """Start what is not running, each when what it waits for is there."""
        if not self.has_image():
            self.build()
        left = {
            name
            for name, service in self.services.items()
            if not service.get("profiles") or set(service["profiles"]) & set(profiles)
        }
        while left:
            needs = {one: self.services[one].get("depends_on", {}) for one in left}
            name = next(one for one in sorted(left) if not left & set(needs[one]))
            left.remove(name)
            for before, how in needs[name].items():
                self.await_(before, how["condition"])
            if not self.is_running(name):
                self.start(name)

    def start(self, name):
        """Start it, detached; its lines go to a file, and how it ended to another."""
        log, ended = self.folder / f"{name}.log", self.folder / f"{name}.ended"
        ended.unlink(missing_ok=True)
        script = f'"$@" >> {log} 2>&1; echo $? > {ended}.new; mv {ended}.new {ended}'
        process = subprocess.Popen(
            ["sh", "-c", script, "sh", *self.container(name)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        (self.folder / f"{name}.pid").write_text(str(process.pid))

    def is_running(self, name):
        return (self.folder / f"{name}.pid").exists() and not (self.folder / f"{name}.ended").exists()

    def await_(self, name, condition):
        service, ended = self.services[name], self.folder / f"{name}.ended"
        if condition == "service_completed_successfully":
            while not ended.exists():
                time.sleep(0.1)
            if (code := int(ended.read_text())) != 0:
                sys.exit(f"{name} ended with {code}: {(self.folder / f'{name}.log').read_text()}")
            return
        check = service["healthcheck"]
        (_, *test) = check["test"]
        for _ in range(10 * check["retries"]):
            if subprocess.run(self.container(name, inside=test), stdout=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.5)
        sys.exit(f"{name} is not healthy: {(self.folder / f'{name}.log').read_text()}")

    def stop(self, names):
        """Send each the signal by which it ends, and kill it after its period of grace."""
        for name in names:
            number = signal.Signals[self.services[name].get("stop_signal", "SIGTERM")]
            with contextlib.suppress(ProcessLookupError):
                os.kill(program_of(self.folder, name), number)
        for name in names:
            end = time.monotonic() + seconds(self.services[name].get("stop_grace_period", "10s"))
            while self.is_running(name):
                if time.monotonic() > end:
                    os.kill(program_of(self.folder, name), signal.SIGKILL)
                time.sleep(0.1)


def privileges(user, service):
    """What setpriv takes away: a capability that a file brings would be one too many."""
    uid, _, gid = user.partition(":")
    options = [f"--reuid={uid}", f"--regid={gid or uid}", "--clear-groups"]
    if service.get("cap_drop") == ["ALL"]:
        options += ["--bounding-set=-all", "--inh-caps=-all"]
    return options


def program_of(folder, name):
    """The process that runs in a container: shell, bubblewrap, the init that it is, and what that started."""
    pid = int((Path(folder) / f"{name}.pid").read_text())
    for _ in range(3):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children:
            raise ProcessLookupError(f"{name} is not running")
        pid = int(children[0])
    return pid


def words(command):
    return command.split() if isinstance(command, str) else command


def seconds(period):
    """How long `45s` or `1m0s` is."""
    unit = {"h": 3_600, "m": 60, "s": 1}
    return sum(int(number) * unit[name] for number, name in re.findall(r"(\d+)([hms])", period))


def parsed(arguments):
    parser = argparse.ArgumentParser(prog="docker compose")
    parser.add_argument("--profile", action="append", default=[])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build")
    commands.add_parser("up").add_argument("--detach", action="store_true", required=True)
    commands.add_parser("stop").add_argument("services", nargs="+")
    run = commands.add_parser("run")
    run.add_argument("--rm", action="store_true", required=True)
    run.add_argument("--no-deps", action="store_true", required=True)
    run.add_argument("--volume", action="append", default=[])
    run.add_argument("--env", action="append", default=[])
    run.add_argument("service")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    inside = commands.add_parser("exec")
    inside.add_argument("service")
    inside.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def main(arguments):
    asked = parsed(arguments)
    project = Project(Stage.read())
    match asked.command:
        case "build":
            project.build()
        case "up":
            project.up(asked.profile)
        case "stop":
            project.stop(asked.services)
        case "run":
            line = project.container(
                asked.service, arguments=asked.arguments, volumes=asked.volume, settings=asked.env
            )
            os.execv(shutil.which(line[0]), line)
        case "exec":  # in a container of its own: all share volumes and network
            line = project.container(asked.service, inside=asked.arguments)
            os.execv(shutil.which(line[0]), line)


if __name__ == "__main__":
    main(sys.argv[2:])  # behind `compose`
