"""What bash and zsh complete with the scripts of `streammetrics completion`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from streammetrics_consumers.cli.arguments import COMMANDS
from streammetrics_consumers.cli.main import main

from tests.requirements import absent

Capture = pytest.CaptureFixture[str]

# As bash calls it: the command, the word to complete and the one before it.
ASK = """
source completion.bash
set -- {words}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${{#COMP_LINE}}
_shtab_streammetrics streammetrics "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


def test_bash_completes_commands_flags_choices_and_files(tmp_path: Path, capsys: Capture) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "completion.bash").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "clicks.toml").touch()

    def completed(words: str) -> set[str]:
        ask = ["bash", "--norc", "-c", ASK.format(words=words)]
        process = subprocess.run(ask, cwd=tmp_path, capture_output=True, text=True, check=True)
        return set(process.stdout.split())

    assert completed("streammetrics ''") >= {command.name for command in COMMANDS}
    assert completed("streammetrics com") == {"compact", "completion"}
    assert completed("streammetrics results --w") == {"--window", "--where"}
    assert completed("streammetrics simulate --format a") == {"array", "arrow"}
    assert completed("streammetrics run cl") == {"clicks.toml"}
    assert completed("streammetrics run --store cl") == {"clicks.toml"}
    assert completed("streammetrics completion ''") == {"bash", "zsh"}


def test_zsh_takes_its_script_from_eval(tmp_path: Path, capsys: Capture) -> None:
    zsh = shutil.which("zsh") or absent("zsh", "it is not on the PATH")
    assert main(["completion", "zsh"]) == 0
    (tmp_path / "completion.zsh").write_text(capsys.readouterr().out, encoding="utf-8")
    ask = 'autoload -U compinit; compinit -u -D; eval "$(<completion.zsh)"; '
    ask += "print $_comps[streammetrics]"
    process = subprocess.run(
        [zsh, "-f", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert process.stdout == "_shtab_streammetrics\n"
    assert process.stderr == ""


def test_another_shell_is_refused_with_those_that_are_known(capsys: Capture) -> None:
    assert main(["completion", "fish"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "argument SHELL: invalid choice: 'fish' (choose from " in err
