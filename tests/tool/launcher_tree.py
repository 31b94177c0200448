"""A temporary tree with the real launcher, and stand-ins for programs that change a machine.

PATH holds nothing but the stand-ins and the few standard tools that the launcher may use, so that
no test can install, download or compile anything.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]

STANDARD_TOOLS = ("bash cat date dirname env flock grep head mkdir mv readlink rm sed sha256sum"
                  " sort stat tail tee touch").split()

STAND_INS = {
    "id": 'echo "${FAKE_UID:-0}"',
    "sudo": '[[ ${FAKE_SUDO:-0} == 1 ]] || exit 1; shift; log "sudo $*"; [[ $1 == true ]] || "$@"',
    "dpkg-query": """
      for package in "${@:4}"; do
        [[ " ${FAKE_MISSING:-} " == *" $package "* ]] &&
          ! grep -q -x "$package" "$STATE/packages" && continue
        [[ " ${FAKE_REMOVED:-} " == *" $package "* ]] && echo -n 'rc  ' || echo -n 'ii  '
        echo "$package"
      done""",
    "apt-get": """
      log "apt-get $*"
      [[ ${FAKE_APT:-} == broken && $* == *install* ]] && { echo 'E: no candidate' >&2; exit 100; }
      [[ $* == *install* ]] && printf '%s\\n' "$@" >>"$STATE/packages"
      exit 0""",
    "python3": """
      log "venv ${*: -1}"
      mkdir -p "${*: -1}/bin" && cp "$STATE/pip" "${*: -1}/bin/python" """,
    "cmake": """
      log "cmake $*"
      [[ $1 == --preset ]] && {
        [[ ${FAKE_CONFIGURE:-} == broken ]] && { echo 'CMake Error: no compiler'; exit 1; }
        mkdir -p build/release && touch build/release/build.ninja
        echo "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" >build/release/CMakeCache.txt
        for option; do
          [[ $option == -D* ]] &&
            echo "${option:2}" | sed 's/=/:UNINITIALIZED=/' >>build/release/CMakeCache.txt
        done
        exit 0
      }
      [[ ${FAKE_BUILD:-} == broken ]] && { seq 1 100; echo 'error: no such type'; exit 1; }
      [[ ${FAKE_BUILD:-} == empty ]] && exit 0
      [[ -e build/release/kvcheck ]] && { echo '[0/1] Re-checking globbed directories...'
                                          echo 'ninja: no work to do.'; exit 0; }
      for step in $(seq 1 40); do echo "[$step/40] Building"; done
      cp "$STATE/tool" build/release/kvcheck""",
    "ctest": """
      log "ctest $* in $PWD"
      echo "100% tests passed, 0 tests failed out of 3"
      exit "${FAKE_EXIT:-0}" """,
}

TOOL = """
  log "tool"
  echo "arguments:$(printf ' [%s]' "$@")"
  echo "folder: $PWD"
  echo "environments: $KVCHECK_ENVIRONMENTS"
  echo "adapters: $KVCHECK_ADAPTERS"
  exit "${FAKE_EXIT:-0}" """

PIP = """
  log "pip $(tr '\\n' ' ' <"${*: -1}")"
  case ${FAKE_PIP:-} in
    no-release)
      echo 'ERROR: Could not find a version (from versions: 1.31.1, 1.32.0)'
      echo 'ERROR: No matching distribution found for onnxruntime==9.9.9'; exit 1 ;;
    no-network)
      echo "WARNING: Retrying after connection broken by 'NewConnectionError(...)'"
      echo 'ERROR: Could not find a version (from versions: none)'
      echo 'ERROR: No matching distribution found for onnxruntime==1.32.0'; exit 1 ;;
  esac"""

REQUIREMENTS = "# Pinned.\nonnxruntime==1.32.0\nonnx==1.20.0  # builds the models\n"


class LauncherTest(unittest.TestCase):
    """Gives each test a tree of its own in self.root and runs the launcher in it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name).resolve()
        self.state = self.top / "state"
        self.programs = self.top / "programs"
        self.root = self.top / "a tree"
        for made in (self.state, self.programs, self.root / ".ci"):
            made.mkdir(parents=True)
        for name in ("kvcheck", "CMakePresets.json", ".ci/run"):
            shutil.copy2(SOURCE / name, self.root / name)
        self.write("kernels/adapters/requirements-onnxruntime.txt", REQUIREMENTS)
        for name in ("openvino", "jax"):
            self.write(f"kernels/bench/peers/requirements-{name}.txt", f"{name}==7.0\n")
        self.write("tests/reports/requirements-browser.txt", "selenium==4.0.0\n")
        (self.state / "packages").touch()
        (self.state / "calls").touch()
        for name in STANDARD_TOOLS + ["cp", "seq", "tr"]:
            (self.programs / name).symlink_to(shutil.which(name))
        for name, body in STAND_INS.items():
            self.program(self.programs / name, body)
        self.program(self.state / "tool", TOOL)
        self.program(self.state / "pip", PIP)

    @staticmethod
    def program(path, body):
        log = 'log() { echo "$*" >>"$STATE/calls"; }'
        path.write_text(f"#!/usr/bin/env bash\n{log}\n{body}\n")
        path.chmod(0o755)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def environment(self, **settings):
        return {"PATH": str(self.programs), "STATE": str(self.state), "HOME": str(self.top),
                **{name: str(value) for name, value in settings.items()}}

    def kvcheck(self, *arguments, script="kvcheck", folder=None, **settings):
        """The finished launcher: returncode, stdout, stderr."""
        return subprocess.run([str(self.root / script), *arguments], cwd=folder or self.top,
                              env=self.environment(**settings), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)

    def calls(self, start=""):
        """What the stand-ins were asked to do so far, those that begin with `start`."""
        lines = (self.state / "calls").read_text().splitlines()
        return [line for line in lines if line.startswith(start)]

    def forget_calls(self):
        (self.state / "calls").write_text("")

    def age(self, path, seconds):
        """Makes a file look that much older."""
        status = (self.root / path).stat()
        os.utime(self.root / path, (status.st_atime - seconds, status.st_mtime - seconds))
