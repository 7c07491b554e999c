"""The command as a stranger starts it: a real process, with and without what it needs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import counterfoil
from counterfoil.cli.ending import Code

COMMAND = [sys.executable, "-m", "counterfoil.cli"]
NAMES = {
    *("demo", "effects", "show", "doubts", "stats", "incidents", "reconcile", "resolve", "pause", "resume", "status"),
    *("tools", "schemas", "prune", "audit", "db", "mcp"),
}


def started(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, check=False, **settings)


def test_the_script_is_installed() -> None:
    """`counterfoil` stands beside python, and lists every command."""
    script = Path(sys.executable).with_name("counterfoil")
    run = started(str(script), "--help", env=os.environ | {"COLUMNS": "80"})
    assert (run.returncode, run.stderr) == (0, "")
    assert all(f" {name} " in run.stdout for name in NAMES)
    assert started(str(script), "--version").stdout.strip() == version("counterfoil")


def test_the_page_lists_each_command_and_each_exit_code() -> None:
    """The reference has one row for each command and for each exit code, and none besides."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text()
    commands = re.findall(r"^\| `([a-z]+)[^|]*\| [^|]*\|(?: yes)? \|$", page, re.MULTILINE)
    assert set(commands) == NAMES
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == [str(int(code)) for code in Code]


def test_a_command_that_does_not_exist_ends_with_code_1() -> None:
    """2 is kept for a doubt that is too old, so a slip of the pen does not look like one."""
    for arguments in (["undo"], ["show"], ["doubts", "--max-age"], ["db", "drop"]):
        run = started(*COMMAND, *arguments)
        assert (run.returncode, run.stdout) == (1, "")
        assert run.stderr != ""


def test_a_doubt_too_old_is_code_2_for_a_real_process(told: Any) -> None:
    """What a monitor sees: code 2, and the doubt as JSON."""
    run = started(*COMMAND, "doubts", "--max-age", "60", "--json", "--ledger", told.url)
    assert run.returncode == 2
    assert [row["effect_id"] for row in json.loads(run.stdout)] == [told.doubt]


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_extra_is_said_in_one_line(package: str) -> None:
    """Without the extra `cli`: code 1, and what to install."""
    code = f"import sys; sys.modules[{package!r}] = None\nfrom counterfoil.cli import main\nmain()"
    run = started(sys.executable, "-c", code)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == f"counterfoil: the command line needs {package}: pip install 'counterfoil[cli]'\n"


def test_the_entrance_loads_nothing_that_is_optional() -> None:
    """Importing the module that the script names loads neither typer nor rich nor Alembic."""
    code = (
        "import sys, counterfoil.cli\nprint([m for m in ('typer', 'rich', 'alembic', 'psycopg') if m in sys.modules])"
    )
    assert started(sys.executable, "-c", code).stdout.strip() == "[]"


def test_reading_loads_no_migrations(ledger_url: str) -> None:
    """A command that reads does not pay for Alembic."""
    code = (
        "import sys\nfrom counterfoil.cli import main\n"
        "sys.argv = ['counterfoil', 'effects', '--ledger', sys.argv[1]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in sys.modules if m.startswith(('alembic', 'counterfoil_migrations'))])"
    )
    assert started(sys.executable, "-c", code, ledger_url).stdout == "no effects\n[]\n"


def test_a_reader_that_has_enough_is_no_accident(told: Any) -> None:
    """`counterfoil effects | head -1`: no trace when the pipe closes."""
    command = f"{' '.join(COMMAND)} effects --json --ledger '{told.url}' | head -c 1"
    run = started("bash", "-c", command)
    assert (run.stdout, run.stderr) == ("[", "")


def test_ctrl_c_ends_with_130(ledger_url: str, tmp_path: Path) -> None:
    """An interrupted command ends as interrupted commands do, without a trace."""
    (tmp_path / "patient.py").write_text(
        "import signal, sys\ndef executor():\n    print('waiting', file=sys.stderr, flush=True)\n    signal.pause()\n"
    )
    with subprocess.Popen(
        [*COMMAND, "tools", "--app", "patient:executor", "--ledger", ledger_url],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, rest = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in rest


DEMO = """
import json

def run_demo(*, json_output: bool, retry_blindly: bool, ledger: str | None) -> int:
    print(json.dumps({"json_output": json_output, "retry_blindly": retry_blindly, "ledger": ledger}))
    return 7 if retry_blindly else 0
"""


def test_the_demo_is_whatever_is_registered_as_it(tmp_path: Path) -> None:
    """The demo is found by its entry point; it gets the options, and its exit code is the command's."""
    (tmp_path / "some_demo.py").write_text(DEMO)
    registered = tmp_path / "some_demo-1.dist-info"
    registered.mkdir()
    (registered / "METADATA").write_text("Metadata-Version: 2.1\nName: some-demo\nVersion: 1\n")
    (registered / "entry_points.txt").write_text("[counterfoil.commands]\ndemo = some_demo:run_demo\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "COUNTERFOIL_LEDGER": "sqlite:///books.db"}
    run = started(*COMMAND, "demo", env=environment)
    assert run.returncode == 0
    assert json.loads(run.stdout) == {"json_output": False, "retry_blindly": False, "ledger": None}
    run = started(*COMMAND, "demo", "--json", "--retry-blindly", "--ledger", "sqlite:///d.db", env=environment)
    assert run.returncode == 7
    assert json.loads(run.stdout) == {"json_output": True, "retry_blindly": True, "ledger": "sqlite:///d.db"}
    (tmp_path / "some_demo.py").write_text("import a_package_that_nobody_has\n")
    run = started(*COMMAND, "demo", env=environment)
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "counterfoil: the demo needs a_package_that_nobody_has: pip install 'counterfoil[demo]'\n"


def test_without_the_demo_it_is_said_how_to_get_it(tmp_path: Path) -> None:
    """Where nothing is registered as the demo: code 1, and what to install."""
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not entry.name.startswith(("counterfoil", "_counterfoil")):
            (tmp_path / entry.name).symlink_to(entry)
    library = Path(counterfoil.__file__ or "").parent.parent
    code = f"import sys\nsys.path += {[str(tmp_path), str(library)]!r}\nfrom counterfoil.cli import main\nmain()"
    run = started(sys.executable, "-S", "-I", "-c", code, "demo")
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "counterfoil: the demo is not installed: pip install 'counterfoil[demo]'\n"
