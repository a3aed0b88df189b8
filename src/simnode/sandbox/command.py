"""The command inside the node, as a shell's job: it is a child in the launcher's own process group and session.

Signals from the terminal reach both; the launcher leaves them to the command, stops when the command has stopped, and
takes the terminal back in the end. Signals that somebody sends to the launcher alone are passed on.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from msgspec import Struct

from simnode.sandbox.complaints import complain

NOT_FOUND, NOT_EXECUTABLE = 127, 126
_SI_KERNEL = 0x80
_PASSED_ON = {signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}
_FROM_TERMINAL = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP}
_AWAITED = _PASSED_ON | _FROM_TERMINAL | {signal.SIGCHLD}


class Terminal:
    """The controlling terminal, if there is one, as this process group sees it. Open it before joining namespaces."""

    def __init__(self) -> None:
        self._file = -1
        try:
            self._file = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return
        self._ours = self._group() == os.getpgrp()

    def note(self) -> int | None:
        """The group in the foreground, where it is another than ours and we had lent it the terminal; else None."""
        if self._file < 0 or not self._ours:
            return None
        group = self._group()
        return None if group == os.getpgrp() else group

    def resumed(self, group: int | None) -> None:
        """After a stop: if we came back in the foreground, give the terminal to `group` again."""
        if self._file < 0:
            return
        self._ours = self._group() == os.getpgrp()
        if self._ours and group is not None:
            self._give(group)

    def take_back(self) -> None:
        """Put our group into the foreground again, if it was there."""
        if self.note() is not None:
            self._give(os.getpgrp())

    def _group(self) -> int:
        try:
            return os.tcgetpgrp(self._file)
        except OSError:
            return -1

    def _give(self, group: int) -> None:
        with suppress(OSError):
            os.tcsetpgrp(self._file, group)


class Command(Struct, frozen=True):
    """What to run: its words, its environment, its working directory, and whether it is to see itself as root."""

    words: tuple[str, ...]
    environ: Mapping[str, str]
    directory: str
    as_root: bool = False

    def fork(self, prepare: Callable[[], None] = lambda: None) -> int:
        """Fork it and return its pid; `prepare` runs in the child. Blocks the signals that `attend` waits for."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED | {signal.SIGTTOU})
        pid = os.fork()
        if pid == 0:
            self._become(prepare, before)
        return pid

    def _become(self, prepare: Callable[[], None], mask: set[signal.Signals | int]) -> NoReturn:
        code = 1
        try:
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            prepare()
            with suppress(OSError):
                os.chdir(self.directory)
            code = self._exec()
        except BaseException as error:  # whatever it is, there is nobody else left to tell
            complain(f"the command cannot be run: {error}")
        finally:
            os._exit(code)

    def _exec(self) -> int:
        name = self.words[0]
        try:
            if not name:
                raise FileNotFoundError
            os.execvpe(name, self.words, self.environ)
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            if "/" not in name:
                missing = missing or not _found(name, self.environ)
            reason = "command not found" if missing and "/" not in name else error.strerror
            complain(f"{name or repr(name)}: {reason}")
            return NOT_FOUND if missing else NOT_EXECUTABLE


def _found(name: str, environ: Mapping[str, str]) -> bool:
    """True if PATH leads to a file of this name; what lies in a directory that may not be searched is not found."""
    return any(os.path.isfile(Path(directory, name)) for directory in os.get_exec_path(environ))  # noqa: PTH113


def open_standard_descriptors() -> None:
    """Whatever is opened next must not become a standard descriptor that the caller had closed."""
    while (file := os.open("/dev/null", os.O_RDWR)) <= 2:
        os.set_inheritable(file, True)
    os.close(file)


def working_directory() -> str:
    """The caller's, by its path; / if it is gone."""
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"


def attend(pid: int, terminal: Terminal, ended: Callable[[int], bool]) -> int:
    """Wait for the command and return its wait status; `ended` hears of every other child's end.

    It answers whether the node is gone with that child: then the command is killed.
    """
    while True:
        news = signal.sigwaitinfo(_AWAITED)
        if news.si_signo != signal.SIGCHLD:
            if news.si_signo in _PASSED_ON or news.si_code != _SI_KERNEL:
                _send(pid, news.si_signo)
            continue
        status = _look(pid, terminal, ended)
        if status is not None:
            return status


def exit_code(status: int) -> int:
    """What a shell would answer for this wait status."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _look(pid: int, terminal: Terminal, ended: Callable[[int], bool]) -> int | None:
    while True:
        try:
            child, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return None
        if child == 0:
            return None
        if os.WIFSTOPPED(status):
            if child == pid:
                _stop_too(pid, terminal)
        elif child == pid:
            return status
        elif ended(child):
            _send(pid, signal.SIGKILL)


def _stop_too(pid: int, terminal: Terminal) -> None:
    group = terminal.note()
    terminal.take_back()
    os.kill(os.getpid(), signal.SIGSTOP)
    terminal.resumed(group)
    with suppress(ChildProcessError):  # it has been continued, and has ended since
        if os.waitid(os.P_PID, pid, os.WCONTINUED | os.WNOHANG) is None:
            _send(pid, signal.SIGCONT)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
